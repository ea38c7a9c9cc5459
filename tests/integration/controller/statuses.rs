//! Commit statuses, posted to a forge that only listens.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{BAD, group, wait_for};
use crate::forge::{Fate, Stub, World, respond};
use crate::program::{Daemon, root, run, serve};
use crate::table::each_row;

#[test]
fn every_commit_gets_its_status_once() {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    // A forge with a hiccup.
    let stub = Stub::start(vec!["502 Bad Gateway"]);
    let daemon = world.start(&stub, "github", &["--public-url", "https://clade.example.com/"]);
    let success = |description: &str| ("success".to_owned(), description.to_owned());
    assert_eq!(stub.status(&first, "clade/validate"), success("valid, 2 groups"));
    assert_eq!(stub.status(&first, "clade/live/eu1"), success("answers"));
    let call = stub.calls()[0].clone();
    assert_eq!(call.path, format!("/repos/ops/groups/statuses/{first}"));
    assert_eq!(call.headers["authorization"], "Bearer secret-token");
    assert_eq!(call.headers["x-github-api-version"], "2022-11-28");
    let link = format!("https://clade.example.com/controller/commits/{first}");
    assert_eq!(call.body["target_url"], link);

    let bad = world.repository.commit("bad", &[("groups/bad.yaml", BAD)]);
    let (state, description) = stub.status(&bad, "clade/validate");
    assert_eq!(state, "failure");
    assert!(description.starts_with("groups/bad.yaml:2:9: "), "{description}");
    assert_eq!(stub.status(&bad, "clade/live/eu1").0, "failure");

    let good = world.repository.commit("good", &[("groups/bad.yaml", "")]);
    wait_for(&daemon, &good);
    assert_eq!(stub.status(&good, "clade/live/eu1"), success("answers"));
    // The status of the bad commit is unchanged.
    assert_eq!(stub.status(&bad, "clade/live/eu1").0, "failure");

    // A status that was posted and is not noted yet would be posted again.
    let posted = |count: u32| {
        let line = format!(
            "clade_commit_status_posts_total{{provider=\"github\",result=\"posted\"}} {count}\n"
        );
        move |it: &Daemon| it.get("/metrics").body.contains(&line)
    };
    daemon.wait_until("all are noted", posted(6));
    let before = stub.calls().len();
    daemon.kill();
    let daemon = world.start(&stub, "github", &[]);
    let last = world.repository.commit("last", &[("groups/b.yaml", &group("B"))]);
    assert_eq!(stub.status(&last, "clade/live/eu1"), success("answers"));
    let again: Vec<String> = stub.calls().split_off(before).into_iter().map(|it| it.path).collect();
    assert!(again.iter().all(|it| it.ends_with(&last)), "said twice: {again:?}");
    daemon.wait_until("both are counted", posted(2));
}

#[test]
fn a_commit_that_is_held_has_a_verdict() {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let stub = Stub::start(Vec::new());
    let daemon = world.start(&stub, "github", &[]);
    let pin = format!("{{\"commit\": \"{first}\"}}");
    let success = |description: &str| ("success".to_owned(), description.to_owned());
    assert_eq!(stub.status(&first, "clade/live/eu1"), success("answers"));
    assert_eq!(daemon.request("POST", "/controller/pin", &pin).status, 200);
    let second = world.repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    assert_eq!(stub.status(&second, "clade/validate"), success("valid, 3 groups"));
    let bad = world.repository.commit("bad", &[("groups/bad.yaml", BAD)]);
    assert_eq!(stub.status(&bad, "clade/validate").0, "failure");
    let last = world.repository.commit("last", &[("groups/bad.yaml", "")]);
    assert_eq!(stub.status(&last, "clade/validate"), success("valid, 3 groups"));
    let lives = |of: &str| {
        let calls = stub.calls();
        calls
            .iter()
            .filter(|it| it.path.contains(of) && it.body["context"] == "clade/live/eu1")
            .count()
    };
    assert_eq!([&second, &last].map(|it| lives(it)), [0, 0], "neither has answered");
    // The same commit is built again after a restart.
    daemon
        .wait_until("it is noted", |it| it.get("/metrics").body.contains("result=\"posted\"} 6\n"));
    drop(daemon);
    let before = stub.calls().len();
    let daemon = world.start(&stub, "github", &[]);
    wait_for(&daemon, &first);
    assert_eq!(daemon.request("POST", "/controller/resume", "{}").status, 202);
    assert_eq!(stub.status(&last, "clade/live/eu1"), success("answers"));
    let short: String = last.chars().take(7).collect();
    assert_eq!(stub.status(&second, "clade/live/eu1"), success(&format!("superseded by {short}")));
    assert_eq!(stub.status(&bad, "clade/live/eu1").0, "failure");
    let again: Vec<_> = stub.calls().split_off(before).into_iter().map(|it| it.body).collect();
    assert!(again.iter().all(|it| it["context"] != "clade/validate"), "said twice: {again:?}");
}

/// Each row: whether the daemon is killed before the forge takes calls again.
#[test]
fn a_rejected_commit_stays_rejected_also_where_the_forge_was_down() {
    each_row([false, true], |is_killed| {
        let world = World::new();
        let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
        let is_down = Arc::new(AtomicBool::new(false));
        let stub = Stub::behaving({
            let is_down = Arc::clone(&is_down);
            move |stream| match is_down.load(Ordering::SeqCst) {
                true => {
                    respond(stream, "503 Service Unavailable", "{}");
                    Fate::Lost
                }
                false => {
                    respond(stream, "201 Created", "{}");
                    Fate::Taken
                }
            }
        });
        let daemon = world.start(&stub, "github", &[]);
        stub.status(&first, "clade/live/eu1");
        is_down.store(true, Ordering::SeqCst);
        let bad = world.repository.commit("bad", &[("groups/bad.yaml", BAD)]);
        daemon.wait_until("it is rejected", |it| {
            it.get(&format!("/controller/commits/{bad}")).json()["state"] == "rejected"
        });
        let good = world.repository.commit("good", &[("groups/bad.yaml", "")]);
        wait_for(&daemon, &good);
        let _daemon = if is_killed {
            daemon.kill();
            world.start(&stub, "github", &[])
        } else {
            daemon
        };
        is_down.store(false, Ordering::SeqCst);
        assert_eq!(stub.status(&good, "clade/live/eu1").1, "answers");
        let (state, description) = stub.status(&bad, "clade/live/eu1");
        assert_eq!(state, "failure", "{description}");
        assert_eq!(stub.status(&bad, "clade/validate").0, "failure");
    });
}

/// A call of a forge may take ten seconds.
#[test]
fn a_forge_that_hangs_does_not_delay_the_end() {
    let world = World::new();
    world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let called = Arc::new(AtomicBool::new(false));
    let stub = Stub::behaving({
        let called = Arc::clone(&called);
        move |_| {
            called.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_mins(10));
            Fate::Lost
        }
    });
    let daemon = world.start(&stub, "github", &[]);
    daemon.wait_until("the forge is called", |_| called.load(Ordering::SeqCst));
    let signalled = Instant::now();
    assert_eq!(daemon.terminate(), 0);
    assert!(signalled.elapsed() < Duration::from_secs(9), "{:?}", signalled.elapsed());
}

/// Each row: the first answers of the forge, and how many statuses are posted again.
#[test]
fn statuses_are_posted_when_the_forge_takes_them_again() {
    let of_token = vec![
        "401 Unauthorized",
        "403 Forbidden\r\nRetry-After: 1",
        "403 Forbidden",
        "404 Not Found",
    ];
    // GitHub answers so for a moment where it has not taken in a commit that was pushed.
    let of_commit = vec!["422 Unprocessable Content", "422 Unprocessable Content"];
    each_row([(of_token, 4), (of_commit, 2)], |(answers, retried)| {
        let world = World::new();
        let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
        let stub = Stub::start(answers);
        let daemon = world.start(&stub, "github", &[]);
        for context in ["clade/validate", "clade/live/eu1"] {
            assert_eq!(stub.status(&first, context).0, "success");
        }
        let metrics = daemon.get("/metrics").body;
        let retried = format!("{{provider=\"github\",result=\"retried\"}} {retried}\n");
        assert!(metrics.contains(&retried), "{metrics}");
        let refused = "clade_commit_status_posts_total{provider=\"github\",result=\"refused\"} 0\n";
        assert!(metrics.contains(refused), "{metrics}");
    });
}

#[test]
fn what_was_pushed_together_is_superseded_and_pull_requests_are_validated() {
    let world = World::new();
    let git = world.repository.git();
    let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let stub = Stub::start(Vec::new());
    let daemon =
        world.start(&stub, "gitea", &["--fetch-refspec", "refs/pull/*/head:refs/pull/*/head"]);
    wait_for(&daemon, &first);
    git.set_head_detached(first.parse().unwrap()).unwrap();
    let between = world.repository.commit("between", &[("groups/b.yaml", &group("B"))]);
    let head = world.repository.commit("head", &[("groups/c.yaml", &group("C"))]);
    let proposed = world.repository.commit("proposed", &[("groups/bad.yaml", BAD)]);
    git.reference("refs/pull/7/head", proposed.parse().unwrap(), true, "").unwrap();
    git.reference("refs/heads/main", head.parse().unwrap(), true, "").unwrap();
    let (state, description) = stub.status(&between, "clade/live/eu1");
    assert_eq!((state.as_str(), description), ("success", format!("superseded by {}", &head[..7])));
    assert_eq!(stub.status(&proposed, "clade/validate").0, "failure");
    let calls = stub.calls();
    assert_eq!(calls[0].headers["authorization"], "token secret-token");
    assert!(
        !calls
            .iter()
            .any(|it| it.path.contains(&proposed) && it.body["context"] != "clade/validate")
    );
}

#[test]
fn a_status_says_which_commit_answers_after_a_pin_and_a_resume() {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let stub = Stub::start(Vec::new());
    let daemon = world.start(&stub, "github", &[]);
    wait_for(&daemon, &first);
    let git = world.repository.git();
    git.set_head_detached(first.parse().unwrap()).unwrap();
    let middle = world.repository.commit("middle", &[("groups/b.yaml", &group("B"))]);
    let head = world.repository.commit("head", &[("groups/c.yaml", &group("C"))]);
    git.reference("refs/heads/main", head.parse().unwrap(), true, "").unwrap();
    let says = |daemon: &Daemon, commit: &str, description: &str| {
        daemon.wait_until(description, |_| stub.status(commit, "clade/live/eu1").1 == description);
    };
    says(&daemon, &middle, &format!("superseded by {}", &head[..7]));
    says(&daemon, &head, "answers");
    let pin = serde_json::json!({"commit": middle}).to_string();
    let pinned = daemon.request("POST", "/controller/pin", &pin);
    assert!(pinned.status < 300, "{}", pinned.body);
    says(&daemon, &middle, "answers");
    says(&daemon, &head, &format!("replaced by {}", &middle[..7]));
    let noted = "clade_commit_status_posts_total{provider=\"github\",result=\"posted\"} 8\n";
    daemon.wait_until("all are noted", |it| it.get("/metrics").body.contains(noted));

    // The next process knows what the forge shows.
    let before = stub.calls().len();
    daemon.kill();
    let daemon = world.start(&stub, "github", &[]);
    let resumed = daemon.request("POST", "/controller/resume", "");
    assert!(resumed.status < 300, "{}", resumed.body);
    says(&daemon, &head, "answers");
    let more: Vec<String> = stub.calls().split_off(before).into_iter().map(|it| it.path).collect();
    assert!(more.iter().all(|it| it.ends_with(&head)), "posted again: {more:?}");
}

#[test]
fn heads_are_checked_after_an_upgrade_has_replaced_the_program() {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let stub = Stub::start(Vec::new());
    let own = world.arguments(&stub, "gitea");
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let heads = ["--fetch-refspec", "refs/pull/*/head:refs/pull/*/head"];
    let command = serve(&[&own[..], &heads].concat());
    let program = world.data.path().join("clade");
    if std::fs::hard_link(command.get_program(), &program).is_err() {
        std::fs::copy(command.get_program(), &program).unwrap();
    }
    let mut started = Command::new(&program);
    started.args(command.get_args()).current_dir(root());
    let daemon = Daemon::launch(started);
    wait_for(&daemon, &first);
    std::fs::remove_file(&program).unwrap();
    let head = world.propose(7, &[("groups/b.yaml", &group("B"))]);
    assert_eq!(stub.status(&head, "clade/validate").0, "success");
}

#[test]
fn a_check_of_a_head_that_cannot_be_started_is_tried_again() {
    use std::os::unix::fs::PermissionsExt as _;

    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let stub = Stub::start(Vec::new());
    let own = world.arguments(&stub, "gitea");
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let heads = ["--fetch-refspec", "refs/pull/*/head:refs/pull/*/head"];
    let command = serve(&[&own[..], &heads].concat());
    let program = world.data.path().join("clade");
    std::fs::copy(command.get_program(), &program).unwrap();
    let allow = |mode: u32| {
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let mut started = Command::new(&program);
    started.args(command.get_args()).current_dir(root());
    let daemon = Daemon::launch(started);
    wait_for(&daemon, &first);
    // Nothing can be started from it, not even by root.
    allow(0o644);
    let head = world.propose(7, &[("groups/b.yaml", &group("B"))]);
    let failed = "clade_head_checks_total{result=\"not-started\"} ";
    daemon.wait_until("it failed", |it| it.get("/metrics").body.contains(failed));
    assert!(!stub.calls().iter().any(|it| it.path.contains(&head)), "the head is not to blame");
    allow(0o755);
    assert_eq!(stub.status(&head, "clade/validate").0, "success");
}

#[test]
fn a_refused_status_of_a_pull_request_is_logged_once() {
    let world = World::new();
    let git = world.repository.git();
    let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let stub = Stub::start(vec!["201 Created", "201 Created", "400 Bad Request"]);
    let daemon =
        world.start(&stub, "gitea", &["--fetch-refspec", "refs/pull/*/head:refs/pull/*/head"]);
    stub.status(&first, "clade/validate");
    stub.status(&first, "clade/live/eu1");
    git.set_head_detached(first.parse().unwrap()).unwrap();
    let proposed = world.repository.commit("proposed", &[("groups/b.yaml", &group("B"))]);
    git.reference("refs/pull/7/head", proposed.parse().unwrap(), true, "").unwrap();
    let refused = "clade_commit_status_posts_total{provider=\"gitea\",result=\"refused\"} 1";
    daemon.wait_until("it is refused", |it| it.get("/metrics").body.contains(refused));
    // The branch is fetched repeatedly meanwhile.
    git.set_head_detached(first.parse().unwrap()).unwrap();
    for name in ["C", "D"] {
        let path = format!("groups/{name}.yaml");
        let next = world.repository.commit(name, &[(&path, &group(name))]);
        git.reference("refs/heads/main", next.parse().unwrap(), true, "").unwrap();
        stub.status(&next, "clade/live/eu1");
    }
    assert!(!stub.calls().iter().any(|it| it.path.contains(&proposed)));
    assert!(daemon.get("/metrics").body.contains(refused));
}

#[test]
fn other_forges_are_called_in_their_own_way() {
    for (provider, header, state, url) in [
        ("gitlab", "private-token", "success", "target_url"),
        ("bitbucket", "authorization", "SUCCESSFUL", "url"),
        ("bitbucket-dc", "authorization", "SUCCESSFUL", "url"),
    ] {
        let world = World::new();
        let first = world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
        let path = match provider {
            "gitlab" => format!("/projects/ops%2Fgroups/statuses/{first}"),
            "bitbucket" => format!("/repositories/ops/groups/commit/{first}/statuses/build"),
            _ => format!("/projects/ops/repos/groups/commits/{first}/builds"),
        };
        let stub = Stub::start(Vec::new());
        let _daemon = world.start(&stub, provider, &["--public-url", "https://clade.example.com"]);
        assert_eq!(stub.status(&first, "clade/live/eu1").0, state, "{provider}");
        let call = stub.calls()[0].clone();
        assert_eq!(call.path, path);
        assert!(call.headers[header].ends_with("secret-token"), "{provider}");
        assert!(call.body[url].is_string(), "{provider}");
    }
}

#[test]
fn an_unusable_forge_is_refused_at_the_start() {
    let world = World::new();
    world.repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let repo = world.repository.text_path();
    let token = world.data.path().join("token");
    let token = token.to_str().unwrap();
    let base =
        ["serve", "--check", "--repo", &repo, "--forge", "bitbucket", "--forge-token-file", token];
    let said = |more: &[&str]| run(&[&base, more].concat()).stderr;
    assert!(said(&[]).contains("`--forge-url URL` is missing"), "{}", said(&[]));
    let url = ["--forge-url", "http://127.0.0.1:1"];
    assert!(said(&url).contains("`--forge-repository NAME` is missing"), "{}", said(&url));
    let both = [&url[..], &["--forge-repository", "a/b"]].concat();
    assert!(said(&both).contains("`--public-url URL` is missing"), "{}", said(&both));
}
