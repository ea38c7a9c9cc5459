//! Checking heads of pull requests, one at a time, in a thread of its own.
//!
//! Each head is checked once. The journal knows of a check before it begins and how it ended, so a
//! restart repeats the verdict without another check, and a head that ends the daemon with it (as where
//! the system ends a whole container when memory runs out) is given up after a few tries.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::commit_status::{StatusQueue, VALIDATE, Verdict};
use super::head_check::{CheckFailure, Head, HeadVerdict};
use super::journal::{Event, Journal};
use super::outcome::BuildError;
use super::recorder::Recorder;
use super::schedule::backoff;
use super::settings::Reporting;
use super::snapshot_store::SnapshotStore;
use super::source::Source;
use crate::git::{Mirror, Repository};
use crate::model::CommitId;
use crate::telemetry::Metrics;

/// After how many checks that ended with the daemon a head is given up.
const TRIES: u32 = 3;

/// Checks heads of pull requests.
#[derive(Debug)]
pub(super) struct PullRequestChecker {
    pub(super) reporting: Arc<Reporting>,
    pub(super) source: Arc<Source>,
    pub(super) store: Arc<SnapshotStore>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) statuses: Arc<StatusQueue>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) requests: Requests,
}

/// Whether heads are to be checked.
#[derive(Debug, Default)]
pub(super) struct Requests {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    requested: bool,
    stopping: bool,
}

/// What is known of heads.
#[derive(Debug, Default)]
struct CheckedHeads {
    /// Those that need no check: the forge has their status, or the branch has the commit.
    done: HashSet<CommitId>,
    verdicts: HashMap<CommitId, Verdict>,
    /// How many checks began and did not end.
    began: HashMap<CommitId, u32>,
    /// How many processes in a row could not be started.
    not_started: u32,
}

/// Why there is no verdict yet.
#[derive(Debug)]
enum Unchecked {
    /// The daemon stops, or the live commit goes first.
    Stopped,
    /// The process cannot be started: the machine lacks something, and the head is not to blame.
    NotStarted,
}

impl Requests {
    /// Waits for a request, or for the pause before the next try; returns whether to go on. Blocking.
    fn wait(&self, pause: Option<Duration>) -> bool {
        let mut state = self.state.lock();
        match pause {
            None => self.changed.wait_while(&mut state, |it| !it.requested && !it.stopping),
            Some(pause) => {
                self.changed.wait_while_for(&mut state, |it| !it.stopping, pause);
            }
        }
        state.requested = false;
        !state.stopping
    }
}

impl PullRequestChecker {
    /// Requests a check of the heads, if the mirror has any.
    pub(super) fn request(&self) {
        if self.source.mirror().is_some_and(Mirror::fetches_more) {
            self.requests.state.lock().requested = true;
            self.requests.changed.notify_all();
        }
    }

    /// Ends [`PullRequestChecker::run`], and the check that runs.
    pub(super) fn stop(&self) {
        self.requests.state.lock().stopping = true;
        self.requests.changed.notify_all();
    }

    /// Checks heads whenever it is requested, until it is stopped.
    pub(super) fn run(&self) {
        let mut known = CheckedHeads::of(&self.recorder.journal());
        let mut pause = None;
        while self.requests.wait(pause) {
            pause = match self.check_heads(&mut known) {
                Ok(()) | Err(Unchecked::Stopped) => None,
                Err(Unchecked::NotStarted) => {
                    known.not_started += 1;
                    Some(backoff(known.not_started - 1))
                }
            };
        }
    }

    fn check_heads(&self, known: &mut CheckedHeads) -> Result<(), Unchecked> {
        let Some(mirror) = self.source.mirror() else { return Ok(()) };
        let Ok(repository) = self.source.repository() else { return Ok(()) };
        let evicted = self.statuses.take_evicted_heads();
        if !evicted.is_empty() {
            // Their verdicts are reported again, without another check; those of others have been posted or refused.
            known.report_again(&evicted, CheckedHeads::of(&self.recorder.journal()));
        }
        let heads = mirror.heads_of_more(&|it| known.done.contains(&it)).unwrap_or_default();
        known.done.extend(heads.iter().filter(|(_, merged)| *merged).map(|(head, _)| *head));
        for (head, _) in heads.into_iter().filter(|(_, merged)| !merged) {
            let Verdict { state, description } = self.verdict(&repository, head, known)?;
            known.done.insert(head);
            self.statuses.push_head(self.reporting.status(head, VALIDATE, state, description));
            // The refs may have moved: the newest head is the next one.
            if self.requests.state.lock().requested {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether a head is valid.
    fn verdict(
        &self,
        repository: &Repository,
        head: CommitId,
        known: &mut CheckedHeads,
    ) -> Result<Verdict, Unchecked> {
        if let Some(verdict) = known.verdicts.remove(&head) {
            return Ok(verdict);
        }
        if let Some(outcome) = self.store.cached(head) {
            return Ok(Verdict::of(&outcome));
        }
        let verdict = if known.began.get(&head).is_some_and(|it| *it >= TRIES) {
            Verdict::unchecked(&format!("the daemon ended during {TRIES} checks of it"))
        } else {
            self.recorder.note(Event::HeadCheckBegan { commit: head });
            match self.check_apart(repository, head) {
                Ok(verdict) => verdict,
                Err(unchecked) => {
                    self.recorder.note(Event::HeadCheckStopped { commit: head });
                    return Err(unchecked);
                }
            }
        };
        known.not_started = 0;
        let Verdict { state, description } = verdict.clone();
        self.recorder.note(Event::HeadChecked { commit: head, state, description });
        Ok(verdict)
    }

    /// Checks a head in a process of its own.
    fn check_apart(&self, repository: &Repository, head: CommitId) -> Result<Verdict, Unchecked> {
        let budget = match self.store.budget_of_head(repository, head) {
            Ok(budget) => budget,
            Err(error @ BuildError::Unreadable { .. }) => return Ok(Verdict::unchecked(&error)),
            Err(BuildError::Busy | BuildError::Cancelled(_)) => return Err(Unchecked::Stopped),
        };
        let checked = self.reporting.head_checker.check(
            Head {
                mirror: repository.directory(),
                commit: head,
                directory: self.source.path(),
                budget: &budget,
            },
            &|| self.requests.state.lock().stopping,
        );
        let (result, verdict) = match checked {
            Ok(HeadVerdict::Valid { groups }) => ("valid", Verdict::valid(groups)),
            Ok(HeadVerdict::Invalid { errors, summary }) => {
                tracing::info!(commit = %head, errors, first = summary, "the head of a pull request is not valid");
                ("invalid", Verdict::invalid(summary))
            }
            Ok(HeadVerdict::Unreadable { reason }) => {
                tracing::warn!(commit = %head, reason, "the head of a pull request cannot be read");
                ("failed", Verdict::unchecked(&reason))
            }
            Err(CheckFailure::Stopping) => return Err(Unchecked::Stopped),
            Err(error @ CheckFailure::NotStarted(_)) => {
                tracing::error!(commit = %head, %error, "the check of a pull request's head is tried again");
                self.metrics.count_head_check("not-started");
                return Err(Unchecked::NotStarted);
            }
            Err(failure) => {
                tracing::error!(commit = %head, error = %failure, "the head of a pull request could not be checked");
                ("failed", Verdict::unchecked(&failure))
            }
        };
        self.metrics.count_head_check(result);
        Ok(verdict)
    }
}

impl CheckedHeads {
    /// Has some heads reported again, by what the journal has of them.
    fn report_again(&mut self, heads: &HashSet<CommitId>, journal: Self) {
        self.done.retain(|it| !heads.contains(it));
        let verdicts = journal.verdicts.into_iter();
        self.verdicts.extend(verdicts.filter(|(it, _)| heads.contains(it)));
    }

    fn of(journal: &Journal) -> Self {
        let mut known = Self::default();
        for record in journal.records() {
            match &record.event {
                Event::Reported { commit, context, .. } if context == VALIDATE => {
                    known.done.insert(*commit);
                }
                Event::HeadCheckBegan { commit } => {
                    *known.began.entry(*commit).or_default() += 1;
                }
                Event::HeadCheckStopped { commit } => {
                    known.began.remove(commit);
                }
                Event::HeadChecked { commit, state, description } => {
                    known.began.remove(commit);
                    known.verdicts.insert(
                        *commit,
                        Verdict { state: *state, description: description.clone() },
                    );
                }
                _ => {}
            }
        }
        known.verdicts.retain(|it, _| !known.done.contains(it));
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::StatusState;
    use crate::reconcile::clock::Now;

    #[test]
    fn the_journal_knows_what_came_of_checks() {
        let commit = |digit| CommitId::from_bytes([digit; 20]);
        let mut journal = Journal::default();
        let state = StatusState::Error;
        let checked = |digit| Event::HeadChecked {
            commit: commit(digit),
            state,
            description: "could not be checked: x".to_owned(),
        };
        let began = |digit| Event::HeadCheckBegan { commit: commit(digit) };
        let context = VALIDATE.to_owned();
        for event in [
            began(1),
            checked(1),
            Event::Reported { commit: commit(1), context, state, live: None },
            began(2),
            checked(2),
            began(3),
            began(3),
            began(4),
            Event::HeadCheckStopped { commit: commit(4) },
        ] {
            journal.append(event, Now::read()).unwrap();
        }
        let known = CheckedHeads::of(&journal);
        assert_eq!(known.done, HashSet::from([commit(1)]));
        let verdict = Verdict { state, description: "could not be checked: x".to_owned() };
        assert_eq!(known.verdicts, HashMap::from([(commit(2), verdict)]));
        assert_eq!(known.began, HashMap::from([(commit(3), 2)]));
    }
}
