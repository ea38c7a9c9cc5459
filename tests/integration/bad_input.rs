//! What clients send that makes no sense, and a file of nodes that another program holds: the answers go on.

use std::path::Path;

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use crate::follow::has;
use crate::program::{Daemon, GitRepository};
use crate::table::each_row;

const WEB: &str = "name: Web\nrule: role = web\nclasses: {apache: {}}\n";

/// A daemon with a data directory.
fn serve() -> (GitRepository, tempfile::TempDir, Daemon) {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/web.yaml", WEB)]);
    let data = tempfile::tempdir().unwrap();
    let (path, directory) = (repository.text_path(), data.path().to_str().unwrap());
    let daemon = Daemon::start(&["--repo", &path, "--data-dir", directory]);
    (repository, data, daemon)
}

/// Classifies a node, and checks that it gets its class.
fn check_in(daemon: &Daemon, encoded: &str) {
    let path = format!("/v1/classified/nodes/{encoded}");
    let answer = daemon.request("POST", &path, r#"{"fact": {"role": "web"}}"#);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["classes"], json!({"apache": {}}));
}

fn names(daemon: &Daemon, query: &str) -> Vec<String> {
    let page = daemon.get(&format!("/controller/nodes{query}"));
    assert_eq!(page.status, 200, "{query}: {}", page.body);
    let page = page.json();
    let nodes = page["nodes"].as_array().unwrap();
    assert_eq!(page["total"], nodes.len(), "{query}");
    nodes.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn fifty_megabytes_of_facts_are_refused_and_leave_nothing() {
    let (_repository, _data, daemon) = serve();
    check_in(&daemon, "web1");
    let facts = format!(r#"{{"fact": {{"x": "{}"}}}}"#, "x".repeat(50 << 20));
    for path in ["/v1/classified/nodes/large", "/enc/large", "/api/hosts/facts"] {
        let refused = daemon.request("POST", path, &facts);
        assert_eq!((refused.status, &refused.json()["kind"]), (413, &json!("payload-too-large")));
    }
    assert_eq!(names(&daemon, ""), ["web1"]);
    assert_eq!(daemon.get("/controller/nodes/large").status, 404);
    check_in(&daemon, "web1");
}

#[test]
fn a_filter_is_a_text_and_no_pattern_and_no_statement() {
    let (_repository, _data, daemon) = serve();
    for encoded in ["web1", "a%25b", "a_b", "a%5Cb", "%27%3B%20DROP%20TABLE%20nodes%3B--", "axb"] {
        check_in(&daemon, encoded);
    }
    let all = ["'; DROP TABLE nodes;--", "a%b", "a\\b", "a_b", "axb", "web1"];
    assert_eq!(names(&daemon, ""), all);
    let rows = [
        ("?q=%25", vec!["a%b"]),
        ("?q=_", vec!["a_b"]),
        ("?q=%5C", vec!["a\\b"]),
        ("?q=%5C%25", vec![]),
        ("?q=a_b", vec!["a_b"]),
        ("?q=%27", vec!["'; DROP TABLE nodes;--"]),
        ("?q=%27%3B%20DROP%20TABLE%20nodes%3B--", vec!["'; DROP TABLE nodes;--"]),
        ("?q=%27%20OR%20%271%27%3D%271", vec![]),
        ("?group=%27%20OR%20%271%27%3D%271", vec![]),
        ("?class=apache", all.to_vec()),
    ];
    each_row(rows, |(query, expected)| assert_eq!(names(&daemon, query), expected));
    for query in ["?class=%27%3B--", "?environment=%27%3B--", "?state=%27%3B--", "?silent_for=%27"]
    {
        assert_eq!(daemon.get(&format!("/controller/nodes{query}")).status, 400, "{query}");
    }
    assert_eq!(names(&daemon, ""), all, "the table is there");
}

#[test]
fn a_name_that_cannot_be_stored_gets_its_answer_all_the_same() {
    let (_repository, _data, daemon) = serve();
    let long = "x".repeat(10_000);
    check_in(&daemon, &long);
    check_in(&daemon, "%D8%B3%D8%B1%D9%88%D8%B1%F0%9F%96%A5");
    check_in(&daemon, "web1");
    assert_eq!(names(&daemon, ""), ["web1", "سرور🖥"]);
    assert_eq!(daemon.get(&format!("/controller/nodes/{long}")).status, 404);
    let facts = json!({"name": long, "facts": {"role": "web"}}).to_string();
    let refused = daemon.request("POST", "/api/hosts/facts", &facts);
    assert_eq!((refused.status, &refused.json()["kind"]), (400, &json!("schema-violation")));
    assert!(refused.body.contains("1024 bytes"), "{}", refused.body);
    let dropped = daemon.get("/metrics").body;
    let dropped: Vec<&str> =
        dropped.lines().filter(|it| it.contains("dropped") && it.contains("name")).collect();
    assert!(dropped.iter().any(|it| it.ends_with(" 1")), "{dropped:?}");
}

/// Runs statements on a connection to a file of nodes.
struct OtherProgram {
    runtime: tokio::runtime::Runtime,
    connection: SqliteConnection,
}

impl OtherProgram {
    fn open(file: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let url = format!("sqlite://{}", file.to_str().unwrap());
        let connection = runtime.block_on(SqliteConnection::connect(&url)).unwrap();
        Self { runtime, connection }
    }

    fn run(&mut self, statement: &str) {
        let statement = sqlx::query(AssertSqlSafe(statement.to_owned()));
        self.runtime.block_on(statement.execute(&mut self.connection)).unwrap();
    }
}

#[test]
fn a_locked_file_of_nodes_delays_no_answer_and_is_reported() {
    let (_repository, data, daemon) = serve();
    check_in(&daemon, "web1");
    assert_eq!(names(&daemon, ""), ["web1"]);
    let mut other = OtherProgram::open(&data.path().join("nodes.sqlite"));
    other.run("BEGIN EXCLUSIVE");
    for number in 0..20 {
        check_in(&daemon, &format!("new{number}"));
    }
    daemon.wait_until("the lock is reported", |it| has(it, "CheckInsFailed"));
    let status = daemon.get("/controller/status").json();
    let conditions = status["conditions"].as_array().unwrap();
    let failed = conditions.iter().find(|it| it["type"] == "CheckInsFailed").unwrap();
    assert!(failed["message"].as_str().unwrap().contains("locked"), "{failed}");
    // The node's facts of before answer by its name alone.
    let enc = daemon.get("/enc/web1");
    assert!(enc.status == 200 && enc.body.contains("apache"), "{} {}", enc.status, enc.body);
    other.run("ROLLBACK");
    daemon.wait_until("the condition is gone", |it| !has(it, "CheckInsFailed"));
    check_in(&daemon, "after");
    daemon.wait_until("nodes are stored again", |it| {
        it.get("/controller/nodes?q=after").json()["total"] == 1
    });
}
