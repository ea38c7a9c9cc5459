//! Environments that exist without groups and catalogues.

use serde_json::json;

use super::{Hub, ROOT, create, post};
use crate::program::Daemon;

#[test]
fn an_environment_is_made_by_a_commit_and_its_classes_stay_unknown() {
    let hub = Hub::new(&[
        ("groups/a.yaml", "name: A\nenvironment: used\n"),
        ("environments/full.yaml", "classes: {known: }\n"),
        ("environments/other.yaml", "name: another\n"),
    ]);
    let daemon = hub.serve(&[]);
    let path = |name: &str| format!("/classifier-api/v1/environments/{name}");
    let names = || {
        let all = daemon.get("/v1/environments").json();
        let names =
            all.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(), ["another", "full", "production", "used"]);
    let made = daemon.request("PUT", &path("fresh"), "{}");
    assert_eq!((made.status, made.json()), (201, json!({"name": "fresh", "sync_succeeded": true})));
    assert_eq!(made.header("X-Clade-Commit"), Some(hub.head_id().as_str()));
    assert_eq!(hub.show("environments/fresh.yaml").unwrap(), "name: fresh\n");
    assert_eq!(daemon.get(&path("fresh")).json(), made.json());
    assert_eq!(daemon.get(&format!("{}/classes", path("fresh"))).json(), json!([]));
    for known in ["fresh", "used", "another", "production", "full"] {
        assert_eq!(daemon.request("PUT", &path(known), "").status, 200, "{known}");
    }
    assert_eq!(daemon.request("PUT", &path("other"), "").status, 201);
    assert_eq!(hub.show("environments/other-2.yaml").unwrap(), "name: other\n");
    assert_eq!(names(), ["another", "fresh", "full", "other", "production", "used"]);
    for no_name in ["agent-specified", "fresh-1", "a%20b"] {
        let refused = daemon.request("PUT", &path(no_name), "");
        assert_eq!((refused.status, &refused.json()["kind"]), (400, &json!("schema-violation")));
        let removed = daemon.request("DELETE", &path(no_name), "");
        assert_eq!((removed.status, removed.json()), (400, refused.json()), "{no_name}");
    }
    // In the words of every other place.
    for (no_name, problem) in [
        (
            "fresh-1",
            "`fresh-1` is not an environment name: Puppet allows ASCII letters, digits and underscores",
        ),
        (
            "agent-specified",
            "`agent-specified` is not an environment: it leaves the choice to the agent",
        ),
    ] {
        let refused = daemon.request("PUT", &path(no_name), "").json();
        assert_eq!(refused["details"]["error"], problem);
        let message = refused["msg"].as_str().unwrap();
        assert!(message.ends_with(&format!("The problem is: {problem}")), "{message}");
    }
    // Its classes are not known, so every class may be set.
    let group = |environment: &str| json!({"name": "N", "parent": ROOT, "environment": environment, "classes": {"any": {"p": 1}}});
    assert_eq!(post(&daemon, "/v1/groups", &group("full")).status, 422);
    let id = create(&daemon, &group("fresh"));

    let delete = |name: &str| daemon.request("DELETE", &path(name), "");
    let used = delete("fresh");
    assert_eq!((used.status, &used.json()["kind"]), (422, &json!("environment-in-use")));
    assert_eq!(used.json()["details"]["groups"], json!([{"id": id, "name": "N"}]));
    assert_eq!(daemon.request("DELETE", &format!("/v1/groups/{id}"), "").status, 204);
    let gone = delete("fresh");
    assert_eq!((gone.status, gone.body.as_str()), (204, ""));
    assert_eq!((hub.show("environments/fresh.yaml"), delete("fresh").status), (None, 404));
    assert_eq!((delete("used").status, delete("another").status), (422, 204));
    let catalogue = delete("full");
    assert_eq!(catalogue.status, 422);
    assert!(catalogue.body.contains("environments/full.yaml"), "{}", catalogue.body);
    assert_eq!(names(), ["full", "other", "production", "used"]);
    insta::assert_snapshot!(hub.log().join("\n"), @r#"
    Begin
    Add the environment "fresh"
    Add the environment "other"
    Add the group "N" below "All Nodes"
    Remove the group "N"
    Remove the environment "fresh"
    Remove the environment "another"
    "#);
}

#[test]
fn without_writes_no_environment_is_made() {
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let daemon = Daemon::start(&["--repo", &hub.text_path()]);
    for method in ["PUT", "DELETE"] {
        let refused = daemon.request(method, "/v1/environments/fresh", "");
        assert_eq!((refused.status, &refused.json()["kind"]), (403, &json!("read-only")));
    }
    assert_eq!(daemon.get("/v1/environments/fresh").status, 404);
}
