//! The callers of today work as they are: each sends the request that it really sends, and one node
//! gets the same from all of them.

use std::process::Command;

use indoc::indoc;
use serde_json::{Value, json};

use super::{Authority, CA, GROUPS, Machine, https};
use crate::program::{Daemon, GitRepository, Response, root};

const DEBIAN: &str = r#"{"os":{"family":"Debian"},"kernel":"Linux"}"#;

/// What the node gets.
fn check(answer: &Value) {
    assert_eq!(answer["classes"], json!({"ntp": {"maxpoll": 12}}), "{answer}");
    assert_eq!(answer["parameters"], json!({"tier": "front"}), "{answer}");
}

fn yaml(response: &Response) -> Value {
    assert_eq!(response.status, 200, "{}", response.body);
    assert_eq!(response.header("Content-Type"), Some("text/yaml; charset=utf-8"));
    response.json()
}

fn repository() -> GitRepository {
    let repository = GitRepository::new();
    let group = indoc! {"
        name: Debian
        rule: os.family = Debian
        classes: {ntp: {maxpoll: 12}}
        variables: {tier: front}
        config_data: {ntp: {fudge: [1]}}
    "};
    let torn = "name: Torn\nrule: name = torn and os.family = Debian\nvariables: {tier: back}\n";
    repository.commit("first", &[("groups/a.yaml", group), ("groups/b.yaml", torn)]);
    repository
}

fn daemon() -> (GitRepository, Daemon) {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    (repository, daemon)
}

#[test]
fn a_terminus_in_the_style_of_puppet_enterprise_asks_over_mutual_tls() {
    let (repository, machine) = (GitRepository::new(), Machine::new());
    repository.commit("first", &[("groups/all.yaml", GROUPS)]);
    let authority = Authority::new();
    let puppet = authority.sign("puppet", &[]);
    let ca = machine.path(CA);
    let allowed = machine.write("allow.yaml", "- certname: puppet\n  roles: [classify]\n");
    let daemon = authority.serve(&machine, &repository, &["--tls-allow", &allowed]);
    let body = json!({
        "fact": {"os": {"family": "Debian"}, "osfamily": "Debian"},
        "trusted": {"authenticated": "remote", "certname": "web1", "extensions": {"pp_role": "web"}, "hostname": "web1", "domain": null, "external": {}},
        "transaction_uuid": "7b2e1d6c-6d0a-4c5e-8a2b-2f1c9d3e4f50",
    });
    let output = Command::new("curl")
        .args(["-s", "--cacert", &ca, "-H", "Content-Type: application/json"])
        .args(["--cert", &machine.write("puppet.pem", &puppet.0)])
        .args(["--key", &machine.write("puppet-key.pem", &puppet.1)])
        .args(["-d", &body.to_string()])
        .arg(format!("{}/classifier-api/v1/classified/nodes/web1", https(&daemon)))
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: needs curl");
        return;
    };
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["classes"], json!({"apt": {}, "role::web": {"port": 80}}));
    assert_eq!(answer["environment"], "production");
    assert_eq!(answer["name"], "web1");
}

#[test]
fn octocatalog_diff_compiles_with_our_answers() {
    let (repository, machine) = (repository(), Machine::new());
    let authority = Authority::new();
    let own = authority.sign("localhost", &[]);
    // `hello`.
    let tokens = "- name: ci\n  sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n  roles: [classify]\n";
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--tls-cert",
        &machine.write("cert.pem", &own.0),
        "--tls-key",
        &machine.write("key.pem", &own.1),
        "--tokens-file",
        &machine.write("tokens.yaml", tokens),
    ]);
    let code = root().join("tests/puppet/environments/production/modules");
    machine.write("control/manifests/site.pp", "node default { notify { $tier: } }\n");
    std::os::unix::fs::symlink(code, machine.path("control/modules")).unwrap();
    let facts = format!("{{\"name\": \"web1\", \"values\": {DEBIAN}}}");
    let control = machine.path("control");
    let output = Command::new("octocatalog-diff")
        .args(["-n", "web1", "--catalog-only", "--output-format", "json"])
        .args(["--pe-enc-url", &format!("{}/classifier-api", https(&daemon))])
        .args(["--pe-enc-ssl-ca", &machine.write("ca.pem", authority.0.pem())])
        .args(["--pe-enc-token", "hello"])
        .args(["--fact-file", &machine.write("facts.json", facts)])
        .args(["--basedir", &control, "--bootstrapped-to-dir", &control])
        .args(["--puppet-binary", "/usr/bin/puppet", "--no-validate-references"])
        .args(["--output-file", &machine.path("catalog.json"), "--debug"])
        .current_dir(&control)
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: needs octocatalog-diff");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(machine.path("catalog.json")).unwrap();
    let catalog: Value = serde_json::from_str(&text).unwrap();
    let mut resources = catalog["resources"].as_array().unwrap().iter();
    let ntp = resources.find(|it| it["type"] == "Class" && it["title"] == "Ntp").unwrap();
    assert_eq!(ntp["parameters"]["maxpoll"], 12);
    assert!(text.contains(r#""title":"front""#) || text.contains(r#""title": "front""#), "{text}");
}

#[test]
fn what_octocatalog_diff_sends_needs_both_keys_in_the_answer() {
    let (_repository, daemon) = daemon();
    let path = "/classifier-api/v1/classified/nodes/web1";
    let headers = "Accept: application/json\r\nContent-Type: application/json\r\n";
    let body = format!(r#"{{"fact":{{"name":"web1","values":{DEBIAN}}}}}"#);
    let answer = daemon.request_with("POST", path, headers, &body);
    assert_eq!(answer.status, 200);
    check(&answer.json());
    let nothing =
        daemon.request_with("POST", path, headers, r#"{"fact":{"name":"web1","values":{}}}"#);
    assert_eq!(nothing.json()["classes"], json!({}));
    assert_eq!(nothing.json()["parameters"], json!({}));
}

#[test]
fn the_client_of_openvox_operator_gets_and_posts() {
    let (_repository, daemon) = daemon();
    let headers = "Accept: application/json, application/yaml, text/yaml\r\n";
    let body = format!(r#"{{"certname":"web1","facts":{DEBIAN}}}"#);
    let posted = daemon.request_with(
        "POST",
        "/enc/web1",
        &format!("{headers}Content-Type: application/json\r\n"),
        &body,
    );
    check(&yaml(&posted));
    // A GET is answered with the facts of that request.
    check(&yaml(&daemon.request_with("GET", "/enc/web1", headers, "")));
    let api = daemon.request_with("POST", "/v1/classified/nodes/web1", headers, &body);
    check(&api.json());
    let torn = daemon.request_with("POST", "/enc/torn", headers, &body);
    assert_eq!((torn.status, torn.json()["kind"].as_str()), (500, Some("classification-conflict")));
}

#[test]
fn the_script_of_foreman_uploads_and_asks() {
    let (_repository, daemon) = daemon();
    let body = json!({
        "facts": serde_json::from_str::<Value>(DEBIAN).unwrap(),
        "name": "web1",
        "certname": "web1",
        "environment": "production",
    });
    let headers = "Accept: application/json,version=2\r\nContent-Type: application/json\r\n";
    let stored = daemon.request_with("POST", "/api/hosts/facts", headers, &body.to_string());
    assert_eq!(stored.status, 201, "{}", stored.body);
    check(&yaml(&daemon.get("/node/web1?format=yml")));
    check(&yaml(&daemon.get("/node/web1")));
}

#[test]
fn a_script_with_curl_fails_when_there_is_no_answer() {
    let (_repository, daemon) = daemon();
    let curl = |path: &str| {
        let url = format!("http://{}{path}", daemon.address);
        Command::new("curl")
            .args(["-sS", "-f", "-d", &format!("{{\"facts\":{DEBIAN}}}"), &url])
            .output()
    };
    let Ok(good) = curl("/enc/web1") else {
        eprintln!("skipped: needs curl");
        return;
    };
    assert_eq!(good.status.code(), Some(0));
    check(&serde_json::from_slice(&good.stdout).unwrap());
    for path in ["/enc/torn", "/enc/", "/enk/web1"] {
        let bad = curl(path).unwrap();
        assert_eq!((bad.status.code(), bad.stdout.len()), (Some(22), 0), "{path}");
    }
}

#[test]
fn hiera_gets_flat_config_data() {
    let (_repository, daemon) = daemon();
    daemon.request("POST", "/enc/web1", &format!("{{\"facts\":{DEBIAN}}}"));
    let answer = daemon.get("/hiera/web1");
    assert_eq!((answer.status, answer.json()), (200, json!({"ntp::fudge": [1]})));
    let node = daemon.request(
        "POST",
        "/classifier-api/v2/classified/nodes/web1",
        &format!("{{\"fact\":{DEBIAN}}}"),
    );
    check(&node.json());
    assert_eq!(node.json()["config_data"], json!({"ntp": {"fudge": [1]}}));
}

#[test]
fn clients_of_the_groups_read_and_are_refused_to_write() {
    let (_repository, daemon) = daemon();
    let groups = daemon.get("/classifier-api/v1/groups").json();
    for key in ["name", "id", "parent", "environment", "environment_trumps", "classes", "variables"]
    {
        assert!(groups.as_array().unwrap().iter().all(|it| it.get(key).is_some()), "{key}");
    }
    let refused = daemon.request("POST", "/classifier-api/v1/groups", r#"{"name":"x"}"#);
    assert_eq!((refused.status, refused.json()["kind"].as_str()), (403, Some("read-only")));
}

#[test]
fn of_two_daemons_each_has_the_config_data_of_a_node_that_asked_the_other() {
    let repository = GitRepository::new();
    let web = "name: Web\nrule: os.family = Debian\nconfig_data: {motd: {text: hello}}\n";
    repository.commit("first", &[("groups/web.yaml", web)]);
    let [first, second] = [(); 2].map(|()| Daemon::start(&["--repo", &repository.text_path()]));
    let body = r#"{"fact": {"os": {"family": "Debian"}}}"#;
    assert_eq!(first.request("POST", "/enc/web1", body).status, 200);
    let data = json!({"motd::text": "hello"});
    assert_eq!(first.get("/hiera/web1").json(), data);
    // The other daemon has no check-in of the node, and answers 404.
    for answer in [second.get("/hiera/web1"), second.request("POST", "/hiera/web1", "")] {
        assert_eq!((answer.status, &answer.json()["kind"]), (404, &json!("not-found")));
    }
    let answer = second.request("POST", "/hiera/web1", body);
    assert_eq!(answer.json(), data);
    assert_eq!(answer.header("X-Clade-Commit").map(str::len), Some(40));
    assert_eq!(second.get("/hiera/web1").status, 404, "nothing is kept");
}
