//! Rules that are tried on nodes before they are written anywhere.

use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::program::{Daemon, GitRepository, root, run};
use crate::table::each_row;

const ROOT: &str = "name: All Nodes\nid: 00000000-0000-4000-8000-000000000000\n";

/// A pattern that runs out of its steps where there are many letters.
const EVIL: &str = r#"x ~ "^(a|aa)+\\1b""#;

/// Starts a daemon that knows four nodes; `b2` has checked in without facts.
fn serve(arguments: &[&str]) -> (GitRepository, Daemon) {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/all.yaml", ROOT)]);
    let path = repository.text_path();
    let daemon = Daemon::start(&[&["--repo", &path], arguments].concat());
    for (name, facts) in [
        ("b1", json!({"x": "1", "os": {"family": "Debian"}, "key": "s3cret"})),
        ("a1", json!({"x": "1", "os": {"family": "RedHat"}, "key": "other"})),
        ("c1", json!({"x": format!("{}!", "a".repeat(2_000))})),
        ("b2", json!({})),
    ] {
        let body = json!({"fact": facts}).to_string();
        let answer = daemon.request("POST", &format!("/v1/classified/nodes/{name}"), &body);
        assert_eq!(answer.status, 200);
    }
    (repository, daemon)
}

fn query(daemon: &Daemon, rule: &Value, page: &str) -> Value {
    let body = json!({"rule": rule}).to_string();
    daemon.request("POST", &format!("/controller/query{page}"), &body).json()
}

#[test]
fn a_rule_is_tried_on_the_nodes_that_have_checked_in() {
    let (_repository, daemon) = serve(&[]);
    let rows = [
        (json!("x = 1"), "", json!([2, ["a1", "b1"], []])),
        (json!(["=", ["fact", "x"], "1"]), "?limit=1", json!([2, ["a1"], []])),
        (json!("x = 1"), "?limit=1&offset=1", json!([2, ["b1"], []])),
        (json!("x = 1"), "?limit=0", json!([2, [], []])),
        (json!("not os.family = Debian"), "", json!([3, ["a1", "b2", "c1"], []])),
        (json!("name ~ '^b'"), "", json!([2, ["b1", "b2"], []])),
        (json!(EVIL), "", json!([0, [], ["c1"]])),
        (json!(format!("name = b2 or {EVIL}")), "", json!([1, ["b2"], ["c1"]])),
    ];
    each_row(rows, |(rule, page, expected)| {
        let found = query(&daemon, &rule, page);
        let names = |list: &Value| -> Value {
            list.as_array().unwrap().iter().map(|it| it["name"].clone()).collect()
        };
        let undecided = names(&found["undecided"]["nodes"]);
        assert_eq!(found["undecided"]["total"], undecided.as_array().unwrap().len());
        assert_eq!(json!([found["total"], names(&found["nodes"]), undecided]), expected, "{found}");
        assert_eq!(found["searched"], 4);
    });
    for (searched, expected) in [(1, json!([1, 3, ["a1"]])), (4, json!([4, 0, ["a1", "b1"]]))] {
        let found = query(&daemon, &json!("x = 1"), &format!("?search={searched}"));
        let names: Vec<&Value> =
            found["nodes"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(json!([found["searched"], found["unsearched"], names]), expected);
    }
    let whole = daemon.get("/controller/query?rule=os.family%20=%20Debian%20or%20os.famly%20=%20x");
    assert_eq!(
        whole.json(),
        json!({
            "rule": ["or", ["=", ["fact", "os", "family"], "Debian"], ["=", ["fact", "os", "famly"], "x"]],
            "console": "os.family = Debian or os.famly = x",
            "translated": {
                "nodes_query_format": ["or",
                    ["in", "certname", ["extract", "certname", ["select_inventory", ["=", "facts.os.family", "Debian"]]]],
                    ["in", "certname", ["extract", "certname", ["select_inventory", ["=", "facts.os.famly", "x"]]]]],
                "inventory_query_format": ["or", ["=", "facts.os.family", "Debian"], ["=", "facts.os.famly", "x"]],
            },
            "diagnostics": [],
            "searched": 4,
            "unsearched": 0,
            "total": 1,
            "nodes": [{"name": "b1"}],
            "undecided": {"total": 0, "nodes": []},
            "paths": [{"path": "os.family", "nodes": 2}, {"path": "os.famly", "nodes": 0}],
            "unreadable": [],
        })
    );
}

#[test]
fn a_rule_that_is_not_valid_is_refused_with_places() {
    let (_repository, daemon) = serve(&[]);
    let answer = daemon.get("/controller/query?rule=os.family%20==%20Debian");
    let error = answer.json();
    assert_eq!((answer.status, &error["kind"]), (400, &json!("schema-violation")));
    let finding = &error["details"]["diagnostics"][0];
    assert_eq!(
        json!([finding["kind"], finding["file"], finding["column"], finding["end_column"]]),
        json!(["invalid-rule", "rule", 11, 13])
    );
    assert_eq!(error["msg"], "The rule is not valid: `==` is not an operator.");
    for (method, path, body) in [
        ("GET", "/controller/query", ""),
        ("GET", "/controller/query?rule=", ""),
        ("POST", "/controller/query", ""),
        ("POST", "/controller/query", "[]"),
        ("POST", "/controller/query", r#"{"rule": 1}"#),
        ("POST", "/controller/query", r#"{"rule": []}"#),
        ("GET", "/controller/query?rule=name%20=%20a&limit=x", ""),
    ] {
        let answer = daemon.request(method, path, body);
        assert_eq!(answer.status, 400, "{method} {path} {body}: {}", answer.body);
    }
}

#[test]
fn a_rule_does_not_find_out_what_is_masked_even_if_it_was_stored_before() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path().to_str().unwrap();
    let (repository, daemon) = serve(&["--data-dir", directory]);
    let rule = json!("key ~ '^s3'");
    assert_eq!(query(&daemon, &rule, "")["total"], 1, "nothing is masked yet");
    assert_eq!(daemon.terminate(), 0);
    let path = repository.text_path();
    let daemon = Daemon::start(&["--repo", &path, "--data-dir", directory, "--mask", "key"]);
    let found = query(&daemon, &rule, "");
    assert_eq!(json!([found["total"], found["undecided"]["total"]]), json!([0, 2]), "{found}");
    let error = &found["undecided"]["nodes"][0];
    assert_eq!(error["name"], "a1");
    assert!(error["error"].as_str().unwrap().contains("mask"), "{error}");
}

#[test]
fn the_command_finds_the_same_nodes_in_files_and_at_a_daemon() {
    let (_repository, daemon) = serve(&[]);
    let server = format!("http://{}", daemon.address());
    let directory = tempfile::tempdir().unwrap();
    for (name, facts) in [
        ("b1", r#"{"x": "1", "os": {"family": "Debian"}}"#),
        ("a1", r#"{"x": "1", "os": {"family": "RedHat"}}"#),
        ("b2", "{}"),
        ("c1", &json!({"x": format!("{}!", "a".repeat(2_000))}).to_string()),
    ] {
        std::fs::write(directory.path().join(format!("{name}.json")), facts).unwrap();
    }
    let facts = directory.path().to_str().unwrap();
    let sources = [["--server", &server], ["--facts", facts]];
    each_row(sources, |source| {
        let query =
            |rule: &str, more: &[&str]| run(&[&["query", rule], &source[..], more].concat());
        let found = query("x = 1", &[]);
        assert_eq!(found.status, 0, "{}", found.stderr);
        assert_eq!(
            found.stdout,
            "rule       x = 1\narray      [\"=\",[\"fact\",\"x\"],\"1\"]\nmatches    2 of 4 nodes\n\na1\nb1\n"
        );
        assert_eq!(query("not x = 1", &["--format", "names"]).stdout, "b2\nc1\n");
        let undecided = query(EVIL, &[]);
        assert_eq!(undecided.status, 1);
        assert!(undecided.stdout.contains("matches    0 of 4 nodes\nundecided  1 node\n"));
        assert!(
            undecided.stderr.contains("error: it is not known whether `c1` matches: the pattern"),
            "{}",
            undecided.stderr
        );
        let mistyped = query("os.famly = Debian", &[]);
        assert_eq!(mistyped.status, 0);
        assert!(mistyped.stderr.ends_with("note: no node has a value at `os.famly`\n"));
        let document: Value =
            serde_json::from_str(&query("x = 1", &["--format", "json"]).stdout).unwrap();
        assert_eq!(json!([document["total"], document["searched"]]), json!([2, 4]));
        assert_eq!(
            document["translated"]["inventory_query_format"],
            json!(["~", "facts.x", "^1$"])
        );
    });
}

#[test]
fn diagnostics_of_a_typed_rule_stand_under_it() {
    let facts = root().join("examples/facts");
    let facts = facts.to_str().unwrap();
    let wrong = run(&["query", "os.family == Debian", "--facts", facts]);
    assert_eq!((wrong.status, wrong.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(wrong.stderr, @"
    error[invalid-rule]: `==` is not an operator
     --> rule:1:11
      |
    1 | os.family == Debian
      |           ^^
      |
      = help: equality is `=`, a regular expression is `~`
      = note: https://github.com/clade-classifier/clade/blob/main/docs/reference/diagnostics/invalid-rule.md
    ");
    let json = run(&["query", "name ~ '('", "--facts", facts, "--format", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["diagnostics"][0]["kind"], "invalid-regex");
    let suspicious = run(&["query", "osfamily = Debian", "--facts", facts]);
    insta::assert_snapshot!(suspicious.stderr, @"
    warning[suspicious-rule]: the legacy fact `osfamily` is gone by default since Puppet 8
     --> rule:1:1
      |
    1 | osfamily = Debian
      | ^^^^^^^^^^^^^^^^^
      |
      = help: write `os.family`
      = note: https://github.com/clade-classifier/clade/blob/main/docs/reference/diagnostics/suspicious-rule.md

    note: no node has a value at `osfamily`
    ");
}

#[test]
fn facts_that_cannot_be_read_are_no_result() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.json"), "{").unwrap();
    std::fs::write(directory.path().join("b.json"), "{}").unwrap();
    let done = run(&["query", "name = b", "--facts", directory.path().to_str().unwrap()]);
    assert_eq!(done.status, 2);
    assert!(done.stdout.contains("matches    1 of 1 node\n"), "{}", done.stdout);
    assert!(done.stderr.ends_with("error: 1 node could not be read, so more may match\n"));
}

#[test]
fn a_node_with_several_files_is_one_and_one_with_trusted_in_its_name_is_a_node() {
    let facts = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("web1.trusted.example.com.json", r#"{"os": {"family": "Debian"}}"#),
        ("web2.example.com.json", r#"{"os": {"family": "Debian"}}"#),
        ("web2.example.com.yaml", "os: {family: RedHat}\n"),
        ("web2.example.com.trusted.yaml", "extensions: {pp_role: web}\n"),
    ] {
        std::fs::write(facts.path().join(file), text).unwrap();
    }
    // Files that are written in a row need not be equally new: the clock of a file system ticks in between.
    let set_day = |file: &str, day: u64| {
        let file = File::options().write(true).open(facts.path().join(file)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_hours(24 * day)).unwrap();
    };
    let directory = facts.path().to_str().unwrap();
    each_row([([1, 1], [2, 0]), ([2, 1], [2, 0]), ([1, 2], [1, 1])], |(days, [debian, redhat])| {
        set_day("web2.example.com.json", days[0]);
        set_day("web2.example.com.yaml", days[1]);
        for (rule, count) in [
            ("os.family = Debian", debian),
            ("os.family = RedHat", redhat),
            ("trusted.extensions.pp_role = web", 1),
        ] {
            let done = run(&["query", rule, "--facts", directory]);
            let said = format!("{}{}", done.stdout, done.stderr);
            assert!(said.contains(&format!("{count} of 2 nodes")), "{rule}: {said}");
        }
    });
}
