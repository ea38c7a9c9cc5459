//! What the journal tells about commits.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};

use super::Journal;
use super::event::{Event, PushedWrite, Record, Stage};
use super::timeline;
use crate::model::CommitId;
use crate::reconcile::attribution::Pin;
use crate::reconcile::clock::Now;
use crate::reconcile::trigger::Trigger;

/// How many writes are known again when they are sent again.
const REPEATABLE: usize = 1_000;

impl Journal {
    /// Returns the commit that was made live last.
    pub fn live(&self) -> Option<CommitId> {
        self.activations().next_back().map(|(_, commit)| commit)
    }

    /// Returns the commit of the branch that was made live last, a pinned one aside.
    pub fn followed(&self) -> Option<CommitId> {
        let (mut pinned, mut followed) = (None, None);
        for record in &self.records {
            match record.event {
                Event::Pinned { commit, .. } => pinned = Some(commit),
                Event::Resumed { .. } => pinned = None,
                Event::Activated { commit, .. } if pinned != Some(commit) => {
                    followed = Some(commit);
                }
                _ => {}
            }
        }
        followed
    }

    /// Returns where a commit was rejected, if it was and nothing has come of it since.
    pub(in crate::reconcile) fn rejected_at(&self, commit: CommitId) -> Option<Stage> {
        match self.last_outcome(commit) {
            Some(Event::Rejected { stage, .. }) => Some(*stage),
            _ => None,
        }
    }

    /// Returns whether a commit was held, and nothing has come of it since.
    pub(in crate::reconcile) fn is_held(&self, commit: CommitId) -> bool {
        matches!(self.last_outcome(commit), Some(Event::Held { .. }))
    }

    /// Returns what came last of a commit that was to answer.
    fn last_outcome(&self, commit: CommitId) -> Option<&Event> {
        let is_outcome = |event: &&Event| match event {
            Event::Activated { commit: other, .. }
            | Event::Rejected { commit: other, .. }
            | Event::Held { commit: other }
            | Event::Superseded { commit: other, .. } => *other == commit,
            _ => false,
        };
        self.records.iter().rev().map(|it| &it.event).find(is_outcome)
    }

    /// Returns the commit that was live at a time: the later one if the clock showed the time twice.
    pub(in crate::reconcile) fn live_at(&mut self, time: Timestamp, now: Now) -> Option<CommitId> {
        self.check_clock(now);
        timeline::live_at(&self.records, time, now.wall)
    }

    /// Returns the last pin or resume.
    pub fn last_decision(&self) -> Option<&Record> {
        self.records.iter().rev().find(|it| it.event.is_of_pins())
    }

    /// Returns the pinned commit.
    pub fn pinned(&self) -> Option<Pin> {
        let last = self.last_decision()?;
        match &last.event {
            Event::Pinned { commit, by } => {
                Some(Pin { commit: *commit, since: last.time, by: by.clone() })
            }
            _ => None,
        }
    }

    /// Returns the head that an operator accepts although it does not descend from the live commit.
    ///
    /// It is accepted once: as soon as a commit is live after the resume, the branch is followed, and a
    /// return to that head is a rewrite like any other.
    pub fn accepted(&self) -> Option<CommitId> {
        self.records.iter().rev().find_map(|it| match it.event {
            Event::Resumed { accepts, .. } => Some(accepts),
            Event::Pinned { .. } | Event::Activated { .. } => Some(None),
            _ => None,
        })?
    }

    /// Returns the head at which an operator resumed, as long as no commit was made live since; none if it
    /// was live then.
    pub fn resumed_at(&self) -> Option<CommitId> {
        self.accepted().filter(|it| self.live() != Some(*it))
    }

    /// Returns the writes that were to be pushed not long ago and whose clients have no answer, the
    /// newest first, among the newest [`REPEATABLE`] writes.
    pub(in crate::reconcile) fn unanswered(
        &mut self,
        within: SignedDuration,
        now: Now,
    ) -> Vec<&PushedWrite> {
        self.check_clock(now);
        self.unanswered_at(now.wall, within)
    }

    pub(super) fn unanswered_at(
        &self,
        now: Timestamp,
        within: SignedDuration,
    ) -> Vec<&PushedWrite> {
        let since = now.saturating_sub(within).unwrap_or(Timestamp::MIN);
        let mut answered: HashSet<CommitId> = HashSet::new();
        let mut found = Vec::new();
        let mut seen = 0;
        // How far the clock was set back since a record. It shows less now than it did then.
        let mut ahead = SignedDuration::ZERO;
        for record in self.records.iter().rev() {
            match &record.event {
                Event::ClockSet { until, since: from } => {
                    ahead = ahead.saturating_add(until.duration_since(*from));
                }
                Event::Answered { commits } => answered.extend(commits),
                Event::Pushing { writes } => {
                    seen += writes.len();
                    let is_new = record.time.saturating_sub(ahead).is_ok_and(|it| it >= since);
                    let untold = writes.iter().rev().filter(|it| !answered.contains(&it.commit));
                    found.extend(untold.filter(|_| is_new));
                }
                _ => {}
            }
            if seen >= REPEATABLE {
                break;
            }
        }
        found
    }

    /// Returns since when which commits were live, oldest first.
    pub fn activations(&self) -> impl DoubleEndedIterator<Item = (Timestamp, CommitId)> {
        self.records.iter().filter_map(|it| match it.event {
            Event::Activated { commit, .. } => Some((it.time, commit)),
            _ => None,
        })
    }

    /// Returns whether a commit was verified.
    pub(in crate::reconcile) fn has_verified(&self, commit: CommitId) -> bool {
        self.records()
            .iter()
            .rev()
            .any(|it| matches!(it.event, Event::Verified { commit: it, .. } if it == commit))
    }

    /// Returns the commits whose history was verified, newest first.
    pub(in crate::reconcile) fn verified(&self, most: usize) -> Vec<CommitId> {
        let all = self.records().iter().rev().filter_map(|it| match it.event {
            Event::Verified { commit, .. } => Some(commit),
            _ => None,
        });
        all.take(most).collect()
    }

    /// Returns when the branch moved or was pushed to, and so was seen, oldest first.
    pub(in crate::reconcile) fn contacts(&self) -> Vec<Timestamp> {
        let is_contact = |event: &Event| match event {
            Event::Fetched { .. } => true,
            // A commit of the mirror may be made live without the remote.
            Event::Activated { trigger, .. } => *trigger == Trigger::Write,
            _ => false,
        };
        self.records().iter().filter(|it| is_contact(&it.event)).map(|it| it.time).collect()
    }

    /// Returns whether a commit was the head of the branch.
    pub(in crate::reconcile) fn was_seen(&self, commit: CommitId) -> bool {
        self.records().iter().rev().any(|it| it.event.head() == Some(commit))
    }

    /// Returns the head that was seen last.
    pub(in crate::reconcile) fn head(&self) -> Option<CommitId> {
        self.records().iter().rev().find_map(|it| it.event.head())
    }

    /// Returns which heads were seen when, oldest first.
    pub(in crate::reconcile) fn seen(&self) -> Vec<(Timestamp, CommitId)> {
        self.records().iter().filter_map(|it| Some((it.time, it.event.head()?))).collect()
    }
}
