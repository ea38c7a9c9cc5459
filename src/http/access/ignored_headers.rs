//! Limits how often it is logged that a header which names users is ignored: clients choose how often they send it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The least time between two log lines about one address.
const EVERY: Duration = Duration::from_hours(1);

/// How many addresses are remembered. Headers of further ones are not logged.
const ADDRESSES: usize = 64;

/// The addresses whose headers were ignored within the last hour, each with when that was logged.
#[derive(Debug, Default)]
pub(super) struct IgnoredHeaders(Mutex<HashMap<IpAddr, Instant>>);

impl IgnoredHeaders {
    /// Notes a header that is ignored; returns whether that should be logged.
    pub(super) fn note(&self, address: IpAddr, now: Instant) -> bool {
        let mut logged = self.0.lock();
        logged.retain(|_, at| now.saturating_duration_since(*at) < EVERY);
        if logged.contains_key(&address) || logged.len() >= ADDRESSES {
            return false;
        }
        logged.insert(address, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a start to count from")]
    fn one_line_an_hour_for_each_of_few_addresses() {
        let (ignored, start) = (IgnoredHeaders::default(), Instant::now());
        let at = |number, minutes| {
            let address = IpAddr::V4(Ipv4Addr::from_bits(number));
            ignored.note(address, start + Duration::from_mins(minutes))
        };
        assert_eq!([at(1, 0), at(1, 1), at(2, 2), at(1, 59)], [true, false, true, false]);
        assert_eq!([at(1, 60), at(2, 60), at(2, 62)], [true, false, true]);
        assert_eq!((100..50_000).filter(|it| at(*it, 63)).count(), ADDRESSES - 2);
        assert_eq!(ignored.0.lock().len(), ADDRESSES);
    }
}
