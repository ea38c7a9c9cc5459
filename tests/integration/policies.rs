//! `clade validate` with policies that need nodes, and its counts of findings.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::git::server::Server;
use crate::program::{Done, clade};

const GROUPS: &str = "\
name: Web
rule: trusted.extensions.pp_role = web
---
name: Silent
rule: trusted.extensions.pp_role = db
---
name: Pins
pinned: [seen.example.com, old.example.com, gone.example.com]
";

/// Validates groups with a policy, from their directory.
fn validate(policy: &str, more: &[(&str, &str)], arguments: &[&str]) -> Done {
    let directory = tempfile::tempdir().unwrap();
    let settings = format!("policy: {{{policy}}}\n");
    let own = [("groups/g.yaml", GROUPS), ("clade.yaml", settings.as_str())];
    for (path, text) in own.iter().chain(more) {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let all = [&["validate"], arguments].concat();
    let mut command = clade(&all);
    command.current_dir(directory.path()).output().unwrap().into()
}

/// Returns the findings of a run with `--format json`.
fn found(done: &Done) -> Vec<String> {
    let document: Value = serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", done.stdout, done.stderr));
    let line = |it: &Value| {
        let [severity, kind, message] =
            ["severity", "kind", "message"].map(|key| it[key].as_str().unwrap().to_owned());
        format!("{}:{} {severity} {kind} {message}", it["line"], it["column"])
    };
    document["diagnostics"].as_array().unwrap().iter().map(line).collect()
}

const FACTS: &[(&str, &str)] = &[
    (
        "facts/seen.example.com.yaml",
        r#"{"fact": {}, "trusted": {"extensions": {"pp_role": "web"}}}"#,
    ),
    ("facts/old.example.com.yaml", r#"{"fact": {}}"#),
];

#[test]
fn a_directory_of_facts_says_which_nodes_there_are() {
    let json = ["--format", "json", "--facts", "facts"];
    let done = validate("unmatched_groups: error, stale_pins: warn", FACTS, &json);
    assert_eq!(
        found(&done),
        [
            "4:7 error unmatched-group no node of the 2 that are known is in this group",
            "8:45 warning stale-pin the pinned node `gone.example.com` is not among the known nodes",
        ]
    );
    assert_eq!(done.status, 1);
    // Without a policy, nodes show what they always did.
    let done = validate("max_pins: 1", FACTS, &json);
    let old = ["4:7 warning never-matches no node of the 2 that are known is in this group"];
    assert_eq!((found(&done), done.status), (old.map(ToOwned::to_owned).to_vec(), 0));
}

#[test]
fn a_node_that_cannot_be_read_may_be_one_that_is_pinned() {
    let broken = [FACTS, &[("facts/gone.example.com.yaml", "[\n")]].concat();
    let arguments = ["--format", "json", "--facts", "facts", "--ignore-bad-facts"];
    let done = validate("stale_pins: warn, unmatched_groups: off", &broken, &arguments);
    assert!(!done.stdout.contains("stale-pin"), "{}", done.stdout);
    assert!(done.stderr.contains("not checked: `stale_pins`"), "{}", done.stderr);
}

#[test]
fn a_node_that_cannot_be_classified_may_be_in_any_group() {
    let slow = "name: Slow\nrule: [\"~\", [fact, x], '^(a|aa)+\\1b']\n";
    let facts = format!("{{\"x\": \"{}!\"}}", "a".repeat(10_000));
    let slow_node =
        [FACTS, &[("groups/slow.yaml", slow), ("facts/slow.example.com.yaml", facts.as_str())]]
            .concat();
    let broken = [FACTS, &[("facts/gone.example.com.yaml", "[\n")]].concat();
    let arguments = ["--format", "json", "--facts", "facts", "--ignore-bad-facts"];
    for (files, policy) in [(&slow_node, "unmatched_groups: error"), (&broken, "max_pins: 9")] {
        let done = validate(policy, files, &arguments);
        for claim in ["unmatched-group", "never-matches"] {
            assert!(!done.stdout.contains(claim), "{}", done.stdout);
        }
        let note = "note: not checked: which groups no node is in, since some nodes";
        assert!(done.stderr.contains(note), "{}", done.stderr);
    }
    // Where only values fail, it is known which groups a node is in.
    let values = "name: Values\nrule: name = seen.example.com\nvariables: {v: '${a.b}'}\n";
    let settings = [FACTS, &[("groups/values.yaml", values)]].concat();
    let done = validate("unmatched_groups: error", &settings, &arguments);
    assert!(done.stdout.contains("unmatched-group"), "{} {}", done.stdout, done.stderr);
}

#[test]
fn trusted_data_without_facts_are_named() {
    let lone = [
        FACTS,
        &[("facts/db1.corp.trusted.json", "{}"), ("facts/old.example.com.trusted.json", "{}")],
    ]
    .concat();
    let done = validate("max_pins: 9", &lone, &["--facts", "facts"]);
    assert_eq!(
        done.stderr,
        "warning: `facts/db1.corp.trusted.json` is left out: it has the trusted data of `db1.corp`, which has no facts file here\n"
    );
    let more = [&lone[..], &[("facts/db2.corp.trusted.yml", "{}")]].concat();
    let done = validate("max_pins: 9", &more, &["--facts", "facts"]);
    assert!(done.stderr.ends_with(" here; so is 1 other file\n"), "{}", done.stderr);
}

#[test]
fn without_nodes_a_policy_that_needs_them_is_said_not_to_be_checked() {
    let done = validate("unmatched_groups: error, stale_pins: error", &[], &["--format", "json"]);
    assert_eq!((found(&done), done.status), (Vec::new(), 0));
    assert_eq!(
        done.stderr,
        "note: not checked: `unmatched_groups` and `stale_pins`; pass nodes by --facts DIR, --puppetdb URL or --server URL\n"
    );
    assert_eq!(validate("redundant_values: warn", &[], &[]).stderr, "");
}

#[test]
fn puppetdb_and_a_daemon_say_when_a_node_was_seen_last() {
    let now = jiff::Timestamp::now();
    let ago = |days: i64| (now - jiff::SignedDuration::from_hours(days * 24 + 1)).to_string();
    let [seen, old] = [ago(29), ago(30)];
    let inventory = json!([
        {"certname": "seen.example.com", "facts": {}, "trusted": {}, "timestamp": seen},
        {"certname": "old.example.com", "facts": {}, "trusted": {}, "timestamp": old},
        {"certname": "gone.example.com", "facts": {}, "trusted": {}},
    ]);
    let check_in = |name: &str, time: &str| {
        json!({
            "name": name, "transaction_uuid": null, "fact": {}, "trusted": {},
            "check_ins": [{"time": time, "explanation": {}, "transaction_uuid": null}],
        })
    };
    let check_ins = json!([check_in("old.example.com", &old), check_in("seen.example.com", &seen)]);
    let policy = "stale_pins: error, stale_pin_days: 30";
    let stale = |option: &str, body: &Value| {
        let body = body.to_string();
        let server = Server::http(move |_| {
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
            .into_bytes()
        });
        let url = format!("http://127.0.0.1:{}", server.port);
        let done = validate(policy, &[], &["--format", "json", option, &url]);
        found(&done).into_iter().filter(|it| it.contains("stale-pin")).collect::<Vec<_>>()
    };
    let old = "8:28 error stale-pin the pinned node `old.example.com` was seen last 30 d ago";
    let gone =
        "8:45 error stale-pin the pinned node `gone.example.com` is not among the known nodes";
    // PuppetDB knows the third node, and does not say since when.
    assert_eq!(stale("--puppetdb", &inventory), [old]);
    assert_eq!(stale("--server", &check_ins), [old, gone]);
}

/// Groups with so many findings of one kind each.
fn many(count: usize) -> (String, String) {
    let (mut web, mut others) = (String::new(), String::new());
    for number in 0..count {
        write!(web, "---\nname: W{number}\nparent: Missing\n").unwrap();
        if number % 2 == 0 {
            write!(others, "---\nname: O{number}\nenvironment: e\nparent: Gone\n").unwrap();
        }
    }
    (web, others)
}

#[test]
fn people_see_the_first_findings_of_each_kind_and_programs_all() {
    let (web, others) = many(25);
    let files = [("groups/w.yaml", web.as_str()), ("groups/o.yaml", others.as_str())];
    let shown = |done: &Done| done.stdout.matches("error[missing-parent]: the parent").count();
    let done = validate("max_pins: 1", &files, &[]);
    assert_eq!((shown(&done), done.status), (20, 1));
    assert!(
        done.stdout.ends_with(
            "error[missing-parent]: 18 more are not shown\n  = help: `clade validate --all` shows them, `--stats` counts them\n\n38 errors in 41 groups, 4 files\n"
        ),
        "{}",
        done.stdout
    );
    let done = validate("max_pins: 1", &files, &["--all"]);
    assert_eq!(shown(&done), 38);
    assert!(!done.stdout.contains("not shown"), "{}", done.stdout);
    assert_eq!(found(&validate("max_pins: 1", &files, &["--format", "json"])).len(), 38);
}

#[test]
fn findings_are_counted_by_kind_and_by_file_most_first() {
    let (web, others) = many(5);
    let files = [("groups/w.yaml", web.as_str()), ("groups/o.yaml", others.as_str())];
    let policy = "too_many_pins: warn, max_pins: 1";
    let done = validate(policy, &files, &["--stats"]);
    assert_eq!(done.status, 1);
    insta::assert_snapshot!(done.stdout);
    let done = validate(policy, &files, &["--stats", "--format", "json"]);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        document,
        json!({
            "commit": null, "valid": false, "groups": 11,
            "summary": {"error": 8, "warning": 1},
            "by_kind": [
                {"kind": "missing-parent", "findings": 8, "error": 8, "warning": 0},
                {"kind": "too-many-pins", "findings": 1, "error": 0, "warning": 1},
            ],
            "by_file": [
                {"file": "groups/w.yaml", "findings": 5, "error": 5, "warning": 0},
                {"file": "groups/o.yaml", "findings": 3, "error": 3, "warning": 0},
                {"file": "groups/g.yaml", "findings": 1, "error": 0, "warning": 1},
            ],
        })
    );
    let refused = validate(policy, &files, &["--stats", "--format", "sarif"]);
    assert_eq!(refused.status, 2);
}
