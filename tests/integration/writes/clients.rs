//! The requests that known clients send, and the answers that they require.

use indoc::formatdoc;
use serde_json::{Value, json};

use super::{Hub, ROOT, create, groups, post, without_edits};

const ID: &str = "aaaaaaaa-0000-4000-8000-000000000001";

pub(super) fn hub() -> Hub {
    Hub::new(&[(
        "groups/all.yaml",
        &formatdoc!(
            r#"
                name: PE Master
                id: {ID}
                rule: ["or", ["=", "name", "m"]]
                classes:
                  puppet_enterprise: {{}}
            "#
        ),
    )])
}

/// Each row: method, path, body, status, kind of the error.
#[test]
fn errors_have_the_status_and_kind_that_clients_know() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    let before = hub.head_id();
    let group = |more: Value| {
        let mut body = json!({"name": "N", "parent": ROOT, "classes": {}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let one = format!("/v1/groups/{ID}");
    let root = format!("/v1/groups/{ROOT}");
    let unknown = "/v1/groups/bbbbbbbb-0000-4000-8000-000000000001";
    for (method, path, body, status, kind) in [
        ("POST", "/v1/groups", "{".to_owned(), 400, "malformed-request"),
        ("POST", "/v1/groups", json!({"name": "N"}).to_string(), 400, "schema-violation"),
        ("POST", "/v1/groups", group(json!({"purge_behavior": "x"})), 400, "schema-violation"),
        ("POST", "/v1/groups", group(json!({"rule": ["and"]})), 400, "schema-violation"),
        ("POST", "/v1/groups", group(json!({"rule": "name = x"})), 400, "schema-violation"),
        ("POST", "/v1/groups", group(json!({"pinned": ["x"]})), 400, "schema-violation"),
        ("POST", "/v1/groups", group(json!({"parent": "All Nodes"})), 400, "malformed-uuid"),
        ("POST", "/v1/groups", group(json!({"parent": &unknown[11..]})), 422, "missing-parent"),
        ("POST", "/v1/groups", group(json!({"name": "PE Master"})), 422, "uniqueness-violation"),
        ("PUT", "/v1/groups/x", group(json!({})), 400, "malformed-uuid"),
        ("PUT", &one, group(json!({"id": ROOT})), 400, "conflicting-ids"),
        ("PUT", &one, group(json!({"parent": ID})), 422, "inheritance-cycle"),
        ("PUT", &root, group(json!({"rule": ["~", "name", "x"]})), 422, "root-rule-edit"),
        ("PUT", &root, group(json!({"rule": ["or", ["~", "name", ".*"]]})), 422, "root-rule-edit"),
        ("POST", unknown, "{}".to_owned(), 404, "not-found"),
        ("POST", &one, json!({"id": ROOT}).to_string(), 400, "conflicting-ids"),
        ("POST", &one, json!({"environment": 5}).to_string(), 400, "schema-violation"),
        ("POST", &one, json!({"classes": {"Bad Name": {}}}).to_string(), 400, "schema-violation"),
        ("POST", &root, json!({"rule": null, "classes": {}}).to_string(), 422, "root-rule-edit"),
        ("POST", &root, json!({"parent": ID}).to_string(), 422, "root-group"),
        ("DELETE", &root, String::new(), 422, "root-group"),
        ("DELETE", unknown, String::new(), 404, "not-found"),
        ("POST", &format!("{one}/pin"), String::new(), 400, "missing-parameters"),
        ("POST", &format!("{one}/pin"), "{}".to_owned(), 400, "missing-parameters"),
        (
            "POST",
            &format!("{one}/pin"),
            json!({"nodes": ["a"], "x": 1}).to_string(),
            400,
            "schema-violation",
        ),
        ("POST", &format!("{one}/pin"), json!({"nodes": [1]}).to_string(), 400, "schema-violation"),
        ("POST", &format!("{unknown}/pin"), json!({"nodes": ["a"]}).to_string(), 404, "not-found"),
        (
            "POST",
            &format!("{root}/pin"),
            json!({"nodes": ["a"]}).to_string(),
            422,
            "root-rule-edit",
        ),
        ("POST", "/v1/import-hierarchy", "{}".to_owned(), 400, "schema-violation"),
        ("POST", "/v1/import-hierarchy", "[{}]".to_owned(), 400, "schema-violation"),
        (
            "POST",
            "/v1/import-hierarchy",
            json!([serde_json::from_str::<Value>(&group(json!({"id": ID}))).unwrap()]).to_string(),
            422,
            "unreachable-groups",
        ),
    ] {
        let answer = daemon.request(method, path, &body);
        assert_eq!(answer.status, status, "{method} {path} {body}: {}", answer.body);
        let error = answer.json();
        assert_eq!(error["kind"], kind, "{method} {path} {body}");
        assert!(error["msg"].is_string() && error.get("details").is_some(), "{error}");
    }
    let empty = daemon.request("POST", "/v1/import-hierarchy", "[]");
    assert_eq!((empty.status, &empty.json()["kind"]), (422, &json!("unreachable-groups")));
    assert_eq!(
        empty.json()["msg"],
        "The submitted hierarchy has no groups: it must have the root group at least."
    );
    // A number that no file can hold is named as it was sent, with its place.
    let huge = |body: &str| body.replace("\"HUGE\"", "1E400");
    let one_huge = huge(&group(json!({"classes": {"a": {"p": [1, "HUGE"]}}})));
    let listed = format!("[{one_huge}]");
    for (method, path, body, at) in [
        ("POST", "/v1/groups", &one_huge, "/classes/a/p/1"),
        ("PUT", &one, &one_huge, "/classes/a/p/1"),
        ("POST", &one, &huge(r#"{"variables": {"v": "HUGE"}}"#), "/variables/v"),
        ("POST", "/v1/validate/group", &one_huge, "/classes/a/p/1"),
        ("POST", "/v1/import-hierarchy", &listed, "/0/classes/a/p/1"),
    ] {
        let answer = daemon.request(method, path, body);
        assert_eq!((answer.status, &answer.json()["kind"]), (400, &json!("schema-violation")));
        let said = format!("the number `1E400` at `{at}` is beyond the floats of Puppet");
        let message = answer.json()["msg"].to_string();
        assert!(message.contains(&said), "{method} {path}: {message}");
    }
    let answer = daemon.request("POST", "/v1/groups", &group(json!({"purge_behavior": "x"})));
    assert_eq!(
        answer.json()["msg"],
        "The object(s) in your submitted request did not conform to the schema. The problem is: ([:purge_behavior disallowed-key])"
    );
    assert_eq!(hub.head_id(), before);
}

#[test]
fn the_rule_of_the_root_group_may_be_written_in_two_ways() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    let root = format!("/v1/groups/{ROOT}");
    for rule in [json!(["and", ["~", "name", ".*"]]), json!(["~", "name", ".*"])] {
        let body =
            json!({"rule": rule, "name": "All Nodes", "parent": ROOT, "classes": {}}).to_string();
        let answer = daemon.request("PUT", &root, &body);
        assert_eq!(answer.status, 201, "{}", answer.body);
        assert_eq!(daemon.get(&root).json()["rule"], rule);
    }
}

#[test]
fn a_group_that_is_made_below_a_base_path_is_found_there() {
    let hub = hub();
    let daemon = hub.serve(&["--base-path", "/clade"]);
    for (number, prefix) in
        ["/clade/classifier-api", "/clade", "/classifier-api", ""].into_iter().enumerate()
    {
        let group =
            json!({"name": format!("lab{number}"), "classes": {}, "parent": ROOT}).to_string();
        let path = format!("{prefix}/v1/groups");
        let made = daemon.request_with("POST", &path, "Content-Type: application/json\r\n", &group);
        let location = made.header("Location").unwrap();
        let id = location.strip_prefix(&format!("{path}/"));
        assert_eq!(daemon.get(location).json()["id"], id.unwrap(), "{location}");
    }
}

#[test]
fn node_manager_makes_changes_and_removes_a_group() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    // It sends a body with every request, and cuts the id out of the header.
    let made = daemon.request_with(
        "POST",
        "/classifier-api/v1/groups",
        "Content-Type: application/json\r\n",
        &json!({
            "name": "lab", "classes": {"apache": {"x": "y", "gone": 1}}, "parent": ROOT,
            "environment": "production", "variables": {"a": "1"}, "rule": ["and", ["=", "name", "x"]],
        })
        .to_string(),
    );
    assert_eq!(made.status, 303, "{}", made.body);
    let location = made.header("Location").unwrap();
    let id = location.strip_prefix("/classifier-api/v1/groups/").unwrap();
    let listed = daemon.request("GET", "/classifier-api/v1/groups", "{}");
    assert!(listed.json().as_array().unwrap().iter().any(|it| it["id"] == id));
    let update = json!({
        "variables": {"a": null, "b": "2"}, "rule": ["or", ["=", "name", "z"]],
        "classes": {"apache": {"x": "z", "gone": null}}, "config_data": {"c": {"k": 1}}, "id": id,
    });
    let path = format!("/classifier-api/v1/groups/{id}");
    let updated = daemon.request("POST", &path, &update.to_string());
    assert_eq!(updated.status, 200);
    let group = updated.json();
    assert_eq!(group["variables"], json!({"b": "2"}));
    assert_eq!(group["classes"], json!({"apache": {"x": "z"}}));
    assert_eq!(group["config_data"], json!({"c": {"k": 1}}));
    let pinned = daemon.request("POST", &format!("{path}/pin"), "{\"nodes\": [\"n\"]}");
    assert_eq!((pinned.status, pinned.body.as_str()), (204, ""));
    assert!(pinned.header("Content-Length").is_none(), "{}", pinned.head);
    let unpinned = daemon.request(
        "POST",
        "/classifier-api/v1/commands/unpin-from-all",
        "{\"nodes\": [\"n\"]}",
    );
    assert_eq!((unpinned.status, &unpinned.json()["nodes"][0]["name"]), (200, &json!("n")));
    let none =
        daemon.request("POST", "/classifier-api/v1/commands/unpin-from-all", "{\"nodes\": \"n\"}");
    assert_eq!((none.status, none.json()), (200, json!({"nodes": []})));
    let gone = daemon.request("DELETE", &path, "{}");
    assert_eq!((gone.status, gone.body.as_str()), (204, ""));
    assert_eq!(daemon.request("POST", "/classifier-api/v1/update-classes", "{}").status, 201);
    assert_eq!(daemon.request("PUT", "/classifier-api/v1/environments/new", "{}").status, 201);
}

#[test]
fn puppetclassify_and_scooter_put_what_they_read() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    let path = format!("/v1/groups/{ID}");
    let mut whole = daemon.get(&path).json();
    whole["classes"]["added"] = json!({"p": [1, {"q": null}]});
    whole["last_edited"] = json!("2024-07-19T10:53:20.184Z");
    whole["deleted"] = json!({});
    let put = daemon.request("PUT", &path, &whole.to_string());
    assert_eq!(put.status, 201, "{}", put.body);
    assert_eq!(put.json()["classes"], whole["classes"]);
    let again = daemon.request("PUT", &path, &whole.to_string());
    assert_eq!((again.status, without_edits(&again.json())), (200, without_edits(&put.json())));
    // Absent keys have their defaults.
    let bare = json!({"name": "PE Master", "parent": ROOT, "classes": {}});
    let put = daemon.request("PUT", &path, &bare.to_string());
    assert_eq!((put.status, put.json().get("rule")), (201, None));
    // Scooter compares what it merged itself with the answer.
    let before = put.json();
    let after = post(&daemon, &path, &json!({"classes": {"ssl": {}}, "description": "d"})).json();
    let mut expected = without_edits(&before);
    expected["classes"] = json!({"ssl": {}});
    expected["description"] = json!("d");
    assert_eq!(without_edits(&after), expected);
    // A PUT with an id of its own makes a group.
    let id = "aaaaaaaa-0000-4000-8000-00000000000f";
    let body = json!({"name": "New", "id": id, "parent": ID, "classes": {}});
    assert_eq!(daemon.request("PUT", &format!("/v1/groups/{id}"), &body.to_string()).status, 201);
    assert_eq!(hub.show("groups/all/new.yaml").map(|it| it.contains(id)), Some(true));
}

#[test]
fn peadm_edits_a_rule_and_pins_by_query() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    let path = format!("/v1/groups/{ID}");
    let rule = json!([
        "and",
        ["=", ["trusted", "extensions", "1.3.6.1.4.1.34380.1.1.9812"], "puppet/server"]
    ]);
    let edited = post(&daemon, &path, &json!({"rule": rule}));
    assert_eq!((edited.status, &edited.json()["rule"]), (200, &rule));
    assert_eq!(daemon.request("POST", &format!("{path}/pin?nodes=a%2Cb"), "").status, 204);
    assert_eq!(
        daemon.get(&path).json()["rule"],
        json!(["or", rule, ["=", "name", "a"], ["=", "name", "b"]])
    );
    assert_eq!(daemon.request("POST", &format!("{path}/unpin?nodes=a,b,c"), "").status, 204);
    assert_eq!(daemon.get(&path).json()["rule"], rule);
    assert_eq!(post(&daemon, &format!("{path}/unpin"), &json!({"nodes": "unknown"})).status, 204);
    // Removing the last pin of a group without a rule removes the rule.
    let id = create(&daemon, &json!({"name": "P", "parent": ROOT, "classes": {}}));
    assert_eq!(post(&daemon, &format!("/v1/groups/{id}/pin"), &json!({"nodes": "n"})).status, 204);
    assert_eq!(
        post(&daemon, &format!("/v1/groups/{id}/unpin"), &json!({"nodes": ["n"]})).status,
        204
    );
    assert_eq!(daemon.get(&format!("/v1/groups/{id}")).json().get("rule"), None);
}

#[test]
fn nodes_of_the_query_and_of_the_body_are_pinned() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    let path = format!("/v1/groups/{ID}");
    let pinned = |query: &str, body: &str| {
        let answer = daemon.request("POST", &format!("{path}/pin?{query}"), body);
        assert_eq!(answer.status, 204, "{}", answer.body);
        let rule = daemon.get(&path).json()["rule"].to_string();
        ["a", "b", "c", "d", "e"].map(|it| rule.contains(&format!("\"{it}\"")))
    };
    assert_eq!(pinned("nodes=a&nodes=b", ""), [true, true, false, false, false]);
    assert_eq!(pinned("nodes=c", r#"{"nodes": ["d"]}"#), [true, true, true, true, false]);
    assert_eq!(pinned("nodes=e", "{}"), [true; 5]);
}

#[test]
fn a_group_is_validated_without_being_made() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    let body = json!({
        "name": "V", "environment": "production", "environment_trumps": false, "parent": ROOT,
        "rule": null, "description": "", "variables": {}, "classes": {},
    });
    let valid = post(&daemon, "/v1/validate/group", &body);
    assert_eq!((valid.status, valid.json()["name"].as_str()), (200, Some("V")));
    let taken = json!({"name": "PE Master", "parent": ROOT, "classes": {}});
    assert_eq!(post(&daemon, "/v1/validate/group", &taken).json()["kind"], "uniqueness-violation");
    assert_eq!(groups(&daemon).len(), 2);
    assert_eq!(hub.log(), ["Begin"]);
}

#[test]
fn the_nodes_of_a_group_are_those_that_checked_in_and_match_now() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    for node in ["m", "n"] {
        assert_eq!(post(&daemon, &format!("/v1/classified/nodes/{node}"), &json!({})).status, 200);
    }
    let path = format!("/v1/groups/{ID}");
    assert_eq!(daemon.get(&format!("{path}/nodes")).json(), json!({"nodes": ["m"]}));
    assert_eq!(post(&daemon, &format!("{path}/pin"), &json!({"nodes": ["n"]})).status, 204);
    assert_eq!(daemon.get(&format!("{path}/nodes")).json(), json!({"nodes": ["m", "n"]}));
    assert_eq!(daemon.get(&format!("{path}/nodes?limit=1")).json(), json!({"nodes": ["m"]}));
    assert_eq!(daemon.get(&format!("/v1/groups/{ROOT}1/nodes")).status, 400);
}
