//! A client without the right to a write learns nothing from it: not which names and groups there are, nor whether the remote
//! can be reached.

use serde_json::{Value, json};

use super::{Hub, ROOT};
use crate::hub::token_hash;
use crate::program::{Daemon, Response};

const WEB: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const SHOP: &str = "aaaaaaaa-0000-4000-8000-000000000002";
const HIDDEN: &str = "aaaaaaaa-0000-4000-8000-000000000003";
const ABSENT: &str = "aaaaaaaa-0000-4000-8000-0000000000ff";
const NEW: &str = "aaaaaaaa-0000-4000-8000-0000000000ee";

fn hub() -> Hub {
    let groups = format!(
        "name: Web\nid: {WEB}\n---\nname: Shop\nid: {SHOP}\nparent: Web\n---\nname: Hidden\nid: {HIDDEN}\n"
    );
    Hub::new(&[("groups/all.yaml", &groups)])
}

fn serve(hub: &Hub, mode: &str) -> Daemon {
    let entry = |name: &str, limits: &str| {
        format!("- {{name: {name}, sha256: {}, roles: [write]{limits}}}\n", token_hash(name))
    };
    let file = hub.directory.path().join("tokens.yaml");
    let text = entry("all", "")
        + &entry("web", &format!(", groups: [{WEB}]"))
        + &entry("data", &format!(", groups: [{WEB}], keys: [classes]"));
    std::fs::write(&file, text).unwrap();
    let data = hub.directory.path().join("data");
    Daemon::start(&[
        "--repo",
        &hub.text_path(),
        "--data-dir",
        data.to_str().unwrap(),
        "--writes",
        mode,
        "--interval",
        "1h",
        "--tokens-file",
        file.to_str().unwrap(),
    ])
}

fn send(daemon: &Daemon, token: &str, (method, path, body): &(&str, String, Value)) -> Response {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    daemon.request_with(method, path, &format!("X-Authentication: {token}\r\n"), &body)
}

fn one(id: &str) -> String {
    format!("/v1/groups/{id}")
}

type Write = (&'static str, String, Value);

/// Pairs of writes that a token may not make: the first names what is there, the second what is not.
fn denied() -> Vec<(&'static str, Write, Write)> {
    let make = |parent: &str| json!({"name": "X", "parent": parent, "classes": {}});
    let put = |parent: &str| ("PUT", one(NEW), make(parent));
    let edit = |key: &str, value: &str| ("POST", one(SHOP), json!({key: value}));
    let import = |parent: &str| {
        let all = json!([
            {"id": ROOT, "name": "All Nodes", "parent": ROOT, "classes": {}},
            {"id": WEB, "name": "Web", "parent": ROOT, "classes": {}},
            {"id": SHOP, "name": "Shop", "parent": parent, "classes": {}},
            {"id": HIDDEN, "name": "Hidden", "parent": ROOT, "classes": {}},
        ]);
        ("POST", "/v1/import-hierarchy".to_owned(), all)
    };
    let nodes = json!({"nodes": ["n"]});
    let mut pairs = vec![
        ("web", put(HIDDEN), put(ABSENT)),
        ("data", put(WEB), put(ABSENT)),
        ("web", edit("parent", HIDDEN), edit("parent", ABSENT)),
        ("data", edit("parent", HIDDEN), edit("parent", ABSENT)),
        ("data", edit("parent", SHOP), edit("parent", ABSENT)),
        ("data", edit("name", "Hidden"), edit("name", "Free")),
        ("web", import(HIDDEN), import(HIDDEN)),
        ("data", import(ROOT), import(HIDDEN)),
        (
            "data",
            ("POST", one(SHOP), json!({"name": "Y", "serial_number": 1})),
            ("POST", one(SHOP), json!({"name": "Y", "serial_number": 99})),
        ),
        (
            "web",
            ("POST", "/v1/update-classes".to_owned(), Value::Null),
            ("POST", "/v1/update-classes?environment=production".to_owned(), Value::Null),
        ),
    ];
    for (method, end, body) in [
        ("POST", "", json!({"description": "d"})),
        ("DELETE", "", Value::Null),
        ("POST", "/pin", nodes.clone()),
        ("POST", "/unpin", nodes),
    ] {
        let path = |id: &str| one(id) + end;
        pairs.push(("web", (method, path(HIDDEN), body.clone()), (method, path(ABSENT), body)));
    }
    pairs
}

#[test]
fn a_write_that_the_client_may_not_make_is_refused_whatever_there_is() {
    for mode in ["commit", "propose"] {
        let hub = hub();
        let daemon = serve(&hub, mode);
        let before = hub.head_id();
        let aside = hub.directory.path().join("aside");
        for is_away in [false, true] {
            if is_away {
                std::fs::rename(hub.path().join("objects"), &aside).unwrap();
            }
            for (token, there, absent) in denied() {
                let answers = [&there, &absent].map(|it| send(&daemon, token, it));
                for answer in &answers {
                    let what = format!("{mode} {is_away} {token} {there:?}: {}", answer.body);
                    assert_eq!(answer.status, 403, "{what}");
                    assert_eq!(answer.json()["kind"], "permission-denied", "{what}");
                    assert!(!answer.body.contains("Hidden"), "{what}");
                }
                let [there, absent] =
                    answers.map(|it| it.body.replace(HIDDEN, "ID").replace(ABSENT, "ID"));
                assert_eq!(there, absent, "{mode} {is_away} {token}");
            }
        }
        std::fs::rename(&aside, hub.path().join("objects")).unwrap();
        assert_eq!(hub.head_id(), before);
    }
}

#[test]
fn only_a_client_with_the_right_learns_that_the_remote_is_away() {
    for mode in ["commit", "propose"] {
        let hub = hub();
        let daemon = serve(&hub, mode);
        let aside = hub.directory.path().join("aside");
        std::fs::rename(hub.path().join("objects"), &aside).unwrap();
        let make = |parent: &str, name: &str| {
            let body = json!({"name": name, "parent": parent, "classes": {}});
            ("POST", "/v1/groups".to_owned(), body)
        };
        for (token, write, status) in [
            ("web", make(HIDDEN, "X"), 403),
            ("web", make(ABSENT, "X"), 403),
            ("web", make(WEB, "X"), 503),
            // A name or a parent is refused on the newest commit alone.
            ("web", make(WEB, "Hidden"), 503),
            ("all", make(ABSENT, "X"), 503),
            ("web", ("POST", one(SHOP), json!({"parent": HIDDEN})), 403),
            ("all", ("POST", one(SHOP), json!({"parent": HIDDEN})), 503),
            ("data", ("POST", one(SHOP), json!({"name": "Hidden"})), 403),
            ("web", ("POST", one(SHOP), json!({"name": "Hidden"})), 503),
        ] {
            let answer = send(&daemon, token, &write);
            assert_eq!(answer.status, status, "{mode} {token} {write:?}: {}", answer.body);
        }
        std::fs::rename(&aside, hub.path().join("objects")).unwrap();
    }
}

#[test]
fn a_parent_that_a_commit_brings_into_the_groups_of_a_client_counts() {
    let hub = hub();
    let daemon = serve(&hub, "commit");
    // Not fetched yet.
    hub.commit(
        "More",
        &[("groups/late.yaml", &format!("name: Late\nid: {ABSENT}\nparent: Web\n"))],
    );
    let body = json!({"name": "X", "parent": ABSENT, "classes": {}});
    let made = send(&daemon, "web", &("POST", "/v1/groups".to_owned(), body));
    assert_eq!(made.status, 303, "{}", made.body);
}
