//! Masked values reach neither the disk, nor an answer, nor a log.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{files_with, repository};
use crate::program::{Daemon, run, serve};

/// Stands for every secret; no other text has it.
const SECRET: &str = "s3cr3t-5e1f";

fn facts() -> Value {
    json!({
        "os": {"family": "Debian"},
        "db_password": SECRET,
        "app": {"dsn": format!("mysql://u:{SECRET}@db"), "users": [{"api_token": SECRET}]},
        "ec2_userdata": format!("#!/bin/sh\nexport KEY={SECRET}"),
    })
}

fn trusted() -> Value {
    json!({"certname": "web1", "extensions": {"pp_role": "web", "pp_secret": SECRET}})
}

#[test]
fn masked_values_are_neither_stored_nor_shown_nor_logged() {
    let rules = ["os.family = Debian", "db_password = x", "app.dsn ~ mysql"];
    let repository = repository(&rules);
    let data = tempfile::tempdir().unwrap();
    let (store, log) = (data.path().join("data"), data.path().join("decisions.jsonl"));
    let (store, log) = (store.to_str().unwrap().to_owned(), log.to_str().unwrap().to_owned());
    let remote = format!("file://{}", repository.text_path());
    let mut program = serve(&["--repo", &remote, "--branch", "main", "--data-dir", &store]);
    program.args(["--mask", "app.dsn", "--decision-log", &log, "--log", "debug"]);
    let daemon = Daemon::launch(program);

    let body = json!({"fact": facts(), "trusted": trusted(), "transaction_uuid": "u"}).to_string();
    let envelope = json!({"fact": {"name": "web1", "values": facts()}}).to_string();
    let upload = json!({"name": "web2", "facts": facts()}).to_string();
    let mut seen: Vec<String> = Vec::new();
    let mut ask = |method: &str, path: &str, body: &str, status: u16| {
        let answer = daemon.request(method, path, body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        seen.push(format!("{method} {path}: {}{}", answer.head, answer.body));
        answer
    };
    // Rules read the real values of the node that asks.
    let answer = ask("POST", "/v1/classified/nodes/web1", &body, 200).json();
    assert_eq!(answer["classes"], json!({"c0": {}, "c2": {}}));
    ask("POST", "/v2/classified/nodes/web1", &body, 200);
    ask("POST", "/v1/classified/nodes/web3", &envelope, 200);
    ask("POST", "/enc/web4", &body, 200);
    ask("POST", "/hiera/web4", &body, 200);
    ask("POST", "/api/hosts/facts", &upload, 201);
    let explained = ask("POST", "/v1/classified/nodes/web1/explanation", &body, 200).json();
    assert_eq!(explained["node_as_received"]["fact"]["app"]["dsn"], "[masked]");
    assert_eq!(explained["node_as_received"]["fact"]["os"]["family"], "Debian");
    // What is shown of the store, and what depends on a value that is not in it.
    ask("GET", "/v1/nodes?facts=true", "", 200);
    let stored = ask("GET", "/v1/nodes/web1?facts=true", "", 200).json();
    assert_eq!(stored["fact"]["db_password"], "[masked]");
    assert_eq!(
        stored["fact"]["app"],
        json!({"dsn": "[masked]", "users": [{"api_token": "[masked]"}]})
    );
    assert_eq!(stored["trusted"]["extensions"], json!({"pp_role": "web", "pp_secret": "[masked]"}));
    let refused = ask("GET", "/enc/web1", "", 500).json();
    assert_eq!(refused["kind"], "rule-evaluation-error");
    assert_eq!(refused["details"]["path"], "db_password");
    ask("GET", "/hiera/web1", "", 500);
    ask("GET", "/v1/classified/nodes/web1/explanation", "", 500);
    ask("GET", "/controller/nodes/web1/blame", "", 500);
    ask("GET", "/controller/diff/HEAD/HEAD", "", 200);
    ask("GET", "/controller/status", "", 200);
    // Errors repeat the request.
    for wrong in [
        format!("{{\"fact\": {{\"db_password\": \"{SECRET}\"}}"),
        format!("{{\"fact\": [{{\"db_password\": \"{SECRET}\"}}]}}"),
        format!("{{\"fact\": \"db_password={SECRET}\"}}"),
        format!("{{\"trusted\": [{{\"pp_secret\": \"{SECRET}\"}}]}}"),
        format!("[{{\"app\": {{\"dsn\": \"{SECRET}\"}}}}]"),
    ] {
        for path in [
            "/v1/classified/nodes/web1",
            "/enc/web1",
            "/hiera/web1",
            "/v1/classified/nodes/web1/explanation",
        ] {
            ask("POST", path, &wrong, 400);
        }
        ask("POST", "/api/hosts/facts", &wrong, 400);
    }
    let plain = ask("POST", "/v1/classified/nodes/web1", "{\"fact\": x}", 400).json();
    assert_eq!(plain["details"]["body"], "{\"fact\": x}");

    let leaked: Vec<&String> = seen.iter().filter(|it| it.contains(SECRET)).collect();
    assert!(leaked.is_empty(), "{leaked:#?}");
    // The log of the daemon is read by the helper; its last lines are compared after the end.
    let lines = daemon.log_lines();
    assert_eq!(daemon.terminate(), 0);
    assert!(!lines.iter().any(|it| it.contains(SECRET)), "{lines:#?}");
    assert!(std::fs::read_to_string(&log).unwrap().lines().count() >= 6);
    assert_eq!(files_with(data.path(), SECRET), Vec::<String>::new());
    assert!(!files_with(data.path(), "[masked]").is_empty());
}

#[test]
fn without_masks_everything_is_stored() {
    let repository = repository(&["db_password = x"]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--mask", "none"]);
    let body = json!({"fact": facts()}).to_string();
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", &body).status, 200);
    assert_eq!(daemon.get("/v1/nodes/web1?facts=true").json()["fact"], facts());
    assert_eq!(daemon.get("/enc/web1").status, 200);
}

#[test]
fn a_mask_that_is_not_a_path_is_refused_at_the_start() {
    let repository = repository(&[]);
    let mut program = serve(&["--repo", &repository.text_path(), "--mask", "users[0].key"]);
    let done = program.stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(
        said.contains("`users[0].key` has an index: a mask covers every element of a list"),
        "{said}"
    );
}

#[test]
fn a_masked_term_that_does_not_decide_is_shown_as_unknown() {
    let repository = repository(&["os.family = Debian or db_password = x"]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let body = json!({"fact": facts(), "trusted": trusted()}).to_string();
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", &body).status, 200);
    let enc: Value = serde_json::from_str(&daemon.get("/enc/web1").body).unwrap();
    assert_eq!(enc["classes"], json!({"c0": {}}));
    let explained = daemon.get("/v1/classified/nodes/web1/explanation").json();
    let matches = explained["match_explanations"].as_object().unwrap();
    let form = matches.values().find(|it| it["form"][0] == "or").unwrap();
    assert_eq!((&form["value"], &form["form"][1]["value"]), (&json!(true), &json!(true)));
    let masked = &form["form"][2];
    assert_eq!((&masked["value"], &masked["form"][1]["value"]), (&Value::Null, &json!("[masked]")));
    assert!(masked["error"].as_str().unwrap().starts_with("`db_password` is not stored"));
    // The command draws what the daemon answers.
    let server = format!("http://{}", daemon.address);
    let drawn = run(&["explain", "web1", "--server", &server]);
    assert_eq!(drawn.status, 0, "{}", drawn.stderr);
    assert!(!drawn.stdout.contains(SECRET));
    let warned = daemon.log_lines();
    let warned =
        warned.iter().filter(|it| it.contains("rules read `db_password`, which a mask covers"));
    assert_eq!(warned.count(), 1);
}

#[test]
fn marks_that_a_node_sends_hide_it_from_no_list() {
    let repository = repository(&["kernel = Linux"]);
    for more in [&[][..], &["--mask", "none"]] {
        let daemon = Daemon::start(
            &[&["--repo", &repository.text_path(), "--store-facts", "all"], more].concat(),
        );
        let rows = [
            ("forger1", json!({"kernel": "[masked]"})),
            ("forger2", json!({"[stored paths]": [], "os": "x"})),
            // Nothing reads this one yet.
            ("forger3", json!({"kernel": "Darwin", "later": ["[masked]"]})),
            ("honest", json!({"kernel": "Linux"})),
        ];
        for (name, fact) in &rows {
            let body = json!({"fact": fact}).to_string();
            daemon.request("POST", &format!("/enc/{name}"), &body);
        }
        let group = daemon.get("/v1/groups").json();
        let group = group.as_array().unwrap().iter().find(|it| it["name"] != "All Nodes").unwrap();
        let path = format!("/v1/groups/{}/nodes", group["id"].as_str().unwrap());
        for (name, _) in &rows {
            daemon
                .wait_until("it is known", |it| it.get(&format!("/v1/nodes/{name}")).status == 200);
        }
        let nodes = daemon.get(&path);
        assert_eq!(nodes.status, 200, "{}", nodes.body);
        assert!(nodes.body.contains("honest") && !nodes.body.contains("forger"), "{}", nodes.body);
        let seen = daemon.get("/v1/nodes/forger2?facts=true").json();
        assert_eq!(seen["fact"], json!({"[[stored paths]]": [], "os": "x"}));
        let trusted = json!({"trusted": {"extensions": {"pp_role": "[masked]"}}}).to_string();
        daemon.request("POST", "/enc/honest", &trusted);
        daemon.wait_until("it is noted", |it| {
            let seen = it.get("/v1/nodes/honest?facts=true").json();
            seen["trusted"]["extensions"]["pp_role"] == "[[masked]]"
                && seen["fact"]["kernel"] == "Linux"
        });
        let seen = daemon.get("/v1/nodes/forger3?facts=true").json();
        assert_eq!(seen["fact"]["later"], json!(["[[masked]]"]));
    }
}
