//! Small estates and all nodes of a small world: the conflicts that these nodes have are found, and
//! what is found was seen. `PROPTEST_CASES=10000 cargo test --lib oracle` tries more estates.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::classification::{Explanation, classify};
use crate::hierarchy::{GroupIndex, Hierarchy, Inherited, root_group};
use crate::model::{Classes, Group, GroupId, Node, same};
use crate::rule::{Solver, read_console};

/// What decides how an estate is made: zeros make the simplest.
struct Dice<'d>(std::slice::Iter<'d, u8>);

impl Dice<'_> {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or_default()) % count
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const TESTS: &[&str] = &[
    "x = 1",
    "x = 2",
    "name = a",
    "name ~ b",
    "name ~ \"^a\"",
    "y ~ \"^$\"",
    "y ~ \".\"",
    "x > 1",
    "x <= 1",
    "t <: p",
    "t[0] = q",
    "t[0] = p",
    "trusted.certname = b",
    "y = u",
    "x = 1 or x = 2",
    "name = a or name = ab",
];

fn rule(dice: &mut Dice<'_>, depth: usize) -> String {
    match dice.below(8) {
        5 if depth > 0 => format!("not ({})", rule(dice, depth - 1)),
        6 if depth > 0 => format!("({} and {})", rule(dice, depth - 1), rule(dice, depth - 1)),
        7 if depth > 0 => format!("({} or {})", rule(dice, depth - 1), rule(dice, depth - 1)),
        _ => dice.one_of(TESTS).to_owned(),
    }
}

fn classes(dice: &mut Dice<'_>) -> Arc<Classes> {
    let mut parameters = serde_json::Map::new();
    for name in ["p", "q"] {
        let values =
            [None, None, Some(json!(1)), Some(json!(2)), Some(json!([1])), Some(json!(null))];
        if let Some(value) = &values[dice.below(values.len())] {
            parameters.insert(name.to_owned(), value.clone());
        }
    }
    let of_class = parameters.into_iter().map(|(key, value)| (key.parse().unwrap(), value));
    Arc::new([("c".parse().unwrap(), of_class.collect())].into_iter().collect())
}

fn estate(bytes: &[u8]) -> Estate {
    let mut dice = Dice(bytes.iter());
    let mut groups = vec![root_group().unwrap()];
    for number in 0..3 + dice.below(4) {
        let parent = groups[dice.below(groups.len())].id;
        let mut group = Group { parent, ..root_group().unwrap() };
        group.name = format!("G{number}").parse().unwrap();
        group.id = GroupId::of_name(&group.environment, &group.name);
        let has_rule = dice.below(6) < 5;
        group.rule = has_rule.then(|| read_console(&rule(&mut dice, 2)).unwrap().into());
        let environments = ["production", "production", "production", "staging", "test"];
        group.environment = dice.one_of(&environments).parse().unwrap();
        group.environment_trumps = dice.below(4) == 3;
        groups.push(group);
    }
    for group in &mut groups {
        group.classes = classes(&mut dice);
        if dice.below(4) == 3 {
            group.config_data = classes(&mut dice);
        }
        if let Some(value) = dice.one_of(&[None, Some("a"), Some("b")]) {
            group.variables =
                Arc::new([("v".parse().unwrap(), value.into())].into_iter().collect());
        }
    }
    Estate {
        hierarchy: Hierarchy::build(groups).unwrap(),
        individuals: Arc::default(),
        environments: Arc::default(),
        catalogues: Arc::default(),
        interpolation: crate::model::Interpolation::Off,
    }
}

fn nodes() -> Vec<Node> {
    let mut nodes = Vec::new();
    for name in ["a", "b", "ab", "c"] {
        for x in [json!(null), json!(1), json!("2")] {
            for y in [json!(null), json!(""), json!("u")] {
                for t in [json!(null), json!(["p"]), json!(["q", "p"]), json!(["q"])] {
                    let fact = json!({"x": x, "y": y, "t": t});
                    nodes.push(Node {
                        name: name.to_owned(),
                        fact: fact.as_object().unwrap().clone(),
                        trusted: json!({"certname": name}).as_object().unwrap().clone(),
                    });
                }
            }
        }
    }
    nodes
}

/// Two leaves, and what they conflict about.
type RealConflict = (GroupIndex, GroupIndex, String);

/// Returns the conflicts of a node as the steps of classification say them.
fn real(explanation: &Explanation<'_>) -> BTreeSet<RealConflict> {
    let leaves: Vec<(GroupIndex, Inherited<'_>)> = explanation.inherited().collect();
    let is_trumped = leaves.iter().any(|(_, it)| it.environment_trumps);
    let mut found = BTreeSet::new();
    for (at, (one, mine)) in leaves.iter().enumerate() {
        for (other, theirs) in leaves.iter().skip(at + 1) {
            let (mine, theirs) = (values(mine, is_trumped), values(theirs, is_trumped));
            for (what, value) in &mine {
                if theirs.iter().any(|(it, other)| it == what && !same(value, other)) {
                    found.insert((*one, *other, what.clone()));
                }
            }
        }
    }
    found
}

fn values(of: &Inherited<'_>, is_trumped: bool) -> Vec<(String, Value)> {
    let mut values = Vec::new();
    if of.environment_trumps == is_trumped {
        values.push(("environment".to_owned(), of.environment.as_str().into()));
    }
    for (name, it) in &of.variables {
        values.push((format!("variable {name}"), it.value.clone()));
    }
    for (what, classes) in [("parameter", &of.classes), ("data", &of.config_data)] {
        for (class, it) in classes {
            for (name, it) in &it.parameters {
                values.push((format!("{what} {class} {name}"), it.value.clone()));
            }
        }
    }
    values
}

fn name(setting: Setting<'_>) -> String {
    match setting {
        Setting::Environment => "environment".to_owned(),
        Setting::Variable(name) => format!("variable {name}"),
        Setting::Parameter(class, name) => format!("parameter {class} {name}"),
        Setting::ConfigData(class, name) => format!("data {class} {name}"),
    }
}

proptest! {
    #[test]
    fn every_conflict_is_found_and_every_finding_was_seen(
        bytes in prop::collection::vec(any::<u8>(), 40..160),
    ) {
        let estate = estate(&bytes);
        let found = overlaps(&estate, &Evidence::default(), &|_, _| false, Solver::default());
        prop_assert_eq!((found.ended_at, found.undecided), (None, 0));
        let mut reported: BTreeSet<RealConflict> = BTreeSet::new();
        for alarm in &found.alarms {
            prop_assert!(!alarm.is_cut);
            for pair in &alarm.pairs {
                let overlap = alarm.overlap(&estate, pair);
                let overlap = overlap.unwrap_or_else(|| panic!("not seen: {pair:?}"));
                let explanation = classify(&estate, &overlap.witness).unwrap();
                let seen = real(&explanation);
                let (one, other) = (pair.group.min(pair.other), pair.group.max(pair.other));
                for it in &overlap.settings {
                    let what = (one, other, name(it.setting));
                    prop_assert!(seen.contains(&what), "{:?} on {:?}", what, overlap.witness);
                    prop_assert!(reported.insert(what), "twice: {:?}", it);
                }
            }
        }
        for node in nodes() {
            for it in real(&classify(&estate, &node).unwrap()) {
                prop_assert!(reported.contains(&it), "{:?} is missing, see {:?}", it, node);
            }
        }
    }
}
