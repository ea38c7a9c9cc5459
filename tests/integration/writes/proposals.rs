//! Writes for review.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Hub, ROOT, groups, post};
use crate::git::server::Server;
use crate::program::Daemon;

#[test]
fn a_write_becomes_a_branch_for_review() {
    let hub = Hub::new(&[("groups/a.yaml", "name: A # one\n")]);
    let before = hub.head_id();
    let data = tempfile::tempdir().unwrap();
    let (path, data) = (hub.text_path(), data.path().to_str().unwrap().to_owned());
    let daemon = Daemon::start(&["--repo", &path, "--data-dir", &data, "--writes", "propose"]);
    let a = groups(&daemon).iter().find(|it| it["name"] == "A").unwrap()["id"].clone();
    let edit = format!("/v1/groups/{}", a.as_str().unwrap());
    let body = json!({"description": "first"});
    let proposed = post(&daemon, &edit, &body);
    assert_eq!(proposed.status, 202, "{}", proposed.body);
    let branch = proposed.json()["branch"].as_str().unwrap().to_owned();
    assert!(branch.starts_with("clade/") && branch.len() == 18, "{branch}");
    assert_eq!(proposed.json()["url"], Value::Null);
    let text = hub.show_at(&format!("refs/heads/{branch}"), "groups/a.yaml").unwrap();
    assert_eq!(text, "name: A # one\ndescription: first\n");
    // The branch that is followed stays, and so do the answers.
    assert_eq!(hub.head_id(), before);
    assert_eq!(daemon.get(&edit).json().get("description"), None);
    // The same proposed again is the same branch.
    assert_eq!(post(&daemon, &edit, &body).json()["branch"], branch.as_str());
    // That of a new group too, though its id is made up each time.
    let new = json!({"name": "B", "parent": ROOT, "classes": {}});
    let first = post(&daemon, "/v1/groups", &new).json();
    assert!(first["branch"].is_string(), "{first}");
    for _ in 0..16 {
        let again = post(&daemon, "/v1/groups", &new).json();
        assert_eq!((&first["branch"], &first["commit"]), (&again["branch"], &again["commit"]));
    }
    // An invalid write is refused at once, and a write without a change needs no review.
    assert_eq!(post(&daemon, "/v1/groups", &json!({"name": "B"})).status, 400);
    assert_eq!(post(&daemon, &edit, &json!({"name": "A"})).status, 200);
}

#[test]
fn a_proposal_opens_a_pull_request_on_the_forge() {
    let asked: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let forge = Server::http({
        let asked = Arc::clone(&asked);
        move |request| {
            let token = request.headers.get("authorization").cloned().unwrap_or_default();
            asked.lock().unwrap().push((request.target.clone(), token));
            let body = r#"{"html_url": "https://forge.example.com/o/r/pulls/7"}"#;
            format!(
                "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .into()
        }
    });
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let token = hub.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let data = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &hub.text_path(),
        "--data-dir",
        data.path().to_str().unwrap(),
        "--writes",
        "propose",
        "--forge",
        "gitea",
        "--forge-url",
        &format!("http://127.0.0.1:{}", forge.port),
        "--forge-repository",
        "o/r",
        "--forge-token-file",
        token.to_str().unwrap(),
    ]);
    let proposed =
        post(&daemon, "/v1/groups", &json!({"name": "B", "parent": ROOT, "classes": {}}));
    assert_eq!(proposed.status, 202, "{}", proposed.body);
    assert_eq!(proposed.json()["url"], "https://forge.example.com/o/r/pulls/7");
    let asked = asked.lock().unwrap();
    let pulls = asked.iter().filter(|(path, _)| path == "/repos/o/r/pulls");
    assert_eq!(pulls.map(|(_, token)| token.as_str()).collect::<Vec<_>>(), ["token secret"]);
}
