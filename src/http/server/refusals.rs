//! How often refused client certificates are logged: clients choose how often they come.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::seats::Caller;

/// How often the refusals of one address are logged at most.
const EVERY: Duration = Duration::from_secs(1);

/// How many addresses are remembered. Refusals of further ones are not logged, but counted.
const CALLERS: usize = 1024;

/// When refusals were logged last, by address.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<Caller, Logged>>);

#[derive(Debug)]
struct Logged {
    at: Instant,
    /// Refusals since then.
    unlogged: u64,
}

impl Refusals {
    /// Counts a refusal. If it is to be logged, returns how many of this caller were not logged before it.
    pub(super) fn logs(&self, caller: Caller, now: Instant) -> Option<u64> {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(logged) = callers.get_mut(&caller) {
            if now.saturating_duration_since(logged.at) < EVERY {
                logged.unlogged += 1;
                return None;
            }
            let unlogged = logged.unlogged;
            *logged = Logged { at: now, unlogged: 0 };
            return Some(unlogged);
        }
        if callers.len() >= CALLERS {
            callers.retain(|_, it| now.saturating_duration_since(it.at) < EVERY);
        }
        if callers.len() >= CALLERS {
            return None;
        }
        callers.insert(caller, Logged { at: now, unlogged: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn caller(number: u32) -> Caller {
        std::net::IpAddr::V4(Ipv4Addr::from_bits(number)).into()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a start to count from")]
    fn one_line_a_second_and_address() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let at =
            |number, millis| refusals.logs(caller(number), start + Duration::from_millis(millis));
        assert_eq!([at(1, 0), at(1, 1), at(2, 2), at(1, 999)], [Some(0), None, Some(0), None]);
        assert_eq!([at(1, 1000), at(1, 1500), at(1, 2000)], [Some(2), None, Some(1)]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a start to count from")]
    fn the_memory_of_addresses_is_bounded() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let logged =
            |now| (0..50_000).filter(|it| refusals.logs(caller(*it), now).is_some()).count();
        assert_eq!(logged(start), CALLERS);
        // A second later they make room.
        assert_eq!(logged(start + EVERY), CALLERS);
        assert_eq!(refusals.0.lock().unwrap().len(), CALLERS);
    }
}
