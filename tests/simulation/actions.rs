//! What can happen in a step.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use super::daemon;
use super::remote::SimulatedRemote;
use super::world::{Defect, Made, OpenWrite, World};
use crate::model::CommitId;
use crate::reconcile::attribution::Attribution;
use crate::reconcile::journal::Event;
use crate::reconcile::trigger::Trigger;
use crate::reconcile::write::{WriteError, Written};

/// What happens while a write is pushed.
#[derive(Clone, Copy, Debug)]
enum During {
    Nothing,
    Pin,
    Fetch,
    /// Not while it is pushed, but while its base is chosen.
    EarlyFetch,
    OthersPush,
    AnswerIsLost,
}

impl World {
    /// Something happens, and after a kill the daemon starts again.
    pub(super) fn act(&mut self) {
        if self.random.u8(..8) == 0 {
            let effects = self.random.u32(1..25);
            self.fuse.light(effects);
        }
        self.unsaved |= !self.disk.is_whole();
        let line = self.choose();
        self.log.push(line);
        self.fuse.put_out();
        if self.daemon.is_none() {
            self.restart();
        }
    }

    fn choose(&mut self) -> String {
        match self.random.u8(..25) {
            0..=3 => self.others_push(),
            4 => self.rewrite(),
            5..=8 => self.fetch(),
            9..=12 => self.build(),
            13 => self.pin(),
            14 => self.resume(),
            15..=17 => self.write(),
            18 => self.damage_disk(),
            19 => self.change_remote(),
            20 => self.set_clock(),
            21 => self.kill(),
            22 => {
                let seconds = self.random.u64(..120);
                self.pass(Duration::from_secs(seconds));
                format!("{seconds} s pass")
            }
            _ => self.tick(),
        }
    }

    fn make(&mut self, parent: CommitId, is_valid: bool) -> CommitId {
        self.made += 1;
        let commit = daemon::commit(&self.repository, parent, self.made, is_valid);
        self.commits.insert(commit, Made { parent: Some(parent), is_valid, write: None });
        commit
    }

    fn others_push(&mut self) -> String {
        let (head, is_valid) = (self.remote.head().unwrap(), self.random.u8(..4) > 0);
        let commit = self.make(head, is_valid);
        self.remote.set_head(commit);
        format!("others push {} commit {commit}", if is_valid { "a valid" } else { "an invalid" })
    }

    fn rewrite(&mut self) -> String {
        let older = self.older(self.remote.head().unwrap());
        let head = if self.random.bool() { older } else { self.make(older, true) };
        self.remote.set_head(head);
        format!("others rewrite the branch to {head}")
    }

    fn older(&mut self, mut commit: CommitId) -> CommitId {
        for _ in 0..self.random.u8(1..4) {
            commit = self.commits[&commit].parent.unwrap_or(commit);
        }
        commit
    }

    pub(super) fn fetch(&mut self) -> String {
        let head = self.remote.head().unwrap();
        let fetched = self.as_daemon(|it| it.stages.fetcher.fetch(Trigger::Poll));
        if fetched.is_none() || matches!(fetched, Some(Ok(()))) {
            self.note_fetched(&[head]);
        }
        format!("fetch {head}: {fetched:?}")
    }

    pub(super) fn build(&mut self) -> String {
        self.as_daemon(|it| it.stages.builder.build_candidate());
        "build".to_owned()
    }

    fn pin(&mut self) -> String {
        let Some(commit) = self.random.choice(self.fetched.clone()) else {
            return "no pin".to_owned();
        };
        let commit = self.older(commit);
        if self.defect == Some(Defect::LostPin) {
            return self.pin_without_record();
        }
        let done = self
            .as_daemon(|it| it.stages.operator.pin(&commit.to_string(), Attribution::default()));
        match &done {
            Some(Ok(_)) => self.note_pin(Some(commit)),
            Some(Err(_)) => {}
            None => self.in_doubt.push(Some(commit)),
        }
        format!("pin {commit}: {done:?}")
    }

    fn pin_without_record(&mut self) -> String {
        let Some(commit) = self.live else { return "no pin".to_owned() };
        let done = self.as_daemon(|it| {
            it.stages.recorder.note(Event::Pinned { commit, by: Attribution::default() });
            let pin = it.stages.recorder.journal().pinned();
            it.stages.state.lock().set_pinned(pin);
        });
        match done {
            Some(()) => self.note_pin(Some(commit)),
            None => self.in_doubt.push(Some(commit)),
        }
        format!("pin {commit}, whether it is on disk or not: {done:?}")
    }

    fn note_pin(&mut self, pinned: Option<CommitId>) {
        self.in_doubt.clear();
        self.pinned = pinned;
        self.may_leave = true;
    }

    fn resume(&mut self) -> String {
        let done = self.as_daemon(|it| it.stages.operator.resume(Attribution::default()));
        match done {
            Some(Ok(())) => self.note_pin(None),
            Some(Err(_)) => {}
            None => self.in_doubt.push(None),
        }
        format!("resume: {done:?}")
    }

    fn damage_disk(&mut self) -> String {
        match self.random.u8(..6) {
            0 => {
                let room = self.random.usize(..300);
                self.disk.set_room(Some(room));
                self.unsaved = true;
                format!("the disk has room for {room} bytes")
            }
            1 => {
                self.disk.set_failing(true);
                self.unsaved = true;
                "the disk fails to sync".to_owned()
            }
            2 => {
                self.disk.delete_all();
                self.lost_journal = true;
                "the journal is deleted".to_owned()
            }
            _ => {
                self.mend_disk();
                "the disk is whole".to_owned()
            }
        }
    }

    pub(super) fn mend_disk(&mut self) {
        self.disk.set_room(None);
        self.disk.set_failing(false);
    }

    fn change_remote(&mut self) -> String {
        let is_reachable = self.random.u8(..3) > 0;
        self.remote.set_reachable(is_reachable);
        format!("the remote is {}", if is_reachable { "reachable" } else { "lost" })
    }

    fn set_clock(&mut self) -> String {
        let seconds = self.random.i64(10..200_000) * if self.random.bool() { 1 } else { -1 };
        self.now.wall += SignedDuration::from_secs(seconds);
        let line = format!("the clock is set by {seconds} s; {}", self.tick());
        if self.daemon.is_none() {
            // A clock that was set ahead while no daemon ran is not noticed: writes grow old.
            self.open_writes.clear();
        }
        line
    }

    /// What the daemon does each second.
    pub(super) fn tick(&mut self) -> String {
        let ticked = self.as_daemon(|it| it.stages.recorder.tick());
        if ticked.is_some() && self.disk.is_whole() {
            (self.unsaved, self.lost_journal) = (false, false);
            self.in_doubt.clear();
        }
        "a second of housekeeping".to_owned()
    }

    fn kill(&mut self) -> String {
        self.daemon = None;
        if self.random.u8(..3) > 0 {
            return "kill".to_owned();
        }
        self.disk.lose_power(&mut self.random);
        "the power fails".to_owned()
    }

    fn write(&mut self) -> String {
        let resent = self.random.bool().then(|| self.random.choice(self.open_writes.clone()));
        let write = resent.flatten().unwrap_or_else(|| {
            self.writes += 1;
            OpenWrite { number: self.writes, since: self.now }
        });
        let during = match self.random.u8(..8) {
            0 => During::Pin,
            1 => During::Fetch,
            2 => During::OthersPush,
            3 => During::AnswerIsLost,
            4 => During::EarlyFetch,
            _ => During::Nothing,
        };
        let expects = self.is_on_branch(write) && self.is_remembered(write);
        let (done, pinned) = self.write_during(write.number, during);
        self.remote.set_losing_answers(false);
        let line = self.judge_write(write, done, expects);
        if let Some(commit) = pinned {
            match self.daemon {
                Some(_) => self.note_pin(Some(commit)),
                None => self.in_doubt.push(Some(commit)),
            }
        }
        format!("write {} while {during:?}: {line}", write.number)
    }

    /// Writes, and returns the answer with the commit that was pinned meanwhile.
    fn write_during(
        &mut self,
        number: u32,
        during: During,
    ) -> (Option<Result<Written, WriteError>>, Option<CommitId>) {
        let pinned = Rc::new(Cell::new(None));
        let head = self.remote.head().unwrap();
        let hook: Option<Rc<dyn Fn()>> = match (during, &self.daemon, self.live) {
            (During::Pin, Some(daemon), Some(live)) => {
                let (stages, pinned) = (Arc::clone(&daemon.stages), Rc::clone(&pinned));
                let defect = self.defect;
                Some(Rc::new(move || {
                    // A kill in it leaves open whether it is pinned.
                    pinned.set(Some(live));
                    if stages.operator.pin(&live.to_string(), Attribution::default()).is_err() {
                        pinned.set(None);
                    } else if defect == Some(Defect::PinDuringWrite) {
                        stages.state.lock().set_pinned(None);
                    }
                }))
            }
            // The write fetches the branch itself before it opens anything, and one thread cannot fetch twice at once.
            (During::EarlyFetch, Some(daemon), _) if daemon.stages.state.lock().is_behind() => None,
            (During::Fetch | During::EarlyFetch, Some(daemon), _) => {
                let stages = Arc::clone(&daemon.stages);
                Some(Rc::new(move || {
                    stages.fetcher.fetch(Trigger::Poll).ok();
                }))
            }
            (During::OthersPush, ..) => {
                let other = self.make(head, true);
                let remote = self.remote.clone();
                Some(Rc::new(move || remote.set_head(other)))
            }
            (During::AnswerIsLost, ..) => {
                self.remote.set_losing_answers(true);
                None
            }
            _ => None,
        };
        match during {
            // A writer that fetches first opens the mirror in it.
            During::EarlyFetch if !self.was_fetched() => {}
            During::EarlyFetch => SimulatedRemote::before_opening(hook),
            _ => SimulatedRemote::during_push(hook),
        }
        let id = self.random.u128(..);
        let done = self.as_daemon(|it| it.write(&format!("group {number}"), id));
        (done, pinned.get())
    }

    fn was_fetched(&self) -> bool {
        let daemon = self.daemon.as_ref();
        daemon.is_some_and(|it| it.stages.state.lock().last_contact.is_some())
    }

    /// Compares the answer to a write with what is at the remote.
    fn judge_write(
        &mut self,
        write: OpenWrite,
        done: Option<Result<Written, WriteError>>,
        expects: bool,
    ) -> String {
        let fresh = self.note_written(write.number);
        self.note_fetched(&fresh);
        match done {
            None => {
                self.keep_open(write);
                format!("killed, with {fresh:?} at the remote")
            }
            Some(Ok(Written::Active { snapshot, receipt, .. })) => {
                let (commit, head) = (snapshot.commit, self.remote.head().unwrap());
                let live = self.daemon_live();
                // Also where nothing had to change: the branch is asked for it.
                let is_there = self.contains(commit, head);
                if !is_there || !live.is_some_and(|it| self.contains(commit, it)) {
                    self.break_promise(&format!(
                        "{commit} was answered and is not at the remote and live"
                    ));
                }
                let hears = self.random.bool();
                if let Some(receipt) = receipt.filter(|_| hears) {
                    receipt.note_sent();
                    self.as_daemon(|it| it.writer.run_waiting());
                    self.open_writes.retain(|it| it.number != write.number);
                } else if !hears {
                    self.keep_open(write);
                }
                format!("{commit} is live, the client {}", if hears { "hears" } else { "is gone" })
            }
            Some(Ok(other)) => format!("{other:?}"),
            Some(Err(error)) => {
                let may_be_there = matches!(
                    error,
                    WriteError::Unknown(_)
                        | WriteError::NotInEffect { .. }
                        | WriteError::Blocked(_)
                );
                if may_be_there {
                    self.keep_open(write);
                } else if !fresh.is_empty() {
                    self.break_promise(&format!("a write failed ({error}) and is at the remote"));
                }
                if expects && matches!(error, WriteError::Rejected(_) | WriteError::Invalid(_)) {
                    self.break_promise(&format!(
                        "a write that is sent again is refused: {error:?}"
                    ));
                }
                format!("{error}")
            }
        }
    }

    fn note_fetched(&mut self, commits: &[CommitId]) {
        let fresh = commits.iter().filter(|it| !self.fetched.contains(it));
        let fresh: Vec<CommitId> = fresh.copied().collect();
        self.fetched.extend(fresh);
    }

    fn keep_open(&mut self, write: OpenWrite) {
        if !self.open_writes.iter().any(|it| it.number == write.number) {
            self.open_writes.push(write);
        }
    }

    fn is_on_branch(&self, write: OpenWrite) -> bool {
        let head = self.remote.head().unwrap();
        let mut of_it = self.commits.iter().filter(|(_, it)| it.write == Some(write.number));
        of_it.any(|(commit, _)| self.contains(*commit, head))
    }

    /// Returns whether the daemon must know the write: it is not an hour old.
    fn is_remembered(&self, write: OpenWrite) -> bool {
        let is_open = self.open_writes.iter().any(|it| it.number == write.number);
        is_open && self.now.since(write.since.monotonic) < Duration::from_mins(50)
    }
}

/// A writer waits for the decision about the newest commit, and must hear of it also where the branch
/// returns to the live commit before that one is built.
#[test]
fn a_writer_goes_on_when_the_branch_returns_to_the_live_commit() {
    let mut world = World::new(1, None);
    world.others_push();
    let live = world.make(world.remote.head().unwrap(), true);
    world.remote.set_head(live);
    world.fetch();
    world.build();
    assert_eq!(world.daemon_live(), Some(live));
    let newer = world.make(live, true);
    world.remote.set_head(newer);
    world.fetch();
    let stages = Arc::clone(&world.daemon.as_ref().unwrap().stages);
    assert!(stages.state.lock().is_deciding());
    let (sender, receiver) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        sender.send("waits").unwrap();
        drop(stages.state.wait_until_idle());
        sender.send("goes on").unwrap();
    });
    assert_eq!(receiver.recv(), Ok("waits"));
    world.remote.set_head(live);
    world.fetch();
    assert_eq!(receiver.recv_timeout(Duration::from_mins(1)), Ok("goes on"));
    writer.join().unwrap();
}

/// A daemon that stops makes nothing live any more: the write of a request that is sent again is on the branch, and
/// its client may not be told that it answers.
#[test]
fn a_write_that_is_sent_again_to_a_daemon_that_stops_is_not_said_to_be_live() {
    let mut world = World::new(1, None);
    let valid = world.make(world.remote.head().unwrap(), true);
    world.remote.set_head(valid);
    world.fetch();
    world.build();
    world.remote.set_losing_answers(true);
    let lost = world.as_daemon(|it| it.write("lost", 1)).unwrap();
    assert!(matches!(lost, Err(WriteError::Unknown(_))), "{lost:?}");
    world.remote.set_losing_answers(false);
    world.fetch();
    world.daemon.as_ref().unwrap().stages.state.stop();
    let again = world.as_daemon(|it| it.write("lost", 1)).unwrap();
    assert!(matches!(again, Err(WriteError::Blocked(_))), "{again:?}");
    assert_ne!(world.daemon_live(), world.remote.head());
}
