//! The queue of the reporter: what it makes statuses of, and the statuses that wait for the forge.
#![expect(clippy::disallowed_methods, reason = "the time of a next try is measured by the clock")]

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::forge::{CommitStatus, StatusState};
use crate::model::CommitId;
use crate::reconcile::journal::{Event, LiveReport};
use crate::reconcile::schedule::backoff;

/// How many statuses wait at most; the oldest go first.
const WAITING: usize = 1_000;

/// The status that the forge has of each commit, by context.
pub(super) type Posted = HashMap<(CommitId, String), PostedStatus>;

/// What a status says, but for its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PostedStatus {
    pub(super) state: StatusState,
    pub(super) live: Option<LiveReport>,
}

/// A status, and what it says of a valid commit's part in answers.
#[derive(Clone, Debug)]
pub(super) struct StatusReport {
    pub(super) status: CommitStatus,
    pub(super) live: Option<LiveReport>,
}

impl StatusReport {
    /// Returns what it is once the forge has it.
    pub(super) fn posted(&self) -> PostedStatus {
        PostedStatus { state: self.status.state, live: self.live }
    }

    fn is_about(&self, status: &CommitStatus) -> bool {
        self.status.commit == status.commit && self.status.context == status.context
    }
}

impl From<CommitStatus> for StatusReport {
    fn from(status: CommitStatus) -> Self {
        Self { status, live: None }
    }
}

/// What the reporter has to do.
#[derive(Debug, Default)]
pub(in crate::reconcile) struct StatusQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    waiting: Vec<Waiting>,
    /// Until when the forge takes no calls.
    paused_until: Option<Instant>,
    /// How many calls in a row it has not taken.
    pauses: u32,
    stopping: bool,
}

/// Something that statuses follow from.
#[derive(Debug)]
pub(super) enum Job {
    /// An event, and the commit that was live before it.
    Event(Event, Option<CommitId>),
    /// The head of a pull request was checked.
    HeadChecked(CommitStatus),
}

/// A status that the forge has not taken yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) report: StatusReport,
    pub(super) tries: u32,
    /// How often the forge did not have its commit.
    pub(super) misses: u32,
    pub(super) due: Instant,
}

/// What the reporter does next.
pub(super) enum Next {
    Job(Job),
    Post(Waiting),
    Stop,
}

impl StatusQueue {
    /// Queues an event, if statuses follow from it; `before` is the commit that was live before.
    pub(in crate::reconcile) fn push_event(&self, event: &Event, before: Option<CommitId>) {
        let has_status = matches!(
            event,
            Event::Activated { .. } | Event::Rejected { .. } | Event::Superseded { .. }
        );
        if has_status {
            self.push(Job::Event(event.clone(), before));
        }
    }

    /// Queues the status of the head of a pull request.
    pub(in crate::reconcile) fn push_head(&self, status: CommitStatus) {
        self.push(Job::HeadChecked(status));
    }

    fn push(&self, job: Job) {
        self.queue.lock().jobs.push_back(job);
        self.changed.notify_all();
    }

    /// Ends the reporter.
    pub(in crate::reconcile) fn stop(&self) {
        self.queue.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Waits for something to do; jobs come before posts. Blocking.
    pub(super) fn next(&self) -> Next {
        let mut queue = self.queue.lock();
        loop {
            if queue.stopping {
                return Next::Stop;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Next::Job(job);
            }
            if let Some(due) = queue.take_due() {
                return Next::Post(due);
            }
            match queue.next_due() {
                Some(due) => drop(self.changed.wait_until(&mut queue, due)),
                None => self.changed.wait(&mut queue),
            }
        }
    }

    /// Has a status posted, unless the forge has it, in the place of an older one about the same.
    pub(super) fn add(&self, report: StatusReport, posted: &Posted) {
        let mut queue = self.queue.lock();
        // A rejected commit stays rejected once another one answers.
        if report.live == Some(LiveReport::Superseded) && queue.rejects(&report.status) {
            return;
        }
        queue.waiting.retain(|it| !it.report.is_about(&report.status));
        let CommitStatus { commit, context, .. } = &report.status;
        if posted.get(&(*commit, context.clone())) == Some(&report.posted()) {
            return;
        }
        if queue.waiting.len() >= WAITING {
            queue.waiting.remove(0);
        }
        queue.waiting.push(Waiting { report, tries: 0, misses: 0, due: Instant::now() });
    }

    /// Has a status posted again later.
    pub(super) fn retry(&self, waiting: Waiting) {
        self.queue.lock().waiting.push(waiting);
    }

    /// Has a status posted again later, and no other before: after so long a pause at least, and longer each time.
    pub(super) fn pause(&self, mut waiting: Waiting, least: Duration) {
        let mut queue = self.queue.lock();
        let until = Instant::now() + backoff(queue.pauses).max(least);
        queue.pauses += 1;
        queue.paused_until = Some(until);
        waiting.due = until;
        queue.waiting.push(waiting);
    }

    /// Has all statuses posted as soon as possible: the forge takes calls again.
    pub(super) fn end_pause(&self) {
        let mut queue = self.queue.lock();
        if queue.paused_until.take().is_some() {
            queue.pauses = 0;
            let now = Instant::now();
            queue.waiting.iter_mut().for_each(|it| it.due = it.due.min(now));
        }
    }
}

impl Queue {
    /// Returns whether a status waits that says of the same commit that it was rejected.
    fn rejects(&self, status: &CommitStatus) -> bool {
        let is_bad = |it: StatusState| matches!(it, StatusState::Failure | StatusState::Error);
        let mut waiting = self.waiting.iter().map(|it| &it.report);
        waiting.any(|it| it.is_about(status) && is_bad(it.status.state))
    }

    /// Returns when the next status is to be posted, if any waits.
    fn next_due(&self) -> Option<Instant> {
        let due = self.waiting.iter().map(|it| it.due).min()?;
        Some(self.paused_until.map_or(due, |until| due.max(until)))
    }

    fn take_due(&mut self) -> Option<Waiting> {
        let now = Instant::now();
        if self.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        let index = self.waiting.iter().position(|it| it.due <= now)?;
        Some(self.waiting.remove(index))
    }
}
