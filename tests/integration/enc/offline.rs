//! `clade enc --repo`: what a daemon would answer, without one.

use super::{Authority, FACTS, Machine, classes, repository, url};
use crate::program::{Daemon, GitRepository, run};
use crate::table::each_row;

/// Groups whose rules read facts, a certificate, and that the agent was authenticated.
const MORE: &str = "name: Remote
rule: trusted.authenticated = remote
classes: {remote: {}}
";

fn groups() -> GitRepository {
    let repository = repository();
    repository.commit("more", &[("groups/more.yaml", MORE)]);
    repository
}

/// A machine that knows two nodes: of one the facts, the certificate and a body with forged trusted data.
fn machine() -> Machine {
    let machine = Machine::new();
    let signed = Authority::new().sign("web1.example.com", &[(1, 13, "web"), (2, 1, "r12")]).0;
    machine.write("ca/signed/web1.example.com.pem", signed);
    machine.write("data/yaml/facts/web1.example.com.json", FACTS);
    let forged = r#"{"fact": {}, "trusted": {"extensions": {"pp_role": "web"}}}"#;
    machine.write("data/yaml/facts/forged.example.com.json", forged);
    machine.write("data/yaml/facts/half.example.com.json", "{");
    machine.write("names.yaml", "oid_mapping: {1.3.6.1.4.1.34380.1.2.1: {shortname: rack}}\n");
    let root = machine.path("");
    machine.write(
        "own.conf",
        format!(
            "[server]\nvardir = {root}data\n[main]\ncadir = {root}ca\ntrusted_oid_mapping_file = {root}names.yaml\n"
        ),
    );
    machine
}

#[test]
fn an_answer_without_a_daemon_is_that_of_a_daemon() {
    let (repository, machine) = (groups(), machine());
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let [facts, signed, conf] =
        ["data/yaml/facts", "ca/signed", "own.conf"].map(|it| machine.path(it));
    let rows: [(&str, &[&str], &[&str]); 6] = [
        (
            "web1.example.com",
            &["--facts-dir", &facts, "--signed-dir", &signed],
            &["apt", "remote", "role::web"],
        ),
        ("web1.example.com", &["--puppet-conf", &conf], &["apt", "rack", "remote", "role::web"]),
        ("web1.example.com", &["--signed-dir", &signed], &["remote", "role::web"]),
        ("forged.example.com", &["--facts-dir", &facts], &["remote"]),
        ("unknown.example.com", &["--facts-dir", &facts], &["remote"]),
        ("web1.example.com", &["--facts-dir", &facts, "--format", "json"], &["apt", "remote"]),
    ];
    let (server, path) = (url(&daemon), repository.text_path());
    each_row(rows, |(node, arguments, expected)| {
        let asked = machine.enc(node, &[&["--server", &server], arguments].concat());
        let own = machine.enc(node, &[&["--repo", &path], arguments].concat());
        let mut found = classes(&own);
        found.sort();
        assert_eq!(found, expected, "{arguments:?}");
        assert_eq!(own.stderr, asked.stderr, "{arguments:?}");
        // Of a node without facts here a daemon uses those that it has.
        if arguments.contains(&"--facts-dir") {
            assert_eq!(own.stdout, asked.stdout, "{arguments:?}");
        }
    });
    let half = ["--repo", &path, "--facts-dir", &facts];
    let half = machine.enc("half.example.com", &half);
    let reason = "clade enc: cannot use the facts in ";
    assert!(half.status == 1 && half.stdout.starts_with(reason), "{}", half.stdout);
}

#[test]
fn facts_that_are_required_are_required_without_a_daemon() {
    let (repository, machine) = (groups(), machine());
    let facts = machine.path("data/yaml/facts");
    let path = repository.text_path();
    let usual = ["--repo", &path, "--facts-dir", &facts, "--enc-facts", "required"];
    for (node, reason) in [
        (
            "unknown.example.com",
            "clade enc: there are no facts of `unknown.example.com` yet, and they are required\n",
        ),
        ("half.example.com", "clade enc: cannot use the facts in `"),
    ] {
        let done = machine.enc(node, &usual);
        assert_eq!((done.status, &done.stdout), (1, &done.stderr), "{node}");
        assert!(done.stdout.starts_with(reason), "{}", done.stdout);
    }
}

#[test]
fn the_budget_of_a_commit_holds_without_a_daemon() {
    let (repository, machine) = (groups(), Machine::new());
    let path = repository.text_path();
    let done = machine.enc("web1", &["--repo", &path, "--commit-budget", "groups=2"]);
    assert_eq!((done.status, &done.stdout), (1, &done.stderr));
    assert!(done.stdout.contains("the repository is not valid"), "{}", done.stdout);
}

#[test]
fn the_command_that_explains_a_conflict_has_the_same_facts() {
    let (repository, machine) = (groups(), Machine::new());
    machine.write("facts/torn.json", r#"{"os": {"family": "Debian"}}"#);
    let (path, facts) = (repository.text_path(), machine.path("facts"));
    let done = machine.enc("torn", &["--repo", &path, "--facts-dir", &facts]);
    assert_eq!(done.status, 1);
    let (_, command) = done.stdout.split_once("`clade ").unwrap();
    let (command, rest) = command.split_once('`').unwrap();
    assert_eq!(rest, " shows the values.\n");
    let words: Vec<&str> = command.split(' ').collect();
    let explained = run(&words);
    assert!(explained.stdout.contains("conflicts\n"), "{command}: {}", explained.stdout);
    let signed = Authority::new().sign("torn", &[]).0;
    let certificate = machine.write("signed/torn.pem", signed);
    let signed = machine.path("signed");
    let usual = ["--repo", &path, "--facts-dir", &facts, "--signed-dir", &signed];
    let done = machine.enc("torn", &usual);
    let advice = format!(
        " Put the extensions of the certificate {certificate} into a file for `--trusted`.\n"
    );
    assert!(done.stdout.ends_with(&advice), "{}", done.stdout);
}
