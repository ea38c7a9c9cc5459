//! Several daemons with one database.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::history::{ask, node, rule, snapshot, whole_history, written};
use super::*;
use crate::answer::{AnswerRecord, ChangeCause};
use crate::store::{NodeFilter, NodeRange};

/// Returns some stores on one empty database.
fn replicas(count: usize) -> Option<Vec<CheckIns>> {
    let location = TestedDatabase::Postgres(Postgres::shared()?).fresh();
    Some((0..count).map(|_| opened_at(&location, LIMITS)).collect())
}

#[test]
fn daemons_that_start_together_make_the_tables_once() {
    let Some(server) = Postgres::shared() else { return };
    let location = TestedDatabase::Postgres(server).fresh();
    let threads: Vec<_> = (0..6)
        .map(|number| {
            let location = location.clone();
            std::thread::spawn(move || {
                let store = opened_at(&location, LIMITS);
                store.note(&check_in(&format!("n{number}"), 1));
                written(&store);
                store
            })
        })
        .collect();
    let stores: Vec<CheckIns> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    for store in stores {
        assert_eq!(names(&store), ["n0", "n1", "n2", "n3", "n4", "n5"]);
    }
}

#[test]
fn a_check_in_that_is_written_late_does_not_replace_a_later_one() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    let rules = snapshot(1, &[rule("Debian"), rule("Suse")]);
    let family = |family: &str| node("n", &json!({"os": {"family": family}}));
    let debian = ask(a, 10, &rules, &family("Debian"));
    written(a);
    // The node asks one and then the other, whose write is done first.
    let suse = ask(a, 20, &rules, &family("Suse"));
    let bare = ask(b, 21, &rules, &family("other"));
    written(b);
    written(a);
    for store in [a, b] {
        let known = store.node("n", &Unlimited).unwrap().unwrap();
        assert_eq!(known.node.fact["os"]["family"], "other");
        assert_eq!(known.answer.unwrap(), (bare.clone(), Timestamp::from_second(21).unwrap()));
        let said: Vec<_> = whole_history(store, "n")
            .into_iter()
            .map(|it| (it.time.as_second(), it.before, it.after))
            .collect();
        let expected = [
            (10, None, debian.clone()),
            (20, Some(debian.clone()), suse.clone()),
            (21, Some(suse.clone()), bare.clone()),
        ];
        assert_eq!(said, expected);
    }
    // One whose clock goes wrong is believed, and so is one that is set back.
    for second in [500, 400, 390] {
        ask(a, second, &rules, &family("Suse"));
        written(a);
        assert_eq!(b.get("n").unwrap().check_in.unwrap().time.as_second(), second);
    }
    ask(b, 300, &rules, &family("Debian"));
    written(b);
    assert_eq!(a.node("n", &Unlimited).unwrap().unwrap().answer.unwrap().0, debian);
}

#[test]
fn a_check_in_that_waited_for_the_database_is_late_and_not_of_a_wrong_clock() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    let rules = snapshot(1, &[rule("Debian"), rule("Suse")]);
    let family = |family: &str| node("n", &json!({"os": {"family": family}}));
    ask(a, 10, &rules, &family("Debian"));
    written(a);
    ask(a, 100, &rules, &family("Suse"));
    ask(b, 300, &rules, &family("other"));
    written(b);
    a.0.pending.queue().age(Duration::from_mins(4));
    written(a);
    assert_eq!(a.get("n").unwrap().check_in.unwrap().node, family("other"));
    let times: Vec<i64> = whole_history(a, "n").iter().map(|it| it.time.as_second()).collect();
    assert_eq!(times, [10, 100, 300]);
}

#[test]
fn an_answer_that_was_given_earlier_already_is_of_the_earlier_commit() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    let rules = [rule("Debian"), rule("Suse")];
    let [one, two, three] = [1, 2, 3].map(|it| snapshot(it, &rules));
    let family = |family: &str| node("n", &json!({"os": {"family": family}}));
    ask(a, 10, &one, &family("Debian"));
    written(a);
    ask(a, 20, &two, &family("Suse"));
    ask(b, 30, &three, &family("Suse"));
    written(b);
    written(a);
    let found = whole_history(a, "n");
    assert_eq!(found.len(), 2);
    let [_, change] = found.as_slice() else { panic!() };
    assert_eq!((change.time.as_second(), change.commit), (20, two.commit));
    assert_eq!(change.commit_before, Some(one.commit));
    assert_eq!((change.cause, change.facts.len()), (ChangeCause::Both, 0), "they are not known");
    let since = a.node("n", &Unlimited).unwrap().unwrap().answer.unwrap().1;
    assert_eq!(since.as_second(), 20);
}

#[test]
fn facts_that_come_late_are_kept_where_nothing_later_has_some() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    let rules = snapshot(1, &[rule("Debian")]);
    let asked = node("n", &json!({"os": {"family": "Debian"}}));
    ask(a, 10, &rules, &asked);
    ask(b, 11, &rules, &Node::named("n"));
    written(b);
    written(a);
    assert_eq!(b.get("n").unwrap().check_in.unwrap().node, asked);
}

#[test]
fn no_node_has_a_name_that_postgresql_cannot_hold() {
    let Some(stores) = replicas(1) else { return };
    let store = &stores[0];
    store.note(&check_in("n", 1));
    for name in ["n\0", "\0", "a\0b"] {
        assert_eq!(store.get(name).unwrap().check_in, None);
        assert!(store.trusted(name).unwrap().is_empty());
        assert_eq!(store.node(name, &Unlimited).unwrap(), None);
        assert_eq!(store.history(name, 10, None).unwrap(), []);
        assert!(!store.forget_node(name).unwrap());
        store.note(&check_in(name, 1));
        let part = NodeFilter { name_part: Some(name.to_owned()), ..NodeFilter::default() };
        let range = NodeRange { offset: 0, limit: 1 };
        store.nodes(&part, range).unwrap();
        assert_eq!(names(store), ["n"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// A node asks either of two daemons, which write when they like: the history says nothing that was
    /// not so, and ends as it did.
    #[test]
    fn history_holds_together_in_either_order_of_writes(
        steps in proptest::collection::vec((0..3_usize, 0..2_usize, 0..3_usize), 1..40),
    ) {
        let Some(stores) = replicas(2) else { return Ok(()) };
        let rules = snapshot(1, &[rule("Debian"), rule("Suse")]);
        let families = ["Debian", "Suse", "RedHat"];
        let mut asked: Vec<(i64, AnswerRecord)> = Vec::new();
        let mut waits: BTreeMap<usize, bool> = BTreeMap::new();
        for (second, (family, store, writes)) in (1..).zip(steps) {
            // One that waits may take the place of another, and then less is known.
            if waits.insert(store, true) == Some(true) {
                written(&stores[store]);
            }
            let facts = json!({"os": {"family": families[family]}});
            let got = ask(&stores[store], second, &rules, &node("n", &facts));
            asked.push((second, got));
            if let Some(store) = stores.get(writes) {
                written(store);
                waits.insert(writes, false);
            }
        }
        for store in &stores {
            written(store);
        }
        for store in &stores {
            assert_counted(store);
            let found = whole_history(store, "n");
            for change in &found {
                let said = (change.time.as_second(), change.after.clone());
                prop_assert!(asked.contains(&said), "{said:?}");
            }
            for pair in found.windows(2) {
                prop_assert_eq!(Some(&pair[0].after), pair[1].before.as_ref());
                prop_assert_ne!(&pair[0].after, &pair[1].after);
                prop_assert!(pair[0].time < pair[1].time);
            }
            let ends = (found.first().unwrap(), found.last().unwrap());
            prop_assert_eq!((ends.0.time.as_second(), &ends.0.before), (1, &None));
            prop_assert_eq!(&ends.0.after, &asked.first().unwrap().1);
            prop_assert_eq!(&ends.1.after, &asked.last().unwrap().1);
            let last = store.node("n", &Unlimited).unwrap().unwrap().answer.unwrap();
            prop_assert_eq!((&last.0, last.1), (&ends.1.after, ends.1.time));
        }
    }
}
