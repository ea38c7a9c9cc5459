//! What the other clients of the API send, call by call, and what each insists on in the answer.

use serde_json::{Value, json};

use super::clients::hub;
use super::{Hub, ROOT};
use crate::program::{Daemon, Response};

const MASTER: &str = "aaaaaaaa-0000-4000-8000-000000000001";

const JSON: &str = "Content-Type: application/json\r\nAccept: application/json\r\n";

fn send(daemon: &Daemon, method: &str, path: &str, body: &str) -> Response {
    daemon.request_with(method, &format!("/classifier-api{path}"), JSON, body)
}

/// Serves groups and classes.
fn serve(hub: &Hub) -> Daemon {
    hub.commit(
        "Classes",
        &[("environments/production.yaml", "classes: {puppet_enterprise: {parameters: {p: 1}}}\n")],
    );
    hub.serve(&[])
}

/// An answer must have this status, and a body of JSON unless it says all by its status.
fn expect(answer: &Response, status: u16, what: &str) -> Value {
    assert_eq!(answer.status, status, "{what}: {}", answer.body);
    if matches!(status, 201 | 204 | 303) && answer.body.is_empty() {
        return Value::Null;
    }
    assert_eq!(answer.header("Content-Type"), Some("application/json"), "{what}");
    answer.json()
}

/// `pe_client` parses bodies with the content type of JSON, sends `{}` with every POST and PUT and no
/// body with GET, and raises on error statuses.
#[test]
fn pe_client_asks_every_endpoint() {
    let hub = hub();
    let daemon = serve(&hub);
    let made = send(
        &daemon,
        "POST",
        "/v1/groups",
        &json!({"name": "N", "parent": ROOT, "classes": {}}).to_string(),
    );
    expect(&made, 303, "create");
    let location = made.header("Location").unwrap().to_owned();
    let id = location.strip_prefix("/classifier-api/v1/groups/").unwrap();
    let group = format!("/v1/groups/{id}");
    let whole = json!({
        "name": "V", "environment": "production", "environment_trumps": false, "parent": ROOT,
        "rule": ["=", "name", "x"], "description": "", "variables": {}, "classes": {},
    });
    let nodes = json!({"nodes": ["n"]}).to_string();
    let (empty, none) = ("{}".to_owned(), String::new());
    let groups = daemon.get("/v1/groups").body;
    for (method, path, body, status) in [
        ("GET", "/v1/groups".to_owned(), &none, 200),
        ("GET", "/v1/groups?inherited=true".to_owned(), &none, 200),
        ("GET", group.clone(), &none, 200),
        ("POST", group.clone(), &json!({"description": "d"}).to_string(), 200),
        ("POST", format!("{group}/pin"), &nodes, 204),
        ("GET", format!("{group}/rules"), &none, 200),
        ("GET", format!("{group}/nodes"), &none, 200),
        ("POST", format!("{group}/unpin"), &nodes, 204),
        ("POST", "/v1/commands/unpin-from-all".to_owned(), &nodes, 200),
        ("GET", format!("/v1/group-children/{ROOT}?depth=1"), &none, 200),
        ("GET", "/v1/classes".to_owned(), &none, 200),
        ("GET", "/v1/environments".to_owned(), &none, 200),
        ("GET", "/v1/environments/production".to_owned(), &none, 200),
        ("PUT", "/v1/environments/staging".to_owned(), &empty, 201),
        ("GET", "/v1/environments/production/classes".to_owned(), &none, 200),
        ("GET", "/v1/environments/production/classes/puppet_enterprise".to_owned(), &none, 200),
        ("POST", "/v1/classified/nodes/m".to_owned(), &empty, 200),
        ("POST", "/v1/classified/nodes/m/explanation".to_owned(), &empty, 200),
        ("GET", "/v1/nodes".to_owned(), &none, 200),
        ("GET", "/v1/nodes?limit=1&offset=0".to_owned(), &none, 200),
        ("GET", "/v1/nodes/m".to_owned(), &none, 200),
        ("POST", "/v1/update-classes".to_owned(), &empty, 201),
        ("POST", "/v1/update-classes?environment=production".to_owned(), &empty, 201),
        ("GET", "/v1/last-class-update".to_owned(), &none, 200),
        ("POST", "/v1/rules/translate".to_owned(), &json!(["=", "name", "x"]).to_string(), 200),
        (
            "POST",
            "/v1/rules/translate?format=inventory".to_owned(),
            &json!(["=", "name", "x"]).to_string(),
            200,
        ),
        ("POST", "/v1/validate/group".to_owned(), &whole.to_string(), 200),
        ("POST", "/v1/import-hierarchy".to_owned(), &groups, 204),
        ("DELETE", group.clone(), &none, 204),
        ("GET", group.clone(), &none, 404),
        ("DELETE", group.clone(), &none, 404),
        ("POST", "/v1/groups".to_owned(), &empty, 400),
        ("GET", "/v1/nodes/unknown".to_owned(), &none, 404),
        ("GET", "/v1/nothing".to_owned(), &none, 404),
    ] {
        let what = format!("{method} {path}");
        let answer = expect(&send(&daemon, method, &path, body), status, &what);
        if status >= 400 {
            assert!(answer["kind"].is_string() && answer["msg"].is_string(), "{what}: {answer}");
        }
    }
    expect(&daemon.get("/status/v1/services"), 200, "status");
}

/// beaker-pe waits for three services, and gives `PE Master` a class by PUT.
#[test]
fn beaker_waits_for_the_services_and_puts_a_class() {
    let hub = hub();
    let daemon = serve(&hub);
    let services = expect(&daemon.get("/status/v1/services"), 200, "services");
    let services = services.as_object().unwrap();
    assert!(services.len() >= 3 && services.contains_key("classifier-service"), "{services:?}");
    assert!(services.values().all(|it| it["state"] == "running"), "{services:?}");
    let groups = expect(&send(&daemon, "GET", "/v1/groups", ""), 200, "groups");
    let found = |it: &&Value| it["name"] == "PE Master" && it["environment"] == "production";
    let mut master = groups.as_array().unwrap().iter().find(found).unwrap().clone();
    master["classes"]["puppet_enterprise"]["p"] = json!(true);
    let path = format!("/v1/groups/{MASTER}");
    let put = send(&daemon, "PUT", &path, &master.to_string());
    assert!((200..400).contains(&put.status), "{}", put.body);
    assert_eq!(send(&daemon, "GET", &path, "").json()["classes"], master["classes"]);
}

/// Scooter follows redirects: after a POST it gets the group from the path alone.
#[test]
fn scooter_follows_the_redirect_to_the_new_group() {
    let hub = hub();
    let daemon = serve(&hub);
    let sent = json!({"name": "S", "parent": MASTER, "classes": {"puppet_enterprise": {}}, "variables": {"v": [1]}});
    let made = send(&daemon, "POST", "/v1/groups", &sent.to_string());
    expect(&made, 303, "create");
    let group = expect(&daemon.get(made.header("Location").unwrap()), 200, "the group");
    for (key, value) in sent.as_object().unwrap() {
        assert_eq!(group[key], *value, "{key}");
    }
}

/// peadm reads the rules of a group, edits one, unpins, restores a backup that it took with
/// `GET /v1/groups`, and classifies by the second version without a body.
#[test]
fn peadm_backs_up_restores_and_converts() {
    let hub = hub();
    let daemon = serve(&hub);
    let backup = send(&daemon, "GET", "/v1/groups", "");
    for group in backup.json().as_array().unwrap() {
        for key in ["id", "name", "parent", "environment", "classes"] {
            assert!(group.get(key).is_some(), "{key}");
        }
    }
    let path = format!("/v1/groups/{MASTER}");
    let rules = expect(&send(&daemon, "GET", &format!("{path}/rules"), ""), 200, "rules");
    assert_eq!(rules["rule"], json!(["or", ["=", "name", "m"]]));
    assert!(rules["rule_with_inherited"].is_array(), "{rules}");
    let rule = json!(["and", ["~", "name", "^pe"], rules["rule"]]);
    let edited = send(&daemon, "POST", &path, &json!({"rule": rule}).to_string());
    assert_eq!(expect(&edited, 200, "rule")["rule"], rule);
    let unpin =
        send(&daemon, "POST", &format!("{path}/unpin"), &json!({"nodes": ["m"]}).to_string());
    expect(&unpin, 204, "unpin");
    expect(&send(&daemon, "POST", "/v1/import-hierarchy", &backup.body), 204, "restore");
    // The restored groups were edited back.
    let content = |mut groups: Value| {
        for group in groups.as_array_mut().unwrap() {
            for key in ["last_edited", "serial_number"] {
                group.as_object_mut().unwrap().remove(key);
            }
        }
        groups
    };
    let restored = send(&daemon, "GET", "/v1/groups", "").json();
    assert_eq!(content(restored), content(backup.json()));
    for method in ["POST", "GET"] {
        let classified = send(&daemon, method, "/v2/classified/nodes/m", "");
        let classified = expect(&classified, 200, "classified");
        assert_eq!(classified["groups"][1], json!({"id": MASTER, "name": "PE Master"}));
        assert_eq!(classified["classes"], json!({"puppet_enterprise": {}}));
        assert!(classified["parameters"].is_object(), "{classified}");
    }
}

/// go-pe-client reads into types: `last_edited` must be a time as in RFC 3339 and `serial_number`
/// an integer where they are; it follows no redirect, and expects `query` in a translation.
#[test]
fn the_client_in_go_reads_groups_into_types() {
    let hub = hub();
    let daemon = serve(&hub);
    let edited = send(&daemon, "POST", &format!("/v1/groups/{MASTER}"), "{\"description\": \"d\"}");
    let groups = expect(&send(&daemon, "GET", "/v1/groups", ""), 200, "groups");
    for group in groups.as_array().unwrap().iter().chain([&edited.json()]) {
        for key in ["id", "name", "parent", "environment"] {
            assert!(group[key].is_string(), "{key} of {group}");
        }
        assert!(group["environment_trumps"].is_boolean(), "{group}");
        for key in ["classes", "variables"] {
            assert!(group[key].is_object(), "{key} of {group}");
        }
        assert!(group.get("rule").is_none_or(Value::is_array), "{group}");
        if let Some(time) = group.get("last_edited") {
            assert!(time.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{time}");
        }
        assert!(group.get("serial_number").is_none_or(Value::is_u64), "{group}");
    }
    let translated = send(&daemon, "POST", "/v1/rules/translate", "[\"=\", \"name\", \"x\"]");
    assert_eq!(expect(&translated, 200, "translate")["query"], json!(["=", "certname", "x"]));
    let class = send(&daemon, "GET", "/v1/classes", "").json();
    assert_eq!(class[0]["name"], "puppet_enterprise");
    assert!(class[0]["parameters"].is_object() && class[0]["environment"].is_string(), "{class}");
}
