//! What was done, what failed while it may, and what must not have happened.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many broken promises are shown.
const SHOWN: usize = 10;

/// What a request needs: the daemon alone, or the remote as well.
#[derive(Clone, Copy, Debug)]
pub(super) enum Needs {
    Daemon,
    Remote,
}

pub(super) struct Tally {
    began: Instant,
    counts: Mutex<BTreeMap<String, u64>>,
    broken: Mutex<Vec<String>>,
    /// Until when requests may fail, in ms since the start: for want of the daemon, and of the remote.
    excused: [AtomicU64; 2],
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            counts: Mutex::default(),
            broken: Mutex::default(),
            excused: Default::default(),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn count(&self, what: &str) {
        let mut counts = self.counts.lock().unwrap();
        match counts.get_mut(what) {
            Some(count) => *count += 1,
            None => {
                counts.insert(what.to_owned(), 1);
            }
        }
    }

    pub(super) fn of(&self, what: &str) -> u64 {
        self.counts.lock().unwrap().get(what).copied().unwrap_or_default()
    }

    /// Notes a promise that was broken.
    pub(super) fn broken(&self, what: String) {
        self.count("broken promises");
        let mut broken = self.broken.lock().unwrap();
        if broken.len() < SHOWN {
            let at = self.elapsed().as_secs();
            eprintln!("  after {at} s: {what}");
            broken.push(what);
        }
    }

    /// Excuses failures for a time, of what needs something.
    pub(super) fn excuse(&self, needs: Needs, time: Duration) {
        let until = self.elapsed() + time;
        let until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        self.excused[needs as usize].store(until, Ordering::SeqCst);
    }

    /// Notes a request that failed: a broken promise, unless what it needs is out of reach.
    pub(super) fn failed(&self, needs: Needs, what: &str) {
        let now = self.elapsed().as_millis();
        let is_excused = |it: Needs| now < self.excused[it as usize].load(Ordering::SeqCst).into();
        let excused = match needs {
            Needs::Daemon => is_excused(Needs::Daemon),
            Needs::Remote => is_excused(Needs::Daemon) || is_excused(Needs::Remote),
        };
        match excused {
            true => self.count("failed during a restart or without the remote"),
            false => self.broken(format!("failed: {what}")),
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.broken.lock().unwrap().is_empty()
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (what, count) in &*self.counts.lock().unwrap() {
            writeln!(f, "{count:>9} {what}")?;
        }
        for what in &*self.broken.lock().unwrap() {
            writeln!(f, "broken: {}", what.chars().take(400).collect::<String>())?;
        }
        Ok(())
    }
}
