//! A caller who may write a part of the tree, and read nothing, gets the same answer about every name, whether there is such a
//! thing or not; and the daemon asks the remote as often for the one as for the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::has_git;
use super::rights_first::{ABSENT, HIDDEN, Write, denied, files, hub, send, serve_at};
use crate::git::server::{Server, http_backend};
use crate::hub::Hub;
use crate::program::{Daemon, Response};

/// What each parameter of a path can name: something that is there, and something that is not.
fn names(head: &str) -> Vec<(&'static str, String, String)> {
    let pair = |parameter, there: &str, absent: &str| (parameter, there.into(), absent.into());
    let nothing = "f".repeat(40);
    vec![
        pair("{id}", HIDDEN, ABSENT),
        pair("{environment}", "secret", "absent"),
        pair("{class}", "kept", "gone"),
        pair("{name}", "known.example.com", "other.example.com"),
        pair("{certname}", "known.example.com", "other.example.com"),
        pair("{revision}", head, &nothing),
        pair("{base}", head, &nothing),
        pair("{head}", head, &nothing),
    ]
}

/// A daemon with a hidden group, environment, class and node.
fn serve() -> (Hub, Daemon) {
    let hub = hub();
    hub.commit("More", &[("environments/secret.yaml", "classes: {kept: }\n")]);
    let daemon = serve_at(&hub, &hub.text_path(), "commit");
    let facts = json!({"name": "known.example.com", "facts": {"os": {"family": "Debian"}}});
    let checked_in = send(&daemon, "checks", &("POST", "/api/hosts/facts".to_owned(), facts));
    assert!(checked_in.status < 300, "{}", checked_in.body);
    (hub, daemon)
}

/// Returns the paths of the API that have a name in them, each with its methods.
fn named_routes(daemon: &Daemon) -> Vec<(&'static str, String)> {
    let document = daemon.get("/openapi.json").json();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        // Names of services and of forges are public.
        if path.contains('{') && !path.contains("{service}") && !path.contains("{provider}") {
            let methods = ["get", "put", "post", "delete"].map(|it| (it, methods.get(it)));
            let declared = methods.iter().filter(|(_, operation)| operation.is_some());
            routes.extend(declared.map(|(method, _)| (*method, path.clone())));
        }
    }
    routes
}

/// Returns an answer without the names of the request, and without what each page has of its own.
fn without_names(answer: &Response, names: &[(&str, String, String)]) -> (u16, String) {
    let page = answer.body.split("Request id:").next();
    let mut body = page.unwrap_or_default().to_owned();
    for (parameter, there, absent) in names {
        body = body.replace(there, parameter).replace(absent, parameter);
    }
    (answer.status, body)
}

#[test]
fn every_route_answers_a_limited_caller_alike_about_what_is_there_and_what_is_not() {
    let (hub, daemon) = serve();
    let names = names(&hub.head_id());
    let mut compared = 0;
    for (method, path) in named_routes(&daemon) {
        let method = &*method.to_uppercase();
        // To make an environment that exists changes nothing, and clients do so before they write a group.
        if (method, path.as_str()) == ("PUT", "/v1/environments/{environment}") {
            continue;
        }
        let body = match path.rsplit('/').next() {
            _ if method == "GET" => Value::Null,
            Some("pin" | "unpin") => json!({"nodes": ["n"]}),
            _ => json!({"description": "d"}),
        };
        for token in ["web", "data", "checks"] {
            let ask = |which: fn(&(&str, String, String)) -> String| {
                let named =
                    names.iter().fold(path.clone(), |path, it| path.replace(it.0, &which(it)));
                assert!(!named.contains('{'), "{named}: a parameter without names");
                without_names(&send(&daemon, token, &(method, named, body.clone())), &names)
            };
            let (there, absent) = (ask(|it| it.1.clone()), ask(|it| it.2.clone()));
            assert_eq!(there, absent, "{token} {method} {path}");
            assert_eq!(there.0, 403, "{token} {method} {path}: {}", there.1);
            compared += 1;
        }
    }
    assert!(compared > 80, "{compared}");
}

#[test]
fn every_page_answers_a_limited_caller_alike_about_what_is_there_and_what_is_not() {
    let (hub, daemon) = serve();
    let names = names(&hub.head_id());
    for path in [
        "/nodes/{name}",
        "/nodes/{name}/history",
        "/nodes/{name}/facts",
        "/groups/{id}",
        "/commits/{revision}",
        "/compare/{base}...{head}",
    ] {
        for token in ["web", "data", "checks"] {
            let headers = format!("Accept: text/html\r\nX-Authentication: {token}\r\n");
            let ask = |which: fn(&(&str, String, String)) -> String| {
                let page =
                    names.iter().fold(path.to_owned(), |path, it| path.replace(it.0, &which(it)));
                let answer = daemon.request_with("GET", &page, &headers, "");
                assert!(matches!(answer.status, 303 | 401 | 403), "{path}: {}", answer.status);
                without_names(&answer, &names)
            };
            assert_eq!(ask(|it| it.1.clone()), ask(|it| it.2.clone()), "{token} {path}");
        }
    }
}

#[test]
fn a_refusal_asks_the_remote_as_often_about_a_hidden_group_as_about_none() {
    if !has_git() {
        return;
    }
    for mode in ["commit", "propose"] {
        let hub = hub();
        let requests = Arc::new(AtomicUsize::new(0));
        let server = Server::http({
            let (requests, directory) =
                (Arc::clone(&requests), hub.path().parent().unwrap().to_owned());
            move |request| {
                requests.fetch_add(1, Ordering::SeqCst);
                http_backend(&directory, request)
            }
        });
        let url = format!("http://127.0.0.1:{}/hub.git", server.port);
        let daemon = serve_at(&hub, &url, mode);
        let count = |token: &str, write: &Write| {
            let before = requests.load(Ordering::SeqCst);
            assert_eq!(send(&daemon, token, write).status, 403, "{mode} {token} {write:?}");
            requests.load(Ordering::SeqCst) - before
        };
        for (token, there, absent) in denied() {
            let counts = [&there, &absent].map(|it| count(token, it));
            assert_eq!(counts[0], counts[1], "{mode} {token} {there:?}");
        }
    }
}

#[test]
fn a_group_that_a_commit_brings_into_the_scope_counts_before_it_is_fetched() {
    for (mode, status) in [("commit", 200), ("propose", 202)] {
        let hub = hub();
        let daemon = serve_at(&hub, &hub.text_path(), mode);
        let edit = ("POST", format!("/v1/groups/{HIDDEN}"), json!({"description": "d"}));
        assert_eq!(send(&daemon, "web", &edit).status, 403);
        hub.commit("Move", &[("groups/all.yaml", &(files() + "parent: Web\n"))]);
        let written = send(&daemon, "web", &edit);
        assert_eq!(written.status, status, "{mode}: {}", written.body);
    }
}
