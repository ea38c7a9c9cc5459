//! Why, wait, pin, resume, time travel, staleness, settings.

use indoc::indoc;
use serde_json::{Value, json};

use super::{BAD, conditions, group, has, live, text, wait_for};
use crate::program::{Daemon, GitRepository, clade, run};

fn start(repository: &GitRepository, data: &tempfile::TempDir, more: &[&str]) -> Daemon {
    let path = repository.text_path();
    let data = data.path().to_str().unwrap();
    Daemon::start(&[&["--repo", &path, "--data-dir", data, "--branch", "main"], more].concat())
}

#[test]
fn every_state_of_a_commit_is_reported() {
    let repository = GitRepository::new();
    let old = repository.commit("old", &[("groups/a.yaml", &group("A"))]);
    let first = repository.commit("first", &[("groups/b.yaml", &group("B"))]);
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &data, &[]);
    let url = format!("http://{}", daemon.address);
    let why = |commit: &str| run(&["why", commit, "--server", &url]);
    let state = |commit: &str| {
        let done = run(&["why", commit, "--server", &url, "--format", "json"]);
        let document: Value = serde_json::from_str(&done.stdout).unwrap();
        (done.status, text(&document["state"]))
    };
    assert_eq!(state(&first), (0, "live".to_owned()));
    assert_eq!(state(&old), (0, "older".to_owned()));
    assert_eq!(state("1234567890123456789012345678901234567890"), (0, "not-seen".to_owned()));
    let wait = |commit: &str, timeout: &str| {
        run(&["wait", commit, "--server", &url, "--timeout", timeout]).status
    };
    assert_eq!(wait(&first, "5s"), 0);
    assert_eq!(wait("1234567890123456789012345678901234567890", "50ms"), 3);

    let bad = repository.commit("bad", &[("groups/bad.yaml", BAD)]);
    assert_eq!(wait(&bad, "20s"), 1);
    assert_eq!(state(&bad), (1, "rejected".to_owned()));
    let said = why(&bad).stdout;
    assert!(said.contains(" bad (Ada)\nrejected at "), "{said}");
    assert!(said.contains("groups/bad.yaml:2:9: error[missing-parent]: "), "{said}");

    // Three commits that arrive at once: only the last is built.
    let (overtaken, between, good) = {
        let objects = &[("groups/bad.yaml", ""), ("groups/c.yaml", "name: C\n")];
        let branch = repository.git().find_branch("main", git2::BranchType::Local).unwrap();
        let tip = branch.get().peel_to_commit().unwrap();
        repository.git().branch("side", &tip, true).unwrap();
        repository.git().set_head("refs/heads/side").unwrap();
        let overtaken = repository.commit("still bad", &[("groups/c.yaml", "name: C\n")]);
        let between = repository.commit("between", objects);
        let good = repository.commit("good", &[("groups/d.yaml", "name: D\n")]);
        let good_commit = repository.git().find_commit(good.parse().unwrap()).unwrap();
        repository.git().reference("refs/heads/main", good_commit.id(), true, "").unwrap();
        repository.git().set_head("refs/heads/main").unwrap();
        (overtaken, between, good)
    };
    assert_eq!(wait(&good, "20s"), 0);
    assert_eq!(wait(&between, "5s"), 0);
    assert_eq!(state(&overtaken), (0, "superseded".to_owned()));
    assert_eq!(wait(&overtaken, "5s"), 1);
    assert_eq!(state(&between), (0, "superseded".to_owned()));
    assert_eq!(state(&first), (0, "replaced".to_owned()));
    assert_eq!(state(&bad), (1, "rejected".to_owned()));

    // All of it is still known after a crash.
    daemon.kill();
    let daemon = start(&repository, &data, &[]);
    let url = format!("http://{}", daemon.address);
    let state =
        |commit: &str| text(&daemon.get(&format!("/controller/commits/{commit}")).json()["state"]);
    assert_eq!(state(&bad), "rejected");
    assert_eq!(state(&between), "superseded");
    assert_eq!(state(&first), "replaced");
    assert_eq!(state(&good), "live");
    drop(daemon);
    let done = run(&["wait", &good, "--server", &url, "--timeout", "1s"]);
    assert_eq!(done.status, 2);
    assert!(
        done.stderr.starts_with(&format!("asking {url}\nerror: cannot reach `{url}`: ")),
        "{}",
        done.stderr
    );
}

#[test]
fn waiting_for_a_commit_from_before_the_daemon_ends_where_it_is_invalid() {
    let repository = GitRepository::new();
    let valid = repository.commit("valid", &[("groups/a.yaml", &group("A"))]);
    let invalid = repository.commit("invalid", &[("groups/bad.yaml", BAD)]);
    repository.commit("mended", &[("groups/bad.yaml", "")]);
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &data, &[]);
    let url = format!("http://{}", daemon.address);
    let wait =
        |commit: &str, timeout| run(&["wait", commit, "--server", &url, "--timeout", timeout]);
    let done = wait(&invalid, "20s");
    assert_eq!(done.status, 1, "{}", done.stderr);
    assert_eq!(wait(&valid, "3s").status, 3);
}

#[test]
fn a_revision_means_the_commit_of_the_working_directory() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &data, &[]);
    let url = format!("http://{}", daemon.address);
    // A clone with a commit that is not pushed.
    let clone = tempfile::tempdir().unwrap();
    let own = git2::Repository::clone(&repository.text_path(), clone.path()).unwrap();
    let who = git2::Signature::now("Ada", "ada@example.com").unwrap();
    let tip = own.head().unwrap().peel_to_commit().unwrap();
    let tree = tip.tree().unwrap();
    let mine = own.commit(Some("HEAD"), &who, &who, "mine", &tree, &[&tip]).unwrap().to_string();
    let ask = |arguments: &[&str], directory: &std::path::Path| {
        let mut command = clade(&[arguments, &["--server", &url]].concat());
        crate::program::Done::from(command.current_dir(directory).output().unwrap())
    };
    let waited = ask(&["wait", "HEAD", "--timeout", "100ms"], clone.path());
    assert_eq!(waited.status, 3, "{}", waited.stderr);
    assert!(waited.stderr.contains(&format!("HEAD is {mine}\n")), "{}", waited.stderr);
    assert_eq!(ask(&["wait", "HEAD~1", "--timeout", "5s"], clone.path()).status, 0);
    assert_eq!(ask(&["wait", &first, "--timeout", "5s"], clone.path()).status, 0);
    let is_noted = |done: &crate::program::Done| done.stderr.contains("not committed");
    assert!(!is_noted(&waited), "{}", waited.stderr);
    std::fs::write(clone.path().join("groups/a.yaml"), "name: B\n").unwrap();
    std::fs::write(clone.path().join("README.yaml"), "").unwrap();
    let asked = ask(&["why", "HEAD"], clone.path());
    let note = "note: 1 file has changes that are not committed\n";
    assert!(asked.stderr.contains(note), "{}", asked.stderr);
    assert!(!is_noted(&ask(&["why", &first], clone.path())));
    let outside = ask(&["wait", "HEAD", "--timeout", "5s"], data.path());
    let note = "note: the daemon says what `HEAD` is, since the working directory is in no git repository\n";
    assert!(outside.status == 0 && outside.stderr.contains(note), "{}", outside.stderr);
    // Neither the clone nor, without a repository, the daemon knows the name.
    for directory in [clone.path(), data.path()] {
        for command in ["why", "wait"] {
            let done = ask(&[command, "v99"], directory);
            assert_eq!(done.status, 2, "{}", done.stdout);
            assert!(done.stderr.contains("`v99`"), "{}", done.stderr);
        }
    }
    assert_eq!(
        ask(&["why", "HEAD"], data.path()).status,
        0,
        "the daemon's own, without a repository"
    );
}

#[test]
fn a_pinned_commit_answers_until_an_operator_resumes() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &second);
    let pinned =
        daemon.request("POST", "/controller/pin", &json!({"commit": "HEAD~1"}).to_string());
    assert_eq!((pinned.status, pinned.json()), (200, json!({"pinned": first})));
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
    let third = repository.commit("third", &[("groups/c.yaml", &group("C"))]);
    // The condition holds already: the second commit is held as well.
    daemon.wait_until("the new commit is held", |it| {
        text(&it.get(&format!("/controller/commits/{third}")).json()["state"]) == "held"
    });
    assert!(has(&daemon, "PromotionHeld"));
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
    assert_eq!(daemon.get("/controller/status").json()["pinned"], first.as_str());
    daemon.kill();
    let daemon = start(&repository, &data, &[]);
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
    daemon.wait_until("the new commit is held again", |it| has(it, "PromotionHeld"));
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
    let bad = repository.commit("bad", &[("groups/bad.yaml", BAD)]);
    daemon.wait_until("the bad commit is fetched", |it| {
        it.get(&format!("/controller/commits/{bad}")).status == 200
    });
    let refused = daemon.request("POST", "/controller/pin", &json!({"commit": bad}).to_string());
    assert_eq!((refused.status, text(&refused.json()["kind"])), (422, "invalid-commit".to_owned()));
    let good = repository.commit("good", &[("groups/bad.yaml", "")]);
    assert_eq!(daemon.request("POST", "/controller/resume", "").status, 202);
    wait_for(&daemon, &good);
    assert!(daemon.get("/controller/status").json()["pinned"].is_null());
}

#[test]
fn who_had_something_done_and_why_is_on_disk() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &first);
    let post = |path: &str, body: Value| daemon.request("POST", path, &body.to_string()).status;
    assert_eq!(post("/controller/reconcile", json!({"reason": "  a webhook was lost "})), 202);
    assert_eq!(post("/controller/pin", json!({"commit": "HEAD", "reason": "an audit"})), 200);
    let by = &daemon.get("/controller/status").json()["pinned_by"];
    assert_eq!((&by["reason"], &by["actor"]), (&json!("an audit"), &Value::Null));
    assert!(by["since"].is_string(), "{by}");
    for (path, reason) in [
        ("/controller/reconcile", json!("x".repeat(1001))),
        ("/controller/resume", json!(["x"])),
        ("/controller/pin", json!(1)),
    ] {
        assert_eq!(post(path, json!({"commit": "HEAD", "reason": reason})), 400, "{path}");
    }
    daemon.kill();
    let daemon = start(&repository, &data, &[]);
    assert_eq!(daemon.get("/controller/status").json()["pinned_by"]["reason"], "an audit");
    assert_eq!(daemon.request("POST", "/controller/resume", r#"{"reason": ""}"#).status, 202);
    assert!(daemon.get("/controller/status").json()["pinned_by"].is_null());
    let journal = std::fs::read_to_string(data.path().join("journal")).unwrap();
    let of = |event: &str| -> Vec<Value> {
        let lines = journal.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
        lines.filter(|it| it["event"] == event).map(|it| it["reason"].clone()).collect()
    };
    assert_eq!(of("fetch-requested"), [json!("a webhook was lost")]);
    assert_eq!(of("pinned"), [json!("an audit")]);
    assert_eq!(of("resumed"), [Value::Null]);
}

#[test]
fn what_answered_at_a_time_answers_for_it() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &first);
    let then = jiff::Timestamp::now();
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    wait_for(&daemon, &second);
    let now = jiff::Timestamp::now();
    daemon.kill();
    let daemon = start(&repository, &data, &[]);
    let at = |time: &str| {
        let answer = daemon.get(&format!("/v1/groups?at={time}"));
        (answer.status, answer.header("X-Clade-Commit").map(str::to_owned))
    };
    assert_eq!(at(&then.to_string()), (200, Some(first.clone())));
    assert_eq!(at(&now.to_string()), (200, Some(second)));
    // An offset with its plus sign as it is.
    let zoned = then.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(2)));
    let offset = zoned.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string();
    assert_eq!(at(&offset), (200, Some(first)), "{offset}");
    assert_eq!(at("2001-01-01T00:00Z").0, 404);
}

#[test]
fn being_stale_does_what_the_policy_says() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let away = repository.path().with_extension("away");
    for (policy, ready, answers) in
        [("serve", 200, 200), ("unready", 503, 200), ("refuse", 503, 503)]
    {
        let data = tempfile::tempdir().unwrap();
        let daemon = start(&repository, &data, &["--max-staleness", "300ms", "--on-stale", policy]);
        assert_eq!((daemon.get("/readyz").status, daemon.get("/v1/groups").status), (200, 200));
        assert!(daemon.get("/v1/groups").header("X-Clade-Stale").is_none());
        std::fs::rename(repository.path(), &away).unwrap();
        daemon.wait_until("the answers are stale", |it| has(it, "Stale"));
        assert_eq!(daemon.get("/readyz").status, ready, "{policy}");
        let status = daemon.get("/controller/status").json();
        let mut conditions = status["conditions"].as_array().unwrap().iter();
        let condition = conditions.find(|it| it["type"] == "Ready").unwrap();
        assert_eq!(condition["status"] == "True", ready == 200, "{policy}: {condition}");
        let answer = daemon.get("/v1/groups");
        assert_eq!(answer.status, answers, "{policy}");
        assert_eq!(answer.header("X-Clade-Stale").is_some(), answers == 200, "{policy}");
        std::fs::rename(&away, repository.path()).unwrap();
        daemon.wait_until("the answers are fresh again", |it| !has(it, "Stale"));
        assert_eq!(daemon.get("/v1/groups").status, 200, "{policy}");
    }
}

#[test]
fn being_stale_goes_on_after_a_restart_without_the_remote() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let away = repository.path().with_extension("away");
    let data = tempfile::tempdir().unwrap();
    let limit = ["--max-staleness", "2s", "--on-stale", "refuse"];
    let daemon = start(&repository, &data, &limit);
    assert_eq!(daemon.get("/v1/groups").status, 200);
    std::fs::rename(repository.path(), &away).unwrap();
    daemon.wait_until("the answers are stale", |it| has(it, "Stale"));
    let contact = daemon.get("/controller/status").json()["remote"]["last_contact"].clone();
    daemon.kill();
    let daemon = start(&repository, &data, &limit);
    assert_eq!(daemon.get("/v1/groups").status, 503);
    let status = daemon.get("/controller/status").json();
    assert!(has(&daemon, "Stale"), "{status}");
    let staleness = status["remote"]["staleness_seconds"].as_u64().unwrap();
    assert!(staleness >= 2, "{status}");
    // The file is written once a second, so the last fetch of all may be missing in it.
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>();
    let before = time(&contact).unwrap() - jiff::SignedDuration::from_secs(3);
    assert!(time(&status["remote"]["last_contact"]).unwrap() >= before, "{contact} {status}");
    let metrics = daemon.get("/metrics").body;
    let line = metrics.lines().find(|it| it.starts_with("clade_source_staleness_seconds "));
    let metric: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(metric >= 2.0, "{metric}");
    std::fs::rename(&away, repository.path()).unwrap();
    daemon.wait_until("the answers are fresh again", |it| !has(it, "Stale"));
    assert_eq!(daemon.get("/v1/groups").status, 200);
}

#[test]
fn a_resume_at_a_rejected_head_survives_a_kill() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &first);
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    wait_for(&daemon, &second);
    let pinned = daemon.request("POST", "/controller/pin", &json!({"commit": first}).to_string());
    assert_eq!(pinned.status, 200);
    repository.commit("broken", &[("groups/b.yaml", "name: [\n")]);
    daemon.wait_until("the head is rejected", |it| has(it, "CandidateRejected"));
    assert_eq!(daemon.request("POST", "/controller/resume", "").status, 202);
    daemon.kill();
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &second);
}

#[test]
fn settings_come_from_flags_variables_and_a_file_in_that_order() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("serve.yaml");
    let path = file.to_str().unwrap();
    std::fs::write(
        &file,
        indoc! {"
            repo: https://ci:secret@git.example.com/groups.git
            interval: 1m
            branch: from-file
            data-dir: /tmp/never
            fetch-refspec: [refs/pull/*/head]
            allow-anonymous: true
            path: sub
        "},
    )
    .unwrap();
    let check = |file: &str, arguments: &[&str]| {
        let all = [&["serve", "--check", "--config", file], arguments].concat();
        let mut command = clade(&all);
        command.env("CLADE_BRANCH", "from-environment").env("CLADE_INTERVAL", "2m");
        crate::program::Done::from(command.output().unwrap())
    };
    let done = check(path, &["--interval", "3m"]);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    for line in [
        "repo: \"https://git.example.com/groups.git\"  # file",
        "branch: \"from-environment\"  # environment",
        "interval: \"3m\"  # flag",
        "path: \"sub\"  # file",
        "fetch-refspec: [\"refs/pull/*/head\"]  # file",
        "allow-anonymous: true  # file",
        "listen: \"127.0.0.1:4433\"  # default",
    ] {
        assert!(done.stdout.lines().any(|it| it == line), "{line} is not in {}", done.stdout);
    }
    assert!(!done.stdout.contains("secret"));
    // The output is a settings file.
    let printed = directory.path().join("printed.yaml");
    std::fs::write(&printed, &done.stdout).unwrap();
    assert_eq!(check(printed.to_str().unwrap(), &[]).status, 0);

    for (content, message) in [
        (
            "repo: /x\nintervall: 1m\n",
            ":2:1: unknown setting `intervall`; did you mean `interval`?",
        ),
        (
            "repo: /x\non-rewrite: maybe\n",
            ":2:13: `on-rewrite`: expected one of `follow`, `hold`, found `maybe`\n",
        ),
        (
            "repo: /x\nfetch-timeout: soon\n",
            ":2:16: `fetch-timeout`: `soon` is not a duration such as 30s, 5m, 500ms or 30d\n",
        ),
    ] {
        std::fs::write(&file, content).unwrap();
        let done = check(path, &[]);
        assert_eq!(done.status, 2, "{content}");
        let expected = format!("error: {path}{message}");
        assert!(done.stderr.starts_with(&expected), "{} is not {expected}", done.stderr);
    }
    let mut misspelt = clade(&["serve", "--check", "--repo", "."]);
    let done: crate::program::Done = misspelt.env("CLADE_BRNACH", "x").output().unwrap().into();
    assert_eq!(
        (done.status, done.stderr.as_str()),
        (2, "error: unknown setting: the variable `CLADE_BRNACH`; did you mean `CLADE_BRANCH`?\n")
    );
}

#[test]
fn a_rewritten_history_is_followed_or_held_and_always_reported() {
    for policy in ["follow", "hold"] {
        let repository = GitRepository::new();
        let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
        let lost = repository.commit("lost", &[("groups/b.yaml", &group("B"))]);
        let data = tempfile::tempdir().unwrap();
        let daemon = start(&repository, &data, &["--on-rewrite", policy]);
        wait_for(&daemon, &lost);
        let base = repository.git().find_commit(first.parse().unwrap()).unwrap();
        repository.git().reset(base.as_object(), git2::ResetType::Hard, None).unwrap();
        let other = repository.commit("other", &[("groups/c.yaml", &group("C"))]);
        daemon.wait_until("the rewrite is said", |it| has(it, "HistoryRewritten"));
        if policy == "hold" {
            daemon.wait_until("the new history is held", |it| has(it, "PromotionHeld"));
            assert_eq!(live(&daemon).as_deref(), Some(lost.as_str()));
            assert_eq!(daemon.request("POST", "/controller/resume", "").status, 202);
        }
        wait_for(&daemon, &other);
        let next = repository.commit("next", &[("groups/d.yaml", &group("D"))]);
        wait_for(&daemon, &next);
        daemon.wait_until("nothing is wrong any more", |it| conditions(it).is_empty());
    }
}

#[test]
fn a_rewrite_that_was_not_followed_is_said_until_it_is_taken_back() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &data, &["--on-rewrite", "hold"]);
    wait_for(&daemon, &second);
    let git = repository.git();
    for (content, said) in [
        (group("C"), "held".to_owned()),
        (BAD.to_owned(), format!("rejected; still serving {second}")),
    ] {
        let base = git.find_commit(first.parse().unwrap()).unwrap();
        git.reset(base.as_object(), git2::ResetType::Hard, None).unwrap();
        let other = repository.commit("other", &[("groups/c.yaml", &content)]);
        let message = format!("the branch went from {second} to {other}, which lacks it: {said}");
        daemon.wait_until(&message, |it| {
            let status = it.get("/controller/status").json();
            let conditions = status["conditions"].as_array().unwrap();
            conditions.iter().any(|it| it["message"] == message.as_str())
        });
        git.reference("refs/heads/main", second.parse().unwrap(), true, "").unwrap();
        daemon.wait_until("the rewrite is taken back", |it| conditions(it).is_empty());
        assert_eq!(live(&daemon).as_deref(), Some(second.as_str()));
    }
}

#[test]
fn a_remote_that_goes_back_counts_as_lag_for_a_while() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &data, &["--rewind-grace", "1s"]);
    wait_for(&daemon, &second);
    let git = repository.git();
    let set = |commit: &str| {
        git.reference("refs/heads/main", commit.parse().unwrap(), true, "").unwrap();
    };
    set(&first);
    daemon.wait_until("the lag is noticed", |it| has(it, "RemoteBehind"));
    assert_eq!(live(&daemon).as_deref(), Some(second.as_str()));
    set(&second);
    daemon.wait_until("the lag is over", |it| conditions(it).is_empty());
    set(&first);
    wait_for(&daemon, &first);
    assert!(has(&daemon, "HistoryRewritten"));
}
