//! The queue of the reporter: what it makes statuses of, and the statuses that wait for the forge.
#![expect(clippy::disallowed_methods, reason = "the time of a next try is measured by the clock")]

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::forge::{CommitStatus, StatusState};
use crate::model::CommitId;
use crate::reconcile::journal::{Event, LiveReport};
use crate::reconcile::schedule::backoff;

/// How many statuses wait at most. Those of heads of pull requests are evicted first.
const WAITING: usize = 1_000;

/// How many wait at most when evicted heads are reported again.
const ROOM: usize = WAITING / 2;

/// How many evicted heads are remembered.
const EVICTED: usize = 10_000;

/// The status that the forge has of each commit, by context.
pub(super) type Posted = HashMap<(CommitId, String), PostedStatus>;

/// What a status says, but for its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PostedStatus {
    pub(super) state: StatusState,
    pub(super) live: Option<LiveReport>,
}

/// Which commit a status is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedCommit {
    /// One of the branch.
    OfBranch,
    /// The head of a pull request.
    Head,
}

/// A status, and what it says of a valid commit's part in answers.
#[derive(Clone, Debug)]
pub(super) struct StatusReport {
    pub(super) status: CommitStatus,
    pub(super) about: ReportedCommit,
    pub(super) live: Option<LiveReport>,
}

impl StatusReport {
    /// Returns what it is once the forge has it.
    pub(super) fn posted(&self) -> PostedStatus {
        PostedStatus { state: self.status.state, live: self.live }
    }

    /// Returns whether a commit is valid, without a word on answers.
    pub(super) fn of_verdict(status: CommitStatus, about: ReportedCommit) -> Self {
        Self { status, about, live: None }
    }

    fn is_about(&self, status: &CommitStatus) -> bool {
        self.status.commit == status.commit && self.status.context == status.context
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
    /// Whether statuses were evicted, and not many fewer wait since.
    overflows: bool,
    /// The heads among them, some of which may be forgotten.
    evicted_heads: HashSet<CommitId>,
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
            Event::Activated { .. }
                | Event::Rejected { .. }
                | Event::Held { .. }
                | Event::Superseded { .. }
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

    /// Takes the heads whose statuses were evicted, once there is room for them.
    pub(in crate::reconcile) fn take_evicted_heads(&self) -> HashSet<CommitId> {
        let mut queue = self.queue.lock();
        if queue.waiting.len() > ROOM {
            return HashSet::new();
        }
        std::mem::take(&mut queue.evicted_heads)
    }

    /// Has a status posted, unless the forge has it, in the place of an older one about the same. Returns whether one was
    /// evicted, which may be the new one.
    pub(super) fn add(&self, report: StatusReport, posted: &Posted) -> bool {
        let mut queue = self.queue.lock();
        // A rejected commit stays rejected once another one answers.
        if report.live == Some(LiveReport::Superseded) && queue.rejects(&report.status) {
            return false;
        }
        queue.waiting.retain(|it| !it.report.is_about(&report.status));
        let CommitStatus { commit, context, .. } = &report.status;
        if posted.get(&(*commit, context.clone())) == Some(&report.posted()) {
            return false;
        }
        queue.waiting.push(Waiting { report, tries: 0, misses: 0, due: Instant::now() });
        queue.evict_beyond(WAITING)
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
    /// Evicts a status if more wait than may: the oldest of a head, or the oldest where none is of a head. Returns whether
    /// it evicted one.
    fn evict_beyond(&mut self, most: usize) -> bool {
        if self.waiting.len() <= ROOM {
            self.overflows = false;
        }
        if self.waiting.len() <= most {
            return false;
        }
        let head = self.waiting.iter().position(|it| it.report.about == ReportedCommit::Head);
        let evicted = self.waiting.remove(head.unwrap_or_default());
        if head.is_some() && self.evicted_heads.len() < EVICTED {
            self.evicted_heads.insert(evicted.report.status.commit);
        }
        if !std::mem::replace(&mut self.overflows, true) {
            let commit = evicted.report.status.commit;
            tracing::error!(%commit, most, "too many commit statuses wait for the forge: the oldest are dropped");
        }
        true
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    fn report(number: u16, about: ReportedCommit) -> StatusReport {
        let mut commit = [0; 20];
        commit[..2].copy_from_slice(&number.to_be_bytes());
        let status = CommitStatus {
            commit: CommitId::from_bytes(commit),
            context: "clade/validate".to_owned(),
            state: StatusState::Success,
            description: String::new(),
            link: None,
        };
        StatusReport::of_verdict(status, about)
    }

    /// Each row: which of the commits that wait are heads, which the new one is, and how many of each wait then.
    #[test]
    fn heads_are_evicted_before_commits_of_the_branch() {
        let (branch, head) = (ReportedCommit::OfBranch, ReportedCommit::Head);
        let rows = [
            (WAITING - 1, 0, branch, (WAITING, 0), false),
            (WAITING, 0, branch, (WAITING, 0), true),
            (WAITING, 0, head, (WAITING, 0), true),
            (WAITING - 1, 1, branch, (WAITING, 0), true),
            (WAITING - 1, 1, head, (WAITING - 1, 1), true),
            (0, WAITING, branch, (1, WAITING - 1), true),
        ];
        each_row(rows, |(of_branch, heads, new, expected, is_evicted)| {
            let (queue, posted) = (StatusQueue::default(), Posted::default());
            for number in 0..of_branch + heads {
                let about = if number < of_branch { branch } else { head };
                assert!(!queue.add(report(number.try_into().unwrap(), about), &posted));
            }
            assert_eq!(queue.add(report(u16::MAX, new), &posted), is_evicted);
            let waits = |about| {
                let queue = queue.queue.lock();
                queue.waiting.iter().filter(|it| it.report.about == about).count()
            };
            assert_eq!((waits(branch), waits(head)), expected);
            assert!(queue.take_evicted_heads().is_empty(), "there is no room yet");
            queue.queue.lock().waiting.clear();
            let evicted_heads = usize::from(is_evicted && (new == head || heads > 0));
            assert_eq!(queue.take_evicted_heads().len(), evicted_heads);
            assert!(queue.take_evicted_heads().is_empty(), "they are reported once");
        });
    }
}
