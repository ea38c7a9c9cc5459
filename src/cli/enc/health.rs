//! Which daemons failed lately, remembered from run to run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use super::cache::Cache;

/// The file of the cache that remembers.
const FILE: &str = "servers.json";

/// How long a daemon that failed is asked last.
const MEMORY: Duration = Duration::from_secs(30);

/// When daemons failed.
pub(super) struct DaemonHealth {
    cache: Option<Cache>,
    failed: BTreeMap<String, Timestamp>,
    changed: bool,
}

impl DaemonHealth {
    /// Reads what is remembered; nothing is lost where nothing can be.
    pub(super) fn read(cache: Option<&Path>) -> Self {
        let cache = cache.map(Cache::new);
        let bytes = cache.as_ref().and_then(|it| it.read(FILE).ok());
        let failed = bytes.and_then(|it| serde_json::from_slice(&it).ok()).unwrap_or_default();
        Self { cache, failed, changed: false }
    }

    /// Returns servers in the order in which they are asked: as configured, but those that failed
    /// lately last, the longest ago first.
    pub(super) fn order<'s>(&self, servers: &'s [String]) -> Vec<&'s str> {
        self.order_at(servers, Timestamp::now())
    }

    fn order_at<'s>(&self, servers: &'s [String], now: Timestamp) -> Vec<&'s str> {
        let lately = |server: &str| {
            let failed = self.failed.get(server)?;
            let age = now.duration_since(*failed).unsigned_abs();
            (age < MEMORY).then_some(*failed)
        };
        let mut order: Vec<&str> = servers.iter().map(String::as_str).collect();
        order.sort_by_key(|server| lately(server));
        order
    }

    /// Remembers that a daemon answered.
    pub(super) fn is_well(&mut self, server: &str) {
        self.changed |= self.failed.remove(server).is_some();
    }

    /// Remembers that a daemon did not.
    pub(super) fn has_failed(&mut self, server: &str) {
        self.failed.insert(server.to_owned(), Timestamp::now());
        self.changed = true;
    }

    /// Keeps it for the next run; where that is impossible, the next run finds out itself.
    pub(super) fn write(&self) {
        if let (Some(cache), true) = (&self.cache, self.changed) {
            let text = serde_json::json!(self.failed).to_string();
            cache.replace(FILE, &text).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_failed_lately_is_asked_last() {
        let servers = ["a", "b", "c"].map(str::to_owned);
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let order = |failed: &[(&str, &str)]| {
            let failed =
                failed.iter().map(|(it, time)| ((*it).to_owned(), time.parse().unwrap())).collect();
            DaemonHealth { cache: None, failed, changed: false }.order_at(&servers, now).concat()
        };
        for (failed, expected) in [
            (&[][..], "abc"),
            (&[("a", "2026-11-20T11:59:50Z")], "bca"),
            (&[("a", "2026-11-20T11:59:50Z"), ("b", "2026-11-20T11:59:40Z")], "cba"),
            (&[("a", "2026-11-20T11:59:29Z")], "abc"),
            (&[("a", "2026-11-20T12:00:20Z")], "bca"),
            (&[("gone", "2026-11-20T12:00:00Z")], "abc"),
        ] {
            assert_eq!(order(failed), expected, "{failed:?}");
        }
    }
}
