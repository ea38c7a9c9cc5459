//! The scopes of writes.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{Hub, ROOT};
use crate::program::Daemon;

const WEB: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const SHOP: &str = "aaaaaaaa-0000-4000-8000-000000000002";
const DB: &str = "aaaaaaaa-0000-4000-8000-000000000003";

fn request(daemon: &Daemon, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let answer = daemon.request_with(method, path, &format!("X-Authentication: {token}\r\n"), body);
    let kind = if answer.body.starts_with('{') {
        answer.json()["kind"].as_str().unwrap_or_default().to_owned()
    } else {
        String::new()
    };
    (answer.status, kind)
}

#[test]
fn nodes_that_a_rule_names_as_pins_do_are_unpinned_and_pinned() {
    for (document, unpinned, pinned) in [
        ("rule: name = d\npinned: [n]\n", json!(["or", ["=", "name", "n"]]), "pinned: [n]"),
        ("rule: name = d or name = n\n", json!(["or", ["=", "name", "n"]]), "pinned:\n  - n"),
        (
            "rule: name ~ x or name = d\npinned: [n]\n",
            json!(["or", ["or", ["~", "name", "x"], ["=", "name", "d"]], ["=", "name", "n"]]),
            "rule: name ~ x or name = d\npinned: [n]",
        ),
        ("rule: name ~ x or name = d\n", json!(["~", "name", "x"]), "rule: \"name ~ x\""),
        ("rule: name ~ x\npinned: [d]\n", json!(["~", "name", "x"]), "rule: name ~ x"),
        (
            "rule: [or, [\"~\", name, x], [=, name, d]]\n",
            json!(["~", "name", "x"]),
            "rule: [\"~\", name, x]",
        ),
    ] {
        let hub = Hub::new(&[("groups/db.yaml", &format!("name: Db\nid: {DB}\n{document}"))]);
        let daemon = hub.serve(&[]);
        let path = format!("/v1/groups/{DB}");
        let nodes = json!({"nodes": ["d"]}).to_string();
        let answer = daemon.request("POST", &format!("{path}/unpin"), &nodes);
        assert_eq!(answer.status, 204, "{document}: {}", answer.body);
        assert_eq!(daemon.get(&path).json()["rule"], unpinned, "{document}");
        let file = hub.show("groups/db.yaml").unwrap();
        assert!(file.contains(pinned), "{document}: {file}");
        let answer = daemon.request("POST", &format!("{path}/pin"), &nodes);
        assert_eq!(answer.status, 204, "{document}: {}", answer.body);
        let rule = daemon.get(&path).json()["rule"].to_string();
        assert!(rule.contains(r#"["=","name","d"]"#), "{document}: {rule}");
    }
}

#[test]
fn a_token_writes_below_its_groups_and_its_keys_alone() {
    let hub = Hub::new(&[
        (
            "groups/web.yaml",
            &format!("name: Web\nid: {WEB}\n---\nname: Shop\nid: {SHOP}\nparent: Web\n"),
        ),
        ("groups/db.yaml", &format!("name: Db\nid: {DB}\nrule: name = d\npinned: [n]\n")),
    ]);
    let hash = |token: &str| {
        Sha256::digest(token.as_bytes())
            .iter()
            .fold(String::new(), |text, it| text + &format!("{it:02x}"))
    };
    let tokens = hub.path().join("tokens.yaml");
    let text = format!(
        "- name: admin\n  sha256: {}\n  roles: [read, write]\n\
         - name: web team\n  sha256: {}\n  roles: [read, write]\n  groups: [{WEB}]\n\
         - name: data\n  sha256: {}\n  roles: [read, write]\n  groups: [{WEB}]\n  keys: [classes, pinned]\n\
         - name: reader\n  sha256: {}\n  roles: [read]\n",
        hash("admin"),
        hash("web"),
        hash("data"),
        hash("reader"),
    );
    std::fs::write(&tokens, text).unwrap();
    let daemon = hub.serve(&["--tokens-file", tokens.to_str().unwrap()]);
    let new = |name: &str, parent: &str| {
        json!({"name": name, "parent": parent, "classes": {}}).to_string()
    };
    let one = |id: &str| format!("/v1/groups/{id}");
    let classes = json!({"classes": {"c": {}}}).to_string();
    let variables = json!({"variables": {"v": 1}}).to_string();
    let nodes = json!({"nodes": ["n"]}).to_string();
    for (token, method, path, body, status) in [
        ("web", "PUT", "/v1/environments/fresh".to_owned(), String::new(), 403),
        // Also without a Puppet Server, where it has the repository fetched.
        ("web", "POST", "/v1/update-classes".to_owned(), String::new(), 403),
        ("data", "POST", "/v1/update-classes".to_owned(), String::new(), 403),
        ("reader", "POST", "/v1/update-classes".to_owned(), String::new(), 403),
        ("admin", "POST", "/v1/update-classes".to_owned(), String::new(), 201),
        ("web", "PUT", "/v1/environments/production".to_owned(), String::new(), 200),
        ("admin", "PUT", "/v1/environments/fresh".to_owned(), String::new(), 201),
        ("web", "DELETE", "/v1/environments/fresh".to_owned(), String::new(), 403),
        ("admin", "DELETE", "/v1/environments/fresh".to_owned(), String::new(), 204),
        ("reader", "POST", "/v1/groups".to_owned(), new("X", ROOT), 403),
        ("web", "POST", "/v1/groups".to_owned(), new("X", ROOT), 403),
        ("web", "POST", "/v1/groups".to_owned(), new("X", SHOP), 303),
        ("web", "POST", one(WEB), classes.clone(), 200),
        ("web", "POST", one(DB), classes.clone(), 403),
        ("web", "POST", one(SHOP), json!({"parent": DB}).to_string(), 403),
        ("web", "POST", one(SHOP), json!({"name": "Shop 2"}).to_string(), 200),
        ("web", "DELETE", one(DB), String::new(), 403),
        ("web", "POST", format!("{}/pin", one(SHOP)), nodes.clone(), 204),
        ("data", "POST", one(SHOP), classes.clone(), 200),
        ("data", "POST", one(SHOP), variables.clone(), 403),
        ("data", "POST", format!("{}/pin", one(WEB)), nodes.clone(), 204),
        ("data", "POST", one(WEB), json!({"rule": ["=", "name", "z"]}).to_string(), 403),
        ("data", "POST", "/v1/groups".to_owned(), new("Y", SHOP), 403),
        ("data", "DELETE", one(SHOP), String::new(), 422),
        // Where it may not write, nodes stay pinned.
        ("web", "POST", "/v1/commands/unpin-from-all".to_owned(), nodes.clone(), 200),
        ("admin", "POST", one(DB), variables, 200),
        ("web", "POST", "/v1/import-hierarchy".to_owned(), "[]".to_owned(), 422),
    ] {
        let (found, kind) = request(&daemon, token, method, &path, &body);
        assert_eq!(found, status, "{token} {method} {path} {body} {kind}");
        if status == 403 {
            assert_eq!(kind, "permission-denied");
        }
    }
    assert!(hub.show("groups/db.yaml").unwrap().contains("pinned: [n]"));
    let head = hub.head().unwrap();
    let author = head.author();
    assert_eq!((author.name().unwrap(), author.email().unwrap()), ("admin", "admin@localhost"));
    assert_eq!(head.committer().name().unwrap(), "Clade");
    let web = head.parent(0).unwrap();
    assert_eq!(web.author().email().unwrap(), "web-team@localhost");
    assert!(web.message().unwrap().contains("\nClade-Actor: web team\n"));
}
