//! The world around one daemon, and what it must remember of what it was told.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::daemon::{self, Daemon};
use super::disk::SimulatedDisk;
use super::kill::{Fuse, until_killed};
use super::remote::SimulatedRemote;
use crate::git::Repository;
use crate::model::CommitId;
use crate::reconcile::clock::{Now, simulate};
use crate::reconcile::policy::{OnRewrite, Policy};
use crate::reconcile::shared_state::instead_of_waiting;

/// A defect of the past, put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    /// A pin was acknowledged although the disk did not take its record.
    LostPin,
    /// A write that was pushed went live although an operator pinned a commit meanwhile.
    PinDuringWrite,
    /// `?at=` went by the times of the records, whatever the clock had done.
    ClockJump,
}

impl Defect {
    pub(super) const ALL: [Self; 3] = [Self::LostPin, Self::PinDuringWrite, Self::ClockJump];

    /// Returns words of the promise that it breaks.
    pub(super) fn promise(self) -> &'static str {
        match self {
            Self::LostPin => "survives",
            Self::PinDuringWrite => "a pin holds",
            Self::ClockJump => "was live at",
        }
    }
}

/// A commit of the world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) parent: Option<CommitId>,
    pub(super) is_valid: bool,
    /// The write that made it.
    pub(super) write: Option<u32>,
}

/// A time that the clock showed, and the commit that was live.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) live: Option<CommitId>,
}

/// A write whose client does not know what became of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenWrite {
    pub(super) number: u32,
    pub(super) since: Now,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct World {
    pub(super) random: fastrand::Rng,
    pub(super) defect: Option<Defect>,
    pub(super) repository: Repository,
    pub(super) remote: SimulatedRemote,
    pub(super) disk: SimulatedDisk,
    pub(super) fuse: Fuse,
    pub(super) policy: Policy,
    pub(super) daemon: Option<Daemon>,
    pub(super) now: Now,
    pub(super) log: Vec<String>,
    pub(super) commits: HashMap<CommitId, Made>,
    pub(super) made: u32,
    pub(super) writes: u32,
    /// The heads that were fetched.
    pub(super) fetched: Vec<CommitId>,
    pub(super) open_writes: Vec<OpenWrite>,
    /// What the operator was told.
    pub(super) pinned: Option<CommitId>,
    /// What was live at the last check.
    pub(super) live: Option<CommitId>,
    pub(super) ever_live: HashSet<CommitId>,
    /// Whether an operator allowed to leave the history of the live commit.
    pub(super) may_leave: bool,
    /// What the operator asked for when the daemon was killed: it may have happened.
    pub(super) in_doubt: Vec<Option<CommitId>>,
    /// Whether records may be in memory alone.
    pub(super) unsaved: bool,
    /// Whether the journal was deleted and is not written again yet.
    pub(super) lost_journal: bool,
    /// Whether records of before the last kill may be missing.
    pub(super) lost_records: bool,
    pub(super) shown: Vec<Shown>,
    pub(super) broken: Option<String>,
    _directory: tempfile::TempDir,
}

impl World {
    pub(super) fn new(seed: u64, defect: Option<Defect>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = tempfile::Builder::new();
        // In memory where that is possible: a world makes thousands of files.
        let directory = directory.tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let first = daemon::create_repository(directory.path());
        let fuse = Fuse::default();
        let remote = SimulatedRemote::new(directory.path().to_owned(), fuse.clone());
        remote.set_head(first);
        let on_rewrite = if random.bool() { OnRewrite::Follow } else { OnRewrite::Hold };
        let mut now = Now::read();
        now.wall = Timestamp::from_second(1_800_000_000).unwrap();
        let made = Made { parent: None, is_valid: true, write: None };
        let mut world = Self {
            random,
            defect,
            repository: Repository::discover(directory.path()).unwrap(),
            remote,
            disk: SimulatedDisk::new(fuse.clone()),
            fuse,
            policy: Policy { on_rewrite, ..Policy::default() },
            daemon: None,
            now,
            log: Vec::new(),
            commits: HashMap::from([(first, made)]),
            made: 0,
            writes: 0,
            fetched: Vec::new(),
            open_writes: Vec::new(),
            pinned: None,
            live: None,
            ever_live: HashSet::new(),
            may_leave: false,
            in_doubt: Vec::new(),
            unsaved: false,
            lost_journal: false,
            lost_records: false,
            shown: Vec::new(),
            broken: None,
            _directory: directory,
        };
        world.start();
        world
    }

    /// Does something as the daemon; none if it is killed meanwhile.
    pub(super) fn as_daemon<T>(&mut self, act: impl FnOnce(&Daemon) -> T) -> Option<T> {
        let daemon = self.daemon.take()?;
        let clock = simulate(self.now);
        let stages = Arc::clone(&daemon.stages);
        // A writer waits for the builder.
        instead_of_waiting(Some(Rc::new(move || {
            while stages.state.lock().has_pending() {
                stages.builder.build_candidate();
            }
        })));
        let done = until_killed(|| act(&daemon));
        instead_of_waiting(None);
        drop(clock);
        SimulatedRemote::during_push(None);
        SimulatedRemote::before_opening(None);
        match done {
            Ok(done) => {
                self.daemon = Some(daemon);
                Some(done)
            }
            Err(_) => {
                self.log.push("  … and is killed in it".to_owned());
                drop(daemon);
                None
            }
        }
    }

    /// Starts the daemon; a disk that does not let it start is mended.
    pub(super) fn start(&mut self) {
        self.fuse.put_out();
        let clock = simulate(self.now);
        let started = Daemon::start(&self.disk, &self.remote, self.policy).or_else(|error| {
            assert!(!self.disk.is_whole(), "the daemon does not start: {error}");
            self.log.push(format!("it cannot start ({error}), so the disk is mended"));
            self.disk.set_room(None);
            self.disk.set_failing(false);
            Daemon::start(&self.disk, &self.remote, self.policy)
        });
        drop(clock);
        self.daemon = Some(started.unwrap());
    }

    /// Time passes, with the commit live that is.
    pub(super) fn pass(&mut self, time: Duration) {
        let from = self.now.wall;
        self.now = self.now.later(time);
        let (to, live) = (self.now.wall, self.live);
        self.shown.push(Shown { from, to, live });
    }

    pub(super) fn contains(&self, ancestor: CommitId, of: CommitId) -> bool {
        let mut next = Some(of);
        while let Some(commit) = next {
            if commit == ancestor {
                return true;
            }
            next = self.commits.get(&commit).and_then(|it| it.parent);
        }
        false
    }

    /// Notes the commits that a write left at the remote; returns them.
    pub(super) fn note_written(&mut self, write: u32) -> Vec<CommitId> {
        let mut fresh = Vec::new();
        let mut next = self.remote.head();
        while let Some(commit) = next.filter(|it| !self.commits.contains_key(it)) {
            let parent = self.repository.parents(commit).unwrap().first().copied();
            fresh.push(commit);
            next = parent;
            let made = Made { parent, is_valid: true, write: Some(write) };
            self.commits.insert(commit, made);
        }
        fresh
    }

    /// Notes the first promise that was broken.
    pub(super) fn break_promise(&mut self, what: &str) {
        let log = self.log.join("\n");
        self.broken.get_or_insert_with(|| format!("{what}\n{log}"));
    }
}
