//! Which nodes there are.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

with_either_database! {
    names_that_no_node_has_are_found
    the_version_of_a_fleet_changes_with_its_nodes_alone
}

/// A check-in of a node at a second.
fn seen_at(second: i64, name: &str) -> CheckIn {
    CheckIn { time: Timestamp::from_second(second).unwrap(), ..check_in(name, 1) }
}

fn names_that_no_node_has_are_found(tested: TestedDatabase) {
    let store = opened_at(&tested.fresh(), LIMITS);
    for name in ["a", "with'quote", "\"and\\back", "名"] {
        store.note(&check_in(name, 1));
    }
    let long = "n".repeat(1025);
    let asked = ["a", "A", "", "with'quote", "\"and\\back", "名", "名前", "a\0b", &long, "x\u{1}y"];
    let asked: Vec<Arc<str>> = asked.into_iter().map(Arc::from).collect();
    let (unknown, _) = store.unknown(&asked).unwrap();
    let expected = ["A", "", "名前", "a\0b", &long, "x\u{1}y"].map(str::to_owned);
    assert_eq!(unknown, BTreeSet::from(expected));
    assert_eq!(store.unknown(&[]).unwrap().0, BTreeSet::new());
    // More than are looked up together.
    let many: Vec<Arc<str>> = (0..25_001).map(|it| format!("m{it}").into()).collect();
    assert_eq!(store.unknown(&many).unwrap().0.len(), many.len());
}

fn the_version_of_a_fleet_changes_with_its_nodes_alone(tested: TestedDatabase) {
    let store = opened_at(&tested.fresh(), LIMITS);
    let empty = store.fleet_version().unwrap();
    store.note(&seen_at(1, "a"));
    let one = store.fleet_version().unwrap();
    assert_ne!(empty, one);
    store.note(&seen_at(2, "a"));
    assert_eq!(store.fleet_version().unwrap(), one, "the same nodes");
    // The newest goes and another comes, which may get its id.
    store.note(&seen_at(3, "b"));
    let two = store.fleet_version().unwrap();
    assert!(store.forget_node("b").unwrap());
    store.note(&seen_at(4, "c"));
    assert_ne!(store.fleet_version().unwrap(), two);
    // One that is not the newest goes.
    let before = store.fleet_version().unwrap();
    assert!(store.forget_node("a").unwrap());
    assert_ne!(store.fleet_version().unwrap(), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Two moments with the same version have the same nodes.
    #[test]
    fn the_same_version_means_the_same_nodes(
        steps in proptest::collection::vec((0..4_usize, any::<bool>()), 1..24),
    ) {
        let store = opened(None);
        let all: Vec<Arc<str>> = ["a", "b", "c", "d"].map(Arc::from).into();
        let mut seen = Vec::new();
        for (second, (node, comes)) in (1_i64..).zip(steps) {
            if comes {
                store.note(&seen_at(second, &all[node]));
            } else {
                store.forget_node(&all[node]).unwrap();
            }
            let (unknown, version) = store.unknown(&all).unwrap();
            prop_assert_eq!(&version, &store.fleet_version().unwrap());
            for (before, those) in &seen {
                prop_assert!(*before != version || *those == unknown, "{:?}", version);
            }
            seen.push((version, unknown));
        }
    }
}
