//! What each value of `--store-facts` means for every route that reads stored facts.

use serde_json::{Value, json};

use super::{commit, repository};
use crate::program::Daemon;
use crate::table::each_row;

const RULES: [&str; 3] = ["os.family = Debian", "trusted.extensions.pp_role = web", "name ~ web"];

fn body() -> String {
    json!({
        "fact": {"os": {"family": "Debian", "name": "Debian"}, "kernel": "Linux"},
        "trusted": {"certname": "web1", "extensions": {"pp_role": "web", "pp_zone": "z"}},
    })
    .to_string()
}

/// Returns the classes in an answer, or its status and the path that is not stored.
fn classes(daemon: &Daemon, path: &str) -> String {
    let answer = daemon.get(path);
    let json: Value = if path.starts_with("/enc") && answer.status == 200 {
        serde_json::from_str(&answer.body).unwrap()
    } else {
        answer.json()
    };
    if answer.status != 200 {
        let path = json["details"]["path"].as_str().unwrap_or_default();
        return format!("{} {} {path}", answer.status, json["kind"].as_str().unwrap());
    }
    let classes = &json["classes"];
    let classes =
        if classes.is_null() { &json["final_classification"]["classes"] } else { classes };
    let classes = if classes.is_null() {
        &json["check_ins"][0]["classification"]["classes"]
    } else {
        classes
    };
    classes
        .as_object()
        .map_or("none".to_owned(), |it| it.keys().map(String::as_str).collect::<Vec<_>>().join(" "))
}

#[test]
fn each_route_answers_from_stored_facts_or_says_that_they_are_not_stored() {
    let routes = ["/enc/web1", "/v1/classified/nodes/web1/explanation", "/v1/nodes/web1"];
    let rows = [
        ("all", ["c0 c1 c2"; 3], ["c0 c1 c2", "c0 c1 c2", "c0 c1 c2"]),
        (
            "mentioned",
            ["c0 c1 c2"; 3],
            // The next commit reads another fact, which is not stored.
            ["500 rule-evaluation-error kernel", "500 rule-evaluation-error kernel", "none"],
        ),
        (
            "none",
            ["500 rule-evaluation-error os.family", "500 rule-evaluation-error os.family", "none"],
            ["500 rule-evaluation-error os.family", "500 rule-evaluation-error os.family", "none"],
        ),
    ];
    each_row(rows, |(value, at_once, later)| {
        let repository = repository(&RULES);
        let daemon = Daemon::start(&[
            "--repo",
            &repository.text_path(),
            "--store-facts",
            value,
            "--interval",
            "50ms",
        ]);
        let answer = daemon.request("POST", "/v1/classified/nodes/web1", &body());
        assert_eq!(answer.json()["classes"], json!({"c0": {}, "c1": {}, "c2": {}}));
        for (route, expected) in routes.into_iter().zip(at_once) {
            assert_eq!(classes(&daemon, route), expected, "{value} {route}");
        }
        let shown = daemon.get("/v1/nodes/web1?facts=true").json();
        let (fact, trusted) = match value {
            "all" => (
                json!({"os": {"family": "Debian", "name": "Debian"}, "kernel": "Linux"}),
                json!({"certname": "web1", "extensions": {"pp_role": "web", "pp_zone": "z"}}),
            ),
            "mentioned" => (
                json!({"os": {"family": "Debian"}, "[stored paths]": [["os", "family"]]}),
                json!({"extensions": {"pp_role": "web"}, "[stored paths]": [["extensions", "pp_role"]]}),
            ),
            _ => (json!({"[stored paths]": []}), json!({"[stored paths]": []})),
        };
        assert_eq!((&shown["fact"], &shown["trusted"]), (&fact, &trusted), "{value}");
        let group = daemon.get("/v1/groups").json();
        let group = group.as_array().unwrap().iter().find(|it| it["name"] == "g2").unwrap();
        let by_name = daemon.get(&format!("/v1/groups/{}/nodes", group["id"].as_str().unwrap()));
        assert_eq!(by_name.json()["nodes"], json!(["web1"]), "{value}: the name is always known");

        let next =
            commit(&repository, "another rule", &[RULES[0], RULES[1], RULES[2], "kernel = x"]);
        daemon.wait_until("the commit is live", |it| {
            it.get("/controller/status").json()["active"]["commit"] == next.as_str()
        });
        for (route, expected) in routes.into_iter().zip(later) {
            assert_eq!(classes(&daemon, route), expected, "{value} {route}");
        }
        // A node that asks is answered as ever, and known again.
        let answer = daemon.request("POST", "/v1/classified/nodes/web1", &body());
        assert_eq!(answer.json()["classes"], json!({"c0": {}, "c1": {}, "c2": {}}));
        if value == "mentioned" {
            assert_eq!(classes(&daemon, "/enc/web1"), "c0 c1 c2");
        }
    });
}

#[test]
fn what_is_not_stored_is_asked_of_the_facts_directory() {
    let repository = repository(&RULES);
    let facts = tempfile::tempdir().unwrap();
    std::fs::write(
        facts.path().join("web1.json"),
        "{\"name\": \"web1\", \"values\": {\"os\": {\"family\": \"Debian\"}}}",
    )
    .unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--store-facts",
        "none",
        "--facts-dir",
        facts.path().to_str().unwrap(),
    ]);
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", &body()).status, 200);
    // The file has the facts, but not the trusted data that the node has proved.
    assert_eq!(
        classes(&daemon, "/enc/web1"),
        "500 rule-evaluation-error trusted.extensions.pp_role"
    );
    let upload = json!({"name": "web2", "facts": {"os": {"family": "Debian"}}}).to_string();
    assert_eq!(daemon.request("POST", "/api/hosts/facts", &upload).status, 201);
    let kept = daemon.get("/v1/nodes/web2?facts=true").json();
    assert_eq!((&kept["fact"], &kept["trusted"]), (&json!({"[stored paths]": []}), &json!({})));
}

/// A request that brings one part of a node says nothing of the other.
#[test]
fn what_was_left_out_is_not_there_when_another_part_comes() {
    let repository = repository(&RULES);
    let stored = ["--store-facts", "mentioned", "--interval", "50ms"];
    let daemon = Daemon::start(&[&["--repo", &repository.text_path()], &stored[..]].concat());
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", &body()).status, 200);
    let reads = [RULES[0], "kernel = x", "trusted.extensions.pp_zone = z"];
    let next = commit(&repository, "other rules", &reads);
    daemon.wait_until("the commit is live", |it| {
        it.get("/controller/status").json()["active"]["commit"] == next.as_str()
    });
    let trusted = json!({"trusted": {"extensions": {"pp_zone": "z"}}}).to_string();
    let upload = json!({"name": "web1", "facts": {"kernel": "Linux"}}).to_string();
    let kernel = "500 rule-evaluation-error kernel";
    let zone = "500 rule-evaluation-error trusted.extensions.pp_zone";
    // The facts are those of the first commit, which did not read the kernel.
    for _ in 0..2 {
        assert_eq!(daemon.request("POST", "/enc/web1", &trusted).status, 500);
        assert_eq!(classes(&daemon, "/enc/web1"), kernel);
    }
    assert_eq!(daemon.request("POST", "/api/hosts/facts", &upload).status, 201);
    // Now all are known: the trusted data came before.
    assert_eq!(classes(&daemon, "/enc/web1"), "c2");
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web2", &body()).status, 200);
    let former = commit(&repository, "former rules", &RULES);
    daemon.wait_until("the commit is live", |it| {
        it.get("/controller/status").json()["active"]["commit"] == former.as_str()
    });
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web2", &body()).status, 200);
    let next = commit(&repository, "other rules again", &reads);
    daemon.wait_until("the commit is live", |it| {
        it.get("/controller/status").json()["active"]["commit"] == next.as_str()
    });
    let upload = upload.replace("web1", "web2");
    for _ in 0..2 {
        assert_eq!(daemon.request("POST", "/api/hosts/facts", &upload).status, 201);
        assert_eq!(classes(&daemon, "/enc/web2"), zone);
    }
}
