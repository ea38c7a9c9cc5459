//! Writes to a branch that others move: how often they are tried, and what a client without rights learns then.

use serde_json::{Value, json};

use super::rights_first::{ABSENT, HIDDEN, SHOP, WEB, Write, files, hub, one, send, serve_with};
use super::{Hub, ROOT};
use crate::program::Daemon;

/// Retries nothing.
const ONCE: [&str; 2] = ["--write-retries", "0"];

/// Has the branch go on without the daemon.
fn move_on(hub: &Hub, number: usize) {
    hub.commit("Move on", &[("groups/more.yaml", &format!("name: More {number}\n"))]);
}

fn group(name: &str) -> Write {
    let body = json!({"name": name, "parent": ROOT, "classes": {}});
    ("POST", "/v1/groups".to_owned(), body)
}

#[test]
fn without_retries_a_write_is_tried_once() {
    let hub = hub();
    let daemon = serve_with(&hub, &hub.text_path(), &[&ONCE[..], &["--writes", "commit"]].concat());
    for (number, same) in [group("N"), ("POST", one(SHOP), json!({}))].iter().enumerate() {
        move_on(&hub, number);
        // The branch moved since it was fetched, which the daemon finds out by the try.
        let refused = send(&daemon, "all", same);
        assert_eq!((refused.status, &refused.json()["kind"]), (409, &json!("write-conflict")));
        let written = send(&daemon, "all", same);
        assert!(written.status < 400, "{}", written.body);
    }
    assert_eq!(hub.log().len(), 4);
}

#[test]
fn without_retries_a_repository_in_place_is_read_for_each_write() {
    let hub = hub();
    let path = hub.text_path();
    let daemon = Daemon::start(&[&["--repo", &path, "--writes", "commit"], &ONCE[..]].concat());
    for number in 0..3 {
        move_on(&hub, number);
        let (method, path, body) = group(&format!("N{number}"));
        let made = daemon.request(method, &path, &body.to_string());
        assert_eq!(made.status, 303, "{}", made.body);
    }
}

#[test]
fn without_retries_a_change_is_proposed_on_the_newest_commit() {
    let hub = hub();
    let propose = ["--writes", "propose"];
    let daemon = serve_with(&hub, &hub.text_path(), &[ONCE, propose].concat());
    move_on(&hub, 0);
    let unchanged = send(&daemon, "all", &("POST", one(SHOP), json!({})));
    assert_eq!(unchanged.status, 200, "{}", unchanged.body);
    move_on(&hub, 1);
    let missing = send(&daemon, "all", &("POST", one(ABSENT), json!({})));
    assert_eq!(missing.status, 404, "{}", missing.body);
}

#[test]
fn a_client_without_the_right_gets_a_403_when_the_tries_are_used_up() {
    let import = |parent: &str| {
        let group = |id: &str, name: &str, parent: &str| json!({"id": id, "name": name, "parent": parent, "classes": {}});
        let all = json!([
            group(ROOT, "All Nodes", ROOT),
            group(WEB, "Web", ROOT),
            group(SHOP, "Shop", parent),
            group(HIDDEN, "Hidden", ROOT),
        ]);
        ("POST", "/v1/import-hierarchy".to_owned(), all)
    };
    let edit = |id: &str, delta: Value| ("POST", one(id), delta);
    for mode in ["commit", "propose"] {
        let hub = hub();
        let writes = ["--writes", mode];
        let daemon = serve_with(&hub, &hub.text_path(), &[ONCE, writes].concat());
        for (number, (token, write)) in [
            ("web", edit(HIDDEN, json!({"description": "d"}))),
            ("web", edit(ABSENT, json!({"description": "d"}))),
            ("web", edit(SHOP, json!({"parent": HIDDEN}))),
            ("web", edit(SHOP, json!({"parent": ABSENT}))),
            ("data", edit(SHOP, json!({"variables": {"v": 1}}))),
            ("web", import(HIDDEN)),
        ]
        .iter()
        .enumerate()
        {
            move_on(&hub, number);
            let refused = send(&daemon, token, write);
            let kind = refused.json()["kind"].clone();
            let what = format!("{mode} {token} {write:?}: {}", refused.body);
            assert_eq!((refused.status, kind), (403, json!("permission-denied")), "{what}");
        }
    }
}

#[test]
fn a_write_waits_for_a_commit_that_is_being_built_and_gives_the_right_to_it() {
    for (mode, made) in [("commit", 200), ("propose", 202)] {
        let hub = hub();
        let daemon = serve_with(&hub, &hub.text_path(), &["--writes", mode]);
        let edit = |id: &str, delta: Value| ("POST", one(id), delta);
        let moved = edit(HIDDEN, json!({"description": "d"}));
        // With the key `classes` alone, as long as nothing changes.
        let same = edit(SHOP, json!({"variables": {"v": 1}}));
        assert_eq!(send(&daemon, "web", &moved).status, 403);
        assert_eq!(send(&daemon, "data", &same).status, 403);
        // It takes a while to build.
        let group =
            |number| format!("---\nname: G{number}\nrule: name = n{number} or a.b = {number}\n");
        let many: String = (0..4_000).map(group).collect();
        let text = (files() + "parent: Web\n")
            .replace("parent: Web\n---", "parent: Web\nvariables: {v: 1}\n---");
        let head = hub.commit("Move", &[("groups/all.yaml", &text), ("groups/many.yaml", &many)]);
        let fetch = ("POST", "/controller/reconcile".to_owned(), Value::Null);
        assert_eq!(send(&daemon, "operator", &fetch).status, 202);
        let status = ("GET", "/controller/status".to_owned(), Value::Null);
        daemon.wait_until("it is fetched", |it| {
            send(it, "operator", &status).json()["observed"]["commit"] == head.as_str()
        });
        let kept = send(&daemon, "data", &same);
        assert_eq!(kept.status, 200, "{mode}: {}", kept.body);
        let written = send(&daemon, "web", &moved);
        assert_eq!(written.status, made, "{mode}: {}", written.body);
    }
}
