//! The schemas say of a document what `clade validate` says of its shape.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use clade::internals::diagnostic::Kind;
use clade::internals::document::{self, Limits};
use clade::internals::validation::{Search, SourceContent, SourceFile, validate};
use serde_json::{Value, json};

use crate::program::root;

fn schema(kind: &str) -> Value {
    let text = std::fs::read_to_string(root().join(format!("schemas/{kind}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn kind_of(path: &str) -> (&'static str, &'static str) {
    match path {
        "group" => ("group", "groups/x.yaml"),
        "node" => ("node", "nodes/x.yaml"),
        "environment" => ("environment", "environments/x.yaml"),
        "test" => ("test", "tests/x.yaml"),
        _ => ("clade", "clade.yaml"),
    }
}

/// The findings that a schema can make as well.
const OF_SHAPE: &[Kind] = &[Kind::SchemaViolation, Kind::MalformedUuid, Kind::InvalidRule];

/// Returns whether validation finds nothing wrong with the shape of a document.
fn is_well_shaped(path: &str, document: &Value) -> bool {
    let bytes = document.to_string().into_bytes();
    let file = SourceFile { path: path.into(), content: SourceContent::Bytes(bytes.into()) };
    let checked = validate(&[file], Search::Everything);
    !checked.diagnostics.iter().any(|it| OF_SHAPE.contains(&it.kind))
}

/// Documents with names that Puppet fails on, or not, and whether they have the shape of their kind.
fn names() -> Vec<(&'static str, Value, bool)> {
    vec![
        ("group", json!({"name": "a", "variables": {"title": 1}}), false),
        ("group", json!({"name": "a", "variables": {"name": 1}}), false),
        ("group", json!({"name": "a", "variables": {"name": null, "names": 1}}), true),
        ("group", json!({"name": "a", "classes": {"b": {"title": 1}}}), true),
        ("group", json!({"name": "a", "classes": {"b": {"Port": 1}}}), true),
        ("group", json!({"name": "a", "classes": {"b": {"": 1}}}), true),
        ("group", json!({"name": "a", "classes": {"b": {"title": null, "titles": 1}}}), true),
        ("group", json!({"name": "a", "config_data": {"b": {"title": 1, "x y": 2}}}), true),
        ("node", json!({"classes": {"b": {"x y": 1}}}), true),
    ]
}

/// Documents of each kind, and whether they have its shape.
fn cases() -> Vec<(&'static str, Value, bool)> {
    vec![
        ("group", json!({"name": "a"}), true),
        (
            "group",
            json!({"name": "a", "classes": {"::b::c": {"p": [1, {"k": null}]}, "d": null}, "pinned": ["x"]}),
            true,
        ),
        (
            "group",
            json!({"name": "a", "rule": ["and", ["=", ["fact", "a", 0], "1"], ["not", ["~", "name", "x"]]]}),
            true,
        ),
        (
            "group",
            json!({"name": "a", "rule": "os.family = Debian", "environment": "agent-specified"}),
            true,
        ),
        ("group", json!({}), false),
        ("group", json!({"name": 5}), false),
        ("group", json!({"name": "  "}), false),
        ("group", json!({"name": "a", "nam": "b"}), false),
        ("group", json!({"name": "a", "id": "x"}), false),
        ("group", json!({"name": "a", "environment": "My-Env"}), false),
        ("group", json!({"name": "a", "environment_trumps": "yes"}), false),
        ("group", json!({"name": "a", "classes": {"B": {}}}), false),
        ("group", json!({"name": "a", "classes": {"b": []}}), false),
        ("group", json!({"name": "a", "classes": {"b": {"<<": 1}}}), false),
        ("group", json!({"name": "a", "variables": {"a": {"x".repeat(1025): 1}}}), false),
        ("group", json!({"name": "a", "variables": {"facts": 1}}), false),
        ("group", json!({"name": "a", "variables": {"42": 1}}), false),
        ("group", json!({"name": "a", "rule": ["and"]}), false),
        ("group", json!({"name": "a", "rule": ["!=", "name", "x"]}), false),
        ("group", json!({"name": "a", "rule": ["=", ["os"], "x"]}), false),
        ("group", json!({"name": "a", "rule": ["=", "name", 5]}), false),
        ("group", json!({"name": "a", "rule": ["=", ["fact", -1], "x"]}), false),
        ("group", json!({"name": "a", "pinned": "x"}), false),
        ("node", json!({"name": "n", "variables": {"a": null}}), true),
        ("node", json!({"environment": "x"}), false),
        ("environment", json!({"classes": {"a": {"parameters": {"p": 1}}, "b": null}}), true),
        ("environment", json!({"classes": {"a": {"parameter": {}}}}), false),
        ("environment", json!({"name": "X_1"}), true),
        ("environment", json!({"name": "x-1"}), false),
        (
            "environment",
            json!({
                "classes": {"a": {"parameters": {"p": null}, "types": {"p": "Optional[A::B]"}}},
                "type_aliases": {"A::B": "Integer[1, 5]"},
            }),
            true,
        ),
        (
            "environment",
            json!({"classes": {"a": {"parameters": {"p": 1}, "types": {"p": 5}}}}),
            false,
        ),
        (
            "environment",
            json!({"classes": {"a": {"parameters": {"p": 1}, "types": {"p": "integer"}}}}),
            false,
        ),
        ("environment", json!({"type_aliases": {"A::B": []}}), false),
        (
            "test",
            json!([{"name": "t", "node": "n", "expect": {"groups": [], "conflict": true}}]),
            true,
        ),
        ("test", json!([{"name": "t", "node": "n"}]), false),
        ("test", json!([{"name": "t", "node": "n", "expect": {"group": []}}]), false),
        (
            "test",
            json!([{"name": "t", "node": "n", "expect": {"conflict": false}, "facts": {}, "facts_file": "x"}]),
            false,
        ),
        ("test", json!([{"name": "t", "node": "n", "expect": {}}]), false),
        ("test", json!({}), false),
        ("clade", json!({"groups": "estate/groups", "policy": {"missing_referents": "off"}}), true),
        ("clade", json!({"schemas": {"variables": "s.json", "classes": {"a::*": "b.yml"}}}), true),
        ("clade", json!({"schemas": {"clases": {"a": "s.json"}}}), false),
        ("clade", json!({"schemas": {"classes": {"a": 5}}}), false),
        ("clade", json!({"groups": "../up"}), false),
        ("clade", json!({"policy": {"missing_referents": "never"}}), false),
        (
            "clade",
            json!({"policy": {"stale_pins": "error", "stale_pin_days": 90, "max_pins": 1, "too_many_pins": "off"}}),
            true,
        ),
        ("clade", json!({"policy": {"stale_pins": 90}}), false),
        ("clade", json!({"policy": {"max_pins": 0}}), false),
        ("clade", json!({"policy": {"max_pins": 2.5}}), false),
        ("clade", json!({"policy": {"stale_pin_days": "90"}}), false),
        ("clade", json!({"policy": {"stale_pin_days": 10_001}}), false),
    ]
}

#[test]
fn schemas_and_validation_agree_on_good_and_bad_documents() {
    for (kind, document, good) in cases().into_iter().chain(names()) {
        let (name, path) = kind_of(kind);
        let by_schema = jsonschema::draft7::is_valid(&schema(name), &document);
        assert_eq!(by_schema, good, "schema of {kind}: {document}");
        assert_eq!(is_well_shaped(path, &document), good, "validation of {kind}: {document}");
    }
}

/// The files of a run of `check-jsonschema` that do not fit the schema; `None` if it is not installed.
fn misfits(kind: &str, files: &[PathBuf]) -> Option<BTreeSet<PathBuf>> {
    let schema = root().join(format!("schemas/{kind}.json"));
    let mut command = Command::new("check-jsonschema");
    command.args(["--output-format", "json", "--schemafile"]).arg(schema).args(files);
    let Ok(output) = command.output() else {
        eprintln!("skipped: needs check-jsonschema");
        return None;
    };
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["parse_errors"].as_array().map_or(0, Vec::len), 0, "{report:#}");
    let errors = report["errors"].as_array().unwrap();
    Some(errors.iter().map(|it| it["filename"].as_str().unwrap().into()).collect())
}

#[test]
fn an_independent_validator_agrees_with_ours() {
    let directory = tempfile::tempdir().unwrap();
    for kind in ["group", "node", "environment", "test", "clade"] {
        let (mut files, mut bad) = (Vec::new(), BTreeSet::new());
        let cases = cases().into_iter().chain(names()).filter(|(of, ..)| *of == kind);
        for (number, (_, document, good)) in cases.enumerate() {
            let path = directory.path().join(format!("{kind}-{number}.yaml"));
            let text = document::write(&document, &|_| document::ValueLayout::Block);
            if text.lines().any(|it| it.len() > 1024) {
                // No reader of YAML 1.1 accepts such a key, so the schema is not checked.
                continue;
            }
            std::fs::write(&path, text).unwrap();
            if !good {
                bad.insert(path.clone());
            }
            files.push(path);
        }
        let made = files.len();
        let part = if kind == "clade" { "clade.yaml".to_owned() } else { format!("{kind}s") };
        for estate in ["fleet", "minimal", "broken"] {
            let part = root().join("examples").join(estate).join(&part);
            if part.is_file() {
                files.push(part);
            } else {
                files.extend(yaml_files(&part));
            }
        }
        // What `clade validate` says of the shape of the examples.
        for path in &files[made..] {
            let bytes: Arc<[u8]> = std::fs::read(path).unwrap().into();
            let name = path.file_name().unwrap().to_str().unwrap();
            let name = if kind == "clade" { name.to_owned() } else { format!("{part}/{name}") };
            let file =
                SourceFile { path: name.into(), content: SourceContent::Bytes(Arc::clone(&bytes)) };
            let documents = document::read(&bytes, &Limits::DEFAULT);
            if documents.documents.len() != 1 || !documents.faults.is_empty() {
                continue;
            }
            if validate(&[file], Search::Everything)
                .diagnostics
                .iter()
                .any(|it| OF_SHAPE.contains(&it.kind))
            {
                bad.insert(path.clone());
            }
        }
        files.retain(|path| {
            let contents = document::read(&std::fs::read(path).unwrap(), &Limits::DEFAULT);
            contents.documents.len() == 1 && contents.faults.is_empty()
        });
        let Some(found) = misfits(kind, &files) else { return };
        assert_eq!(found, bad, "{kind}");
        assert!(!bad.is_empty() && bad.len() < files.len(), "{kind}: {files:?}");
    }
}

#[test]
fn the_examples_fit_the_schemas() {
    let mut seen = 0;
    for estate in ["examples/fleet", "examples/minimal"] {
        for (directory, kind) in [
            ("groups", "group"),
            ("nodes", "node"),
            ("environments", "environment"),
            ("tests", "test"),
        ] {
            let schema = schema(kind);
            for path in yaml_files(&root().join(estate).join(directory)) {
                let contents = document::read(&std::fs::read(&path).unwrap(), &Limits::DEFAULT);
                for document in &contents.documents {
                    assert!(
                        jsonschema::draft7::is_valid(&schema, &document.to_value()),
                        "{}",
                        path.display()
                    );
                    seen += 1;
                }
                check_modeline(&path, kind);
            }
        }
    }
    assert!(seen > 40, "the examples are there");
}

/// The first line names the schema, by a way that leads to it.
fn check_modeline(path: &Path, kind: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.contains("yaml-language-server")).unwrap_or_default();
    let way = line.split_once("$schema=").unwrap_or_else(|| panic!("{}", path.display())).1;
    let target = path.parent().unwrap().join(way).canonicalize();
    let expected = root().join(format!("schemas/{kind}.json")).canonicalize().unwrap();
    assert_eq!(target.ok(), Some(expected), "{}", path.display());
}

fn yaml_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|it| it == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn every_key_is_described_and_has_an_example() {
    fn check(schema: &Value, at: &str) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (key, property) in properties {
                let at = format!("{at}/{key}");
                assert!(property["description"].is_string(), "{at} has no description");
                assert!(property["examples"].is_array(), "{at} has no example");
                check(property, &at);
            }
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(inner) {
                check(inner, at);
            }
        }
    }
    for kind in ["group", "node", "environment", "test", "clade"] {
        check(&schema(kind), kind);
    }
}
