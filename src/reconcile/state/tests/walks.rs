//! Random walks through pushes, rewinds, bad commits, pins, writes, clock jumps and kills; the promises
//! of the loop are checked after every step.

use std::time::Duration;

use super::world::{Commits, World, name};
use crate::reconcile::journal::Event;
use crate::reconcile::policy::{OnRewrite, Policy};
use crate::reconcile::status::ConditionKind;

const WALKS: u64 = 4_000;
const STEPS: usize = 40;
const INTERVAL: Duration = Duration::from_secs(30);

struct Walk {
    random: fastrand::Rng,
    world: World,
    on_rewrite: OnRewrite,
    /// What the remote shows.
    remote: Option<char>,
    made: u8,
    pinned: Option<char>,
    /// Whether an operator allowed to leave the history of what answers.
    may_leave: bool,
    log: Vec<String>,
}

#[test]
fn random_walks_keep_the_promises() {
    for seed in 0..WALKS {
        let mut walk = Walk::new(seed);
        for _ in 0..STEPS {
            let before = walk.world.answers;
            let step = walk.step();
            walk.log.push(step);
            walk.check(before, seed);
        }
        walk.settle(seed);
    }
}

impl Walk {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let on_rewrite = if random.bool() { OnRewrite::Follow } else { OnRewrite::Hold };
        let world = World::new(Commits::default(), Policy { on_rewrite, ..Policy::default() });
        let (remote, pinned) = (None, None);
        Self {
            random,
            world,
            on_rewrite,
            remote,
            made: 0,
            pinned,
            may_leave: false,
            log: Vec::new(),
        }
    }

    /// Makes a commit: mostly on the head, now and then on an older one, one in four not valid.
    fn make(&mut self, on: Option<char>, is_valid: bool) -> Option<char> {
        let letter = char::from(b'a' + self.made);
        if self.made == 26 {
            return None;
        }
        self.made += 1;
        let made = if is_valid { letter } else { letter.to_ascii_uppercase() };
        self.world.commits.add(made, on);
        Some(made)
    }

    /// Has the builder take what waits, which now and then cannot be read.
    fn build(&mut self) -> String {
        if self.random.u8(..8) == 0 {
            self.world.misread();
            return "cannot be read".to_owned();
        }
        self.world.build();
        "build".to_owned()
    }

    fn older(&mut self) -> Option<char> {
        let mut older = self.remote;
        for _ in 0..self.random.u8(..4) {
            older = older.and_then(|it| self.world.commits.parent(it)).or(older);
        }
        older
    }

    fn step(&mut self) -> String {
        match self.random.u8(..16) {
            0..=2 => {
                let is_valid = self.random.u8(..4) > 0;
                self.remote = self.make(self.remote, is_valid).or(self.remote);
                format!("commit {:?}", self.remote)
            }
            3 => {
                let on = self.older();
                self.remote = self.make(on, true).or(self.remote);
                format!("rewrite to {:?}", self.remote)
            }
            4 => {
                self.remote = self.older();
                format!("rewind to {:?}", self.remote)
            }
            5..=7 => match self.remote {
                Some(head) => {
                    self.world.fetch(head);
                    format!("fetch {head}")
                }
                None => "nothing to fetch".to_owned(),
            },
            8..=10 => self.build(),
            11 => {
                self.world.fail_fetch();
                "fetch fails".to_owned()
            }
            12 => match self.older().filter(char::is_ascii_lowercase) {
                // Only what was fetched can be pinned.
                Some(commit) if self.was_fetched(commit) => {
                    self.world.pin(commit);
                    self.pinned = Some(commit);
                    self.may_leave = true;
                    format!("pin {commit}")
                }
                _ => "nothing to pin".to_owned(),
            },
            13 => {
                self.world.resume();
                self.pinned = None;
                self.may_leave = true;
                "resume".to_owned()
            }
            14 if self.random.bool() => {
                self.world.restart();
                "restart".to_owned()
            }
            14 => {
                let seconds = self.random.u64(..60);
                self.world.pass(Duration::from_secs(seconds));
                format!("{seconds} s pass")
            }
            _ => self.write(),
        }
    }

    fn was_fetched(&self, commit: char) -> bool {
        let mut heads = self.world.journal.records().iter().filter_map(|it| match it.event {
            Event::Fetched { commit } | Event::Activated { commit, .. } => Some(name(commit)),
            _ => None,
        });
        heads.any(|head| self.world.commits.contains(commit, head))
    }

    /// A write is applied to the head that was fetched last, if the remote is still there.
    fn write(&mut self) -> String {
        // The writer waits for what is on its way.
        self.world.build();
        let tip = self.world.state.head().map(name);
        let state = &self.world.state;
        let is_blocked =
            state.pinned().is_some() || state.held().is_some() || state.unread().is_some();
        let Some(tip) = tip.filter(|it| self.remote == Some(*it) && it.is_lowercase()) else {
            return "no write".to_owned();
        };
        if is_blocked {
            return "a write is refused".to_owned();
        }
        let Some(made) = self.make(Some(tip), true) else { return "no write".to_owned() };
        self.remote = Some(made);
        let done = match self.random.u8(..4) {
            // An operator pins what answers while the write is pushed.
            0 if let Some(answers) = self.world.answers => {
                self.world.pin(answers);
                (self.pinned, self.may_leave) = (Some(answers), true);
                self.world.push(made)
            }
            // The branch is fetched while the remote finishes the push.
            1 => {
                self.world.fetch(made);
                self.world.build();
                self.world.push(made)
            }
            _ => self.world.push(made),
        };
        format!("write {made} on {tip}: {done:?}")
    }

    fn check(&mut self, before: Option<char>, seed: u64) {
        let answers = self.world.answers;
        let log = self.log.join("\n");
        assert!(answers.is_none_or(char::is_lowercase), "{answers:?}, seed {seed}:\n{log}");
        let of_state = self.world.state.live().map(name);
        assert_eq!(of_state, answers, "seed {seed}:\n{log}");
        assert_eq!(self.world.state.pinned().map(name), self.pinned, "seed {seed}:\n{log}");
        if self.pinned.is_some() {
            assert_eq!(answers, self.pinned, "a pin holds, seed {seed}:\n{log}");
        }
        if let Some(unseen) = self.world.unseen() {
            let staleness = self.world.state.staleness(self.world.now());
            assert_eq!(staleness, unseen, "an age goes on, seed {seed}:\n{log}");
        }
        assert!(before.is_none() || answers.is_some(), "answers are lost, seed {seed}:\n{log}");
        if let (Some(from), Some(to)) = (before, answers)
            && from != to
        {
            let goes_on = self.world.commits.contains(from, to);
            let is_free = self.on_rewrite == OnRewrite::Follow || self.may_leave;
            assert!(goes_on || is_free, "{from} to {to}, seed {seed}:\n{log}");
            self.may_leave = self.pinned.is_some();
        }
    }

    /// With the remote back, time and builds, the branch is followed, or it is said why not.
    fn settle(&mut self, seed: u64) {
        let Some(head) = self.remote else { return };
        for _ in 0..3 {
            self.world.fetch(head);
            self.world.build();
            self.world.pass(Duration::from_secs(31));
        }
        let log = self.log.join("\n");
        let lags = self.world.conditions().contains(&ConditionKind::RemoteBehind);
        assert!(!lags, "a grace ends once, seed {seed}:\n{log}");
        let now = self.world.now();
        let (wait, _) = self.world.state.next_fetch(INTERVAL, 0.5, now);
        assert_eq!(wait, INTERVAL, "the remote gets a pause, seed {seed}:\n{log}");
        let (answers, held) = (self.world.answers, self.world.state.held().map(name));
        if self.pinned.is_some() {
            assert_eq!(answers, self.pinned, "seed {seed}:\n{log}");
        } else if head.is_lowercase() {
            let is_held = self.on_rewrite == OnRewrite::Hold && held == Some(head);
            assert!(
                answers == Some(head) || is_held,
                "{head}: {answers:?} {held:?}, seed {seed}:\n{log}"
            );
        } else {
            assert_ne!(answers, Some(head));
            assert!(!self.world.conditions().is_empty(), "seed {seed}:\n{log}");
        }
    }
}
