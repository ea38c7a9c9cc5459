//! Writes to a remote whose reads lag behind its writes, as at a forge with replicas.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{Hub, ROOT, create, has_git, post};
use crate::git::server::{Server, http_backend};
use crate::program::{Daemon, Response};

/// A hub behind a server that reads from a copy of it, as long as that is wanted.
struct Lagging {
    hub: Hub,
    server: Server,
    lags: Arc<AtomicBool>,
    /// Whether the next push gets no answer.
    breaks: Arc<AtomicBool>,
    data: tempfile::TempDir,
}

impl Lagging {
    /// Returns a remote whose reads show it as it is now once it lags, and a daemon that writes to it; none without git.
    fn served(mode: &str) -> Option<(Self, Daemon)> {
        if !has_git() {
            return None;
        }
        let remote = Self::new();
        let daemon = remote.serve(mode);
        remote.stand_still();
        Some((remote, daemon))
    }

    fn new() -> Self {
        let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
        let (lags, breaks) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let server = Server::http({
            let (lags, breaks) = (Arc::clone(&lags), Arc::clone(&breaks));
            let primary = hub.path().parent().unwrap().to_owned();
            let replica = primary.join("replica");
            move |request| {
                let reads = request.target.contains("git-upload-pack");
                let lags = reads && lags.load(Ordering::SeqCst);
                let answer = http_backend(if lags { &replica } else { &primary }, request);
                let pushed = request.method == "POST" && !reads;
                if pushed && breaks.swap(false, Ordering::SeqCst) { Vec::new() } else { answer }
            }
        });
        Self { hub, server, lags, breaks, data: tempfile::tempdir().unwrap() }
    }

    /// Has reads show the hub as it is now.
    fn stand_still(&self) {
        let replica = self.hub.directory.path().join("replica");
        std::fs::create_dir(&replica).unwrap();
        let copied = Command::new("cp").arg("-r").arg(self.hub.path()).arg(&replica).status();
        assert!(copied.unwrap().success());
    }

    fn set_lagging(&self, lags: bool) {
        self.lags.store(lags, Ordering::SeqCst);
    }

    /// Has a group made by a push that gets no answer, and whose commit the remote does not show.
    fn create_unanswered(&self, daemon: &Daemon, name: &str) {
        self.set_lagging(true);
        self.breaks.store(true, Ordering::SeqCst);
        let first = post(daemon, "/v1/groups", &group(name));
        assert_eq!(kind(&first), unknown(), "{}", first.body);
    }

    fn serve(&self, mode: &str) -> Daemon {
        let url = format!("http://127.0.0.1:{}/hub.git", self.server.port);
        let data = self.data.path().to_str().unwrap();
        Daemon::start(&[
            "--repo",
            &url,
            "--data-dir",
            data,
            "--allow-insecure-remotes",
            "--git-proxy",
            "none",
            "--writes",
            mode,
            "--interval",
            "1h",
        ])
    }
}

fn group(name: &str) -> Value {
    json!({"name": name, "parent": ROOT, "classes": {}})
}

fn kind(answer: &Response) -> (u16, String) {
    (answer.status, answer.json()["kind"].as_str().unwrap_or_default().to_owned())
}

fn unknown() -> (u16, String) {
    (503, "write-unknown".to_owned())
}

fn unreachable() -> (u16, String) {
    (503, "remote-unreachable".to_owned())
}

#[test]
fn a_write_while_the_remote_shows_older_commits_does_not_conflict() {
    let Some((remote, daemon)) = Lagging::served("commit") else { return };
    create(&daemon, &group("M"));
    // What is pushed on top of it is taken, and neither it nor the commit before it is shown.
    remote.create_unanswered(&daemon, "N");
    for name in ["N", "O"] {
        let lags = post(&daemon, "/v1/groups", &group(name));
        assert_eq!(kind(&lags), unreachable(), "{name}: {}", lags.body);
        assert!(lags.header("Retry-After").is_some());
    }
    assert_eq!(remote.hub.log().len(), 3);
    // The same once the fetch of an interval has shown it.
    daemon.request("POST", "/controller/reconcile", "");
    daemon.wait_until("it is said that the remote lags", |it| {
        it.get("/controller/status").body.contains("RemoteBehind")
    });
    for name in ["N", "O"] {
        let lags = post(&daemon, "/v1/groups", &group(name));
        assert_eq!(kind(&lags), unreachable(), "{name}: {}", lags.body);
        assert!(lags.header("Retry-After").is_some());
    }
    assert_eq!(remote.hub.log().len(), 3);
    // It heals at once.
    remote.set_lagging(false);
    for name in ["N", "O"] {
        create(&daemon, &group(name));
    }
    let subject = |name: &str| format!("Add the group \"{name}\" below \"All Nodes\"");
    let log = ["Begin".to_owned(), subject("M"), subject("N"), subject("O")];
    assert_eq!(remote.hub.log(), log);
}

#[test]
fn a_write_without_an_answer_does_not_conflict_where_the_commit_before_it_is_shown() {
    let Some((remote, daemon)) = Lagging::served("commit") else { return };
    remote.create_unanswered(&daemon, "N");
    let again = post(&daemon, "/v1/groups", &group("N"));
    assert_eq!(kind(&again), unreachable(), "{}", again.body);
    remote.set_lagging(false);
    create(&daemon, &group("N"));
    assert_eq!(remote.hub.log().len(), 2);
    // A push that is answered counts, whatever the remote shows.
    remote.set_lagging(true);
    create(&daemon, &group("O"));
    create(&daemon, &group("P"));
    assert_eq!(remote.hub.log().len(), 4);
}

#[test]
fn a_fetch_for_a_write_that_finds_an_older_commit_is_counted_with_its_reason() {
    let Some((remote, daemon)) = Lagging::served("commit") else { return };
    let id = create(&daemon, &group("M"));
    remote.set_lagging(true);
    let unchanged = || post(&daemon, &format!("/v1/groups/{id}"), &json!({}));
    let lags = unchanged();
    assert_eq!(kind(&lags), unreachable(), "{}", lags.body);
    assert!(lags.body.contains("behind the live commit"), "{}", lags.body);
    let metrics = daemon.get("/metrics").body;
    let errors: Vec<&str> =
        metrics.lines().filter(|it| it.starts_with("clade_source_fetch_errors_total")).collect();
    assert_eq!(errors, ["clade_source_fetch_errors_total{reason=\"OlderThanLive\"} 1"]);
    remote.set_lagging(false);
    daemon.wait_until("the remote has caught up", |_| unchanged().status == 200);
}

#[test]
fn a_proposal_that_got_no_answer_is_looked_up() {
    let Some((remote, daemon)) = Lagging::served("propose") else { return };
    remote.breaks.store(true, Ordering::SeqCst);
    let proposed = post(&daemon, "/v1/groups", &group("N"));
    assert_eq!(proposed.status, 202, "{}", proposed.body);
    let branch = proposed.json()["branch"].as_str().unwrap().to_owned();
    let found = remote.hub.inner.find_reference(&format!("refs/heads/{branch}")).unwrap();
    assert_eq!(proposed.json()["commit"], found.target().unwrap().to_string());
    // Where the remote does not show it, it may be there.
    remote.create_unanswered(&daemon, "O");
    let again = post(&daemon, "/v1/groups", &group("O"));
    assert_eq!(kind(&again), unreachable(), "{}", again.body);
    assert!(again.header("Retry-After").is_some());
    remote.set_lagging(false);
    let proposed = post(&daemon, "/v1/groups", &group("O"));
    assert_eq!(proposed.status, 202, "{}", proposed.body);
    let branches = remote.hub.inner.references_glob("refs/heads/clade/*").unwrap();
    assert_eq!(branches.count(), 2);
}
