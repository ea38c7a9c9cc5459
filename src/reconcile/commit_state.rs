//! What became of a commit: the answer to "why is my change not live?".

use jiff::Timestamp;
use serde::Serialize;

use super::journal::{Event, Journal, Stage};
use crate::model::CommitId;

/// What became of a commit that the mirror has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum CommitState {
    /// It answers.
    Live {
        /// Since when.
        since: Timestamp,
    },
    /// It answered, and does so no more.
    Replaced {
        /// Since when it answered, the last time.
        since: Timestamp,
        /// Until when.
        until: Timestamp,
        /// By what.
        by: CommitId,
    },
    /// It is not valid and never answers.
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
    /// It is the head of the branch and will answer if it is valid.
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

/// What the journal alone does not tell.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) head: Option<CommitId>,
    pub(super) held: Option<CommitId>,
    /// Whether the first commit is an ancestor of the second, or the same.
    pub(super) is_ancestor: &'a dyn Fn(CommitId, CommitId) -> bool,
}

impl CommitState {
    /// Finds out what became of a commit.
    pub(super) fn of(commit: CommitId, journal: &Journal, around: Surroundings<'_>) -> Self {
        let records = journal.records();
        let last = records.iter().enumerate().rev().find(
            |(_, it)| matches!(it.event, Event::Activated { commit: it, .. } if it == commit),
        );
        if let Some((index, record)) = last {
            let next = records.iter().skip(index + 1).find_map(|it| match it.event {
                Event::Activated { commit: by, .. } => Some((it.time, by)),
                _ => None,
            });
            return match next {
                None => Self::Live { since: record.time },
                Some((until, by)) => Self::Replaced { since: record.time, until, by },
            };
        }
        let decided = records.iter().rev().find_map(|it| match it.event {
            Event::Rejected { commit: rejected, stage } if rejected == commit => {
                Some(Self::Rejected { since: it.time, stage })
            }
            Event::Superseded { commit: old, by } if old == commit => {
                Some(Self::Superseded { since: it.time, by })
            }
            _ => None,
        });
        if let Some(decided) = decided {
            return decided;
        }
        let fetched = records.iter().find_map(|it| match it.event {
            Event::Fetched { commit: fetched } if fetched == commit => Some(it.time),
            _ => None,
        });
        if around.held == Some(commit) {
            return Self::Held { since: fetched };
        }
        let seen_last = records.iter().rev().find_map(|it| match it.event {
            Event::Fetched { commit } => Some(commit),
            _ => None,
        });
        // The journal knows of a head a moment before anything else does.
        if around.head == Some(commit) || seen_last == Some(commit) {
            return Self::Pending { since: fetched };
        }
        // The branch jumped over it: the first head that contains it came in its place.
        let heads = records.iter().filter_map(|it| match it.event {
            Event::Fetched { commit } => Some((it.time, commit)),
            _ => None,
        });
        let mut contained =
            heads.filter(|(_, head)| *head != commit && (around.is_ancestor)(commit, *head));
        match contained.next() {
            // The head that this daemon began with brings all of history along.
            Some((since, by)) if records.first().is_some_and(|it| it.time < since) => {
                Self::Superseded { since, by }
            }
            Some(_) => Self::Older,
            None if around.head.is_some_and(|head| (around.is_ancestor)(commit, head)) => {
                Self::Older
            }
            None => Self::Elsewhere,
        }
    }

    /// Says it in one line.
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
            Self::Elsewhere => "fetched, but not on the watched branch".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::reconcile::clock::Now;
    use crate::reconcile::trigger::Trigger;

    fn commit(digit: u8) -> CommitId {
        CommitId::from_bytes([digit; 20])
    }

    fn word(fate: CommitState) -> String {
        let value = serde_json::to_value(fate).unwrap();
        let by = value["by"].as_str().map(|by| by.get(..2).unwrap().to_owned());
        let state = value["state"].as_str().unwrap();
        by.map_or_else(|| state.to_owned(), |by| format!("{state} by {by}"))
    }

    #[test]
    fn every_commit_has_one_fate() {
        let mut journal = Journal::default();
        let mut now = Now::read();
        let activated = |digit| Event::Activated { commit: commit(digit), trigger: Trigger::Poll };
        for event in [
            Event::Fetched { commit: commit(2) },
            activated(2),
            Event::Fetched { commit: commit(4) },
            Event::Rejected { commit: commit(4), stage: Stage::Check },
            Event::Fetched { commit: commit(6) },
            Event::Superseded { commit: commit(6), by: commit(7) },
            Event::Fetched { commit: commit(7) },
            activated(7),
            Event::Fetched { commit: commit(8) },
            Event::Fetched { commit: commit(9) },
        ] {
            now = now.later(Duration::from_secs(1));
            journal.append(event, now).unwrap();
        }
        // The history is a line of commits from 1 to 9; 99 lies beside it.
        let is_ancestor = |old: CommitId, new: CommitId| {
            old.as_bytes()[0] <= new.as_bytes()[0] && new.as_bytes()[0] < 90
        };
        let around = Surroundings {
            head: Some(commit(9)),
            held: Some(commit(8)),
            is_ancestor: &is_ancestor,
        };
        for (digit, expected) in [
            (1, "older"),
            (2, "replaced by 07"),
            (3, "superseded by 04"),
            (4, "rejected"),
            (5, "superseded by 06"),
            (6, "superseded by 07"),
            (7, "live"),
            (8, "held"),
            (9, "pending"),
            (99, "elsewhere"),
        ] {
            assert_eq!(word(CommitState::of(commit(digit), &journal, around)), expected, "{digit}");
        }
        // A head that only the journal knows of so far.
        let before = Surroundings { head: Some(commit(7)), ..around };
        assert_eq!(word(CommitState::of(commit(9), &journal, before)), "pending");
    }
}
