use fastrand::Rng;

use super::*;
use crate::hierarchy::root_group;
use crate::model::Group;

/// Makes a hierarchy of groups with these parents, of which the root is 0, and with any names.
fn hierarchy(parents: &[usize], mut name: impl FnMut(usize) -> String) -> Hierarchy {
    let mut groups = vec![root_group().unwrap()];
    for (number, parent) in (1_usize..).zip(parents) {
        let environment = format!("e{number}").parse().unwrap();
        let name = name(number).parse().unwrap();
        let (id, parent) = (GroupId::of_name(&environment, &name), groups[*parent].id);
        groups.push(Group { id, name, parent, environment, ..root_group().unwrap() });
    }
    Hierarchy::build(groups).unwrap()
}

/// Sorts by the names and ids of all ancestors.
fn plain(hierarchy: &Hierarchy, matched: &BTreeSet<GroupIndex>) -> Vec<(GroupIndex, usize)> {
    let mut found = Vec::new();
    for index in matched {
        let lineage: Vec<GroupIndex> = hierarchy.lineage(*index).collect();
        let depth = lineage.iter().skip(1).filter(|it| matched.contains(it)).count();
        let groups = lineage.iter().rev().map(|it| hierarchy.group(*it));
        let path: Vec<_> = groups.map(|it| (it.name.to_string(), it.id)).collect();
        found.push((path, (*index, depth)));
    }
    found.sort();
    found.into_iter().map(|(_, it)| it).collect()
}

#[test]
fn groups_that_match_stand_in_the_order_of_their_names_and_those_above() {
    let mut random = Rng::with_seed(7);
    for _ in 0..300 {
        let parents: Vec<usize> = (1..random.usize(2..20)).map(|it| random.usize(..it)).collect();
        let tree =
            hierarchy(&parents, |_| ["a", "b", "a b", "B", "é"][random.usize(..5)].to_owned());
        let matched = tree.indexes().filter(|_| random.bool()).collect();
        assert_eq!(in_tree_order(&tree, &matched), plain(&tree, &matched));
    }
}

/// The names and ids of the ancestors of so many groups take more memory than machines have.
#[test]
fn a_long_chain_of_groups_that_match_is_drawn() {
    const GROUPS: usize = 50_000;
    let parents: Vec<usize> = (0..GROUPS).collect();
    let tree = hierarchy(&parents, |number| format!("Group {number}"));
    let matched: BTreeSet<GroupIndex> = tree.indexes().collect();
    let drawn = in_tree_order(&tree, &matched);
    assert!(drawn.into_iter().eq(tree.indexes().zip(0..)));
}
