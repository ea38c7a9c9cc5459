//! A stub of `PuppetDB`, whose inventory changes while it is read, or has other nodes than were requested.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use crate::git::server::{Request, Server};
use crate::program::{Daemon, GitRepository, run};

const GROUPS: &str = "\
name: Linux
id: aaaaaaaa-0000-4000-8000-000000000001
rule: kernel = Linux
classes: {linux: {}}
---
name: Named
id: aaaaaaaa-0000-4000-8000-000000000002
rule: name ~ \"^n\"
";

const NODES: &str = "/v1/groups/aaaaaaaa-0000-4000-8000-000000000001/nodes";

/// Answers a query of the inventory with its rows.
pub(super) type AnswerQuery = dyn Fn(&Value) -> Vec<Value> + Send + Sync;

/// Starts a stub that answers queries in the body or in the URL.
pub(super) fn start(answer: Box<AnswerQuery>) -> (Server, String) {
    let server = Server::http(move |request| {
        let rows = Value::Array(answer(&query(request))).to_string();
        let length = rows.len();
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{rows}")
            .into_bytes()
    });
    let url = format!("http://127.0.0.1:{}", server.port);
    (server, url)
}

fn query(request: &Request) -> Value {
    if request.method == "POST" {
        return serde_json::from_slice(&request.body).unwrap();
    }
    let text = request.target.split_once("query=").unwrap().1;
    let text = percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned();
    json!({"query": serde_json::from_str::<Value>(&text).unwrap()})
}

fn row(name: &str) -> Value {
    json!({"certname": name, "facts": {"kernel": "Linux"}, "trusted": {"certname": name}})
}

/// Returns the rows of the nodes that a query finds.
fn rows(nodes: &BTreeSet<String>, query: &Value) -> Vec<Value> {
    rows_of(nodes, query, &row)
}

/// Returns the rows of the nodes that a query finds, each made of its name.
pub(super) fn rows_of(
    nodes: &BTreeSet<String>,
    query: &Value,
    row: &dyn Fn(&str) -> Value,
) -> Vec<Value> {
    let number = |key: &str| query[key].as_u64().map(|it| usize::try_from(it).unwrap());
    let (offset, limit) = (number("offset").unwrap_or(0), number("limit").unwrap_or(usize::MAX));
    let query = &query["query"];
    if query[0] == "extract" {
        return nodes.iter().map(|it| json!({"certname": it})).collect();
    }
    let names = match query[0].as_str() {
        Some("=") => Some(std::slice::from_ref(&query[2])),
        Some("in") => Some(query[2][1].as_array().unwrap().as_slice()),
        _ => None,
    };
    let requested: Option<Vec<&str>> =
        names.map(|it| it.iter().map(|name| name.as_str().unwrap()).collect());
    let is_found = |it: &&String| requested.as_ref().is_none_or(|all| all.contains(&it.as_str()));
    nodes.iter().filter(is_found).skip(offset).take(limit).map(|it| row(it)).collect()
}

#[test]
fn a_node_that_stays_is_found_when_another_goes_away_between_two_pages() {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let all: BTreeSet<String> = (0..1200).map(|it| format!("n{it:04}.example.com")).collect();
    let nodes = Arc::new(Mutex::new(all.clone()));
    let (_server, url) = start({
        let nodes = Arc::clone(&nodes);
        Box::new(move |query| {
            let mut nodes = nodes.lock().unwrap();
            let rows = rows(&nodes, query);
            if rows.iter().any(|it| it.get("facts").is_some()) {
                nodes.pop_first();
            }
            rows
        })
    });
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--puppetdb", &url]);
    let found = daemon.get(NODES);
    assert_eq!(found.status, 200, "{}", found.body);
    let found = found.json();
    let found: BTreeSet<&str> =
        found["nodes"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    for name in nodes.lock().unwrap().iter() {
        assert!(found.contains(name.as_str()), "{name} was left out");
    }

    *nodes.lock().unwrap() = all;
    let head = repository.commit("none", &[("groups/all.yaml", &GROUPS.replace("linux: {}", ""))]);
    let path = repository.text_path();
    let diff =
        run(&["diff", "HEAD~1", &head, "--repo", &path, "--puppetdb", &url, "--format", "json"]);
    assert_eq!((diff.status, diff.stderr.as_str()), (0, ""));
    for name in nodes.lock().unwrap().iter() {
        assert!(diff.stdout.contains(name), "{name} was left out");
    }
}

#[test]
fn an_inventory_is_read_no_further_when_the_client_has_left() {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let nodes: BTreeSet<String> = (0..1200).map(|it| format!("n{it:04}.example.com")).collect();
    let pages = Arc::new(AtomicUsize::new(0));
    let (asked, is_asked) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    let (_server, url) = start({
        let pages = Arc::clone(&pages);
        Box::new(move |query| {
            if query["query"][0] == "in" && pages.fetch_add(1, Ordering::SeqCst) == 0 {
                asked.send(()).unwrap();
                gone.lock().unwrap().recv().unwrap();
            }
            rows(&nodes, query)
        })
    });
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--puppetdb", &url]);
    let mut client = TcpStream::connect(&daemon.address).unwrap();
    write!(client, "GET {NODES} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    is_asked.recv_timeout(Duration::from_mins(1)).unwrap();
    drop(client);
    daemon.wait_until("the connection is closed", |it| {
        it.get("/metrics").body.contains("clade_http_connections{listener=\"listen\"} 1\n")
    });
    go.send(()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(pages.load(Ordering::SeqCst), 1);
    assert_eq!(daemon.get(NODES).json()["nodes"].as_array().unwrap().len(), 1200);
}

#[test]
fn the_row_of_another_node_is_an_error() {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let (_server, url) = start(Box::new(|query| match query["query"][0].as_str() {
        Some("extract") => vec![json!({"certname": "web1"})],
        _ => vec![row("web1"), row("evil.example.com")],
    }));
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--puppetdb", &url]);
    for path in ["/enc/web1", "/v1/classified/nodes/web1/explanation", NODES] {
        let answer = daemon.get(path);
        let kind = answer.json()["kind"].clone();
        assert_eq!((answer.status, kind), (503, json!("puppetdb-unreachable")), "{path}");
        let said = "PuppetDB answers with `evil.example.com`, a node that was not requested";
        assert!(answer.body.contains(said), "{path}: {}", answer.body);
    }
}

#[test]
fn many_nodes_are_completed_by_few_requests() {
    // With facts that were not stored, and without facts that PuppetDB knows either.
    for (store, fact, is_known) in
        [("none", json!({"kernel": "x"}), true), ("all", json!({}), false)]
    {
        let repository = GitRepository::new();
        let base = repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
        let less = GROUPS.replace("linux: {}", "");
        let head = repository.commit("less", &[("groups/all.yaml", &less)]);
        let all: BTreeSet<String> = (0..40).map(|it| format!("n{it:02}.example.com")).collect();
        let nodes = if is_known { all.clone() } else { BTreeSet::new() };
        let requests = Arc::new(AtomicUsize::new(0));
        let (_server, url) = start({
            let requests = Arc::clone(&requests);
            Box::new(move |query| {
                requests.fetch_add(1, Ordering::SeqCst);
                rows(&nodes, query)
            })
        });
        let path = repository.text_path();
        let daemon = Daemon::start(&["--repo", &path, "--puppetdb", &url, "--store-facts", store]);
        for name in &all {
            let body = json!({"fact": fact}).to_string();
            let path = format!("/v1/classified/nodes/{name}");
            assert_eq!(daemon.request("POST", &path, &body).status, 200);
        }
        daemon.wait_until("all are stored", |it| {
            it.get("/v1/nodes").json().as_array().unwrap().len() == 40
        });
        let ask = |path: &str| {
            requests.store(0, Ordering::SeqCst);
            let answer = daemon.get(path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            let asked = requests.load(Ordering::SeqCst);
            assert!(asked <= 4, "{asked} requests for {path}");
            answer.json()
        };
        let found = if is_known { 40 } else { 0 };
        let query = ask("/controller/query?rule=kernel%20%3D%20Linux");
        assert_eq!((&query["searched"], &query["total"]), (&json!(40), &json!(found)));
        let diff = ask(&format!("/controller/diff/{base}/{head}")).to_string();
        assert_eq!(all.iter().filter(|it| diff.contains(it.as_str())).count(), found);
        assert_eq!(ask(NODES)["nodes"].as_array().unwrap().len(), found);
        let named = NODES.replace("0001/nodes", "0002/nodes");
        assert_eq!(ask(&named)["nodes"].as_array().unwrap().len(), 40);
    }
}
