//! Replicas behind one address: a client with an answer of one gets the same commit from another, and a ref of the
//! repository keeps all of them at one commit.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::program::{Daemon, GitRepository};

const NEVER: &str = "0123456789abcdef0123456789abcdef01234567";

fn group(name: &str) -> String {
    format!("name: {name}\nrule: name ~ \".*\"\n")
}

fn repository() -> (GitRepository, String) {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    (repository, first)
}

/// A replica with a mirror of its own; a long interval makes it lag.
fn replica(repository: &GitRepository, more: &[&str]) -> (tempfile::TempDir, Daemon) {
    let data = tempfile::tempdir().unwrap();
    let url = format!("file://{}", repository.text_path());
    let own = ["--repo", &url, "--data-dir", data.path().to_str().unwrap()];
    let daemon = Daemon::start(&[&own, more].concat());
    (data, daemon)
}

fn answered(daemon: &Daemon) -> Option<String> {
    daemon.get("/v1/groups").header("X-Clade-Commit").map(str::to_owned)
}

#[test]
fn every_replica_can_give_the_answer_of_another() {
    let (repository, first) = repository();
    let (_data, quick) = replica(&repository, &[]);
    let (_data, slow) = replica(&repository, &["--interval", "1h"]);
    quick.wait_until("both are there", |it| answered(it).is_some());
    slow.wait_until("both are there", |it| answered(it).is_some());
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    quick.wait_until("it moved on", |it| answered(it).as_deref() == Some(&second));
    assert_eq!(answered(&slow).as_deref(), Some(first.as_str()));

    // The replica with the newer commit answers from the older one, by header and by parameter.
    let header = format!("X-Clade-Commit: {first}\r\n");
    let old = quick.request_with("GET", "/v1/groups", &header, "");
    assert_eq!((old.status, old.header("X-Clade-Commit")), (200, Some(first.as_str())));
    assert_eq!(old.json().as_array().unwrap().len(), 2);

    // A missing commit gets 503 and is fetched at once, not after the interval of an hour.
    let header = format!("X-Clade-Commit: {second}\r\n");
    let ask = |it: &Daemon| it.request_with("GET", "/v1/classified/nodes/n", &header, "");
    let early = ask(&slow);
    if early.status != 200 {
        assert_eq!(
            (early.status, early.header("Retry-After"), early.json()["kind"].as_str()),
            (503, Some("1"), Some("commit-not-here-yet"))
        );
    }
    slow.wait_until("the commit has arrived", |it| {
        ask(it).header("X-Clade-Commit") == Some(second.as_str())
    });
    let by_parameter = slow.get(&format!("/v1/groups?commit={second}"));
    assert_eq!(by_parameter.header("X-Clade-Commit"), Some(second.as_str()));
    // It is built for the request, and is live a moment later.
    slow.wait_until("it answers", |it| {
        it.get("/controller/status").json()["active"]["commit"] == second.as_str()
    });
}

#[test]
fn a_commit_that_never_comes_is_not_here_yet() {
    let (repository, first) = repository();
    let (_data, daemon) = replica(&repository, &[]);
    daemon.wait_until("it answers", |it| answered(it).is_some());
    let header = format!("X-Clade-Commit: {NEVER}\r\n");
    for (path, headers, status, kind) in [
        ("/v1/groups", header.as_str(), 503, "commit-not-here-yet"),
        (&format!("/v1/groups?commit={NEVER}"), "", 503, "commit-not-here-yet"),
        ("/v1/groups?commit=nope", "", 404, "unknown-commit"),
        ("/v1/groups", "X-Clade-Commit: main\r\n", 400, "malformed-request"),
    ] {
        let answer = daemon.request_with("GET", path, headers, "");
        assert_eq!((answer.status, answer.json()["kind"].as_str()), (status, Some(kind)), "{path}");
    }
    // A parameter says more than a header.
    let both = daemon.request_with("GET", &format!("/v1/groups?commit={first}"), &header, "");
    assert_eq!(both.status, 200);
    // A replica that reads the repository in place has all its commits.
    let local = Daemon::start(&["--repo", &repository.text_path()]);
    assert_eq!(local.get(&format!("/v1/groups?commit={NEVER}")).status, 404);
    assert_eq!(local.request_with("GET", "/v1/groups", &header, "").status, 503);
}

/// What has arrived and does not name a commit is not on its way.
#[test]
fn an_object_that_is_not_a_commit_is_unknown_and_a_tag_names_its_commit() {
    let (repository, first) = repository();
    let git = repository.git();
    let commit = git.find_commit(first.parse().unwrap()).unwrap();
    let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
    let tag = git.tag("v1", commit.as_object(), &ada, "one", false).unwrap().to_string();
    git.branch("feature/x", &commit, false).unwrap();
    let tree = commit.tree_id().to_string();
    let blob = commit.tree().unwrap().get_path("groups/a.yaml".as_ref()).unwrap().id().to_string();
    let (_data, daemon) = replica(&repository, &[]);
    daemon.wait_until("the tag has arrived", |it| it.get("/v1/groups?commit=v1").status == 200);
    let ask = |headers: &str, query: &str| {
        let answer = daemon.request_with("GET", &format!("/v1/groups{query}"), headers, "");
        let named = answer.header("X-Clade-Commit").map(str::to_owned);
        (answer.status, named, answer.json()["kind"].as_str().map(str::to_owned))
    };
    let found = (200, Some(first), None);
    assert_eq!(ask(&format!("X-Clade-Commit: {tag}\r\n"), ""), found);
    for revision in [&*tag, "v1", "feature/x", "heads/feature/x", "refs/heads/feature/x"] {
        assert_eq!(ask("", &format!("?commit={revision}")), found, "{revision}");
    }
    let unknown = (404, None, Some("unknown-commit".to_owned()));
    for object in [tree, blob] {
        assert_eq!(ask(&format!("X-Clade-Commit: {object}\r\n"), ""), unknown, "{object}");
        assert_eq!(ask("", &format!("?commit={object}")), unknown, "{object}");
    }
}

#[test]
fn a_commit_that_is_not_valid_never_answers_however_it_is_asked_for() {
    let (repository, first) = repository();
    let (_data, daemon) = replica(&repository, &[]);
    daemon.wait_until("it answers", |it| answered(it).is_some());
    let bad = repository.commit("bad", &[("groups/a.yaml", "name: A\nparent: Missing\n")]);
    daemon.wait_until("it is decided about", |it| {
        it.get("/controller/status").json()["last_failed"]["commit"] == bad.as_str()
    });
    let header = format!("X-Clade-Commit: {bad}\r\n");
    let answer = daemon.request_with("GET", "/v1/groups", &header, "");
    assert_eq!((answer.status, answer.json()["kind"].as_str()), (422, Some("invalid-commit")));
    assert_eq!(answered(&daemon), Some(first));
}

#[test]
fn what_another_branch_would_say_is_not_noted_as_what_a_node_got() {
    let (repository, first) = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--branch", "main"]);
    daemon.wait_until("it answers", |it| answered(it).is_some());
    let side = repository.commit("side", &[("groups/b.yaml", &group("B"))]);
    let point = |name: &str, commit: &str| {
        repository.git().reference(name, commit.parse().unwrap(), true, "test").unwrap();
    };
    point("refs/heads/side", &side);
    point("refs/heads/main", &first);
    let main = repository.commit("main", &[("groups/c.yaml", &group("C"))]);
    daemon.wait_until("it moved on", |it| answered(it).as_deref() == Some(&main));
    let head = repository.git().head().unwrap().peel_to_commit().unwrap();
    let (author, tree) = (head.author(), head.tree().unwrap());
    let ahead = Some("refs/heads/ahead");
    let ahead = repository.git().commit(ahead, &author, &author, "ahead", &tree, &[&head]);
    let ahead = ahead.unwrap().to_string();
    for (commit, noted) in [(&first, &first), (&side, &first), (&main, &main), (&ahead, &main)] {
        let header = format!("X-Clade-Commit: {commit}\r\n");
        let body = r#"{"fact": {}, "trusted": {}}"#;
        let path = "/v1/classified/nodes/n";
        let answer = daemon.request_with("POST", path, &header, body);
        assert_eq!(answer.header("X-Clade-Commit"), Some(commit.as_str()));
        daemon.wait_until("it is noted", |it| {
            it.get("/controller/nodes/n").json()["commit"] == noted.as_str()
        });
    }
}

#[test]
fn a_commit_that_is_named_does_not_answer_where_the_daemon_refuses_to() {
    let (repository, first) = repository();
    let stale = ["--max-staleness", "1s", "--on-stale", "refuse", "--interval", "1h"];
    let path = repository.text_path();
    let daemon = Daemon::start(&[&["--repo", path.as_str()], &stale[..]].concat());
    daemon.wait_until("it is stale", |it| it.get("/enc/n").status == 503);
    let header = format!("X-Clade-Commit: {first}\r\n");
    let answer = daemon.request_with("GET", "/enc/n", &header, "");
    assert_eq!((answer.status, answer.json()["kind"].as_str()), (503, Some("no-snapshot")));
    // A question about a commit is not what a run gets.
    assert_eq!(daemon.get(&format!("/enc/n?commit={first}")).status, 200);
}

/// The procedure of docs/guides/operations.md: all replicas follow a ref that only people move.
#[test]
fn a_ref_of_the_repository_pins_all_replicas() {
    let (repository, first) = repository();
    let point = |commit: &str| {
        let id = commit.parse().unwrap();
        repository.git().reference("refs/clade/active", id, true, "promote").unwrap();
    };
    point(&first);
    let follow = ["--branch", "refs/clade/active", "--rewind-grace", "0s", "--interval", "50ms"];
    let (_data, one) = replica(&repository, &follow);
    let (_data, two) = replica(&repository, &follow);
    let in_place = Daemon::start(&[&["--repo", &repository.text_path()], &follow[..4]].concat());
    let all = [&one, &two, &in_place];
    let everywhere = |commit: &str| {
        for daemon in all {
            daemon.wait_until("the ref is followed", |it| answered(it).as_deref() == Some(commit));
        }
    };
    everywhere(&first);

    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    // Both fetch repeatedly, and do not follow the branch.
    for daemon in all {
        let seen = |it: &Daemon| {
            it.get("/controller/status").json()["observed"]["fetched_at"]
                .as_str()
                .map(str::to_owned)
        };
        let before = seen(daemon);
        daemon.wait_until("it looked again", |it| seen(it) != before);
        assert_eq!(answered(daemon).as_deref(), Some(first.as_str()));
    }
    point(&second);
    everywhere(&second);
    // Back, at once with `--rewind-grace 0s`.
    point(&first);
    everywhere(&first);
}

/// The promise of the chart: a new replica gets requests when it is ready, an old one gets SIGTERM when
/// it gets no more requests, and finishes those in flight.
#[test]
fn a_rolling_update_fails_no_request() {
    let (repository, first) = repository();
    let (data, mut serving) = replica(&repository, &[]);
    let mut directories = vec![data];
    serving.wait_until("it is ready", |it| it.get("/readyz").status == 200);
    let address = Mutex::new(serving.address.clone());
    let (done, stop) = ([const { AtomicUsize::new(0) }; 3], AtomicBool::new(false));
    let ask = |number: usize| {
        while !stop.load(Ordering::Relaxed) {
            let daemon = Daemon::at(&address.lock().unwrap().clone());
            let answer = daemon.get(&format!("/v1/classified/nodes/n{number}"));
            assert_eq!(answer.status, 200, "{}", answer.body);
            done[number].fetch_add(1, Ordering::Relaxed);
        }
    };
    // As long as the chart's `preStopSleepSeconds`: until the clients of the old one have their answers, and
    // then one of the new one.
    let settle = |daemon: &Daemon| {
        let counts = || done.iter().map(|it| it.load(Ordering::Relaxed));
        let before: Vec<usize> = counts().collect();
        daemon.wait_until("all clients moved on", |_| {
            counts().zip(&before).all(|(now, before)| now > before + 1)
        });
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3)
            .map(|number| {
                scope.spawn({
                    let ask = &ask;
                    move || ask(number)
                })
            })
            .collect();
        for _ in 0..3 {
            let (data, next) = replica(&repository, &[]);
            directories.push(data);
            next.wait_until("it is ready", |it| it.get("/readyz").status == 200);
            address.lock().unwrap().clone_from(&next.address);
            settle(&next);
            let old = std::mem::replace(&mut serving, next);
            assert_eq!(old.terminate(), 0);
            settle(&serving);
        }
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().unwrap();
        }
    });
    assert_eq!(answered(&serving), Some(first));
}

#[test]
fn requests_before_the_end_get_an_answer() {
    use std::io::{Read as _, Write as _};

    let (repository, _) = repository();
    for round in 0..5 {
        let daemon = Daemon::start(&["--repo", &repository.text_path()]);
        daemon.wait_until("it is ready", |it| it.get("/readyz").status == 200);
        // It does not read them before SIGTERM.
        daemon.signal("STOP");
        let mut asked: Vec<std::net::TcpStream> = (0..40)
            .map(|_| {
                let mut stream = std::net::TcpStream::connect(&daemon.address).unwrap();
                stream.write_all(b"GET /v1/groups HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
                stream
            })
            .collect();
        daemon.signal("TERM");
        daemon.signal("CONT");
        assert_eq!(daemon.terminate(), 0);
        for (number, stream) in asked.iter_mut().enumerate() {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{round}, {number}: {answer:?}");
        }
    }
}
