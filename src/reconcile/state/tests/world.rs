//! A world without threads, disks and networks for the state: a remote, a journal, a builder.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::git::{FetchError, FetchFailure, ReadError};
use crate::model::CommitId;
use crate::reconcile::ancestry::decide_by_history;
use crate::reconcile::attribution::Attribution;
use crate::reconcile::clock::Now;
use crate::reconcile::journal::{Event, Journal, Stage};
use crate::reconcile::policy::Policy;
use crate::reconcile::state::{
    AncestryAnswer, BuildJob, Cause, CommitPair, FetchedHead, Following, KnownAncestry,
    NotAccepted, Pushed, ReconcileState, SourceKind, Withheld,
};
use crate::reconcile::status::{ActiveCommit, ConditionKind, FailedCommit, ObservedCommit, Reason};
use crate::reconcile::trigger::Trigger;

/// Commits with their parents, by a letter each; an upper-case letter is a commit that is not valid.
#[derive(Clone, Debug, Default)]
pub(super) struct Commits {
    parents: BTreeMap<char, Option<char>>,
    /// Why the history cannot be read now.
    pub(super) fault: Option<ReadError>,
}

impl Commits {
    /// Parses lines of history: `a b c` is a line, the first of another line stands in one before.
    pub(super) fn parse(lines: &[&str]) -> Self {
        let mut all = BTreeMap::new();
        for line in lines {
            let mut parent = None;
            for name in line.split_whitespace().filter_map(|it| it.chars().next()) {
                all.entry(name).or_insert(parent);
                parent = Some(name);
            }
        }
        Self { parents: all, ..Self::default() }
    }

    pub(super) fn add(&mut self, name: char, parent: Option<char>) {
        self.parents.insert(name, parent);
    }

    pub(super) fn parent(&self, name: char) -> Option<char> {
        self.parents.get(&name).copied().flatten()
    }

    pub(super) fn contains(&self, ancestor: char, mut of: char) -> bool {
        loop {
            if of == ancestor {
                return true;
            }
            let Some(parent) = self.parent(of) else { return false };
            of = parent;
        }
    }
}

pub(super) fn id(name: char) -> CommitId {
    CommitId::from_bytes([u8::try_from(u32::from(name)).unwrap(); 20])
}

pub(super) fn name(commit: CommitId) -> char {
    char::from(commit.as_bytes()[0])
}

impl Commits {
    pub(super) fn read(&self, CommitPair { ancestor, descendant }: CommitPair) -> AncestryAnswer {
        let is_ancestor = match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(self.contains(name(ancestor), name(descendant))),
        };
        AncestryAnswer { is_final: is_ancestor.is_ok(), is_ancestor }
    }
}

/// A daemon in that world.
#[derive(Debug)]
pub(super) struct World {
    pub(super) commits: Commits,
    pub(super) state: ReconcileState,
    pub(super) journal: Journal,
    /// What the fetcher knows of the history.
    known: KnownAncestry,
    /// How many answers of the history were read.
    pub(super) reads: usize,
    policy: Policy,
    started: Now,
    passed: Duration,
    /// How long the machine was suspended.
    suspended: Duration,
    /// The commit whose snapshot answers requests.
    pub(super) answers: Option<char>,
    /// The head that the mirror keeps.
    mirror: Option<char>,
    /// When the branch was last seen, since the start of the world.
    seen: Option<Duration>,
}

impl World {
    pub(super) fn new(commits: Commits, policy: Policy) -> Self {
        let started = Now { wall: Timestamp::UNIX_EPOCH, ..Now::read() };
        Self {
            commits,
            state: ReconcileState::new(policy, SourceKind::Remote, started),
            journal: Journal::default(),
            known: KnownAncestry::default(),
            reads: 0,
            policy,
            started,
            passed: Duration::ZERO,
            suspended: Duration::ZERO,
            answers: None,
            mirror: None,
            seen: None,
        }
    }

    pub(super) fn now(&self) -> Now {
        self.started.later(self.passed).after_suspend(self.suspended)
    }

    pub(super) fn suspend(&mut self, time: Duration) {
        self.suspended += time;
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.passed += time;
    }

    /// The remote shows a head.
    pub(super) fn fetch(&mut self, head: char) {
        self.try_fetch(head).unwrap();
    }

    /// The same, where the history may be unreadable.
    pub(super) fn try_fetch(&mut self, head: char) -> Result<bool, NotAccepted> {
        let now = self.now();
        let began = self.state.fetch_began(now);
        self.state.fetch_ended();
        self.mirror = Some(head);
        self.seen = Some(self.passed);
        if self.journal.live() != Some(id(head)) {
            self.journal.append(Event::Fetched { commit: id(head) }, now).unwrap();
        }
        self.decide(|world, ancestry| {
            let fetched = FetchedHead { began, head: id(head), ancestry, signed: None };
            let following = world.following(ancestry, head, Trigger::Poll);
            world.state.accept(fetched, &following, now)
        })
    }

    /// Decides as the fetcher does.
    pub(super) fn decide<D>(
        &mut self,
        mut decide: impl FnMut(&mut Self, &KnownAncestry) -> D,
    ) -> D {
        let (commits, reads) = (self.commits.clone(), Cell::new(0));
        let mut known = std::mem::take(&mut self.known);
        let read = |pair| {
            reads.set(reads.get() + 1);
            commits.read(pair)
        };
        let decision = decide_by_history(&mut known, read, || true, |it| decide(self, it));
        self.known = known;
        self.reads += reads.get();
        decision
    }

    fn following<'c>(
        &self,
        ancestry: &'c KnownAncestry,
        head: char,
        trigger: Trigger,
    ) -> Following<'c> {
        let live = self.state.live();
        let pinned_late = self.state.pinned().filter(|it| live != Some(*it));
        Following {
            began: self.state.published(),
            head: id(head),
            trigger,
            ancestry,
            live_last: self.journal.live(),
            followed_last: self.journal.followed(),
            accepted: self.journal.accepted(),
            resumed_at: self.journal.resumed_at(),
            pinned_late,
            has_new_verdict: false,
        }
    }

    /// A webhook announces a commit.
    pub(super) fn announce(&mut self, commit: char) {
        let now = self.now();
        let was_head = self.journal.was_seen(id(commit));
        self.state.expect_commit(id(commit), was_head, now);
    }

    pub(super) fn fail_fetch(&mut self) {
        self.state.fetch_began(self.now());
        self.state.fetch_ended();
        let (failure, message) = (FetchFailure::ConnectFailed, "connection refused".to_owned());
        self.state.fetch_failed(&FetchError { failure, message });
    }

    /// The builder takes what waits.
    pub(super) fn build(&mut self) {
        let Some(job) = self.state.take_build() else { return };
        self.finish_build(job);
    }

    /// The builder takes what waits, and cannot read it.
    pub(super) fn misread(&mut self) {
        let Some(job) = self.state.take_build() else { return };
        let failed = FailedCommit::as_a_whole(job.commit, Stage::Load, &"it cannot be read");
        self.state.build_failed(failed, Reason::CorruptObjects);
    }

    /// The builder is done with a commit.
    pub(super) fn finish_build(&mut self, job: BuildJob) {
        let commit = name(job.commit);
        if commit.is_lowercase() {
            self.activate(commit, Cause::Followed(job.trigger)).ok();
            return;
        }
        let failed = FailedCommit::as_a_whole(job.commit, Stage::Check, &"it is not valid");
        self.state.build_failed(failed, Reason::ValidationFailed);
        if self.state.falls_back(job.commit) {
            let mut behind = self.commits.parent(commit);
            while let Some(older) = behind.filter(|it| self.answers != Some(*it)) {
                if older.is_lowercase() {
                    self.activate(older, Cause::Fallback(job.commit)).ok();
                    return;
                }
                behind = self.commits.parent(older);
            }
        }
    }

    pub(super) fn activate(&mut self, commit: char, cause: Cause) -> Result<(), Withheld> {
        let now = self.now();
        self.state.may_activate(id(commit), cause, now)?;
        if self.journal.live() != Some(id(commit)) {
            let event = Event::Activated { commit: id(commit), trigger: cause.trigger() };
            self.journal.append(event, now).unwrap();
        }
        self.answers = Some(commit);
        let active = ActiveCommit {
            commit: id(commit),
            author: "a".to_owned(),
            time: now.wall,
            subject: "s".to_owned(),
            activated_at: now.wall,
            groups: 1,
            trigger: cause.trigger(),
        };
        self.state.activated(id(commit), Some(active), None);
        Ok(())
    }

    pub(super) fn pin(&mut self, commit: char) {
        self.journal
            .append(Event::Pinned { commit: id(commit), by: Attribution::default() }, self.now())
            .unwrap();
        let pin = self.journal.pinned().unwrap();
        self.state.pin_now(pin, self.now());
        self.activate(commit, Cause::Pinned).unwrap();
    }

    pub(super) fn resume(&mut self) {
        let accepts = self.state.head();
        self.journal
            .append(Event::Resumed { by: Attribution::default(), accepts }, self.now())
            .unwrap();
        self.state.resumed(self.now());
    }

    /// A write was pushed; the remote has it.
    pub(super) fn push(&mut self, commit: char) -> Result<(), Withheld> {
        let now = self.now();
        let before = self.state.head();
        let pushed = self.decide(|world, known| world.state.pushed(id(commit), known, now))?;
        if self.state.head() != before {
            self.seen = Some(self.passed);
        }
        match pushed {
            Pushed::IsLive => Ok(()),
            Pushed::MayActivate => self.activate(commit, Cause::Written),
        }
    }

    /// The daemon is killed and starts again, with its journal and its mirror.
    pub(super) fn restart(&mut self) {
        let now = self.now();
        self.state = ReconcileState::new(self.policy, SourceKind::Remote, now);
        self.known.clear();
        self.answers = None;
        if let Some(seen) = self.seen {
            self.state.recovered_contact(Timestamp::UNIX_EPOCH + seen, now);
        }
        let pin = self.journal.pinned();
        let pinned = pin.as_ref().map(|it| it.commit);
        self.state.set_pinned(pin);
        if let Some(last) = pinned.or_else(|| self.journal.live()) {
            self.activate(name(last), Cause::Recovered).unwrap();
        }
        if let Some(head) = self.mirror {
            let fetched_at = self.state.last_contact_time().unwrap();
            let observed = ObservedCommit { commit: id(head), fetched_at };
            let accepted = self.decide(|world, ancestry| {
                let following = world.following(ancestry, head, Trigger::Startup);
                world.state.accept_recovered(observed, &following, now)
            });
            accepted.unwrap();
        }
    }

    /// Returns for how long the branch was not seen.
    pub(super) fn unseen(&self) -> Option<Duration> {
        self.seen.map(|seen| self.passed.saturating_sub(seen))
    }

    /// Returns the conditions beside `Ready`.
    pub(super) fn conditions(&mut self) -> Vec<ConditionKind> {
        let now = self.now();
        let all = self.state.conditions(now);
        all.iter().map(|it| it.kind).filter(|it| *it != ConditionKind::Ready).collect()
    }
}
