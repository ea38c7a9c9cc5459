//! Finds the series of a metric without the lock that all threads share.

use std::hash::Hash;
use std::sync::OnceLock;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// The series of a family that were counted first.
///
/// A family finds a series by the hash of its labels, behind a lock, and a request counts four. The few that nearly all
/// requests count are found here by comparing labels; all others are looked up in the family each time.
#[derive(Debug)]
pub(super) struct SeriesCache<L, M, const SIZE: usize>([OnceLock<(L, M)>; SIZE]);

impl<L, M, const SIZE: usize> Default for SeriesCache<L, M, SIZE> {
    fn default() -> Self {
        Self([const { OnceLock::new() }; SIZE])
    }
}

impl<L, M, const SIZE: usize> SeriesCache<L, M, SIZE> {
    /// Counts with the series whose labels `are_equal` accepts. `of_family` returns one that is not known yet.
    pub(super) fn count(
        &self,
        are_equal: impl Fn(&L) -> bool,
        of_family: impl FnOnce() -> (L, M),
        count: impl FnOnce(&M),
    ) {
        let mut known = self.0.iter().map_while(OnceLock::get);
        if let Some((_, series)) = known.find(|(labels, _)| are_equal(labels)) {
            return count(series);
        }
        let mut entry = of_family();
        count(&entry.1);
        // Where two threads add the same series, it takes two places.
        for place in &self.0 {
            match place.set(entry) {
                Ok(()) => return,
                Err(refused) => entry = refused,
            }
        }
    }
}

impl<L: Clone + Eq + Hash, const SIZE: usize> SeriesCache<L, Counter, SIZE> {
    /// Counts one with these labels.
    pub(super) fn increment(&self, family: &Family<L, Counter>, labels: &L) {
        let of_family = || (labels.clone(), family.get_or_create_owned(labels));
        self.count(
            |it| it == labels,
            of_family,
            |it| {
                it.inc();
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_first_series_are_looked_up_once_and_the_others_each_time() {
        let cache = SeriesCache::<u8, char, 2>::default();
        let look_ups = Cell::new(0);
        let count = |labels: u8, series: char| {
            let of_family = || {
                look_ups.set(look_ups.get() + 1);
                (labels, series)
            };
            cache.count(|it| *it == labels, of_family, |it| assert_eq!(*it, series));
            look_ups.get()
        };
        assert_eq!([count(1, 'a'), count(1, 'a'), count(2, 'b')], [1, 1, 2]);
        assert_eq!([count(1, 'a'), count(2, 'b')], [2, 2]);
        assert_eq!([count(3, 'c'), count(3, 'c'), count(1, 'a')], [3, 4, 4]);
    }
}
