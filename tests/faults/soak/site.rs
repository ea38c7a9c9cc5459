//! The repository with its remote, and the daemon with its lives.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::fleet::{CHANGED, changed};
use super::histogram::Histogram;
use super::plan::{Ending, Event, Plan};
use super::tally::{Needs, Tally};
use crate::hub::Hub;
use crate::program::Daemon;

/// How long requests may fail after a restart or after the remote is back.
const RECOVERY: Duration = Duration::from_secs(10);

/// How long a commit may take until it is live, at the end of the run.
const TIMEOUT: Duration = Duration::from_mins(2);

/// How many commits are kept for diffs.
const RECENT: usize = 5;

/// A commit that changed the group of a digit and nothing else.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) parent: String,
    pub(super) commit: String,
    pub(super) digit: u64,
}

/// What the other threads see of the site.
pub(super) struct Site<'a> {
    pub(super) plan: &'a Plan,
    pub(super) tally: &'a Tally,
    pub(super) address: String,
    pub(super) data: PathBuf,
    pub(super) repository: PathBuf,
    /// The process that runs, or 0.
    pid: AtomicU32,
    /// How many processes there were before it.
    life: AtomicU32,
    changes: Mutex<VecDeque<Change>>,
    /// How long pages took.
    pub(super) page_times: Mutex<Histogram>,
    /// How long diffs took.
    pub(super) diff_times: Mutex<Histogram>,
}

impl<'a> Site<'a> {
    pub(super) fn new(plan: &'a Plan, tally: &'a Tally, hub: &Hub) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self {
            plan,
            tally,
            address: format!("127.0.0.1:{port}"),
            data: hub.directory.path().join("data"),
            repository: hub.path(),
            pid: AtomicU32::new(0),
            life: AtomicU32::new(0),
            changes: Mutex::default(),
            page_times: Mutex::new(Histogram::new()),
            diff_times: Mutex::new(Histogram::new()),
        }
    }

    /// Returns the process that runs and the number of its life.
    pub(super) fn process(&self) -> Option<(u32, u32)> {
        let pid = self.pid.load(Ordering::SeqCst);
        (pid != 0).then(|| (pid, self.life.load(Ordering::SeqCst)))
    }

    /// Returns one of the last changes.
    pub(super) fn change(&self, turn: usize) -> Option<Change> {
        let changes = self.changes.lock().unwrap();
        changes.get(turn % changes.len().max(1)).cloned()
    }

    pub(super) fn is_over(&self) -> bool {
        self.tally.elapsed() >= self.plan.time
    }

    /// Sleeps, but not beyond the end.
    pub(super) fn sleep(&self, time: Duration) {
        std::thread::sleep(time.min(self.plan.time.saturating_sub(self.tally.elapsed())));
    }
}

/// Makes events happen; it owns the daemon.
pub(super) struct Conductor<'a> {
    site: &'a Site<'a>,
    hub: &'a Hub,
    /// What the daemon follows: a link to the hub, which is gone while the remote is out of reach.
    remote: PathBuf,
    daemon: Option<Daemon>,
    commits: u64,
    /// The last commit, which the daemon may not have fetched yet.
    last: Option<Change>,
}

impl<'a> Conductor<'a> {
    pub(super) fn new(site: &'a Site<'a>, hub: &'a Hub) -> Self {
        let remote = hub.directory.path().join("remote.git");
        let mut conductor = Self { site, hub, remote, daemon: None, commits: 0, last: None };
        conductor.connect();
        conductor.start();
        conductor
    }

    /// Runs all events at their time, to the end of the plan; then the daemon must follow the branch again.
    pub(super) fn run(mut self) {
        let site = self.site;
        for (at, event) in &site.plan.events {
            std::thread::sleep(at.saturating_sub(site.tally.elapsed()));
            match event {
                Event::Commit => self.commit(),
                Event::Disconnect => self.disconnect(),
                Event::Reconnect => self.reconnect(),
                Event::Restart(ending) => self.restart(*ending),
            }
        }
        std::thread::sleep(site.plan.time.saturating_sub(site.tally.elapsed()));
        self.await_head();
        // Some still wait for an answer.
        site.tally.excuse(Needs::Daemon, Duration::from_mins(1));
        site.pid.store(0, Ordering::SeqCst);
        self.end(Ending::Sigterm);
    }

    fn start(&mut self) {
        let (remote, data) = (self.remote.to_str().unwrap(), self.site.data.to_str().unwrap());
        let daemon = Daemon::start(&[
            "--repo",
            remote,
            "--data-dir",
            data,
            "--writes",
            "commit",
            "--write-retries",
            "50",
            "--listen",
            &self.site.address,
            "--interval",
            "1s",
            "--store-max-nodes",
            "200000",
        ]);
        self.site.pid.store(daemon.id(), Ordering::SeqCst);
        self.daemon = Some(daemon);
    }

    fn restart(&mut self, ending: Ending) {
        let tally = self.site.tally;
        tally.excuse(Needs::Daemon, Duration::from_mins(2));
        self.site.pid.store(0, Ordering::SeqCst);
        self.end(ending);
        self.site.life.fetch_add(1, Ordering::SeqCst);
        self.start();
        tally.excuse(Needs::Daemon, RECOVERY);
        tally.count("restarts");
    }

    fn end(&mut self, ending: Ending) {
        let Some(daemon) = self.daemon.take() else { return };
        match ending {
            Ending::Kill => daemon.kill(),
            Ending::Sigterm => match daemon.terminate() {
                0 => {}
                status => self.site.tally.broken(format!("SIGTERM ended with status {status}")),
            },
        }
    }

    fn commit(&mut self) {
        self.commits += 1;
        let digit = self.commits % CHANGED;
        let (path, text) = changed(digit, self.commits);
        let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
        // A write may be faster.
        for _ in 0..20 {
            let pushed = self.hub.try_commit_as(&ada, "Change", &[(&path, &text)]);
            let Ok(commit) = pushed else { continue };
            let parent = self.hub.inner.find_commit(commit.parse().unwrap()).unwrap();
            let parent = parent.parent_id(0).unwrap().to_string();
            self.publish_last();
            self.last = Some(Change { parent, commit, digit });
            self.site.tally.count("commits");
            return;
        }
        self.site.tally.broken("20 commits lost the race with writes".to_owned());
    }

    /// Shows the last commit to the others, if the daemon knows it.
    fn publish_last(&mut self) {
        let (Some(last), Some(daemon)) = (self.last.take(), &self.daemon) else { return };
        let path = format!("/controller/commits/{}", last.commit);
        if daemon.try_request("GET", &path, "") != Some(200) {
            return;
        }
        let mut changes = self.site.changes.lock().unwrap();
        changes.push_back(last);
        if changes.len() > RECENT {
            changes.pop_front();
        }
    }

    fn connect(&self) {
        std::os::unix::fs::symlink(self.hub.path(), &self.remote).unwrap();
    }

    fn disconnect(&self) {
        self.site.tally.excuse(Needs::Remote, self.site.plan.time);
        std::fs::remove_file(&self.remote).unwrap();
        self.site.tally.count("times without the remote");
    }

    fn reconnect(&self) {
        let deadline = Instant::now() + RECOVERY;
        // A daemon that has just started fetches first.
        while !self.has_condition("FetchFailed") {
            if Instant::now() > deadline {
                self.site.tally.broken("a failed fetch was not reported".to_owned());
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        self.connect();
        self.site.tally.excuse(Needs::Remote, RECOVERY * 3);
    }

    fn has_condition(&self, kind: &str) -> bool {
        let status = self.status();
        let conditions = status["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|it| it["type"] == kind))
    }

    /// Waits until the head of the branch is live.
    fn await_head(&self) {
        let head = self.hub.head_id();
        let deadline = Instant::now() + TIMEOUT;
        while self.status()["active"]["commit"] != head.as_str() {
            if Instant::now() > deadline {
                let status = self.status();
                self.site.tally.broken(format!("the head {head} is not live at the end: {status}"));
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn status(&self) -> serde_json::Value {
        let daemon = self.daemon.as_ref().unwrap();
        daemon.get("/controller/status").json()
    }
}
