//! Every named cause is checked by really taking changes back: the whole repository is built with
//! some of its changes undone, and every group is asked.

use std::collections::BTreeSet;

use super::*;

/// A random repository in two states: groups by number, and the values set for the node alone.
pub(super) struct Pair {
    groups: Vec<[Option<Sketch>; 2]>,
    own: [Option<u8>; 2],
}

/// Changes taken back: groups by number, and whether the node's own values are.
pub(super) type Reverted = (BTreeSet<usize>, bool);

impl Pair {
    pub(super) fn random(chance: &mut fastrand::Rng) -> Self {
        let size = chance.usize(3..10);
        let mut groups: Vec<[Option<Sketch>; 2]> = Vec::new();
        for number in 0..size {
            let base = sketch(chance, number);
            groups.push([Some(base.clone()), Some(base)]);
        }
        for _ in 0..chance.usize(1..6) {
            let number = chance.usize(..size);
            let Some(base) = groups[number][0].clone() else { continue };
            let other = sketch(chance, number);
            let mut head = base.clone();
            match chance.u8(..8) {
                0 => head.rule = other.rule,
                1 => head.parent = other.parent,
                2 => head.parameters = other.parameters,
                3 => head.environment = other.environment,
                4 => head.trumps = !head.trumps,
                5 => head = other,
                6 => head.id = with_id(number, 7),
                _ => {
                    let side = chance.usize(..2);
                    groups[number][side] = None;
                    continue;
                }
            }
            groups[number][1] = Some(head);
        }
        // What hangs below nothing is not there.
        for side in [0, 1] {
            for number in 0..size {
                let parent = groups[number][side].as_ref().and_then(|it| it.parent);
                if parent.is_some_and(|it| groups[it][side].is_none()) {
                    groups[number][side] = None;
                }
            }
        }
        let own = |chance: &mut fastrand::Rng| (chance.u8(..4) == 0).then(|| chance.u8(..4));
        Self { groups, own: [own(chance), own(chance)] }
    }

    /// Builds the head with some changes taken back.
    pub(super) fn estate(&self, reverted: &Reverted) -> Estate {
        let mut kept: Vec<Option<usize>> = Vec::new();
        let mut sketches: Vec<Sketch> = Vec::new();
        for (number, versions) in self.groups.iter().enumerate() {
            let sketch = versions[usize::from(!reverted.0.contains(&number))].clone();
            let parent = sketch.as_ref().and_then(|it| it.parent).map(|it| kept[it]);
            kept.push(match (sketch, parent) {
                (None, _) | (_, Some(None)) => None,
                (Some(sketch), parent) => {
                    sketches.push(Sketch { parent: parent.flatten(), ..sketch });
                    Some(sketches.len() - 1)
                }
            });
        }
        let mut estate = build(&sketches);
        if let Some(own) = self.own[usize::from(!reverted.1)] {
            let value = if own == 0 { Value::Null } else { json!(own) };
            let parameters = [("p".parse().unwrap(), value)].into_iter().collect();
            let classes = [("c".parse().unwrap(), parameters)].into_iter().collect();
            Arc::make_mut(&mut estate.individuals)
                .insert("n1".to_owned(), Individual { classes, ..Individual::default() });
        }
        estate
    }

    pub(super) fn changed(&self) -> Vec<Reverted> {
        let state = |it: &Option<Sketch>| it.as_ref().map(|it| format!("{it:?}"));
        let groups = self.groups.iter().enumerate();
        let groups = groups.filter(|(_, [base, head])| state(base) != state(head));
        let mut all: Vec<Reverted> =
            groups.map(|(number, _)| (BTreeSet::from([number]), false)).collect();
        if self.own[0] != self.own[1] {
            all.push((BTreeSet::new(), true));
        }
        all
    }

    fn number(&self, id: GroupId) -> usize {
        let has = |it: &[Option<Sketch>; 2]| it.iter().flatten().any(|it| it.id == id);
        self.groups.iter().position(has).unwrap_or(usize::MAX)
    }

    pub(super) fn join(sets: &[Reverted]) -> Reverted {
        let numbers = sets.iter().flat_map(|it| it.0.iter().copied()).collect();
        (numbers, sets.iter().any(|it| it.1))
    }
}

fn with_id(number: usize, variant: u8) -> GroupId {
    format!("00000000-0000-4000-900{variant}-{number:012}").parse().unwrap()
}

/// A group that matches more often than those of the other test, so that changes meet.
fn sketch(chance: &mut fastrand::Rng, number: usize) -> Sketch {
    let rule = match chance.u8(..5) {
        0 => None,
        1 => Some(json!(["=", ["fact", "a"], "2"])),
        _ => Some(json!(["=", ["fact", "a"], "1"])),
    };
    let environment = ["production", "staging"][usize::from(chance.u8(..8) == 0)];
    let parent = (number > 0 && chance.u8(..3) > 0).then(|| chance.usize(..number));
    Sketch { parent, rule, environment, ..random(chance, number) }
}

/// What a node gets, by key; the values of a node in conflict are not known.
fn answers(pair: &Pair, estate: &Estate, node: &Node) -> BTreeMap<String, Value> {
    let explanation = classify(estate, node).unwrap();
    let mut answers = BTreeMap::new();
    for matching in &explanation.matches {
        let group = estate.hierarchy.group(matching.group);
        let key = format!("group {}", pair.number(group.id));
        answers.insert(key, json!([group.id.to_string(), group.name.as_str()]));
    }
    match &explanation.outcome {
        Outcome::Classified(result) => {
            let document = classified(&explanation, result, Version::V1);
            answers.insert("environment".to_owned(), document["environment"].clone());
            if let Some(parameters) = document["classes"].get("c") {
                answers.insert("class c".to_owned(), json!(true));
                for (name, value) in parameters.as_object().unwrap() {
                    answers.insert(format!("c::{name}"), value.clone());
                }
            }
        }
        Outcome::Conflict(conflicts) => {
            let shares = shares(&estate.hierarchy, conflicts);
            answers.insert("conflict".to_owned(), json!(shares));
        }
    }
    answers
}

fn key(pair: &Pair, difference: &Difference) -> String {
    match difference {
        Difference::Entered(group)
        | Difference::Left(group)
        | Difference::Renamed { to: group, .. } => {
            format!("group {}", pair.number(group.id))
        }
        Difference::Conflict(_) => "conflict".to_owned(),
        Difference::Error(_) => unreachable!(),
        Difference::Environment { .. } => "environment".to_owned(),
        Difference::ClassAdded(_) | Difference::ClassRemoved(_) => "class c".to_owned(),
        Difference::Value(value) => format!("c::{}", value.name),
    }
}

/// Returns every part of a set but itself and nothing.
fn proper_parts(sets: &[Reverted]) -> Vec<Reverted> {
    let choices = 1..(1_usize << sets.len()) - 1;
    choices
        .map(|choice| {
            let chosen = sets.iter().enumerate().filter(|(at, _)| choice & (1 << at) != 0);
            Pair::join(&chosen.map(|(_, it)| it.clone()).collect::<Vec<_>>())
        })
        .collect()
}

/// Returns whether a difference from the answers of the base is gone. To be in a group again is to be in it under
/// whatever name.
fn is_back(
    what: &Difference,
    key: &str,
    base: &BTreeMap<String, Value>,
    now: &BTreeMap<String, Value>,
) -> bool {
    let is_known = key.starts_with("group") || key == "conflict" || !now.contains_key("conflict");
    is_known
        && match what {
            Difference::Entered(_) => !now.contains_key(key),
            Difference::Left(_) => now.contains_key(key),
            _ => now.get(key) == base.get(key),
        }
}

/// Returns whether a group that is gone and one that is new are alike: nothing says that they are two.
fn merges(pair: &Pair, comparison: &StateComparison<'_>) -> bool {
    comparison.groups().iter().any(|it| match &it.how {
        How::Renamed { from, .. } => pair.number(*from) != pair.number(it.id),
        _ => false,
    })
}

#[test]
fn taking_back_what_is_named_takes_the_difference_back() {
    let mut chance = fastrand::Rng::with_seed(13);
    let mut node = Node::named("n1");
    node.fact.insert("a".to_owned(), json!(1));
    node.fact.insert("b".to_owned(), json!(1));
    let (mut alone, mut together, mut undecided) = (0, 0, 0);
    for round in 0..3_000 {
        let pair = Pair::random(&mut chance);
        let changed = pair.changed();
        let (base, head) =
            (pair.estate(&Pair::join(&changed)), pair.estate(&(BTreeSet::new(), false)));
        let comparison = compare(&base, &head);
        if merges(&pair, &comparison) {
            continue;
        }
        let before = answers(&pair, &base, &node);
        let is_back = |reverted: &Reverted, key: &str, what: &Difference| {
            is_back(what, key, &before, &answers(&pair, &pair.estate(reverted), &node))
        };
        let set = |change: &ChangeRef| match change {
            ChangeRef::Group(at) => {
                (BTreeSet::from([pair.number(comparison.groups()[*at].id)]), false)
            }
            ChangeRef::NodeFile(_) => (BTreeSet::new(), true),
            ChangeRef::Interpolation => panic!("the setting stays"),
        };
        for change in comparison.node(&node).change.into_iter().flat_map(|it| it.changes) {
            let key = key(&pair, &change.what);
            let about = format!("round {round}: {change:?}\n{:#?}", comparison.groups());
            let sets: Vec<Reverted> = change.causes.changes().iter().map(set).collect();
            match &change.causes {
                Causes::Each(_) => {
                    alone += 1;
                    assert!(!sets.is_empty(), "{about}");
                    assert!(sets.iter().all(|it| is_back(it, &key, &change.what)), "{about}");
                }
                Causes::Together(_) => {
                    together += 1;
                    assert!(
                        sets.len() > 1 && is_back(&Pair::join(&sets), &key, &change.what),
                        "{about}"
                    );
                    assert!(
                        !proper_parts(&sets).iter().any(|it| is_back(it, &key, &change.what)),
                        "{about}"
                    );
                    assert!(!changed.iter().any(|it| is_back(it, &key, &change.what)), "{about}");
                }
                Causes::Undecided => undecided += 1,
            }
        }
    }
    assert!(alone > 3_000 && together > 300 && undecided == 0, "{alone} {together} {undecided}");
}
