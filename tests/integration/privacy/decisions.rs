//! The decision log of a daemon.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::repository;
use crate::program::{Daemon, GitRepository, serve, started_by};

const RULES: [&str; 2] = ["os.family = Debian", "db_password = x"];

fn lines(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn body(filler: &str) -> String {
    json!({"fact": {"os": {"family": "Debian", "name": filler}, "db_password": "hidden", "app": filler}}).to_string()
}

fn program(repository: &GitRepository, log: &Path, more: &[&str]) -> Command {
    let path = repository.text_path();
    serve(&[&["--repo", &path, "--decision-log", log.to_str().unwrap()], more].concat())
}

#[test]
fn each_answer_to_a_node_is_a_line() {
    use std::os::unix::fs::PermissionsExt as _;

    let repository = repository(&RULES);
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("decisions.jsonl");
    let daemon = Daemon::launch(program(&repository, &log, &[]));
    let commit = daemon.get("/controller/status").json()["active"]["commit"].clone();
    let classify = |name: &str| {
        let path = format!("/v1/classified/nodes/{name}");
        assert_eq!(daemon.request("POST", &path, &body("x")).status, 200);
    };
    classify("web1");
    classify("web2");
    daemon.request("POST", "/v1/classified/nodes/web3", r#"{"fact": {"os": {"family": "Suse"}}}"#);
    assert_eq!(daemon.request("POST", "/enc/web1", &body("x")).status, 200);
    assert_eq!(daemon.get("/enc/web1").status, 500, "a masked value is not stored");
    assert_eq!(daemon.get("/v1/groups").status, 200);
    assert_eq!(daemon.terminate(), 0);

    let lines = lines(&log);
    let paths: Vec<&str> = lines.iter().map(|it| it["path"].as_str().unwrap()).collect();
    let classified = ["web1", "web2", "web3"].map(|it| format!("/v1/classified/nodes/{it}"));
    let classified = classified.each_ref().map(String::as_str);
    assert_eq!(paths, [&classified[..], &["/enc/web1", "/enc/web1"]].concat());
    let first = &lines[0];
    assert_eq!(
        first["input"],
        json!({"name": "web1", "fact": {"os": {"family": "Debian"}, "db_password": "[masked]"}, "trusted": {}})
    );
    assert_eq!(first["masked"], json!(["/input/fact/db_password"]));
    assert_eq!(first["bundles"]["clade"]["revision"], commit);
    assert_eq!(first["labels"]["app"], "clade");
    assert!(first["metrics"]["timer_server_handler_ns"].as_u64().unwrap() > 0);
    assert!(first["timestamp"].as_str().unwrap().ends_with('Z'));
    let result = |at: usize| lines[at]["result"].as_str().unwrap();
    assert_eq!((result(0).len(), result(0)), (64, result(1)), "equal answers have equal ids");
    assert_ne!(result(0), result(2));
    assert_eq!(result(0), result(3));
    assert_eq!(lines[4]["error"]["code"], "rule-evaluation-error");
    let ids: std::collections::BTreeSet<&str> =
        lines.iter().map(|it| it["decision_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), lines.len());
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn standard_output_gets_decisions_and_nothing_else() {
    let repository = repository(&RULES);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    // The helper discards the standard output of the program that it starts.
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"out=$0; exec "$@" >"$out""#]).arg(&out);
    let daemon = Daemon::launch(started_by(shell, &program(&repository, Path::new("-"), &[])));
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", &body("x")).status, 200);
    assert_eq!(daemon.terminate(), 0);
    let lines = lines(&out);
    assert_eq!((lines.len(), &lines[0]["input"]["name"]), (1, &json!("web1")));
}

#[test]
fn files_are_rotated_and_follow_the_path() {
    let repository = repository(&RULES);
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("decisions.jsonl");
    let numbered = |it: u32| directory.path().join(format!("decisions.jsonl.{it}"));
    let limits = ["--decision-log-max-bytes", "65536", "--decision-log-keep", "2"];
    let daemon = Daemon::launch(program(&repository, &log, &limits));
    let classify = || {
        assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", &body("x")).status, 200);
    };
    daemon.wait_until("two files are full", |_| {
        (0..50).for_each(|_| classify());
        numbered(2).exists()
    });
    daemon.wait_until("another one is", |_| {
        (0..50).for_each(|_| classify());
        assert!(!numbered(3).exists());
        fs::metadata(&log).is_ok_and(|it| it.len() > 0)
    });
    for path in [log.clone(), numbered(1), numbered(2)] {
        assert!(fs::metadata(&path).unwrap().len() <= 65536);
        assert!(!lines(&path).is_empty());
    }
    // As `logrotate` does.
    let moved = directory.path().join("moved");
    fs::rename(&log, &moved).unwrap();
    daemon.wait_until("the file is there again", |_| {
        classify();
        log.exists()
    });
    assert_eq!(daemon.terminate(), 0);
    assert!(!lines(&log).is_empty() && !lines(&moved).is_empty());
}

/// Runs a program that has a small disk of its own at a directory, until it is remounted by `grow`.
const ON_A_SMALL_DISK: &str = r#"mount -t tmpfs -o size=64k none "$0" && exec "$@""#;

/// Runs a program for which a file of another directory is mounted at the log, as containers do.
const WITH_A_MOUNTED_FILE: &str =
    r#"mount --bind "$0/of-the-host" "$0/decisions.jsonl" && exec "$@""#;

/// Returns what runs a program behind a script that mounts something for it; none where that is not allowed.
fn mounting(script: &str, directory: &Path) -> Option<Command> {
    let command = || {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script]).arg(directory);
        command
    };
    let tried = command().arg("true").stderr(Stdio::null()).status();
    tried.is_ok_and(|it| it.success()).then(command)
}

/// What a test says that needs [`mounting`] and cannot have it.
const SKIPPED: &str = "skipped: this machine does not allow to mount anything";

#[test]
fn a_file_that_cannot_be_renamed_grows_and_the_kept_ones_stay() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("decisions.jsonl");
    let host = directory.path().join("of-the-host");
    let numbered = |it: u32| directory.path().join(format!("decisions.jsonl.{it}"));
    for path in [&log, &host] {
        fs::write(path, "").unwrap();
    }
    for number in 1..=5 {
        fs::write(numbered(number), number.to_string()).unwrap();
    }
    let Some(mounting) = mounting(WITH_A_MOUNTED_FILE, directory.path()) else {
        println!("{SKIPPED}");
        return;
    };
    let repository = repository(&RULES);
    let limits = ["--decision-log-max-bytes", "65536"];
    let daemon = Daemon::launch(started_by(mounting, &program(&repository, &log, &limits)));
    let mut count = 0;
    let begun = std::time::Instant::now();
    // Longer than the time in which the path is compared with the file.
    while begun.elapsed().as_secs() < 3 || fs::metadata(&host).unwrap().len() < 2 * 65536 {
        assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", &body("x")).status, 200);
        count += 1;
        assert!(begun.elapsed().as_secs() < 90, "{count}");
    }
    let said = daemon.log_lines();
    let is_of_rotation = |it: &&String| it.contains("decision log") && !it.contains("its mode was");
    let said: Vec<&String> = said.iter().filter(is_of_rotation).collect();
    assert!(said.len() == 1 && said[0].contains("cannot be rotated"), "{said:?}");
    assert_eq!(daemon.terminate(), 0);
    assert_eq!(lines(&host).len(), count);
    for number in 1..=5 {
        assert_eq!(fs::read_to_string(numbered(number)).unwrap(), number.to_string());
    }
    assert!(!numbered(0).exists());
}

#[test]
fn a_full_disk_drops_lines_and_answers_go_on() {
    let disk = tempfile::tempdir().unwrap();
    let Some(small) = mounting(ON_A_SMALL_DISK, disk.path()) else {
        println!("{SKIPPED}");
        return;
    };
    let repository = repository(&RULES);
    let log = disk.path().join("decisions.jsonl");
    let daemon = Daemon::launch(started_by(small, &program(&repository, &log, &[])));
    // The disk as the daemon sees it.
    let seen = |path: &Path| {
        let path = path.strip_prefix("/").unwrap();
        Path::new("/proc").join(daemon.id().to_string()).join("root").join(path)
    };
    let metric = |name: &str| {
        let metrics = daemon.get("/metrics").body;
        let line = metrics.lines().find(|it| it.starts_with(name)).map(str::to_owned);
        line.and_then(|it| it.rsplit_once(' ')?.1.parse::<u64>().ok()).unwrap_or_default()
    };
    let dropped = || metric("clade_decision_log_lines_dropped_total{reason=\"write-failed\"}");
    daemon.wait_until("lines are dropped", |it| {
        (0..50).for_each(|_| {
            assert_eq!(it.request("POST", "/v1/classified/nodes/web1", &body("x")).status, 200);
        });
        dropped() > 0
    });
    let whole = fs::read_to_string(seen(&log)).unwrap();
    assert!(whole.ends_with('\n'));
    assert!(whole.lines().all(|it| serde_json::from_str::<Value>(it).is_ok()));
    // An operator makes room.
    fs::remove_file(seen(&log)).unwrap();
    let written = metric("clade_decision_log_lines_total");
    daemon.wait_until("lines are written again", |it| {
        assert_eq!(it.request("POST", "/v1/classified/nodes/web1", &body("x")).status, 200);
        metric("clade_decision_log_lines_total") > written
    });
}

/// Returns how many lines were dropped because too much waited.
fn dropped(daemon: &Daemon) -> u64 {
    let metrics = daemon.get("/metrics").body;
    let series = "clade_decision_log_lines_dropped_total{reason=\"queue-full\"} ";
    metrics.lines().find_map(|it| it.strip_prefix(series)).unwrap().parse().unwrap()
}

#[test]
fn an_answer_that_failed_is_logged_and_kept_as_failed() {
    let repository = GitRepository::new();
    let group = "name: Web\nrule: 'name ~ ^web'\nvariables: {secret: 'a ${app_secret}'}\n";
    let files = [("groups/web.yaml", group), ("clade.yaml", "interpolate: true\n")];
    repository.commit("facts in values", &files);
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("decisions.jsonl");
    let daemon = Daemon::launch(program(&repository, &log, &[]));
    // What a client sends that shows masked facts; the same with what is not stored.
    let masked = r#"{"fact": {"app_secret": "[masked]"}}"#;
    for path in ["/v1/classified/nodes/web1", "/v2/classified/nodes/web2", "/enc/web3"] {
        let answer = daemon.request("POST", path, masked);
        assert_eq!((answer.status, &answer.json()["kind"]), (500, &json!("rule-evaluation-error")));
        let node = path.rsplit('/').next().unwrap();
        daemon.wait_until("the check-in is kept", |it| {
            it.get(&format!("/controller/nodes/{node}")).status == 200
        });
        let kept = daemon.get(&format!("/controller/nodes/{node}")).json();
        assert_eq!(kept["answer"]["state"], "error", "{path}: {kept}");
    }
    assert_eq!(daemon.terminate(), 0);
    let lines = lines(&log);
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!(line["error"]["code"], "rule-evaluation-error", "{line}");
        assert_eq!(line.get("result"), None);
    }
}

/// Starts a daemon whose standard output is not read.
fn unread(repository: &GitRepository, directory: &Path) -> Daemon {
    let pipe = directory.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut shell = Command::new("sh");
    // Open for reading and writing, so that it opens at once and stays open; it is never read.
    shell.args(["-c", r#"pipe=$0; exec "$@" 1<>"$pipe""#]).arg(&pipe);
    Daemon::launch(started_by(shell, &program(repository, Path::new("-"), &[])))
}

#[test]
fn an_output_that_is_not_read_drops_lines_and_delays_no_answer() {
    let repository = repository(&RULES);
    let directory = tempfile::tempdir().unwrap();
    let daemon = unread(&repository, directory.path());
    let asked = Cell::new(0);
    daemon.wait_until("lines are dropped", |it| {
        asked.set(asked.get() + 50);
        let large = body(&"x".repeat(100_000));
        (0..50).for_each(|_| {
            assert_eq!(it.request("POST", "/v1/classified/nodes/web1", &large).status, 200);
        });
        dropped(it) > 0
    });
    let metrics = daemon.get("/metrics").body;
    let written = metrics.lines().find_map(|it| it.strip_prefix("clade_decision_log_lines_total "));
    let unwritten = asked.get() - dropped(&daemon) - written.unwrap().parse::<u64>().unwrap();
    // The end comes within the grace period all the same.
    daemon.signal("TERM");
    let said = format!("ERROR {unwritten} lines of the decision log are lost");
    daemon.wait_until("the end says what is lost", |it| {
        it.log_lines().iter().any(|it| it.contains(&said))
    });
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn facts_in_values_count_with_what_they_take_while_they_wait() {
    let repository = GitRepository::new();
    let group = "name: Web\nrule: 'name ~ ^web'\nvariables: {app: 'a ${app[0]}'}\n";
    let files = [("groups/web.yaml", group), ("clade.yaml", "interpolate: true\n")];
    repository.commit("facts in values", &files);
    let directory = tempfile::tempdir().unwrap();
    let daemon = unread(&repository, directory.path());
    let ask = |fact: &str, count: usize| {
        let body = json!({"fact": {"app": [fact]}}).to_string();
        for _ in 0..count {
            assert_eq!(daemon.request("POST", "/enc/web1", &body).status, 200);
        }
    };
    // The pipe takes 64 KiB, and the queue many short lines more.
    ask("x", 400);
    assert_eq!(dropped(&daemon), 0);
    ask(&"x".repeat(500_000), 60);
    assert!(dropped(&daemon) > 0);
    assert_eq!(daemon.terminate(), 0);
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error_at_the_start() {
    let repository = repository(&RULES);
    for (path, why) in
        [("/nonexistent/decisions", "No such file"), ("/dev/full", "it is not a regular file")]
    {
        let done = program(&repository, Path::new(path), &[]).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("cannot open the decision log `{path}`")) && said.contains(why),
            "{said}"
        );
    }
}
