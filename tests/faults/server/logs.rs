//! What becomes of the log.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::Seen;
use crate::program::{Daemon, GitRepository, clade};

fn repository() -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    repository
}

/// Stops a daemon at the end, also when the test panics.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(super) fn unread() -> Seen {
    let repository = repository();
    let path = repository.text_path();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = clade(&["serve", "--listen", &free.to_string(), "--repo", &path]);
    command.args(["--log", "debug"]).stderr(Stdio::piped());
    let mut child = Stopped(command.spawn().unwrap());
    let daemon = Daemon::at(&free.to_string());
    let mut lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("listening on") {}
    let mut slowest = Duration::ZERO;
    for _ in 0..3000 {
        let began = Instant::now();
        assert_eq!(daemon.get("/livez").status, 200);
        slowest = slowest.max(began.elapsed());
    }
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    daemon.wait_until("the metric shows it", |it| {
        let metrics = it.get("/metrics").body;
        let line =
            metrics.lines().find(|it| it.starts_with("clade_log_lines_dropped_total ")).unwrap();
        line != "clade_log_lines_dropped_total 0"
    });
    // When it is read again, it says how much is missing.
    while !lines.next().unwrap().unwrap().contains("lines of the log were dropped") {}
    Seen::Held(format!("the slowest of 3,000 answers took {} ms", slowest.as_millis()))
}

pub(super) fn level() -> Seen {
    let repository = repository();
    let directory = tempfile::tempdir().unwrap();
    let (settings, log) = (directory.path().join("clade.yaml"), directory.path().join("log"));
    std::fs::write(&settings, "log: info\n").unwrap();
    let path = repository.text_path();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = clade(&["serve", "--listen", &free.to_string(), "--repo", &path]);
    command.args(["--config", settings.to_str().unwrap()]).stderr(File::create(&log).unwrap());
    let child = Stopped(command.spawn().unwrap());
    let daemon = Daemon::at(&free.to_string());
    let says = |what: &str| std::fs::read_to_string(&log).unwrap().contains(what);
    daemon.wait_until("it listens", |_| says("listening on"));
    daemon.get("/livez");
    std::fs::write(&settings, "log: debug\ninterval: 7s\n").unwrap();
    let id = child.0.id().to_string();
    assert!(std::process::Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    daemon.wait_until("requests are logged", |it| it.get("/livez").status == 200 && says("/livez"));
    assert!(says("changed settings need a restart: interval"));
    // What the daemon was started with needs none, and what was changed before still does.
    let hangup = |text: &str, wanted: &str| {
        let from = std::fs::read_to_string(&log).unwrap().len();
        std::fs::write(&settings, text).unwrap();
        assert!(std::process::Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
        // The end of the reload before may be written late.
        let new = || {
            let mut text = std::fs::read_to_string(&log).unwrap().split_off(from);
            text.find("reloading at SIGHUP").map(|at| text.split_off(at)).unwrap_or_default()
        };
        daemon.wait_until("it is reloaded", |_| new().contains("reloaded at SIGHUP"));
        assert!(new().contains(wanted) || wanted.is_empty(), "{wanted}: {}", new());
        new()
    };
    let said = hangup("log: info\ninterval: 30s\n", "");
    assert!(!said.contains("need a restart") && !said.contains("but for what failed"), "{said}");
    hangup("interval: 7s\n", "changed settings need a restart: interval");
    hangup("interval: 7s\nlog: info\n", "changed settings need a restart: interval");
    let secret = |password: &str| format!("git-proxy: http://u:{password}@127.0.0.1:1\n");
    let said = hangup(&secret("hunter2"), "changed settings need a restart: git-proxy");
    assert!(!said.contains("hunter2"), "{said}");
    hangup("interval: [\n", "reloaded at SIGHUP, but for what failed");
    Seen::Held("requests are logged from SIGHUP on".to_owned())
}
