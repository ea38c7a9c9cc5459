//! The recent deliveries of webhooks: each is handled once.
//!
//! A bounded cache crate would evict by use; a delivery is forgotten by its age alone.
#![expect(clippy::disallowed_methods, reason = "deliveries are forgotten by the clock")]

use std::time::{Duration, Instant};

use indexmap::IndexMap;
use parking_lot::Mutex;

use super::payload::Provider;

/// How long a delivery is remembered.
const KEPT: Duration = Duration::from_hours(24);

/// How many are remembered at the most.
const MOST: usize = 8192;

/// The longest id that is remembered; forges send less than a third of it.
const LONGEST: usize = 128;

/// Ids with when they came, oldest first.
#[derive(Debug, Default)]
pub(super) struct Deliveries(Mutex<IndexMap<(Provider, String), Instant>>);

impl Deliveries {
    /// Notes a delivery; returns whether it is new.
    pub(super) fn note(&self, provider: Provider, id: &str) -> bool {
        if id.len() > LONGEST {
            return true;
        }
        let now = Instant::now();
        let mut known = self.0.lock();
        let old = known.values().take_while(|it| now.duration_since(**it) > KEPT).count();
        let surplus = (known.len() + 1).saturating_sub(MOST);
        known.drain(..old.max(surplus));
        known.insert((provider, id.to_owned()), now).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_new_once() {
        let deliveries = Deliveries::default();
        assert!(deliveries.note(Provider::GitHub, "a"));
        assert!(!deliveries.note(Provider::GitHub, "a"));
        assert!(deliveries.note(Provider::GitLab, "a"));
    }

    #[test]
    fn a_flood_does_not_fill_memory() {
        let deliveries = Deliveries::default();
        for index in 0..MOST + 10 {
            deliveries.note(Provider::GitHub, &index.to_string());
        }
        assert_eq!(deliveries.0.lock().len(), MOST);
        assert!(!deliveries.note(Provider::GitHub, &MOST.to_string()));
        assert!(deliveries.note(Provider::GitHub, "0"));
        assert!(deliveries.note(Provider::GitHub, &"x".repeat(LONGEST + 1)));
        assert_eq!(deliveries.0.lock().len(), MOST);
    }
}
