//! A client that got no answer sends the same again: it gets the first answer while what it wrote stands, and else
//! its change is made again.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Hub, ROOT, groups, has_git, post};
use crate::program::{Daemon, Response};

const A: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
const B: &str = "aaaaaaaa-0000-4000-8000-00000000000b";

fn a() -> String {
    format!("/v1/groups/{A}")
}

fn hub() -> Hub {
    let groups = format!(
        "name: A\nid: {A}\npinned: [kept]\n---\nname: B\nid: {B}\nparent: A\nvariables: {{v: none}}\n"
    );
    Hub::new(&[("groups/a.yaml", &groups), ("environments/old.yaml", "name: old\n")])
}

/// A request: its method, its path and its body.
type Ask = (&'static str, String, Value);

fn send(daemon: &Daemon, (method, path, body): &Ask) -> Response {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    daemon.request(method, path, &body)
}

/// Sends a request whose client goes away before the push ends; the push arrives.
fn send_unanswered(daemon: &Daemon, hub: &Hub, (method, path, body): &Ask) {
    let file = |name: &str| hub.path().join(name);
    let (reached, go) = (file("reached"), file("go"));
    let (shown, awaited) = (reached.display(), go.display());
    hub.hook(
        "pre-receive",
        &format!("touch {shown}\nwhile [ ! -e {awaited} ]; do sleep 0.02; done"),
    );
    let before = hub.head_id();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    stream.write_all((head + &body).as_bytes()).unwrap();
    daemon.wait_until("the push is under way", |_| reached.exists());
    drop(stream);
    // The daemon notices that its client is gone.
    std::thread::sleep(Duration::from_millis(100));
    std::fs::write(&go, "").unwrap();
    daemon.wait_until("the write is live", |it| {
        let live = it.get("/controller/status").json()["active"]["commit"].clone();
        hub.head_id() != before && live == hub.head_id()
    });
    let gone: [PathBuf; 3] = [reached, go, hub.path().join("hooks/pre-receive")];
    for file in gone {
        std::fs::remove_file(file).unwrap();
    }
}

fn pins(daemon: &Daemon) -> String {
    daemon.get(&a()).json()["rule"].to_string()
}

fn variable(daemon: &Daemon) -> Value {
    daemon.get(&format!("/v1/groups/{B}")).json()["variables"]["v"].clone()
}

fn nodes(name: &str) -> Value {
    json!({"nodes": [name]})
}

fn put_b(value: &str) -> Ask {
    let body = json!({"name": "B", "parent": A, "classes": {}, "variables": {"v": value}});
    ("PUT", format!("/v1/groups/{B}"), body)
}

fn has_environment(daemon: &Daemon, name: &str) -> bool {
    daemon.get(&format!("/v1/environments/{name}")).status == 200
}

fn has_group(daemon: &Daemon, name: &str) -> bool {
    groups(daemon).iter().any(|it| it["name"] == name)
}

/// The path of the group of a name.
fn path_of(daemon: &Daemon, name: &str) -> String {
    let groups = groups(daemon);
    let group = groups.iter().find(|it| it["name"] == name).unwrap();
    format!("/v1/groups/{}", group["id"].as_str().unwrap())
}

/// A kind of write, what undoes it, and whether it is in effect.
struct Kind {
    write: fn(&Daemon) -> Ask,
    undo: fn(&Daemon) -> Ask,
    is_done: fn(&Daemon) -> bool,
    /// The status of the same request again while the write stands, and after it was undone.
    again: (u16, u16),
}

const KINDS: &[Kind] = &[
    Kind {
        write: |_| put_b("one"),
        undo: |_| put_b("two"),
        is_done: |it| variable(it) == "one",
        again: (200, 201),
    },
    Kind {
        write: |_| ("POST", format!("/v1/groups/{B}"), json!({"variables": {"v": "three"}})),
        undo: |_| ("POST", format!("/v1/groups/{B}"), json!({"variables": {"v": "four"}})),
        is_done: |it| variable(it) == "three",
        again: (200, 200),
    },
    Kind {
        write: |_| ("POST", a() + "/pin", nodes("new")),
        undo: |_| ("POST", a() + "/unpin", nodes("new")),
        is_done: |it| pins(it).contains("\"new\""),
        again: (204, 204),
    },
    Kind {
        write: |_| ("POST", a() + "/unpin", nodes("kept")),
        undo: |_| ("POST", a() + "/pin", nodes("kept")),
        is_done: |it| !pins(it).contains("\"kept\""),
        again: (204, 204),
    },
    Kind {
        write: |_| ("DELETE", format!("/v1/groups/{B}"), Value::Null),
        // In another place, so that another file has it.
        undo: |_| {
            let body = json!({"name": "Elsewhere", "parent": ROOT, "classes": {}});
            ("PUT", format!("/v1/groups/{B}"), body)
        },
        is_done: |it| it.get(&format!("/v1/groups/{B}")).status == 404,
        again: (204, 204),
    },
    Kind {
        write: |_| {
            ("POST", "/v1/groups".to_owned(), json!({"name": "N", "parent": A, "classes": {}}))
        },
        undo: |it| ("DELETE", path_of(it, "N"), Value::Null),
        is_done: |it| has_group(it, "N"),
        again: (303, 303),
    },
    Kind {
        write: |it| {
            let mut all = groups(it);
            all.retain(|group| matches!(group["name"].as_str(), Some("All Nodes" | "A")));
            all.push(json!({"id": B, "name": "Imported", "parent": A, "classes": {}}));
            ("POST", "/v1/import-hierarchy".to_owned(), all.into())
        },
        undo: |_| ("DELETE", format!("/v1/groups/{B}"), Value::Null),
        is_done: |it| has_group(it, "Imported"),
        again: (204, 204),
    },
    Kind {
        write: |_| ("POST", "/v1/commands/unpin-from-all".to_owned(), nodes("kept")),
        undo: |_| ("POST", a() + "/pin", nodes("kept")),
        is_done: |it| !pins(it).contains("\"kept\""),
        again: (200, 200),
    },
    Kind {
        write: |_| ("PUT", "/v1/environments/fresh".to_owned(), Value::Null),
        undo: |_| ("DELETE", "/v1/environments/fresh".to_owned(), Value::Null),
        is_done: |it| has_environment(it, "fresh"),
        again: (200, 201),
    },
    Kind {
        write: |_| ("DELETE", "/v1/environments/old".to_owned(), Value::Null),
        undo: |_| ("PUT", "/v1/environments/old".to_owned(), Value::Null),
        is_done: |it| !has_environment(it, "old"),
        again: (204, 204),
    },
];

#[test]
fn a_repeated_write_that_was_undone_is_made_again() {
    if !has_git() {
        return;
    }
    for Kind { write, undo, is_done, again } in KINDS {
        let hub = hub();
        let daemon = hub.serve(&[]);
        let asked = write(&daemon);
        send_unanswered(&daemon, &hub, &asked);
        assert!(is_done(&daemon), "{asked:?}");
        let undone = send(&daemon, &undo(&daemon));
        assert!(matches!(undone.status, 200 | 201 | 204), "{asked:?}: {}", undone.body);
        assert!(!is_done(&daemon), "{asked:?}");
        let repeated = send(&daemon, &asked);
        assert_eq!(repeated.status, again.1, "{asked:?}: {}", repeated.body);
        assert!(is_done(&daemon), "{asked:?} was lost: {}", repeated.body);
        assert_eq!(hub.log().len(), 4, "{asked:?}");
    }
}

#[test]
fn a_repeated_write_that_stands_gets_the_first_answer() {
    if !has_git() {
        return;
    }
    for Kind { write, is_done, again, .. } in KINDS {
        let hub = hub();
        let daemon = hub.serve(&[]);
        let asked = write(&daemon);
        send_unanswered(&daemon, &hub, &asked);
        // What changes elsewhere is none of its business.
        let other = ("POST", a(), json!({"description": "other"}));
        let other = if asked.1.ends_with("import-hierarchy") { asked.clone() } else { other };
        assert!(matches!(send(&daemon, &other).status, 200 | 204));
        let commits = hub.log().len();
        let repeated = send(&daemon, &asked);
        assert_eq!(repeated.status, again.0, "{asked:?}: {}", repeated.body);
        assert!(is_done(&daemon) && hub.log().len() == commits, "{asked:?}");
        if asked.1.ends_with("unpin-from-all") {
            let unpinned = repeated.json();
            assert_eq!(unpinned["nodes"][0]["groups"][0]["name"], "A", "{unpinned}");
        }
        if let Some(place) = repeated.header("Location") {
            assert_eq!(daemon.get(place).json()["name"], "N");
        }
    }
}

#[test]
fn a_repeated_delta_with_a_serial_number_is_in_effect_or_refused() {
    if !has_git() {
        return;
    }
    let hub = hub();
    let daemon = hub.serve(&[]);
    let path = format!("/v1/groups/{B}");
    daemon.wait_until("edits are counted", |it| it.get(&path).json()["serial_number"].is_u64());
    let serial = daemon.get(&path).json()["serial_number"].clone();
    let body = json!({"variables": {"v": "one"}, "serial_number": serial});
    let asked = ("POST", path.clone(), body);
    send_unanswered(&daemon, &hub, &asked);
    // It was this very write that edited the group since.
    let repeated = send(&daemon, &asked);
    assert_eq!((repeated.status, &repeated.json()["variables"]["v"]), (200, &json!("one")));
    assert_eq!(send(&daemon, &asked).json()["kind"], "write-conflict");
    // The next one is undone before it is sent again.
    let serial = daemon.get(&path).json()["serial_number"].clone();
    let asked = ("POST", path.clone(), json!({"variables": {"v": "two"}, "serial_number": serial}));
    send_unanswered(&daemon, &hub, &asked);
    assert_eq!(post(&daemon, &path, &json!({"variables": {"v": "three"}})).status, 200);
    let repeated = send(&daemon, &asked);
    assert_eq!((repeated.status, &repeated.json()["kind"]), (409, &json!("write-conflict")));
    assert_eq!(variable(&daemon), "three");
}

#[test]
fn a_repeated_write_that_another_one_changed_is_not_answered_as_if_it_stood() {
    if !has_git() {
        return;
    }
    let hub = hub();
    let daemon = hub.serve(&[]);
    let body = json!({"name": "N", "parent": A, "classes": {}, "variables": {"v": "one"}});
    let asked = ("POST", "/v1/groups".to_owned(), body);
    send_unanswered(&daemon, &hub, &asked);
    let path = path_of(&daemon, "N");
    assert_eq!(post(&daemon, &path, &json!({"variables": {"v": "two"}})).status, 200);
    let repeated = send(&daemon, &asked);
    assert_eq!((repeated.status, &repeated.json()["kind"]), (422, &json!("uniqueness-violation")));
    assert_eq!(daemon.get(&path).json()["variables"]["v"], "two");
}
