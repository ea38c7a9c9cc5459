//! When a node said its facts and its trusted data, and what of a check-in that comes late is still the latest.

/// What a request says of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidPart {
    /// Facts and trusted data.
    Both,
    /// Facts: the trusted data that are known when they are written stay.
    Facts,
    /// Trusted data: the facts that are known when they are written stay. Those that it is noted with decided the answer.
    Trusted,
}

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

    /// Notes that a part was said of a node; where nothing was known of it, nothing was said of the other part.
    pub(super) fn note_after(&mut self, is_bare: bool, said: SaidPart, time: i64) {
        if is_bare {
            *self = Self::default();
        }
        self.note(said, time);
    }

    /// Notes that a part was said.
    fn note(&mut self, said: SaidPart, time: i64) {
        match said {
            SaidPart::Both => *self = Self::both(time),
            SaidPart::Facts => self.facts = Some(time),
            SaidPart::Trusted => self.trusted = Some(time),
        }
    }

    /// Returns them with none after a time.
    pub(super) fn until(self, time: i64) -> Self {
        let Self { facts, trusted } = self;
        Self { facts: facts.map(|it| it.min(time)), trusted: trusted.map(|it| it.min(time)) }
    }
}

/// How much older than what is kept a late check-in is at the most, in microseconds, beside the time that it
/// waited in the queue: while the database is gone that is long. What seems to be older still is of a daemon
/// whose clock is wrong, and replaces what is kept.
const LATE: i64 = 60_000_000;

/// The writer of a row where there is only one.
pub(super) const NO_WRITER: i64 = 0;

/// A check-in, as far as that decides what it leaves of what is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct SaidCheckIn {
    pub(super) said: SaidPart,
    /// When it came, and for how long it waited in the queue, in microseconds.
    pub(super) time: i64,
    pub(super) waited: i64,
    pub(super) has_facts: bool,
    /// Whether it has neither facts nor trusted data.
    pub(super) is_bare: bool,
}

/// What is known of a node, as far as that decides what a check-in leaves of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownParts {
    /// Which daemon wrote it.
    pub(super) writer: i64,
    pub(super) last_seen: i64,
    pub(super) times: PartTimes,
    pub(super) has_facts: bool,
    pub(super) is_bare: bool,
}

impl KnownParts {
    /// Returns whether another daemon than the one that writes wrote it.
    pub(super) fn is_of_another(&self, writer: i64) -> bool {
        self.writer != NO_WRITER && self.writer != writer
    }

    /// Returns whether another daemon has already written a later check-in. Those of one daemon count in the order in
    /// which they came, also where its clock was set back.
    pub(super) fn overtook(&self, check_in: &SaidCheckIn, writer: i64) -> bool {
        self.is_of_another(writer) && is_before(check_in, self.last_seen)
    }

    /// Returns whether a check-in says more than that the node is there: if not, what is known stays.
    pub(super) fn is_replaced_by(&self, check_in: &SaidCheckIn) -> bool {
        let says_less = self.has_facts || (check_in.is_bare && !self.is_bare);
        check_in.has_facts || !says_less
    }

    /// Returns which part of a check-in that comes late is still the latest that the node said.
    pub(super) fn latest_part(&self, check_in: &SaidCheckIn) -> Option<SaidPart> {
        let is_later = |known: Option<i64>| known.is_none_or(|it| it < check_in.time);
        let says_facts = check_in.said != SaidPart::Trusted && check_in.has_facts;
        // Facts that came later say nothing of what was known of trusted data before.
        let is_unknown =
            self.times.trusted.is_none() || self.times.facts.is_some_and(|it| it > check_in.time);
        let says_trusted = match check_in.said {
            SaidPart::Trusted => true,
            SaidPart::Facts => false,
            SaidPart::Both => (is_unknown && !check_in.is_bare) || self.is_replaced_by(check_in),
        };
        match (
            says_facts && (!self.has_facts || is_later(self.times.facts)),
            says_trusted && (self.is_bare || is_later(self.times.trusted)),
        ) {
            (true, true) => Some(SaidPart::Both),
            (true, false) => Some(SaidPart::Facts),
            (false, true) => Some(SaidPart::Trusted),
            (false, false) => None,
        }
    }
}

/// Returns whether a check-in came before a time that another daemon noted.
pub(super) fn is_before(check_in: &SaidCheckIn, time: i64) -> bool {
    check_in.time < time
        && time.saturating_sub(check_in.time) < LATE.saturating_add(check_in.waited)
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
