//! Nodes that have checked in without facts, whose facts `PuppetDB` has: each answer says the same of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::inventory::{rows_of, start};
use crate::git::server::Server;
use crate::program::{Daemon, GitRepository, run};

const GROUPS: &str = "\
name: Proved
id: aaaaaaaa-0000-4000-8000-000000000001
rule: trusted.extensions.pp_role = web
---
name: Not proved
id: aaaaaaaa-0000-4000-8000-000000000002
rule: trusted.extensions.pp_role != web
---
name: Linux
id: aaaaaaaa-0000-4000-8000-000000000003
rule: kernel = Linux
variables: {version: 1}
";

/// A group repository with two commits, a daemon that has `nodes` of them, and the `PuppetDB` that it asks.
struct Site {
    repository: GitRepository,
    commits: [String; 2],
    daemon: Daemon,
    requests: Arc<AtomicUsize>,
    is_there: Arc<AtomicBool>,
    _puppetdb: Server,
}

impl Site {
    /// Has nodes check in with trusted data alone; those of `known` have these facts in `PuppetDB`, beside such trusted
    /// data.
    fn start(nodes: usize, known: usize, trusted: Value, options: &[&str]) -> Self {
        let repository = GitRepository::new();
        let base = repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
        let changed = GROUPS.replace("version: 1", "version: 2");
        let head = repository.commit("change", &[("groups/all.yaml", &changed)]);
        let requests = Arc::new(AtomicUsize::new(0));
        let is_there = Arc::new(AtomicBool::new(true));
        let names: BTreeSet<String> = (0..known).map(name).collect();
        let (puppetdb, url) = start(Box::new({
            let (requests, is_there) = (Arc::clone(&requests), Arc::clone(&is_there));
            move |query| {
                requests.fetch_add(1, Ordering::SeqCst);
                if !is_there.load(Ordering::SeqCst) {
                    return vec![json!("broken")];
                }
                let row = |name: &str| json!({"certname": name, "facts": {"kernel": "Linux"}, "trusted": trusted});
                rows_of(&names, query, &row)
            }
        }));
        let path = repository.text_path();
        let arguments = [&["--repo", &path, "--puppetdb", &url], options].concat();
        let daemon = Daemon::start(&arguments);
        for name in (0..nodes).map(name) {
            let body = json!({"trusted": {"extensions": {"pp_role": "web"}}}).to_string();
            daemon.request("POST", &format!("/v1/classified/nodes/{name}"), &body);
        }
        daemon.wait_until("all are stored", |it| {
            it.get("/v1/nodes?limit=1000").json().as_array().unwrap().len() == nodes
        });
        Self { repository, commits: [base, head], daemon, requests, is_there, _puppetdb: puppetdb }
    }

    fn listed(&self) -> Vec<Value> {
        self.daemon.get("/v1/nodes?facts=true").json().as_array().unwrap().clone()
    }

    /// Compares the working tree with a commit, or the two commits.
    fn diff(&self, heads: &[&str]) -> (i32, Value, String) {
        let path = self.repository.text_path();
        let base = self.commits[0].as_str();
        let server = format!("http://{}", self.daemon.address());
        let options = ["--repo", &path, "--server", &server, "--format", "json", "--exit-code"];
        let done = run(&[&["diff", base], heads, &options].concat());
        let json: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
        (done.status, json["summary"].clone(), done.stderr)
    }
}

fn name(number: usize) -> String {
    format!("n{number:03}.example.com")
}

#[test]
fn each_answer_says_the_same_of_a_node_that_puppetdb_completes() {
    for trusted in [Value::Null, json!({}), json!({"certname": name(0)})] {
        let site = Site::start(1, 1, trusted.clone(), &[]);
        let variables = json!({"version": 2});
        let enc = site.daemon.get(&format!("/enc/{}", name(0))).body;
        assert!(enc.contains("\"version\": 2"), "{trusted}: {enc}");
        for node in
            [&site.listed()[0], &site.daemon.get(&format!("/v1/nodes/{}?facts=1", name(0))).json()]
        {
            assert_eq!(node["fact"], json!({"kernel": "Linux"}), "{trusted}");
            assert_eq!(node["trusted"]["extensions"]["pp_role"], "web", "{trusted}");
            let entry = &node["check_ins"][0];
            assert_eq!(entry["classification"]["variables"], variables, "{trusted}");
            assert_eq!(entry["explanation"].as_object().unwrap().len(), 3, "{trusted}: {entry}");
        }
        let has = |number: usize| {
            let path = format!("/v1/groups/aaaaaaaa-0000-4000-8000-{number:012}/nodes");
            site.daemon.get(&path).json()["nodes"] == json!([name(0)])
        };
        assert_eq!([1, 2, 3].map(has), [true, false, true], "{trusted}");
        let both = site.diff(&[&site.commits[1]]);
        let tree = site.diff(&[]);
        assert_eq!((both.0, &both.1["changed"]), (1, &json!(1)), "{trusted}: {both:?}");
        assert_eq!((tree.0, &tree.1["changed"]), (1, &json!(1)), "{trusted}: {tree:?}");
        let note = "note: the nodes of the daemon are fetched and compared here: it knows commits, and not a working tree";
        assert!(tree.2.contains(note) && !both.2.contains("note"), "{}", tree.2);
    }
}

#[test]
fn a_list_of_nodes_asks_puppetdb_for_many_at_once() {
    let site = Site::start(150, 100, json!({}), &[]);
    site.requests.store(0, Ordering::SeqCst);
    let listed = site.listed();
    let asked = site.requests.load(Ordering::SeqCst);
    assert!(asked <= 4, "{asked} requests");
    for (number, node) in listed.iter().enumerate() {
        let expected = if number < 100 { json!({"kernel": "Linux"}) } else { json!({}) };
        assert_eq!((&node["name"], &node["fact"]), (&json!(name(number)), &expected));
    }
    assert_eq!(listed.len(), 150);
    let (_, tree, _) = site.diff(&[]);
    assert_eq!((&tree["nodes"], &tree["changed"]), (&json!(150), &json!(100)));
}

#[test]
fn a_node_whose_facts_are_unknown_is_compared_as_no_other() {
    let site = Site::start(80, 80, json!({}), &[]);
    site.is_there.store(false, Ordering::SeqCst);
    site.requests.store(0, Ordering::SeqCst);
    let listed = site.listed();
    let asked = site.requests.load(Ordering::SeqCst);
    // One that fails is asked for the first few alone, to find out which cannot be read, and not again.
    assert!(listed.len() == 80 && asked <= 120, "{asked} requests");
    for node in &listed {
        let entry = &node["check_ins"][0];
        assert_eq!(entry["error"]["kind"], "puppetdb-unreachable", "{node}");
        assert!(node.get("fact").is_none() && entry.get("classification").is_none(), "{node}");
    }
    let (status, _, stderr) = site.diff(&[]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains(&format!("what the node `{}` has: PuppetDB", name(79))), "{stderr}");
}

#[test]
fn facts_that_are_required_are_missed_by_each_comparison() {
    let site = Site::start(3, 2, json!({}), &["--enc-facts", "required"]);
    let said = Mutex::new(BTreeSet::new());
    for heads in [vec![], vec![site.commits[1].as_str()]] {
        let (status, diff, stderr) = site.diff(&heads);
        assert_eq!((status, &diff["changed"]), (2, &json!(2)), "{stderr}");
        let demand = "has checked in without facts, which `--enc-facts required` demands";
        assert!(stderr.contains(demand), "{stderr}");
        said.lock().unwrap().insert(diff["nodes"].to_string());
    }
    assert_eq!(said.lock().unwrap().len(), 1, "as many nodes either way");
}

#[test]
fn the_inventory_may_repeat_a_node_or_have_none_of_its_facts() {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let (_server, url) = start(Box::new(|query| {
        let node = |name: &str, facts: Value| json!({"certname": name, "facts": facts});
        let all = [
            node("bare", Value::Null),
            node("n1", json!({"kernel": "Linux"})),
            node("n1", json!({"kernel": "x"})),
        ];
        match query["query"][0].as_str() {
            Some("extract") => all.map(|it| json!({"certname": it["certname"]})).to_vec(),
            Some("=") => all.into_iter().filter(|it| it["certname"] == query["query"][2]).collect(),
            _ => all.to_vec(),
        }
    }));
    let path = repository.text_path();
    let done = run(&["query", "kernel = Linux", "--puppetdb", &url]);
    assert!(done.stdout.contains("1 of 2 nodes"), "{} {}", done.stdout, done.stderr);
    let daemon = Daemon::start(&["--repo", &path, "--puppetdb", &url]);
    // `/enc` classifies the node that has no facts there by its name alone.
    let linux = daemon.get("/v1/groups/aaaaaaaa-0000-4000-8000-000000000003/nodes").json();
    assert_eq!(linux["nodes"], json!(["n1"]));
    let not_proved = daemon.get("/v1/groups/aaaaaaaa-0000-4000-8000-000000000002/nodes").json();
    assert_eq!(not_proved["nodes"], json!(["bare", "n1"]));
}

/// A stub that has five nodes, of which it answers with what `facts` says of each.
fn five(facts: impl Fn(&str) -> Value + Send + Sync + 'static) -> (Server, String) {
    start(Box::new(move |query| {
        let names: BTreeSet<String> = (0..5).map(name).collect();
        let row = |name: &str| json!({"certname": name, "facts": facts(name)});
        rows_of(&names, query, &row)
    }))
}

/// Starts a daemon at which the five nodes have checked in without facts.
fn daemon_of_five(repository: &GitRepository, options: &[&str]) -> Daemon {
    let path = repository.text_path();
    let daemon = Daemon::start(&[&["--repo", &path], options].concat());
    for name in (0..5).map(name) {
        daemon.request("POST", &format!("/v1/classified/nodes/{name}"), r#"{"trusted": {}}"#);
    }
    daemon
        .wait_until("all are stored", |it| it.get("/controller/nodes").json()["total"] == json!(5));
    daemon
}

#[test]
fn a_node_that_cannot_be_read_keeps_no_other_from_being_listed_or_compared() {
    let repository = GitRepository::new();
    let base = repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let changed = GROUPS.replace("version: 1", "version: 2");
    let head = repository.commit("change", &[("groups/all.yaml", &changed)]);
    // Made once: a PuppetDB that answers late is another thing.
    let too_many: Value = (0..260_000).map(|_| json!(0)).collect();
    let too_many = json!({"list": too_many});
    let (_server, url) = five(move |it| match it == name(1) {
        true => too_many.clone(),
        false => json!({"kernel": "Linux"}),
    });
    let daemon = daemon_of_five(&repository, &["--puppetdb", &url]);
    for (number, node) in
        daemon.get("/v1/nodes?facts=1").json().as_array().unwrap().iter().enumerate()
    {
        let kind = (number == 1).then_some("puppetdb-unreachable");
        assert_eq!(node["check_ins"][0]["error"]["kind"], json!(kind), "{node}");
        assert_eq!(node["fact"] == json!({"kernel": "Linux"}), number != 1, "{node}");
    }
    let diff = daemon.get(&format!("/controller/diff/{base}/{head}")).json();
    assert_eq!(diff["summary"]["changed"], 4, "{diff}");
    let unreadable = diff["unreadable"].to_string();
    assert!(unreadable.contains(&name(1)) && !unreadable.contains(&name(2)), "{unreadable}");
    let path = repository.text_path();
    let server = format!("http://{}", daemon.address());
    let here = run(&["diff", &base, "--repo", &path, "--server", &server, "--format", "json"]);
    let here: Value = serde_json::from_str(&here.stdout).unwrap_or_default();
    assert_eq!(here["summary"]["changed"], 4);
}

#[test]
fn a_puppetdb_that_hangs_holds_no_list_up_for_long() {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let (_server, url) = five(|_| {
        std::thread::sleep(std::time::Duration::from_secs(40));
        Value::Null
    });
    let daemon = daemon_of_five(&repository, &["--puppetdb", &url]);
    let body = json!({"fact": {"kernel": "Linux"}}).to_string();
    daemon.request("POST", "/v1/classified/nodes/z", &body);
    let asked = std::time::Instant::now();
    let one = daemon.get(&format!("/v1/nodes/{}", name(0))).json();
    let alone = asked.elapsed();
    let asked = std::time::Instant::now();
    let all = daemon.get("/v1/nodes").json();
    let together = asked.elapsed();
    assert_eq!(one["check_ins"][0]["error"]["kind"], "puppetdb-unreachable", "{one}");
    assert_eq!(all.as_array().unwrap().len(), 6);
    for (node, number) in all.as_array().unwrap().iter().zip(0..) {
        let is_unknown = node["check_ins"][0]["error"]["kind"] == "puppetdb-unreachable";
        assert_eq!(is_unknown, number < 5, "{node}");
    }
    assert!(alone.as_secs() < 10 && together.as_secs() < 25, "{alone:?} and {together:?}");
}

#[test]
fn files_of_facts_are_listed_one_at_a_time() {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let directory = tempfile::tempdir().unwrap();
    for number in [0, 1, 3] {
        let path = directory.path().join(format!("{}.json", name(number)));
        std::fs::write(path, if number == 1 { "{" } else { r#"{"kernel": "Linux"}"# }).unwrap();
    }
    let daemon = daemon_of_five(&repository, &["--facts-dir", directory.path().to_str().unwrap()]);
    let listed = daemon.get("/v1/nodes?facts=1").json();
    let shown = |it: &Value| (it["fact"].clone(), it["check_ins"][0]["error"]["kind"].clone());
    let linux = || (json!({"kernel": "Linux"}), Value::Null);
    let bare = || (json!({}), Value::Null);
    let shown: Vec<(Value, Value)> = listed.as_array().unwrap().iter().map(shown).collect();
    let broken = (Value::Null, json!("application-error"));
    assert_eq!(shown, [linux(), broken, bare(), linux(), bare()]);
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_once() {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let requests = Arc::new(AtomicUsize::new(0));
    let server = Server::http({
        let requests = Arc::clone(&requests);
        move |_| {
            requests.fetch_add(1, Ordering::SeqCst);
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n[".to_vec()
        }
    });
    let url = format!("http://127.0.0.1:{}", server.port);
    let daemon = daemon_of_five(&repository, &["--puppetdb", &url]);
    requests.store(0, Ordering::SeqCst);
    for node in daemon.get("/v1/nodes").json().as_array().unwrap() {
        assert_eq!(node["check_ins"][0]["error"]["kind"], "puppetdb-unreachable", "{node}");
    }
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

#[test]
fn a_file_without_facts_counts_before_puppetdb() {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(format!("{}.json", name(0))), "{}").unwrap();
    let (_server, url) = five(|_| json!({"kernel": "Linux"}));
    let path = directory.path().to_str().unwrap();
    let daemon = daemon_of_five(&repository, &["--puppetdb", &url, "--facts-dir", path]);
    let all = daemon.get("/v1/nodes?facts=1").json();
    let alone = |number: usize| daemon.get(&format!("/v1/nodes/{}?facts=1", name(number))).json();
    for (number, facts) in [(0, json!({})), (1, json!({"kernel": "Linux"}))] {
        let enc = daemon.get(&format!("/enc/{}", name(number))).body;
        assert_eq!(enc.contains("version"), number == 1, "{enc}");
        assert_eq!((&all[number]["fact"], &alone(number)["fact"]), (&facts, &facts));
    }
    let linux = daemon.get("/v1/groups/aaaaaaaa-0000-4000-8000-000000000003/nodes").json();
    assert_eq!(linux["nodes"], json!([name(1), name(2), name(3), name(4)]));
}
