//! Pull requests of proposals, on forges that refuse or hang.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Hub, ROOT, groups, post};
use crate::git::server::{Request, Server};
use crate::program::{Daemon, Response};

/// A daemon that proposes to a repository, and the forge of that.
struct Proposing {
    daemon: Daemon,
    hub: Hub,
    _forge: Server,
    _data: tempfile::TempDir,
}

/// Starts a forge that answers by a function: with a status line and a body.
fn start(answer: impl Fn(&Request) -> (&'static str, Value) + Send + Sync + 'static) -> Proposing {
    let forge = Server::http(move |request| {
        let (status, body) = answer(request);
        let (body, kind) = (body.to_string(), "Content-Type: application/json");
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\n{kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .into()
    });
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let token = hub.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let data = tempfile::tempdir().unwrap();
    let (repo, url) = (hub.text_path(), format!("http://127.0.0.1:{}", forge.port));
    let own = ["--repo", &repo, "--data-dir", data.path().to_str().unwrap()];
    let writes = ["--writes", "propose", "--forge", "github", "--forge-url", &url];
    let token = ["--forge-repository", "o/r", "--forge-token-file", token.to_str().unwrap()];
    let daemon = Daemon::start(&[own.as_slice(), &writes, &token].concat());
    Proposing { daemon, hub, _forge: forge, _data: data }
}

impl Proposing {
    fn has_logged(&self, text: &str) -> bool {
        self.daemon.log_lines().iter().any(|it| it.contains(text))
    }
}

fn propose(daemon: &Daemon, name: &str) -> Response {
    post(daemon, "/v1/groups", &json!({"name": name, "parent": ROOT, "classes": {}}))
}

#[test]
fn a_refusal_is_not_taken_for_a_pull_request_that_is_open() {
    let open: Arc<Mutex<Vec<Value>>> = Arc::default();
    let proposing = start({
        let open = Arc::clone(&open);
        move |request| match request.method.as_str() {
            "POST" if request.target == "/repos/o/r/pulls" => {
                ("422 Unprocessable Entity", json!({"errors": [{"field": "base"}]}))
            }
            "GET" => ("200 OK", json!(*open.lock().unwrap())),
            _ => ("201 Created", json!({})),
        }
    });
    let daemon = &proposing.daemon;
    let refused = propose(daemon, "B");
    assert_eq!((refused.status, &refused.json()["url"]), (202, &Value::Null));
    daemon.wait_until("it is logged", |_| {
        proposing.has_logged("opening the pull request failed")
            && proposing.has_logged("the forge answers 422: ")
    });
    let url = "https://forge.example.com/o/r/pulls/7";
    open.lock().unwrap().push(json!({
        "html_url": url, "state": "open",
        "head": {"ref": refused.json()["branch"]}, "base": {"ref": "main"},
    }));
    let again = propose(daemon, "B");
    assert_eq!((again.status, &again.json()["url"]), (202, &json!(url)));
}

#[test]
fn a_forge_that_hangs_keeps_no_write_waiting() {
    let (called, calls) = channel();
    let (release, released) = channel::<()>();
    let (called, released): (Mutex<Sender<()>>, _) = (Mutex::new(called), Mutex::new(released));
    let proposing = start(move |request| {
        if request.target != "/repos/o/r/pulls" {
            return ("201 Created", json!({}));
        }
        called.lock().unwrap().send(()).unwrap();
        // Until the test has dropped the other end.
        released.lock().unwrap().recv().ok();
        ("503 Service Unavailable", json!({}))
    });
    let daemon = &proposing.daemon;
    let a = groups(daemon).iter().find(|it| it["name"] == "A").unwrap()["id"].clone();
    let unchanged = format!("/v1/groups/{}", a.as_str().unwrap());
    let propose_beside = |name: &'static str| {
        let address = daemon.address.clone();
        std::thread::spawn(move || propose(&Daemon::at(&address), name))
    };
    let first = propose_beside("B");
    calls.recv().unwrap();
    // The forge has not answered.
    assert_eq!(post(daemon, &unchanged, &json!({"name": "A"})).status, 200);
    let second = propose_beside("C");
    daemon.wait_until("the branch of the second is pushed", |_| {
        let branches = proposing.hub.inner.branches(Some(git2::BranchType::Local)).unwrap();
        branches.count() == 3
    });
    let is_given_up = proposing.has_logged("opening the pull request failed");
    assert!(!is_given_up, "the writes waited for the forge");
    drop(release);
    for proposed in [first, second] {
        let proposed = proposed.join().unwrap();
        assert_eq!((proposed.status, &proposed.json()["url"]), (202, &Value::Null));
        assert!(proposed.json()["branch"].is_string());
    }
}
