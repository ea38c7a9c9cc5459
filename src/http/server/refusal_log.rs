//! Limits how often refused client certificates and responses that are cut off are logged: clients choose how
//! often they connect.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connection_limit::ClientKey;

/// The least time between two log lines about one address.
const EVERY: Duration = Duration::from_secs(1);

/// How many addresses are remembered. Refusals of further ones are counted, not logged. A bounded cache
/// would evict a recent address for a new one, and so log without a limit.
const CLIENTS: usize = 1024;

/// When something of one kind was logged last, by client.
#[derive(Debug, Default)]
pub(super) struct RefusalLog(Mutex<HashMap<ClientKey, Logged>>);

#[derive(Debug)]
struct Logged {
    at: Instant,
    /// Refusals since then.
    unlogged: u64,
}

impl RefusalLog {
    /// Counts a refusal. If it should be logged, returns how many of this client were not logged before it.
    pub(super) fn count(&self, client: ClientKey, now: Instant) -> Option<u64> {
        let mut clients = self.0.lock();
        if let Some(logged) = clients.get_mut(&client) {
            if now.saturating_duration_since(logged.at) < EVERY {
                logged.unlogged += 1;
                return None;
            }
            let unlogged = logged.unlogged;
            *logged = Logged { at: now, unlogged: 0 };
            return Some(unlogged);
        }
        if clients.len() >= CLIENTS {
            clients.retain(|_, it| now.saturating_duration_since(it.at) < EVERY);
        }
        if clients.len() >= CLIENTS {
            return None;
        }
        clients.insert(client, Logged { at: now, unlogged: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn client(number: u32) -> ClientKey {
        std::net::IpAddr::V4(Ipv4Addr::from_bits(number)).into()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a start to count from")]
    fn one_line_a_second_and_address() {
        let (refusal_log, start) = (RefusalLog::default(), Instant::now());
        let at = |number, millis| {
            refusal_log.count(client(number), start + Duration::from_millis(millis))
        };
        assert_eq!([at(1, 0), at(1, 1), at(2, 2), at(1, 999)], [Some(0), None, Some(0), None]);
        assert_eq!([at(1, 1000), at(1, 1500), at(1, 2000)], [Some(2), None, Some(1)]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a start to count from")]
    fn the_memory_of_addresses_is_bounded() {
        let (refusal_log, start) = (RefusalLog::default(), Instant::now());
        let logged =
            |now| (0..50_000).filter(|it| refusal_log.count(client(*it), now).is_some()).count();
        assert_eq!(logged(start), CLIENTS);
        // A second later they are forgotten.
        assert_eq!(logged(start + EVERY), CLIENTS);
        assert_eq!(refusal_log.0.lock().len(), CLIENTS);
    }
}
