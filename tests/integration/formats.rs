//! Data in JSON and in YAML: the same values, to readers of YAML 1.1 and 1.2.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use indoc::indoc;
use serde_json::{Value, json};

use crate::git::server::Request;
use crate::program::{Daemon, Done, GitRepository, clade, run};

/// Values that YAML readers take for others unless they are quoted or written with care.
const GROUP: &str = r#"
name: Odd
rule: name ~ n
variables:
  word: "yes"
  "on": "off"
  time: "12:30"
  octal: "0777"
  number: "1_000"
  float: 1.0e+16
  empty: ""
  tilde: "~"
  lines: "a\n\nb: c # d\n"
  control: "\x85\u2028\x7f"
  null_in_a_list: [null, [], {}, [[1], {a: [2]}]]
classes:
  a::b: {p: "null", q: 1.50, r: true}
"#;

const CONFLICT: &str = indoc! {"
    name: a
    rule: name = m
    variables: {v: 'no'}
    ---
    name: b
    rule: name = m
    variables: {v: 'yes'}
"};

/// Reads YAML 1.1 as Puppet does; `None` without Ruby.
pub(crate) fn read_by_ruby(yaml: &str) -> Option<Value> {
    let mut ruby = Command::new("ruby")
        .args([
            "-Eutf-8",
            "-ryaml",
            "-rjson",
            "-e",
            "puts JSON.generate(YAML.safe_load(STDIN.read))",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    ruby.stdin.take().unwrap().write_all(yaml.as_bytes()).unwrap();
    let output = ruby.wait_with_output().unwrap();
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Numbers by their value: readers keep no more of them.
fn by_value(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap().to_string()),
        Value::Array(elements) => elements.into_iter().map(by_value).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, it)| (key, by_value(it))).collect::<Value>()
        }
        other => other,
    }
}

#[test]
fn what_is_written_as_json_is_written_as_yaml() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/c.yaml", CONFLICT)]);
    repository.commit("second", &[("groups/odd.yaml", GROUP)]);
    let path = repository.text_path();
    let facts = tempfile::tempdir().unwrap();
    std::fs::write(facts.path().join("n.json"), "{}").unwrap();
    let facts = facts.path().to_str().unwrap();
    for (command, status) in [
        (vec!["classify", "n", &path], 0),
        (vec!["classify", "m", &path], 1),
        (vec!["explain", "n", &path], 0),
        (vec!["explain", "m", &path], 1),
        (vec!["explain", "n", &path, "--group", "Odd"], 0),
        (vec!["export", &path], 0),
        (vec!["diff", "HEAD~1", "HEAD", "--repo", &path, "--facts", facts], 0),
        (vec!["enc", "n", "--repo", &path], 0),
    ] {
        let of = |format: &str| {
            let done = run(&[&command[..], &["--format", format]].concat());
            assert_eq!((done.status, &*done.stderr), (status, ""), "{command:?}");
            done.stdout
        };
        let (json, yaml) = (of("json"), of("yaml"));
        let expected = by_value(serde_json::from_str(&json).unwrap());
        assert!(!yaml.starts_with(['{', '[']), "{yaml}");
        let read: Value = serde_yaml::from_str(&yaml).unwrap();
        assert_eq!(by_value(read), expected, "{command:?}\n{yaml}");
        if let Some(read) = read_by_ruby(&yaml) {
            assert_eq!(by_value(read), expected, "{command:?}\n{yaml}");
        }
    }
    // The default is JSON, with nothing on stdout for an error.
    let plain = |arguments: &[&str]| run(arguments).stdout;
    assert_eq!(
        plain(&["classify", "n", &path]),
        plain(&["classify", "n", &path, "--format", "json"])
    );
    assert_eq!(plain(&["export", &path]), plain(&["export", &path, "--format", "json"]));
    assert_eq!(plain(&["classify", "m", &path]), "");
    let refused = run(&["enc", "m", "--repo", &path, "--format", "yaml"]);
    assert_eq!(refused.status, 1);
    assert!(refused.stdout.starts_with("clade enc: The node was classified"), "{}", refused.stdout);
}

#[test]
fn a_daemon_explains_a_node_as_a_repository_does() {
    let repository = GitRepository::new();
    let own = "classes: {ntp: {servers: [a]}}\nvariables: {own: -0}\nconfig_data: {ntp: {x: 2}}\n";
    repository.commit(
        "first",
        &[("groups/odd.yaml", GROUP), ("groups/c.yaml", CONFLICT), ("nodes/n.yaml", own)],
    );
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let server = format!("http://{}", daemon.address);
    let facts = repository.path().join("facts.json");
    // The one integer with two spellings is sent, and written, in the rare one.
    let body = r#"{"fact": {"os": {"family": "Debian"}, "n": -0}, "trusted": {"certname": "n", "extensions": {"a": "b"}}}"#;
    std::fs::write(&facts, body).unwrap();
    for name in ["n", "m", "other"] {
        daemon.request("POST", &format!("/v1/classified/nodes/{name}"), body);
    }
    let (path, facts) = (repository.text_path(), facts.to_str().unwrap().to_owned());
    for name in ["n", "m", "other"] {
        for more in [
            &[][..],
            &["--format", "json"],
            &["--format", "yaml"],
            &["--group", "Odd"],
            &["--group", "b", "--format", "json"],
        ] {
            let start = ["explain", name];
            let here = run(&[&start[..], &[&path, "--facts", &facts], more].concat());
            let there = run(&[&start[..], &["--server", &server], more].concat());
            assert_eq!(there.stderr, format!("asking {server}\n"));
            assert_eq!((there.status, there.stdout), (here.status, here.stdout), "{name} {more:?}");
        }
    }
    let blamed = run(&["blame", "n", "own", "--server", &server]);
    assert!(blamed.stdout.ends_with("variables.own = -0\n"), "{}", blamed.stdout);
    let unknown = run(&["explain", "stranger", "--server", &server]);
    assert_eq!((unknown.status, &*unknown.stdout), (2, ""));
    insta::assert_snapshot!(unknown.stderr.replace(&server, "URL"), @r"
    asking URL
    error: the daemon answers 404 Not Found: The node `stranger` is not known to this daemon: it has not checked in here. Check its name, send its facts along (`POST`, or `--facts FILE` of a command), or ask the daemon that classified it.
    ");
    let both = run(&["explain", "n", &path, "--server", &server]);
    assert_eq!((both.status, &*both.stdout), (2, ""));
    // What other commands read from the environment stays without effect.
    let mut command = clade(&["explain", "n", "--server", &server]);
    let done: Done = command.env("CLADE_COMMIT_BUDGET", "groups=50000").output().unwrap().into();
    assert_eq!((done.status, &*done.stderr), (0, &*format!("asking {server}\n")));
}

/// Serves a document on every path, as a daemon of another version may, and returns the URL.
fn serve_document(document: &Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let body = document.to_string();
    let commit = "1".repeat(40);
    let head = format!("Content-Type: application/json\r\nX-Clade-Commit: {commit}\r\n");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\n{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // An answer before the whole request would reset the connection.
            if Request::read(&mut stream).is_some() {
                stream.write_all(answer.as_bytes()).ok();
            }
        }
    });
    url
}

#[test]
fn an_explanation_of_another_version_is_printed_as_it_is() {
    for (document, status) in [
        (json!({"conflicts": {"classes": 1}, "leaf_groups": [1]}), 1),
        (json!({"final_classification": {"classes": {}}, "later": true}), 0),
    ] {
        let server = serve_document(&document);
        let start = ["explain", "n", "--server", &server];
        for format in ["json", "yaml"] {
            let done = run(&[&start[..], &["--format", format]].concat());
            assert_eq!((done.status, done.stderr), (status, format!("asking {server}\n")));
            let read: Value = serde_yaml::from_str(&done.stdout).unwrap();
            assert_eq!(read, document, "{format}");
        }
        let drawn = run(&start);
        assert_eq!((drawn.status, &*drawn.stdout), (2, ""));
        let message = "the explanation of the daemon cannot be drawn";
        assert!(drawn.stderr.contains(message), "{}", drawn.stderr);
    }
}

#[test]
fn check_ins_are_compared_by_their_facts_alone() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/c.yaml", CONFLICT)]);
    repository.commit("second", &[("groups/odd.yaml", GROUP)]);
    let path = repository.text_path();
    let check_in = json!({"time": "2026-11-20T21:25:23Z"});
    let server = serve_document(&json!([
        {"name": "n1", "fact": {}},
        {"name": "n2", "fact": {}, "check_ins": [check_in]},
    ]));
    // The daemon is not asked to compare a working tree, but for its nodes.
    let start = ["diff", "HEAD~1", "--repo", &path, "--format", "json"];
    let done = run(&[&start[..], &["--server", &server]].concat());
    let note = "note: the nodes of the daemon are fetched and compared here: it knows commits, and not a working tree\n";
    assert_eq!((done.status, done.stderr), (0, format!("asking {server}\n{note}")));
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(document["summary"]["changed"], 2);
}

#[test]
fn the_daemon_of_the_environment_is_asked_for_nodes_where_no_flag_names_some() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/c.yaml", CONFLICT)]);
    repository.commit("second", &[("groups/odd.yaml", GROUP)]);
    let path = repository.text_path();
    let daemon = Daemon::start(&["--repo", &path]);
    daemon.request("POST", "/v1/classified/nodes/n", "{\"fact\": {}}");
    let server = format!("http://{}", daemon.address);
    let facts = tempfile::tempdir().unwrap();
    std::fs::write(facts.path().join("other.json"), "{}").unwrap();
    let diff = |server: Option<&str>, more: &[&str]| -> Done {
        let start = ["diff", "HEAD~1", "HEAD", "--repo", &path, "--format", "json"];
        let mut command = clade(&[&start[..], more].concat());
        if let Some(server) = server {
            command.env("CLADE_SERVER", server);
        }
        command.output().unwrap().into()
    };
    let changed = |done: &Done| -> Value {
        let document: Value = serde_json::from_str(&done.stdout).unwrap();
        document["summary"]["changed"].clone()
    };
    let asked = diff(Some(&server), &[]);
    assert_eq!((asked.status, asked.stderr.clone()), (0, format!("asking {server}\n")));
    assert_eq!(changed(&asked), 1);
    // A flag wins over the variable.
    let by_flag = diff(Some("http://127.0.0.1:1"), &["--server", &server]);
    assert_eq!(by_flag.stderr, format!("asking {server}\n"));
    let files = diff(Some(&server), &["--facts", facts.path().to_str().unwrap()]);
    assert_eq!((files.status, &*files.stderr), (0, ""));
    assert_eq!(changed(&files), 0);
    let none = diff(None, &[]);
    assert_eq!((none.status, &*none.stdout), (2, ""));
    insta::assert_snapshot!(none.stderr, @"error: no nodes: pass --facts DIR, --puppetdb URL or --server URL, or set `CLADE_SERVER`");
}

#[test]
fn a_rule_that_cannot_be_evaluated_leaves_nothing_in_documents() {
    let repository = GitRepository::new();
    let rule = r#"["~", ["fact", "x"], "^(a|aa|aaa)+(?=\\1)b\\1$"]"#;
    repository.commit("first", &[("groups/slow.yaml", &format!("name: Slow\nrule: {rule}\n"))]);
    let facts = repository.path().join("facts.json");
    std::fs::write(&facts, json!({"x": "a".repeat(5000) + "!"}).to_string()).unwrap();
    let path = repository.text_path();
    let start = ["explain", "n", &path, "--facts", facts.to_str().unwrap()];
    let drawn = run(&start);
    assert!(drawn.stdout.contains("Slow"), "{}", drawn.stdout);
    for format in ["json", "yaml"] {
        let document = run(&[&start[..], &["--format", format]].concat());
        assert_eq!((document.status, &*document.stdout), (2, ""), "{format}");
        assert_eq!(document.stderr, drawn.stderr, "{format}");
    }
}
