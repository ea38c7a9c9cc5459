//! The daemon, over real sockets and real repositories.

use indoc::indoc;
use serde_json::{Value, json};

use crate::program::{Daemon, GitRepository, run};
use crate::table::each_row;

const WEB: &str = indoc! {r#"
    name: Webservers
    id: 58463036-0efa-4365-b367-b5401c0711d3
    rule: trusted.extensions.pp_role = web
    classes: {apache: {port: 80}}
    config_data: {"profile::web": {port: 443}}
"#};
const WEB_ID: &str = "58463036-0efa-4365-b367-b5401c0711d3";
const ROOT_ID: &str = "00000000-0000-4000-8000-000000000000";

fn repository() -> GitRepository {
    let repository = GitRepository::new();
    repository.commit(
        "first",
        &[
            ("groups/web.yaml", WEB),
            ("groups/child.yaml", "name: Child\nparent: Webservers\nrule: name ~ canary\n"),
            (
                "groups/conflict.yaml",
                "name: Other\nrule: name ~ conflict\nclasses: {apache: {port: 81}}\n",
            ),
            ("environments/production.yaml", "classes: {apache: {parameters: {port: 80}}}\n"),
        ],
    );
    repository
}

#[test]
fn every_read_route_answers() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let body = r#"{"fact": {"x": 1}, "trusted": {"extensions": {"pp_role": "web"}}, "transaction_uuid": "u"}"#;
    for prefix in ["", "/classifier-api"] {
        let answer = daemon.request("POST", &format!("{prefix}/v1/classified/nodes/web1"), body);
        assert_eq!((answer.status, answer.header("Content-Type")), (200, Some("application/json")));
        assert_eq!(answer.header("X-Clade-Commit").map(str::len), Some(40));
        assert_eq!(
            answer.json(),
            json!({"name": "web1", "groups": [ROOT_ID, WEB_ID], "environment": "production",
                "classes": {"apache": {"port": 80}}, "parameters": {}, "config_data": {"profile::web": {"port": 443}}})
        );
    }
    let v2 = daemon.request("POST", "/v2/classified/nodes/web1", body).json();
    assert_eq!(
        v2["groups"],
        json!([{"id": ROOT_ID, "name": "All Nodes"}, {"id": WEB_ID, "name": "Webservers"}])
    );
    let explained = daemon.request("POST", "/v1/classified/nodes/web1/explanation", body).json();
    assert_eq!(explained["leaf_groups"][WEB_ID]["name"], "Webservers");
    assert_eq!(
        explained["classification_sources"]["classes"]["apache"]["port"],
        json!({"value": 80, "sources": [WEB_ID]})
    );

    assert_eq!(daemon.get("/v1/groups").json().as_array().unwrap().len(), 4);
    assert_eq!(daemon.get("/v1/groups?").status, 200);
    assert_eq!(daemon.get("/v1/groups?limit=1&offset=1").json().as_array().unwrap().len(), 1);
    let group = daemon.get(&format!("/v1/groups/{WEB_ID}?inherited=true")).json();
    assert_eq!(
        group["rule"],
        json!(["and", ["=", ["trusted", "extensions", "pp_role"], "web"], ["~", "name", ".*"]])
    );
    let children = daemon.get(&format!("/v1/group-children/{ROOT_ID}?depth=1")).json();
    assert_eq!(
        (
            children[0]["immediate_child_count"].clone(),
            children[0]["children"][1]["children"].clone()
        ),
        (json!(2), json!([]))
    );
    assert_eq!(
        daemon.get(&format!("/v1/groups/{WEB_ID}/rules")).json()["rule"],
        json!(["=", ["trusted", "extensions", "pp_role"], "web"])
    );
    let translated = daemon.request("POST", "/v1/rules/translate", r#"["=", ["fact", "a"], "b"]"#);
    assert_eq!(translated.json(), json!({"query": ["=", ["fact", "a"], "b"]}));
    assert_eq!(
        daemon.get("/v1/classes").json(),
        json!([{"name": "apache", "environment": "production", "parameters": {"port": 80}}])
    );
    assert_eq!(
        daemon.get("/v1/environments").json(),
        json!([{"name": "production", "sync_succeeded": true}])
    );
    assert_eq!(daemon.get("/v1/environments/production/classes/apache").json()["name"], "apache");
    let nodes = daemon.get("/v1/nodes").json();
    assert_eq!((nodes.as_array().unwrap().len(), &nodes[0]["name"]), (1, &json!("web1")));
    let check_in = &nodes[0]["check_ins"][0];
    assert_eq!(
        (&check_in["transaction_uuid"], &check_in["explanation"][WEB_ID]["value"]),
        (&json!("u"), &json!(true))
    );
    assert_eq!(daemon.get("/v1/nodes/web1").json()["name"], "web1");
    assert_eq!(daemon.get("/v1/nodes/web1?facts=true").json()["fact"], json!({"x": 1}));
    let update = json!({"last_update": "2025-10-09T08:53:20Z"});
    daemon.wait_until("the history is known", |it| {
        it.get("/v1/last-class-update").json()["last_update"].is_string()
    });
    assert_eq!(daemon.get("/v1/last-class-update").json(), update);
    assert_eq!(daemon.request("POST", "/v1/update-classes", "{}").status, 201);

    let enc = daemon.request("POST", "/enc/web1", body);
    assert_eq!(enc.header("Content-Type"), Some("text/yaml; charset=utf-8"));
    assert_eq!(
        enc.body,
        "{\"classes\": {\"apache\": {\"port\": 80}}, \"parameters\": {}, \"environment\": \"production\"}\n"
    );
    assert_eq!(daemon.get("/enc/web1").body, enc.body, "the facts of the last check-in count");
    assert_eq!(
        daemon.get("/enc/unseen").body,
        "{\"classes\": {}, \"parameters\": {}, \"environment\": \"production\"}\n"
    );
    let unseen = daemon.get("/hiera/unseen");
    assert_eq!((unseen.status, &unseen.json()["kind"]), (404, &json!("not-found")));
    assert_eq!(daemon.get("/hiera/web1").json(), json!({"profile::web::port": 443}));
    assert_eq!(daemon.get("/status/v1/services").json()["classifier-service"]["state"], "running");
    assert_eq!(daemon.get("/status/v1/simple").body, "running");
    assert_eq!((daemon.get("/livez").status, daemon.get("/readyz").status), (200, 200));
    let status = daemon.get("/controller/status").json();
    assert_eq!(
        (status["active"]["subject"].as_str(), status["repository"]["branch"].as_str()),
        (Some("first"), Some("main"))
    );
    assert_eq!(status["conditions"][0]["reason"], "Serving");
    assert_eq!(daemon.get("/controller/commits").json()[0]["valid"], true);
    assert_eq!(daemon.terminate(), 0);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of every error")]
fn every_error_has_the_same_shape() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let rows = [
        ("GET", "/nope", "", 404, "not-found"),
        ("GET", "/v1/groups/00000000-0000-4000-8000-000000000009", "", 404, "not-found"),
        ("GET", "/v1/groups/x", "", 400, "malformed-uuid"),
        (
            "GET",
            "/v1/group-children/00000000-0000-4000-8000-000000000000?depth=x",
            "",
            400,
            "malformed-number",
        ),
        ("PATCH", "/v1/groups", "", 405, "method-not-allowed"),
        ("POST", "/v1/classified/nodes/n", "{", 400, "malformed-request"),
        ("POST", "/v1/classified/nodes/n", "[]", 400, "schema-violation"),
        ("POST", "/v1/classified/nodes/n", r#"{"fact": 1}"#, 400, "schema-violation"),
        ("POST", "/v1/classified/nodes/n", r#"{"trusted": []}"#, 400, "schema-violation"),
        ("GET", "/v1/groups?commit=nope", "", 404, "unknown-commit"),
        ("GET", "/v1/groups?at=2026-10-03T02:10Z", "", 404, "unknown-commit"),
        ("GET", "/v1/groups?at=2199-10-03T02:10Z", "", 404, "unknown-commit"),
        ("GET", "/v1/groups?at=yesterday", "", 400, "malformed-request"),
        ("GET", "/v1/groups?at=2026-10-03T02:10Z&commit=HEAD", "", 400, "malformed-request"),
        ("GET", "/v1/groups?commit=HEAD&commit=main", "", 400, "malformed-request"),
        ("GET", "/controller/nodes/n/membership", "", 400, "malformed-uuid"),
        ("GET", "/controller/nodes/n/membership?group=Webservers", "", 400, "malformed-uuid"),
        ("POST", "/controller/pin", "{}", 400, "schema-violation"),
        ("POST", "/controller/pin", r#"{"commit": "nope"}"#, 404, "unknown-commit"),
        ("POST", "/webhook/github", "{}", 401, "user-unauthenticated"),
        ("POST", "/webhook/unknown", "{}", 404, "not-found"),
        ("POST", "/api/hosts/facts", "{}", 400, "schema-violation"),
        ("POST", "/v1/groups", "{}", 403, "read-only"),
        ("DELETE", "/v1/groups/58463036-0efa-4365-b367-b5401c0711d3", "{}", 403, "read-only"),
        ("POST", "/v1/import-hierarchy", "[]", 403, "read-only"),
        ("POST", "/v1/rules/translate", "false", 400, "schema-violation"),
        ("POST", "/v1/rules/translate", r#"["<:", "name", "a"]"#, 422, "untranslatable-rule"),
        ("POST", "/v1/validate/group", r#"{"name": "x"}"#, 400, "schema-violation"),
        (
            "POST",
            "/v1/validate/group",
            r#"{"name": "x", "classes": {}, "parent": "x"}"#,
            400,
            "malformed-uuid",
        ),
        (
            "POST",
            "/v1/validate/group",
            r#"{"name": "x", "classes": {}, "parent": "00000000-0000-4000-8000-000000000009"}"#,
            422,
            "missing-parent",
        ),
        (
            "POST",
            "/v1/validate/group",
            r#"{"name": "Webservers", "classes": {}, "parent": "00000000-0000-4000-8000-000000000000", "id": "00000000-0000-4000-9000-000000000001"}"#,
            422,
            "uniqueness-violation",
        ),
        (
            "POST",
            "/v1/validate/group",
            r#"{"name": "x", "classes": {"nope": {}}, "parent": "00000000-0000-4000-8000-000000000000"}"#,
            422,
            "missing-referents",
        ),
        (
            "POST",
            "/v1/classified/nodes/web-conflict",
            r#"{"trusted": {"extensions": {"pp_role": "web"}}}"#,
            500,
            "classification-conflict",
        ),
        ("GET", "/status/v1/services/nope", "", 404, "not-found"),
    ];
    each_row(rows, |(method, path, body, status, kind)| {
        let answer = daemon.request(method, path, body);
        let json = answer.json();
        assert_eq!(
            (answer.status, json["kind"].as_str()),
            (status, Some(kind)),
            "{method} {path} {body}"
        );
        let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["kind", "msg", "details"], "{method} {path}");
        assert!(json["msg"].as_str().is_some_and(|msg| !msg.is_empty()), "{method} {path}");
    });
    let conflict = daemon
        .request(
            "POST",
            "/v1/classified/nodes/web-conflict",
            r#"{"trusted": {"extensions": {"pp_role": "web"}}}"#,
        )
        .json();
    assert!(
        conflict["msg"].as_str().unwrap().ends_with(" See the `details` key for all conflicts.")
    );
    assert_eq!(conflict["details"]["classes"]["apache"]["port"][0]["from"]["name"], "Other");
    let refused = daemon.request("DELETE", &format!("/v1/groups/{WEB_ID}"), "").json();
    assert!(
        refused["msg"].as_str().unwrap().contains("in the file groups/web.yaml of "),
        "{refused}"
    );
    let large = format!("{{\"fact\": {{\"x\": \"{}\"}}}}", "x".repeat(17 << 20));
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/n", &large).status, 413);
    let valid = daemon.request("POST", "/v1/validate/group", r#"{"name": "x", "classes": {}, "parent": "00000000-0000-4000-8000-000000000000", "serial_number": 4}"#);
    assert_eq!((valid.status, valid.json()["environment"].as_str()), (200, Some("production")));
}

#[test]
fn errors_that_follow_from_a_commit_name_it() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let live = daemon.get("/v1/groups").header("X-Clade-Commit").map(str::to_owned);
    let trusted = r#"{"trusted": {"extensions": {"pp_role": "web"}}}"#;
    let conflict = daemon.request("POST", "/v1/classified/nodes/web-conflict", trusted);
    assert_eq!(conflict.status, 500);
    daemon.wait_until("the check-in is there", |it| it.get("/v1/nodes/web-conflict").status == 200);
    let node = |route: &str| format!("/controller/nodes/web-conflict/{route}");
    let nothing = "00000000-0000-4000-8000-000000000009";
    for (path, status) in [
        ("/enc/web-conflict".to_owned(), 500),
        (node("enc"), 500),
        (node("values"), 500),
        (node("blame"), 500),
        (node(&format!("membership?group={nothing}")), 404),
        (format!("/v1/groups/{nothing}"), 404),
        (format!("/v1/groups/{nothing}/nodes"), 404),
        (format!("/v1/groups/{WEB_ID}/nodes?limit=x"), 400),
    ] {
        let answer = daemon.get(&path);
        let named = answer.header("X-Clade-Commit").map(str::to_owned);
        assert_eq!((answer.status, named), (status, live.clone()), "{path}: {}", answer.body);
    }
}

#[test]
fn validation_counts_a_group_against_the_budget_of_the_commit() {
    let repository = repository();
    let budget = ["--commit-budget", "document-bytes=4000"];
    let daemon = Daemon::start(&[&["--repo", &repository.text_path()], &budget[..]].concat());
    let validate = |value: &str| {
        let body =
            json!({"name": "Large", "classes": {}, "parent": ROOT_ID, "variables": {"v": value}});
        daemon.request("POST", "/v1/validate/group", &body.to_string())
    };
    assert_eq!(validate("short").status, 200);
    let answer = validate(&"long ".repeat(1_000));
    assert_eq!(answer.status, 422, "{}", answer.body);
    assert!(answer.body.contains("commit-too-large"), "{}", answer.body);
}

#[test]
fn a_revision_cannot_search_the_history() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    for revision in ["HEAD%5E%7B/first%7D", ":/first"] {
        let answer = daemon.get(&format!("/v1/groups?commit={revision}"));
        assert_eq!((answer.status, answer.json()["kind"].as_str()), (404, Some("unknown-commit")));
    }
}

#[test]
fn a_classifier_is_imported_from_its_address() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let target = tempfile::tempdir().unwrap();
    let exported = |directory: &str| run(&["export", directory]).stdout;
    let expected = exported(&repository.text_path());
    let base = format!("http://{}", daemon.address);
    for (number, url) in [
        base.clone(),
        format!("{base}/classifier-api/"),
        format!("{base}/classifier-api/v1/groups"),
        format!("{base}/v1"),
    ]
    .iter()
    .enumerate()
    {
        let into = target.path().join(number.to_string());
        let done = run(&["import", url, into.to_str().unwrap()]);
        assert_eq!(done.status, 0, "{url}: {}", done.stderr);
        assert_eq!(exported(into.to_str().unwrap()), expected, "{url}");
    }
    let done = run(&["import", &format!("{base}/elsewhere"), "/tmp/never"]);
    assert_eq!(done.status, 2);
    assert!(
        done.stderr.contains("/elsewhere/v1/groups` answers 404 Not Found: "),
        "{}",
        done.stderr
    );
}

#[test]
fn a_kept_reply_ends_with_new_facts_and_with_a_new_commit() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let ports = || {
        let enc = [daemon.get("/enc/web1").json(), daemon.get("/enc/web1").json()];
        assert_eq!(enc[0], enc[1], "asked twice");
        enc[0]["classes"].clone()
    };
    assert_eq!(ports(), json!({}));
    let role = |role: &str| format!(r#"{{"trusted": {{"extensions": {{"pp_role": "{role}"}}}}}}"#);
    daemon.request("POST", "/v1/classified/nodes/web1", &role("web"));
    assert_eq!(ports(), json!({"apache": {"port": 80}}));
    repository.commit("second", &[("groups/web.yaml", &WEB.replace("80", "8080"))]);
    daemon.request("POST", "/controller/reconcile", "");
    daemon.wait_until("the second commit answers", |daemon| {
        daemon.get("/enc/web1").json()["classes"]["apache"]["port"] == 8080
    });
    assert_eq!(ports(), json!({"apache": {"port": 8080}}));
    daemon.request("POST", "/v1/classified/nodes/web1", &role("db"));
    assert_eq!(ports(), json!({}));
}

#[test]
fn a_bad_commit_never_answers_and_the_next_good_one_does() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    daemon
        .wait_until("the history is known", |it| it.get("/v1/groups").body.contains("last_edited"));
    let before = daemon.get("/v1/groups");
    let bad =
        repository.commit("bad", &[("groups/web.yaml", "name: Webservers\nparent: Nowhere\n")]);
    daemon.wait_until("the bad commit is rejected", |it| {
        it.get("/controller/status").json()["last_failed"]["commit"] == bad.as_str()
    });
    let after = daemon.get("/v1/groups");
    assert_eq!(
        (after.body, after.head.lines().find(|it| it.starts_with("X-Clade")).map(str::to_owned)),
        (
            before.body.clone(),
            before.head.lines().find(|it| it.starts_with("X-Clade")).map(str::to_owned)
        )
    );
    let status = daemon.get("/controller/status").json();
    assert_eq!(status["last_failed"]["diagnostics"][0]["kind"], "missing-parent");
    assert_eq!(status["conditions"][1]["type"], "CandidateRejected");
    let asked = daemon.get(&format!("/v1/groups?commit={bad}"));
    assert_eq!((asked.status, asked.json()["kind"].as_str()), (422, Some("invalid-commit")));
    assert_eq!(asked.json()["details"][0]["file"], "groups/web.yaml");

    let good =
        repository.commit("good", &[("groups/web.yaml", WEB), ("groups/new.yaml", "name: New\n")]);
    daemon.wait_until("the good commit answers", |it| {
        it.get("/v1/groups").header("X-Clade-Commit") == Some(good.as_str())
    });
    assert_eq!(daemon.get("/v1/groups").json().as_array().unwrap().len(), 5);
    assert!(daemon.get("/controller/status").json()["last_failed"].is_null());
    assert_eq!(daemon.get("/v1/groups?commit=HEAD~2").json().as_array().unwrap().len(), 4);
    let known: Vec<Value> = serde_json::from_str(&daemon.get("/controller/commits").body).unwrap();
    assert!(known.iter().any(|it| it["commit"] == bad.as_str() && it["valid"] == false));
    assert_eq!(daemon.get(&format!("/controller/commits/{bad}")).json()["valid"], false);
}

#[test]
fn without_a_valid_commit_the_daemon_waits_for_one() {
    let repository = GitRepository::new();
    repository.commit("bad", &[("groups/a.yaml", "nam: a\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let answer = daemon.get("/v1/groups");
    assert_eq!(
        (answer.status, answer.json()["kind"].as_str(), answer.header("Retry-After")),
        (503, Some("no-snapshot"), Some("5"))
    );
    let said = "No commit of the repository answers yet: its newest commit is rejected; see /controller/status.";
    assert_eq!(daemon.get("/readyz").json()["msg"], said);
    assert_eq!((daemon.get("/readyz").status, daemon.get("/livez").status), (503, 200));
    assert_eq!(daemon.get("/status/v1/simple").status, 503);
    repository.commit("good", &[("groups/a.yaml", "name: a\n")]);
    daemon.wait_until("the good commit answers", |it| it.get("/readyz").status == 200);
}

/// Each daemon would answer from what it knows alone.
#[test]
fn two_daemons_do_not_share_a_file_of_nodes() {
    let repository = repository();
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("nodes.sqlite").display().to_string();
    let arguments = ["--repo", &repository.text_path(), "--store", &format!("sqlite:{file}")];
    let daemon = Daemon::start(&arguments);
    let second = [&["serve", "--listen", "127.0.0.1:0"], arguments.as_slice()].concat();
    let refused = run(&second);
    assert_eq!(refused.status, 2);
    let expected = format!("error: the store `{file}` is in use by another process: ");
    assert!(refused.stderr.starts_with(&expected), "{}", refused.stderr);
    drop(daemon);
    Daemon::start(&arguments);
}

#[test]
fn a_mirror_answers_after_a_restart_while_the_remote_is_gone() {
    let repository = repository();
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let remote = format!("file://{}", repository.text_path());
    let arguments = ["--repo", &remote, "--data-dir", data, "--branch", "main"];
    let daemon = Daemon::start(&arguments);
    let second = run(&["serve", "--repo", &remote, "--data-dir", data, "--listen", "127.0.0.1:0"]);
    assert_eq!(
        (second.status, second.stderr),
        (
            2,
            format!(
                "error: the data directory `{data}` is in use by another process, perhaps another `clade serve`: stop it, or choose another directory with `--data-dir`\n"
            )
        )
    );
    let live = repository.commit("second", &[("groups/new.yaml", "name: New\n")]);
    daemon.wait_until("the new commit answers", |it| {
        it.get("/v1/groups").header("X-Clade-Commit") == Some(live.as_str())
    });
    daemon.kill();
    // What a crash leaves behind must not block the next start.
    std::fs::write(format!("{data}/mirror.git/config.lock"), "").unwrap();
    let away = repository.path().with_extension("away");
    std::fs::rename(repository.path(), &away).unwrap();
    let daemon = Daemon::start(&arguments);
    assert_eq!(daemon.get("/v1/groups").header("X-Clade-Commit"), Some(live.as_str()));
    daemon.wait_until("the status says what is wrong", |it| {
        it.get("/controller/status").json()["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["type"] == "FetchFailed")
    });
    assert_eq!(daemon.get("/controller/status").json()["conditions"][0]["status"], "True");
    std::fs::rename(&away, repository.path()).unwrap();
    daemon.wait_until("the remote is back", |it| {
        it.get("/controller/status").json()["conditions"].as_array().unwrap().len() == 1
    });
}

#[test]
fn a_deleted_branch_is_a_condition_and_the_last_commit_answers() {
    let repository = repository();
    let head = repository.git().head().unwrap().peel_to_commit().unwrap();
    repository.git().branch("live", &head, false).unwrap();
    let data = tempfile::tempdir().unwrap();
    let remote = format!("file://{}", repository.text_path());
    let daemon = Daemon::start(&[
        "--repo",
        &remote,
        "--data-dir",
        data.path().to_str().unwrap(),
        "--branch",
        "live",
    ]);
    repository.git().find_branch("live", git2::BranchType::Local).unwrap().delete().unwrap();
    daemon.wait_until("the missing branch is noticed", |it| {
        it.get("/controller/status").json()["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["type"] == "RefMissing")
    });
    assert_eq!(daemon.get("/v1/groups").status, 200);
}

#[test]
fn a_tag_of_the_name_of_a_deleted_branch_does_not_answer() {
    let repository = repository();
    let first = repository.git().head().unwrap().peel_to_commit().unwrap();
    repository.git().branch("live", &first, false).unwrap();
    let side = repository.commit("side", &[("groups/side.yaml", "name: Side\n")]);
    let side = repository.git().find_object(side.parse().unwrap(), None).unwrap();
    repository.git().tag_lightweight("live", &side, false).unwrap();
    let live = || repository.git().find_branch("live", git2::BranchType::Local);
    let data = tempfile::tempdir().unwrap();
    let path = repository.text_path();
    let directory = ["--data-dir", data.path().to_str().unwrap()];
    for more in [&directory[..], &[]] {
        let daemon = Daemon::start(&[&["--repo", &path, "--branch", "live"], more].concat());
        live().unwrap().delete().unwrap();
        let is_missing = |it: &Daemon| {
            let status = it.get("/controller/status").json();
            status["conditions"].as_array().unwrap().iter().any(|it| it["type"] == "RefMissing")
        };
        daemon.wait_until("the missing branch is noticed", is_missing);
        let answered = daemon.get("/v1/groups");
        assert_eq!(answered.header("X-Clade-Commit"), Some(&*first.id().to_string()));
        repository.git().branch("live", &first, false).unwrap();
        daemon.wait_until("the branch is back", |it| !is_missing(it));
    }
}

#[test]
fn a_branch_of_the_name_of_a_followed_tag_does_not_answer() {
    let repository = repository();
    let first = repository.git().head().unwrap().peel_to_commit().unwrap();
    repository.git().tag_lightweight("live", first.as_object(), false).unwrap();
    let data = tempfile::tempdir().unwrap();
    let (path, data) = (repository.text_path(), data.path().to_str().unwrap());
    let arguments = ["--repo", &path, "--branch", "live", "--data-dir", data];
    let side = repository.commit("side", &[("groups/side.yaml", "name: Side\n")]);
    drop(Daemon::start(&arguments));
    let branch = repository.git().find_commit(side.parse().unwrap()).unwrap();
    repository.git().branch("live", &branch, false).unwrap();
    let answers = |it: &Daemon| it.get("/v1/groups").header("X-Clade-Commit").map(str::to_owned);
    let daemon = Daemon::start(&arguments);
    assert_eq!(answers(&daemon), Some(first.id().to_string()));
    let next = repository.commit("next", &[("groups/next.yaml", "name: Next\n")]);
    let tagged = repository.git().find_object(next.parse().unwrap(), None).unwrap();
    repository.git().tag_lightweight("live", &tagged, true).unwrap();
    daemon.wait_until("the tag answers", |it| answers(it).as_deref() == Some(next.as_str()));
    drop(daemon);
    // It is followed where it is meant.
    let daemon =
        Daemon::start(&["--repo", &path, "--branch", "refs/heads/live", "--data-dir", data]);
    daemon.wait_until("the branch answers", |it| answers(it).as_deref() == Some(side.as_str()));
}

#[test]
fn without_any_commit_the_daemon_says_what_to_do() {
    let repository = GitRepository::new();
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--data-dir", data]);
    let said = "No commit of the repository answers yet: the branch is not there: commit the files, and push them if the \
                repository is elsewhere, or correct `--branch`; see /controller/status.";
    daemon.wait_until("it has looked for the branch", |it| it.get("/readyz").json()["msg"] == said);
    repository.commit("first", &[("groups/a.yaml", "name: a\n")]);
    daemon.wait_until("the commit answers", |it| it.get("/readyz").status == 200);
}

#[test]
fn a_taken_port_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let done = run(&["serve", "--repo", ".", "--path", "examples/minimal", "--listen", &address]);
    assert_eq!(done.status, 2);
    let last = done.stderr.lines().last().unwrap();
    let start = format!(
        "error: cannot listen on {address}: Address already in use (os error 98); another program has the port, perhaps \
         another `clade serve`: stop it, or choose another address, such as `--listen 127.0.0.1:"
    );
    assert!(last.starts_with(&start), "{last}");
}

#[test]
fn a_base_path_that_would_hide_a_route_or_page_is_refused() {
    for (base, hidden) in [("/v1/groups", "/v1/groups"), ("/query", "/query")] {
        let serve = ["serve", "--repo", ".", "--path", "examples/minimal"];
        let done = run(&[&serve[..], &["--listen", "127.0.0.1:0", "--base-path", base]].concat());
        assert_eq!(done.status, 2, "{base}");
        let checked = run(&[&serve[..], &["--check", "--base-path", base]].concat());
        assert_eq!((checked.status, &checked.stderr), (2, &done.stderr), "{base}");
        let expected = format!(
            "error: the base path `{base}` would hide `{hidden}`, which is answered without it, too: choose another, such as `/clade`"
        );
        assert_eq!(done.stderr.lines().last(), Some(expected.as_str()));
    }
}

#[test]
fn a_pattern_that_runs_out_of_steps_is_an_error_and_counted() {
    let repository = GitRepository::new();
    let group = "name: Evil\nrule: [\"~\", [fact, x], '^(a|aa)+\\1b']\nclasses: {never: {}}\n";
    repository.commit("evil", &[("groups/evil.yaml", group)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let body = json!({"fact": {"x": format!("{}!", "a".repeat(10_000))}}).to_string();
    for path in ["/v1/classified/nodes/n", "/v1/classified/nodes/n/explanation", "/enc/n"] {
        let answer = daemon.request("POST", path, &body);
        let error = answer.json();
        assert_eq!(
            (answer.status, error["kind"].as_str()),
            (500, Some("rule-evaluation-error")),
            "{path}"
        );
        assert_eq!(error["details"]["group"]["name"], "Evil", "{path}");
        assert_eq!(error["details"]["pattern"], "^(a|aa)+\\1b", "{path}");
    }
    let other = daemon.request("POST", "/v1/classified/nodes/n", r#"{"fact": {"x": "short"}}"#);
    assert_eq!(other.status, 200);
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains("clade_rule_evaluation_errors_total 3\n"), "{metrics}");
}

#[test]
fn a_node_whose_rules_cannot_be_evaluated_is_not_left_out_of_a_group() {
    let repository = GitRepository::new();
    repository.commit("web", &[("groups/web.yaml", WEB)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let trusted = json!({"extensions": {"pp_role": "web"}});
    for (name, x) in [("evil", format!("{}!", "a".repeat(10_000))), ("good", "short".to_owned())] {
        let body = json!({"fact": {"x": x}, "trusted": trusted}).to_string();
        let path = format!("/v1/classified/nodes/{name}");
        assert_eq!(daemon.request("POST", &path, &body).status, 200);
    }
    let members = format!("/v1/groups/{WEB_ID}/nodes");
    daemon.wait_until("both have checked in", |it| {
        it.get(&members).json() == json!({"nodes": ["evil", "good"]})
    });
    let id = "e0000000-0000-4000-8000-00000000000e";
    let group = format!(
        "name: Evil\nid: {id}\nrule: [\"~\", [fact, x], '^(a|aa)+\\1b']\nclasses: {{never: {{}}}}\n"
    );
    repository.commit("evil", &[("groups/evil.yaml", &group)]);
    daemon.wait_until("the rule is evaluated", |it| {
        it.get("/v1/classified/nodes/evil/explanation").status == 500
    });
    // The rules of this group can be evaluated.
    assert_eq!(daemon.get(&members).json(), json!({"nodes": ["evil", "good"]}));
    let answer = daemon.get(&format!("/v1/groups/{id}/nodes"));
    let error = answer.json();
    assert_eq!((answer.status, error["kind"].as_str()), (500, Some("rule-evaluation-error")));
    assert_eq!(error["details"]["group"]["name"], "Evil");
}

#[test]
fn a_rule_that_every_node_meets_has_queries() {
    let repository = GitRepository::new();
    let id = "aaaaaaaa-0000-4000-8000-000000000001";
    repository.commit("first", &[("groups/a.yaml", &format!("name: A\nid: {id}\n"))]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    // A group without a rule has no nodes, though its parent has.
    let without = daemon.get(&format!("/v1/groups/{id}/rules")).json();
    assert_eq!(without["rule_with_inherited"], json!(["and", ["~", "name", ".*"]]));
    assert_eq!(
        without["translated"],
        json!({"nodes_query_format": null, "inventory_query_format": null})
    );
    let of_root = daemon.get("/v1/groups/00000000-0000-4000-8000-000000000000/rules").json();
    let every_node = json!(["~", "certname", ".*"]);
    assert_eq!(
        of_root["translated"],
        json!({"nodes_query_format": every_node, "inventory_query_format": every_node})
    );
}

#[test]
fn many_refs_that_are_skipped_are_a_few_lines_of_the_log() {
    let hub = crate::hub::Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let blob = hub.inner.blob(b"not a commit").unwrap();
    for number in 0..700 {
        hub.inner.reference(&format!("refs/tags/t{number}"), blob, false, "").unwrap();
    }
    let daemon = hub.serve(&[]);
    let lines = || daemon.log_lines();
    daemon.wait_until("the refs are skipped", |_| {
        lines().iter().any(|it| it.contains("more refs") && it.contains("more=697"))
    });
    let named = lines().into_iter().filter(|it| it.contains("a ref of the remote is skipped"));
    assert_eq!(named.count(), 3);
}
