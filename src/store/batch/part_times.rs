//! When a node said its facts and its trusted data.

use super::super::check_in::SaidPart;

/// When the parts of a node were said last, in microseconds since 1970; a part that never was has no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartTimes {
    pub(super) facts: Option<i64>,
    pub(super) trusted: Option<i64>,
}

impl PartTimes {
    fn both(time: i64) -> Self {
        Self { facts: Some(time), trusted: Some(time) }
    }

    /// Returns those of a row: where they are not those of the check-in, a version wrote it that keeps one time.
    pub(super) fn of_row(checked_in: i64, facts: Option<i64>, trusted: Option<i64>) -> Self {
        let kept = Self { facts, trusted };
        if kept.latest() == Some(checked_in) { kept } else { Self::both(checked_in) }
    }

    /// Returns when the node last said something.
    pub(super) fn latest(self) -> Option<i64> {
        self.facts.max(self.trusted)
    }

    /// Notes that a part was said.
    pub(super) fn note(&mut self, said: SaidPart, time: i64) {
        let Self { facts, trusted } = Self::both(time);
        match said {
            SaidPart::Both => *self = Self { facts, trusted },
            SaidPart::Facts => self.facts = facts,
            SaidPart::Trusted => self.trusted = trusted,
        }
    }

    /// Returns them with none after a time.
    pub(super) fn until(self, time: i64) -> Self {
        let Self { facts, trusted } = self;
        Self { facts: facts.map(|it| it.min(time)), trusted: trusted.map(|it| it.min(time)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_a_version_that_keeps_one_time_has_it_for_both_parts() {
        let both = PartTimes::both(7);
        assert_eq!(PartTimes::of_row(7, None, None), both);
        assert_eq!(PartTimes::of_row(7, Some(3), Some(5)), both, "written again by that version");
        let mut times = PartTimes::default();
        for (said, time, expected) in [
            (SaidPart::Facts, 3, (Some(3), None)),
            (SaidPart::Trusted, 5, (Some(3), Some(5))),
            (SaidPart::Facts, 4, (Some(4), Some(5))),
            (SaidPart::Both, 6, (Some(6), Some(6))),
        ] {
            times.note(said, time);
            let (facts, trusted) = expected;
            assert_eq!(times, PartTimes { facts, trusted }, "{said:?}");
            assert_eq!(PartTimes::of_row(times.latest().unwrap(), facts, trusted), times);
        }
        assert_eq!(times.until(5), PartTimes::both(5));
        assert_eq!(times.until(9), times);
    }
}
