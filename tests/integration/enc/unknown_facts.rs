//! Nodes that have checked in without facts.

use serde_json::{Value, json};

use crate::program::{Daemon, GitRepository, Response};

const BY_FACTS: &str = "name: Debian
id: aaaaaaaa-0000-4000-8000-000000000001
rule: os.family = Debian
classes: {apt: {}}
config_data: {motd: {text: debian}}
---
name: Others
id: aaaaaaaa-0000-4000-8000-000000000002
rule: not os.family = Debian
classes: {yum: {}}
config_data: {motd: {text: others}}
";

const BY_ROLE: &str = "name: Web
id: aaaaaaaa-0000-4000-8000-000000000001
rule: trusted.extensions.pp_role = web
config_data: {motd: {text: web}}
";

const DEBIAN: &str = r#"{"fact": {"os": {"family": "Debian"}}}"#;

const WEB: &str = r#"{"trusted": {"certname": "n", "extensions": {"pp_role": "web"}}}"#;

fn repository(groups: &str) -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/all.yaml", groups)]);
    repository
}

fn serve(repository: &GitRepository, more: &[&str]) -> Daemon {
    Daemon::start(&[&["--repo", &repository.text_path()], more].concat())
}

fn check_in(daemon: &Daemon, node: &str, path: &str, body: &str) {
    let asked = daemon.request("POST", &format!("{path}/{node}"), body);
    assert_eq!(asked.status, 200, "{}", asked.body);
    daemon.wait_until("the check-in is there", |it| {
        it.get(&format!("/v1/nodes/{node}")).status == 200
    });
}

fn members(daemon: &Daemon, group: u8) -> Value {
    let path = format!("/v1/groups/aaaaaaaa-0000-4000-8000-00000000000{group}/nodes");
    daemon.get(&path).json()["nodes"].clone()
}

fn explanation(daemon: &Daemon, node: &str) -> Response {
    daemon.get(&format!("/v1/classified/nodes/{node}/explanation"))
}

/// Whichever way they come: Puppet Server sends no facts where it has none.
#[test]
fn trusted_data_that_come_without_facts_are_the_newest() {
    let repository = repository(
        "name: Db\nrule: [\"=\", [trusted, extensions, pp_role], db]\nconfig_data: {db: {password: s}}\n",
    );
    let daemon = serve(&repository, &[]);
    let trusted = |role: &str| {
        format!(r#""trusted": {{"certname": "n", "extensions": {{"pp_role": "{role}"}}}}"#)
    };
    let kept = |daemon: &Daemon| daemon.get("/controller/nodes/n").json();
    for (path, without) in [
        ("/v1/classified/nodes", r#""fact": {}, "#),
        ("/v1/classified/nodes", ""),
        ("/v2/classified/nodes", r#""fact": {}, "transaction_uuid": "u", "#),
        ("/enc", r#""fact": {}, "#),
        ("/enc", ""),
    ] {
        let db = format!(r#"{{"fact": {{"site": "berlin"}}, {}}}"#, trusted("db"));
        check_in(&daemon, "n", "/v1/classified/nodes", &db);
        assert_eq!(daemon.get("/hiera/n").json(), json!({"db::password": "s"}), "{path}");
        check_in(&daemon, "n", path, &format!("{{{without}{}}}", trusted("web")));
        let case = format!("{path} {without}");
        assert_eq!(daemon.get("/hiera/n").json(), json!({}), "{case}");
        let node = kept(&daemon);
        assert_eq!(node["trusted"]["extensions"]["pp_role"], "web", "{case}");
        assert_eq!(node["facts"], json!({"site": "berlin"}), "{case}");
        // Once they are written as well.
        daemon.wait_until("it is written", |it| {
            kept(it)["answer"]["groups"].as_array().is_some_and(|it| it.len() == 1)
        });
        assert_eq!(kept(&daemon)["trusted"]["extensions"]["pp_role"], "web", "{case}");
    }
}

#[test]
fn a_node_without_facts_does_not_look_like_a_node_without_data() {
    let repository = repository(BY_FACTS);
    let daemon = serve(&repository, &[]);
    let message = |answer: &Response, path: &str, says: &str| {
        let error = answer.json();
        assert_eq!((answer.status, &error["kind"]), (404, &json!("not-found")), "{path}");
        assert_eq!(error["details"], path);
        let message = error["msg"].as_str().unwrap();
        assert!(message.contains(says) && message.contains("POST"), "{message}");
    };
    let trusted = r#"{"trusted": {"certname": "b", "extensions": {}}}"#;
    for (node, path, body) in [
        ("a", "/v1/classified/nodes", "{}"),
        ("b", "/enc", trusted),
        ("c", "/v2/classified/nodes", r#"{"fact": {}, "transaction_uuid": "u"}"#),
    ] {
        let hiera = format!("/hiera/{node}");
        message(&daemon.get(&hiera), &hiera, "has not checked in here");
        check_in(&daemon, node, path, body);
        let without = "has checked in without facts";
        message(&daemon.get(&hiera), &hiera, without);
        let envelope = r#"{"facts": {"name": "n", "values": {}}}"#;
        for body in ["", "{}", r#"{"fact": {}}"#, envelope, trusted] {
            message(&daemon.request("POST", &hiera, body), &hiera, without);
        }
        let path = format!("/v1/classified/nodes/{node}/explanation");
        message(&daemon.get(&path), &path, without);
        // Where facts are optional, the name is enough for the ENC, as for a node that is not known.
        let enc = daemon.get(&format!("/enc/{node}"));
        assert_eq!((enc.status, &enc.json()["classes"]), (200, &json!({"yum": {}})));

        assert_eq!(daemon.request("POST", &hiera, DEBIAN).json(), json!({"motd::text": "debian"}));
        check_in(&daemon, node, "/enc", DEBIAN);
        for body in ["", "{}", r#"{"fact": {}}"#] {
            let enc = daemon.request("POST", &format!("/enc/{node}"), body);
            assert_eq!(enc.json()["classes"], json!({"apt": {}}), "known facts count: {body}");
        }
        assert_eq!(daemon.get(&hiera).json(), json!({"motd::text": "debian"}));
        assert_eq!(explanation(&daemon, node).status, 200);
    }
}

#[test]
fn where_no_rule_reads_facts_a_node_needs_none() {
    let repository = repository(BY_ROLE);
    let daemon = serve(&repository, &[]);
    assert_eq!(daemon.get("/hiera/n").status, 404, "its certificate is not known");
    check_in(&daemon, "n", "/v1/classified/nodes", WEB);
    assert_eq!(daemon.get("/hiera/n").json(), json!({"motd::text": "web"}));
    for body in ["", "{}", r#"{"fact": {}, "trusted": {}}"#, r#"{"trusted": {}}"#] {
        let hiera = daemon.request("POST", "/hiera/n", body);
        assert_eq!(hiera.json(), json!({"motd::text": "web"}), "known trusted data counts: {body}");
    }
    assert_eq!(explanation(&daemon, "n").status, 200);
    repository.commit("second", &[("groups/more.yaml", "name: More\nrule: a = b\n")]);
    daemon.wait_until("a rule reads facts", |it| it.get("/hiera/n").status == 404);
    assert_eq!(explanation(&daemon, "n").status, 404);
    assert_eq!(daemon.get("/hiera/n?commit=HEAD~1").json(), json!({"motd::text": "web"}));
}

#[test]
fn where_facts_are_required_a_node_without_facts_is_not_classified() {
    let repository = repository(BY_FACTS);
    repository.commit("second", &[("groups/more.yaml", "name: More\nclasses: {a: {}}\n")]);
    let daemon = serve(&repository, &["--enc-facts", "required"]);
    check_in(&daemon, "n", "/v1/classified/nodes", "{}");
    for (method, path, body) in [
        ("GET", "/enc/n", ""),
        ("GET", "/node/n", ""),
        ("POST", "/enc/n", "{}"),
        ("POST", "/enc/n", r#"{"fact": {}}"#),
        ("POST", "/enc/n", WEB),
    ] {
        let answer = daemon.request(method, path, body);
        assert_eq!((answer.status, &answer.json()["details"]), (404, &json!(path)), "{body}");
        assert!(answer.body.contains("--enc-facts required"), "{}", answer.body);
    }
    assert_eq!(members(&daemon, 2), json!([]), "it is in no group");
    let diff = daemon.get("/controller/diff/HEAD~1/HEAD").json();
    assert_eq!(diff["summary"]["nodes"], 0, "{diff}");
    assert!(diff["unreadable"][0].as_str().unwrap().starts_with("`n` has checked in without"));
}

#[test]
fn a_node_that_gives_way_to_others_is_not_answered_from_what_was_known_of_it() {
    let repository = repository(BY_FACTS);
    let daemon = serve(&repository, &["--enc-facts", "required", "--store-max-nodes", "10"]);
    check_in(&daemon, "a", "/v1/classified/nodes", DEBIAN);
    for _ in 0..2 {
        assert_eq!(daemon.get("/enc/a").status, 200);
    }
    for number in 0..20 {
        let path = format!("/v1/classified/nodes/b{number}");
        assert_eq!(daemon.request("POST", &path, DEBIAN).status, 200);
    }
    daemon.wait_until("it gave way", |it| it.get("/controller/nodes/a").status == 404);
    let answer = daemon.get("/enc/a");
    assert_eq!(answer.status, 404, "{}", answer.body);
}

#[test]
fn facts_of_a_file_are_used_by_every_route_and_never_kept() {
    let repository = repository(BY_FACTS);
    let debian = BY_FACTS.replace("{apt: {}}", "{apt: {purge: true}}");
    repository.commit("second", &[("groups/all.yaml", &debian)]);
    let facts = tempfile::tempdir().unwrap();
    let file = facts.path().join("n.json");
    let write = |family: &str| {
        let values = json!({"name": "n", "values": {"os": {"family": family}}});
        std::fs::write(&file, values.to_string()).unwrap();
    };
    write("Debian");
    let daemon = serve(&repository, &["--facts-dir", facts.path().to_str().unwrap()]);
    check_in(&daemon, "n", "/enc", WEB);
    let classes = |daemon: &Daemon| daemon.get("/enc/n").json()["classes"].clone();
    assert_eq!(classes(&daemon), json!({"apt": {"purge": true}}));
    assert_eq!(daemon.get("/hiera/n").json(), json!({"motd::text": "debian"}));
    let explained = explanation(&daemon, "n").json();
    assert_eq!(explained["node_as_received"]["fact"], json!({"os": {"family": "Debian"}}));
    assert_eq!((members(&daemon, 1), members(&daemon, 2)), (json!(["n"]), json!([])));
    let diff = daemon.get("/controller/diff/HEAD~1/HEAD").json();
    assert_eq!(diff["summary"]["changed"], 1, "{diff}");
    // The file's facts at the check-in do not stay when the file changes.
    write("RedHat");
    assert_eq!(classes(&daemon), json!({"yum": {}}));
    // A directory that is gone is an error, not a node without facts.
    std::fs::rename(facts.path(), facts.path().with_extension("away")).unwrap();
    for path in ["/enc/n", "/hiera/n", "/v1/classified/nodes/n/explanation"] {
        let answer = daemon.get(path);
        assert_eq!((answer.status, &answer.json()["kind"]), (500, &json!("application-error")));
        assert!(answer.body.contains("--facts-dir"), "{}", answer.body);
    }
    std::fs::rename(facts.path().with_extension("away"), facts.path()).unwrap();
    assert_eq!(classes(&daemon), json!({"yum": {}}));
}

#[test]
fn an_upload_without_facts_is_refused() {
    let repository = repository(BY_FACTS);
    let daemon = serve(&repository, &[]);
    let upload = |facts: &str| {
        let body = format!(r#"{{"name": "n", "facts": {facts}}}"#);
        daemon.request("POST", "/api/hosts/facts", &body).status
    };
    assert_eq!(upload(r#"{"os": {"family": "Debian"}}"#), 201);
    assert_eq!((upload("{}"), upload(r#"{"trusted": {}}"#)), (400, 400));
    assert_eq!(daemon.get("/hiera/n").json(), json!({"motd::text": "debian"}));
}
