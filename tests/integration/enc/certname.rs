//! A node whose trusted data has no certname: what it is answered, and what the store says of it afterwards.

use serde_json::{Value, json};

use crate::program::{Daemon, GitRepository};
use crate::table::each_row;

/// Two groups by certname, one of which conflicts with a third by fact, and a value with the certname in it.
const GROUPS: &str = "name: Named
id: 00000000-0000-4000-8000-000000000001
rule: trusted.certname ~ www
classes: {role::www: {address: \"${trusted['certname']}:80\"}}
---
name: Torn by name
id: 00000000-0000-4000-8000-000000000002
rule: trusted.certname = torn
classes: {apt: {x: 1}}
---
name: Torn by fact
rule: memory.system.total_bytes > 0
classes: {apt: {x: 2}}
";

const NAMED: &str = "00000000-0000-4000-8000-000000000001";
const TORN: &str = "00000000-0000-4000-8000-000000000002";
const FACTS: &str = r#"{"fact": {"memory": {"system": {"total_bytes": 1024}}}}"#;

fn daemon() -> (GitRepository, Daemon) {
    let repository = GitRepository::new();
    let files = [("groups/all.yaml", GROUPS), ("clade.yaml", "interpolate: true\n")];
    repository.commit("first", &files);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    (repository, daemon)
}

/// Returns the names of nodes in a list of the store.
fn nodes(daemon: &Daemon, query: &str) -> Vec<Value> {
    let list = daemon.get(&format!("/controller/nodes?{query}")).json();
    list["nodes"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect()
}

/// Returns whether a JSON text has the id of a group.
fn names(daemon: &Daemon, path: &str, group: &str) -> bool {
    let answer = daemon.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.body.contains(group)
}

#[test]
fn the_store_says_of_a_node_without_a_certname_what_it_was_answered() {
    let (_repository, daemon) = daemon();
    let answer = daemon.request("POST", "/enc/www10", FACTS);
    assert!(answer.body.contains("role::www"), "{}", answer.body);
    let answer = daemon.request("POST", "/enc/torn", FACTS);
    assert_eq!(
        (answer.status, answer.json()["kind"].clone()),
        (500, "classification-conflict".into())
    );
    daemon.wait_until("both check-ins are stored", |it| nodes(it, "").len() == 2);
    each_row(
        [
            ("/controller/nodes/www10", NAMED),
            ("/v1/nodes/www10", NAMED),
            ("/controller/nodes/torn", TORN),
        ],
        |(path, group)| assert!(names(&daemon, path, group), "{path}"),
    );
    assert_eq!(nodes(&daemon, "state=conflict"), ["torn"]);
    assert_eq!(nodes(&daemon, &format!("group={NAMED}")), ["www10"]);
    let members = daemon.get(&format!("/v1/groups/{NAMED}/nodes")).json();
    assert_eq!(members["nodes"], json!(["www10"]));
    let members = daemon.get("/controller/group-members").json();
    assert!(members.as_array().unwrap().contains(&json!({"id": NAMED, "nodes": 1})), "{members}");
    let found = daemon.get("/controller/query?rule=trusted.certname%20~%20www").json();
    assert_eq!(found["nodes"][0]["name"], "www10", "{found}");
    let values = daemon.get("/controller/nodes/www10/values").body;
    let kept = daemon.get("/controller/nodes/www10").body;
    for text in [values, kept] {
        assert!(text.contains("www10:80"), "{text}");
    }
    assert_eq!(daemon.get("/enc/www10").body, daemon.request("POST", "/enc/www10", FACTS).body);
}

/// What is sent alone counts there, as in Puppet Enterprise, and the store keeps that answer.
#[test]
fn a_classified_document_and_its_check_in_have_the_certname_that_was_sent() {
    let (_repository, daemon) = daemon();
    let answer = daemon.request("POST", "/v1/classified/nodes/www10", FACTS);
    assert!(!answer.body.contains(NAMED), "{}", answer.body);
    daemon.wait_until("the check-in is stored", |it| nodes(it, "").len() == 1);
    assert!(!names(&daemon, "/controller/nodes/www10", NAMED));
    // What is asked about the node now completes it, as `/enc` does.
    assert!(daemon.get("/enc/www10").body.contains("role::www"));
    assert!(names(&daemon, "/v1/nodes/www10", NAMED));
    assert!(names(&daemon, &format!("/v1/groups/{NAMED}/nodes"), "www10"));
}

#[test]
fn a_commit_that_reads_the_certname_first_is_the_cause_of_what_it_changes() {
    let repository = GitRepository::new();
    let rest = GROUPS.split_once("---\n").unwrap().1.replace("certname", "extensions.pp_role");
    repository.commit("first", &[("groups/all.yaml", &rest)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--interval", "1s"]);
    daemon.request("POST", "/enc/www10", FACTS);
    daemon.wait_until("the check-in is stored", |it| nodes(it, "").len() == 1);
    let second = repository.commit(
        "second",
        &[("groups/all.yaml", &GROUPS.replace("\"${trusted['certname']}:80\"", "80"))],
    );
    daemon.wait_until("the second commit is live", |it| {
        it.get("/controller/status").json()["active"]["commit"] == second.as_str()
    });
    daemon.request("POST", "/enc/www10", FACTS);
    daemon.wait_until("the change is stored", |it| {
        it.get("/controller/nodes/www10").body.contains(NAMED)
    });
    let change = &daemon.get("/controller/nodes/www10/history").json()[0];
    assert_eq!((&change["cause"], &change["facts"]), (&json!("commit"), &json!([])), "{change:#}");
}
