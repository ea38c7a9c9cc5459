//! The scopes of writes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{Hub, ROOT};
use crate::hub::token_hash as hash;
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
fn a_delta_names_classes_with_or_without_two_colons() {
    let text = format!("name: Db\nid: {DB}\nclasses:\n  \"::apache\": {{port: 80}}\n  ntp: {{}}\n");
    let hub = Hub::new(&[("groups/db.yaml", &text)]);
    let daemon = hub.serve(&[]);
    let path = format!("/v1/groups/{DB}");
    for (key, empty) in [("classes", json!({})), ("config_data", Value::Null)] {
        for (delta, expected) in [
            (json!({"::apache": {"docroot": "/a"}}), json!({"docroot": "/a"})),
            (json!({"apache": {"docroot": "/b"}}), json!({"docroot": "/b"})),
            (json!({"::apache": {"docroot": null}}), empty.clone()),
            (json!({"::apache": null, "::ntp": null}), Value::Null),
        ] {
            let answer = daemon.request("POST", &path, &json!({key: delta}).to_string());
            assert_eq!(answer.status, 200, "{delta}: {}", answer.body);
            let mut apache = answer.json()[key]["apache"].clone();
            if let Some(values) = apache.as_object_mut() {
                values.remove("port");
            }
            assert_eq!(apache, expected, "{key} {delta}");
        }
    }
    let twice = json!({"classes": {"::a": {}, "a": {}}}).to_string();
    let refused = daemon.request("POST", &path, &twice);
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body.contains("is set twice"), "{}", refused.body);
    let file = hub.show("groups/db.yaml").unwrap();
    assert!(!file.contains("apache"), "{file}");
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
        ("admin", "PUT", "/v1/environments/production".to_owned(), String::new(), 200),
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
        ("data", "DELETE", one(SHOP), String::new(), 403),
        ("web", "DELETE", one(WEB), String::new(), 422),
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

/// Starts a daemon that knows tokens, each by its own name.
fn serve(hub: &Hub, tokens: &[(&str, &str)]) -> Daemon {
    let entry = |(name, rights): &(&str, &str)| {
        format!("- {{name: {name}, sha256: {}, {rights}}}\n", hash(name))
    };
    let file = hub.path().join("tokens.yaml");
    std::fs::write(&file, tokens.iter().map(entry).collect::<String>()).unwrap();
    hub.serve(&["--tokens-file", file.to_str().unwrap()])
}

#[test]
fn a_write_is_attributed_to_the_holder_of_the_grant_that_allows_it() {
    let hub = Hub::new(&[
        ("groups/web.yaml", &format!("name: Web\nid: {WEB}\n")),
        ("groups/db.yaml", &format!("name: Db\nid: {DB}\n")),
    ]);
    let file = |name: &str, text: String| {
        let path = hub.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let token =
        format!("- {{name: web team, sha256: {}, roles: [write], groups: [{WEB}]}}\n", hash("web"));
    let tokens = file("tokens.yaml", token);
    let users = file("users.yaml", "- {user: ada, roles: [read, write]}\n".to_owned());
    let daemon = hub.serve(&[
        "--tokens-file",
        &tokens,
        "--proxy-auth-header",
        "X-User",
        "--proxy-auth-from",
        "127.0.0.1",
        "--proxy-auth-allow",
        &users,
    ]);
    let headers = "X-Authentication: web\r\nX-User: ada\r\n";
    for (group, actor) in [(WEB, "web team"), (DB, "ada")] {
        let body = json!({"classes": {"c": {}}}).to_string();
        let answer = daemon.request_with("POST", &format!("/v1/groups/{group}"), headers, &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let head = hub.head().unwrap();
        assert_eq!(head.author().name().unwrap(), actor);
        let line = format!("\nClade-Actor: {actor}\n");
        assert!(head.message().unwrap().contains(&line), "{line}");
    }
}

#[test]
fn a_refusal_for_rights_shows_nothing_of_a_group() {
    let groups = format!(
        "name: Web\nid: {WEB}\n---\nname: Hidden\nid: {DB}\nvariables: {{v: concealed}}\n---\n\
         name: Hidden child\nid: {SHOP}\nparent: Hidden\nvariables: {{v: concealed}}\n"
    );
    let hub = Hub::new(&[("groups/all.yaml", &groups)]);
    let scoped = format!("roles: [write], groups: [{WEB}]");
    let pins = format!("{scoped}, keys: [pinned]");
    let daemon = serve(
        &hub,
        &[
            ("scoped", &scoped),
            ("pins", &pins),
            ("keyless", "roles: [write], keys: []"),
            ("writer", "roles: [write]"),
        ],
    );
    let before = hub.head_id();
    let path = format!("/v1/groups/{DB}");
    let group = |parent: &str| json!({"name": "Hidden", "parent": parent, "classes": {}});
    let nodes = json!({"nodes": ["n"]});
    for (method, path, body) in [
        ("POST", path.clone(), json!({})),
        ("POST", path.clone(), json!({"variables": {"nope": null}})),
        ("POST", path.clone(), json!({"parent": SHOP})),
        ("POST", path.clone(), json!({"serial_number": 99})),
        ("POST", path.clone(), json!({"rule": "not one"})),
        ("PUT", path.clone(), group(SHOP)),
        ("PUT", path.clone(), group(ROOT)),
        ("DELETE", path.clone(), json!(null)),
        ("POST", format!("{path}/pin"), nodes.clone()),
        ("POST", format!("{path}/unpin"), nodes.clone()),
        ("POST", "/v1/groups".to_owned(), group(DB)),
        ("DELETE", format!("/v1/groups/{ROOT}"), json!(null)),
        ("DELETE", "/v1/environments/production".to_owned(), json!(null)),
    ] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        for token in ["scoped", "pins", "keyless"] {
            let header = format!("X-Authentication: {token}\r\n");
            let refused = daemon.request_with(method, &path, &header, &body);
            let what = format!("{token} {method} {path} {body}: {}", refused.body);
            assert_eq!(
                (refused.status, &refused.json()["kind"]),
                (403, &json!("permission-denied")),
                "{what}"
            );
            assert!(
                !refused.body.contains("Hidden") && !refused.body.contains("concealed"),
                "{what}"
            );
        }
    }
    assert_eq!(hub.head_id(), before);
    // Within its scope a write shows what was written, and why it cannot be.
    let all = daemon.request_with("DELETE", &path, "X-Authentication: writer\r\n", "");
    assert_eq!((all.status, &all.json()["details"]["group"]["name"]), (422, &json!("Hidden")));
}

#[test]
fn findings_about_other_groups_are_for_callers_who_read() {
    let hub = Hub::new(&[
        ("clade.yaml", "policy: {require_description: true, potential_conflicts: warn}\n"),
        (
            "groups/all.yaml",
            &format!(
                "name: Hidden\nid: {DB}\ndescription: d\nenvironment: dev\nclasses: {{concealed: }}\n---\n\
                 name: Web\nid: {WEB}\nparent: Hidden\nenvironment: dev\ndescription: d\n"
            ),
        ),
        ("environments/production.yaml", "classes: {known: }\n"),
    ]);
    let scope = format!("groups: [{WEB}]");
    let daemon = serve(
        &hub,
        &[
            ("writer", &format!("roles: [write], {scope}")),
            ("both", &format!("roles: [read, write], {scope}")),
        ],
    );
    let path = format!("/v1/groups/{WEB}");
    for (body, kind) in [
        (json!({"environment": "production"}), "missing-referents"),
        (json!({"description": null}), "invalid-commit"),
    ] {
        for (token, shows) in [("writer", false), ("both", true)] {
            let header = format!("X-Authentication: {token}\r\n");
            let refused = daemon.request_with("POST", &path, &header, &body.to_string());
            assert_eq!((refused.status, &refused.json()["kind"]), (422, &json!(kind)));
            let is_empty = refused.json()["details"] == json!([]);
            assert_eq!(is_empty, !shows, "{token}: {}", refused.body);
            assert!(shows || !refused.body.contains("concealed"), "{}", refused.body);
        }
    }
}

#[test]
fn a_group_moves_below_one_that_the_same_import_makes() {
    let groups = format!("name: Web\nid: {WEB}\n---\nname: Shop\nid: {SHOP}\nparent: Web\n");
    let hub = Hub::new(&[
        ("groups/all.yaml", &groups),
        ("groups/db.yaml", &format!("name: Db\nid: {DB}\n")),
    ]);
    let daemon = serve(&hub, &[("web", &format!("roles: [read, write], groups: [{WEB}]"))]);
    let header = "X-Authentication: web\r\n";
    let new = "aaaaaaaa-0000-4000-8000-00000000000f";
    let import = |place: &str| {
        let mut all = daemon.request_with("GET", "/v1/groups", header, "").json();
        let all = all.as_array_mut().unwrap();
        all.iter_mut().find(|it| it["id"] == SHOP).unwrap()["parent"] = json!(new);
        all.push(json!({"id": new, "name": "New", "parent": place, "classes": {}}));
        let body = Value::from(all.clone()).to_string();
        daemon.request_with("POST", "/v1/import-hierarchy", header, &body)
    };
    for place in [DB, ROOT] {
        let refused = import(place);
        assert_eq!(refused.status, 403, "{place}: {}", refused.body);
    }
    let moved = import(WEB);
    assert_eq!(moved.status, 204, "{}", moved.body);
    let shop = daemon.request_with("GET", &format!("/v1/groups/{SHOP}"), header, "");
    assert_eq!(shop.json()["parent"], new);
}

#[test]
fn a_node_that_is_named_twice_is_unpinned_once() {
    let groups = format!("name: Web\nid: {WEB}\npinned: [n, m]\n");
    for (query, body) in
        [("?nodes=n,n", String::new()), ("", json!({"nodes": ["n", "m", "n"]}).to_string())]
    {
        let hub = Hub::new(&[("groups/all.yaml", &groups)]);
        let daemon = hub.serve(&[]);
        let path = format!("/v1/commands/unpin-from-all{query}");
        let unpinned = daemon.request("POST", &path, &body).json();
        let first = &unpinned["nodes"][0];
        assert_eq!((&first["name"], first["groups"].as_array().unwrap().len()), (&json!("n"), 1));
        let subject =
            if query.is_empty() { "Unpin n, m from all groups" } else { "Unpin n from all groups" };
        assert_eq!(hub.log().last().unwrap(), subject);
    }
}

/// Sends half of a request, has the tokens replaced, and sends the rest.
#[test]
fn what_a_client_may_no_longer_write_when_its_body_is_there_is_not_written() {
    let hub = Hub::new(&[("groups/web.yaml", &format!("name: Web\nid: {WEB}\n"))]);
    let daemon = serve(
        &hub,
        &[("gone", "roles: [write]"), ("less", "roles: [write]"), ("same", "roles: [write]")],
    );
    let before = hub.log().len();
    let mut open: Vec<(&str, TcpStream)> = ["gone", "less", "same"]
        .map(|token| (token, TcpStream::connect(&daemon.address).unwrap()))
        .into();
    let body = |token: &str| json!({"classes": {token: {}}}).to_string();
    for (token, stream) in &mut open {
        let body = body(token);
        let (half, length) = (&body[..5], body.len());
        write!(stream, "POST /v1/groups/{WEB} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nX-Authentication: {token}\r\nContent-Length: {length}\r\n\r\n{half}").unwrap();
    }
    let entry = |name: &str, rights: &str| {
        format!("- {{name: {name}, sha256: {}, {rights}}}\n", hash(name))
    };
    let less = entry("less", &format!("roles: [write], groups: [{DB}]"));
    let next = hub.path().join("next.yaml");
    // One of the same name with another secret is another token.
    let other = format!("- {{name: gone, sha256: {}, roles: [write]}}\n", hash("other"));
    std::fs::write(&next, less + &entry("same", "roles: [write]") + &other).unwrap();
    std::fs::rename(next, hub.path().join("tokens.yaml")).unwrap();
    daemon.wait_until("the tokens are loaded", |it| {
        request(it, "gone", "GET", "/v1/groups", "").0 == 401
    });
    for (token, stream) in &mut open {
        stream.write_all(&body(token).as_bytes()[5..]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1);
        assert_eq!(status, Some(if *token == "same" { "200" } else { "403" }), "{token} {answer}");
    }
    assert_eq!(hub.log().len(), before + 1);
}
