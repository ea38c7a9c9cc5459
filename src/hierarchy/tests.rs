use std::sync::Arc;

use hashbrown::HashSet;
use serde_json::{Value, json};

use super::*;
use crate::model::{Condition, GroupId};
use crate::rule;
use crate::table::each_row;

/// A group of which only the number, the parent's number and the values matter; 0 is the root.
fn group(number: u8, parent: u8, values: &Value) -> Group {
    let id = |number: u8| match number {
        0 => GroupId::ROOT,
        number => format!("00000000-0000-4000-8000-0000000000{number:02}").parse().unwrap(),
    };
    let mut group = root_group().unwrap();
    group.id = id(number);
    group.parent = id(parent);
    if number > 0 {
        group.name = format!("group {number}").parse().unwrap();
    }
    group.classes = Arc::new(serde_json::from_value(values["classes"].clone()).unwrap_or_default());
    group.variables =
        Arc::new(serde_json::from_value(values["variables"].clone()).unwrap_or_default());
    group.config_data =
        Arc::new(serde_json::from_value(values["config_data"].clone()).unwrap_or_default());
    group
}

fn bare(number: u8, parent: u8) -> Group {
    group(number, parent, &json!({}))
}

fn numbers(hierarchy: &Hierarchy, indexes: impl IntoIterator<Item = GroupIndex>) -> Vec<String> {
    let name = |index| hierarchy.group(index).name.to_string();
    indexes.into_iter().map(name).collect()
}

#[test]
fn groups_stand_in_preorder_whatever_order_they_come_in() {
    let groups = [bare(1, 0), bare(2, 1), bare(3, 1), bare(4, 0), bare(5, 2)];
    let forward = Hierarchy::build(groups.to_vec()).unwrap();
    let backward = Hierarchy::build(groups.iter().rev().cloned().collect()).unwrap();
    let order = ["All Nodes", "group 1", "group 2", "group 5", "group 3", "group 4"];
    assert_eq!(numbers(&forward, forward.indexes()), order);
    assert_eq!(numbers(&backward, backward.indexes()), order);

    let at = |number: u8| forward.find(bare(number, 0).id).unwrap();
    assert_eq!(
        numbers(&forward, forward.lineage(at(5))),
        ["group 5", "group 2", "group 1", "All Nodes"]
    );
    assert_eq!(numbers(&forward, forward.children(at(1))), ["group 2", "group 3"]);
    assert_eq!(numbers(&forward, forward.children(forward.root())), ["group 1", "group 4"]);
    assert!(forward.is_ancestor(at(1), at(5)) && !forward.is_ancestor(at(3), at(5)));
    assert!(!forward.is_ancestor(at(5), at(1)) && !forward.is_ancestor(at(1), at(1)));
    let matching = [forward.root(), at(1), at(2), at(3), at(4)];
    assert_eq!(numbers(&forward, forward.leaves(&matching)), ["group 2", "group 3", "group 4"]);
}

#[test]
fn faults_are_all_found_and_each_once() {
    let mut named = bare(6, 0);
    named.name = bare(1, 0).name;
    let second_root = Group { id: bare(7, 0).id, ..root_group().unwrap() };
    let rows = [
        (vec![bare(1, 0), bare(1, 0)], vec![HierarchyFault::DuplicateId { first: 0, second: 1 }]),
        (vec![bare(1, 0), named], vec![HierarchyFault::DuplicateName { first: 0, second: 1 }]),
        (vec![bare(1, 9), bare(2, 1)], vec![HierarchyFault::MissingParent { group: 0 }]),
        (vec![bare(1, 1)], vec![HierarchyFault::Cycle { groups: vec![0] }]),
        (
            vec![bare(4, 2), bare(1, 3), bare(2, 1), bare(3, 2), bare(5, 5)],
            vec![
                HierarchyFault::Cycle { groups: vec![1, 3, 2] },
                HierarchyFault::Cycle { groups: vec![4] },
            ],
        ),
        (
            vec![bare(0, 1), bare(1, 0)],
            vec![HierarchyFault::Root { group: 0, fault: RootFault::Parent }],
        ),
        (
            vec![Group { rule: None, ..bare(0, 1) }, bare(1, 0)],
            [RootFault::Parent, RootFault::Rule]
                .map(|fault| HierarchyFault::Root { group: 0, fault })
                .to_vec(),
        ),
        (
            vec![bare(1, 0), second_root.clone()],
            vec![HierarchyFault::Root { group: 1, fault: RootFault::Name }],
        ),
        (
            vec![root_group().unwrap(), second_root],
            vec![HierarchyFault::DuplicateName { first: 0, second: 1 }],
        ),
    ];
    each_row(rows, |(groups, expected)| {
        assert_eq!(check(&groups), expected);
    });
}

#[test]
fn the_root_group_keeps_its_rule() {
    for (rule, allowed) in [
        (json!(["~", "name", ".*"]), true),
        (json!(["and", ["~", "name", ".*"]]), true),
        (json!(["or", ["~", "name", ".*"]]), false),
        (json!(["~", "name", ".+"]), false),
    ] {
        let mut root = bare(0, 0);
        root.rule = Some(Arc::new(rule::read(&rule).unwrap()));
        assert_eq!(check(&[root]).is_empty(), allowed, "{rule}");
    }
    let mut root = bare(0, 0);
    root.rule = None;
    assert!(!check(&[root]).is_empty());
}

#[test]
fn a_deep_chain_is_built() {
    let id = |number: u32| -> GroupId {
        format!("00000000-0000-4000-9000-{number:012}").parse().unwrap()
    };
    let chain = |number: u32| {
        let mut group = bare(1, 0);
        group.id = id(number);
        group.name = format!("group {number}").parse().unwrap();
        group.parent = if number == 0 { GroupId::ROOT } else { id(number - 1) };
        group
    };
    let hierarchy = Hierarchy::build((0..20_000).map(chain).collect()).unwrap();
    assert_eq!(hierarchy.lineage(hierarchy.find(id(19_999)).unwrap()).count(), 20_001);
}

#[test]
fn the_nearest_value_wins_whole_and_null_removes() {
    let hierarchy = Hierarchy::build(vec![
        group(
            1,
            0,
            &json!({
                "classes": {"a": {"x": 1, "h": {"k": 1, "l": 2}, "gone": 1}, "plain": {}},
                "variables": {"v": "parent", "gone": 1, "back": 1},
                "config_data": {"c": {"k": 1}, "emptied": {"k": 1}},
            }),
        ),
        group(
            2,
            1,
            &json!({
                "classes": {"a": {"h": {"k": 9}, "gone": null, "never": null}},
                "variables": {"gone": null, "back": null},
                "config_data": {"emptied": {"k": null}},
            }),
        ),
        group(3, 2, &json!({"classes": {"b": {}}, "variables": {"back": 3}})),
    ])
    .unwrap();
    let inherited = hierarchy.inherited(hierarchy.find(bare(3, 0).id).unwrap());
    let classes: Vec<(&str, Vec<(&str, &Value)>)> = inherited
        .classes
        .iter()
        .map(|(class, it)| {
            (
                class.as_str(),
                it.parameters.iter().map(|(key, it)| (key.as_str(), it.value)).collect(),
            )
        })
        .collect();
    let (h, x) = (json!({"k": 9}), json!(1));
    assert_eq!(classes, [("a", vec![("h", &h), ("x", &x)]), ("b", vec![]), ("plain", vec![])]);
    let variables: Vec<(&str, String, String)> = inherited
        .variables
        .iter()
        .map(|(name, it)| {
            (name.as_str(), it.value.to_string(), hierarchy.group(it.source).name.to_string())
        })
        .collect();
    assert_eq!(
        variables,
        [
            ("back", "3".to_owned(), "group 3".to_owned()),
            ("v", "\"parent\"".to_owned(), "group 1".to_owned()),
        ]
    );
    assert_eq!(inherited.config_data.len(), 1);
}

#[test]
fn rules_are_inherited_without_those_that_are_absent() {
    let mut middle = bare(1, 0);
    middle.rule = None;
    let mut low = bare(2, 1);
    low.rule = Some(Arc::new(rule::read(&json!(["=", "name", "x"])).unwrap()));
    let hierarchy = Hierarchy::build(vec![middle, low]).unwrap();
    let rule = inherited_rule(&hierarchy, hierarchy.find(bare(2, 0).id).unwrap()).unwrap();
    assert!(matches!(&rule, Condition::And(terms) if terms.len() == 2));
    assert_eq!(rule::to_value(&rule), json!(["and", ["=", "name", "x"], ["~", "name", ".*"]]));
}

/// Says of each group where it stands.
fn places(
    hierarchy: &Hierarchy,
) -> Vec<(Group, Option<GroupIndex>, GroupIndex, Option<GroupIndex>)> {
    let place = |index: GroupIndex| {
        let group = hierarchy.group(index).clone();
        let found = hierarchy.find(group.id);
        (group, hierarchy.parent(index), hierarchy.end(index), found)
    };
    hierarchy.indexes().map(place).collect()
}

fn assert_names_are_found(hierarchy: &Hierarchy) {
    let third = hierarchy.groups().step_by(3).map(|it| it.name.as_str());
    let names: HashSet<&str> = third.chain(["group none"]).collect();
    let has_one = |it: &GroupIndex| names.contains(hierarchy.group(*it).name.as_str());
    let expected: Vec<GroupIndex> = hierarchy.indexes().filter(has_one).collect();
    assert_eq!(hierarchy.named(&names).collect::<Vec<_>>(), expected);
}

#[test]
fn a_tree_with_other_groups_is_the_one_that_is_built_of_them() {
    let mut rng = fastrand::Rng::with_seed(3);
    let (mut trees, mut faults) = (0, 0);
    let mut groups: Vec<Group> = (1..12).map(|it| bare(it, rng.u8(..it))).collect();
    let mut before = Hierarchy::build(groups.clone()).unwrap();
    for _ in 0..3000 {
        let (mut next, mut gone, mut changed) = (groups.clone(), Vec::new(), Vec::new());
        for number in 1..20 {
            if rng.u8(..8) > 0 {
                continue;
            }
            let known = next.iter().position(|it| it.id == bare(number, 0).id);
            let mut group = bare(number, rng.u8(..20));
            group.name = format!("group {}", rng.u8(..100)).parse().unwrap();
            match known {
                Some(at) if rng.bool() => {
                    gone.push(next.remove(at).id);
                    continue;
                }
                Some(at) => next[at] = group.clone(),
                None => next.push(group.clone()),
            }
            changed.push(group);
        }
        let named_twice =
            check(&next).iter().any(|it| matches!(it, HierarchyFault::DuplicateName { .. }));
        if named_twice {
            continue;
        }
        let after = before.restructured(&gone, changed);
        match Hierarchy::build(next.clone()) {
            Ok(built) => {
                let after = after.expect("there is no fault");
                assert_eq!(places(&after), places(&built));
                assert!(gone.iter().all(|it| after.find(*it).is_none()), "{gone:?}");
                assert_names_are_found(&after);
                let renumbering = before.renumbering(&after);
                for (index, group) in before.indexes().zip(before.groups()) {
                    assert_eq!(renumbering.after(index), after.find(group.id));
                }
                for (index, group) in after.indexes().zip(after.groups()) {
                    assert_eq!(renumbering.before(index), before.find(group.id));
                }
                (groups, before) = (next, after);
                trees += 1;
            }
            Err(_) => {
                assert!(after.is_none(), "{gone:?}");
                faults += 1;
            }
        }
    }
    assert!(trees > 300 && faults > 300, "{trees} {faults}");
}

#[test]
fn the_root_group_is_not_replaced() {
    let before = Hierarchy::build(vec![bare(1, 0)]).unwrap();
    assert!(before.restructured(&[], vec![bare(0, 0)]).is_none());
    assert!(before.restructured(&[GroupId::ROOT], Vec::new()).is_none());
    assert!(before.restructured(&[], vec![bare(2, 0), bare(2, 1)]).is_none(), "one id twice");
    assert!(before.restructured(&[bare(1, 0).id], vec![bare(1, 0)]).is_none(), "gone and there");
}
