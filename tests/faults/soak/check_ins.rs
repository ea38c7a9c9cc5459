//! The fleet checks in: each node in its turn, at an even pace, over a few connections.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::fleet::Fleet;
use super::histogram::Histogram;
use super::oracle::{Given, Oracle};
use super::plan::Plan;
use super::tally::{Needs, Tally};

/// How many connections there are.
pub(super) const CONNECTIONS: u32 = 8;

/// Requests that are this late are not made up for: a daemon that was away is not flooded.
const LATE: Duration = Duration::from_secs(1);

pub(super) struct CheckIns<'a> {
    pub(super) plan: &'a Plan,
    pub(super) fleet: &'a Fleet,
    pub(super) oracle: &'a Oracle<'a>,
    pub(super) tally: &'a Tally,
    pub(super) address: &'a str,
    /// The times since the last sample.
    pub(super) times: &'a Mutex<Histogram>,
    next: AtomicU32,
}

impl<'a> CheckIns<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        fleet: &'a Fleet,
        oracle: &'a Oracle<'a>,
        tally: &'a Tally,
        address: &'a str,
        times: &'a Mutex<Histogram>,
    ) -> Self {
        Self { plan, fleet, oracle, tally, address, times, next: AtomicU32::new(0) }
    }

    /// Sends requests over one connection until the end; a request is timed from its first byte to the answer's last.
    pub(super) fn run(&self, given: &SyncSender<Given>) {
        let mut connection = Connection::new(self.address);
        let pause = Duration::from_secs(1) * CONNECTIONS / self.plan.pace;
        let mut due = Instant::now();
        while self.tally.elapsed() < self.plan.time {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            due = (due + pause).max(Instant::now().checked_sub(LATE).unwrap_or(due));
            let turn = self.next.fetch_add(1, Ordering::Relaxed);
            let (number, round) = (turn % self.plan.names, turn / self.plan.names);
            self.check_in(&mut connection, number, round, given);
        }
    }

    fn check_in(
        &self,
        connection: &mut Connection<'_>,
        number: u32,
        round: u32,
        given: &SyncSender<Given>,
    ) {
        let path = format!("/v1/classified/nodes/{}", self.fleet.name(number));
        let body = self.fleet.body(number, round);
        let before = self.oracle.newest();
        let began = Instant::now();
        match connection.post(&path, &body) {
            Ok(answer) if !answer.commit.is_empty() => {
                let micros = u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX);
                self.times.lock().unwrap().note(micros);
                self.tally.count("check-ins");
                let (commit, status, body) = (answer.commit, answer.status, answer.body);
                let given_answer = Given { number, round, commit, status, body, before };
                // Checking yields to pace: where the processors are busy, a sample is checked.
                given.try_send(given_answer).ok();
            }
            Ok(answer) => {
                let what = format!("{path}: {} {}", answer.status, answer.body);
                self.tally.failed(Needs::Daemon, &what);
            }
            Err(why) => {
                self.tally.failed(Needs::Daemon, &why);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}
