//! No daemon answers, or its answer is an error.

use std::process::Command;

use super::{FACTS, Machine, classes, repository, url};
use crate::program::{Daemon, Done, GitRepository, clade, started_by};
use crate::table::each_row;

/// A machine with one last good answer.
fn asked_once() -> (Machine, String) {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    machine.write("facts/web1.example.com.json", FACTS);
    let server = url(&daemon);
    assert_eq!(classes(&ask(&machine, &server, &[])), ["apt"]);
    daemon.kill();
    (machine, server)
}

fn ask(machine: &Machine, server: &str, more: &[&str]) -> Done {
    let facts = machine.path("facts");
    machine.enc("web1.example.com", &[&["--server", server, "--facts-dir", &facts], more].concat())
}

#[test]
fn the_last_good_answer_replaces_that_of_an_unreachable_daemon() {
    let (machine, server) = asked_once();
    let stale = ask(&machine, &server, &[]);
    assert_eq!(classes(&stale), ["apt"]);
    let said = format!(
        "clade enc: cannot reach `{server}`: io: Connection refused (os error 111); using the last good answer: "
    );
    assert!(stale.stderr.starts_with(&said), "{}", stale.stderr);
    assert!(stale.stderr.contains("s old, from ") && stale.stderr.lines().count() == 1);

    let never = ask(&machine, &server, &["--max-stale", "0"]);
    let reason = format!(
        "clade enc: cannot reach `{server}`: io: Connection refused (os error 111); `--max-stale 0` allows no last good answer\n"
    );
    assert_eq!((never.status, &never.stdout, &never.stderr), (1, &reason, &reason));

    let other = machine.enc("web2.example.com", &["--server", &server]);
    let reason = format!(
        "clade enc: cannot reach `{server}`: io: Connection refused (os error 111); there is no last good answer\n"
    );
    assert_eq!((other.status, &other.stdout, &other.stderr), (1, &reason, &reason));
}

#[test]
fn an_answer_that_is_too_old_or_damaged_is_not_used() {
    let (machine, server) = asked_once();
    let path = machine.path("cache/answers/web1.example.com.json");
    let kept = std::fs::read_to_string(&path).unwrap();
    let (_, rest) = kept.split_once("\",").unwrap();
    for (content, why) in [
        (
            format!("{{\"answered_at\":\"2020-01-01T00:00:00Z\",{rest}"),
            "h old, and `--max-stale` allows 24h\n",
        ),
        (
            format!("{{\"answered_at\":\"2100-01-01T00:00:00Z\",{rest}"),
            "the last good answer is of a time to come: the clock was set back, so its age is not known\n",
        ),
        (kept[..kept.len() / 2].to_owned(), "line 1 column "),
        (String::new(), "line 1 column 0\n"),
    ] {
        std::fs::write(&path, content).unwrap();
        let done = ask(&machine, &server, &[]);
        assert_eq!(done.status, 1);
        assert!(done.stdout.contains(why) && done.stdout == done.stderr, "{}", done.stdout);
    }
}

#[test]
fn a_conflict_is_not_a_reason_for_an_old_answer() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    let facts = machine.path("facts");
    let usual = ["--server", &url(&daemon), "--facts-dir", &facts];
    std::fs::create_dir(&facts).unwrap();
    // Without facts there is no conflict yet.
    assert!(classes(&machine.enc("torn", &usual)).is_empty());
    machine.write("facts/torn.json", FACTS.replace("web1.example.com", "torn"));
    let torn = machine.enc("torn", &usual);
    assert_eq!(torn.status, 1);
    assert!(
        torn.stdout.starts_with("clade enc: The node was classified into groups named"),
        "{}",
        torn.stdout
    );
    assert!(torn.stdout.contains("\"Torn\"") && torn.stdout.contains("apt"), "{}", torn.stdout);
    assert!(torn.stdout == torn.stderr && torn.stdout.lines().count() == 1);
    // An agent shows this line and has no `details`.
    let set = |with: &str| {
        format!(
            r#"Set differently: "apt::x" by "Other" and "Torn". `clade explain torn {with}` shows the values."#
        )
    };
    let asked = format!("--server {}", url(&daemon));
    assert!(torn.stdout.contains(&set(&asked)), "{}", torn.stdout);
    assert!(!torn.stdout.contains("details"), "{}", torn.stdout);
    let repository = repository.text_path();
    let offline = machine.enc("torn", &["--repo", &repository, "--facts-dir", &facts]);
    let own = format!("{repository} --facts {facts}/torn.json");
    assert_eq!((offline.status, offline.stdout), (1, torn.stdout.replace(&asked, &own)));
    let told = machine.enc("torn", &[&usual[..], &["--stale-on-conflict"]].concat());
    assert!(classes(&told).is_empty() && told.stderr.contains("using the last good answer"));
}

#[test]
fn an_answer_that_cannot_be_kept_is_still_an_answer() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    let file = machine.write("file", "x");
    let done = machine.enc("n", &["--server", &url(&daemon), "--cache-dir", &file]);
    assert_eq!(done.status, 0);
    assert!(done.stderr.starts_with("clade enc: cannot keep this answer in `"), "{}", done.stderr);
}

#[test]
fn a_limit_of_the_size_of_files_does_not_end_the_run() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    let puppet = machine.write("puppet.conf", "vardir = /nonexistent\n");
    let (server, cache) = (url(&daemon), machine.path("cache"));
    let arguments = ["enc", "n", "--server", &server, "--puppet-conf", &puppet, "--cache-dir"];
    let mut limited = Command::new("sh");
    limited.args(["-c", r#"ulimit -f 0; exec "$0" "$@""#]);
    let mut command = started_by(limited, &clade(&[&arguments[..], &[&cache]].concat()));
    let done = Done::from(command.output().unwrap());
    assert!(classes(&done).is_empty());
    let reason = "/answers/n.json`: File too large (os error 27)\n";
    assert!(done.stderr.ends_with(reason), "{}", done.stderr);
    assert_eq!(std::fs::read_dir(format!("{cache}/answers")).unwrap().count(), 0);
}

#[test]
fn names_that_lead_elsewhere_are_refused_before_any_request() {
    let machine = Machine::new();
    let outside = machine.write("outside.json", FACTS);
    let facts = machine.path("facts");
    each_row(
        ["../outside", "a/b", "..", ".hidden", "web1 example", "web1;id", "wéb1", ""],
        |name| {
            let done = machine.enc(name, &["--facts-dir", &facts]);
            let reason = format!("clade enc: `{}` is not a certname: ", name.escape_debug());
            assert!(done.status == 1 && done.stdout.starts_with(&reason), "{}", done.stdout);
            assert_eq!(done.stdout, done.stderr);
        },
    );
    assert!(!std::path::Path::new(&machine.path("cache")).exists() && outside.ends_with("json"));
}

#[test]
fn what_only_yaml_can_say_is_an_answer() {
    let repository = GitRepository::new();
    let long = "k".repeat(1020);
    let group = format!("name: A\nrule: name = n\nvariables:\n  long: {{? {long} : 1}}\n");
    repository.commit("long", &[("groups/a.yaml", &group)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let done = Machine::new().enc("n", &["--server", &url(&daemon)]);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{}", done.stdout);
    assert!(done.stdout.contains(&format!("{{\"long\": {{? \"{long}\": 1}}}}")));
}
