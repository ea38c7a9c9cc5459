//! A client without the right to a write learns nothing from it: not which names and groups there are, nor whether the remote
//! can be reached.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Hub, ROOT, has_git};
use crate::git::server::{Server, http_backend};
use crate::hub::token_hash;
use crate::program::{Daemon, Response};

pub(super) const WEB: &str = "aaaaaaaa-0000-4000-8000-000000000001";
pub(super) const SHOP: &str = "aaaaaaaa-0000-4000-8000-000000000002";
pub(super) const HIDDEN: &str = "aaaaaaaa-0000-4000-8000-000000000003";
pub(super) const ABSENT: &str = "aaaaaaaa-0000-4000-8000-0000000000ff";
const NEW: &str = "aaaaaaaa-0000-4000-8000-0000000000ee";

pub(super) fn files() -> String {
    format!(
        "name: Web\nid: {WEB}\n---\nname: Shop\nid: {SHOP}\nparent: Web\n---\nname: Hidden\nid: {HIDDEN}\n"
    )
}

pub(super) fn hub() -> Hub {
    Hub::new(&[("groups/all.yaml", &files())])
}

fn serve(hub: &Hub, mode: &str) -> Daemon {
    serve_at(hub, &hub.text_path(), mode)
}

pub(super) fn serve_at(hub: &Hub, url: &str, mode: &str) -> Daemon {
    serve_with(hub, url, &["--writes", mode])
}

/// Starts a daemon that knows tokens, each by its own name.
pub(super) fn serve_with(hub: &Hub, url: &str, more: &[&str]) -> Daemon {
    let entry = |name: &str, limits: &str| {
        format!("- {{name: {name}, sha256: {}, roles: [write]{limits}}}\n", token_hash(name))
    };
    let file = hub.directory.path().join("tokens.yaml");
    let text = entry("all", "")
        + &entry("web", &format!(", groups: [{WEB}]"))
        + &entry("data", &format!(", groups: [{WEB}], keys: [classes]"))
        + &format!("- {{name: o, sha256: {}, roles: [read, operate]}}\n", token_hash("operator"))
        + &format!("- {{name: c, sha256: {}, roles: [check-in]}}\n", token_hash("checks"));
    std::fs::write(&file, text).unwrap();
    let data = hub.directory.path().join("data");
    let own = [
        "--repo",
        url,
        "--allow-insecure-remotes",
        "--git-proxy",
        "none",
        "--data-dir",
        data.to_str().unwrap(),
        "--interval",
        "1h",
        "--tokens-file",
        file.to_str().unwrap(),
    ];
    Daemon::start(&[&own, more].concat())
}

pub(super) fn send(
    daemon: &Daemon,
    token: &str,
    (method, path, body): &(&str, String, Value),
) -> Response {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    daemon.request_with(method, path, &format!("X-Authentication: {token}\r\n"), &body)
}

pub(super) fn one(id: &str) -> String {
    format!("/v1/groups/{id}")
}

pub(super) type Write = (&'static str, String, Value);

/// Pairs of writes that a token may not make: the first names what is there, the second what is not.
pub(super) fn denied() -> Vec<(&'static str, Write, Write)> {
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
    // The hidden group is left out, or is another: which of its fields differ is not said, nor that it is this one.
    let replace = |hidden: Option<Value>| {
        let mut all = vec![
            json!({"id": ROOT, "name": "All Nodes", "parent": ROOT, "classes": {}}),
            json!({"id": WEB, "name": "Web", "parent": ROOT, "classes": {}}),
            json!({"id": SHOP, "name": "Shop", "parent": WEB, "classes": {}}),
        ];
        all.extend(hidden);
        ("POST", "/v1/import-hierarchy".to_owned(), Value::from(all))
    };
    let hidden = |classes: Value| {
        replace(Some(json!({"id": HIDDEN, "name": "Hidden", "parent": ROOT, "classes": classes})))
    };
    let nodes = json!({"nodes": ["n"]});
    let mut pairs = vec![
        ("web", replace(None), hidden(json!({"ntp": {}}))),
        ("data", replace(None), hidden(json!({"ntp": {}}))),
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
    for body in [
        json!({}),
        json!([]),
        json!({"name": "X", "parent": "none", "classes": {}}),
        json!({"name": "X", "id": SHOP, "parent": WEB, "classes": {}}),
    ] {
        let put = |id: &str| ("PUT", one(id), body.clone());
        pairs.push(("web", put(HIDDEN), put(ABSENT)));
    }
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
                    let is_import = there.1.ends_with("import-hierarchy");
                    assert!(!is_import || !answer.body.contains(HIDDEN), "{what}");
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

/// What a server makes of requests.
#[derive(Default)]
struct Faults {
    reads_are_slow: bool,
    reads_fail: bool,
    /// The next push gets no answer, and what it did is not shown.
    push_breaks: bool,
}

fn serve_hub(hub: &Hub, faults: &Arc<Mutex<Faults>>) -> Server {
    let directory = hub.path().parent().unwrap().to_owned();
    let faults = Arc::clone(faults);
    Server::http(move |request| {
        let reads = request.target.contains("git-upload-pack");
        let Faults { reads_are_slow, reads_fail, push_breaks } = *faults.lock().unwrap();
        if reads && reads_are_slow {
            std::thread::sleep(Duration::from_secs(2));
        }
        if reads && reads_fail {
            return Vec::new();
        }
        let answer = http_backend(&directory, request);
        if reads || request.method != "POST" || !push_breaks {
            return answer;
        }
        *faults.lock().unwrap() = Faults { reads_fail: true, ..Faults::default() };
        Vec::new()
    })
}

#[test]
fn a_commit_that_was_not_fetched_since_a_restart_gives_rights() {
    if !has_git() {
        return;
    }
    for mode in ["commit", "propose"] {
        let hub = hub();
        let faults = Arc::default();
        let server = serve_hub(&hub, &faults);
        let url = format!("http://127.0.0.1:{}/hub.git", server.port);
        let edit = ("POST", one(HIDDEN), json!({"description": "d"}));
        let daemon = serve_at(&hub, &url, mode);
        assert_eq!(send(&daemon, "web", &edit).status, 403);
        daemon.terminate();
        hub.commit("Move", &[("groups/all.yaml", &(files() + "parent: Web\n"))]);
        faults.lock().unwrap().reads_are_slow = true;
        let daemon = serve_at(&hub, &url, mode);
        let written = send(&daemon, "web", &edit);
        let expected = if mode == "commit" { 200 } else { 202 };
        assert_eq!(written.status, expected, "{mode}: {}", written.body);
    }
}

#[test]
fn a_removal_that_is_sent_again_is_not_refused_while_the_remote_is_away() {
    if !has_git() {
        return;
    }
    let hub = hub();
    let faults = Arc::default();
    let server = serve_hub(&hub, &faults);
    let url = format!("http://127.0.0.1:{}/hub.git", server.port);
    let daemon = serve_at(&hub, &url, "commit");
    let remove = ("DELETE", one(SHOP), Value::Null);
    let expect = |daemon: &Daemon, token: &str, status: u16| {
        let answer = send(daemon, token, &remove);
        assert_eq!(answer.status, status, "{token}: {}", answer.body);
    };
    faults.lock().unwrap().push_breaks = true;
    expect(&daemon, "web", 503);
    *faults.lock().unwrap() = Faults::default();
    // What is pushed on top of it makes the removal live.
    let described = send(&daemon, "web", &("POST", one(WEB), json!({"description": "d"})));
    assert_eq!(described.status, 200, "{}", described.body);
    let head = hub.head_id();
    daemon.terminate();
    faults.lock().unwrap().reads_fail = true;
    let daemon = serve_at(&hub, &url, "commit");
    expect(&daemon, "web", 503);
    // One that removed nothing has no right to it.
    expect(&daemon, "data", 403);
    faults.lock().unwrap().reads_fail = false;
    expect(&daemon, "web", 204);
    assert_eq!(hub.head_id(), head);
}
