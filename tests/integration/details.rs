//! Small things that clients of Puppet Enterprise read in answers.

use serde_json::{Value, json};

use crate::hub::Hub;
use crate::program::{Daemon, GitRepository};
use crate::table::each_row;

const ROOT_ID: &str = "00000000-0000-4000-8000-000000000000";
const WEB_ID: &str = "58463036-0efa-4365-b367-b5401c0711d3";
const GONE_ID: &str = "bbbbbbbb-0000-4000-8000-000000000001";

fn web(rest: &str) -> String {
    format!("name: Web\nid: {WEB_ID}\nrule: trusted.extensions.pp_role = web\n{rest}")
}

fn repository() -> GitRepository {
    let repository = GitRepository::new();
    let other = "name: Other\nrule: name ~ conflict\nclasses: {apache: {port: 81}}\n";
    let one = "name: One\nrule: name ~ conflict\nclasses: {apache: {port: 82}}\n";
    repository.commit(
        "first",
        &[
            ("groups/web.yaml", &web("classes: {apache: {port: 80}}\n")),
            ("groups/other.yaml", other),
            ("groups/one.yaml", one),
        ],
    );
    repository
}

#[test]
fn details_of_not_found_are_the_requested_path() {
    let hub = Hub::new(&[("groups/web.yaml", &web(""))]);
    let daemon = hub.serve(&[]);
    let group = json!({"name": "N", "parent": ROOT_ID, "classes": {}}).to_string();
    let of_group = |rest: &str| format!("/v1/groups/{GONE_ID}{rest}");
    for prefix in ["", "/classifier-api"] {
        let rows = [
            ("GET", "/v1/nope".to_owned(), ""),
            ("GET", of_group(""), ""),
            ("GET", of_group("/rules"), ""),
            ("GET", of_group("/nodes"), ""),
            ("GET", format!("/v1/group-children/{GONE_ID}"), ""),
            ("GET", "/v1/environments/none".to_owned(), ""),
            ("GET", "/v1/environments/none/classes/none".to_owned(), ""),
            ("GET", "/v1/nodes/none".to_owned(), ""),
            ("GET", "/v1/classified/nodes/none%2E1/explanation".to_owned(), ""),
            ("POST", of_group(""), &group),
            ("DELETE", of_group(""), ""),
            ("POST", of_group("/pin"), "{\"nodes\": [\"n\"]}"),
            ("POST", of_group("/unpin"), "{\"nodes\": [\"n\"]}"),
            ("DELETE", "/v1/environments/none".to_owned(), ""),
        ];
        each_row(rows, |(method, path, body)| {
            let path = format!("{prefix}{path}");
            let answer = daemon.request(method, &format!("{path}?limit=1"), body);
            let error = answer.json();
            assert_eq!((answer.status, &error["kind"]), (404, &json!("not-found")), "{path}");
            assert_eq!(error["details"], path, "{method}");
        });
    }
    for path in ["/webhook/none", "/status/v1/services/none", "/status/v1/simple/none", "/node"] {
        let method = if path.starts_with("/webhook") { "POST" } else { "GET" };
        assert_eq!(daemon.request(method, path, "").json()["details"], path);
    }
}

#[test]
fn a_class_without_config_data_is_not_stored() {
    let data = "config_data: {qux: {}, \"::old\":, profile: {port: 443}}\n";
    let hub = Hub::new(&[
        ("groups/web.yaml", &web(data)),
        ("nodes/n.yaml", "config_data: {qux: {}, own: {k: 1}}\n"),
    ]);
    let daemon = hub.serve(&[]);
    let web_path = format!("/v1/groups/{WEB_ID}");
    assert_eq!(daemon.get(&web_path).json()["config_data"], json!({"profile": {"port": 443}}));
    let explained = daemon.request("POST", "/v1/classified/nodes/n/explanation", "").json();
    assert_eq!(explained["individual_classification"]["config_data"], json!({"own": {"k": 1}}));
    let body = json!({"name": "N", "parent": ROOT_ID, "classes": {"kept": {}},
        "config_data": {"qux": {}, "web": {"port": 1}}});
    let checked = daemon.request("POST", "/v1/validate/group", &body.to_string());
    assert_eq!(checked.json()["config_data"], json!({"web": {"port": 1}}));
    let made = daemon.request("POST", "/v1/groups", &body.to_string());
    let path = made.header("Location").unwrap();
    let group = daemon.get(path).json();
    assert_eq!(group["config_data"], json!({"web": {"port": 1}}));
    assert_eq!(group["classes"], json!({"kept": {}}), "a class without parameters is a class");
    let delta = json!({"config_data": {"qux": {}, "web": {"port": null}}}).to_string();
    let edited = daemon.request("POST", path, &delta);
    assert_eq!((edited.status, &edited.json()["config_data"]), (200, &json!({})));
    assert!(!hub.show("groups/N.yaml").unwrap_or_default().contains("qux"));
}

#[test]
fn a_group_that_cannot_be_deleted_names_its_children() {
    let child = |name: &str| format!("name: {name}\nparent: Web\n");
    let hub = Hub::new(&[("groups/web.yaml", &web("")), ("groups/a.yaml", &child("Api"))]);
    let daemon = hub.serve(&[]);
    let path = format!("/v1/groups/{WEB_ID}");
    let said = |expected: &str| {
        let error = daemon.request("DELETE", &path, "").json();
        assert_eq!(error["kind"], "children-present");
        let start = format!("The group Web ({WEB_ID}) cannot be deleted because it has ");
        assert_eq!(error["msg"], format!("{start}{expected}."));
        error["details"]["children"].as_array().unwrap().len()
    };
    assert_eq!(said("1 child: Api"), 1);
    for name in ["Blog", "Cart", "Docs", "Edge", "Feed", "Git"] {
        let body = json!({"name": name, "parent": WEB_ID, "classes": {}}).to_string();
        assert_eq!(daemon.request("POST", "/v1/groups", &body).status, 303);
    }
    assert_eq!(said("7 children: Api, Blog, Cart, Docs, Edge and 2 more"), 7);
}

/// Waits until a check-in is stored.
fn check_in(daemon: &Daemon, node: &str, body: &str) {
    daemon.request("POST", &format!("/v1/classified/nodes/{node}"), body);
    daemon.wait_until("the check-in is there", |it| {
        it.get(&format!("/v1/nodes/{node}")).status == 200
    });
}

const AS_WEB: &str =
    r#"{"fact": {"x": 1}, "trusted": {"certname": "n", "extensions": {"pp_role": "web"}}}"#;

#[test]
fn a_node_that_has_checked_in_is_explained_by_its_name() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let first = daemon.get("/controller/status").json()["active"]["commit"].clone();
    let path = "/classifier-api/v1/classified/nodes/n/explanation";
    assert_eq!(daemon.get(path).status, 404, "a name alone explains nothing");
    check_in(&daemon, "n", AS_WEB);
    let explained = daemon.get(path);
    assert_eq!(explained.status, 200, "{}", explained.body);
    assert_eq!(explained.json(), daemon.request("POST", path, AS_WEB).json());
    assert_eq!(explained.json()["leaf_groups"][WEB_ID]["name"], "Web");

    repository.commit("second", &[("groups/web.yaml", &web("classes: {apache: {port: 8080}}\n"))]);
    daemon.wait_until("the second commit answers", |it| {
        it.get("/controller/status").json()["active"]["subject"] == "second"
    });
    let port = |query: &str| -> Value {
        let explained = daemon.get(&format!("{path}{query}")).json();
        explained["final_classification"]["classes"]["apache"]["port"].clone()
    };
    assert_eq!(port(""), 8080);
    assert_eq!(port(&format!("?commit={}", first.as_str().unwrap())), 80);
    assert_eq!(daemon.get(&format!("{path}?commit=nope")).json()["kind"], "unknown-commit");

    // A conflict is explained as well.
    check_in(&daemon, "conflict1", AS_WEB);
    let conflict = daemon.get("/v1/classified/nodes/conflict1/explanation");
    assert_eq!(conflict.status, 200);
    assert!(conflict.json()["conflicts"]["classes"]["apache"]["port"].is_array());
}

#[test]
fn check_ins_have_the_classification() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    check_in(&daemon, "n", AS_WEB);
    check_in(&daemon, "conflict1", "{}");
    let expected =
        json!({"environment": "production", "classes": {"apache": {"port": 80}}, "variables": {}});
    let one = daemon.get("/v1/nodes/n").json();
    assert_eq!(one["check_ins"][0]["classification"], expected);
    let list = daemon.get("/v1/nodes").json();
    assert_eq!(list[1], one);
    let conflict = &list[0]["check_ins"][0];
    assert_eq!(list[0]["name"], "conflict1");
    assert!(conflict.get("classification").is_none(), "{conflict}");
    assert_eq!(conflict["explanation"].as_object().unwrap().len(), 3);
}
