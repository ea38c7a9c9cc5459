//! `clade status`, `reconcile`, `pin` and `resume`, and the messages of every command that asks a daemon.

use std::path::Path;

use serde_json::Value;

use super::{BAD, group, has, live, wait_for};
use crate::enc::servers::Stub;
use crate::program::{Daemon, Done, GitRepository, clade};

struct Site {
    repository: GitRepository,
    daemon: Daemon,
    first: String,
    second: String,
    elsewhere: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let repository = GitRepository::new();
        let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
        let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
        let daemon = Daemon::start(&["--repo", &repository.text_path(), "--branch", "main"]);
        wait_for(&daemon, &second);
        let elsewhere = tempfile::tempdir().unwrap();
        Self { repository, daemon, first, second, elsewhere }
    }

    fn url(&self) -> String {
        format!("http://{}", self.daemon.address)
    }

    fn run_in(&self, directory: &Path, arguments: &[&str]) -> Done {
        let mut command = clade(arguments);
        command.current_dir(directory).env("CLADE_SERVER", self.url()).output().unwrap().into()
    }

    /// Runs a command outside of any repository.
    fn run(&self, arguments: &[&str]) -> Done {
        self.run_in(self.elsewhere.path(), arguments)
    }
}

#[test]
fn an_operator_pins_and_resumes() {
    let site = Site::new();
    let asking = format!("asking {}\n", site.url());
    // A revision is that of the working directory.
    let pinned = site.run_in(&site.repository.path(), &["pin", "HEAD~1"]);
    assert_eq!(pinned.status, 0, "{}", pinned.stderr);
    assert_eq!(pinned.stderr, format!("{asking}HEAD~1 is {}\n", site.first));
    assert_eq!(
        pinned.stdout,
        format!("{} is pinned and answers until `clade resume`\n", site.first)
    );
    assert_eq!(live(&site.daemon), Some(site.first.clone()));
    site.daemon.wait_until("the newer commit is held", |it| has(it, "PromotionHeld"));
    let held = site.run(&["status"]);
    assert_eq!(held.status, 1, "a held commit needs attention: {}", held.stdout);
    let short = &site.first[..12];
    assert!(
        held.stdout.contains(&format!("pinned      {short} "))
            && held.stdout.contains("; `clade resume` follows the branch again\n"),
        "{}",
        held.stdout
    );
    assert!(held.stdout.contains("\nPromotionHeld "), "{}", held.stdout);
    let again = site.run(&["pin", &site.first, "--reason", "an audit\u{1b}[31m"]);
    assert_eq!(again.status, 0, "{}", again.stderr);
    let shown = site.run(&["status"]).stdout;
    assert!(shown.contains(": an audit\u{fffd}[31m; `clade resume`"), "{shown}");

    let resumed = site.run(&["resume", "--format", "json"]);
    assert_eq!((resumed.status, &*resumed.stderr), (0, &*asking));
    assert_eq!(resumed.stdout, "{\n  \"pinned\": null\n}\n");
    wait_for(&site.daemon, &site.second);
    // Without a repository here it is for the daemon to say what a revision is.
    let pinned = site.run(&["pin", "HEAD~1", "--format", "json"]);
    let answer: Value = serde_json::from_str(&pinned.stdout).unwrap();
    assert_eq!((pinned.status, &answer["pinned"]), (0, &Value::from(site.first.as_str())));
    assert_eq!(site.run(&["resume"]).status, 0);
}

#[test]
fn an_answer_that_confirms_nothing_is_a_failure() {
    let other = "1111111111111111111111111111111111111111";
    let commit = "2222222222222222222222222222222222222222";
    let site = Site::new();
    let rows = [
        ("pin", "{}", "is not a daemon"),
        ("resume", "{}", "is not a daemon"),
        (
            "pin",
            r#"{"pinned":null}"#,
            "does not say that 2222222222222222222222222222222222222222 is pinned",
        ),
        ("resume", r#"{"pinned":"1111111111111111111111111111111111111111"}"#, "is still pinned"),
    ];
    for (command, body, wanted) in rows {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
        let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let stub = Stub::saying(Box::leak(answer.into_boxed_str()));
        let revision: &[&str] = if command == "pin" { &[commit] } else { &[] };
        let all = [&[command], revision, &["--server", &stub.url]].concat();
        let done = site.run(&all);
        assert_eq!(done.status, 2, "{command} {body}: {}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains(wanted), "{command} {body}: {}", done.stderr);
        assert!(!done.stdout.contains(other), "{}", done.stdout);
    }
}

#[test]
fn a_commit_has_a_name_and_a_short_wait_asks_once() {
    let site = Site::new();
    for command in ["why", "wait", "pin"] {
        let done = site.run(&[command, ""]);
        assert_eq!(done.status, 2, "{command}");
        assert!(done.stderr.contains("expected a commit"), "{command}: {}", done.stderr);
    }
    for timeout in ["0s", "1ns", "1ms"] {
        let done = site.run(&["wait", &site.second, "--timeout", timeout]);
        assert_eq!(done.status, 0, "{timeout}: {}", done.stderr);
        let done = site.run(&["wait", "12345678", "--timeout", timeout]);
        assert_eq!(done.status, 3, "{timeout}: {}", done.stderr);
    }
}

/// The daemon may be another one than was meant.
#[test]
fn who_asks_for_a_commit_that_is_not_fetched_learns_what_the_daemon_follows() {
    let site = Site::new();
    let path = site.repository.path().canonicalize().unwrap();
    let follows = format!("the daemon follows {}, branch main\n", path.display());
    let why = site.run(&["why", "12345678"]);
    assert_eq!(why.status, 0, "{}", why.stderr);
    assert!(why.stdout.contains(&follows), "{}", why.stdout);
    let wait = site.run(&["wait", "12345678", "--timeout", "1ms"]);
    assert_eq!(wait.status, 3, "{}", wait.stderr);
    assert!(wait.stderr.contains(&follows), "{}", wait.stderr);
}

#[test]
fn commits_that_cannot_be_pinned_have_different_errors() {
    let site = Site::new();
    let here = site.run_in(&site.repository.path(), &["pin", "v99"]);
    assert_eq!(here.status, 2);
    assert!(here.stderr.contains("`v99`") && here.stderr.contains("working directory"));
    let there = site.run(&["pin", "v99"]);
    assert_eq!((there.status, &*there.stdout), (2, ""));
    let url = site.url();
    let expected = format!("asking {url}\nerror: unknown revision `v99` at `{url}`; push ");
    assert!(there.stderr.starts_with(&expected), "{}", there.stderr);
    let bad = site.repository.commit("bad", &[("groups/bad.yaml", BAD)]);
    let rejected = site.run(&["pin", &bad]);
    assert_eq!(rejected.status, 1, "{}", rejected.stderr);
    let finding = "groups/bad.yaml:2:9: error[missing-parent]: ";
    assert!(rejected.stdout.starts_with(finding), "{}", rejected.stdout);
    assert_eq!(live(&site.daemon), Some(site.second.clone()));
    site.daemon.wait_until("the commit is rejected", |it| {
        it.get("/controller/status").json()["last_failed"]["commit"] == bad.as_str()
    });
    let status = site.run(&["status"]);
    assert_eq!(status.status, 1);
    let rejected = format!("rejected    {} ", &bad[..12]);
    let rejected = status.stdout.lines().find(|it| it.starts_with(&rejected)).unwrap();
    assert!(rejected.contains(", at check: groups/bad.yaml:2:9: "), "{rejected}");
}

#[test]
fn a_revision_is_resolved_as_the_help_says() {
    let site = Site::new();
    // Outside a repository a word is an unknown name for the daemon, with hex letters or not.
    for word in ["dead", "effaced", "v99", ":/second"] {
        for command in ["why", "wait"] {
            let done = site.run(&[command, word]);
            assert_eq!((done.status, &*done.stdout), (2, ""), "{command} {word}");
            assert!(done.stderr.contains(&format!("unknown revision `{word}`")), "{}", done.stderr);
        }
    }
    let coming = site.run(&["why", "12345678", "--format", "json"]);
    assert_eq!(coming.status, 0, "{}", coming.stderr);
    assert!(coming.stdout.contains("not-seen"), "{}", coming.stdout);
    // In a repository, everything that git resolves to a commit.
    for revision in ["HEAD", ":/second", "HEAD^{/second}", "main", &site.second[..10]] {
        let done = site.run_in(&site.repository.path(), &["why", revision, "--format", "json"]);
        assert_eq!(done.status, 0, "{revision}: {}", done.stderr);
        let document: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(document["commit"], site.second.as_str(), "{revision}");
    }
}

#[test]
fn a_status_names_the_live_commit() {
    let site = Site::new();
    let status = site.run(&["status"]);
    assert_eq!(status.status, 0, "{}", status.stdout);
    assert_eq!(status.stderr, format!("asking {}\n", site.url()));
    let mut lines = status.stdout.lines();
    assert!(lines.next().unwrap().ends_with(", branch main"), "{}", status.stdout);
    let active = lines.next().unwrap();
    let start = format!("active      {} second (Ada), 3 groups, activated ", &site.second[..12]);
    assert!(active.starts_with(&start), "{active}");
    assert!(lines.next().unwrap().starts_with("newest      the active commit, fetched "));
    assert_eq!(lines.next(), Some("nodes       none have checked in"));
    assert!(lines.next().unwrap().starts_with("daemon      "), "{}", status.stdout);
    // How much is in it is known once it has been opened.
    assert!(lines.next().unwrap().starts_with("store       memory"), "{}", status.stdout);
    assert_eq!((lines.next(), lines.next().unwrap().starts_with("COMMIT ")), (Some(""), true));
    let body = r#"{"fact": {}}"#;
    assert_eq!(site.daemon.request("POST", "/v1/classified/nodes/web1", body).status, 200);
    site.daemon
        .wait_until("the node is stored", |it| it.get("/controller/nodes").json()["total"] == 1);
    let narrow: Done = clade(&["status", "--server", &site.url(), "--silent-for", "0s"])
        .env("COLUMNS", "60")
        .output()
        .unwrap()
        .into();
    assert!(narrow.stdout.contains("\nnodes       1, 1 answered by the active commit\n"));
    assert!(narrow.stdout.contains("\nsilent      1 (web1): `clade nodes --silent-for 0s`\n"));
    // A path or an address is one word.
    let long = narrow.stdout.lines().filter(|it| it.chars().count() > 60);
    assert!(long.clone().all(|it| it.trim().split(' ').count() < 4), "{}", narrow.stdout);
    assert!(!narrow.stdout.contains('\u{1b}'), "a pipe has no colours");
    let json = site.run(&["status", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["active"]["commit"], site.second.as_str());
    let asked = site.run(&["reconcile"]);
    assert_eq!(asked.status, 0);
    assert!(asked.stdout.starts_with("the daemon fetches its branch"), "{}", asked.stdout);
}

#[test]
fn every_command_names_the_daemon_and_says_what_to_try() {
    let site = Site::new();
    // An address without a listener.
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let commit = site.first.as_str();
    for command in [
        &["status"][..],
        &["reconcile"],
        &["pin", commit],
        &["resume"],
        &["why", commit],
        &["wait", commit],
        &["explain", "web1"],
        &["nodes"],
        &["history", "web1"],
        &["diff", "HEAD", "--repo", &site.repository.text_path()],
    ] {
        let done = site.run(&[command, &["--server", &gone]].concat());
        assert_eq!((done.status, &*done.stdout), (2, ""), "{command:?}");
        let lines: Vec<&str> = done.stderr.lines().collect();
        assert_eq!(lines[0], format!("asking {gone}"), "{command:?}");
        assert_eq!(lines.len(), 2, "{}", done.stderr);
        assert!(lines[1].starts_with(&format!("error: cannot reach `{gone}`: ")), "{}", lines[1]);
        let hint =
            "; is it running (`clade serve`)? if it is elsewhere, use --server or CLADE_SERVER";
        assert!(lines[1].ends_with(hint), "{}", lines[1]);
    }
    let encrypted = format!("https://{}", site.daemon.address);
    let done = site.run(&["status", "--server", &encrypted]);
    assert_eq!(done.status, 2);
    assert!(done.stderr.contains("use http://"), "{}", done.stderr);
    // A user and password are not shown.
    let secret = format!("http://u:hunter2@{}", site.daemon.address);
    let done = site.run(&["status", "--server", &secret]);
    assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
}

#[test]
fn a_token_that_is_missing_is_asked_for() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let directory = tempfile::tempdir().unwrap();
    let hash = "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589";
    let tokens = directory.path().join("tokens.yaml");
    std::fs::write(&tokens, format!("- name: reader\n  sha256: {hash}\n  roles: [read]\n"))
        .unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--tokens-file",
        tokens.to_str().unwrap(),
    ]);
    let url = format!("http://{}", daemon.address);
    let ask = |arguments: &[&str]| -> Done {
        clade(&[arguments, &["--server", &url]].concat()).output().unwrap().into()
    };
    let anonymous = ask(&["status"]);
    assert_eq!(anonymous.status, 2);
    assert!(anonymous.stderr.ends_with("Use --token-file, or --tls-cert and --tls-key.\n"));
    let token = directory.path().join("token");
    std::fs::write(&token, "abcd\n").unwrap();
    let token = token.to_str().unwrap();
    let read = ask(&["status", "--token-file", token]);
    assert!(read.status < 2, "{}", read.stderr);
    let refused = ask(&["resume", "--token-file", token]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("role `operate`"), "{}", refused.stderr);
    assert!(refused.stderr.contains("Use a token (--token-file)"), "{}", refused.stderr);
}
