//! Queries that `PuppetDB` refuses, and those that are not sent.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::git::server::{Request, Server};
use crate::program::{Daemon, GitRepository};
use crate::table::each_row;

const NODES: &str = r#"[{"certname": "a", "facts": {"os": {"family": "Debian"}}, "trusted": {"certname": "a"}}, {"certname": "b", "facts": {"os": {"family": "RedHat"}}, "trusted": {"certname": "b"}}]"#;

const GROUPS: &str = "\
name: Debian
id: aaaaaaaa-0000-4000-8000-000000000001
rule: os.family = Debian
---
name: RedHat
id: aaaaaaaa-0000-4000-8000-000000000002
rule: os.family = RedHat
";

/// A `PuppetDB` with two nodes that refuses queries by facts, and the queries that it got.
struct RefusingPuppetDb {
    server: Server,
    queries: Arc<Mutex<Vec<Value>>>,
}

impl RefusingPuppetDb {
    fn start(status: &'static str) -> Self {
        let queries: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = Arc::clone(&queries);
        let server = Server::http(move |request: &Request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let query = body["query"].clone();
            let is_refused = query[0] == "extract" && query.get(2).is_some();
            seen.lock().unwrap().push(query);
            let (line, body) =
                if is_refused { (status, "no such query") } else { ("200 OK", NODES) };
            let head = format!("Content-Length: {}\r\nConnection: close", body.len());
            format!("HTTP/1.1 {line}\r\n{head}\r\n\r\n{body}").into()
        });
        Self { server, queries }
    }

    /// Starts a daemon that asks this `PuppetDB`.
    fn daemon(&self, repository: &GitRepository) -> Daemon {
        let url = format!("http://127.0.0.1:{}", self.server.port);
        Daemon::start(&["--repo", &repository.text_path(), "--puppetdb", &url])
    }

    /// Returns the filters of the lists that were asked for, and forgets them.
    fn filters(&self) -> Vec<Value> {
        let queries = std::mem::take(&mut *self.queries.lock().unwrap());
        let lists = queries.into_iter().filter(|it| it[0] == "extract");
        lists.map(|it| it.get(2).cloned().unwrap_or_default()).collect()
    }
}

fn repository(groups: &str) -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", groups)]);
    repository
}

fn members(daemon: &Daemon, group: u8) -> Value {
    let path = format!("/v1/groups/aaaaaaaa-0000-4000-8000-00000000000{group}/nodes");
    let answer = daemon.get(&path);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["nodes"].clone()
}

fn warnings(daemon: &Daemon) -> usize {
    daemon.log_lines().iter().filter(|it| it.contains("refuses a query")).count()
}

#[test]
fn a_refused_query_is_asked_again_without_a_filter_and_reported_once() {
    let repository = repository(GROUPS);
    let statuses = ["400 Bad Request", "413 X", "414 X", "422 X", "500 Server Error"];
    each_row(statuses, |status| {
        let puppetdb = RefusingPuppetDb::start(status);
        let daemon = puppetdb.daemon(&repository);
        for _ in 0..3 {
            assert_eq!(members(&daemon, 1), json!(["a"]));
        }
        let filter = json!(["=", "facts.os.family", "Debian"]);
        let both = [filter, Value::Null];
        assert_eq!(puppetdb.filters(), [&both[..], &both, &both].concat());
        daemon.wait_until("a warning is in the log", |it| warnings(it) == 1);
        assert_eq!(members(&daemon, 2), json!(["b"]));
        daemon.wait_until("the other query is in the log", |it| warnings(it) == 2);
    });
}

#[test]
fn where_the_service_fails_everything_is_not_requested() {
    let repository = repository(GROUPS);
    let rows = ["401 X", "403 X", "404 X", "429 X", "502 X", "503 X", "504 X"];
    each_row(rows, |status| {
        let puppetdb = RefusingPuppetDb::start(status);
        let daemon = puppetdb.daemon(&repository);
        let answer = daemon.get("/v1/groups/aaaaaaaa-0000-4000-8000-000000000001/nodes");
        assert_eq!((answer.status, &answer.json()["kind"]), (503, &json!("puppetdb-unreachable")));
        assert_eq!(puppetdb.filters(), [json!(["=", "facts.os.family", "Debian"])]);
        assert_eq!(warnings(&daemon), 0);
    });
}

#[test]
fn a_query_of_too_many_conditions_is_not_sent() {
    let pins: Vec<String> = (0..501).map(|it| format!("name = n{it}")).collect();
    let rule = format!("rule: os.family = Debian or {}", pins.join(" or "));
    let repository = repository(&GROUPS.replace("rule: os.family = Debian", &rule));
    let puppetdb = RefusingPuppetDb::start("400 Bad Request");
    let daemon = puppetdb.daemon(&repository);
    assert_eq!(members(&daemon, 1), json!(["a"]));
    assert_eq!(puppetdb.filters(), [Value::Null]);
    assert_eq!(warnings(&daemon), 0);
}
