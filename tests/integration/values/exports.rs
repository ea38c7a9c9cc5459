//! Exports of Puppet Enterprise's own groups, classified with facts of real machines.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::{root, run};

const PRIMARY: &str = "primary.example.com";

/// The OIDs that peadm uses for the role of a machine and its availability group.
const ROLE: &str = "1.3.6.1.4.1.34380.1.1.9812";
const AVAILABILITY: &str = "1.3.6.1.4.1.34380.1.1.9813";

/// An export and what was imported from it.
struct Imported {
    export: Vec<Value>,
    directory: tempfile::TempDir,
}

impl Imported {
    fn new(export: Vec<Value>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("export.json");
        std::fs::write(&file, Value::from(export.clone()).to_string()).unwrap();
        let it = Self { export, directory };
        let done = run(&["import", file.to_str().unwrap(), &it.estate()]);
        assert_eq!(done.status, 0, "{}", done.stderr);
        let validated = run(&["validate", &it.estate()]);
        assert_eq!(validated.status, 0, "{}", validated.stdout);
        it
    }

    fn estate(&self) -> String {
        self.directory.path().join("estate").to_str().unwrap().to_owned()
    }

    /// Returns the names of the groups of a node but for the root group, and its answer.
    fn classify(&self, name: &str, fact: &Value, trusted: &Value) -> (Vec<&str>, Value) {
        let file = self.directory.path().join("facts.json");
        std::fs::write(&file, json!({"fact": fact, "trusted": trusted}).to_string()).unwrap();
        let done = run(&["classify", name, &self.estate(), "--facts", file.to_str().unwrap()]);
        assert_eq!(done.status, 0, "{}", done.stderr);
        let answer: Value = serde_json::from_str(&done.stdout).unwrap();
        let ids = answer["groups"].as_array().unwrap();
        let name = |id: &Value| {
            let group = self.export.iter().find(|it| it["id"] == *id);
            group.and_then(|it| it["name"].as_str()).unwrap_or("none")
        };
        let mut names: Vec<&str> = ids.iter().map(name).filter(|it| *it != "All Nodes").collect();
        names.sort_unstable();
        (names, answer)
    }

    /// Checks that an export has every value as it was, in the same bytes.
    fn check_values(&self) {
        let done = run(&["export", &self.estate()]);
        let exported: Vec<Value> = serde_json::from_str(&done.stdout).unwrap();
        let mut values = 0;
        for group in &self.export {
            let again = exported.iter().find(|it| it["id"] == group["id"]).unwrap();
            for (class, parameters) in group["classes"].as_object().unwrap() {
                for (key, value) in parameters.as_object().unwrap() {
                    let after = &again["classes"][class][key];
                    assert_eq!(after.to_string(), value.to_string(), "{class} {key}");
                    values += 1;
                }
            }
            assert_eq!(again["variables"], group["variables"]);
        }
        assert!(values > 5, "{values}");
    }
}

/// Returns an export; none where the data are not there.
fn export(file: &str) -> Option<Vec<Value>> {
    let path = root().join("../shared/data/groups").join(file);
    let Ok(text) = std::fs::read_to_string(path) else {
        eprintln!("skipped: needs ../shared");
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

/// Returns the facts of real machines.
fn machines() -> Vec<(PathBuf, Value)> {
    let directory = root().join("../shared/data/facts/5.1");
    let read = |path: PathBuf| {
        let facts = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (path, facts)
    };
    let all: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|it| read(it.unwrap().path())).collect();
    assert!(all.len() > 5);
    all
}

fn is_agent(facts: &Value) -> bool {
    facts["aio_agent_version"].as_str().is_some_and(|it| !it.is_empty())
}

#[test]
fn the_default_groups_give_agents_what_they_gave_in_the_console() {
    let Some(groups) = export("pe-2016-default-groups.json") else { return };
    let imported = Imported::new(groups);
    assert!(!Path::new(&imported.estate()).join("clade.yaml").exists(), "no value has a `$`");
    imported.check_values();
    let mut agents = 0;
    for (path, facts) in machines() {
        let name = "agent1.example.com";
        let (groups, answer) = imported.classify(name, &facts, &json!({"certname": name}));
        let classes: Vec<&String> = answer["classes"].as_object().unwrap().keys().collect();
        if is_agent(&facts) {
            agents += 1;
            assert_eq!(
                groups,
                ["PE Agent", "PE MCollective", "Production environment"],
                "{path:?}"
            );
            let expected = [
                "puppet_enterprise",
                "puppet_enterprise::profile::agent",
                "puppet_enterprise::profile::mcollective::agent",
            ];
            assert_eq!(classes, expected, "{path:?}");
            let settings = answer["classes"]["puppet_enterprise"].as_object().unwrap();
            assert_eq!((settings.len(), &settings["database_port"]), (14, &json!("5432")));
        } else {
            assert_eq!((groups, classes.len()), (vec!["Production environment"], 0), "{path:?}");
        }
        assert_eq!(answer["environment"], "production");
    }
    assert!(agents > 3, "{agents}");
}

#[test]
fn groups_of_peadm_put_the_name_of_a_compiler_into_its_values() {
    let Some(mut groups) = export("pe-2023-peadm-style-groups.json") else { return };
    // The rule that peadm gives the group above the compilers.
    let master = groups.iter_mut().find(|it| it["name"] == "PE Master").unwrap();
    master["rule"] = json!([
        "or",
        ["and", ["=", ["trusted", "extensions", "pp_auth_role"], "pe_compiler"]],
        ["=", "name", PRIMARY],
    ]);
    let imported = Imported::new(groups);
    let settings = std::fs::read_to_string(format!("{}/clade.yaml", imported.estate())).unwrap();
    assert_eq!(settings, "interpolate: true\n");
    imported.check_values();
    let mut agents = 0;
    for (path, mut facts) in machines().into_iter().filter(|(_, facts)| is_agent(facts)) {
        agents += 1;
        // Facts come from the machine, and prove nothing.
        facts["trusted"] = json!({"certname": "forged"});
        let name = format!("compiler{agents}.example.com");
        let extensions = |availability: &str| {
            json!({
                "pp_auth_role": "pe_compiler", ROLE: "puppet/compiler", AVAILABILITY: availability,
            })
        };
        let trusted =
            |availability| json!({"certname": name, "extensions": extensions(availability)});
        let usual = ["All Environments", "PE Agent", "PE Compiler"];
        let others = ["PE Infrastructure Agent", "PE Master", "Production environment"];
        for (availability, hosts) in
            [("A", json!([name, "replica.example.com"])), ("C", json!([name]))]
        {
            let (groups, answer) = imported.classify(&name, &facts, &trusted(availability));
            let group_a: &[&str] = if availability == "A" { &["PE Compiler Group A"] } else { &[] };
            assert_eq!(groups, [&usual[..], group_a, &others[..]].concat(), "{path:?}");
            assert_eq!(
                answer["classes"]["puppet_enterprise::profile::master"],
                json!({"puppetdb_host": hosts, "puppetdb_port": [8081]}),
                "{path:?}"
            );
            assert_eq!(answer["parameters"], json!({"pe_master": true}));
            assert_eq!(answer["environment"], "production");
        }
    }
    assert!(agents > 3, "{agents}");
    let (groups, answer) =
        imported.classify(PRIMARY, &json!({}), &json!({"certname": PRIMARY, "extensions": {}}));
    assert!(groups.contains(&"PE Certificate Authority") && !groups.contains(&"PE Compiler"));
    assert_eq!(answer["classes"]["puppet_enterprise::profile::master"], json!({}));
}
