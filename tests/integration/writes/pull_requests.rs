//! Pull requests of proposals, on forges that refuse.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Hub, ROOT, post};
use crate::git::server::{Request, Server};
use crate::program::{Daemon, Response};

/// A daemon that proposes to a repository, and the forge of that.
struct Proposing {
    daemon: Daemon,
    _hub: Hub,
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
    Proposing { daemon, _hub: hub, _forge: forge, _data: data }
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
