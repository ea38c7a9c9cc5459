//! Writes when things go wrong: hooks, races, crashes, broken connections.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Hub, ROOT, create, groups, has_git, post, serve_over_http};
use crate::git::server::{Server, http_backend, status};
use crate::program::Daemon;

const A: &str = "name: A\nid: aaaaaaaa-0000-4000-8000-00000000000a\n";

#[test]
fn the_words_of_a_remote_that_refuses_reach_the_client() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let before = hub.head_id();
    hub.hook("pre-receive", "echo 'main is protected: ask Ada' >&2\nexit 1");
    let daemon = hub.serve(&[]);
    let body = json!({"name": "N", "parent": ROOT, "classes": {}});
    let refused = post(&daemon, "/v1/groups", &body);
    assert_eq!(refused.status, 403, "{}", refused.body);
    let error = refused.json();
    assert_eq!(error["kind"], "permission-denied");
    assert!(error["msg"].as_str().unwrap().contains("main is protected: ask Ada"), "{error}");
    assert_eq!((hub.head_id(), groups(&daemon).len()), (before, 2));
    // In place, without a mirror, the hook speaks as well.
    let path = hub.text_path();
    let in_place = Daemon::start(&["--repo", &path, "--writes", "commit"]);
    let refused = post(&in_place, "/v1/groups", &body);
    assert!(refused.body.contains("main is protected: ask Ada"), "{}", refused.body);
    hub.hook("pre-receive", "exit 0");
    assert_eq!(post(&daemon, "/v1/groups", &body).status, 303);
}

#[test]
fn fifty_writers_and_a_colleague_lose_nothing() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let daemon = hub.serve(&["--write-retries", "50"]);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..50)
            .map(|number| {
                let daemon = Daemon::at(&daemon.address);
                scope.spawn(move || {
                    let body = json!({"name": format!("G{number}"), "parent": ROOT, "classes": {}});
                    post(&daemon, "/v1/groups", &body).status
                })
            })
            .collect();
        let statuses = writers.into_iter().map(|it| it.join().unwrap());
        // A push that the daemon did not make.
        statuses.collect()
    });
    assert_eq!(statuses, vec![303; 50]);
    hub.commit("By hand", &[("groups/hand.yaml", "name: Hand\n")]);
    // The daemon has not fetched it yet: it applies its change to the pushed commit.
    create(&daemon, &json!({"name": "Last", "parent": ROOT, "classes": {}}));
    let names: BTreeSet<String> =
        groups(&daemon).iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), 54);
    assert!(names.contains("Hand"));
    let log = hub.log();
    assert_eq!(log.len(), 53);
    assert_eq!(log.last().unwrap(), "Add the group \"Last\" below \"All Nodes\"");
}

#[test]
fn a_push_of_unknown_fate_may_be_sent_again() {
    const WORKS: u8 = 0;
    const MUTE_AFTER_PUSH: u8 = 1;
    const DOWN: u8 = 2;
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let mode = Arc::new(AtomicU8::new(WORKS));
    let server = Server::http({
        let (mode, directory) = (Arc::clone(&mode), hub.path().parent().unwrap().to_owned());
        move |request| {
            if mode.load(Ordering::SeqCst) == DOWN {
                return status("503 Down", "");
            }
            let answer = http_backend(&directory, request);
            let pushed = request.method == "POST" && request.target.ends_with("receive-pack");
            if pushed && mode.load(Ordering::SeqCst) == MUTE_AFTER_PUSH {
                mode.store(DOWN, Ordering::SeqCst);
                return Vec::new();
            }
            answer
        }
    });
    let data = tempfile::tempdir().unwrap();
    let start = || serve_over_http(&server, data.path());
    let mut daemon = start();
    let mut log = vec!["Begin".to_owned()];
    // The second time the daemon does not live to see the remote again.
    for (name, restart) in [("N", false), ("O", true)] {
        let body = json!({"name": name, "parent": ROOT, "classes": {}});
        mode.store(MUTE_AFTER_PUSH, Ordering::SeqCst);
        let unknown = post(&daemon, "/v1/groups", &body);
        assert_eq!((unknown.status, unknown.json()["kind"].as_str()), (503, Some("write-unknown")));
        assert!(unknown.body.contains("sending it again is safe"), "{}", unknown.body);
        // While it is down nothing changes, and the error says so.
        let other = json!({"name": "M", "parent": ROOT, "classes": {}});
        let down = post(&daemon, "/v1/groups", &other);
        assert_eq!(down.status, 503, "{}", down.body);
        assert!(down.body.contains("othing was changed"), "{}", down.body);
        mode.store(WORKS, Ordering::SeqCst);
        if restart {
            daemon.kill();
            daemon = start();
        }
        let again = post(&daemon, "/v1/groups", &body);
        assert_eq!(again.status, 303, "{}", again.body);
        let id = again.header("Location").unwrap().rsplit('/').next().unwrap().to_owned();
        assert_eq!(daemon.get(&format!("/v1/groups/{id}")).json()["name"], name);
        log.push(format!("Add the group \"{name}\" below \"All Nodes\""));
        assert_eq!(hub.log(), log);
        // Now the client has its answer; the same request again is a new one.
        assert_eq!(post(&daemon, "/v1/groups", &body).json()["kind"], "uniqueness-violation");
    }
    daemon.kill();
    let daemon = start();
    let body = json!({"name": "O", "parent": ROOT, "classes": {}});
    assert_eq!(post(&daemon, "/v1/groups", &body).json()["kind"], "uniqueness-violation");
}

/// A proxy may answer for a server that goes on.
#[test]
fn a_push_that_a_proxy_gives_up_is_of_unknown_fate() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let given_up = Arc::new(AtomicU8::new(0));
    let server = Server::http({
        let (given_up, directory) =
            (Arc::clone(&given_up), hub.path().parent().unwrap().to_owned());
        move |request| {
            let pushed = request.method == "POST" && request.target.ends_with("receive-pack");
            if !pushed {
                return http_backend(&directory, request);
            }
            match given_up.fetch_add(1, Ordering::SeqCst) {
                0 => {
                    let (directory, request) = (directory.clone(), request.clone());
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_secs(1));
                        http_backend(&directory, &request)
                    });
                    status("504 Gateway Timeout", "")
                }
                1 => status("413 Content Too Large", ""),
                2 => status("403 Forbidden", ""),
                _ => http_backend(&directory, request),
            }
        }
    });
    let data = tempfile::tempdir().unwrap();
    let daemon = serve_over_http(&server, data.path());
    let body = json!({"name": "N", "parent": ROOT, "classes": {}});
    let unknown = post(&daemon, "/v1/groups", &body);
    assert_eq!((unknown.status, unknown.json()["kind"].as_str()), (503, Some("write-unknown")));
    assert!(!unknown.body.contains("othing was changed"), "{}", unknown.body);
    daemon.wait_until("the change arrives", |it| it.get("/v1/groups").body.contains("\"N\""));
    let again = post(&daemon, "/v1/groups", &body);
    assert_eq!(again.status, 303, "{}", again.body);
    assert_eq!(hub.log().len(), 2);
    // What refuses a request passes it on to no server.
    let other = json!({"name": "O", "parent": ROOT, "classes": {}});
    for words in ["413", "the credentials of the daemon"] {
        let refused = post(&daemon, "/v1/groups", &other);
        let kind = refused.json()["kind"].clone();
        assert_eq!((refused.status, kind.as_str()), (503, Some("remote-unreachable")));
        assert!(refused.body.contains(words), "{}", refused.body);
    }
    assert_eq!(post(&daemon, "/v1/groups", &other).status, 303);
    assert_eq!(hub.log().len(), 3);
}

#[test]
fn an_invalid_write_is_refused_with_its_findings() {
    let hub = Hub::new(&[
        ("clade.yaml", "policy: {require_description: true}\n"),
        ("groups/a.yaml", "name: A\ndescription: d\n"),
        ("groups/b.yaml", "name: B\nparent: A\ndescription: d\n"),
        ("environments/production.yaml", "classes: {known: {parameters: {p: 1}}}\n"),
    ]);
    let daemon = hub.serve(&[]);
    let before = hub.head_id();
    let refused = post(&daemon, "/v1/groups", &json!({"name": "N", "parent": ROOT, "classes": {}}));
    assert_eq!((refused.status, refused.json()["kind"].as_str()), (422, Some("invalid-commit")));
    assert_eq!(refused.json()["details"][0]["file"], "groups/n.yaml");
    let body = json!({"name": "N", "parent": ROOT, "description": "d", "classes": {"known": {"q": 1}, "no": {}}});
    let missing = post(&daemon, "/v1/groups", &body);
    assert_eq!((missing.status, missing.json()["kind"].as_str()), (422, Some("missing-referents")));
    assert_eq!(missing.json()["details"][0]["missing"], json!(["known", "q"]));
    assert_eq!(missing.json()["details"][1]["kind"], "missing-class");
    // A null removes an inherited value, and needs no parameter, neither its own nor above.
    let body =
        json!({"name": "P", "parent": ROOT, "description": "d", "classes": {"known": {"q": null}}});
    let checked = daemon.request("POST", "/v1/validate/group", &body.to_string());
    assert_eq!(checked.status, 200, "{}", checked.body);
    // Puppet accepts metaparameters for every class.
    let body = json!({"name": "P", "parent": ROOT, "description": "d", "classes": {"known": {"noop": true}}});
    let checked = daemon.request("POST", "/v1/validate/group", &body.to_string());
    assert_eq!((checked.status, checked.json().get("deleted")), (200, None), "{}", checked.body);
    // A class that descendants inherit is named once, and each of them in the details.
    let all = daemon.get("/v1/groups").json();
    let a = all.as_array().unwrap().iter().find(|it| it["name"] == "A").unwrap();
    let path = format!("/v1/groups/{}", a["id"].as_str().unwrap());
    let missing = post(&daemon, &path, &json!({"classes": {"nope": {}}})).json();
    let message = missing["msg"].as_str().unwrap();
    assert!(message.contains("missing classes or parameters: \"nope\". See"), "{message}");
    let of: Vec<&Value> =
        missing["details"].as_array().unwrap().iter().map(|it| &it["group"]).collect();
    assert_eq!(of, ["A", "B"]);
    assert_eq!(hub.head_id(), before);
    // Below a branch that is not valid nothing can be built.
    hub.commit("Break it", &[("groups/a.yaml", "name: A\nparent: Nowhere\n")]);
    daemon.wait_until("the commit is rejected", |it| {
        !it.get("/controller/status").json()["last_failed"].is_null()
    });
    let body = json!({"name": "N", "parent": ROOT, "description": "d", "classes": {}});
    let blocked = post(&daemon, "/v1/groups", &body);
    assert_eq!((blocked.status, blocked.json()["kind"].as_str()), (422, Some("invalid-commit")));
}
