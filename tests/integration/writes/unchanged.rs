//! Writes that change nothing, or that the groups do not allow, are decided on the newest commit of the remote.

use serde_json::{Value, json};

use super::remotes::file_url;
use super::{Hub, ROOT, create, post};
use crate::program::{Daemon, Response};
use crate::table::each_row;

const A: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
const B: &str = "aaaaaaaa-0000-4000-8000-00000000000b";

fn file(more: &str) -> String {
    format!("name: A\nid: {A}\nrule: name = none\ndescription: first\n{more}")
}

/// A daemon that fetches nothing on its own, and how it writes.
struct Writing {
    hub: Hub,
    data: tempfile::TempDir,
    mode: &'static str,
}

impl Writing {
    fn new(mode: &'static str) -> Self {
        let hub = Hub::new(&[("groups/a.yaml", &file(""))]);
        Self { hub, data: tempfile::tempdir().unwrap(), mode }
    }

    fn start(&self) -> Daemon {
        start(&self.hub, &self.data, self.mode)
    }
}

fn start(hub: &Hub, data: &tempfile::TempDir, mode: &str) -> Daemon {
    let (url, data) = (file_url(hub), data.path().to_str().unwrap());
    let follow = ["--repo", &url, "--data-dir", data, "--branch", "main"];
    Daemon::start(&[&follow[..], &["--interval", "1h", "--writes", mode]].concat())
}

fn put(name: &str, more: &Value) -> String {
    let mut body = json!({"name": name, "parent": ROOT, "classes": {}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string()
}

fn kind(answer: &Response) -> (u16, Option<String>) {
    let kind =
        if answer.status < 400 { None } else { answer.json()["kind"].as_str().map(str::to_owned) };
    (answer.status, kind)
}

#[test]
fn an_edit_without_a_body_changes_nothing() {
    let writing = Writing::new("commit");
    let daemon = writing.start();
    let head = writing.hub.head_id();
    let path = format!("/v1/groups/{A}");
    // That is read from the history a moment later.
    daemon
        .wait_until("its last edit is known", |it| it.get(&path).json()["last_edited"].is_string());
    let before = daemon.get(&path).json();
    for body in ["", "{}"] {
        let answer = daemon.request("POST", &path, body);
        assert_eq!((answer.status, answer.json()), (200, before.clone()), "{body:?}");
    }
    let refused = (400, Some("schema-violation".to_owned()));
    assert_eq!(kind(&daemon.request("POST", &path, "null")), refused);
    // It would replace the group by none.
    assert_eq!(kind(&daemon.request("PUT", &path, "")), refused);
    assert_eq!(writing.hub.head_id(), head);
}

#[test]
fn a_write_is_to_the_branch_and_to_no_other_commit() {
    let writing = Writing::new("commit");
    let daemon = writing.start();
    let head = writing.hub.head_id();
    let body = put("B", &json!({}));
    for (method, path, body) in [
        ("DELETE", format!("/v1/groups/{A}"), ""),
        ("POST", format!("/v1/groups/{A}"), "{}"),
        ("PUT", format!("/v1/groups/{B}"), &body),
        ("POST", "/v1/groups".to_owned(), &body),
        ("POST", "/v1/import-hierarchy".to_owned(), "[]"),
        ("PUT", "/v1/environments/x".to_owned(), ""),
        ("DELETE", "/classifier-api/v1/environments/x".to_owned(), ""),
        ("POST", format!("/v1/groups/{A}/pin"), r#"{"nodes": ["n"]}"#),
        ("POST", "/v1/commands/unpin-from-all".to_owned(), r#"{"nodes": ["n"]}"#),
    ] {
        for query in [format!("commit={head}"), "at=2026-10-03T02:10:00Z".to_owned()] {
            let answer = daemon.request(method, &format!("{path}?{query}"), body);
            let refused = (400, Some("malformed-request".to_owned()));
            assert_eq!(kind(&answer), refused, "{method} {path}?{query}");
        }
    }
    assert_eq!(writing.hub.head_id(), head);
    let header = format!("X-Clade-Commit: {head}\r\n");
    let pin = format!("/v1/groups/{A}/pin?nodes=n");
    let done = daemon.request_with("POST", &pin, &header, "");
    assert_eq!(done.status, 204, "{}", done.body);
}

/// As `POST /v1/validate/group` refuses it.
#[test]
fn an_id_that_is_none_is_not_the_id_of_a_new_group() {
    let writing = Writing::new("commit");
    let daemon = writing.start();
    for id in [json!("foo"), json!(5), json!([]), json!({})] {
        let body = put("B", &json!({"id": id}));
        let answers = ["/v1/groups", "/v1/validate/group"]
            .map(|it| daemon.request("POST", it, &body))
            .map(|it| (kind(&it), it.json()));
        assert_eq!(answers[0], answers[1], "{id}");
        assert_eq!(answers[0].0, (400, Some("schema-violation".to_owned())), "{id}");
    }
    for (name, id) in [("C", json!(null)), ("D", json!(B)), ("E", json!(ROOT))] {
        let made = post(
            &daemon,
            "/v1/groups",
            &serde_json::from_str(&put(name, &json!({"id": id}))).unwrap(),
        );
        assert_eq!(made.status, 303, "{id}: {}", made.body);
        assert!(!made.header("Location").unwrap().ends_with(id.as_str().unwrap_or("null")), "{id}");
    }
}

#[test]
fn a_pin_of_another_daemon_is_unpinned() {
    let hub = Hub::new(&[("groups/a.yaml", &file(""))]);
    let data = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [first, second] = data.each_ref().map(|it| start(&hub, it, "commit"));
    assert_eq!(first.request("POST", &format!("/v1/groups/{A}/pin?nodes=n"), "").status, 204);
    let pinned = hub.head_id();
    assert!(hub.show("groups/a.yaml").unwrap().contains("pinned"));
    let unpinned = second.request("POST", &format!("/v1/groups/{A}/unpin?nodes=n"), "");
    assert_eq!((unpinned.status, unpinned.header("X-Clade-Commit")), (204, Some(&*hub.head_id())));
    assert_ne!(hub.head_id(), pinned);
    let text = hub.show("groups/a.yaml").unwrap();
    assert!(!text.contains("[n]") && !text.contains("- n\n"), "{text}");
    // A write that is so already at the newest commit names that commit.
    let again = first.request("POST", &format!("/v1/groups/{A}/unpin?nodes=n"), "");
    assert_eq!((again.status, again.header("X-Clade-Commit")), (204, Some(&*hub.head_id())));
}

/// Each row: what others pushed, the request, and the status with `commit` and with `propose`.
#[test]
fn a_push_that_was_not_fetched_decides() {
    let (a, b) = (format!("/v1/groups/{A}"), format!("/v1/groups/{B}"));
    let other = format!("name: B\nid: {B}\n");
    let rows = [
        (
            "same delta",
            ("groups/a.yaml", file("# x\n").replace("first", "second")),
            "POST",
            a.clone(),
            json!({"description": "first"}).to_string(),
            200,
        ),
        (
            "pinned",
            ("groups/a.yaml", file("pinned: [n]\n")),
            "POST",
            format!("{a}/unpin?nodes=n"),
            String::new(),
            204,
        ),
        (
            "everywhere",
            ("groups/a.yaml", file("pinned: [n]\n")),
            "POST",
            "/v1/commands/unpin-from-all?nodes=n".to_owned(),
            String::new(),
            200,
        ),
        ("a new group", ("groups/b.yaml", other.clone()), "DELETE", b.clone(), String::new(), 204),
        (
            "a free name",
            ("groups/a.yaml", file("").replace("name: A\n", "name: Z\n")),
            "POST",
            "/v1/groups".to_owned(),
            put("A", &json!({})),
            303,
        ),
        (
            "a new parent",
            ("groups/b.yaml", other),
            "POST",
            "/v1/groups".to_owned(),
            put("C", &json!({"parent": B})),
            303,
        ),
        (
            "no environment",
            ("groups/b.yaml", String::new()),
            "PUT",
            "/v1/environments/new".to_owned(),
            String::new(),
            201,
        ),
    ];
    each_row(rows, |(what, (path, text), method, route, body, status)| {
        for (mode, expected) in [("commit", status), ("propose", 202)] {
            let writing = Writing::new(mode);
            let daemon = writing.start();
            if !text.is_empty() {
                writing.hub.commit("by another", &[(path, &text)]);
            }
            let before = writing.hub.head_id();
            let answer = daemon.request(method, &route, &body);
            assert_eq!(kind(&answer), (expected, None), "{what}, {mode}: {}", answer.body);
            let is_proposal = mode == "propose";
            assert_eq!(writing.hub.head_id() == before, is_proposal, "{what}, {mode}");
        }
    });
}

#[test]
fn a_group_that_another_removed_is_made_again() {
    let writing = Writing::new("commit");
    let daemon = writing.start();
    let b = create(&daemon, &json!({"name": "B", "parent": ROOT, "classes": {}}));
    let body = put("B", &json!({}));
    assert_eq!(daemon.request("PUT", &format!("/v1/groups/{b}"), &body).status, 200);
    writing.hub.commit("by another", &[("groups/b.yaml", "")]);
    assert_eq!(daemon.request("PUT", &format!("/v1/groups/{b}"), &body).status, 201);
    assert!(writing.hub.show("groups/b.yaml").is_some());
}

/// Each row: the request, and its kind while the remote cannot be asked: what depends on its groups is not known.
#[test]
fn a_remote_that_cannot_be_asked_decides_nothing() {
    let a = format!("/v1/groups/{A}");
    let rows = [
        ("POST", a.clone(), json!({"description": "first"}).to_string(), 503, "remote-unreachable"),
        ("POST", a.clone(), json!({"description": "other"}).to_string(), 503, "remote-unreachable"),
        ("POST", format!("{a}/unpin?nodes=n"), String::new(), 503, "remote-unreachable"),
        ("DELETE", format!("/v1/groups/{B}"), String::new(), 503, "remote-unreachable"),
        ("POST", "/v1/groups".to_owned(), put("A", &json!({})), 503, "remote-unreachable"),
        ("POST", "/v1/groups".to_owned(), json!({"name": 1}).to_string(), 400, "schema-violation"),
        ("POST", a, json!({"id": B}).to_string(), 400, "conflicting-ids"),
    ];
    let writing = Writing::new("commit");
    let daemon = writing.start();
    let away = writing.hub.directory.path().join("away.git");
    std::fs::rename(writing.hub.path(), &away).unwrap();
    each_row(rows, |(method, route, body, status, kind_of_error)| {
        let answer = daemon.request(method, &route, &body);
        assert_eq!(kind(&answer), (status, Some(kind_of_error.to_owned())), "{route} {body}");
    });
    std::fs::rename(&away, writing.hub.path()).unwrap();
    let body = json!({"description": "first"});
    assert_eq!(post(&daemon, &format!("/v1/groups/{A}"), &body).status, 200);
    assert_eq!(daemon.request("DELETE", &format!("/v1/groups/{B}"), "").status, 404);
}

/// The remote is asked once for writes that wait together, and not at all for those that it sees with a push.
#[test]
fn the_remote_is_asked_once_for_a_write_that_changes_nothing() {
    let writing = Writing::new("commit");
    let daemon = writing.start();
    let fetches = || {
        let metrics = daemon.get("/metrics").body;
        let of_writes = "clade_source_fetches_total{trigger=\"write\"";
        let lines = metrics.lines().filter(|it| it.starts_with(of_writes));
        lines.map(|it| it.rsplit_once(' ').unwrap().1.parse::<u32>().unwrap()).sum::<u32>()
    };
    let edit = |text: &str| {
        let answer = post(&daemon, &format!("/v1/groups/{A}"), &json!({"description": text}));
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    let before = fetches();
    edit("second");
    assert_eq!(fetches(), before);
    edit("second");
    assert_eq!(fetches(), before + 1);
    assert_eq!(post(&daemon, &format!("/v1/groups/{A}"), &json!({"environment": 5})).status, 400);
    assert_eq!(fetches(), before + 1);
}
