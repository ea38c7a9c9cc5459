use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::hierarchy::{Hierarchy, root_group};
use crate::model::{Group, GroupId, Individual, memory_of};
use crate::rule;
use crate::table::each_row;

/// A group that every node matches.
fn group(number: u8, parent: u8, values: &Value) -> Group {
    let id = |number: u8| match number {
        0 => GroupId::ROOT,
        number => format!("00000000-0000-4000-8000-0000000000{number:02}").parse().unwrap(),
    };
    let mut group = root_group().unwrap();
    group.id = id(number);
    group.parent = id(parent);
    group.name = format!("g{number}").parse().unwrap();
    if let Some(rule) = values.get("rule") {
        group.rule = (!rule.is_null()).then(|| Arc::new(rule::read(rule).unwrap()));
    }
    if let Some(environment) = values["environment"].as_str() {
        group.environment = environment.parse().unwrap();
    }
    group.environment_trumps = values["trumps"] == true;
    group.classes = Arc::new(serde_json::from_value(values["classes"].clone()).unwrap_or_default());
    group.variables =
        Arc::new(serde_json::from_value(values["variables"].clone()).unwrap_or_default());
    group.config_data =
        Arc::new(serde_json::from_value(values["config_data"].clone()).unwrap_or_default());
    group
}

fn estate(groups: &[(u8, u8, Value)]) -> Estate {
    let groups = groups.iter().map(|(number, parent, values)| group(*number, *parent, values));
    let hierarchy = Hierarchy::build(groups.collect()).unwrap();
    Estate {
        hierarchy,
        individuals: Arc::default(),
        environments: Arc::default(),
        catalogues: Arc::default(),
        interpolation: crate::model::Interpolation::Off,
    }
}

fn answer(estate: &Estate) -> Value {
    let node = Node::named("n");
    let explained = classify(estate, &node).unwrap();
    match &explained.outcome {
        Outcome::Classified(result) => {
            let mut answer = classified(&explained, result, Version::V2);
            let groups = answer["groups"].as_array().unwrap();
            let names: Vec<String> =
                groups.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
            answer["groups"] = names.join(" ").into();
            answer.as_object_mut().unwrap().remove("name");
            answer
        }
        Outcome::Conflict(conflicts) => conflict_message(&estate.hierarchy, conflicts).into(),
    }
}

/// The groups of an estate.
type Groups = Vec<(u8, u8, Value)>;

/// Classifies a node of each estate.
fn assert_answers<const N: usize>(rows: [(Groups, Value); N]) {
    each_row(rows, |(groups, expected)| assert_eq!(answer(&estate(&groups)), expected));
}

#[test]
fn leaves_are_joined_and_differences_are_conflicts() {
    assert_answers([
        (
            vec![],
            json!({"groups": "All Nodes", "environment": "production", "classes": {}, "parameters": {}}),
        ),
        (
            vec![
                (1, 0, json!({"classes": {"a": {"x": 1}}, "variables": {"v": {"k": 1}}})),
                (
                    2,
                    0,
                    json!({"classes": {"a": {"y": [2]}, "b": {}}, "variables": {"v": {"k": 1}}}),
                ),
                (3, 1, json!({"rule": null, "classes": {"no": {}}})),
            ],
            json!({"groups": "All Nodes g1 g2", "environment": "production",
                "classes": {"a": {"x": 1, "y": [2]}, "b": {}}, "parameters": {"v": {"k": 1}}}),
        ),
        (
            vec![
                (1, 0, json!({"classes": {"a": {"h": {"x": 1}}}, "variables": {"v": 1}})),
                (2, 0, json!({"classes": {"a": {"h": {"y": 1}}}, "variables": {"v": 1.0}})),
                (3, 0, json!({"config_data": {"c": {"k": "x"}}})),
                (4, 0, json!({"config_data": {"c": {"k": "y"}}})),
            ],
            json!(
                "The node was classified into groups named \"g1\", \"g2\", \"g3\", and \"g4\" that defined \
                conflicting values for the class parameters \"a::h\", the variables \"v\", and the config data \
                \"c::k\". See the `details` key for all conflicts."
            ),
        ),
    ]);
}

#[test]
fn an_environment_group_trumps_others() {
    assert_answers([
        (
            vec![
                (1, 0, json!({"environment": "staging"})),
                (2, 0, json!({"environment": "dev", "trumps": true})),
                (3, 0, json!({"environment": "dev", "trumps": true})),
            ],
            json!({"groups": "All Nodes g1 g2 g3", "environment": "dev", "classes": {}, "parameters": {}}),
        ),
        (
            vec![
                (1, 0, json!({"environment": "staging"})),
                (2, 0, json!({"environment": "dev", "trumps": true})),
                (3, 0, json!({"environment": "test", "trumps": true})),
            ],
            json!(
                "The node was classified into groups named \"g2\" and \"g3\" that defined conflicting values \
                for the environment. See the `details` key for all conflicts."
            ),
        ),
        (
            // A trumping parent does not trump: the flag is the leaf's own.
            vec![
                (1, 0, json!({"environment": "dev", "trumps": true})),
                (2, 1, json!({"environment": "dev"})),
                (3, 0, json!({"environment": "staging"})),
            ],
            json!(
                "The node was classified into groups named \"g2\" and \"g3\" that defined conflicting values \
                for the environment. See the `details` key for all conflicts."
            ),
        ),
    ]);
}

#[test]
fn a_failing_ancestor_hides_its_descendants() {
    let never = json!(["=", "name", "other"]);
    let estate = estate(&[
        (1, 0, json!({"rule": never})),
        (2, 1, json!({"classes": {"hidden": {}}})),
        (3, 0, json!({"rule": null})),
        (4, 3, json!({"classes": {"shown": {}}})),
    ]);
    assert_eq!(answer(&estate)["groups"], "All Nodes g4");
}

#[test]
fn individual_values_override_without_conflict_and_null_removes() {
    let mut estate = estate(&[(
        1,
        0,
        json!({
            "classes": {"a": {"x": 1, "y": 1}}, "variables": {"v": 1, "w": 1}, "config_data": {"c": {"k": 1}}
        }),
    )]);
    let individual = Individual {
        classes: serde_json::from_value(json!({"a": {"x": 2, "y": null}, "own": {}})).unwrap(),
        variables: serde_json::from_value(json!({"v": null, "w": 2})).unwrap(),
        config_data: serde_json::from_value(json!({"c": {"k": null}})).unwrap(),
    };
    Arc::make_mut(&mut estate.individuals).insert("n".to_owned(), individual);
    assert_eq!(
        answer(&estate),
        json!({"groups": "All Nodes g1", "environment": "production",
            "classes": {"a": {"x": 2}, "own": {}}, "parameters": {"w": 2}})
    );
    let node = Node::named("n");
    let document = explanation(&classify(&estate, &node).unwrap());
    assert_eq!(
        document["classification_sources"]["classes"]["a"],
        json!({
            "puppetlabs.classifier/sources": ["00000000-0000-4000-8000-000000000001", "node"],
            "x": {"value": 2, "sources": ["node"]},
        })
    );
    assert_eq!(document["individual_classification"]["variables"], json!({"v": null, "w": 2}));
}

#[test]
fn a_conflict_names_leaf_and_definer_as_whole_groups() {
    let estate = estate(&[
        (1, 0, json!({"variables": {"v": "one"}})),
        (2, 1, json!({})),
        (3, 0, json!({"variables": {"v": "two"}})),
        (4, 0, json!({"variables": {"v": null}})),
    ]);
    let node = Node::named("n");
    let document = explanation(&classify(&estate, &node).unwrap());
    let differences = document["conflicts"]["variables"]["v"].as_array().unwrap();
    let names: Vec<String> = differences
        .iter()
        .map(|it| format!("{} {} {}", it["value"], it["from"]["name"], it["defined_by"]["name"]))
        .collect();
    assert_eq!(names, [r#""one" "g2" "g1""#, r#""two" "g3" "g3""#]);
    assert!(document.get("final_classification").is_none());
}

/// The details of two groups of 7 KB each that differ in 600 variables had 40 MB.
#[test]
fn the_details_of_a_conflict_have_a_limit_and_name_two_groups_however_large() {
    let variables = |count: usize, value: &str| -> Value {
        let all = (0..count).map(|it| (format!("v{it:04}"), value.into()));
        json!({"variables": all.collect::<serde_json::Map<String, Value>>()})
    };
    let details = |count: usize, value: &str| {
        let estate = estate(&[
            (1, 0, variables(count, value)),
            (2, 0, variables(count, &format!("{value}b"))),
        ]);
        let node = Node::named("n");
        let explained = classify(&estate, &node).unwrap();
        let Outcome::Conflict(conflicts) = &explained.outcome else { panic!("a conflict") };
        conflict_details(&estate.hierarchy, conflicts)["variables"].clone()
    };
    assert_eq!(details(100, "a").as_object().unwrap().len(), 100);
    let many = details(2000, "a");
    let first = many["v0000"].as_array().unwrap();
    assert!(first.len() == 2 && first[0]["from"]["variables"]["v1999"] == "a");
    let names: Vec<String> =
        (0..many.as_object().unwrap().len()).map(|it| format!("v{it:04}")).collect();
    assert!(many.as_object().unwrap().keys().eq(&names), "no value between is left out");
    assert!(many.as_object().unwrap().values().all(|it| it.as_array().unwrap().len() == 2));
    assert!((1_000_000..5_000_000).contains(&many.to_string().len()), "{}", many.to_string().len());
    assert!(
        memory_of(&many) < 40 << 20,
        "small values take many times their text: {}",
        memory_of(&many)
    );
    let large = details(2, &"x".repeat(3 << 20));
    let keys: Vec<(&String, usize)> = large
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, it)| (key, it.as_array().unwrap().len()))
        .collect();
    assert_eq!(keys, [(&"v0000".to_owned(), 2)]);
}

/// One parent that sets a variable and is long was written for each of the groups below it.
#[test]
fn the_first_value_of_a_conflict_has_two_sides_that_differ_and_no_more_leaves_than_fit() {
    let long = "x".repeat(200 << 10);
    let mut groups = vec![(1, 0, json!({"variables": {"v": "a", "long": long}}))];
    groups.extend((2..60).map(|it| (it, 1, json!({}))));
    groups.push((60, 1, json!({"variables": {"v": "b"}})));
    let estate = estate(&groups);
    let node = Node::named("n");
    let explained = classify(&estate, &node).unwrap();
    let Outcome::Conflict(conflicts) = &explained.outcome else { panic!("a conflict") };
    let details = conflict_details(&estate.hierarchy, conflicts);
    let sides = details["variables"]["v"].as_array().unwrap();
    let values: Vec<&str> = sides.iter().map(|it| it["value"].as_str().unwrap()).collect();
    let (last, others) = values.split_last().unwrap();
    assert!(*last == "b" && others.iter().all(|it| *it == "a"), "{values:?}");
    assert!((15..25).contains(&others.len()), "{}", others.len());
    assert!(details.to_string().len() < 5 << 20);
}

#[test]
fn config_data_is_flat_for_hiera() {
    let estate = estate(&[(
        1,
        0,
        json!({"config_data": {"profile::web": {"port": 443}, "ntp": {"a": [1]}}}),
    )]);
    let node = Node::named("n");
    let explained = classify(&estate, &node).unwrap();
    let Outcome::Classified(result) = &explained.outcome else { panic!("no conflict") };
    assert_eq!(hiera(result), json!({"ntp::a": [1], "profile::web::port": 443}));
}

#[test]
fn the_enc_document_leaves_out_an_environment_that_the_agent_chooses() {
    for (environment, expected) in [
        (
            "dev",
            "{\"classes\": {\"a\": {\"x\": 1}}, \"parameters\": {}, \"environment\": \"dev\"}\n",
        ),
        ("agent-specified", "{\"classes\": {\"a\": {\"x\": 1}}, \"parameters\": {}}\n"),
    ] {
        let estate =
            estate(&[(1, 0, json!({"environment": environment, "classes": {"a": {"x": 1}}}))]);
        let node = Node::named("n");
        let explained = classify(&estate, &node).unwrap();
        let Outcome::Classified(result) = &explained.outcome else { panic!("no conflict") };
        assert_eq!(enc_document(result), expected);
    }
}
