use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::nodes::{NodeChange, Standing};
use super::*;
use crate::classification::{Conflicts, Outcome, Version, classified, classify, conflict_details};
use crate::hierarchy::Hierarchy;
use crate::masking::Masks;
use crate::model::{Group, Individual, Interpolation, Node};
use crate::rule;
use crate::table::each_row;

mod restricted;
mod reverting;
mod shared;
mod sorts;

/// A group as a random estate has it.
#[derive(Clone, Debug)]
struct Sketch {
    id: GroupId,
    name: String,
    parent: Option<usize>,
    rule: Option<Value>,
    environment: &'static str,
    trumps: bool,
    parameters: BTreeMap<&'static str, u8>,
}

fn build(sketches: &[Sketch]) -> Estate {
    let groups = sketches.iter().map(|sketch| {
        let parameters: serde_json::Map<String, Value> = sketch
            .parameters
            .iter()
            .map(|(name, value)| {
                ((*name).to_owned(), if *value == 0 { Value::Null } else { json!(value) })
            })
            .collect();
        let class = parameters.into_iter().map(|(name, value)| (name.parse().unwrap(), value));
        Group {
            id: sketch.id,
            name: sketch.name.parse().unwrap(),
            parent: sketch.parent.map_or(GroupId::ROOT, |it| sketches[it].id),
            environment: sketch.environment.parse().unwrap(),
            environment_trumps: sketch.trumps,
            description: None,
            rule: sketch.rule.as_ref().map(|it| rule::read(it).unwrap().into()),
            classes: Arc::new([("c".parse().unwrap(), class.collect())].into_iter().collect()),
            variables: Arc::default(),
            config_data: Arc::default(),
        }
    });
    Estate {
        hierarchy: Hierarchy::build(groups.collect()).unwrap(),
        individuals: Arc::default(),
        environments: Arc::default(),
        catalogues: Arc::default(),
        interpolation: Interpolation::Off,
    }
}

fn random(chance: &mut fastrand::Rng, number: usize) -> Sketch {
    let fact = ["a", "b"][chance.usize(..2)];
    let equal = json!(["=", ["fact", fact], chance.u8(..3).to_string()]);
    let rule = match chance.u8(..6) {
        0 => None,
        1 => Some(json!(["not", equal])),
        2 => Some(json!(["or", equal, ["=", ["fact", "a"], "1"]])),
        _ => Some(equal),
    };
    Sketch {
        id: format!("00000000-0000-4000-9000-{number:012}").parse().unwrap(),
        name: format!("G{number}"),
        parent: (number > 0 && chance.bool()).then(|| chance.usize(..number)),
        rule,
        environment: ["production", "staging"][usize::from(chance.u8(..8) == 0)],
        trumps: chance.u8(..8) == 0,
        parameters: ["p", "q"]
            .into_iter()
            .map(|it| (it, chance.u8(..4)))
            .filter(|(_, value)| *value < 2)
            .collect(),
    }
}

/// Who conflicts in which value, in no order of the tree.
fn shares(hierarchy: &Hierarchy, conflicts: &Conflicts<'_>) -> BTreeSet<String> {
    let details = conflict_details(hierarchy, conflicts);
    let parameters = ["p", "q"].map(|it| (it, &details["classes"]["c"][it]));
    let mut shares = BTreeSet::new();
    for (key, list) in [("environment", &details["environment"])].into_iter().chain(parameters) {
        for share in list.as_array().into_iter().flatten() {
            shares.insert(format!("{key} {} {}", share["value"], share["from"]["name"]));
        }
    }
    shares
}

fn compare<'a>(base: &'a Estate, head: &'a Estate) -> StateComparison<'a> {
    static ORIGINS: BTreeMap<GroupId, Place> = BTreeMap::new();
    static NODES: BTreeMap<String, Place> = BTreeMap::new();
    let side = |estate| Side { estate, origins: &ORIGINS, node_origins: &NODES };
    StateComparison::new(side(base), side(head))
}

/// What a node gets, as the API answers it, without the ids of groups.
fn answer(estate: &Estate, node: &Node) -> Value {
    let explanation = classify(estate, node).unwrap();
    // In which order groups stand follows from the tree and does not matter.
    let matching: BTreeSet<GroupId> =
        explanation.matches.iter().map(|it| estate.hierarchy.group(it.group).id).collect();
    match &explanation.outcome {
        Outcome::Classified(result) => {
            let mut document = classified(&explanation, result, Version::V1);
            document["groups"] = json!(matching);
            document
        }
        Outcome::Conflict(conflicts) => {
            json!([matching, shares(&estate.hierarchy, conflicts)])
        }
    }
}

#[test]
fn a_node_differs_if_and_only_if_its_answer_does() {
    let mut chance = fastrand::Rng::with_seed(6);
    let (mut same, mut different) = (0, 0);
    for _ in 0..300 {
        let size = chance.usize(3..14);
        let before: Vec<Sketch> = (0..size).map(|number| random(&mut chance, number)).collect();
        let mut after = before.clone();
        for _ in 0..chance.usize(1..3) {
            let changed = chance.usize(..size);
            let id = after[changed].id;
            after[changed] = Sketch { id, ..random(&mut chance, changed) };
        }
        if chance.bool() {
            after.push(random(&mut chance, size));
        }
        let (base, head) = (build(&before), build(&after));
        let comparison = compare(&base, &head);
        for number in 0..9 {
            let mut node = Node::named(format!("n{number}"));
            node.fact.insert("a".to_owned(), json!(number / 3));
            node.fact.insert("b".to_owned(), json!(number % 3));
            let differs = answer(&base, &node) != answer(&head, &node);
            let change = comparison.node(&node).change;
            assert_eq!(change.is_some(), differs, "{:?}\n{change:?}", comparison.groups());
            if let Some(change) = change {
                different += 1;
                assert!(
                    change.changes.iter().all(|it| !it.causes.changes().is_empty()),
                    "{change:?}"
                );
            } else {
                same += 1;
            }
        }
    }
    assert!(same > 300 && different > 300, "{same} {different}");
}

#[test]
fn what_is_set_for_a_node_alone_counts() {
    let base = build(&[]);
    let mut head = base.clone();
    let classes = [("c".parse().unwrap(), [].into_iter().collect())].into_iter().collect();
    Arc::make_mut(&mut head.individuals)
        .insert("n1".to_owned(), Individual { classes, ..Individual::default() });
    let comparison = compare(&base, &head);
    let change = comparison.node(&Node::named("n1")).change.unwrap();
    assert_eq!(change.changes[0].what, Difference::ClassAdded("c".to_owned()));
    assert_eq!(change.changes[0].causes, Causes::Each([ChangeRef::NodeFile(0)].into()));
    assert_eq!(comparison.node(&Node::named("n2")).change, None);
}

#[test]
fn a_setting_is_a_cause_like_a_change_of_a_group() {
    let sketches: Vec<Sketch> = Vec::new();
    let mut base = build(&sketches);
    let value = |text: &str| Individual {
        variables: [("v".parse().unwrap(), json!(text))].into_iter().collect(),
        ..Individual::default()
    };
    let set = |estate: &mut Estate, text: &str| {
        Arc::make_mut(&mut estate.individuals).insert("n1".to_owned(), value(text));
    };
    set(&mut base, "$a");
    let mut head = Estate { interpolation: Interpolation::On, ..base.clone() };
    let mut node = Node::named("n1");
    node.fact.insert("a".to_owned(), json!("x"));
    let causes = |head: &Estate| {
        let comparison = compare(&base, head);
        let change = comparison.node(&node).change.unwrap();
        let mut survey = Survey::default();
        let standing = [Standing::Classified; 2];
        survey.extend([("n1".to_owned(), NodeComparison { standing, change: Some(change) })]);
        let impact = Impact::gather(comparison.groups().to_vec(), Vec::new(), survey).unwrap();
        let written = serde_json::to_value(&impact).unwrap();
        let read =
            Impact::read(comparison.groups().to_vec(), Vec::new(), written.as_object().unwrap());
        (impact.entries[0].changes[0].causes.clone(), written["changes"][0]["causes"].clone(), read)
    };
    let (found, written, read) = causes(&head);
    assert_eq!(found, Causes::Each([ChangeRef::Interpolation].into()));
    assert_eq!(written, json!([{"change": "modified", "setting": "interpolate"}]));
    assert_eq!(read.unwrap().entries[0].changes[0].causes, found);
    // The setting and another value, of which each alone gives something else.
    set(&mut head, "$a!");
    let comparison = compare(&base, &head);
    let change = comparison.node(&node).change.unwrap();
    let both = [ChangeRef::NodeFile(0), ChangeRef::Interpolation];
    assert_eq!(change.changes[0].causes, Causes::Together(both.into()));
}

#[test]
fn secrets_are_compared_and_not_shown() {
    let mut base = build(&[]);
    base.interpolation = Interpolation::On;
    let set = |estate: &Estate, text: &str| {
        let variables = [("v".parse().unwrap(), json!(text))].into_iter().collect();
        let own = Individual { variables, ..Individual::default() };
        let mut estate = estate.clone();
        Arc::make_mut(&mut estate.individuals).insert("n1".to_owned(), own);
        estate
    };
    let mut node = Node::named("n1");
    let secrets = [("password", "x"), ("old_password", "y"), ("same_password", "x"), ("os", "z")];
    node.fact.extend(secrets.map(|(name, value)| (name.to_owned(), json!(value))));
    let rows = [
        ("$old_password", "$password", Some(["[masked]"; 2])),
        ("$same_password", "$password", None),
        ("x", "$password", None),
        ("a $password", "b $password $os", Some(["a [masked]", "b [masked] z"])),
    ];
    each_row(rows, |(before, after, expected)| {
        let (base, head) = (set(&base, before), set(&base, after));
        let comparison = compare(&base, &head).masked_by(Masks::default());
        let shown = comparison.node(&node).change.map(|it| match &it.changes[0].what {
            Difference::Value(it) => {
                [&it.old, &it.new].map(|it| Value::clone(it.as_ref().unwrap()))
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(shown, expected.map(|it| it.map(Value::from)));
    });
}

#[test]
fn nodes_with_the_same_change_stand_together() {
    let change = |name: &str| NodeChange {
        changes: vec![Change {
            what: Difference::ClassAdded(name.to_owned()),
            causes: Causes::Each([ChangeRef::Group(0)].into()),
        }],
    };
    let changed = [("b", "x"), ("c", "y"), ("a", "x")];
    let standing = [Standing::Classified; 2];
    let changed = changed.map(|(node, class)| {
        (node.to_owned(), NodeComparison { standing, change: Some(change(class)) })
    });
    let mut survey = Survey::default();
    survey.extend(changed);
    let impact = Impact::gather(Vec::new(), Vec::new(), survey).unwrap();
    let entries: Vec<Vec<String>> = impact.entries.iter().map(|it| it.nodes.clone()).collect();
    assert_eq!(entries, [vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]]);
    assert_eq!((impact.changed(), impact.nodes), (3, 3));
}
