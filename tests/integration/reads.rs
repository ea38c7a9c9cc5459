//! What groups are shown with, and how much of a tree.

use serde_json::{Value, json};

use crate::program::{Daemon, GitRepository};

const WEB: &str = "name: Webservers\nid: 58463036-0efa-4365-b367-b5401c0711d3\n";
const WEB_ID: &str = "58463036-0efa-4365-b367-b5401c0711d3";
const ROOT_ID: &str = "00000000-0000-4000-8000-000000000000";

#[test]
fn the_depth_of_a_tree_is_a_count() {
    let repository = GitRepository::new();
    let child = "name: Child\nparent: Webservers\n";
    let other = ("groups/other.yaml", "name: Other\n");
    repository.commit("first", &[("groups/web.yaml", WEB), ("groups/child.yaml", child), other]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let ask = |depth: &str| {
        let answer = daemon.get(&format!("/v1/group-children/{ROOT_ID}?depth={depth}"));
        let body = answer.json();
        match answer.status {
            200 => body[0]["children"].as_array().unwrap().len().to_string(),
            _ => format!("{} {}", answer.status, body["kind"].as_str().unwrap()),
        }
    };
    for (depth, expected) in [
        ("0", "0"),
        ("1", "2"),
        ("99999999999999999999999", "2"),
        ("-0", "0"),
        ("-1", "400 illegal-count"),
        ("-99999999999999999999999", "400 illegal-count"),
        ("", "400 malformed-number"),
        ("-", "400 malformed-number"),
        ("1.5", "400 malformed-number"),
        ("all", "400 malformed-number"),
    ] {
        assert_eq!(ask(depth), expected, "{depth}");
    }
}

#[test]
fn a_query_is_text_and_its_numbers_are_digits() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/web.yaml", WEB)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--writes", "commit"]);
    for (method, path, kind) in [
        ("POST", format!("/v1/groups/{WEB_ID}/pin?nodes=%ff"), "malformed-request"),
        ("POST", format!("/v1/groups/{WEB_ID}/pin?%ff=x&nodes=a"), "malformed-request"),
        ("POST", "/v1/commands/unpin-from-all?nodes=a%c3".to_owned(), "malformed-request"),
        ("GET", "/controller/nodes?q=%ff".to_owned(), "malformed-request"),
        ("GET", "/v1/groups?commit=%ff".to_owned(), "malformed-request"),
        ("GET", "/controller/query?rule=name%20=%20%ff".to_owned(), "malformed-request"),
        ("GET", "/v1/groups?limit=%2B1".to_owned(), "malformed-number"),
        ("GET", "/v1/nodes?offset=%2B0".to_owned(), "malformed-number"),
    ] {
        let answer = daemon.request(method, &path, "");
        let said = (answer.status, answer.json()["kind"].clone());
        assert_eq!(said, (400, kind.into()), "{method} {path}: {}", answer.body);
    }
    assert_eq!(daemon.get("/controller/nodes?q=%C3%BC").status, 200);
    assert_eq!(daemon.get("/v1/groups?limit=1").json().as_array().unwrap().len(), 1);
}

#[test]
fn what_the_catalogue_lacks_is_shown_as_deleted() {
    let repository = GitRepository::new();
    repository.commit(
        "first",
        &[
            ("clade.yaml", "policy: {missing_referents: warn}\n"),
            (
                "groups/web.yaml",
                &format!("{WEB}classes: {{apache: {{port: 80, gone: [1]}}, old: {{p: 1}}}}\n"),
            ),
            (
                "groups/child.yaml",
                "name: Child\nparent: Webservers\nclasses: {apache: {port: 81}}\n",
            ),
            ("environments/production.yaml", "classes: {apache: {parameters: {port: 80}}}\n"),
        ],
    );
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let deleted = json!({
        "apache": {
            "puppetlabs.classifier/deleted": false,
            "gone": {"puppetlabs.classifier/deleted": true, "value": [1]},
        },
        "old": {"puppetlabs.classifier/deleted": true},
    });
    let find = |path: &str, name: &str| {
        let groups = daemon.get(path).json();
        groups.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap()["deleted"].clone()
    };
    assert_eq!(daemon.get(&format!("/v1/groups/{WEB_ID}")).json()["deleted"], deleted);
    assert_eq!(find("/v1/groups", "Webservers"), deleted);
    assert_eq!(find("/v1/groups", "Child"), Value::Null);
    assert_eq!(find("/v1/groups?inherited=1", "Child"), deleted);
    assert_eq!(find(&format!("/v1/group-children/{WEB_ID}"), "Webservers"), deleted);
}
