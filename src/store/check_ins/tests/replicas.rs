//! Several daemons with one database.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::history::{ask, node, rule, snapshot, whole_history, written};
use super::*;
use crate::answer::{AnswerRecord, ChangeCause};
use crate::store::sql::{Statement, integer, text};
use crate::store::{NodeFilter, NodeRange, ReplicaName, SaidPart, StoredReplica};

with_either_database! {
    a_daemon_is_listed_until_it_stops_or_is_not_seen
    the_replicas_that_were_seen_last_are_listed
    a_replica_has_a_name_that_every_database_holds
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Returns what a daemon says of itself at a second.
fn replica(id: &str, commit: Option<u8>, second: i64) -> StoredReplica {
    StoredReplica {
        id: id.to_owned(),
        name: ReplicaName::of(&format!("name of {id}")),
        version: "0.1.0".to_owned(),
        commit: commit.map(|it| format!("{it:040x}").parse().unwrap()),
        started_at: at(0),
        seen_at: at(second),
    }
}

/// Has the database list what a daemon says and what is there, as it does where several daemons share it.
fn listed(store: &CheckIns, own: &StoredReplica, expired: i64) -> Vec<StoredReplica> {
    store.0.file.database().unwrap().note_replica(own, at(expired)).unwrap()
}

fn count_replicas(store: &CheckIns) -> i64 {
    let database = store.0.file.database().unwrap();
    let counted = database.connections.read(async |connection| {
        let row = Statement::new("SELECT COUNT(*) FROM replicas").first(connection).await?;
        integer(&row.unwrap(), 0)
    });
    counted.unwrap()
}

fn a_daemon_is_listed_until_it_stops_or_is_not_seen(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let [a, b] = [replica("a", None, 10), replica("b", Some(1), 20)];
    assert_eq!(listed(&store, &a, 0), std::slice::from_ref(&a));
    assert_eq!(listed(&store, &b, 0), [b.clone(), a.clone()], "as it was seen last");
    // Another commit answers; when it started and what it is called does not change.
    let later = replica("a", Some(2), 30);
    let said =
        StoredReplica { name: ReplicaName::of("another"), started_at: at(29), ..later.clone() };
    assert_eq!(listed(&store, &said, 0), [later.clone(), b.clone()]);
    let database = store.0.file.database().unwrap();
    database.forget_replica("b").unwrap();
    database.forget_replica("unknown").unwrap();
    assert_eq!(listed(&store, &later, 0), std::slice::from_ref(&later));
    // What was not seen since is removed, and comes back when it says so.
    let c = replica("c", Some(2), 90);
    assert_eq!(listed(&store, &c, 30), [c.clone(), later.clone()]);
    assert_eq!(listed(&store, &c, 31), std::slice::from_ref(&c));
    assert_eq!(count_replicas(&store), 1);
    let later = replica("a", Some(2), 91);
    assert_eq!(listed(&store, &later, 31), [later, c]);
}

fn the_replicas_that_were_seen_last_are_listed(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    for number in 0..70 {
        listed(&store, &replica(&format!("{number:02}"), None, number), 0);
    }
    let found = listed(&store, &replica("early", None, 3), 0);
    let ids: Vec<&str> = found.iter().map(|it| it.id.as_str()).collect();
    let expected: Vec<String> = (6..70).rev().map(|it| format!("{it:02}")).collect();
    assert_eq!(ids, expected);
    assert_eq!(count_replicas(&store), 71, "what is not listed is still there");
}

fn a_replica_has_a_name_that_every_database_holds(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let names = ["a\0b", "\0", "", "\u{1b}[31m\r\n", &"x".repeat(10_000), &"\u{1f980}".repeat(100)];
    for (number, name) in (0_i64..).zip(names) {
        let named = StoredReplica { name: ReplicaName::of(name), ..replica("a", None, number) };
        store.0.file.database().unwrap().forget_replica("a").unwrap();
        assert_eq!(listed(&store, &named, 0), std::slice::from_ref(&named), "{name:?}");
        assert_eq!(
            store.note_replica(&named, at(0)).unwrap(),
            std::slice::from_ref(&named),
            "{name:?}"
        );
        let name = named.name.as_str();
        assert!(name.chars().count() <= 64 && !name.contains(char::is_control), "{name:?}");
    }
    // One that something else wrote is cut when it is read.
    let long = Statement::new("UPDATE replicas SET name = ").value("y".repeat(10_000).as_str());
    store.0.file.database().unwrap().connections.maintain(long).unwrap();
    let [found] = listed(&store, &replica("a", None, 9), 0).try_into().unwrap();
    assert_eq!(found.name.as_str(), "y".repeat(64));
    // The store is none the worse for any of them.
    assert!(store.0.file.state().health.failing.is_none());
    store.note(&check_in("n", 1));
    written(&store);
    assert_eq!(super::names(&store), ["n"]);
}

#[test]
fn the_daemon_of_a_file_lists_itself_alone() {
    let store = opened(None);
    for id in ["a", "b"] {
        let own = replica(id, Some(1), 10);
        assert_eq!(store.note_replica(&own, at(0)).unwrap(), [own]);
        store.forget_replica(id).unwrap();
    }
    assert_eq!(count_replicas(&store), 0);
}

#[test]
fn daemons_list_each_other_while_all_say_that_they_are_there() {
    let Some(stores) = replicas(4) else { return };
    let say = |number: usize, second: i64| {
        let own = replica(&number.to_string(), Some(1), second);
        stores[number].note_replica(&own, at(second - 50)).unwrap()
    };
    std::thread::scope(|scope| {
        for number in 0..stores.len() {
            let say = &say;
            scope.spawn(move || {
                for second in 100..140 {
                    let found = say(number, second);
                    assert!(found.iter().any(|it| it.id == number.to_string()), "{found:?}");
                }
            });
        }
    });
    let ids =
        |found: Vec<StoredReplica>| -> Vec<String> { found.into_iter().map(|it| it.id).collect() };
    assert_eq!(ids(say(3, 140)), ["3", "0", "1", "2"]);
    stores[1].forget_replica("1").unwrap();
    assert_eq!(ids(say(0, 141)), ["0", "3", "2"]);
}

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
fn trusted_data_that_come_late_are_kept_beside_a_bare_request() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    let asked = part_of(Some(1), Some(1));
    note_part(a, 10, SaidPart::Both, &asked);
    note_part(b, 11, SaidPart::Both, &Node::named("n"));
    written(b);
    written(a);
    assert_eq!(b.get("n").unwrap().check_in.unwrap().node, asked);
}

#[test]
fn a_late_answer_does_not_replace_a_later_one_where_facts_came_last() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    let rules = snapshot(1, &[rule("Debian"), rule("Suse")]);
    let family = |family: &str| node("n", &json!({"os": {"family": family}}));
    ask(a, 10, &rules, &family("RedHat"));
    written(a);
    let suse = ask(a, 20, &rules, &family("Suse"));
    let debian = ask(b, 21, &rules, &family("Debian"));
    written(b);
    note_part(b, 22, SaidPart::Facts, &family("Debian"));
    written(b);
    written(a);
    let last = |it: &CheckIns| it.node("n", &Unlimited).unwrap().unwrap().answer.unwrap();
    assert_eq!(last(b), (debian.clone(), at(21)));
    let found: Vec<_> =
        whole_history(a, "n").into_iter().map(|it| (it.time, it.after)).skip(1).collect();
    assert_eq!(found, [(at(20), suse.clone()), (at(21), debian)]);
    // An answer that is the latest is, though facts came after it.
    ask(a, 30, &rules, &family("Suse"));
    note_part(b, 31, SaidPart::Facts, &family("Suse"));
    written(b);
    written(a);
    assert_eq!(last(b), (suse, at(30)));
}

#[test]
fn what_a_node_got_before_and_after_another_daemon_answered_are_two_changes() {
    for first in [0, 1] {
        let Some(stores) = replicas(2) else { return };
        let [a, b] = stores.as_slice() else { panic!() };
        let rules = snapshot(1, &[rule("Debian"), rule("Suse")]);
        let family = |family: &str| node("n", &json!({"os": {"family": family}}));
        ask(a, 1, &rules, &family("RedHat"));
        written(a);
        let suse = ask(a, 4, &rules, &family("Suse"));
        let debian = ask(b, 7, &rules, &family("Debian"));
        if first == 0 {
            written(a);
        }
        ask(a, 12, &rules, &family("Suse"));
        written(b);
        written(a);
        let found: Vec<_> =
            whole_history(a, "n").into_iter().map(|it| (it.time, it.after)).skip(1).collect();
        let expected = [(at(4), suse.clone()), (at(7), debian), (at(12), suse.clone())];
        assert_eq!(found, expected, "{first}");
        let last = b.node("n", &Unlimited).unwrap().unwrap().answer.unwrap();
        assert_eq!(last, (suse, at(12)), "{first}");
    }
}

#[test]
fn a_daemon_answers_by_what_came_last_and_not_by_what_waits_there() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    note_part(b, 10, SaidPart::Both, &part_of(Some(1), Some(1)));
    written(b);
    note_part(a, 20, SaidPart::Both, &part_of(Some(2), Some(2)));
    note_part(b, 22, SaidPart::Facts, &part_of(Some(3), None));
    written(b);
    let known = |it: &CheckIns| it.get("n").unwrap().check_in.unwrap();
    assert_eq!(known(a).node, part_of(Some(3), Some(2)));
    note_part(a, 21, SaidPart::Trusted, &part_of(None, Some(4)));
    assert_eq!(known(a).node, part_of(Some(3), Some(4)));
    note_part(a, 23, SaidPart::Facts, &part_of(Some(5), None));
    assert_eq!(known(a).node, part_of(Some(5), Some(4)));
    written(a);
    assert_eq!((known(a), known(b).node), (known(b), part_of(Some(5), Some(4))));
}

#[test]
fn trusted_data_that_come_late_are_kept_beside_facts_that_came_alone() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    note_part(a, 10, SaidPart::Both, &part_of(None, Some(1)));
    note_part(b, 11, SaidPart::Facts, &part_of(Some(2), None));
    written(b);
    written(a);
    assert_eq!(b.get("n").unwrap().check_in.unwrap().node, part_of(Some(2), Some(1)));
}

#[test]
fn what_another_daemon_has_from_before_a_deletion_does_not_bring_the_node_back() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    let note = |store: &CheckIns, said| {
        let time = Timestamp::now();
        let node = part_of(Some(1), Some(1));
        let check_in = CheckIn { time, transaction_uuid: None, commit: None, node };
        store.note(Noted { said, ..Noted::from(&check_in) });
    };
    note(b, SaidPart::Both);
    written(b);
    for said in [SaidPart::Both, SaidPart::Facts, SaidPart::Trusted] {
        note(a, said);
        assert!(b.forget_node("n").unwrap());
        written(a);
        assert_eq!(b.get("n").unwrap().check_in, None, "{said:?}");
        // It comes back when it says something again, to either.
        note(a, SaidPart::Both);
        written(a);
        note(b, SaidPart::Both);
        written(b);
        assert!(a.get("n").unwrap().check_in.is_some(), "{said:?}");
    }
    // What a request waits for is written.
    let time = Timestamp::now();
    let node = part_of(Some(2), Some(2));
    let sent = CheckIn { time, transaction_uuid: None, commit: None, node: node.clone() };
    let row = Row::of(&Noted::from(&sent)).unwrap();
    let room = a.0.pending.try_room(row.body.len()).unwrap();
    let (sender, mut told) = oneshot::channel();
    a.0.pending.put("n", row.into(), room, Some(sender));
    assert!(b.forget_node("n").unwrap());
    written(a);
    assert_eq!(told.try_recv().unwrap(), Ok(()));
    assert_eq!(b.get("n").unwrap().check_in.unwrap().node, node);
    let deletions = || {
        let database = b.0.file.database().unwrap();
        let counted = database.connections.read(async |connection| {
            let all = Statement::new("SELECT COUNT(*) FROM forgotten_nodes");
            integer(&all.first(connection).await?.unwrap(), 0)
        });
        counted.unwrap()
    };
    assert_eq!(deletions(), 1);
    // As of the server, which is earlier.
    b.0.writer.forget(Timestamp::MAX);
    assert_eq!(deletions(), 1);
    b.0.file.database().unwrap().drop_deletions(Timestamp::MAX).unwrap();
    assert_eq!(deletions(), 0);
}

#[test]
fn a_clock_that_is_ahead_forgets_nothing_that_others_saw() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    let node = part_of(Some(1), Some(1));
    let time = Timestamp::now();
    a.note(&CheckIn { time, transaction_uuid: None, commit: None, node });
    written(a);
    b.0.writer.forget(Timestamp::MAX);
    assert!(a.get("n").unwrap().check_in.is_some());
    b.0.file.database().unwrap().forget(i64::MAX).unwrap();
    assert!(a.get("n").unwrap().check_in.is_none(), "it would have been forgotten");
}

/// That a node says something at a second to one of the daemons.
type Said<'n> = (i64, usize, SaidPart, &'n Node);

/// A bare request says that a node is there, and nothing of when something was known of it.
#[test]
fn what_comes_late_is_kept_beside_bare_requests_and_facts_that_came_alone() {
    let bare = Node::named("n");
    let (both, facts) = (part_of(Some(1), Some(1)), part_of(Some(3), None));
    let (first, second) = (part_of(None, Some(1)), part_of(None, Some(2)));
    let rows: [(&[Said<'_>], &[Said<'_>], Node); 3] = [
        (
            &[(1, 0, SaidPart::Facts, &both), (2, 0, SaidPart::Trusted, &second)],
            &[(3, 1, SaidPart::Both, &bare)],
            part_of(Some(1), Some(2)),
        ),
        (
            &[(1, 0, SaidPart::Both, &both)],
            &[(2, 1, SaidPart::Both, &bare), (3, 1, SaidPart::Facts, &facts)],
            part_of(Some(3), Some(1)),
        ),
        (
            &[(2, 0, SaidPart::Both, &second)],
            &[(1, 1, SaidPart::Both, &first), (3, 1, SaidPart::Facts, &facts)],
            part_of(Some(3), Some(2)),
        ),
    ];
    for (late, early, expected) in rows {
        let Some(stores) = replicas(2) else { return };
        for (second, store, said, node) in late.iter().chain(early).copied() {
            note_part(&stores[store], 10 + second, said, node);
            if store == 1 {
                written(&stores[1]);
            }
        }
        let known = |it: &CheckIns| it.get("n").unwrap().check_in.unwrap().node;
        assert_eq!(known(&stores[0]), expected, "what waits");
        written(&stores[0]);
        assert_eq!(known(&stores[1]), expected);
    }
}

#[test]
fn the_server_ends_what_stands_still() {
    let Some(server) = Postgres::shared() else { return };
    let store = opened_at(&TestedDatabase::Postgres(server).fresh(), LIMITS);
    let database = store.0.file.database().unwrap();
    let setting = async |connection: &mut sqlx::AnyConnection, name: &str| {
        let setting = Statement::new("SELECT current_setting(").value(name).text(")");
        text(&setting.first(connection).await.unwrap().unwrap(), 0).unwrap()
    };
    let read = database.connections.read(async |connection| {
        Ok([
            setting(connection, "lock_timeout").await,
            setting(connection, "idle_in_transaction_session_timeout").await,
        ])
    });
    assert_eq!(read.unwrap(), ["5s", "30s"]);
    let written = database.connections.write(async |connection| {
        Ok([
            setting(connection, "lock_timeout").await,
            setting(connection, "statement_timeout").await,
            setting(connection, "idle_in_transaction_session_timeout").await,
        ])
    });
    assert_eq!(written.unwrap(), ["20s", "30s", "30s"]);
}

#[test]
fn a_database_that_lacks_characters_is_not_used() {
    let Some(server) = Postgres::shared() else { return };
    server.sql(
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    );
    let location = server.url("").replace("/postgres?", "/latin?").parse().unwrap();
    let store = opened_at(&location, LIMITS);
    let error = store.0.writer.take_turn().unwrap_err().to_string();
    assert!(error.contains("the encoding LATIN1"), "{error}");
}

/// The node with a fact and an entry of trusted data.
fn part_of(fact: Option<usize>, trusted: Option<usize>) -> Node {
    let mut node = Node::named("n");
    node.fact.extend(fact.map(|it| ("f".to_owned(), it.into())));
    node.trusted.extend(trusted.map(|it| ("t".to_owned(), it.into())));
    node
}

fn note_part(store: &CheckIns, second: i64, said: SaidPart, node: &Node) {
    let node = node.clone();
    let check_in = CheckIn { time: at(second), transaction_uuid: None, commit: None, node };
    store.note(Noted { said, ..Noted::from(&check_in) });
}

/// What a node says to one of two daemons.
#[derive(Clone, Copy, Debug)]
struct PartStep {
    said: SaidPart,
    store: usize,
}

/// All sequences of three steps.
fn part_sequences() -> Vec<[PartStep; 3]> {
    let steps: Vec<PartStep> = [SaidPart::Both, SaidPart::Facts, SaidPart::Trusted]
        .into_iter()
        .flat_map(|said| [0, 1].map(|store| PartStep { said, store }))
        .collect();
    let one = || steps.iter().copied();
    let all = one().flat_map(|a| one().flat_map(move |b| one().map(move |c| [a, b, c])));
    all.collect()
}

/// Whichever daemon writes first, each part is the one that came last.
#[test]
fn each_part_of_a_node_is_the_one_that_was_said_last() {
    let sequences = part_sequences();
    let named = |number: usize, node: Node| Node { name: format!("n{number}"), ..node };
    // Which daemon writes after each step; after the last one, both do.
    for writes in [[None; 2], [Some(0), None], [None, Some(0)], [None, Some(1)], [Some(1), Some(0)]]
    {
        for last in [0, 1] {
            let Some(stores) = replicas(2) else { return };
            let mut between = writes.into_iter();
            for step in 0..3 {
                for (number, sequence) in sequences.iter().enumerate() {
                    let PartStep { said, store } = sequence[step];
                    let node = named(number, part_of(Some(step), Some(step)));
                    note_part(&stores[store], 10 + i64::try_from(step).unwrap(), said, &node);
                }
                if let Some(writer) = between.next().flatten() {
                    written(&stores[writer]);
                }
            }
            written(&stores[last]);
            written(&stores[1 - last]);
            for (number, sequence) in sequences.iter().enumerate() {
                let said = |other| sequence.iter().rposition(|it| it.said != other);
                let expected =
                    named(number, part_of(said(SaidPart::Trusted), said(SaidPart::Facts)));
                for store in &stores {
                    let known = store.get(&expected.name).unwrap().check_in.unwrap();
                    assert_eq!(known.node, expected, "{sequence:?} {writes:?} {last}");
                    assert_eq!(known.time, at(12), "{sequence:?} {writes:?} {last}");
                }
            }
        }
    }
}

#[test]
fn a_daemon_that_keeps_one_time_for_both_parts_writes_beside_this_one() {
    let Some(stores) = replicas(2) else { return };
    let [a, b] = stores.as_slice() else { panic!() };
    note_part(a, 10, SaidPart::Both, &part_of(Some(1), Some(1)));
    written(a);
    note_part(a, 20, SaidPart::Facts, &part_of(Some(2), None));
    // Its write leaves the times of the parts as they are.
    let other = Statement::new("UPDATE nodes SET checked_in = ").value(at(30).as_microsecond());
    let other = other.text(", last_seen = ").value(at(30).as_microsecond()).text(", writer = 1");
    b.0.file.database().unwrap().connections.maintain(other).unwrap();
    written(a);
    let known = b.get("n").unwrap().check_in.unwrap();
    assert_eq!((known.time, known.node), (at(30), part_of(Some(1), Some(1))));
}

#[test]
fn no_node_has_a_name_that_postgresql_cannot_hold() {
    let Some(stores) = replicas(1) else { return };
    let store = &stores[0];
    store.note(&check_in("n", 1));
    for name in ["n\0", "\0", "a\0b"] {
        assert_eq!(store.get(name).unwrap().check_in, None);
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
