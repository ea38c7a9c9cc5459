//! Facts that a daemon refuses: by those that it knows a conflict is found, and nothing else is an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{Machine, classes, repository, url};
use crate::git::server::{Request, Server};
use crate::program::{Daemon, Done, GitRepository};
use crate::table::each_row;

const CONFLICT: &str = r#"{"kind": "classification-conflict", "msg": "Torn.", "details": {}}"#;

const RULE_ERROR: &str = r#"{"kind": "rule-evaluation-error", "msg": "Too long."}"#;

const DOCUMENT: &str = r#"{"classes": {"bare": {}}, "parameters": {}}"#;

/// A machine with facts of a node, so many values.
fn machine(values: usize) -> Machine {
    let machine = Machine::new();
    let facts = json!({"name": "n", "values": {"os": {"family": "Debian"}, "x": vec![0; values]}});
    machine.write("facts/n.json", facts.to_string());
    machine
}

fn ask(machine: &Machine, servers: &[&str], more: &[&str]) -> Done {
    let (facts, servers) = (machine.path("facts"), servers.join(","));
    machine.enc("n", &[&["--server", &servers, "--facts-dir", &facts], more].concat())
}

/// A daemon that answers requests with facts in one way, and those by the facts that it knows in another; and how many
/// it got.
struct Refusing {
    server: Server,
    asked: Arc<AtomicUsize>,
}

impl Refusing {
    fn start(with_facts: &'static str, status: &'static str, without: &'static str) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let server = Server::http(move |request: &Request| {
            count.fetch_add(1, Ordering::SeqCst);
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            assert!(body["trusted"].is_object(), "{body}");
            let facts = body.get("fact");
            let (line, body) = match request.target.as_str() {
                "/enc/n" => (with_facts, "<html>"),
                "/hiera/n" if facts.is_none() => (status, without),
                path => panic!("{path} {body}"),
            };
            let head = format!("Content-Length: {}\r\nConnection: close", body.len());
            format!("HTTP/1.1 {line}\r\n{head}\r\n\r\n{body}").into()
        });
        Self { server, asked }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }
}

#[test]
fn a_conflict_is_found_without_facts_that_are_too_many_and_no_answer_is() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let server = url(&daemon);
    let machine = machine(1);
    assert_eq!(classes(&ask(&machine, &[&server], &[])), ["apt"]);
    // As many values as a file may have, and with the trusted data more than a request may have.
    let many = json!({"name": "n", "values": {"x": vec![0; 249_995]}}).to_string();
    machine.write("facts/n.json", many);
    let stale = ask(&machine, &[&server], &[]);
    assert_eq!(classes(&stale), ["apt"]);
    let reason = format!("clade enc: `{server}` answers 413 Payload Too Large: ");
    assert!(stale.stderr.starts_with(&reason), "{}", stale.stderr);
    let alone = ask(&machine, &[&server], &["--max-stale", "0"]);
    assert!(alone.status == 1 && alone.stdout.starts_with(&reason), "{}", alone.stdout);
    let torn =
        |number: u8| format!("name: T{number}\nrule: name = n\nclasses: {{t: {{x: {number}}}}}\n");
    let commit =
        repository.commit("torn", &[("groups/t1.yaml", &torn(1)), ("groups/t2.yaml", &torn(2))]);
    daemon.wait_until("the commit is live", |it| {
        it.get("/enc/m").header("X-Clade-Commit") == Some(&commit)
    });
    let done = ask(&machine, &[&server], &[]);
    let reason = "clade enc: The node was classified into groups named";
    assert!(done.status == 1 && done.stdout.starts_with(reason), "{}", done.stdout);
    // Where facts are required, nothing is asked without them.
    let required = ask(&machine, &[&server], &["--enc-facts", "required"]);
    assert_eq!(classes(&required), ["apt"]);
}

#[test]
fn only_errors_of_the_node_count_without_its_facts() {
    let rows = [
        ("413 X", "500 X", CONFLICT, Some("clade enc: Torn.\n")),
        ("400 X", "500 X", CONFLICT, Some("clade enc: Torn.\n")),
        ("413 X", "500 X", RULE_ERROR, Some("clade enc: Too long.\n")),
        ("413 X", "200 OK", DOCUMENT, None),
        ("413 X", "404 X", r#"{"kind": "not-found", "msg": "No facts."}"#, None),
        ("400 X", "503 X", r#"{"kind": "no-snapshot", "msg": "Not yet."}"#, None),
        ("413 X", "413 X", "<html>", None),
    ];
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    each_row(rows, |(with_facts, status, without, reason)| {
        let machine = machine(1);
        assert_eq!(classes(&ask(&machine, &[&url(&daemon)], &[])), ["apt"]);
        let refusing = Refusing::start(with_facts, status, without);
        let other = Refusing::start("503 X", "500 X", CONFLICT);
        let done = ask(&machine, &[&refusing.url(), &other.url()], &[]);
        match reason {
            Some(reason) => assert_eq!((done.status, done.stdout.as_str()), (1, reason)),
            None => assert_eq!(classes(&done), ["apt"], "the last good answer"),
        }
        let asked = [&refusing, &other].map(|it| it.asked.load(Ordering::SeqCst));
        assert_eq!(asked, [2, 1]);
    });
}

#[test]
fn each_daemon_is_asked_with_the_facts_before_any_without() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let refusing = Refusing::start("413 X", "500 X", CONFLICT);
    let done = ask(&machine(1), &[&refusing.url(), &url(&daemon)], &[]);
    assert_eq!(classes(&done), ["apt"], "the second daemon has answered");
    assert_eq!(refusing.asked.load(Ordering::SeqCst), 1);
    // Of two that refuse them, the one that knows the node finds its conflict.
    let unknown = r#"{"kind": "not-found", "msg": "No facts."}"#;
    let (first, second) =
        (Refusing::start("413 X", "404 X", unknown), Refusing::start("413 X", "500 X", CONFLICT));
    let done = ask(&machine(1), &[&first.url(), &second.url()], &[]);
    assert_eq!((done.status, done.stdout.as_str()), (1, "clade enc: Torn.\n"));
}

/// Two groups that conflict for a node without the fact `kernel`.
const WHERE_IT_IS_MISSING: &str = "name: T1
rule: not kernel = windows
classes: {t: {x: 1}}
---
name: T2
rule: name = n
classes: {t: {x: 2}}
";

#[test]
fn what_is_asked_after_a_refusal_is_not_recorded_and_misses_no_fact() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/all.yaml", WHERE_IT_IS_MISSING)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let (server, machine) = (url(&daemon), Machine::new());
    let facts = |many: usize| {
        let values = json!({"kernel": "windows", "x": vec![0; many]});
        machine.write("facts/n.json", json!({"name": "n", "values": values}).to_string());
    };
    facts(249_994);
    let done = ask(&machine, &[&server], &[]);
    let reason = format!("clade enc: `{server}` answers 413 Payload Too Large: ");
    assert!(done.status == 1 && done.stdout.starts_with(&reason), "{}", done.stdout);
    assert_eq!(daemon.get("/controller/nodes/n").status, 404, "nothing is known of the node");
    facts(1);
    assert_eq!(classes(&ask(&machine, &[&server], &[])), ["t"]);
    daemon.wait_until("the check-in is there", |it| it.get("/controller/nodes/n").status == 200);
    let known = || {
        ["/controller/nodes/n", "/controller/nodes/n/history", "/v1/nodes/n"]
            .map(|path| daemon.get(path).body)
    };
    let before = known();
    facts(249_994);
    let stale = ask(&machine, &[&server], &[]);
    assert_eq!(classes(&stale), ["t"]);
    assert!(stale.stderr.starts_with(&reason), "{}", stale.stderr);
    // Check-ins are written in the order in which they came.
    daemon.request("POST", "/enc/m", r#"{"fact": {"kernel": "windows"}}"#);
    daemon.wait_until("the next one is there", |it| it.get("/controller/nodes/m").status == 200);
    assert_eq!(known(), before);
}

#[test]
fn what_is_wrong_with_a_daemon_is_not_looked_for_without_facts() {
    each_row(["401 X", "403 X", "404 X", "500 X", "503 X"], |status| {
        let refusing = Refusing::start(status, "500 X", CONFLICT);
        let done = ask(&machine(1), &[&refusing.url()], &[]);
        assert!(done.status == 1 && !done.stdout.contains("Torn"), "{}", done.stdout);
        assert_eq!(refusing.asked.load(Ordering::SeqCst), 1);
    });
    // A request that has no facts is not sent a second time.
    let refusing = Refusing::start("413 X", "413 X", "<html>");
    let done = Machine::new().enc("n", &["--server", &refusing.url()]);
    assert_eq!((done.status, refusing.asked.load(Ordering::SeqCst)), (1, 1));
}
