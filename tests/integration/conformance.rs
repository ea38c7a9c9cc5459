//! Known answers: those of the 2014 reference classifier on cases of our own.
//!
//! The project carries cases of its own; where another set is beside the checkout, it is used as well.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use clade::internals::classification::{self, Outcome, Version, classify};
use clade::internals::hierarchy::{Estate, Hierarchy};
use clade::internals::model::{Group, Interpolation, Node};
use clade::internals::rule;
use serde_json::{Map, Value};

/// Returns every line of the carried file, and of the shared one if it exists.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(root.join("tests/conformance").join(name)).unwrap();
    match std::fs::read_to_string(root.join("../shared/vectors").join(name)) {
        Ok(more) => text.push_str(&more),
        Err(_) => eprintln!(
            "skipped: needs ../shared for all cases of {name}; those in tests/conformance are run"
        ),
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    lines.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn node(value: &Value) -> Node {
    let object = |key: &str| value[key].as_object().cloned().unwrap_or_default();
    Node {
        name: value["name"].as_str().unwrap().to_owned(),
        fact: object("fact"),
        trusted: object("trusted"),
    }
}

fn group(value: &Value) -> Group {
    let field = |key: &str| serde_json::from_value(value[key].clone()).unwrap();
    Group {
        id: value["id"].as_str().unwrap().parse().unwrap(),
        name: value["name"].as_str().unwrap().parse().unwrap(),
        parent: value["parent"].as_str().unwrap().parse().unwrap(),
        environment: value["environment"].as_str().unwrap().parse().unwrap(),
        environment_trumps: value["environment_trumps"] == true,
        description: value["description"].as_str().map(Arc::from),
        rule: value.get("rule").map(|rule| Arc::new(rule::read(rule).unwrap())),
        classes: Arc::new(field("classes")),
        variables: Arc::new(serde_json::from_value(value["variables"].clone()).unwrap()),
        config_data: Arc::default(),
    }
}

/// Returns whether the reference errs in this case: it compares what is not a 32-bit integer as
/// 32-bit floats, so that different numbers are equal to it. Ours are compared exactly.
fn is_lost_precision(case: &Value) -> bool {
    let float = |value: &Value| value.as_str().and_then(|text| text.trim().parse::<f64>().ok());
    let (Some(fact), Some(operand)) = (float(&case["node"]["fact"]["x"]), float(&case["rule"][2]))
    else {
        return false;
    };
    #[expect(clippy::cast_possible_truncation, reason = "the loss is what is looked for")]
    let equal_to_it = (fact as f32).to_bits() == (operand as f32).to_bits();
    case["rule"][0] != "=" && fact.to_bits() != operand.to_bits() && equal_to_it
}

#[test]
fn rules_match_as_in_the_reference() {
    let cases = cases("rules.jsonl");
    assert!(cases.len() > 500, "the cases are there");
    for case in cases.iter().filter(|case| !is_lost_precision(case)) {
        let condition = rule::read(&case["rule"]).unwrap();
        let found = rule::evaluate(&condition, &node(&case["node"])).unwrap();
        assert_eq!(found, case["match"] == true, "{case}");
    }
}

#[test]
fn nodes_are_classified_as_in_the_reference() {
    let cases = cases("classification.jsonl");
    assert!(cases.len() >= 30, "the cases are there");
    for case in &cases {
        let groups = case["groups"].as_array().unwrap().iter().map(group).collect();
        let estate = Estate {
            hierarchy: Hierarchy::build(groups).unwrap(),
            individuals: Arc::default(),
            environments: Arc::default(),
            catalogues: Arc::default(),
            interpolation: Interpolation::Off,
        };
        for expected in case["nodes"].as_array().unwrap() {
            check(&estate, expected);
        }
    }
}

fn check(estate: &Estate, expected: &Value) {
    let node = node(&expected["node"]);
    let explained = classify(estate, &node).unwrap();
    let document = classification::explanation(&explained);
    let case = format!("node {} of the case {expected}", node.name);
    assert_eq!(document["match_explanations"], expected["match_explanations"], "{case}");
    assert_eq!(keys(&document["leaf_groups"]), strings(&expected["leaf_groups"]), "{case}");
    let mut inherited = document["inherited_classifications"].clone();
    for leaf in inherited.as_object_mut().unwrap().values_mut() {
        leaf.as_object_mut().unwrap().remove("config_data");
    }
    assert_eq!(inherited, expected["inherited_classifications"], "{case}");
    match &explained.outcome {
        Outcome::Classified(result) => {
            let mut answer = classification::classified(&explained, result, Version::V1);
            answer["groups"] = strings(&answer["groups"]).into_iter().collect();
            assert_eq!(answer, expected["classified"], "{case}");
        }
        Outcome::Conflict(_) => {
            assert_eq!(expected["status"], 500, "{case}");
            check_conflicts(&document["conflicts"], &expected["conflicts"], &case);
        }
    }
}

/// Compares conflicts by the ids of the groups. Of leaves with equal classifications the
/// reference reports only one, so each of its entries must be among ours, and each value of ours
/// among its.
fn check_conflicts(ours: &Value, theirs: &Value, case: &str) {
    let (ours, theirs) = (flat(ours), flat(theirs));
    let paths = |all: &[(String, Value)]| -> BTreeSet<String> {
        all.iter().map(|(path, _)| path.clone()).collect()
    };
    assert_eq!(paths(&ours), paths(&theirs), "{case}");
    for (path, entry) in &theirs {
        assert!(ours.contains(&(path.clone(), entry.clone())), "{path} {entry} of {case}");
    }
    for (path, entry) in &ours {
        let same_value = |(at, it): &(String, Value)| at == path && it["value"] == entry["value"];
        assert!(theirs.iter().any(same_value), "{path} {entry} of {case}");
    }
}

/// Lists every entry of conflict details with its path; groups become ids.
fn flat(details: &Value) -> Vec<(String, Value)> {
    fn walk(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
        match value {
            Value::Array(entries) => {
                for entry in entries {
                    let mut entry: Map<String, Value> = entry.as_object().unwrap().clone();
                    for key in ["from", "defined_by"] {
                        if let Some(id) = entry[key].get("id").cloned() {
                            entry[key] = id;
                        }
                    }
                    found.push((path.to_owned(), entry.into()));
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    walk(&format!("{path}/{key}"), field, found);
                }
            }
            other => panic!("{other} is not a conflict"),
        }
    }
    let mut found = Vec::new();
    walk("", details, &mut found);
    found
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

fn strings(value: &Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}
