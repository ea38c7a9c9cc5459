//! Facts in the values of whole answers.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::classification::{
    Outcome, Version, classified, classify, conflict_message, enc_document, explanation, hiera,
};
use crate::hierarchy::{Estate, Hierarchy, root_group};
use crate::model::{Group, GroupId, Individual, Interpolation, Node};

/// An estate with groups below the root group that every node matches.
fn estate(groups: &[Value], own: Option<&Value>) -> Estate {
    let id = |number: u64| -> GroupId {
        format!("00000000-0000-4000-8000-0000000000{number:02}").parse().unwrap()
    };
    let below = (1..).zip(groups).map(|(number, values)| {
        let mut group = root_group().unwrap();
        group.id = id(number);
        group.name = format!("g{number}").parse().unwrap();
        group.parent = values["parent"].as_u64().map_or(GroupId::ROOT, id);
        let table = |key: &str| serde_json::from_value(values[key].clone()).unwrap_or_default();
        group.classes = Arc::new(table("classes"));
        group.config_data = Arc::new(table("config_data"));
        let variables = values["variables"].clone();
        group.variables = Arc::new(serde_json::from_value(variables).unwrap_or_default());
        group
    });
    let groups: Vec<Group> = root_group().into_iter().chain(below).collect();
    let own = own.map(|own| {
        let variables = serde_json::from_value(own.clone()).unwrap();
        ("n".to_owned(), Individual { variables, ..Individual::default() })
    });
    Estate {
        hierarchy: Hierarchy::build(groups).unwrap(),
        individuals: Arc::new(own.into_iter().collect()),
        environments: Arc::default(),
        catalogues: Arc::default(),
        interpolation: Interpolation::On,
    }
}

fn node(fact: Value) -> Node {
    let Value::Object(fact) = fact else { panic!("facts") };
    Node { fact, ..Node::named("n") }
}

/// Returns the variables that come out, or the message of the conflict.
fn variables(estate: &Estate, node: &Node) -> Value {
    let explained = classify(estate, node).unwrap();
    match &explained.outcome {
        Outcome::Classified(result) => {
            classified(&explained, result, Version::V1)["parameters"].clone()
        }
        Outcome::Conflict(conflicts) => conflict_message(&estate.hierarchy, conflicts).into(),
    }
}

#[test]
fn what_is_written_is_inherited_and_compared_and_facts_come_last() {
    let same = node(json!({"a": "x", "b": "x"}));
    // Two texts conflict, also where they come to one value.
    let two = [json!({"variables": {"v": "$a"}}), json!({"variables": {"v": "$b"}})];
    let conflict = variables(&estate(&two, None), &same);
    let words = "defined conflicting values for the variables \"v\"";
    assert!(conflict.as_str().unwrap().contains(words), "{conflict}");
    // What is written without a reference is another text, too.
    let literal = [json!({"variables": {"v": "$a"}}), json!({"variables": {"v": "x"}})];
    assert!(variables(&estate(&literal, None), &same).is_string());
    // One text never conflicts, whatever it comes to.
    let one = [json!({"variables": {"v": "$a"}}), json!({"variables": {"v": "$a"}})];
    assert_eq!(variables(&estate(&one, None), &same), json!({"v": "x"}));
    // The nearest text wins, and the node's own over all.
    let nested = [
        json!({"variables": {"v": "$a", "w": "$b"}}),
        json!({"parent": 1, "variables": {"v": "[$b]"}}),
    ];
    assert_eq!(variables(&estate(&nested, None), &same), json!({"v": "[x]", "w": "x"}));
    let own = estate(&two, Some(&json!({"v": "$b"})));
    assert!(variables(&own, &same).is_string(), "a conflict stays one");
    let own = estate(&nested, Some(&json!({"v": "${b}!"})));
    assert_eq!(variables(&own, &same), json!({"v": "x!", "w": "x"}));
}

#[test]
fn a_node_without_facts_gets_empty_strings() {
    let estate = estate(&[json!({"variables": {"v": "<$a>", "w": "\\$6\\$"}})], None);
    assert_eq!(variables(&estate, &Node::named("n")), json!({"v": "<>", "w": "$6$"}));
}

#[test]
fn config_data_class_names_and_keys_are_not_touched() {
    let group = json!({
        "classes": {"a": {"p": {"$a": "$a"}}},
        "config_data": {"a": {"p": "$a %{facts.a}"}},
    });
    let (estate, node) = (estate(&[group], None), node(json!({"a": "x"})));
    let explained = classify(&estate, &node).unwrap();
    let Outcome::Classified(result) = &explained.outcome else { panic!("a conflict") };
    let document = classified(&explained, result, Version::V2);
    assert_eq!(document["classes"], json!({"a": {"p": {"$a": "x"}}}));
    assert_eq!(document["config_data"], json!({"a": {"p": "$a %{facts.a}"}}));
    assert_eq!(hiera(result), json!({"a::p": "$a %{facts.a}"}));
}

#[test]
fn without_the_setting_nothing_is_put_into_values() {
    let mut estate = estate(&[json!({"variables": {"v": "$a \\$"}})], None);
    estate.interpolation = Interpolation::Off;
    assert_eq!(variables(&estate, &node(json!({"a": "x"}))), json!({"v": "$a \\$"}));
}

#[test]
fn an_explanation_has_what_is_written_and_what_comes_out() {
    let groups = [json!({
        "classes": {"c": {"p": ["${a[k]} $b", 1], "q": "plain"}},
        "variables": {"v": "\\$"},
    })];
    let (estate, node) = (estate(&groups, None), node(json!({"a": {"k": 1}})));
    let document = explanation(&classify(&estate, &node).unwrap());
    let classes = &document["final_classification"]["classes"];
    assert_eq!(*classes, json!({"c": {"p": ["1 ", 1], "q": "plain"}}));
    let sources = &document["classification_sources"];
    let (id, of) = ("00000000-0000-4000-8000-000000000001", &sources["classes"]["c"]);
    let facts = json!({"a.k": 1, "b": null});
    let written = json!(["${a[k]} $b", 1]);
    assert_eq!(
        of["p"],
        json!({"value": ["1 ", 1], "sources": [id], "written": written, "facts": facts})
    );
    assert_eq!(of["q"], json!({"value": "plain", "sources": [id]}));
    assert_eq!(
        sources["variables"]["v"],
        json!({"value": "$", "sources": [id], "written": "\\$", "facts": {}})
    );
    let inherited = &document["inherited_classifications"][id];
    assert_eq!(inherited["variables"], json!({"v": "\\$"}), "groups show what is written");
}

#[test]
fn an_enc_document_escapes_what_facts_say() {
    let estate = estate(&[json!({"variables": {"v": "<$a>"}})], None);
    let big = "x".repeat(1 << 20);
    for evil in [
        "\"",
        "'",
        "\\",
        "${a}",
        "$a",
        "\n",
        "\r\n",
        "\u{2028}",
        "\u{85}",
        "\u{0}",
        "\u{feff}",
        "}: [",
        "*x",
        "&x",
        "!!x",
        "# no",
        "- a",
        "{\"a\": 1}",
        "</script>",
        "\u{1b}[31m",
        &big,
    ] {
        let node = node(json!({"a": evil}));
        let explained = classify(&estate, &node).unwrap();
        let Outcome::Classified(result) = &explained.outcome else { panic!("a conflict") };
        let text = enc_document(result);
        let expected = json!({"v": format!("<{evil}>")});
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["parameters"], expected, "{evil:?} as JSON");
        let read: Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(read["parameters"], expected, "{evil:?} as YAML");
        assert_eq!(text.lines().count(), 1, "{evil:?} stays on its line");
    }
}

#[test]
fn too_much_text_is_an_error_and_never_a_part_of_the_answer() {
    let estate = estate(&[json!({"variables": {"v": vec!["$a"; 9], "w": 1}})], None);
    let node = node(json!({"a": "x".repeat(1 << 20)}));
    let error = classify(&estate, &node).unwrap_err();
    assert_eq!(error.to_string(), "facts could not be put into `variables.v`");
    assert_eq!(error.name, "g1");
}
