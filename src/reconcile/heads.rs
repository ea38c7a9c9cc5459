//! Checking heads of pull requests, one at a time, in a thread of its own.
//!
//! Each head is checked once. The journal knows of a check before it begins and what came of it, so a
//! restart repeats the verdict without another check, and a head that ends the daemon with it (as where
//! the system ends a whole container when memory runs out) is given up after a few tries.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::build::{BuildError, Outcome};
use super::commit_status::{Reporting, VALIDATE, backoff, in_short};
use super::controller::Controller;
use super::head_check::{CheckFailure, Head, HeadVerdict};
use super::journal::{Event, Journal};
use super::settings::Target;
use crate::forge::StatusState;
use crate::git::Repository;
use crate::model::CommitId;

/// After how many checks that ended with the daemon a head is given up.
const TRIES: u32 = 3;

/// Whether heads are to be checked.
#[derive(Debug, Default)]
pub(super) struct HeadChecks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    wanted: bool,
    stopping: bool,
}

/// What is known of heads.
#[derive(Debug, Default)]
struct Known {
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

type Verdict = (StatusState, String);

impl HeadChecks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.state().stopping
    }

    pub(super) fn stop(&self) {
        self.state().stopping = true;
        self.changed.notify_all();
    }
}

impl Controller {
    /// Has the heads of pull requests checked, if there are any and a forge is to be told.
    pub(super) fn request_head_checks(&self) {
        let fetches = match &self.settings.target {
            Target::Remote(mirror) => mirror.fetches_more(),
            Target::Local(_) => false,
        };
        if fetches && self.settings.reporting.is_some() {
            self.head_checks.state().wanted = true;
            self.head_checks.changed.notify_all();
        }
    }

    /// Checks heads of pull requests until the controller is stopped.
    pub(super) fn keep_checking_heads(&self) {
        let Some(reporting) = &self.settings.reporting else { return };
        let mut known = Known::of(&self.journal());
        let mut pause = None;
        loop {
            let state = self.head_checks.state();
            let changed = &self.head_checks.changed;
            let mut state = match pause {
                None => changed
                    .wait_while(state, |it| !it.wanted && !it.stopping)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(pause) => {
                    let waited = changed.wait_timeout_while(state, pause, |it| !it.stopping);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            if state.stopping {
                return;
            }
            state.wanted = false;
            drop(state);
            pause = match self.check_heads(reporting, &mut known) {
                Ok(()) | Err(Unchecked::Stopped) => None,
                Err(Unchecked::NotStarted) => {
                    known.not_started += 1;
                    Some(backoff(known.not_started - 1))
                }
            };
        }
    }

    fn check_heads(&self, reporting: &Reporting, known: &mut Known) -> Result<(), Unchecked> {
        let Target::Remote(mirror) = &self.settings.target else { return Ok(()) };
        let Ok(repository) = self.repository() else { return Ok(()) };
        let heads = mirror.heads_of_more(&|it| known.done.contains(&it)).unwrap_or_default();
        known.done.extend(heads.iter().filter(|(_, merged)| *merged).map(|(head, _)| *head));
        for (head, _) in heads.into_iter().filter(|(_, merged)| !merged) {
            let (state, description) = self.verdict_of(reporting, &repository, head, known)?;
            known.done.insert(head);
            self.report_head(reporting.status(head, VALIDATE, state, description));
            // The refs may have moved: the newest head is the next one.
            if self.head_checks.state().wanted {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether a head is valid.
    fn verdict_of(
        &self,
        reporting: &Reporting,
        repository: &Repository,
        head: CommitId,
        known: &mut Known,
    ) -> Result<Verdict, Unchecked> {
        if let Some(verdict) = known.verdicts.remove(&head) {
            return Ok(verdict);
        }
        if let Some(outcome) = self.outcome_if_known(head) {
            return Ok(verdict_in_words(&outcome));
        }
        let verdict = if known.began.get(&head).is_some_and(|it| *it >= TRIES) {
            unchecked(&format!("the daemon ended during {TRIES} checks of it"))
        } else {
            self.note(Event::HeadCheckBegan { commit: head });
            match self.check_apart(reporting, repository, head) {
                Ok(verdict) => verdict,
                Err(unchecked) => {
                    self.note(Event::HeadCheckStopped { commit: head });
                    return Err(unchecked);
                }
            }
        };
        known.not_started = 0;
        let (state, description) = verdict.clone();
        self.note(Event::HeadChecked { commit: head, state, description });
        Ok(verdict)
    }

    /// Checks a head in a process of its own.
    fn check_apart(
        &self,
        reporting: &Reporting,
        repository: &Repository,
        head: CommitId,
    ) -> Result<Verdict, Unchecked> {
        let budget = match self.budget_of_head(repository, head) {
            Ok(budget) => budget,
            Err(error @ BuildError::Unreadable { .. }) => return Ok(unchecked(&error)),
            Err(BuildError::Busy | BuildError::Cancelled(_)) => return Err(Unchecked::Stopped),
        };
        let checked = reporting.head_checker.check(
            Head {
                mirror: repository.directory(),
                commit: head,
                directory: self.path(),
                budget: &budget,
            },
            &|| self.head_checks.is_stopping(),
        );
        let (result, verdict) = match checked {
            Ok(HeadVerdict::Valid { groups }) => ("valid", valid(groups)),
            Ok(HeadVerdict::Invalid { errors, summary }) => {
                tracing::info!(commit = %head, errors, first = summary, "the head of a pull request is not valid");
                ("invalid", (StatusState::Failure, summary))
            }
            Ok(HeadVerdict::Unreadable { reason }) => {
                tracing::warn!(commit = %head, reason, "the head of a pull request cannot be read");
                ("failed", unchecked(&reason))
            }
            Err(CheckFailure::Stopping) => return Err(Unchecked::Stopped),
            Err(error @ CheckFailure::NotStarted(_)) => {
                tracing::error!(commit = %head, %error, "the check of a pull request's head is tried again");
                self.metrics.count_head_check("not-started");
                return Err(Unchecked::NotStarted);
            }
            Err(failure) => {
                tracing::error!(commit = %head, error = %failure, "the head of a pull request could not be checked");
                ("failed", unchecked(&failure))
            }
        };
        self.metrics.count_head_check(result);
        Ok(verdict)
    }
}

impl Known {
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
                    known.verdicts.insert(*commit, (*state, description.clone()));
                }
                _ => {}
            }
        }
        known.verdicts.retain(|it, _| !known.done.contains(it));
        known
    }
}

/// Returns an outcome in the words of a status.
pub(super) fn verdict_in_words(outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Valid(snapshot) => valid(snapshot.estate.hierarchy.len()),
        Outcome::Rejected(rejected) => (StatusState::Failure, in_short(&rejected.diagnostics)),
    }
}

fn valid(groups: usize) -> Verdict {
    (StatusState::Success, format!("valid, {groups} groups"))
}

fn unchecked(why: &dyn std::fmt::Display) -> Verdict {
    (StatusState::Error, format!("could not be checked: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
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
            Event::Reported { commit: commit(1), context, state },
            began(2),
            checked(2),
            began(3),
            began(3),
            began(4),
            Event::HeadCheckStopped { commit: commit(4) },
        ] {
            journal.append(event, Now::read()).unwrap();
        }
        let known = Known::of(&journal);
        assert_eq!(known.done, HashSet::from([commit(1)]));
        let verdict = (state, "could not be checked: x".to_owned());
        assert_eq!(known.verdicts, HashMap::from([(commit(2), verdict)]));
        assert_eq!(known.began, HashMap::from([(commit(3), 2)]));
    }
}
