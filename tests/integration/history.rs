//! The history of nodes: what the daemon says of it, and that it is the log of the answers that it gave.

mod kept;
mod log;

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::git::server::Server;
use crate::hub::Hub;
use crate::program::{Daemon, GitRepository, run};

const WEB: &str = "name: Web\nrule: role = web\nclasses: {apache: {port: 80}}\n";
const DB: &str = "name: Db\nrule: role = db\nclasses: {postgresql: {}}\nenvironment: staging\n";

/// A daemon of two groups, whose nodes `web1`, `web2` and `db1` have checked in.
fn fleet() -> (GitRepository, Daemon, String) {
    fleet_with(&[])
}

fn fleet_with(more: &[&str]) -> (GitRepository, Daemon, String) {
    let repository = GitRepository::new();
    let commit = repository.commit("first", &[("groups/web.yaml", WEB), ("groups/db.yaml", DB)]);
    let daemon = Daemon::start(&[&["--repo", repository.text_path().as_str()], more].concat());
    daemon.wait_until("it answers", |it| it.get("/readyz").status == 200);
    for (name, role) in [("web1", "web"), ("web2", "web"), ("db1", "db")] {
        check_in(&daemon, name, role);
    }
    (repository, daemon, commit)
}

fn check_in(daemon: &Daemon, name: &str, role: &str) {
    let body = json!({"fact": {"role": role, "uptime": 7}, "transaction_uuid": "a1"});
    let path = format!("/v1/classified/nodes/{name}");
    assert_eq!(daemon.request("POST", &path, &body.to_string()).status, 200);
}

fn follow(daemon: &Daemon, commit: &str) {
    daemon.wait_until("the commit is live", |it| {
        it.get("/v1/groups").header("X-Clade-Commit") == Some(commit)
    });
}

/// Returns the names that a list of nodes has, and how many it says there are.
fn names(daemon: &Daemon, query: &str) -> (Vec<String>, u64) {
    let answer = daemon.get(&format!("/controller/nodes{query}"));
    assert_eq!(answer.status, 200, "{query}: {}", answer.body);
    let page = answer.json();
    let name = |it: &Value| it["name"].as_str().unwrap().to_owned();
    let names = page["nodes"].as_array().unwrap().iter().map(name).collect();
    (names, page["total"].as_u64().unwrap())
}

#[test]
fn an_empty_list_of_nodes_says_why_it_is_empty() {
    let repository = GitRepository::new();
    let group = WEB.replace("name: Web", "name: Webservers");
    repository.commit("first", &[("groups/web.yaml", &group)]);
    let daemon = Daemon::start(&["--repo", repository.text_path().as_str()]);
    daemon.wait_until("it answers", |it| it.get("/readyz").status == 200);
    let url = format!("http://{}", daemon.address);
    let said = |conditions: &[&str]| {
        let done = run(&[&["nodes", "--server", &url], conditions].concat());
        assert_eq!((done.status, &*done.stdout), (0, ""), "{conditions:?}: {}", done.stderr);
        done.stderr.lines().last().unwrap().to_owned()
    };
    for conditions in [&[][..], &["--group", "Web"]] {
        let said = said(conditions);
        assert!(said.starts_with("no node has checked in yet: a node checks in when "), "{said}");
    }
    check_in(&daemon, "db1", "db");
    let none = "the daemon knows no node that meets the conditions";
    for (conditions, help) in [
        (["--q", "web"], ""),
        (["--group", "Webservers"], ""),
        (["--class", "apache"], ""),
        (["--group", "Webserver"], ": there is no group `Webserver`; did you mean `Webservers`?"),
        (["--class", "apach"], ": no group has the class `apach`; did you mean `apache`?"),
        (["--class", "zzz"], ": no group has the class `zzz`"),
    ] {
        assert_eq!(said(&conditions), format!("{none}{help}"), "{conditions:?}");
    }
}

#[test]
fn nodes_are_listed_by_a_group_whose_name_reads_as_an_id() {
    let (repository, daemon, _) = fleet();
    let name = "33333333-1111-4111-8111-111111111111";
    let groups = format!(
        "name: {name}\nenvironment: staging\nrule: role = db\n---\nname: Kid\nparent: {name}\n"
    );
    let second = repository.commit("second", &[("groups/more.yaml", &groups)]);
    follow(&daemon, &second);
    check_in(&daemon, "db1", "db");
    assert_eq!(names(&daemon, &format!("?group={name}")).0, ["db1"]);
    let gone = "44444444-1111-4111-8111-111111111111";
    assert_eq!(names(&daemon, &format!("?group={gone}")).0, [""; 0]);
}

#[test]
fn nodes_are_listed_by_what_they_got() {
    let (repository, daemon, first) = fleet();
    let listed = daemon.get("/controller/nodes?q=B1").json();
    let groups = listed["nodes"][1]["groups"].as_array().unwrap();
    assert_eq!((listed["total"].as_u64(), groups.len()), (Some(2), 2), "{listed}");
    let web = &listed["nodes"][1];
    assert_eq!(web["name"], "web1");
    assert_eq!(web["commit"], first);
    assert_eq!((&web["environment"], &web["state"]), (&json!("production"), &json!("classified")));
    assert_eq!(web["since"], web["last_seen"]);
    let id = groups.iter().find(|it| it["name"] == "Web").unwrap()["id"].as_str().unwrap();

    let second = repository.commit("second", &[("groups/web.yaml", &WEB.replace("80", "8080"))]);
    follow(&daemon, &second);
    check_in(&daemon, "web2", "web");
    let list = |query: &str| names(&daemon, query).0.join(" ");
    for (query, expected) in [
        ("", "db1 web1 web2"),
        ("?q=web", "web1 web2"),
        ("?q=%25", ""),
        ("?group=Web", "web1 web2"),
        (&format!("?group={id}"), "web1 web2"),
        ("?group=Nowhere", ""),
        ("?class=apache", "web1 web2"),
        ("?class=apach", ""),
        ("?environment=staging", "db1"),
        (&format!("?commit={second}"), "web2"),
        (&format!("?commit={}", &first[..12]), "db1 web1"),
        ("?commit=0123456789abcdef0123456789abcdef01234567", ""),
        ("?state=classified&class=apache&q=2", "web2"),
        ("?state=conflict", ""),
        ("?silent_for=2h", ""),
        ("?silent_for=0s", "db1 web1 web2"),
        ("?q=%27%3B%20DROP%20TABLE%20nodes%3B--", ""),
        ("?limit=1&offset=1", "web1"),
        ("?limit=0", ""),
        ("?limit=100000", "db1 web1 web2"),
        ("?offset=7", ""),
    ] {
        assert_eq!(list(query), expected, "{query}");
    }
    assert_eq!(names(&daemon, "?limit=1&q=web").1, 2);
    for (query, kind) in [
        ("?silent_for=soon", "schema-violation"),
        ("?state=lost", "schema-violation"),
        ("?class=Apache", "schema-violation"),
        ("?environment=a-b", "schema-violation"),
        ("?limit=x", "malformed-number"),
        ("?commit=nope", "unknown-commit"),
    ] {
        assert_eq!(
            daemon.get(&format!("/controller/nodes{query}")).json()["kind"],
            kind,
            "{query}"
        );
    }
    let url = format!("http://{}", daemon.address);
    let done = run(&["nodes", "--class", "apache", "--silent-for", "0s", "--server", &url]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let lines: Vec<Vec<&str>> =
        done.stdout.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..3], ["NODE", "STATE", "SEEN"]);
    assert_eq!((lines[1][0], lines[2][0], lines.len()), ("web1", "web2", 3), "{}", done.stdout);
    let done = run(&["nodes", "--format", "json", "--server", &url]);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&document["total"], document["nodes"].as_array().unwrap().len()), (&json!(3), 3));
}

#[test]
fn a_node_shows_what_it_is_and_what_it_got_and_how_that_changed() {
    let (repository, daemon, first) = fleet();
    let second =
        repository.commit("Serve on 8080", &[("groups/web.yaml", &WEB.replace("80", "8080"))]);
    follow(&daemon, &second);
    check_in(&daemon, "web1", "web");
    check_in(&daemon, "web1", "db");
    check_in(&daemon, "web1", "db");
    let node = daemon.get("/controller/nodes/web1").json();
    assert_eq!(
        (&node["facts"], &node["commit"]),
        (&json!({"role": "db", "uptime": 7}), &json!(second))
    );
    assert_eq!(node["transaction_uuid"], "a1");
    let answer = &node["answer"];
    assert_eq!(answer["classes"], json!({"postgresql": {}}));
    assert_eq!(
        (&answer["state"], &answer["environment"]),
        (&json!("classified"), &json!("staging"))
    );

    let history = daemon.get("/controller/nodes/web1/history").json();
    let changes = history.as_array().unwrap();
    let causes: Vec<&Value> = changes.iter().map(|it| &it["cause"]).collect();
    assert_eq!(causes, ["facts", "commit", "first"]);
    assert_eq!(node["since"], changes[0]["time"]);
    assert_eq!(changes[0]["facts"], json!([{"path": "role", "before": "web", "after": "db"}]));
    let commit = &changes[1]["commit"];
    assert_eq!((&commit["id"], &commit["author"]), (&json!(second), &json!("Ada")));
    assert_eq!(
        (&commit["subject"], &changes[1]["commit_before"]),
        (&json!("Serve on 8080"), &json!(first))
    );
    let port = &changes[1]["changes"][0];
    assert_eq!((&port["before"], &port["after"]), (&json!(80), &json!(8080)));
    assert_eq!(
        (&port["key"], &port["because"]["name"]),
        (&json!("classes.apache.port"), &json!("Web"))
    );
    assert_eq!(changes[1]["changes"].as_array().unwrap().len(), 1);
    assert_eq!(changes[2]["commit_before"], Value::Null);

    // A page begins where the one before ended.
    let before = changes[0]["time"].as_str().unwrap();
    let page = |query: &str| daemon.get(&format!("/controller/nodes/web1/history{query}")).json();
    assert_eq!(page("?limit=1"), json!([changes[0]]));
    assert_eq!(page(&format!("?limit=1&before={before}")), json!([changes[1]]));
    assert_eq!(page("?before=2001-01-01T00:00:00Z"), json!([]));
    assert_eq!(page("?before=x")["kind"], "malformed-request");

    let url = format!("http://{}", daemon.address);
    let done = run(&["history", "web1", "--limit", "2", "--server", &url]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(
        done.stdout.contains("    ~ classes.apache.port: 80 -> 8080 (Web)\n"),
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains("      fact role: \"web\" -> \"db\"\n"), "{}", done.stdout);
    let done = run(&["history", "web1", "--format", "json", "--server", &url]);
    assert_eq!(serde_json::from_str::<Value>(&done.stdout).unwrap(), history);
    let done = run(&["history", "nowhere", "--server", &url]);
    assert_eq!((done.status, done.stdout.as_str()), (2, ""));
}

#[test]
fn a_forgotten_node_is_unknown_until_it_comes_back() {
    let data = tempfile::tempdir().unwrap();
    let (_repository, daemon, _) = fleet_with(&["--data-dir", data.path().to_str().unwrap()]);
    for path in ["/controller/nodes/nowhere", "/controller/nodes/nowhere/history"] {
        let answer = daemon.get(path);
        assert_eq!((answer.status, answer.json()["details"].as_str()), (404, Some(path)));
    }
    let delete =
        |name: &str| daemon.request("DELETE", &format!("/controller/nodes/{name}"), "").status;
    assert_eq!((delete("web1"), delete("web1"), delete("nowhere")), (204, 404, 404));
    let journal = std::fs::read_to_string(data.path().join("journal")).unwrap();
    let forgotten =
        journal.lines().filter(|it| it.contains(r#""event":"node-forgotten","node":"web1""#));
    assert_eq!(forgotten.count(), 1, "{journal}");
    assert_eq!(daemon.get("/controller/nodes/web1").status, 404);
    assert_eq!(daemon.get("/controller/nodes/web1/history").status, 404);
    assert_eq!(daemon.get("/v1/nodes/web1").status, 404);
    assert_eq!(names(&daemon, "").0, ["db1", "web2"]);
    check_in(&daemon, "web1", "web");
    let history = daemon.get("/controller/nodes/web1/history").json();
    assert_eq!((history.as_array().unwrap().len(), &history[0]["cause"]), (1, &json!("first")));
}

#[test]
fn names_of_any_script_and_length_are_names() {
    let (_repository, daemon, _) = fleet();
    let long = "x".repeat(1000);
    for (name, encoded) in [
        ("ノード1", "%E3%83%8E%E3%83%BC%E3%83%891"),
        ("'; DROP TABLE nodes; --", "%27%3B%20DROP%20TABLE%20nodes%3B%20--"),
        (&long, &long),
    ] {
        check_in(&daemon, encoded, "web");
        let node = daemon.get(&format!("/controller/nodes/{encoded}"));
        assert_eq!((node.status, node.json()["name"].as_str()), (200, Some(name)));
        assert_eq!(names(&daemon, &format!("?q={encoded}")), (vec![name.to_owned()], 1));
        let history = daemon.get(&format!("/controller/nodes/{encoded}/history")).json();
        assert_eq!(history.as_array().unwrap().len(), 1);
        let path = format!("/controller/nodes/{encoded}");
        assert_eq!(daemon.request("DELETE", &path, "").status, 204);
    }
    assert_eq!(names(&daemon, "").1, 3);
}

/// What a thread of a daemon is called, and how nice it is.
#[cfg(target_os = "linux")]
fn threads(daemon: &Daemon) -> Vec<(String, i64)> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap();
    let stat = |it: std::fs::DirEntry| std::fs::read_to_string(it.path().join("stat")).ok();
    // A thread may have ended meanwhile. The name is in parentheses, and niceness the 19th field.
    let of = |stat: String| {
        let (start, rest) = stat.rsplit_once(") ").unwrap();
        let name = start.split_once('(').unwrap().1.to_owned();
        (name, rest.split(' ').nth(16).unwrap().parse().unwrap())
    };
    tasks.flatten().filter_map(stat).map(of).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn what_writes_nodes_yields_to_what_answers() {
    let data = tempfile::tempdir().unwrap();
    let (_repository, daemon, _) = fleet_with(&["--data-dir", data.path().to_str().unwrap()]);
    assert_eq!(names(&daemon, "").1, 3);
    assert_eq!(daemon.request_with("GET", "/nodes", "Accept: text/html\r\n", "").status, 200);
    // A thread is named, and yields, only once it runs.
    let is_settled = |threads: &[(String, i64)]| {
        let of = |prefix: &str, yields: bool| {
            let is_one = |it: &&(String, i64)| it.0.starts_with(prefix) && (it.1 == 10) == yields;
            threads.iter().filter(is_one).count()
        };
        let all_yield =
            |prefix: &str, least: usize| of(prefix, true) >= least && of(prefix, false) == 0;
        all_yield("people", 2) && all_yield("check-ins", 1) && of("sqlx-sqlite", true) >= 3
    };
    daemon.wait_until("the threads yield", |it| is_settled(&threads(it)));
    let threads = threads(&daemon);
    let of = |prefix: &str, niceness: i64| {
        threads.iter().filter(|it| it.0.starts_with(prefix) && it.1 == niceness).count()
    };
    // Three connections read for agents. One writes and two read for pages; one more examines the file until it has.
    assert_eq!(of("sqlx-sqlite", 0), 3, "{threads:?}");
    assert!((3..=4).contains(&of("sqlx-sqlite", 10)), "{threads:?}");
    assert!(of("people", 10) >= 2, "{threads:?}");
    assert_eq!(of("people", 0), 0, "{threads:?}");
    assert_eq!([10, 0].map(|it| of("check-ins", it)), [1, 0], "{threads:?}");
    assert_eq!([10, 0].map(|it| of("store", it)), [0, 1], "{threads:?}");
    assert_eq!(of("tokio", 10), 0, "{threads:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_writes_groups_and_keeps_the_mirror_yields_too() {
    let hub = Hub::new(&[("groups/web.yaml", WEB)]);
    let remote = format!("file://{}", hub.text_path());
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let daemon = Daemon::start(&["--repo", &remote, "--data-dir", data, "--writes", "commit"]);
    daemon.wait_until("it answers", |it| it.get("/readyz").status == 200);
    let group =
        json!({"name": "New", "parent": "00000000-0000-4000-8000-000000000000", "classes": {}});
    assert_eq!(daemon.request("POST", "/v1/groups", &group.to_string()).status, 303);
    for name in ["writer", "repacker", "other-refs"] {
        // A thread is named, and yields, only once it runs.
        daemon.wait_until(&format!("{name} yields"), |it| {
            let threads = threads(it);
            threads.iter().filter(|it| it.0 == name).map(|it| it.1).eq([10])
        });
    }
}

#[test]
fn no_node_is_left_out_of_the_list_when_another_goes_away_between_two_pages() {
    let names: Vec<String> = (0..1500).map(|it| format!("n{it:04}")).collect();
    let nodes = Mutex::new(names.clone());
    let server = Server::http(move |request| {
        let offset = request.target.split_once("offset=").unwrap().1.parse().unwrap();
        let mut nodes = nodes.lock().unwrap();
        let page: Vec<Value> = nodes
            .iter()
            .skip(offset)
            .take(1000)
            .map(|name| {
                json!({
                    "name": name, "last_seen": "2026-11-27T05:00:00Z", "commit": null,
                    "environment": null, "groups": [], "state": null, "since": null,
                })
            })
            .collect();
        let body = json!({"total": nodes.len(), "nodes": page}).to_string();
        nodes.remove(0);
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
            .into()
    });
    let url = format!("http://127.0.0.1:{}", server.port);
    let done = run(&["nodes", "--format", "json", "--server", &url]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    let listed: Vec<&str> = document["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(listed, names);
}
