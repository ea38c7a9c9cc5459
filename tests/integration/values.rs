//! Facts in values, from an export of Puppet Enterprise to what nodes get.

mod exports;

use serde_json::{Value, json};

use crate::program::{Daemon, GitRepository, run};

const ROOT: &str = "00000000-0000-4000-8000-000000000000";
const WEB: &str = "af56b3d1-e2ec-420f-aa9e-c420c245e8c5";

/// Groups as Puppet Enterprise exports them.
fn export() -> Value {
    let group = |name: &str, id: &str, classes: Value, variables: Value| {
        json!({
            "name": name, "id": id, "parent": ROOT, "environment": "production", "environment_trumps": false,
            "rule": ["~", "name", ".*"], "classes": classes, "variables": variables, "config_data": {},
        })
    };
    let classes = json!({
        "profile::user": {"hash": "\\$1\\$salt\\$a.b/c"},
        "profile::web": {"vhosts": [{"name": "${trusted['certname']}", "on": "${os[family]} $os"}], "port": 80},
    });
    let variables = json!({"motd": "I live at $ipaddress.", "plain": "C:\\dir"});
    let mut web = group("Web", WEB, classes, variables);
    web["config_data"] = json!({"profile::web": {"banner": "${kernel} %{facts.kernel} \\$5"}});
    json!([group("All Nodes", ROOT, json!({}), json!({})), web])
}

/// A directory with the export, imported.
fn imported() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let (file, estate) = (directory.path().join("export.json"), directory.path().join("estate"));
    std::fs::write(&file, export().to_string()).unwrap();
    let estate = estate.to_str().unwrap().to_owned();
    let done = run(&["import", file.to_str().unwrap(), &estate]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let said = "/clade.yaml: 3 values have a `$`, and Puppet Enterprise puts facts into values\n";
    assert!(done.stderr.contains(said), "{}", done.stderr);
    (directory, estate)
}

fn facts(address: &str) -> Value {
    json!({
        "fact": {"ipaddress": address, "os": {"family": "Debian"}, "trusted": {"certname": "forged"}},
        "trusted": {"certname": "web1.example.com"},
    })
}

/// What the node gets with [`facts`].
fn expected(address: &str) -> [Value; 2] {
    let vhost = json!({
        "name": "web1.example.com", "on": "Debian {\"family\" => \"Debian\"}",
    });
    [
        json!({
            "profile::user": {"hash": "$1$salt$a.b/c"},
            "profile::web": {"vhosts": [vhost], "port": 80},
        }),
        json!({"motd": format!("I live at {address}."), "plain": "C:\\dir"}),
    ]
}

#[test]
fn an_imported_export_gives_nodes_what_puppet_enterprise_gave_them() {
    let (directory, estate) = imported();
    let settings = std::fs::read_to_string(format!("{estate}/clade.yaml")).unwrap();
    assert_eq!(settings, "interpolate: true\n");
    let validated = run(&["validate", &estate]);
    assert_eq!((validated.status, validated.stdout.contains("warning")), (0, false));
    let exported = run(&["export", &estate]);
    let exported: Value = serde_json::from_str(&exported.stdout).unwrap();
    for (before, after) in export().as_array().unwrap().iter().zip(exported.as_array().unwrap()) {
        assert_eq!(
            (&before["classes"], &before["variables"]),
            (&after["classes"], &after["variables"])
        );
    }
    assert_eq!(run(&["fmt", "--check", &estate]).status, 0);

    let body = directory.path().join("facts.json");
    std::fs::write(&body, facts("192.0.2.1").to_string()).unwrap();
    let of = |command: &[&str]| -> Value {
        let arguments = [command, &["--facts", body.to_str().unwrap()]].concat();
        let done = run(&arguments);
        assert_eq!(done.status, 0, "{}", done.stderr);
        serde_json::from_str(&done.stdout).unwrap()
    };
    let [classes, variables] = expected("192.0.2.1");
    let answer = of(&["classify", "web1.example.com", &estate]);
    assert_eq!((&answer["classes"], &answer["parameters"]), (&classes, &variables));
    let explained = of(&["explain", "web1.example.com", &estate, "--format", "json"]);
    assert_eq!(explained["final_classification"]["classes"], classes);
    assert_eq!(
        explained["classification_sources"]["variables"]["motd"],
        json!({
            "value": "I live at 192.0.2.1.", "sources": [WEB],
            "written": "I live at $ipaddress.", "facts": {"ipaddress": "192.0.2.1"},
        })
    );
    let enc = run(&["enc", "web1.example.com", "--repo", &estate]);
    let enc: Value = serde_json::from_str(&enc.stdout).unwrap();
    assert_eq!(enc["classes"]["profile::user"]["hash"], "$1$salt$a.b/c");
    assert_eq!(enc["parameters"]["motd"], "I live at .", "it has no facts");
}

#[test]
fn a_second_import_keeps_what_clade_yaml_says() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.json");
    std::fs::write(&file, export().to_string()).unwrap();
    for (before, after) in [
        ("policy: {require_ids: true}", "policy: {require_ids: true}\ninterpolate: true\n"),
        ("interpolate: true # PE\n", "interpolate: true # PE\n"),
        ("interpolate: false\n", "interpolate: false\n"),
    ] {
        let estate = tempfile::tempdir().unwrap();
        let settings = estate.path().join("clade.yaml");
        std::fs::write(&settings, before).unwrap();
        let done = run(&["import", file.to_str().unwrap(), estate.path().to_str().unwrap()]);
        assert_eq!(done.status, 0, "{}", done.stderr);
        assert_eq!(std::fs::read_to_string(settings).unwrap(), after);
        assert_eq!(done.stderr.contains("warning: 3 values have a `$`"), before.contains("false"));
    }
}

/// A daemon of the imported groups.
fn daemon(repository: &GitRepository, more: &[&str]) -> Daemon {
    let (_directory, estate) = imported();
    let groups = walk(std::path::Path::new(&estate));
    let files: Vec<(&str, &str)> =
        groups.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    repository.commit("import", &files);
    let daemon = Daemon::start(&[&["--repo", repository.text_path().as_str()], more].concat());
    daemon.wait_until("it answers", |it| it.get("/readyz").status == 200);
    daemon
}

/// Returns the files of an estate.
fn walk(estate: &std::path::Path) -> Vec<(String, String)> {
    let (mut found, mut open) = (Vec::new(), vec![estate.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(estate).unwrap().to_str().unwrap().to_owned();
            found.push((name, std::fs::read_to_string(path).unwrap()));
        }
    }
    found
}

#[test]
fn every_route_answers_with_the_facts_of_the_node() {
    let repository = GitRepository::new();
    let daemon = daemon(&repository, &[]);
    let changes =
        |it: &Daemon| -> Value { it.get("/controller/nodes/web1.example.com/history").json() };
    // Whatever the daemon keeps of an answer, the next one has its own facts.
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.1"] {
        let (body, [classes, variables]) = (facts(address).to_string(), expected(address));
        for path in
            ["/v1/classified/nodes/web1.example.com", "/v2/classified/nodes/web1.example.com"]
        {
            let answer = daemon.request("POST", path, &body).json();
            assert_eq!(
                (&answer["classes"], &answer["parameters"]),
                (&classes, &variables),
                "{path}"
            );
        }
        let path = "/v1/classified/nodes/web1.example.com/explanation";
        let explained = daemon.request("POST", path, &body).json();
        assert_eq!(explained["final_classification"]["variables"], variables);
        let written = &explained["classification_sources"]["variables"]["motd"]["written"];
        assert_eq!(written, "I live at $ipaddress.");
        for (method, body) in [("POST", body.as_str()), ("GET", "")] {
            // The node has checked in, so the second one knows its facts, and the third one the document.
            for path in ["/enc/web1.example.com", "/enc/web1.example.com", "/node/web1.example.com"]
            {
                if method == "POST" && path.starts_with("/node") {
                    continue;
                }
                let answer = daemon.request(method, path, body);
                let document: Value = serde_json::from_str(&answer.body).unwrap();
                assert_eq!((&document["classes"], &document["parameters"]), (&classes, &variables));
            }
        }
        // Of check-ins that come at once, the store keeps the last.
        daemon.wait_until("the change is stored", |it| {
            changes(it)[0]["changes"]
                .to_string()
                .contains(&format!("\"I live at {address}.\",\"because"))
        });
    }
    let nameless = daemon.get("/v1/classified/nodes/web9.example.com").json();
    assert_eq!(nameless["parameters"]["motd"], "I live at .");
    let groups = daemon.get("/v1/groups").json();
    let web = groups.as_array().unwrap().iter().find(|it| it["id"] == WEB).unwrap();
    assert_eq!(web["variables"]["motd"], "I live at $ipaddress.", "groups show what is written");
    let history = changes(&daemon);
    let causes: Vec<&Value> = history.as_array().unwrap().iter().map(|it| &it["cause"]).collect();
    assert_eq!(causes, ["facts", "facts", "first"], "{history}");
    assert_eq!(
        history[0]["facts"],
        json!([{"path": "ipaddress", "before": "192.0.2.2", "after": "192.0.2.1"}])
    );
}

#[test]
fn facts_that_are_not_stored_are_not_missing() {
    let repository = GitRepository::new();
    let daemon = daemon(&repository, &["--mask", "ipaddress"]);
    let path = "/v1/classified/nodes/web1.example.com";
    let body = facts("192.0.2.1").to_string();
    let answer = daemon.request("POST", path, &body).json();
    assert_eq!(answer["parameters"]["motd"], "I live at 192.0.2.1.", "the node asks itself");
    let shown = daemon.request("POST", &format!("{path}/explanation"), &body);
    assert_eq!(shown.json()["final_classification"]["variables"]["motd"], "I live at [masked].");
    assert!(!shown.body.contains("192.0.2.1"), "{}", shown.body);
    let refused = daemon.get("/enc/web1.example.com");
    assert_eq!(
        (refused.status, refused.json()["kind"].as_str()),
        (500, Some("rule-evaluation-error"))
    );
    assert_eq!(refused.json()["details"]["path"], "ipaddress");
    // What does not depend on the fact is answered: no facts are put into config data.
    let hiera = daemon.get("/hiera/web1.example.com");
    let banner = json!({"profile::web::banner": "${kernel} %{facts.kernel} \\$5"});
    assert_eq!((hiera.status, hiera.json()), (200, banner));
    // People are shown what is known.
    let explained = daemon.get(&format!("{path}/explanation"));
    let shown = explained.json();
    assert_eq!(
        shown["final_classification"]["variables"]["motd"], "I live at [masked].",
        "{shown}"
    );
    for path in ["values", "blame"] {
        let found = daemon.get(&format!("/controller/nodes/web1.example.com/{path}"));
        assert_eq!(found.status, 200, "{path}: {}", found.body);
        let found = found.json();
        let mut all = found.as_array().unwrap().iter();
        let motd = all.find(|it| it["key"] == "variables.motd").unwrap();
        assert_eq!(motd["value"], "I live at [masked].", "{path}");
    }
    daemon.wait_until("the answer is stored", |it| {
        let history = it.get("/controller/nodes/web1.example.com/history");
        history.status == 200 && history.body.contains("I live at [masked].")
    });
    let history = daemon.get("/controller/nodes/web1.example.com/history");
    assert!(!history.body.contains("192.0.2.1"), "{}", history.body);
}

#[test]
fn what_facts_are_stored_is_what_rules_and_values_mention() {
    let repository = GitRepository::new();
    let daemon = daemon(&repository, &["--store-facts", "mentioned"]);
    let mut body = facts("192.0.2.1");
    body["fact"]["uptime"] = json!(7);
    let path = "/v1/classified/nodes/web1.example.com";
    assert_eq!(daemon.request("POST", path, &body.to_string()).status, 200);
    let [classes, variables] = expected("192.0.2.1");
    let document: Value = serde_json::from_str(&daemon.get("/enc/web1.example.com").body).unwrap();
    assert_eq!((&document["classes"], &document["parameters"]), (&classes, &variables));
    let stored = daemon.get("/v1/nodes/web1.example.com?facts=true");
    assert!(!stored.body.contains("uptime"), "{}", stored.body);
}

#[test]
fn a_commit_that_sets_interpolate_moves_nodes() {
    let repository = GitRepository::new();
    let group = "name: Web\nrule: name ~ web\nvariables: {v: '$role', w: plain}\n";
    let first = repository.commit("first", &[("groups/web.yaml", group)]);
    let second = repository.commit("second", &[("clade.yaml", "interpolate: true\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    daemon.wait_until("it answers", |it| it.get("/readyz").status == 200);
    let path = "/v1/classified/nodes/web1";
    let body = json!({"fact": {"role": "db"}}).to_string();
    assert_eq!(daemon.request("POST", path, &body).json()["parameters"]["v"], "db");
    let then = daemon.request("POST", &format!("{path}?commit={first}"), &body).json();
    assert_eq!(then["parameters"]["v"], "$role");
    let diff = daemon.get(&format!("/controller/diff/{first}/{second}"));
    assert!(diff.body.contains("\"$role\"") && diff.body.contains("\"db\""), "{}", diff.body);
    let blame = daemon.get("/controller/nodes/web1/blame").json();
    let of = |key: &str| {
        let values = blame.as_array().unwrap();
        values.iter().find(|it| it["key"] == key).unwrap()["commit"]["id"].clone()
    };
    assert_eq!((of("variables.v"), of("variables.w")), (json!(second), json!(first)), "{blame}");
}
