//! What clients send that makes no sense, and a file of nodes that another program holds: the answers go on.

use std::path::Path;

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use crate::follow::{has, live};
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

/// Waits until a daemon has rejected a commit, and returns the first that it found.
fn rejected(daemon: &Daemon, commit: &str) -> serde_json::Value {
    let failed = || daemon.get("/controller/status").json()["last_failed"].clone();
    daemon.wait_until("the commit is rejected", |_| failed()["commit"] == commit);
    failed()["diagnostics"][0].clone()
}

/// Trees of the paths that rules mention are as deep as these: such a rule ended the process.
#[test]
fn a_path_that_no_fact_has_ends_no_daemon() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/web.yaml", WEB)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--interval", "200ms"]);
    let message = "the path has more than 200 segments behind its root";
    let path = |segments: usize| vec!["a"; segments].join(".");
    let rule = format!("{} = x", path(20_000));
    let text = format!("name: Deep\nrule: {rule}\n");
    let deep = repository.commit("a path", &[("groups/deep.yaml", &text)]);
    let failed = rejected(&daemon, &deep);
    assert_eq!(
        (&failed["kind"], &failed["message"], &failed["line"], &failed["column"]),
        (&json!("invalid-rule"), &json!(message), &json!(2), &json!(7))
    );
    let asked = daemon.request("GET", &format!("/v1/classified/nodes/n?commit={deep}"), "");
    assert_eq!(asked.status, 422, "{}", asked.body);
    let refused = |path: &str, body: &serde_json::Value| {
        let answer = daemon.request("POST", path, &body.to_string());
        assert_eq!(answer.status, 400, "{path}: {}", answer.body);
        assert!(answer.body.contains(message), "{path}: {}", answer.body);
    };
    refused("/controller/query", &json!({"rule": rule}));
    refused("/v1/rules/translate", &json!(rule));
    let array: Vec<&str> = std::iter::once("fact").chain(vec!["a"; 20_000]).collect();
    refused("/v1/rules/translate", &json!(["=", array, "x"]));
    let root = "00000000-0000-4000-8000-000000000000";
    let group = json!({"name": "D", "parent": root, "classes": {}, "rule": ["=", array, "x"]});
    refused("/v1/validate/group", &group);
    // The deepest that is allowed.
    let text = format!("name: Deep\nrule: {} = x\n", path(200));
    let good = repository.commit("a shorter path", &[("groups/deep.yaml", &text)]);
    daemon.wait_until("the commit answers", |it| live(it).as_ref() == Some(&good));
    check_in(&daemon, "web1");
}

/// The same by facts that are put into values.
#[test]
fn a_reference_in_a_value_that_no_fact_has_ends_no_daemon() {
    let repository = GitRepository::new();
    let text = format!("{WEB}variables: {{v: '${{a{}}}'}}\n", "[b]".repeat(20_000));
    let settings = ("clade.yaml", "interpolate: true\n");
    repository.commit("first", &[settings, ("groups/web.yaml", WEB)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--interval", "200ms"]);
    let deep = repository.commit("a reference", &[("groups/web.yaml", &text)]);
    let failed = rejected(&daemon, &deep);
    assert_eq!(
        (&failed["kind"], &failed["message"]),
        (&json!("schema-violation"), &json!("a reference has more than 200 indexes"))
    );
    check_in(&daemon, "web1");
}

/// A string is one value of JSON: the number of values did not bound it.
#[test]
fn a_rule_that_is_a_long_string_is_not_translated() {
    let (_repository, _data, daemon) = serve();
    let rule = |terms: usize| json!(vec!["a=x"; terms].join(" or ")).to_string();
    for (terms, unit) in [(50_001, "50000 comparisons"), (1_700_000, "1048576 bytes")] {
        let refused = daemon.request("POST", "/v1/rules/translate", &rule(terms));
        assert_eq!((refused.status, &refused.json()["kind"]), (413, &json!("payload-too-large")));
        let message = format!("The rule of your request has more than {unit}.");
        assert_eq!(refused.json()["msg"], json!(message));
    }
    assert_eq!(daemon.request("POST", "/v1/rules/translate", &rule(50_000)).status, 200);
}

/// As one nested value, the tree took more stack than a thread has.
#[test]
fn the_children_of_a_chain_of_groups_are_shown() {
    let groups: Vec<String> = (0..12_000)
        .map(|it| {
            format!(
                "name: g{it}\nparent: {}\n",
                if it == 0 { "All Nodes".into() } else { format!("g{}", it - 1) }
            )
        })
        .collect();
    let files: Vec<(String, String)> = groups
        .chunks(2_000)
        .enumerate()
        .map(|(at, some)| (format!("groups/{at}.yaml"), some.join("---\n")))
        .collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let repository = GitRepository::new();
    repository.commit("first", &files);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let answer = daemon.get("/v1/group-children/00000000-0000-4000-8000-000000000000");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body.matches("\"immediate_child_count\":1,").count(), 12_000);
    // The end stands in one piece, with the marks of the transfer around it.
    assert!(answer.body.contains(&format!("{}]", "]}".repeat(12_001))));
}
