//! How deliveries of webhooks ended.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::http::types::WebhookDeliveries;
use crate::telemetry::Delivered;

/// How often deliveries of each forge ended in each way, and when the last one did: few rows, however much is sent.
#[derive(Debug, Default)]
pub(super) struct DeliveryTally(Mutex<BTreeMap<(&'static str, &'static str), LastOf>>);

#[derive(Clone, Copy, Debug)]
struct LastOf {
    count: u64,
    last: Timestamp,
}

impl DeliveryTally {
    /// Counts a delivery.
    pub(super) fn count(&self, provider: &'static str, delivered: Delivered, now: Timestamp) {
        let mut rows = self.0.lock();
        let row = rows.entry((provider, delivered.as_str()));
        let row = row.or_insert(LastOf { count: 0, last: now });
        (row.count, row.last) = (row.count.saturating_add(1), now);
    }

    /// Returns the rows, by forge.
    pub(super) fn rows(&self) -> Vec<WebhookDeliveries> {
        let rows = self.0.lock();
        let row = |(&(provider, result), it): (&(&'static str, &'static str), &LastOf)| {
            let (provider, result) = (provider.to_owned(), result.to_owned());
            WebhookDeliveries { provider, result, count: it.count, last: it.last }
        };
        rows.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_that_end_alike_are_one_row() {
        let tally = DeliveryTally::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        for (second, delivered) in
            [(1, Delivered::Accepted), (2, Delivered::Unauthenticated), (3, Delivered::Accepted)]
        {
            tally.count("github", delivered, at(second));
        }
        let rows: Vec<_> =
            tally.rows().iter().map(|it| (it.result.clone(), it.count, it.last)).collect();
        let expected =
            [("accepted".to_owned(), 2, at(3)), ("unauthenticated".to_owned(), 1, at(2))];
        assert_eq!(rows, expected);
    }
}
