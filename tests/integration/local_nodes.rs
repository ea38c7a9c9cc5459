//! `clade nodes` and `clade history` of a repository, without a daemon.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Done, GitRepository, run};
use crate::table::each_row;

const ROOT: &str = "name: All Nodes\nid: 00000000-0000-4000-8000-000000000000\n";

fn web(port: u16, more: &str) -> String {
    format!("name: Web\nrule: os.family = Debian\nclasses: {{apache: {{port: {port}}}}}\n{more}")
}

/// A repository with five commits, of which the third is not valid, and facts of three nodes.
struct World {
    repository: GitRepository,
    facts: TempDir,
    head: String,
}

impl World {
    fn new() -> Self {
        let repository = GitRepository::new();
        let commit = |subject: &str, web: &str| {
            repository.commit(subject, &[("groups/all.yaml", ROOT), ("groups/web.yaml", web)]);
        };
        commit("Serve on 80", &web(80, ""));
        commit("Serve on 8080", &web(8080, ""));
        commit("Break it", "name: Web\nruel: x\n");
        commit("Mend it, with a tier", &web(8080, "variables: {tier: \"%{facts.tier}\"}\n"));
        let other = "name: Other\nrule: name = db1\nenvironment: testing\n";
        let head = repository.commit("Add another group", &[("groups/other.yaml", other)]);
        let facts = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("web1.json", json!({"os": {"family": "Debian"}, "tier": "front"})),
            ("web2.json", json!({"os": {"family": "Debian"}})),
            ("db1.json", json!({"os": {"family": "RedHat"}})),
        ] {
            std::fs::write(facts.path().join(name), text.to_string()).unwrap();
        }
        Self { repository, facts, head }
    }

    /// Runs a command with the repository and all facts.
    fn nodes(&self, arguments: &[&str]) -> Done {
        let (repo, facts) = (self.repository.text_path(), self.facts.path().to_str().unwrap());
        run(&[&["nodes", "--repo", &repo, "--facts", facts], arguments].concat())
    }

    /// Runs a command with the repository and the facts of a node.
    fn history(&self, node: &str, arguments: &[&str]) -> Done {
        let facts = self.facts.path().join(format!("{node}.json"));
        let (repo, facts) = (self.repository.text_path(), facts.to_str().unwrap());
        run(&[&["history", node, "--repo", &repo, "--facts", facts], arguments].concat())
    }
}

fn names(done: &Done) -> Vec<String> {
    let listed: Value = serde_json::from_str(&done.stdout).unwrap();
    let nodes = listed["nodes"].as_array().unwrap();
    assert_eq!(listed["total"], nodes.len());
    nodes.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn nodes_of_facts_files_are_listed_with_what_a_repository_gives_them() {
    let world = World::new();
    each_row(
        [
            (&[][..], &["db1", "web1", "web2"][..]),
            (&["--q", "WEB"], &["web1", "web2"]),
            (&["--group", "Web", "--class", "apache"], &["web1", "web2"]),
            (&["--group", "00000000-0000-4000-8000-000000000000"], &["db1", "web1", "web2"]),
            (&["--environment", "testing"], &["db1"]),
            (&["--environment", "testing", "--rev", "HEAD~1"], &[]),
            (&["--class", "apache", "--q", "2"], &["web2"]),
            (&["--state", "classified"], &["db1", "web1", "web2"]),
            (&["--state", "conflict"], &[]),
        ],
        |(arguments, expected)| {
            let done = world.nodes(&[arguments, &["--format", "json"]].concat());
            assert_eq!(
                (done.status, names(&done)),
                (0, expected.iter().map(ToString::to_string).collect())
            );
        },
    );
    let shown = world.nodes(&["--rev", "HEAD"]).stdout;
    let expected = format!(
        "NODE  STATE       SEEN  COMMIT        SINCE  ENVIRONMENT  GROUPS\n\
         db1   classified  -     {0}  -      testing      All Nodes, Other\n\
         web1  classified  -     {0}  -      production   All Nodes, Web\n\
         web2  classified  -     {0}  -      production   All Nodes, Web\n",
        &world.head[..12]
    );
    assert_eq!(shown, expected);
    let none = world.nodes(&["--class", "nope"]);
    assert_eq!(none.stderr, "none of 3 nodes meets the conditions\n");
    for refused in ["--silent-for=2h", "--commit=HEAD"] {
        let done = world.nodes(&[refused]);
        assert_eq!(
            (done.status, done.stderr.contains("ask the daemon")),
            (2, true),
            "{}",
            done.stderr
        );
    }
    let invalid = world.nodes(&["--rev", "HEAD~2"]);
    assert_eq!(invalid.status, 2);
    assert!(invalid.stderr.contains("the repository is not valid"), "{}", invalid.stderr);
    // A daemon lists what it answered from its own repository.
    let done = run(&["nodes", "--repo", ".", "--server", "http://127.0.0.1:1"]);
    assert_eq!((done.status, done.stderr.contains("--facts DIR")), (2, true), "{}", done.stderr);
    std::fs::write(world.facts.path().join("bad.json"), "{").unwrap();
    let done = world.nodes(&["--format", "json"]);
    assert_eq!((done.status, names(&done).len()), (2, 3), "{}", done.stderr);
    assert!(done.stderr.contains("bad.json"), "{}", done.stderr);
}

#[test]
fn a_history_of_commits_says_which_changed_what_a_node_gets() {
    let world = World::new();
    let done = world.history("web1", &["--format", "json"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let listed: Value = serde_json::from_str(&done.stdout).unwrap();
    let change = |it: &Value| {
        let keys = it["changes"].as_array().unwrap().iter().map(|it| it["key"].clone()).collect();
        json!([
            it["commit"]["subject"],
            it["cause"],
            Value::Array(keys),
            it["commit_before"].is_null()
        ])
    };
    let changes: Vec<Value> = listed.as_array().unwrap().iter().map(change).collect();
    // The invalid commit gave no answer; what it broke was mended by the next one.
    let first = [
        "classes.apache",
        "classes.apache.port",
        "environment",
        "groups.All Nodes",
        "groups.Web",
        "state",
    ];
    let mut sorted = changes.clone();
    if let Some(keys) = sorted[2][2].as_array_mut() {
        keys.sort_by_key(ToString::to_string);
    }
    assert_eq!(
        sorted,
        [
            json!(["Mend it, with a tier", "commit", ["variables.tier"], false]),
            json!(["Serve on 8080", "commit", ["classes.apache.port"], false]),
            json!(["Serve on 80", "first", first, true]),
        ]
    );
    assert_eq!(listed[1]["changes"][0]["before"], 80);
    assert_eq!(listed[1]["changes"][0]["after"], 8080);
    let shown = world.history("web1", &["--limit", "2"]).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].ends_with("commit  Mend it, with a tier"), "{shown}");
    assert_eq!(lines[1], "    + variables.tier = \"%{facts.tier}\" (Web)");
    assert!(lines[2].ends_with("commit  Serve on 8080"), "{shown}");
    assert_eq!(lines[3..], ["    ~ classes.apache.port: 80 -> 8080 (Web)"]);
    // Another node got something else by the last commit.
    let shown = world.history("db1", &["--limit", "1"]).stdout;
    assert!(shown.contains("Add another group"), "{shown}");
    let before = world.history("web1", &["--before", "2000-01-01T00:00:00Z"]);
    assert_eq!((before.status, before.stdout.as_str()), (0, ""));
    let invalid = world.history("web1", &["--rev", "HEAD~2"]);
    assert_eq!(invalid.status, 2, "{}", invalid.stderr);
    let both = world.history("web1", &["--server", "http://127.0.0.1:1"]);
    assert_eq!(both.status, 2);
}

#[test]
fn a_history_shows_no_secret_and_still_what_changes() {
    let repository = GitRepository::new();
    let group = |port: u16, value: &str| {
        format!(
            "name: A\nrule: db_password = s3cret\nclasses: {{app: {{port: {port}}}}}\nvariables: {{x: \"{value}\"}}\n"
        )
    };
    let commit = |port: u16, value: &str| {
        let group = group(port, value);
        repository.commit("c", &[("groups/all.yaml", ROOT), ("groups/a.yaml", &group)]);
    };
    commit(80, "plain");
    repository.commit("interpolate", &[("clade.yaml", "interpolate: true\n")]);
    commit(81, "${db_password}");
    commit(81, "${api_password}");
    let facts = tempfile::tempdir().unwrap();
    let file = facts.path().join("n.json");
    std::fs::write(&file, r#"{"db_password": "s3cret", "api_password": "other"}"#).unwrap();
    let (repo, file) = (repository.text_path(), file.to_str().unwrap());
    let done = run(&["history", "n", "--repo", &repo, "--facts", file]);
    let lines: Vec<&str> = done.stdout.lines().filter(|it| it.starts_with("    ")).collect();
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert_eq!(
        lines[..3],
        [
            "    ~ variables.x: \"[masked]\" -> \"[masked]\" (A)",
            "    ~ classes.app.port: 80 -> 81 (A)",
            "    ~ variables.x: \"plain\" -> \"[masked]\" (A)",
        ],
        "{}",
        done.stdout
    );
    assert!(lines.contains(&"    + state = \"classified\""), "{}", done.stdout);
    assert!(!done.stdout.contains("s3cret") && !done.stdout.contains("other"), "{}", done.stdout);
    let done = run(&[
        "history",
        "n",
        "--repo",
        &repo,
        "--facts",
        file,
        "--before",
        "2000-01-01T00:00:00Z",
    ]);
    assert_eq!(done.stderr, "no commit changed the answer of the node before then\n");
}
