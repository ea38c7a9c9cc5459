#![expect(clippy::disallowed_methods, reason = "files are damaged")]

#[path = "../../../tests/integration/postgres.rs"]
#[expect(dead_code, reason = "tests of the whole program stop it and start it again")]
mod postgres_server;

use std::path::Path;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::facts::Unlimited;
use crate::model::Node;
use crate::store::SaidPart;
use crate::store::database::StoreLimits;
use crate::store::opening::find_put_aside;
use postgres_server::Postgres;

fn check_in(name: &str, fact: i64) -> CheckIn {
    let facts = json!({"n": fact, "f": 1.50});
    let mut node = Node::named(name);
    node.fact = facts.as_object().unwrap().clone();
    CheckIn { time: Timestamp::UNIX_EPOCH, transaction_uuid: None, commit: None, node }
}

const LIMITS: StoreLimits = StoreLimits {
    nodes: 1000,
    bytes: 1 << 30,
    forget_after: Duration::from_hours(1),
    history: Duration::from_hours(1),
};

/// A database that tests of the store run against.
#[derive(Clone, Copy)]
enum TestedDatabase {
    Sqlite,
    Postgres(&'static Postgres),
}

impl TestedDatabase {
    /// Returns the place of an empty store.
    fn fresh(self) -> StoreLocation {
        match self {
            Self::Sqlite => StoreLocation::Memory,
            Self::Postgres(server) => server.schema().parse().unwrap(),
        }
    }
}

/// Runs tests against either database.
macro_rules! with_either_database {
    ($($test:ident)*) => {
        mod sqlite {
            use super::TestedDatabase;
            $(#[test] fn $test() { super::$test(TestedDatabase::Sqlite); })*
        }
        mod postgres {
            use super::{Postgres, TestedDatabase};
            $(#[test] fn $test() {
                let Some(server) = Postgres::shared() else { return };
                super::$test(TestedDatabase::Postgres(server));
            })*
        }
    };
}

mod ahead;
mod causes;
mod edges;
mod fleet;
mod former_file;
mod history;
mod large;
mod load;
mod lost_log;
mod paging;
mod parts;
mod replicas;
mod year;

with_either_database! {
    a_row_is_read_when_there_is_room_for_its_size
    a_list_reads_a_large_row_alone_and_when_there_is_room_for_it
    a_large_row_that_changes_while_it_is_read_does_not_block_the_list
    the_latest_check_in_of_a_node_is_kept
    a_check_in_is_the_same_with_and_without_its_facts_read
    a_row_that_would_expand_is_an_error_of_its_own
    what_waits_is_written_before_the_end
    a_request_without_facts_does_not_hide_facts
    made_up_names_make_room_for_each_other_and_not_for_nodes_that_came_back
    bytes_have_a_limit_too
    a_node_that_finds_no_room_for_its_facts_pushes_nothing_out_and_stays_known
    nodes_that_are_not_seen_are_forgotten
}

fn opened_at(location: &StoreLocation, limits: StoreLimits) -> CheckIns {
    let location = location.clone();
    let settings =
        StoreSettings { location, is_own_place: true, former: None, cache: 1 << 20, limits };
    let store = CheckIns::new(settings, Arc::default());
    // As the writer does at the start.
    store.0.writer.take_turn().unwrap_or_else(|error| println!("{error}"));
    store
}

fn limited(path: Option<&Path>, limits: StoreLimits) -> CheckIns {
    let location = path.map_or(StoreLocation::Memory, |it| StoreLocation::Sqlite(it.to_owned()));
    opened_at(&location, limits)
}

fn opened(path: Option<&Path>) -> CheckIns {
    limited(path, LIMITS)
}

fn all(store: &CheckIns) -> Vec<CheckIn> {
    let mut all = Vec::new();
    store.for_each(&Unlimited, |it| all.push(it.check_in.unwrap())).unwrap();
    all
}

/// What is counted is what a list of all nodes has.
fn assert_counted(store: &CheckIns) {
    let range = NodeRange { offset: 0, limit: usize::MAX >> 1 };
    let listed = store.nodes(&NodeFilter::default(), range).unwrap();
    let mut expected = StoredNodeCounts { total: listed.total, ..StoredNodeCounts::default() };
    for node in &listed.nodes {
        if let Some(answer) = &node.answer {
            *expected.states.entry(answer.state).or_default() += 1;
        }
        if let Some(commit) = node.commit {
            *expected.commits.entry(commit).or_default() += 1;
        }
    }
    let counted = store.counts(Timestamp::MIN, Timestamp::MAX).unwrap();
    assert_eq!(counted, expected);
    assert_eq!(store.commit_counts().unwrap(), expected.commits);
}

fn names(store: &CheckIns) -> Vec<String> {
    assert_counted(store);
    all(store).into_iter().map(|it| it.node.name).collect()
}

/// Notes what is asked for, and admits rows of so many bytes.
#[derive(Default)]
struct Asked {
    most: usize,
    bytes: Mutex<Vec<usize>>,
    rows: Mutex<Vec<usize>>,
    released: Mutex<usize>,
}

impl RowRoom for Asked {
    fn admits_bytes(&self, bytes: usize) -> bool {
        self.bytes.lock().push(bytes);
        bytes <= self.most
    }

    fn admits_row(&self, row: &[u8]) -> bool {
        self.rows.lock().push(row.len());
        true
    }

    fn release(&self) {
        *self.released.lock() += 1;
    }
}

fn a_row_is_read_when_there_is_room_for_its_size(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let mut large = check_in("large", 1);
    large.node.fact.insert("text".to_owned(), "x".repeat(LARGE_ROW).into());
    store.note(&large);
    store.note(&check_in("small", 1));
    for state in ["waiting", "written"] {
        let room = Asked::default();
        let error = store.get_within("large", &room).unwrap_err();
        assert_eq!((error.fault, room.rows.lock().len()), (StoreFault::Busy, 0), "{state}");
        let room = Asked { most: 2 * LARGE_ROW, ..Asked::default() };
        for (name, expected) in [("large", &large), ("small", &check_in("small", 1))] {
            assert_eq!(store.get_within(name, &room).unwrap().check_in.as_ref(), Some(expected));
        }
        assert_eq!(*room.bytes.lock(), *room.rows.lock(), "{state}");
        store.0.writer.take_turn().unwrap();
    }
}

fn a_list_reads_a_large_row_alone_and_when_there_is_room_for_it(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let mut large = check_in("b", 1);
    large.node.fact.insert("text".to_owned(), "x".repeat(LARGE_ROW).into());
    let expected = [check_in("a", 1), large.clone(), check_in("c", 1), check_in("d", 1)];
    for check_in in &expected {
        store.note(check_in);
    }
    let room = Asked { most: 2 * LARGE_ROW, ..Asked::default() };
    let mut batches = vec![Vec::new()];
    let mut released = 0;
    store
        .for_each(&room, |it| {
            if std::mem::replace(&mut released, *room.released.lock()) != released {
                batches.push(Vec::new());
            }
            batches.last_mut().unwrap().push(it.check_in.unwrap());
        })
        .unwrap();
    let [a, b, c, d] = expected;
    assert_eq!(batches, [vec![a], vec![b], vec![c, d]]);
    assert_eq!(room.bytes.lock().len(), 1, "small rows take no room");
    assert_eq!(*room.bytes.lock(), *room.rows.lock());
    let error = store.for_each(&Asked::default(), drop).unwrap_err();
    assert_eq!(error.fault, StoreFault::Busy, "a row is not left out");
}

/// Changes the row of `b` when it is admitted; a second one must wait until the first is released.
struct Changing<'s> {
    store: &'s CheckIns,
    change: fn(&CheckIns),
    is_held: Mutex<bool>,
}

impl RowRoom for Changing<'_> {
    fn admits_bytes(&self, _: usize) -> bool {
        let was_held = std::mem::replace(&mut *self.is_held.lock(), true);
        assert!(!was_held, "a row waits for the memory of one that nothing uses any more");
        (self.change)(self.store);
        true
    }

    fn admits_row(&self, row: &[u8]) -> bool {
        assert!(row.len() >= LARGE_ROW, "a small row waits for more memory");
        true
    }

    fn release(&self) {
        *self.is_held.lock() = false;
    }
}

fn a_large_row_that_changes_while_it_is_read_does_not_block_the_list(database: TestedDatabase) {
    let forget: fn(&CheckIns) = |store| {
        store.0.file.database().unwrap().forget(1_000_000_000).unwrap();
    };
    let replace: fn(&CheckIns) = |store| {
        store.note(&check_in("b", 2));
        store.0.writer.take_turn().unwrap();
    };
    for (change, expected) in [(forget, ["c"].as_slice()), (replace, &["b", "c"])] {
        let store = opened_at(&database.fresh(), LIMITS);
        for (name, seconds) in [("b", 1), ("c", 2_000)] {
            let mut large = check_in(name, 1);
            large.time = Timestamp::from_second(seconds).unwrap();
            large.node.fact.insert("text".to_owned(), "x".repeat(LARGE_ROW).into());
            store.note(&large);
        }
        store.0.writer.take_turn().unwrap();
        let room = Changing { store: &store, change, is_held: Mutex::default() };
        let mut names = Vec::new();
        store.for_each(&room, |it| names.push(it.name)).unwrap();
        assert_eq!(names, expected);
    }
}

fn the_latest_check_in_of_a_node_is_kept(database: TestedDatabase) {
    let location = database.fresh();
    let store = opened_at(&location, LIMITS);
    store.note(&check_in("b", 1));
    store.note(&check_in("a", 1));
    store.note(&check_in("b", 2));
    // At once, before anything is written.
    assert_eq!(store.get("b").unwrap().check_in, Some(check_in("b", 2)));
    assert_eq!(store.get("c").unwrap().check_in, None);
    assert_eq!(all(&store), [check_in("a", 1), check_in("b", 2)]);
    assert_eq!(store.name_at(1).unwrap().as_deref(), Some("b"));
    assert_eq!(store.name_at(2).unwrap(), None);
    let rest = store.some_from(&after("a"), &Unlimited).unwrap().map(|it| it.check_in.unwrap());
    assert_eq!(rest.collect::<Vec<_>>(), [check_in("b", 2)]);
    store.note(&check_in("b", 3));
    assert_eq!(store.get("b").unwrap().check_in, Some(check_in("b", 3)));
    store.0.writer.take_turn().unwrap();
    drop(store);
    let store = match &location {
        StoreLocation::Memory => return,
        location => opened_at(location, LIMITS),
    };
    assert_eq!(all(&store), [check_in("a", 1), check_in("b", 3)]);
}

fn a_check_in_is_the_same_with_and_without_its_facts_read(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    for (transaction, commit) in
        [(Some("t\"1"), "0123456789012345678901234567890123456789".parse().ok()), (None, None)]
    {
        let expected = CheckIn {
            transaction_uuid: transaction.map(str::to_owned),
            commit,
            ..check_in("n\"é", 5)
        };
        store.note_received(Received {
            time: expected.time,
            transaction_uuid: transaction,
            commit,
            answered: None,
            name: "n\"é",
            fact: "{\"n\": 4, \"n\" : 5,\n\"f\":1.5}",
            trusted: "{}",
            said: SaidPart::Both,
            form: None,
        });
        assert_eq!(store.get("n\"é").unwrap().check_in, Some(expected));
    }
}

fn a_row_that_would_expand_is_an_error_of_its_own(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let many = format!("{{\"n\":[{}]}}", vec!["0"; NODE_VALUES + 200].join(","));
    store.note(&check_in("a", 1));
    // As an older version kept it.
    store.note_received(Received {
        time: Timestamp::UNIX_EPOCH,
        transaction_uuid: None,
        commit: None,
        answered: None,
        name: "b",
        fact: &many,
        trusted: "{}",
        said: SaidPart::Both,
        form: None,
    });
    store.note(&check_in("c", 1));
    for _ in 0..2 {
        let error = store.get("b").unwrap_err();
        assert_eq!(error.fault, StoreFault::Row);
        assert!(error.to_string().contains("`b` has over 250000 JSON values"), "{error}");
        store.0.writer.take_turn().unwrap();
    }
    let mut listed = Vec::new();
    store.for_each(&Unlimited, |it| listed.push((it.name, it.check_in.is_ok()))).unwrap();
    let expected = [("a", true), ("b", false), ("c", true)];
    assert_eq!(listed, expected.map(|(name, read)| (name.to_owned(), read)));
    store.note(&check_in("b", 2));
    assert_eq!(store.get("b").unwrap().check_in, Some(check_in("b", 2)));
}

fn what_waits_is_written_before_the_end(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let writer = std::thread::spawn({
        let store = store.clone();
        move || store.keep_writing(&|_| {})
    });
    store.note(&check_in("a", 1));
    store.stop();
    writer.join().unwrap();
    assert!(store.0.pending.queue().is_empty());
    assert_eq!(store.get("a").unwrap().check_in, Some(check_in("a", 1)));
}

fn a_request_without_facts_does_not_hide_facts(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let bare = |seconds: i64| {
        let time = Timestamp::from_second(seconds).unwrap();
        CheckIn { time, node: Node::named("a"), ..check_in("a", 0) }
    };
    store.note(&bare(1));
    assert_eq!(store.get("a").unwrap().check_in, Some(bare(1)));
    store.note(&check_in("a", 1));
    store.note(&bare(2));
    assert_eq!(store.get("a").unwrap().check_in, Some(check_in("a", 1)), "both wait");
    store.0.writer.take_turn().unwrap();
    store.note(&bare(3));
    assert_eq!(store.get("a").unwrap().check_in, Some(check_in("a", 1)), "one waits");
    store.0.writer.take_turn().unwrap();
    assert_eq!(store.get("a").unwrap().check_in, Some(check_in("a", 1)), "both are written");
}

fn made_up_names_make_room_for_each_other_and_not_for_nodes_that_came_back(
    database: TestedDatabase,
) {
    let store = opened_at(&database.fresh(), StoreLimits { nodes: 4, ..LIMITS });
    let seen = |name: &str, seconds: i64| {
        store
            .note(&CheckIn { time: Timestamp::from_second(seconds).unwrap(), ..check_in(name, 1) });
        store.0.writer.take_turn().unwrap();
    };
    for name in ["a", "b"] {
        seen(name, 0);
        seen(name, 1800);
    }
    for (name, time) in [("x1", 1801), ("x2", 1802), ("x3", 1803), ("x4", 1804)] {
        seen(name, time);
    }
    assert_eq!(names(&store), ["a", "b", "x3", "x4"]);
    // Where all came back, the next one finds no room.
    seen("x3", 4000);
    seen("x4", 4000);
    seen("y", 4001);
    assert_eq!(names(&store), ["a", "b", "x3", "x4"]);
    seen("a", 4002);
    assert_eq!(store.get("a").unwrap().check_in.unwrap().time.as_second(), 4002);
}

fn bytes_have_a_limit_too(database: TestedDatabase) {
    let size = {
        let store = opened_at(&database.fresh(), LIMITS);
        store.note(&check_in("a", 1));
        store.0.writer.take_turn().unwrap();
        store.0.file.database().unwrap().size().unwrap().bytes
    };
    let store = opened_at(&database.fresh(), StoreLimits { bytes: 2 * size, ..LIMITS });
    for name in ["a", "b", "c"] {
        store.note(&check_in(name, 1));
        store.0.writer.take_turn().unwrap();
    }
    assert_eq!(names(&store), ["b", "c"]);
    let mut large = check_in("d", 1);
    let noise: Vec<String> =
        (0_u32..400).map(|it| it.wrapping_mul(2_654_435_761).to_string()).collect();
    large.node.fact.insert("large".to_owned(), noise.concat().into());
    store.note(&large);
    assert_eq!(names(&store), ["b", "c"], "what is larger than all pushes nothing out");
}

fn a_node_that_finds_no_room_for_its_facts_pushes_nothing_out_and_stays_known(
    database: TestedDatabase,
) {
    let size = {
        let store = opened_at(&database.fresh(), LIMITS);
        store.note(&check_in("a", 1));
        store.0.writer.take_turn().unwrap();
        store.0.file.database().unwrap().size().unwrap().bytes
    };
    let store = opened_at(&database.fresh(), StoreLimits { bytes: 10 * size, ..LIMITS });
    let seen = |name: &str, seconds: i64, text: String| {
        let mut check_in = check_in(name, 1);
        check_in.time = Timestamp::from_second(seconds).unwrap();
        if !text.is_empty() {
            check_in.node.fact.insert("text".to_owned(), text.into());
        }
        store.note(&check_in);
        store.0.writer.take_turn().unwrap();
    };
    let noise = |count: u32| -> String {
        (0..count).map(|it| it.wrapping_mul(2_654_435_761).to_string()).collect()
    };
    // More than half of all bytes, of a node that came back.
    let mut half = 1;
    while store.0.file.database().unwrap().size().unwrap().bytes <= 5 * size {
        half += 1;
        seen("a", 0, noise(half));
    }
    seen("a", 1000, noise(half));
    for name in ["k", "x1", "x2"] {
        seen(name, 2000, String::new());
    }
    assert_eq!(names(&store), ["a", "k", "x1", "x2"]);
    // As large, so that there is no room even without the nodes that were seen once.
    seen("y", 3000, noise(half));
    assert_eq!(names(&store), ["a", "k", "x1", "x2"], "it pushes nothing out");
    seen("k", 4000, noise(half));
    assert_eq!(names(&store), ["a", "k", "x1", "x2"]);
    let kept = store.node("k", &Unlimited).unwrap().unwrap();
    assert_eq!((kept.last_seen.as_second(), kept.node), (4000, check_in("k", 1).node));
    let sizes = store.0.file.database().unwrap().size().unwrap();
    assert!(sizes.nodes == 4 && sizes.bytes <= 10 * size, "{sizes:?}");
}

fn nodes_that_are_not_seen_are_forgotten(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    for (name, seconds) in [("old", 10), ("young", 30)] {
        store
            .note(&CheckIn { time: Timestamp::from_second(seconds).unwrap(), ..check_in(name, 1) });
    }
    store.0.writer.take_turn().unwrap();
    let database = store.0.file.database().unwrap();
    assert_eq!(database.forget(20_000_000).unwrap(), 1);
    assert_eq!(names(&store), ["young"]);
    assert_eq!(database.size().unwrap().nodes, 1);
    assert_eq!(database.forget(20_000_000).unwrap(), 0);
}

#[test]
fn a_file_that_was_removed_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let store = opened(Some(&path));
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    std::fs::remove_file(&path).unwrap();
    store.note(&check_in("b", 1));
    store.0.writer.take_turn().unwrap();
    drop(store);
    assert_eq!(names(&opened(Some(&path))), ["a", "b"]);
}

#[test]
fn a_damaged_file_is_put_aside_and_its_nodes_are_not_taken_for_unknown() {
    let sound = {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nodes.sqlite");
        let store = opened(Some(&path));
        for number in 0..50 {
            let mut node = check_in(&format!("n{number}"), number);
            node.node.fact.insert("long".to_owned(), "x".repeat(9000).into());
            store.note(&node);
        }
        store.0.writer.take_turn().unwrap();
        drop(store);
        assert!(!directory.path().join("nodes.sqlite-wal").exists(), "it is closed");
        std::fs::read(&path).unwrap()
    };
    let overwritten = |range: std::ops::Range<usize>| {
        let mut bytes = sound.clone();
        bytes[range].fill(0xa5);
        bytes
    };
    let mut version = sound.clone();
    // The version that is needed to write and to read the file.
    version[18..20].fill(99);
    let cases: [(&str, Vec<u8>); 8] = [
        ("garbage", b"garbage\n".repeat(4000)),
        ("a few bytes", b"x".to_vec()),
        ("half", sound[..sound.len() / 2].to_vec()),
        ("the header alone", sound[..320].to_vec()),
        ("zeros", vec![0; sound.len()]),
        ("a header of noise", overwritten(9..400)),
        ("pages of noise", overwritten(4096..sound.len())),
        ("another version", version),
    ];
    for (what, bytes) in cases {
        put_aside_or_mended(what, &bytes);
    }
}

/// Opens a store with such a file.
fn put_aside_or_mended(what: &str, bytes: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    std::fs::write(&path, bytes).unwrap();
    let store = opened(Some(&path));
    // Some damage shows when a row is read or written.
    for _ in 0..3 {
        assert!(!matches!(store.get("n7").and_then(Stored::whole), Ok(None)), "{what}");
        store.note(&check_in("fresh", 1));
        store.0.writer.take_turn().ok();
    }
    assert_eq!(store.get("fresh").unwrap().check_in, Some(check_in("fresh", 1)), "{what}");
    let Some(aside) = find_put_aside(&path) else {
        // The database mended the file by itself; then the rows must be there.
        assert_eq!(store.get("n7").unwrap().check_in.unwrap().node.fact["n"], 7, "{what}");
        println!("{what}: mended");
        return;
    };
    let error = store.get("n7").unwrap().whole().unwrap_err();
    assert_eq!(error.fault, StoreFault::PutAside, "{what}: {error}");
    assert_eq!(std::fs::metadata(&aside).unwrap().len(), bytes.len() as u64, "{what}");
    // Also after a restart, until the file is removed.
    drop(store);
    let store = opened(Some(&path));
    assert!(store.get("n7").unwrap().whole().is_err(), "{what}");
    std::fs::remove_file(aside).unwrap();
    assert_eq!(store.get("n7").unwrap().whole().unwrap(), None, "{what}");
}

#[test]
fn while_a_file_is_put_aside_a_check_in_lacks_what_it_does_not_say() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    std::fs::write(&path, b"garbage\n".repeat(4000)).unwrap();
    let store = opened(Some(&path));
    let trusted = json!({"certname": "n"}).as_object().unwrap().clone();
    let whole = |name: &str| {
        let mut whole = check_in(name, 1);
        whole.node.trusted = trusted.clone();
        whole
    };
    let mut without_facts = whole("without-facts");
    without_facts.node.fact.clear();
    store.note(&whole("whole"));
    store.note(&check_in("without-trusted", 1));
    store.note(&without_facts);
    for _ in 0..2 {
        assert_eq!(store.get("whole").unwrap().whole().unwrap(), Some(whole("whole")));
        for name in ["without-trusted", "without-facts", "unknown"] {
            let stored = store.get(name).unwrap();
            assert_eq!(stored.check_in.is_some(), name != "unknown");
            assert_eq!(stored.whole().unwrap_err().fault, StoreFault::PutAside, "{name}");
        }
        // Also when they no longer wait to be written.
        store.0.writer.take_turn().unwrap();
    }
    // What the file may hold is not deleted.
    assert!(store.forget_node("whole").unwrap());
    let remains = |name: &str| store.remains(name).map(|it| it.fault);
    for name in ["whole", "unknown"] {
        assert_eq!(remains(name), Some(StoreFault::PutAside), "{name}");
    }
    std::fs::remove_file(find_put_aside(&path).unwrap()).unwrap();
    assert_eq!((remains("whole"), remains("unknown")), (None, None));
    assert!(!store.forget_node("whole").unwrap());
    let found = store.get("without-trusted").unwrap().whole().unwrap();
    assert_eq!(found, Some(check_in("without-trusted", 1)));
}

#[test]
fn what_stands_in_the_place_of_the_file_is_put_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    std::fs::create_dir(&path).unwrap();
    let store = opened(Some(&path));
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    assert_eq!(names(&store), ["a"]);
    assert!(find_put_aside(&path).unwrap().is_dir());
}

#[test]
fn while_another_process_writes_what_is_there_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let first = opened(Some(&path));
    first.note(&check_in("a", 1));
    first.0.writer.take_turn().unwrap();
    let second = opened(Some(&path));
    let other = first.0.file.database().unwrap();
    let written = other.connections.write(async |_| {
        // As long as this transaction is open, the other waits, and then gives up.
        second.note(&check_in("b", 1));
        let waiting = second.clone();
        let error = std::thread::spawn(move || waiting.0.writer.take_turn().unwrap_err());
        let error = tokio::task::spawn_blocking(|| error.join().unwrap()).await.unwrap();
        assert_eq!(error.fault, StoreFault::Locked, "{error}");
        Ok(())
    });
    written.unwrap();
    assert_eq!(find_put_aside(&path), None);
    assert_eq!(second.get("a").unwrap().check_in, Some(check_in("a", 1)));
    second.0.writer.take_turn().unwrap();
    assert_eq!(names(&first), ["a", "b"]);
}

#[test]
fn what_is_kept_is_on_disk_or_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let store = opened(Some(&path));
    let writer = std::thread::spawn({
        let store = store.clone();
        move || store.keep_writing(&|_| {})
    });
    let received = |name: &'static str, fact: &'static str| Received {
        time: Timestamp::UNIX_EPOCH,
        transaction_uuid: None,
        commit: None,
        answered: None,
        name,
        fact,
        trusted: "{}",
        said: SaidPart::Both,
        form: None,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let keep = |received| runtime.block_on(store.keep(received));
    keep(received("a", "{\"n\":1}")).unwrap();
    let database = store.0.file.database().unwrap();
    assert!(database.row("a").unwrap().is_some());
    drop(database);
    store.0.file.state().health.failing =
        Some(StoreError::new(StoreFault::DiskFull, "written", "full"));
    let error = keep(received("b", "{\"n\":1}")).unwrap_err();
    assert_eq!(error.fault, StoreFault::DiskFull);
    store.stop();
    writer.join().unwrap();
}
