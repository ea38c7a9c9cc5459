//! What was noted while the clock was ahead.

use super::history::{ask, node, rule, snapshot, written};
use super::*;
use crate::snapshot::Snapshot;
use crate::store::ChangedAnswers;

with_either_database! {
    nodes_that_were_seen_first_ahead_of_the_clock_settle_when_they_come_back
    facts_that_came_before_the_last_answer_still_do
    changes_ahead_of_the_clock_count_as_of_today
}

const DAY: i64 = 86_400;

/// When the clock was ahead, and what it showed when it was right again.
const AHEAD: i64 = 400 * DAY;
const NOW: i64 = 10_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn rules() -> Arc<Snapshot> {
    snapshot(1, &[rule("Debian"), rule("Suse")])
}

/// Has a node ask at some seconds, each time with another operating system than before.
fn changing(store: &CheckIns, rules: &Arc<Snapshot>, name: &str, seconds: &[i64]) {
    for (second, family) in seconds.iter().zip(["Debian", "Suse"].into_iter().cycle()) {
        ask(store, *second, rules, &node(name, &json!({"os": {"family": family}})));
        written(store);
    }
}

fn nodes_that_were_seen_first_ahead_of_the_clock_settle_when_they_come_back(
    database: TestedDatabase,
) {
    let store = opened_at(&database.fresh(), StoreLimits { nodes: 3, ..LIMITS });
    let seen = |name: &str, second: i64| {
        store.note(&CheckIn { time: at(second), ..check_in(name, 1) });
        store.0.writer.take_turn().unwrap();
    };
    let known = ["a", "b", "c"];
    for second in [AHEAD, NOW, NOW + 1200, NOW + 2400] {
        for name in known {
            seen(name, second);
        }
    }
    for number in 0..5 {
        seen(&format!("made-up-{number}"), NOW + 2500 + number);
    }
    assert_eq!(names(&store), known);
}

fn facts_that_came_before_the_last_answer_still_do(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    // The first request after the clock is right has no facts.
    store.note(&CheckIn { time: at(AHEAD), ..check_in("z", 1) });
    written(&store);
    let bare = Node::named("z");
    store.note(&CheckIn { time: at(NOW), transaction_uuid: None, commit: None, node: bare });
    written(&store);
    let known = store.get("z").unwrap().check_in.unwrap();
    assert!(known.time < at(NOW) && known.time >= at(NOW - 1), "{known:?}");
    assert_eq!(known.node, check_in("z", 1).node);
}

fn changes_ahead_of_the_clock_count_as_of_today(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let rules = rules();
    changing(&store, &rules, "a", &[10, 20, DAY + 10, AHEAD, AHEAD + DAY]);
    changing(&store, &rules, "b", &[AHEAD]);
    let counted = |now| store.changes_by_day(at(0), at(now)).unwrap();
    let day = |number, changes| ChangedAnswers { day: at(number * DAY), changes };
    assert_eq!(counted(DAY + 20), [day(0, 1), day(1, 3)]);
    assert_eq!(counted(AHEAD + 5), [day(0, 1), day(1, 1), day(400, 2)]);
    assert_eq!(counted(2 * AHEAD), [day(0, 1), day(1, 1), day(400, 1), day(401, 1)]);
}
