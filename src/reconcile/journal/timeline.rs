//! Which commit was live at a time, though the clock may have been set in between.
//!
//! The order of what happened is that of the journal. Times are what the clock of this machine showed:
//! when it is set, it may show a time twice, or never. Of a time that it showed twice, the later
//! commit counts; of one that it never showed, the last commit that can have been live then.

use jiff::Timestamp;

use super::event::{Event, Record};
use crate::model::CommitId;

/// How long the clock ran undisturbed while a commit was live.
#[derive(Clone, Copy, Debug)]
struct Span {
    commit: CommitId,
    from: Timestamp,
    end: End,
}

/// The time until which a commit was live.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The next commit is live at it.
    Before(Timestamp),
    /// The commit is live at it, and the clock was set then.
    At(Timestamp),
}

impl Span {
    fn contains(&self, time: Timestamp) -> bool {
        self.from <= time
            && match self.end {
                End::Before(end) => time < end,
                End::At(end) => time <= end,
            }
    }
}

/// Returns the commit that was live at a time, which is not later than `now` unless the clock ran
/// ahead.
pub(super) fn live_at(records: &[Record], time: Timestamp, now: Timestamp) -> Option<CommitId> {
    let spans = spans(records, now);
    if let Some(shown) = spans.iter().rev().find(|it| it.contains(time)) {
        return Some(shown.commit);
    }
    // The clock jumped over the time.
    if time > now {
        return None;
    }
    let before = spans.iter().rposition(|it| it.from <= time)?;
    let after = spans.iter().enumerate().skip(before + 1).min_by_key(|(_, it)| it.from);
    let last = after.map_or(before, |(index, _)| index.saturating_sub(1));
    spans.get(last).map(|it| it.commit)
}

fn spans(records: &[Record], now: Timestamp) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut open: Option<(CommitId, Timestamp)> = None;
    for record in records {
        let (next, from, end) = match record.event {
            Event::Activated { commit, .. } => {
                (Some(commit), record.time, End::Before(record.time))
            }
            Event::ClockSet { until, since } => (None, since, End::At(until)),
            _ => continue,
        };
        if let Some((commit, from)) = open {
            spans.push(Span { commit, from, end });
        }
        open = next.or(open.map(|it| it.0)).map(|commit| (commit, from));
    }
    spans.extend(open.map(|(commit, from)| Span { commit, from, end: End::At(now) }));
    spans
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test damages the file")]
mod tests {
    use std::time::Duration;

    use jiff::SignedDuration;

    use super::super::Journal;
    use super::*;
    use crate::reconcile::clock::Now;
    use crate::reconcile::trigger::Trigger;

    fn commit(number: u16) -> CommitId {
        let mut bytes = [0; 20];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        CommitId::from_bytes(bytes)
    }

    /// A machine whose clock is set now and then, and everything that the clock showed.
    struct Machine {
        journal: Journal,
        started: Now,
        passed: Duration,
        wall: Timestamp,
        live: Option<u16>,
        /// What the clock showed from when until when, and what answered.
        shown: Vec<(Option<u16>, Timestamp, Timestamp)>,
    }

    impl Machine {
        fn new() -> Self {
            let wall: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
            Self {
                journal: Journal::default(),
                started: Now::read(),
                passed: Duration::ZERO,
                wall,
                live: None,
                shown: vec![(None, wall, wall)],
            }
        }

        fn reading(&self) -> Now {
            Now { wall: self.wall, ..self.started.later(self.passed) }
        }

        fn pass(&mut self, seconds: u64) {
            self.passed += Duration::from_secs(seconds);
            self.wall += SignedDuration::from_secs(i64::try_from(seconds).unwrap());
            self.shown.last_mut().unwrap().2 = self.wall;
        }

        fn set_clock(&mut self, seconds: i64) {
            self.wall += SignedDuration::from_secs(seconds);
            self.shown.push((self.live, self.wall, self.wall));
        }

        fn look(&mut self) {
            self.journal.check_clock(self.reading());
        }

        fn activate(&mut self, number: u16) {
            let event = Event::Activated { commit: commit(number), trigger: Trigger::Poll };
            self.journal.append(event, self.reading()).unwrap();
            self.live = Some(number);
            self.shown.push((self.live, self.wall, self.wall));
        }

        fn answer(&self, time: Timestamp) -> Option<CommitId> {
            live_at(self.journal.records(), time, self.wall)
        }
    }

    #[test]
    fn a_clock_that_ran_ahead_for_one_commit_does_not_mislead() {
        let mut machine = Machine::new();
        machine.activate(1);
        let first = machine.wall;
        machine.pass(60);
        machine.set_clock(86_400);
        machine.activate(2);
        let ahead = machine.wall;
        machine.pass(60);
        machine.set_clock(-86_400);
        machine.look();
        machine.pass(30);
        let right_again = machine.wall;
        machine.pass(30);
        machine.activate(3);
        machine.pass(600);
        for (time, number) in [
            (first, 1),
            (first + SignedDuration::from_secs(59), 1),
            (ahead, 2),
            (right_again, 2),
            (machine.wall - SignedDuration::from_secs(600), 3),
            (machine.wall, 3),
        ] {
            assert_eq!(machine.answer(time), Some(commit(number)), "{time}");
        }
        assert_eq!(machine.answer(first - SignedDuration::from_secs(1)), None);
        assert_eq!(machine.answer(ahead + SignedDuration::from_hours(48)), None);
    }

    #[test]
    fn a_clock_set_back_while_no_daemon_ran_is_noticed_at_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let ahead = Now::read().wall + SignedDuration::from_hours(24);
        let record = |time, number| {
            let event = Event::Activated { commit: commit(number), trigger: Trigger::Poll };
            serde_json::to_string(&Record { time, event }).unwrap() + "\n"
        };
        let early = Now::read().wall - SignedDuration::from_hours(1);
        std::fs::write(&path, record(early, 1) + &record(ahead, 2)).unwrap();
        let mut journal = Journal::open(&path, Now::read()).unwrap();
        assert_eq!(journal.live_at(early, Now::read()), Some(commit(1)));
        assert_eq!(journal.live_at(Now::read().wall, Now::read()), Some(commit(2)));
        let event = Event::Activated { commit: commit(3), trigger: Trigger::Poll };
        journal.append(event, Now::read()).unwrap();
        let mut journal = Journal::open(&path, Now::read()).unwrap();
        assert_eq!(journal.live_at(Now::read().wall, Now::read()), Some(commit(3)));
        assert_eq!(journal.live_at(ahead, Now::read()), Some(commit(2)));
    }

    #[test]
    fn whatever_the_clock_does_what_it_showed_last_with_a_time_answers_for_it() {
        for seed in 0..300 {
            let mut chance = fastrand::Rng::with_seed(seed);
            let mut machine = Machine::new();
            let mut number = 0;
            for _ in 0..chance.usize(1..40) {
                match chance.u8(..6) {
                    0 | 1 => {
                        number += 1;
                        machine.activate(number);
                    }
                    2 => {
                        machine.look();
                        let seconds = chance.i64(2..200_000);
                        machine.set_clock(if chance.bool() { seconds } else { -seconds });
                        machine.look();
                    }
                    _ => machine.pass(chance.u64(1..50_000)),
                }
                machine.look();
            }
            for (_, from, to) in &machine.shown {
                let length = to.duration_since(*from).as_secs();
                for _ in 0..8 {
                    let time = *from + SignedDuration::from_secs(chance.i64(0..=length));
                    let last = machine
                        .shown
                        .iter()
                        .rev()
                        .find(|(_, from, to)| (*from..=*to).contains(&time))
                        .and_then(|it| it.0);
                    // Before the first commit nothing answers, unless the clock came back later.
                    if let Some(last) = last {
                        assert_eq!(machine.answer(time), Some(commit(last)), "{seed}: {time}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_clock_that_is_set_between_two_looks_misleads_by_one_interval_at_most() {
        const INTERVAL: i64 = 30;
        for seed in 0..300 {
            let mut chance = fastrand::Rng::with_seed(seed);
            let mut machine = Machine::new();
            machine.activate(0);
            for number in 1..20 {
                for _ in 0..chance.usize(1..20) {
                    machine.look();
                    let before = chance.u64(..=30);
                    machine.pass(before);
                    if chance.u8(..10) == 0 {
                        machine.set_clock(chance.i64(-100_000..100_000));
                    }
                    machine.pass(30 - before);
                }
                machine.activate(number);
            }
            machine.look();
            for (_, from, to) in &machine.shown {
                let length = to.duration_since(*from).as_secs();
                let time = *from + SignedDuration::from_secs(chance.i64(0..=length));
                let near = SignedDuration::from_secs(INTERVAL);
                let possible: Vec<CommitId> = machine
                    .shown
                    .iter()
                    .filter(|(_, from, to)| (*from - near..=*to + near).contains(&time))
                    .filter_map(|it| it.0.map(commit))
                    .collect();
                let answer = machine.answer(time).unwrap();
                assert!(possible.contains(&answer), "{seed}: {time}: {answer}");
            }
        }
    }
}
