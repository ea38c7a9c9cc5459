//! Values held to schemas of the repository: in commits, writes and working trees.

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::follow::wait_for;
use crate::hub::Hub;
use crate::program::{Daemon, GitRepository, clade, root};
use crate::repository::{Origin, Put};
use crate::writes::ROOT;

const SETTINGS: &str = "schemas: {group: schemas/group.json, classes: {ntp: schemas/ntp.yaml}}\n";
const GROUP: &str =
    r#"{"properties": {"variables": {"properties": {"site": {"enum": ["munich", "berlin"]}}}}}"#;
const NTP: &str = "properties: {port: {$ref: 'port.yaml'}}\n";
const PORT: &str = "type: integer\nmaximum: 65535\n";
const WEB: &str = "name: Web\nvariables: {site: munich}\nclasses: {ntp: {port: 123}}\n";

fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("clade.yaml", SETTINGS),
        ("schemas/group.json", GROUP),
        ("schemas/ntp.yaml", NTP),
        ("schemas/port.yaml", PORT),
        ("groups/web.yaml", WEB),
    ]
}

/// Writes a file of a working tree.
fn write(directory: &TempDir, path: &str, text: &str) {
    let path = directory.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Returns a working tree with the files.
fn working_tree() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files() {
        write(&directory, path, text);
    }
    directory
}

/// Waits until a commit is rejected, and returns its first finding as `file:line:column kind`.
fn rejection(daemon: &Daemon, commit: &str) -> String {
    daemon.wait_until("the commit is rejected", |it| {
        it.get("/controller/status").json()["last_failed"]["commit"] == commit
    });
    let status = daemon.get("/controller/status").json();
    let found = &status["last_failed"]["diagnostics"][0];
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    format!("{}:{}:{} {}", text("file"), found["line"], found["column"], text("kind"))
}

#[test]
fn a_commit_that_changes_only_a_schema_is_checked() {
    let hub = Hub::new(&files());
    let daemon = Daemon::start(&["--repo", &hub.text_path()]);
    let commit = |files: &[(&str, &str)]| hub.commit("Change", files);
    // The other file of a schema, which `clade.yaml` does not name.
    let small = commit(&[("schemas/port.yaml", "type: integer\nmaximum: 100\n")]);
    assert_eq!(rejection(&daemon, &small), "groups/web.yaml:3:23 schema-violation");
    let large = commit(&[("schemas/port.yaml", "type: integer\nmaximum: 200\n")]);
    wait_for(&daemon, &large);
    // From now on groups are held to the new schema, also where little changes.
    let group = |port: u16| WEB.replace("123", &port.to_string());
    let beyond = commit(&[("groups/web.yaml", &group(201))]);
    assert_eq!(rejection(&daemon, &beyond), "groups/web.yaml:3:23 schema-violation");
    let within = commit(&[("groups/web.yaml", &group(200))]);
    wait_for(&daemon, &within);
    let broken = commit(&[("schemas/group.json", "{")]);
    assert_eq!(rejection(&daemon, &broken), "schemas/group.json:1:1 invalid-schema");
    let mended = commit(&[("schemas/group.json", GROUP)]);
    wait_for(&daemon, &mended);
    let gone = commit(&[("schemas/port.yaml", "")]);
    assert_eq!(rejection(&daemon, &gone), "schemas/ntp.yaml:1:27 invalid-schema");
    // Without the settings no schema holds.
    let free = commit(&[("clade.yaml", ""), ("groups/web.yaml", &group(65000))]);
    wait_for(&daemon, &free);
    let held = commit(&[("clade.yaml", SETTINGS), ("schemas/port.yaml", PORT)]);
    wait_for(&daemon, &held);
    let elsewhere = commit(&[("groups/db.yaml", "name: Db\nvariables: {site: rome}\n")]);
    assert_eq!(rejection(&daemon, &elsewhere), "groups/db.yaml:2:19 schema-violation");
}

#[test]
fn links_and_submodules_are_not_followed() {
    for put in [|| Put::Link("ntp.yaml"), || Put::Submodule] {
        let repository = Origin::new();
        let first = repository.commit("main", &[("groups/web.yaml", Put::File(WEB))]);
        let path = repository.path();
        let daemon = Daemon::start(&["--repo", path.to_str().unwrap()]);
        wait_for(&daemon, &first);
        let all = files().into_iter().map(|(path, text)| match path {
            "schemas/port.yaml" => (path, put()),
            path => (path, Put::File(text)),
        });
        let commit = repository.commit("main", &all.collect::<Vec<_>>());
        assert_eq!(rejection(&daemon, &commit), "schemas/ntp.yaml:1:27 invalid-schema");
    }
}

#[test]
fn writes_are_held_to_the_schemas() {
    let hub = Hub::new(&files());
    let daemon = hub.serve(&[]);
    let before = hub.head_id();
    let body = |site: &str, port: Value| json!({"name": "New", "parent": ROOT, "classes": {"ntp": {"port": port}}, "variables": {"site": site}});
    for (path, body) in [
        ("/v1/groups", body("munch", json!(123))),
        ("/v1/validate/group", body("munch", json!(123))),
        ("/v1/groups", body("berlin", json!("123"))),
    ] {
        let refused = daemon.request("POST", path, &body.to_string());
        assert_eq!(
            (refused.status, &refused.json()["kind"]),
            (422, &json!("invalid-commit")),
            "{path}"
        );
        let found = &refused.json()["details"][0];
        assert_eq!(found["kind"], "schema-violation", "{}", refused.body);
        let (part, related) = if body["variables"]["site"] == "munch" {
            (
                json!({"enum": ["munich", "berlin"]}),
                "asked for by #/properties/variables/properties/site/enum",
            )
        } else {
            (json!({"type": "integer", "maximum": 65535}), "asked for by #/type")
        };
        assert_eq!(found["schema"], part, "{}", refused.body);
        assert_eq!(found["related"][0]["message"], related, "{}", refused.body);
    }
    assert_eq!(hub.head_id(), before);
    let made = daemon.request("POST", "/v1/groups", &body("berlin", json!(1)).to_string());
    assert_eq!(made.status, 303, "{}", made.body);
    // An edit is checked from the commit before.
    let group = made.header("Location").unwrap();
    for (site, status) in [("rome", 422), ("munich", 200)] {
        let delta = json!({"variables": {"site": site}});
        let edited = daemon.request("POST", group, &delta.to_string());
        assert_eq!(edited.status, status, "{}", edited.body);
    }
}

#[test]
fn a_working_tree_and_a_revision_are_read_alike() {
    let directory = working_tree();
    write(&directory, "groups/web.yaml", &WEB.replace("munich", "munch"));
    let git = git2::Repository::init(directory.path()).unwrap();
    let mut index = git.index().unwrap();
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
    let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
    let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
    git.commit(Some("HEAD"), &ada, &ada, "Begin", &tree, &[]).unwrap();
    let validate = |more: &[&str]| {
        let done =
            clade(&["validate", "."]).args(more).current_dir(directory.path()).output().unwrap();
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    let (status, shown) = validate(&[]);
    assert_eq!((status, &shown), (Some(1), &validate(&["--rev", "HEAD"]).1));
    insta::assert_snapshot!(shown, @r#"
    error[schema-violation]: `site`: `munch` is not one of `munich`, `berlin`
     --> groups/web.yaml:2:19
      |
    2 | variables: {site: munch}
      |                   ^^^^^
      |
     ::: schemas/group.json:1:55
      |
    1 | {"properties": {"variables": {"properties": {"site": {"enum": ["munich", "berlin"]}}}}}
      |                                                       ------ asked for by #/properties/variables/properties/site/enum
      |
      = help: did you mean `munich`?
      = note: https://github.com/clade-classifier/clade/blob/main/docs/reference/diagnostics/schema-violation.md

    1 error in 1 group, 2 files
    "#);
    // Nothing is read through a link, wherever it stands on the way.
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("group.json"), GROUP).unwrap();
    std::fs::remove_dir_all(directory.path().join("schemas")).unwrap();
    std::os::unix::fs::symlink(outside.path(), directory.path().join("schemas")).unwrap();
    let (status, shown) = validate(&["--format", "json"]);
    let report: Value = serde_json::from_str(&shown).unwrap();
    let found: Vec<&str> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["message"].as_str().unwrap())
        .collect();
    assert_eq!(status, Some(1));
    assert_eq!(
        found,
        ["there is no file `schemas/group.json`", "there is no file `schemas/ntp.yaml`",]
    );
}

#[test]
fn the_schemas_of_the_example_find_what_nothing_else_does() {
    let directory = tempfile::tempdir().unwrap();
    let fleet = root().join("examples/fleet/.");
    let copied = Command::new("cp").arg("-r").args([fleet.as_path(), directory.path()]).status();
    assert!(copied.unwrap().success());
    let at = |path: &str| directory.path().join(path);
    let replace = |path: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(at(path)).unwrap();
        assert!(text.contains(from), "{path}: {text}");
        std::fs::write(at(path), text.replace(from, to)).unwrap();
    };
    let found = || {
        let done = clade(&["validate", "--format", "json"]).arg(directory.path()).output().unwrap();
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        let all = report["diagnostics"].as_array().unwrap().iter();
        let errors = all.filter(|it| it["severity"] == "error");
        let text = |it: &Value| {
            format!("{}:{} {}", it["file"].as_str().unwrap(), it["line"], it["message"])
        };
        errors.map(text).collect::<Vec<_>>()
    };
    assert_eq!(found(), Vec::<String>::new());
    let web = "groups/roles/web.yaml";
    replace(web, "port: 443", "port: 4430000");
    let site = std::fs::read_dir(at("groups/sites")).unwrap().map(|it| it.unwrap().path());
    let site = site
        .filter(|it| std::fs::read_to_string(it).unwrap().contains("site: fra1"))
        .max()
        .unwrap();
    let site = site.strip_prefix(directory.path()).unwrap().to_str().unwrap().to_owned();
    replace(&site, "site: fra1", "site: fra2");
    let found_now = found();
    assert_eq!(found_now.len(), 2, "{found_now:?}");
    assert!(found_now[0].contains("more than 65535"), "{found_now:?}");
    assert!(found_now[1].contains("`fra2` is not one of"), "{found_now:?}");
    let settings = std::fs::read_to_string(at("clade.yaml")).unwrap();
    let (without, _) = settings.split_once("schemas:\n").unwrap();
    std::fs::write(at("clade.yaml"), without).unwrap();
    assert_eq!(found(), Vec::<String>::new(), "nothing but the schemas says it");
}

#[test]
fn one_schema_for_editors_has_all_of_it() {
    let directory = working_tree();
    let print = |more: &[&str]| {
        clade(&["schema", "--own"]).args(more).current_dir(directory.path()).output().unwrap()
    };
    let printed = print(&[]);
    assert_eq!(printed.status.code(), Some(0), "{printed:?}");
    let schema: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let shown = directory.path().to_str().unwrap();
    assert_eq!(clade(&["schema", "--own", shown]).output().unwrap().stdout, printed.stdout);
    // Nothing leads out of it.
    let text = schema.to_string();
    for part in text.split("\"$ref\":\"").skip(1) {
        let to = part.split('"').next().unwrap();
        let pointer = to.strip_prefix('#').unwrap_or_else(|| panic!("{to}"));
        assert!(schema.pointer(pointer).is_some(), "{to} leads nowhere");
    }
    let validator = jsonschema::options().offline().build(&schema).unwrap();
    for (group, is_valid) in [
        (
            json!({"name": "Web", "variables": {"site": "munich"}, "classes": {"ntp": {"port": 123}}}),
            true,
        ),
        (
            json!({"name": "Web", "classes": {"ntp": null, "other": {"port": "x"}}, "variables": null}),
            true,
        ),
        // Ours
        (json!({"nam": "Web"}), false),
        // Its own, one that it refers to, and a class that is written otherwise
        (json!({"name": "Web", "variables": {"site": "rome"}}), false),
        (json!({"name": "Web", "classes": {"ntp": {"port": 70000}}}), false),
        (json!({"name": "Web", "classes": {"::ntp": {"port": "x"}}}), false),
    ] {
        assert_eq!(validator.is_valid(&group), is_valid, "{group}");
    }
    // What is wrong with a schema is said.
    write(&directory, "schemas/ntp.yaml", "{$ref: none.yaml}\n");
    let failed = print(&[]);
    assert_eq!((failed.status.code(), failed.stdout.len()), (Some(1), 0));
    let said = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(said, "schemas/ntp.yaml:1:8: there is no file `schemas/none.yaml`\n");
    // Without schemas of its own, it is ours.
    std::fs::remove_file(directory.path().join("clade.yaml")).unwrap();
    let ours: Value = serde_json::from_slice(&print(&[]).stdout).unwrap();
    assert_eq!(ours["allOf"], json!([{"$ref": "#/definitions/clade"}]));
}

/// What an editor marks with the printed schema, validation does not accept.
#[test]
fn the_schema_for_editors_accepts_what_is_valid() {
    let directory = tempfile::tempdir().unwrap();
    let schemas = "schemas:\n  group: g.yaml\n  variables: v.yaml\n  config_data: {\"*\": v.yaml}\n  classes: {p: v.yaml, q: w.yaml}\n";
    let group = "required: [environment, parent, description]\nadditionalProperties: false\nproperties:\n  name: {}\n  id: {}\n  description: {}\n  environment_trumps: {}\n  classes: {type: object}\n  variables: {type: object}\n  config_data: {}\n  rule: {type: array}\n  parent: {format: uuid}\n  environment: {enum: [production]}\n";
    for (path, text) in [
        ("clade.yaml", schemas),
        ("g.yaml", group),
        ("v.yaml", "required: [site]\n"),
        ("w.yaml", "properties: {site: {type: string}}\n"),
    ] {
        write(&directory, path, text);
    }
    let printed = clade(&["schema", "--own"]).current_dir(directory.path()).output().unwrap();
    let schema: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let validator = jsonschema::options().offline().build(&schema).unwrap();
    for (group, is_valid) in [
        ("name: A\ndescription: d\nrule: os.family = Debian\n", true),
        ("name: A\ndescription: d\nparent: All Nodes\npinned: [x]\n", true),
        ("name: A\ndescription: d\nclasses: null\nvariables: null\n", true),
        ("name: A\n", false),
        ("name: A\ndescription: d\nenvironment: test\n", false),
        ("name: A\ndescription: d\nvariables: {}\nconfig_data: {p: {}, q: null}\n", true),
        ("name: A\ndescription: d\nvariables: {x: 1}\n", false),
        ("name: A\ndescription: d\nconfig_data: {p: {x: 1}}\n", false),
        ("name: A\ndescription: d\nclasses: {p: {}}\n", false),
        ("name: A\ndescription: d\nclasses: {p: null}\n", false),
        ("name: A\ndescription: d\nclasses: {p: {site: x}, q: null}\n", true),
        ("name: A\ndescription: d\nclasses: {q: {site: 1}}\n", false),
    ] {
        write(&directory, "groups/a.yaml", group);
        let value: Value = serde_yaml::from_str(group).unwrap();
        assert_eq!(validator.is_valid(&value), is_valid, "{group}");
        let validated = clade(&["validate"]).current_dir(directory.path()).output().unwrap();
        assert_eq!(validated.status.code() == Some(0), is_valid, "{group}");
    }
}

#[test]
fn a_body_that_breaks_its_shape_is_told_which_part() {
    let hub = Hub::new(&files());
    let daemon = hub.serve(&[]);
    let node = "/v1/classified/nodes/web1.example.com";
    let nodes = format!("/v1/groups/{ROOT}/pin");
    for (path, body, part) in [
        (node, json!({"fact": []}), json!(["object", "null"])),
        ("/v1/groups", json!({"name": "N", "parent": 5, "classes": {}}), json!("string")),
        (
            "/v1/validate/group",
            json!({"name": "N", "parent": ROOT, "classes": []}),
            json!("object"),
        ),
        ("/v1/import-hierarchy", json!({}), json!("array")),
        (&nodes, json!({"nodes": [5]}), json!("string")),
    ] {
        let refused = daemon.request("POST", path, &body.to_string());
        let answer = refused.json();
        assert_eq!((refused.status, &answer["kind"]), (400, &json!("schema-violation")), "{path}");
        assert_eq!(answer["details"]["schema"]["type"], part, "{path}: {}", refused.body);
        assert_eq!(answer["details"]["submitted"], body, "{path}");
        assert!(!answer["details"]["error"].is_null(), "{path}");
    }
    // The document has the shapes that are not types of answers.
    let document = daemon.get("/openapi.json").json();
    let shape =
        &document["paths"]["/v1/groups"]["post"]["requestBody"]["content"]["application/json"];
    assert_eq!(shape["schema"], json!({"$ref": "#/components/schemas/GroupRequest"}));
    assert!(document["components"]["schemas"]["GroupRequest"]["properties"]["rule"].is_object());
}

#[test]
fn the_longest_chain_of_schemas_that_is_allowed_ends_no_thread() {
    let repository = GitRepository::new();
    let links = 197;
    let mut definitions = serde_json::Map::new();
    for number in 0..links {
        let next = format!("#/$defs/d{}", number + 1);
        definitions.insert(format!("d{number}"), json!({"allOf": [{"$ref": next}]}));
    }
    definitions.insert(format!("d{links}"), json!({"type": "object"}));
    let schema =
        json!({"$ref": "#/$defs/d0", "unevaluatedProperties": false, "$defs": definitions});
    repository.commit(
        "first",
        &[
            ("clade.yaml", "schemas: {variables: s.json}\n"),
            ("s.json", &schema.to_string()),
            ("groups/all.yaml", &format!("name: All Nodes\nid: {ROOT}\n")),
        ],
    );
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--writes", "commit"]);
    daemon.wait_until("it is live", |it| it.get("/v1/groups").status == 200);
    let make = |variables: Value| {
        let body = json!({"name": "a", "parent": ROOT, "classes": {}, "variables": variables});
        daemon.request("POST", "/v1/groups", &body.to_string())
    };
    let refused = make(json!({"x": 1}));
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!(make(json!({})).status, 303);
    let bad = "name: b\nvariables: {x: 1}\n";
    let commit = repository.commit("second", &[("groups/b.yaml", bad)]);
    daemon.request("POST", "/controller/reconcile", "");
    daemon.wait_until("it is rejected", |it| {
        it.get(&format!("/controller/commits/{commit}")).json()["state"] == "rejected"
    });
    assert_eq!(daemon.get("/v1/groups").status, 200);
}

#[test]
fn a_schema_that_comes_is_found_where_it_was_looked_for() {
    let repository = GitRepository::new();
    let a = "$id: https://example.com/schemas/a.yaml\nproperties: {x: {$ref: b.yaml}}\n";
    repository.commit(
        "first",
        &[
            ("clade.yaml", "schemas: {variables: schemas/a.yaml}\n"),
            ("groups/all.yaml", &format!("name: All Nodes\nid: {ROOT}\n")),
            ("schemas/a.yaml", "type: object\n"),
        ],
    );
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let judged = |commit: &str, wanted: &str| {
        daemon.request("POST", "/controller/reconcile", "");
        daemon.wait_until(wanted, |it| {
            it.get(&format!("/controller/commits/{commit}")).json()["state"] == wanted
        });
    };
    judged(&repository.commit("second", &[("schemas/a.yaml", a)]), "rejected");
    judged(&repository.commit("third", &[("schemas/b.yaml", "type: integer\n")]), "live");
    let bad = "name: b\nvariables: {x: text}\n";
    judged(&repository.commit("fourth", &[("groups/b.yaml", bad)]), "rejected");
}
