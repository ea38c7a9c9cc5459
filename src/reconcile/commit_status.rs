//! Telling the forge what commits came to.
//!
//! The stages note what happened in the journal; from there a thread of its own makes statuses and
//! posts them, each once, again and again until the forge takes it, and never in anybody's way.
//! What was posted is noted as well, so a restart goes on where the last process stopped.
#![expect(clippy::disallowed_methods, reason = "the time of a next try is measured by the clock")]

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::controller::Controller;
use super::head_check::HeadChecker;
use super::heads::verdict_in_words;
use super::journal::{Event, Journal, Stage};
use super::turns::Urgency;
use crate::diagnostic::{Diagnostic, Severity, visible};
use crate::forge::{CommitStatus, Forge, StatusState};
use crate::git::Repository;
use crate::model::CommitId;

/// The forge to tell, and as whom.
#[derive(Clone, Debug)]
pub struct Reporting {
    /// The forge.
    pub forge: Forge,
    /// The name of this daemon among those that follow the same repository.
    pub instance: String,
    /// Where this daemon is reached by those who read the status.
    pub public_url: Option<String>,
    /// What checks heads of pull requests.
    pub head_checker: HeadChecker,
}

/// What is to be told.
#[derive(Debug, Default)]
pub(super) struct CommitStatusReporter {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    errands: VecDeque<Job>,
    waiting: Vec<Waiting>,
    stopping: bool,
}

/// Something that statuses follow from.
#[derive(Debug)]
enum Job {
    /// Something happened; and what answered before it.
    Happened(Event, Option<CommitId>),
    /// The head of a pull request was checked.
    HeadChecked(CommitStatus),
}

/// A status that the forge has not taken yet.
#[derive(Debug)]
struct Waiting {
    status: CommitStatus,
    tries: u32,
    due: Instant,
}

/// How many things that happened before a start are looked at again.
const REPLAYED: usize = 50;

/// How many commits get a status at once: those between two heads.
const MOST: usize = 100;

/// How many statuses wait at most; the oldest go first.
const WAITING: usize = 1_000;

/// How often a status is tried: more than a day of a forge that is down.
const TRIES: u32 = 300;

pub(super) const VALIDATE: &str = "clade/validate";

impl CommitStatusReporter {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, errand: Job) {
        self.queue().errands.push_back(errand);
        self.changed.notify_all();
    }

    pub(super) fn stop(&self) {
        self.queue().stopping = true;
        self.changed.notify_all();
    }
}

impl Controller {
    /// Has the forge told what happened, if one is to be told.
    pub(super) fn report(&self, event: &Event, before: Option<CommitId>) {
        let tells = matches!(
            event,
            Event::Activated { .. } | Event::Rejected { .. } | Event::Superseded { .. }
        );
        if tells && self.settings.reporting.is_some() {
            self.reporter.push(Job::Happened(event.clone(), before));
        }
    }

    /// Has the forge told what came of the head of a pull request.
    pub(super) fn report_head(&self, status: CommitStatus) {
        self.reporter.push(Job::HeadChecked(status));
    }

    /// Posts statuses until the controller is stopped.
    pub(super) fn keep_reporting(&self) {
        let Some(reporting) = &self.settings.reporting else { return };
        let mut told = told(&self.journal());
        for (event, before) in recent(&self.journal()) {
            self.report(&event, before);
        }
        loop {
            let errand = {
                let mut queue = self.reporter.queue();
                loop {
                    if queue.stopping {
                        return;
                    }
                    if let Some(errand) = queue.errands.pop_front() {
                        break Some(errand);
                    }
                    let next = queue.waiting.iter().map(|it| it.due).min();
                    let now = Instant::now();
                    queue = match next {
                        Some(due) if due <= now => break None,
                        Some(due) => {
                            let waited = self.reporter.changed.wait_timeout(queue, due - now);
                            waited.unwrap_or_else(PoisonError::into_inner).0
                        }
                        None => self
                            .reporter
                            .changed
                            .wait(queue)
                            .unwrap_or_else(PoisonError::into_inner),
                    };
                }
            };
            match errand {
                Some(errand) => {
                    let statuses = self.statuses(reporting, errand, &told);
                    let mut queue = self.reporter.queue();
                    for status in statuses {
                        queue.add(status, &told);
                    }
                }
                None => self.post_next(reporting, &mut told),
            }
        }
    }

    fn post_next(&self, reporting: &Reporting, told: &mut Told) {
        let Some(mut next) = self.reporter.queue().take_due() else { return };
        let provider = reporting.forge.provider.as_str();
        let CommitStatus { commit, context, state, .. } = &next.status;
        match reporting.forge.post_status(&next.status) {
            Ok(()) => {
                told.insert((*commit, context.clone()), *state);
                self.note(Event::Reported {
                    commit: *commit,
                    context: context.clone(),
                    state: *state,
                });
                self.metrics.count_commit_status(provider, "posted");
            }
            Err(error) if error.is_passing() && next.tries < TRIES => {
                self.metrics.count_commit_status(provider, "retried");
                tracing::warn!(%commit, %error, "the commit status waits");
                next.due = Instant::now() + backoff(next.tries);
                next.tries += 1;
                self.reporter.queue().waiting.push(next);
            }
            Err(error) => {
                self.metrics.count_commit_status(provider, "refused");
                tracing::error!(%commit, %error, "the commit status cannot be posted");
            }
        }
    }

    /// Returns what follows of an errand.
    fn statuses(&self, reporting: &Reporting, errand: Job, told: &Told) -> Vec<CommitStatus> {
        let (event, before) = match errand {
            Job::HeadChecked(status) => return vec![status],
            Job::Happened(event, before) => (event, before),
        };
        let Ok(repository) = self.repository() else { return Vec::new() };
        let status = |commit: CommitId, context: &str, state, description| {
            reporting.status(commit, context, state, description)
        };
        let is_told = |commit: CommitId, context: &str, state| {
            told.get(&(commit, context.to_owned())) == Some(&state)
        };
        let live = format!("clade/live/{}", reporting.instance);
        match event {
            Event::Activated { commit, .. } => {
                let mut all = Vec::new();
                let passed = before.and_then(|it| repository.between(it, commit).ok());
                for passed in passed.unwrap_or_default().into_iter().rev().take(MOST) {
                    // What was rejected or answered is told already.
                    if passed != commit && !told.contains_key(&(passed, live.clone())) {
                        let by = format!("superseded by {}", short(commit));
                        all.push(status(passed, &live, StatusState::Success, by));
                    }
                }
                // After a restart, what was told is not built for it once more.
                if !is_told(commit, VALIDATE, StatusState::Success) {
                    let (state, description) = self.verdict(&repository, commit);
                    all.push(status(commit, VALIDATE, state, description));
                }
                let answers = "answers".to_owned();
                all.push(status(commit, &live, StatusState::Success, answers));
                all
            }
            Event::Rejected { commit, stage } => {
                let state = match stage {
                    Stage::Load => StatusState::Error,
                    Stage::Verify | Stage::Check => StatusState::Failure,
                };
                if is_told(commit, VALIDATE, state) && is_told(commit, &live, state) {
                    return Vec::new();
                }
                let why = match stage {
                    Stage::Verify => "not signed by an allowed key".to_owned(),
                    Stage::Load => "the commit cannot be read".to_owned(),
                    Stage::Check => self.verdict(&repository, commit).1,
                };
                vec![
                    status(commit, VALIDATE, state, why.clone()),
                    status(commit, &live, state, format!("rejected: {why}")),
                ]
            }
            Event::Superseded { commit, by } => {
                let by = format!("superseded by {}", short(by));
                vec![status(commit, &live, StatusState::Success, by)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether a commit of the branch is valid.
    fn verdict(&self, repository: &Repository, commit: CommitId) -> (StatusState, String) {
        match self.outcome_to_read(repository, commit, Urgency::Reports) {
            Ok(outcome) => verdict_in_words(&outcome),
            Err(error) => (StatusState::Error, error.to_string()),
        }
    }
}

impl Queue {
    /// Adds a status in the place of an older one about the same.
    fn add(&mut self, status: CommitStatus, told: &Told) {
        if told.get(&(status.commit, status.context.clone())) == Some(&status.state) {
            return;
        }
        self.waiting
            .retain(|it| it.status.commit != status.commit || it.status.context != status.context);
        if self.waiting.len() >= WAITING {
            self.waiting.remove(0);
        }
        self.waiting.push(Waiting { status, tries: 0, due: Instant::now() });
    }

    fn take_due(&mut self) -> Option<Waiting> {
        let now = Instant::now();
        let index = self.waiting.iter().position(|it| it.due <= now)?;
        Some(self.waiting.remove(index))
    }
}

impl Reporting {
    /// Returns a status of a commit.
    pub(super) fn status(
        &self,
        commit: CommitId,
        context: &str,
        state: StatusState,
        description: String,
    ) -> CommitStatus {
        let (context, link) = (context.to_owned(), self.link(commit));
        CommitStatus { commit, context, state, description, link }
    }

    fn link(&self, commit: CommitId) -> Option<String> {
        let base = self.public_url.as_deref()?.trim_end_matches('/');
        Some(format!("{base}/controller/commits/{commit}"))
    }
}

/// What the forge was told last of each commit, by context.
type Told = HashMap<(CommitId, String), StatusState>;

fn told(journal: &Journal) -> Told {
    let of = |event: &Event| match event {
        Event::Reported { commit, context, state } => Some(((*commit, context.clone()), *state)),
        _ => None,
    };
    journal.records().iter().filter_map(|it| of(&it.event)).collect()
}

/// Returns the last things that happened, with what answered before each.
fn recent(journal: &Journal) -> Vec<(Event, Option<CommitId>)> {
    let mut before = None;
    let mut all = Vec::new();
    for record in journal.records() {
        match record.event {
            Event::Activated { commit, .. } => {
                all.push((record.event.clone(), before));
                before = Some(commit);
            }
            Event::Rejected { .. } | Event::Superseded { .. } => {
                all.push((record.event.clone(), None));
            }
            _ => {}
        }
    }
    all.split_off(all.len().saturating_sub(REPLAYED))
}

/// One second, then twice as long each time, up to five minutes.
pub(super) fn backoff(tries: u32) -> Duration {
    Duration::from_secs(1_u64 << tries.min(9)).min(Duration::from_mins(5))
}

fn short(commit: CommitId) -> String {
    commit.to_string().chars().take(7).collect()
}

/// Returns the first error with its place, and how many more there are.
pub(super) fn in_short(diagnostics: &[Diagnostic]) -> String {
    let mut errors = diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let Some(first) = errors.next() else { return "not valid".to_owned() };
    let more = match errors.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let start = first.place.span.start;
    let (file, message) = (visible(&first.place.file), visible(&first.message));
    format!("{file}:{}:{}: {message}{more}", start.line, start.column)
}
