//! Making commit statuses of what happened, and posting them.
#![expect(clippy::disallowed_methods, reason = "the time of a next try is measured by the clock")]

use std::sync::Arc;
use std::time::Instant;

use super::queue::{
    Job, Next, Posted, PostedStatus, ReportedCommit, StatusQueue, StatusReport, Waiting,
};
use super::verdict::{VALIDATE, Verdict};
use crate::forge::{CommitStatus, ForgeError, RetryScope, StatusState};
use crate::git::Repository;
use crate::model::CommitId;
use crate::reconcile::build_queue::Priority;
use crate::reconcile::journal::{Event, Journal, LiveReport, Stage};
use crate::reconcile::recorder::Recorder;
use crate::reconcile::schedule::backoff;
use crate::reconcile::settings::Reporting;
use crate::reconcile::snapshot_store::SnapshotStore;
use crate::reconcile::source::Source;
use crate::telemetry::Metrics;

/// How many events from before a start are reported again.
const REPLAYED: usize = 50;

/// How many commits get a status at once: those between two heads.
const MOST: usize = 100;

/// How often a status is tried: more than a day of a forge that is down.
const TRIES: u32 = 300;

/// How often a status is tried of a commit that the forge may lack: for about a minute.
const MISSES: u32 = 6;

/// Posts commit statuses to the forge.
#[derive(Debug)]
pub(in crate::reconcile) struct CommitStatusReporter {
    pub(in crate::reconcile) reporting: Arc<Reporting>,
    pub(in crate::reconcile) queue: Arc<StatusQueue>,
    pub(in crate::reconcile) source: Arc<Source>,
    pub(in crate::reconcile) store: Arc<SnapshotStore>,
    pub(in crate::reconcile) recorder: Arc<Recorder>,
    pub(in crate::reconcile) metrics: Arc<Metrics>,
}

impl CommitStatusReporter {
    /// Posts statuses until the queue is stopped.
    pub(in crate::reconcile) fn run(&self) {
        self.metrics.begin_commit_statuses(self.reporting.forge.provider.as_str());
        let mut posted = posted(&self.recorder.journal());
        for (event, before) in recent(&self.recorder.journal()) {
            self.queue.push_event(&event, before);
        }
        loop {
            match self.queue.next() {
                Next::Stop => return,
                Next::Job(job) => {
                    for report in self.reports(job, &posted) {
                        if self.queue.add(report, &posted) {
                            let provider = self.reporting.forge.provider.as_str();
                            self.metrics.count_commit_status(provider, "evicted");
                        }
                    }
                }
                Next::Post(waiting) => self.post(waiting, &mut posted),
            }
        }
    }

    fn post(&self, waiting: Waiting, posted: &mut Posted) {
        let forge = &self.reporting.forge;
        let provider = forge.provider.as_str();
        let report = &waiting.report;
        let CommitStatus { commit, context, .. } = &report.status;
        match forge.post_status(&report.status) {
            Ok(()) => {
                let PostedStatus { state, live } = report.posted();
                posted.insert((*commit, context.clone()), PostedStatus { state, live });
                let (commit, context) = (*commit, context.clone());
                self.recorder.note(Event::Reported { commit, context, state, live });
                self.metrics.count_commit_status(provider, "posted");
                self.queue.end_pause();
            }
            Err(error) => match retry_scope(&error, &waiting) {
                Some(retry) => {
                    self.metrics.count_commit_status(provider, "retried");
                    tracing::warn!(%commit, %error, "posting the commit status failed: it is retried");
                    self.retry(waiting, retry, &error);
                }
                None => {
                    self.metrics.count_commit_status(provider, "refused");
                    tracing::error!(%commit, %error, "posting the commit status failed");
                }
            },
        }
    }

    /// Has a status posted again later.
    fn retry(&self, mut waiting: Waiting, retry: RetryScope, error: &ForgeError) {
        let count = if error.may_lack_commit() { &mut waiting.misses } else { &mut waiting.tries };
        let pause = backoff(*count);
        *count += 1;
        match retry {
            RetryScope::ThisCall => {
                waiting.due = Instant::now() + pause;
                self.queue.retry(waiting);
            }
            RetryScope::AllCalls(least) => self.queue.pause(waiting, least),
        }
    }

    /// Returns the statuses that follow from a job.
    fn reports(&self, job: Job, posted: &Posted) -> Vec<StatusReport> {
        let (event, before) = match job {
            Job::HeadChecked(status) => {
                return vec![StatusReport::of_verdict(status, ReportedCommit::Head)];
            }
            Job::Event(event, before) => (event, before),
        };
        let Ok(repository) = self.source.repository() else { return Vec::new() };
        let live = format!("clade/live/{}", self.reporting.instance);
        match event {
            Event::Activated { commit, .. } => {
                self.of_activated(&repository, commit, before, &live, posted)
            }
            Event::Rejected { commit, stage } => {
                self.of_rejected(&repository, commit, stage, &live, posted)
            }
            Event::Held { commit } => self.of_valid(&repository, commit, posted),
            Event::Superseded { commit, by } => {
                vec![self.live(commit, &live, LiveReport::Superseded, by)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the statuses of a commit that became live, of those between it and the one before, and of that
    /// one unless the commit contains it: then it is history.
    fn of_activated(
        &self,
        repository: &Repository,
        commit: CommitId,
        before: Option<CommitId>,
        live: &str,
        posted: &Posted,
    ) -> Vec<StatusReport> {
        let mut all = Vec::new();
        let passed = before.and_then(|it| repository.commits_between(it, commit).ok());
        for passed in passed.unwrap_or_default().into_iter().rev().take(MOST) {
            // What was rejected or live has its status already, or gets it once the forge takes it.
            let is_posted = posted.contains_key(&(passed, live.to_owned()));
            let was_rejected = || self.recorder.journal().rejected_at(passed).is_some();
            if passed != commit && !is_posted && !was_rejected() {
                all.push(self.live(passed, live, LiveReport::Superseded, commit));
            }
        }
        let is_left = |it: &CommitId| repository.is_ancestor(*it, commit).is_ok_and(|it| !it);
        if let Some(before) = before.filter(is_left) {
            all.push(self.live(before, live, LiveReport::Replaced, commit));
        }
        all.extend(self.of_valid(repository, commit, posted));
        all.push(self.live(commit, live, LiveReport::Answers, commit));
        all
    }

    /// Returns the verdict about a commit that was built. Where it has been posted, its text is not made again: after a
    /// restart, a commit is not built again only to post the same status.
    fn of_valid(
        &self,
        repository: &Repository,
        commit: CommitId,
        posted: &Posted,
    ) -> Vec<StatusReport> {
        // Said all the same: it takes the place of one that an earlier event left waiting.
        let Verdict { state, description } =
            match is_posted(posted, commit, VALIDATE, StatusState::Success) {
                true => Verdict { state: StatusState::Success, description: String::new() },
                false => self.verdict(repository, commit),
            };
        vec![self.verdict_report(commit, VALIDATE, state, description)]
    }

    /// Returns the status of a valid commit while another one answers, or itself.
    fn live(
        &self,
        commit: CommitId,
        context: &str,
        live: LiveReport,
        answering: CommitId,
    ) -> StatusReport {
        let description = match live {
            LiveReport::Answers => "answers".to_owned(),
            LiveReport::Superseded => format!("superseded by {}", short(answering)),
            LiveReport::Replaced => format!("replaced by {}", short(answering)),
        };
        let status = self.reporting.status(commit, context, StatusState::Success, description);
        StatusReport { status, about: ReportedCommit::OfBranch, live: Some(live) }
    }

    fn of_rejected(
        &self,
        repository: &Repository,
        commit: CommitId,
        stage: Stage,
        live: &str,
        posted: &Posted,
    ) -> Vec<StatusReport> {
        let state = match stage {
            Stage::Load => StatusState::Error,
            Stage::Verify | Stage::Check => StatusState::Failure,
        };
        let is_said =
            is_posted(posted, commit, VALIDATE, state) && is_posted(posted, commit, live, state);
        let why = match stage {
            // It takes the place of one that an earlier event left waiting, and is not posted.
            _ if is_said => String::new(),
            Stage::Verify => "not signed by an allowed key".to_owned(),
            Stage::Load => "the commit cannot be read".to_owned(),
            Stage::Check => self.verdict(repository, commit).description,
        };
        vec![
            self.verdict_report(commit, VALIDATE, state, why.clone()),
            self.verdict_report(commit, live, state, format!("rejected: {why}")),
        ]
    }

    fn verdict_report(
        &self,
        commit: CommitId,
        context: &str,
        state: StatusState,
        description: String,
    ) -> StatusReport {
        let status = self.reporting.status(commit, context, state, description);
        StatusReport::of_verdict(status, ReportedCommit::OfBranch)
    }

    /// Returns whether a commit of the branch is valid.
    fn verdict(&self, repository: &Repository, commit: CommitId) -> Verdict {
        match self.store.read_unverified(repository, commit, Priority::Reports) {
            Ok(outcome) => Verdict::of(&outcome),
            Err(error) => Verdict::error(error.to_string()),
        }
    }
}

/// Returns when a status is posted again that was not taken; none where it is given up.
fn retry_scope(error: &ForgeError, waiting: &Waiting) -> Option<RetryScope> {
    match error.may_lack_commit() {
        true => (waiting.misses < MISSES).then_some(RetryScope::ThisCall),
        false => error.retry().filter(|_| waiting.tries < TRIES),
    }
}

fn is_posted(posted: &Posted, commit: CommitId, context: &str, state: StatusState) -> bool {
    posted.get(&(commit, context.to_owned())).is_some_and(|it| it.state == state)
}

fn posted(journal: &Journal) -> Posted {
    let of = |event: &Event| match event {
        Event::Reported { commit, context, state, live } => {
            Some(((*commit, context.clone()), PostedStatus { state: *state, live: *live }))
        }
        _ => None,
    };
    journal.records().iter().filter_map(|it| of(&it.event)).collect()
}

/// Returns the last events, each with the commit that was live before it.
fn recent(journal: &Journal) -> Vec<(Event, Option<CommitId>)> {
    let mut before = None;
    let mut all = Vec::new();
    for record in journal.records() {
        match record.event {
            Event::Activated { commit, .. } => {
                all.push((record.event.clone(), before));
                before = Some(commit);
            }
            Event::Rejected { .. } | Event::Held { .. } | Event::Superseded { .. } => {
                all.push((record.event.clone(), None));
            }
            _ => {}
        }
    }
    all.split_off(all.len().saturating_sub(REPLAYED))
}

fn short(commit: CommitId) -> String {
    commit.to_string().chars().take(7).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    /// Each row: the answer of the forge, how often it failed otherwise and lacked the commit, and whether it is retried.
    #[test]
    fn a_status_of_a_commit_that_the_forge_lacks_is_retried_for_a_while() {
        let refused = |status| ForgeError::Refused { status, said: String::new() };
        let rows = [
            (refused(422), 0, 0, true),
            (refused(422), TRIES, MISSES - 1, true),
            (refused(422), 0, MISSES, false),
            (refused(400), 0, 0, false),
            (refused(302), 0, 0, false),
            (ForgeError::NotFound(String::new()), 0, MISSES, true),
            (ForgeError::NotFound(String::new()), TRIES, 0, false),
        ];
        each_row(rows, |(error, tries, misses, is_retried)| {
            let status = CommitStatus {
                commit: CommitId::from_bytes([1; 20]),
                context: VALIDATE.to_owned(),
                state: StatusState::Success,
                description: String::new(),
                link: None,
            };
            let report = StatusReport::of_verdict(status, ReportedCommit::OfBranch);
            let waiting = Waiting { report, tries, misses, due: Instant::now() };
            assert_eq!(retry_scope(&error, &waiting).is_some(), is_retried);
        });
    }
}
