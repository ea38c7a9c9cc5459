//! What was noted while the clock was ahead.

use super::history::{ask, node, rule, snapshot, whole_history, written};
use super::*;
use crate::snapshot::Snapshot;
use crate::store::ChangedAnswers;
use crate::store::sql::{Statement, integer};

with_either_database! {
    what_was_noted_ahead_of_the_clock_is_set_to_now_in_its_order
    many_changes_of_one_node_have_a_time_each
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

fn seconds(store: &CheckIns, name: &str) -> Vec<i64> {
    whole_history(store, name).iter().map(|it| it.time.as_second()).collect()
}

fn last_seen(store: &CheckIns, name: &str) -> Option<i64> {
    let known = store.node(name, &Unlimited).unwrap();
    known.map(|it| it.last_seen.as_second())
}

fn what_was_noted_ahead_of_the_clock_is_set_to_now_in_its_order(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let rules = rules();
    changing(&store, &rules, "steady", &[NOW - 100]);
    changing(&store, &rules, "ahead", &[AHEAD]);
    changing(&store, &rules, "back", &[NOW - 100, AHEAD, AHEAD + 1, NOW - 20, NOW - 10]);
    changing(&store, &rules, "slightly", &[NOW - 50, NOW + 500]);
    let before = whole_history(&store, "back");
    assert_eq!(before.last().unwrap().time.as_second(), AHEAD + 1, "its order counts");
    store.0.writer.forget(at(NOW));

    let after = whole_history(&store, "back");
    assert!(after.is_sorted_by(|one, next| one.time < next.time), "{after:?}");
    let (first, moved) = after.split_first().unwrap();
    assert_eq!(first.time, at(NOW - 100));
    assert!(moved.iter().all(|it| it.time >= at(NOW - 1) && it.time <= at(NOW)), "{moved:?}");
    for (one, other) in before.iter().zip(&after) {
        assert_eq!(StoredChange { time: other.time, ..one.clone() }, *other);
    }
    assert_eq!(store.history("back", 10, Some(at(NOW))).unwrap().len(), 5);
    let known = store.node("back", &Unlimited).unwrap().unwrap();
    assert_eq!((known.last_seen, known.answer.unwrap().1), (at(NOW - 10), after[4].time));
    assert_eq!(seconds(&store, "slightly"), [NOW - 50, NOW + 500], "that is past soon");
    assert_eq!(last_seen(&store, "ahead"), Some(NOW));
    assert_eq!(store.counts(at(NOW + 1), at(0)).unwrap().silent, 3);
    // Changes go on from there, and nothing is set back twice.
    changing(&store, &rules, "back", &[NOW + 6, NOW + 7]);
    store.0.writer.forget(at(NOW + 60));
    assert_eq!(seconds(&store, "back").last(), Some(&(NOW + 7)));
    assert_eq!(last_seen(&store, "ahead"), Some(NOW));
    assert_counted(&store);
    // What is not seen any more is forgotten.
    store.0.writer.forget(at(NOW + 3601));
    assert_eq!(last_seen(&store, "ahead"), None);
}

fn many_changes_of_one_node_have_a_time_each(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let rules = rules();
    changing(&store, &rules, "a", &[NOW, AHEAD]);
    changing(&store, &rules, "b", &[AHEAD]);
    let opened = store.0.file.database().unwrap();
    let many = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1200) \
         INSERT INTO changes (node, time, commit_before, commit_after, answer_before, answer_after, cause) \
         SELECT node, time + n * 1000, commit_after, commit_after, answer_after, answer_after, 1000 + n \
         FROM changes, n WHERE time > ";
    let many = Statement::new(many).value(at(NOW).as_microsecond());
    opened.connections.maintain(many).unwrap();
    let since = "UPDATE nodes SET since = (SELECT MAX(time) FROM changes WHERE node = nodes.id)";
    opened.connections.maintain(Statement::new(since)).unwrap();
    // The newest time that is not ahead is now: it takes until there is room after it.
    for second in [NOW, NOW + 1, NOW + 60] {
        store.0.writer.forget(at(second));
    }
    for name in ["a", "b"] {
        let found = opened.connections.read(async |connection| {
            let all = "SELECT c.time, c.cause, n.since FROM changes c JOIN nodes n ON n.id = c.node WHERE n.name = ";
            let all = Statement::new(all).value(name).text(" AND c.cause > 1000 ORDER BY c.time");
            let rows = all.fetch(connection).await?;
            let row = |row| Ok((integer(row, 0)?, integer(row, 1)?, integer(row, 2)?));
            rows.iter().map(row).collect::<Result<Vec<_>, _>>()
        });
        let found = found.unwrap();
        assert_eq!(found.len(), 1200);
        assert!(found.is_sorted_by_key(|it| it.1), "{found:?}");
        let last = found.last().unwrap();
        assert_eq!(last.0, last.2);
        assert!(last.0 <= at(NOW + 60).as_microsecond());
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
    let opened = store.0.file.database().unwrap();
    for name in ["before", "at-once", "right"] {
        store.note(&CheckIn { time: at(AHEAD), ..check_in(name, 1) });
    }
    written(&store);
    for set in [
        "UPDATE nodes SET last_seen = last_seen + 1 WHERE name = 'before'",
        "UPDATE nodes SET checked_in = 5 WHERE name = 'right'",
    ] {
        opened.connections.maintain(Statement::new(set)).unwrap();
    }
    store.0.writer.forget(at(NOW));
    let times = opened.connections.read(async |connection| {
        let all = "SELECT last_seen, checked_in, first_seen FROM nodes ORDER BY name";
        let rows = Statement::new(all).fetch(connection).await?;
        let row = |row| Ok([integer(row, 0)?, integer(row, 1)?, integer(row, 2)?]);
        rows.iter().map(row).collect::<Result<Vec<_>, _>>()
    });
    let now = at(NOW).as_microsecond();
    assert_eq!(times.unwrap(), [[now, now, now], [now, now - 1, now], [now, 5, now]]);
    // A request without facts has the same meaning where it is the first after the clock is right.
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
