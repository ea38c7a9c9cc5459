//! What must hold after every step.

use std::time::Duration;

use jiff::Timestamp;

use super::world::{Defect, Shown, World};
use crate::model::CommitId;
use crate::reconcile::journal::Event;
use crate::reconcile::policy::OnRewrite;
use crate::reconcile::status::ConditionKind;

impl World {
    /// Returns the commit that is live now.
    pub(super) fn daemon_live(&self) -> Option<CommitId> {
        self.daemon.as_ref()?.stages.live.commit()
    }

    /// Checks the promises.
    pub(super) fn check(&mut self) -> Result<(), String> {
        let live = self.daemon_live();
        self.check_live(live);
        self.check_times(live);
        self.check_writes();
        if self.live != live {
            self.log.push(format!("  … {live:?} is live"));
        }
        self.live = live;
        self.ever_live.extend(live);
        self.lost_records = false;
        self.broken.take().map_or(Ok(()), Err)
    }

    fn check_live(&mut self, live: Option<CommitId>) {
        if let Some(commit) = live.filter(|it| !self.commits[it].is_valid) {
            self.break_promise(&format!("{commit} is not valid and is live"));
        }
        if self.pinned.is_some() && live != self.pinned {
            let pinned = self.pinned;
            self.break_promise(&format!("a pin holds: {pinned:?} is pinned, {live:?} is live"));
        }
        let (of_state, pinned) = {
            let state = self.daemon.as_ref().unwrap().stages.state.lock();
            (state.live(), state.pinned())
        };
        if of_state != live || pinned != self.pinned {
            let expected = self.pinned;
            self.break_promise(&format!(
                "the state has {of_state:?} live and {pinned:?} pinned: it is {live:?} and {expected:?}"
            ));
        }
        if self.live.is_some() && live.is_none() {
            self.break_promise("answers go on: nothing is live");
        }
        if let (Some(from), Some(to)) = (self.live, live)
            && from != to
        {
            let is_free = self.policy.on_rewrite == OnRewrite::Follow || self.may_leave;
            let is_former = self.lost_records && self.ever_live.contains(&to);
            if !self.contains(from, to) && !is_free && !is_former {
                self.break_promise(&format!("a rewrite is held: {from} was live, {to} is"));
            }
            self.may_leave = self.pinned.is_some() || self.lost_records;
        }
    }

    /// Compares the commit that the journal has for a time with the one that was live when the clock
    /// showed it last.
    fn check_times(&mut self, live: Option<CommitId>) {
        let wall = self.now.wall;
        self.shown.push(Shown { from: wall, to: wall, live });
        let Some(chosen) = self.random.choice(self.shown.clone()) else { return };
        let time = if self.random.bool() { chosen.from } else { chosen.to };
        let last = self.shown.iter().rev().find(|it| it.from <= time && time <= it.to);
        let expected = last.and_then(|it| it.live);
        let now = self.now;
        let found = match self.defect {
            Some(Defect::ClockJump) => self.live_by_time(time),
            _ => self.daemon.as_ref().unwrap().stages.recorder.journal().live_at(time, now),
        };
        // The journal does not know what the clock showed before the first commit was live.
        if expected.is_some() && found != expected {
            self.break_promise(&format!(
                "{expected:?} was live at {time}: the journal has {found:?}"
            ));
        }
    }

    /// Returns the newest activation that is not after a time, as the records have it.
    fn live_by_time(&self, time: Timestamp) -> Option<CommitId> {
        let journal = self.daemon.as_ref().unwrap().stages.recorder.journal();
        let of_time = journal.records().iter().filter(|it| it.time <= time);
        let activated = of_time.filter_map(|it| match it.event {
            Event::Activated { commit, .. } => Some((it.time, commit)),
            _ => None,
        });
        activated.max_by_key(|it| it.0).map(|it| it.1)
    }

    fn check_writes(&mut self) {
        let mut next = self.remote.head();
        let mut seen = std::collections::HashSet::new();
        while let Some(made) = next.map(|it| self.commits[&it]) {
            if made.write.is_some_and(|it| !seen.insert(it)) {
                self.break_promise(&format!("the write {:?} was done twice", made.write));
            }
            next = made.parent;
        }
    }

    /// Starts the daemon after a kill: what was acknowledged must be known.
    pub(super) fn restart(&mut self) {
        self.lost_records = self.unsaved || self.lost_journal;
        self.shown.clear();
        self.start();
        if self.lost_records {
            // Times, writes and activations of before may be missing: what a resume allowed may be done again.
            self.open_writes.clear();
            self.may_leave = true;
        }
        let pinned = self.daemon.as_ref().unwrap().stages.state.lock().pinned();
        let mut in_doubt = std::mem::take(&mut self.in_doubt);
        if pinned != self.pinned && !in_doubt.contains(&pinned) && !self.lost_journal {
            let acknowledged = self.pinned;
            self.break_promise(&format!(
                "what was acknowledged survives a kill: {acknowledged:?} was pinned, {pinned:?} is"
            ));
        }
        self.may_leave |= !in_doubt.is_empty() || self.lost_journal;
        if self.unsaved && (pinned != self.pinned || !in_doubt.is_empty()) {
            // The disk does not sync, so a power failure may still take the record back.
            in_doubt.push(self.pinned);
            self.in_doubt = in_doubt;
        }
        self.pinned = pinned;
        self.log.push("start".to_owned());
    }

    /// With everything back, the branch is followed, or the conditions say why not.
    pub(super) fn settle(mut self) -> Result<(), String> {
        self.mend_disk();
        self.remote.set_reachable(true);
        for _ in 0..4 {
            for line in [self.tick(), self.fetch(), self.build()] {
                self.log.push(line);
            }
            self.check()?;
            self.pass(Duration::from_secs(31));
        }
        let head = self.remote.head().unwrap();
        let (held, conditions, storage) = {
            let mut state = self.daemon.as_ref().unwrap().stages.state.lock();
            (state.held(), state.conditions(self.now), state.storage.clone())
        };
        let lags = conditions.iter().any(|it| it.kind == ConditionKind::RemoteBehind);
        let is_held = self.policy.on_rewrite == OnRewrite::Hold && held == Some(head);
        let follows = match self.commits[&head].is_valid {
            _ if self.pinned.is_some() => self.live == self.pinned,
            true => self.live == Some(head) || is_held,
            false => self.live != Some(head) && !conditions.is_empty(),
        };
        if !follows {
            let live = self.live;
            self.break_promise(&format!("the branch is at {head}, {live:?} is live"));
        }
        if lags {
            self.break_promise("the grace of a rewind ends once: the remote is said to lag");
        }
        if let Some(storage) = storage {
            self.break_promise(&format!("the disk is whole, and the status has {storage:?}"));
        }
        self.broken.take().map_or(Ok(()), Err)
    }
}
