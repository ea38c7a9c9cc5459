//! The state of a commit: the answer to "why is my change not live?".

use jiff::Timestamp;
use serde::Serialize;

use super::journal::{Event, Journal, Record, Stage};
use crate::model::CommitId;

/// The state of a commit that the mirror has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum CommitState {
    /// It is live.
    Live {
        /// Since when.
        since: Timestamp,
    },
    /// It was live, and another is now.
    Replaced {
        /// Since when it was live, the last time.
        since: Timestamp,
        /// Until when.
        until: Timestamp,
        /// By what.
        by: CommitId,
    },
    /// It was rejected: it is not valid, or its signature is refused, or it cannot be read.
    Rejected {
        /// When it was rejected.
        since: Timestamp,
        /// Where it failed.
        stage: Stage,
    },
    /// A newer commit of the branch came with it or before it was built.
    Superseded {
        /// When.
        since: Timestamp,
        /// The newer one.
        by: CommitId,
    },
    /// It is the head of the branch and will be live if it is valid.
    Pending {
        /// Since when it is known.
        since: Option<Timestamp>,
    },
    /// It is valid, and waits for an operator or for the remote.
    Held {
        /// Since when it is known.
        since: Option<Timestamp>,
    },
    /// The branch had it before this daemon followed it.
    Older,
    /// The mirror has it, the branch does not: such as the head of a pull request.
    Elsewhere,
}

/// What the journal says of commits, copied from it: reading history beside it takes long, and fetches, pins and
/// activations wait for the journal.
#[derive(Debug, Default)]
pub(super) struct CommitRecords {
    /// When the journal begins.
    began: Option<Timestamp>,
    records: Vec<Record>,
}

impl CommitRecords {
    pub(super) fn of(journal: &Journal) -> Self {
        let is_about_commits = |it: &&Record| {
            matches!(
                it.event,
                Event::Fetched { .. }
                    | Event::Activated { .. }
                    | Event::Rejected { .. }
                    | Event::Superseded { .. }
                    | Event::Held { .. }
            )
        };
        let all = journal.records();
        Self {
            began: all.first().map(|it| it.time),
            records: all.iter().filter(is_about_commits).cloned().collect(),
        }
    }

    /// Returns when the branch was at which heads, oldest first.
    fn fetched(&self) -> impl DoubleEndedIterator<Item = (Timestamp, CommitId)> {
        self.records.iter().filter_map(|it| match it.event {
            Event::Fetched { commit } => Some((it.time, commit)),
            _ => None,
        })
    }

    /// Returns the heads that the branch was at, oldest first.
    pub(super) fn heads(&self) -> Vec<CommitId> {
        self.fetched().map(|(_, head)| head).collect()
    }
}

/// What the journal does not have.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) head: Option<CommitId>,
    pub(super) held: Option<CommitId>,
    /// The commit that answered before the journal was read: the journal knows of the next one first.
    pub(super) answering: Option<CommitId>,
    /// Whether the first commit is an ancestor of the second, or the same.
    pub(super) is_ancestor: &'a dyn Fn(CommitId, CommitId) -> bool,
    /// The place of the first of [`CommitRecords::heads`] that contains a commit and is another one.
    pub(super) first_above: &'a dyn Fn(CommitId) -> Option<usize>,
}

impl CommitState {
    /// Returns the state of a commit.
    pub(super) fn of(commit: CommitId, journal: &CommitRecords, around: Surroundings<'_>) -> Self {
        let records = &journal.records;
        let live = Self::live(commit, records);
        let decided = || {
            // What is held now is valid: it could not be read before, or was signed by a key that was added.
            let is_held = around.held == Some(commit);
            Self::decided(commit, records).filter(|_| !is_held)
        };
        let is_answering = around.answering == Some(commit);
        match live {
            Some(Self::Live { since }) if !is_answering => {
                return Self::Pending { since: Some(since) };
            }
            Some(Self::Replaced { since, .. }) if is_answering => return Self::Live { since },
            _ => {}
        }
        if let Some(decided) = live.or_else(decided) {
            return decided.followed(commit, records, &around);
        }
        let fetched = journal.fetched().find(|(_, head)| *head == commit).map(|(time, _)| time);
        if around.held == Some(commit) {
            return Self::Held { since: fetched };
        }
        let seen_last = journal.fetched().next_back().map(|(_, head)| head);
        // The journal knows of a head a moment before the state does.
        if around.head == Some(commit) || seen_last == Some(commit) {
            return Self::Pending { since: fetched };
        }
        // The branch jumped over it: the first head that contains it came in its place.
        let contains = |head: CommitId| (around.is_ancestor)(commit, head);
        match (around.first_above)(commit).and_then(|it| journal.fetched().nth(it)) {
            // The head that this daemon began with brings all of history along.
            Some((since, by)) if journal.began.is_some_and(|it| it < since) => {
                Self::Superseded { since, by }.followed(commit, records, &around)
            }
            Some(_) => Self::Older,
            None if around.head.is_some_and(contains) => Self::Older,
            None => Self::Elsewhere,
        }
    }

    /// Where what overtook a commit was never live, the commit that answers is what overtook it, if it contains it.
    fn followed(self, commit: CommitId, records: &[Record], around: &Surroundings<'_>) -> Self {
        match (self, around.answering) {
            (Self::Superseded { since, by }, Some(answering))
                if Self::live(by, records).is_none() && (around.is_ancestor)(commit, answering) =>
            {
                Self::Superseded { since, by: answering }
            }
            (state, _) => state,
        }
    }

    /// Returns the state of a commit that is live, or was.
    fn live(commit: CommitId, records: &[Record]) -> Option<Self> {
        let mut activations = records.iter().rev().filter_map(|it| match it.event {
            Event::Activated { commit, .. } => Some((it.time, commit)),
            _ => None,
        });
        let mut next = None;
        loop {
            let (since, activated) = activations.next()?;
            if activated == commit {
                return Some(match next {
                    None => Self::Live { since },
                    Some((until, by)) => Self::Replaced { since, until, by },
                });
            }
            next = Some((since, activated));
        }
    }

    /// Returns the state of a commit that the builder decided about. A commit that is rejected again after each restart
    /// is so since the first time.
    fn decided(commit: CommitId, records: &[Record]) -> Option<Self> {
        let mut decisions = records.iter().rev().filter_map(|it| match it.event {
            Event::Rejected { commit: rejected, stage } if rejected == commit => {
                Some(Some(Self::Rejected { since: it.time, stage }))
            }
            Event::Superseded { commit: old, by } if old == commit => {
                Some(Some(Self::Superseded { since: it.time, by }))
            }
            // It is valid after all.
            Event::Held { commit: held } if held == commit => Some(None),
            _ => None,
        });
        let last = decisions.next()??;
        let Self::Rejected { stage: last_stage, .. } = last else { return Some(last) };
        let is_same =
            |it: &Self| matches!(it, Self::Rejected { stage, .. } if *stage == last_stage);
        Some(decisions.map_while(|it| it.filter(is_same)).last().unwrap_or(last))
    }

    /// Returns a sentence about it.
    pub fn in_words(&self) -> String {
        match self {
            Self::Live { since } => format!("live since {since}"),
            Self::Replaced { since, until, by } => {
                format!("was live from {since} until {until}, then replaced by {by}")
            }
            Self::Rejected { since, stage } => {
                let what = match stage {
                    Stage::Verify => "its signature is not accepted",
                    Stage::Load => "it cannot be read",
                    Stage::Check => "it is not valid",
                };
                format!("rejected at {since}: {what}")
            }
            Self::Superseded { since, by } => {
                format!("superseded at {since} by {by}: the branch went on before it was built")
            }
            Self::Pending { since: Some(since) } => format!("fetched at {since}, being built"),
            Self::Pending { since: None } => "fetched, being built".to_owned(),
            Self::Held { .. } => "valid, but held: see the conditions of the status".to_owned(),
            Self::Older => "in the history from before this daemon followed the branch".to_owned(),
            Self::Elsewhere => "in the repository, but not on the followed branch".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::reconcile::clock::Now;
    use crate::reconcile::trigger::Trigger;

    fn commit(digit: u8) -> CommitId {
        CommitId::from_bytes([digit; 20])
    }

    fn first_above(
        journal: &CommitRecords,
        commit: CommitId,
        is_ancestor: impl Fn(CommitId, CommitId) -> bool,
    ) -> Option<usize> {
        journal.heads().into_iter().position(|it| it != commit && is_ancestor(commit, it))
    }

    fn word(state: CommitState) -> String {
        let value = serde_json::to_value(state).unwrap();
        let by = value["by"].as_str().map(|by| by.get(..2).unwrap().to_owned());
        let name = value["state"].as_str().unwrap();
        by.map_or_else(|| name.to_owned(), |by| format!("{name} by {by}"))
    }

    #[test]
    fn every_commit_has_one_state() {
        let mut journal = Journal::default();
        let mut now = Now::read();
        let activated = |digit| Event::Activated { commit: commit(digit), trigger: Trigger::Poll };
        for event in [
            Event::Fetched { commit: commit(2) },
            activated(2),
            Event::Fetched { commit: commit(4) },
            Event::Rejected { commit: commit(4), stage: Stage::Check },
            Event::Rejected { commit: commit(4), stage: Stage::Check },
            Event::Fetched { commit: commit(6) },
            Event::Superseded { commit: commit(6), by: commit(7) },
            Event::Fetched { commit: commit(7) },
            activated(7),
            Event::Fetched { commit: commit(8) },
            Event::Rejected { commit: commit(8), stage: Stage::Load },
            Event::Fetched { commit: commit(9) },
        ] {
            now = now.later(Duration::from_secs(1));
            journal.append(event, now).unwrap();
        }
        let journal = CommitRecords::of(&journal);
        // The history is a line of commits from 1 to 9; 99 lies beside it.
        let is_ancestor = |old: CommitId, new: CommitId| {
            old.as_bytes()[0] <= new.as_bytes()[0] && new.as_bytes()[0] < 90
        };
        let around = Surroundings {
            head: Some(commit(9)),
            held: Some(commit(8)),
            answering: Some(commit(7)),
            is_ancestor: &is_ancestor,
            first_above: &|commit| first_above(&journal, commit, is_ancestor),
        };
        for (digit, expected) in [
            (1, "older"),
            (2, "replaced by 07"),
            // The 4 was never live.
            (3, "superseded by 07"),
            (4, "rejected"),
            (5, "superseded by 07"),
            (6, "superseded by 07"),
            (7, "live"),
            (8, "held"),
            (9, "pending"),
            (99, "elsewhere"),
        ] {
            assert_eq!(word(CommitState::of(commit(digit), &journal, around)), expected, "{digit}");
        }
        let rejected = CommitState::of(commit(4), &journal, around);
        let first = journal.records[3].time;
        assert_eq!(rejected, CommitState::Rejected { since: first, stage: Stage::Check });
        // A head that only the journal knows of so far.
        let before = Surroundings { head: Some(commit(7)), ..around };
        assert_eq!(word(CommitState::of(commit(9), &journal, before)), "pending");
        // One that the journal has as live, while the one before still answers.
        let swapping = Surroundings { answering: Some(commit(2)), ..around };
        for (digit, expected) in [(2, "live"), (7, "pending"), (4, "rejected")] {
            assert_eq!(word(CommitState::of(commit(digit), &journal, swapping)), expected);
        }
    }

    /// A branch that is followed for long was at many heads, and each question may walk all of history.
    #[test]
    fn history_is_asked_as_often_whatever_the_number_of_heads() {
        for heads in [1, 200] {
            let mut journal = Journal::default();
            for digit in 0..heads {
                let fetched = Event::Fetched { commit: commit(digit) };
                journal.append(fetched, Now::read()).unwrap();
            }
            let (journal, asked) = (CommitRecords::of(&journal), Cell::new(0));
            let around = Surroundings {
                head: Some(commit(heads - 1)),
                held: None,
                answering: None,
                is_ancestor: &|_, _| {
                    asked.set(asked.get() + 1);
                    false
                },
                first_above: &|_| {
                    asked.set(asked.get() + 1);
                    None
                },
            };
            assert_eq!(word(CommitState::of(commit(250), &journal, around)), "elsewhere");
            assert_eq!(asked.get(), 2);
        }
    }

    #[test]
    fn a_commit_that_was_held_is_not_rejected_any_more() {
        let mut journal = Journal::default();
        for event in [
            Event::Fetched { commit: commit(1) },
            Event::Rejected { commit: commit(1), stage: Stage::Verify },
            Event::Held { commit: commit(1) },
            Event::Fetched { commit: commit(2) },
        ] {
            journal.append(event, Now::read()).unwrap();
        }
        let journal = CommitRecords::of(&journal);
        let is_ancestor = |old: CommitId, new: CommitId| old.as_bytes() <= new.as_bytes();
        let around = Surroundings {
            head: Some(commit(2)),
            held: Some(commit(2)),
            answering: None,
            is_ancestor: &is_ancestor,
            first_above: &|commit| first_above(&journal, commit, is_ancestor),
        };
        assert_eq!(word(CommitState::of(commit(1), &journal, around)), "superseded by 02");
    }
}
