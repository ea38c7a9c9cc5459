//! `clade blame` over real repositories.

mod agreement;
mod servers;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::program::{Daemon, GitRepository, clade, run};

const BASE: &str = "name: Base\nrule: os.family = Debian\nclasses: {base: {}}\n";
const WEB: &str = "name: Web\nparent: Base\nrule: name ~ \"^web\"\nclasses:\n  apache:\n    port: 80\nvariables:\n  tier: front\n";
const OTHER: &str = "name: Db\nrule: name ~ \"^db\"\nclasses: {postgresql: {}}\n";
/// What stderr says where rules read facts and there are none.
const NO_FACTS: &str =
    "note: no facts are given (`--facts FILE`): rules that read facts find none\n";

/// The last words of each line, by key: who is blamed, and where the value stands.
fn blamed(repository: &GitRepository, more: &[&str]) -> BTreeMap<String, String> {
    let path = repository.text_path();
    let facts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(facts.path(), json!({"os": {"family": "Debian"}}).to_string()).unwrap();
    let facts = facts.path().to_str().unwrap();
    let usual = ["blame", "web1", "--repo", &path, "--facts", facts, "--format", "json"];
    let done = run(&[&usual, more].concat());
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    let values: Value = serde_json::from_str(&done.stdout).unwrap();
    let values = values.as_array().unwrap().iter().map(|it| {
        let text = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
        let boundary = if it["boundary"] == true { "^" } else { "" };
        let line = format!(
            "{boundary}{} {}:{}",
            it["commit"]["subject"].as_str().unwrap(),
            text("file"),
            it["line"]
        );
        (text("key"), line)
    });
    values.collect()
}

#[test]
fn a_value_came_from_the_commit_after_which_it_first_came_out() {
    let repository = GitRepository::new();
    repository.commit("base", &[("groups/base.yaml", BASE)]);
    repository.commit("web", &[("groups/web.yaml", WEB)]);
    repository.commit("db", &[("groups/db.yaml", OTHER)]);
    let moved = WEB.replace("80", "8080");
    repository.commit("port", &[("groups/web.yaml", &moved)]);
    let broken = moved.replace("front", "back").replace("name: Web", "name: [");
    repository.commit("broken", &[("groups/web.yaml", &broken)]);
    let mended = moved.replace("front", "back");
    repository.commit("mended", &[("groups/web.yaml", &mended)]);
    // What does not concern the node may even be invalid.
    repository.commit("db is broken", &[("groups/db.yaml", "name: [")]);
    repository.commit("db", &[("groups/db.yaml", OTHER)]);
    let found = blamed(&repository, &[]);
    let found: Vec<String> = found.iter().map(|(key, line)| format!("{key}: {line}")).collect();
    insta::assert_snapshot!(found.join("\n"), @r"
    classes.apache: web groups/web.yaml:5
    classes.apache.port: port groups/web.yaml:6
    classes.base: base groups/base.yaml:3
    environment: base groups/web.yaml:1
    groups.All Nodes: base -:null
    groups.Base: base groups/base.yaml:1
    groups.Web: web groups/web.yaml:1
    variables.tier: mended groups/web.yaml:8
    ");
    let only = |key: &str| -> Vec<String> { blamed(&repository, &[key]).into_keys().collect() };
    assert_eq!(only("apache"), ["classes.apache", "classes.apache.port"]);
    assert_eq!(only("apache::port"), ["classes.apache.port"]);
    assert_eq!(only("port"), ["classes.apache.port"]);
    assert_eq!(only("tier"), ["variables.tier"]);
    assert_eq!(only("Web"), ["groups.Web"]);
    assert_eq!(only("environment"), ["environment"]);
}

#[test]
fn lines_are_those_of_git_blame() {
    let repository = GitRepository::new();
    repository.commit("base", &[("groups/base.yaml", BASE)]);
    let commit = repository
        .commit("web", &[("groups/web.yaml", WEB.replace("parent: Base\n", "").as_str())]);
    let path = repository.text_path();
    let done = run(&["blame", "web1", "apache", "--repo", &path]);
    assert_eq!((done.status, done.stderr.as_str()), (0, NO_FACTS));
    let lines: Vec<Vec<&str>> =
        done.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 2, "{}", done.stdout);
    assert_eq!(lines[0][..2], [&commit[..8], "Ada"]);
    assert_eq!(lines[0][3..], ["d", "ago", "groups/web.yaml:4", "(Web)", "classes.apache"]);
    assert_eq!(lines[1][5..], ["groups/web.yaml:5", "(Web)", "classes.apache.port", "=", "80"][..]);
    // By key within a commit, whatever the ids of groups are.
    let done = run(&["blame", "web1", "--repo", &path]);
    let key = |line: &str| line.rsplit_once("  ").unwrap().1.to_owned();
    let keys: Vec<String> = done.stdout.lines().map(key).collect();
    assert_eq!(
        keys,
        [
            "classes.apache",
            "classes.apache.port = 80",
            "groups.Web",
            "variables.tier = \"front\"",
            "environment = \"production\"",
            "groups.All Nodes"
        ]
    );
    let done = run(&["blame", "web1", "nginx", "--repo", &path]);
    assert_eq!(
        done.stderr,
        "error: `web1` gets no value `nginx`; without --facts FILE, rules see only the certname\n"
    );
    let elsewhere = tempfile::tempdir().unwrap();
    let done = clade(&["blame", "web1"]).current_dir(elsewhere.path()).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("is not a git repository: name one with --repo DIR"), "{said}");
    let done = run(&["blame", "web1", "apach", "--repo", &path]);
    assert_eq!((done.status, done.stdout.as_str()), (2, ""));
    assert_eq!(done.stderr, "error: `web1` gets no value `apach`; did you mean `apache`?\n");
}

#[test]
fn a_node_without_an_answer_has_nothing_to_blame() {
    let repository = GitRepository::new();
    let group = |name: &str, port: u16| {
        format!("name: {name}\nrule: name ~ web\nclasses: {{apache: {{port: {port}}}}}\n")
    };
    repository.commit("a", &[("groups/a.yaml", &group("A", 1)), ("groups/b.yaml", &group("B", 2))]);
    let path = repository.text_path();
    let done = run(&["blame", "web1", "--repo", &path]);
    assert_eq!((done.status, done.stdout.as_str()), (1, ""));
    assert!(done.stderr.contains("conflict"), "{}", done.stderr);
    repository.commit("b", &[("groups/b.yaml", "name: [")]);
    let done = run(&["blame", "web1", "--repo", &path]);
    assert_eq!((done.status, done.stdout.as_str()), (2, ""));
    assert!(done.stderr.contains("is not valid: groups/b.yaml:1:"), "{}", done.stderr);
    // After a conflict, all values are new.
    repository.commit("c", &[("groups/b.yaml", &group("B", 1))]);
    let found = blamed(&repository, &["apache"]);
    assert_eq!(found.into_values().next().unwrap(), "c groups/a.yaml:3");
}

#[test]
fn merges_are_blamed_as_a_whole_and_a_cut_history_has_a_boundary() {
    let origin = GitRepository::new();
    origin.commit("base", &[("groups/base.yaml", BASE)]);
    let git = origin.git();
    let base = git.head().unwrap().peel_to_commit().unwrap();
    git.branch("topic", &base, false).unwrap();
    git.set_head("refs/heads/topic").unwrap();
    origin.commit("on the branch", &[("groups/web.yaml", WEB)]);
    let topic = git.head().unwrap().peel_to_commit().unwrap();
    let author = git2::Signature::new("Eve", "e@example.com", &git2::Time::new(0, 0)).unwrap();
    let tree = topic.tree().unwrap();
    let subject = "Merge pull request #12 from topic";
    git.commit(Some("refs/heads/main"), &author, &author, subject, &tree, &[&base, &topic])
        .unwrap();
    git.set_head("refs/heads/main").unwrap();
    assert_eq!(
        blamed(&origin, &["apache"])["classes.apache"],
        format!("{subject} groups/web.yaml:5")
    );

    let clone = tempfile::tempdir().unwrap();
    let target = clone.path().join("clone");
    let (from, to) = (format!("file://{}", origin.text_path()), target.to_str().unwrap());
    let done = std::process::Command::new("git")
        .args(["clone", "-q", "--depth", "1", &from, to])
        .status()
        .unwrap();
    assert!(done.success());
    let done = run(&["blame", "web1", "environment", "--repo", to]);
    assert_eq!((done.status, done.stderr.as_str()), (0, NO_FACTS));
    assert!(done.stdout.starts_with('^'), "{}", done.stdout);
}

#[test]
fn the_pull_request_stands_beside_the_commit() {
    let repository = GitRepository::new();
    repository.commit("base", &[("groups/base.yaml", BASE)]);
    repository.commit("Add the web servers (#12)", &[("groups/web.yaml", WEB)]);
    let moved = WEB.replace("80", "8080");
    let message = "Merge branch 'port' into 'main'\n\nSee merge request ops/groups!13\n";
    repository.commit(message, &[("groups/web.yaml", &moved)]);
    let path = repository.text_path();
    let facts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(facts.path(), json!({"os": {"family": "Debian"}}).to_string()).unwrap();
    let facts = facts.path().to_str().unwrap();
    let blame = |more: &[&str]| {
        let done = run(&[&["blame", "web1", "--repo", &path, "--facts", facts], more].concat());
        assert_eq!((done.status, done.stderr.as_str()), (0, ""));
        done.stdout
    };
    let pull_requests = || -> Vec<Value> {
        let values: Value = serde_json::from_str(&blame(&["--format", "json"])).unwrap();
        let of = |key: &str| {
            let value = values.as_array().unwrap().iter().find(|it| it["key"] == key).unwrap();
            value["commit"].get("pull_request").cloned().unwrap_or(json!("absent"))
        };
        ["classes.base", "classes.apache", "classes.apache.port"].map(of).to_vec()
    };
    assert_eq!(pull_requests(), [json!("absent"), json!({"number": 12}), json!({"number": 13})]);
    let lines = blame(&["apache"]);
    let places: Vec<&str> = lines.lines().map(|it| it.split(" ago  ").nth(1).unwrap()).collect();
    assert_eq!(
        places,
        [
            "#13 groups/web.yaml:6 (Web)  classes.apache.port = 8080",
            "#12 groups/web.yaml:5 (Web)  classes.apache"
        ]
    );
    // A password in the address stays there.
    repository.git().remote("origin", "https://ci:secret@git.corp/ops/groups.git").unwrap();
    let url = "https://git.corp/ops/groups/-/merge_requests/13";
    assert_eq!(
        pull_requests(),
        [json!("absent"), json!({"number": 12}), json!({"number": 13, "url": url})]
    );
    repository.git().remote_set_url("origin", "git@github.com:ops/groups.git").unwrap();
    let url = "https://github.com/ops/groups/pull/12";
    assert_eq!(pull_requests()[1], json!({"number": 12, "url": url}));
}

#[test]
fn a_change_of_the_layout_is_followed() {
    let repository = GitRepository::new();
    let port = |port: u16| WEB.replace("parent: Base\n", "").replace("80", &port.to_string());
    repository.commit("one", &[("groups/web.yaml", &port(80))]);
    repository.commit("two", &[("groups/web.yaml", &port(81))]);
    let moved = port(81).replace("front", "back");
    repository.commit(
        "three",
        &[("clade.yaml", "groups: g\n"), ("g/web.yaml", &moved), ("groups/web.yaml", "")],
    );
    repository.commit("four", &[("README.md", "four\n")]);
    let found = blamed(&repository, &[]);
    assert_eq!(found["classes.apache.port"], "two g/web.yaml:5");
    assert_eq!(found["variables.tier"], "three g/web.yaml:7");
    assert_eq!(found["classes.apache"], "one g/web.yaml:4");
}

#[test]
fn a_daemon_blames_as_the_repository_does() {
    let repository = GitRepository::new();
    let first = repository.commit("one", &[("estate/groups/base.yaml", BASE)]);
    let second = repository.commit("two", &[("estate/groups/web.yaml", WEB)]);
    // The slash at the end is what completion of a shell leaves.
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--path", "estate/"]);
    let facts = json!({"fact": {"os": {"family": "Debian"}}}).to_string();
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", &facts).status, 200);
    let path = "/controller/nodes/web1/blame";
    let all = daemon.get(path);
    assert_eq!((all.status, all.header("X-Clade-Commit")), (200, Some(second.as_str())));
    let of = |values: &Value, key: &str| {
        let value = values.as_array().unwrap().iter().find(|it| it["key"] == key).cloned();
        value.map(|it| (it["commit"]["subject"].clone(), it["file"].clone(), it["line"].clone()))
    };
    let values = all.json();
    assert_eq!(
        of(&values, "classes.apache.port"),
        Some((json!("two"), json!("groups/web.yaml"), json!(6)))
    );
    assert_eq!(of(&values, "classes.base").unwrap().0, "one");
    let one = daemon.get(&format!("{path}?key=apache::port")).json();
    assert_eq!(one.as_array().unwrap().len(), 1);
    let before = daemon.get(&format!("{path}?commit={first}"));
    assert_eq!(before.header("X-Clade-Commit"), Some(first.as_str()));
    assert_eq!(of(&before.json(), "classes.apache"), None);
    let error = |path: &str| {
        let answer = daemon.get(path);
        (answer.status, answer.json()["kind"].clone(), answer.json()["details"].clone())
    };
    assert_eq!(error(&format!("{path}?key=nope")), (404, json!("not-found"), json!(path)));
    let nowhere = "/controller/nodes/nowhere/blame";
    assert_eq!(error(nowhere), (404, json!("not-found"), json!(nowhere)));
    let url = format!("http://{}", daemon.address);
    let done = run(&["blame", "web1", "apache::port", "--server", &url]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(
        done.stdout.ends_with("groups/web.yaml:6 (Web)  classes.apache.port = 80\n"),
        "{}",
        done.stdout
    );
    let done = run(&["blame", "nowhere", "--server", &url]);
    assert_eq!((done.status, done.stdout.as_str()), (2, ""));
    assert!(!done.stderr.contains("--admin-listen"), "{}", done.stderr);
}

#[test]
fn a_daemon_says_conflicts_as_findings() {
    let repository = GitRepository::new();
    let group =
        |name: &str| format!("name: {name}\nrule: name ~ web\nclasses: {{a: {{v: {name}}}}}\n");
    repository.commit("a", &[("groups/a.yaml", &group("A")), ("groups/b.yaml", &group("B"))]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", "{}").status, 500);
    assert_eq!(daemon.get("/controller/nodes/web1/blame").status, 500);
    let url = format!("http://{}", daemon.address);
    let done = run(&["blame", "web1", "--server", &url]);
    assert_eq!((done.status, done.stdout.as_str()), (1, ""));
    assert!(done.stderr.contains("conflicting"), "{}", done.stderr);
}

#[test]
fn without_facts_people_are_told_that_rules_find_none() {
    let repository = GitRepository::new();
    repository.commit("other", &[("groups/other.yaml", OTHER)]);
    let path = repository.text_path();
    let said = |more: &[&str]| {
        let done = run(&[&["blame", "db1", "--repo", &path], more].concat());
        assert_eq!(done.status, 0, "{}", done.stderr);
        done.stderr
    };
    assert_eq!(said(&[]), "", "no rule reads facts");
    repository.commit("base", &[("groups/base.yaml", BASE)]);
    assert_eq!(said(&[]), NO_FACTS);
    assert_eq!(said(&["--format", "json"]), "");
    let facts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(facts.path(), "{}").unwrap();
    assert_eq!(said(&["--facts", facts.path().to_str().unwrap()]), "");
}

#[test]
fn a_key_in_the_place_of_the_node_or_misspelt_is_answered_with_what_was_meant() {
    let repository = GitRepository::new();
    let group = "name: Web\nrule: name = web1\nclasses: {apache: {port: 80}}\n";
    repository.commit("first", &[("groups/web.yaml", group)]);
    let run_here = |arguments: &[&str]| {
        let done = clade(arguments).current_dir(repository.path()).output().unwrap();
        crate::program::Done::from(done)
    };
    let done = run_here(&["blame", "apache::port"]);
    let said = "error: `apache::port` is not a certname: name the node before the key, as in `clade blame NODE apache::port`\n";
    assert_eq!((done.status, done.stderr.as_str()), (2, said));
    let done = run_here(&["blame", "web1", "apache::prot"]);
    assert!(done.stderr.contains("did you mean `apache::port`?"), "{}", done.stderr);
}
