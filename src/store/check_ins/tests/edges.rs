//! Failures that must not lose what is stored.

use std::os::unix::fs::MetadataExt as _;

use super::history::{ask, node, rule, snapshot};
use super::*;
use crate::store::sql::{Statement, integer, text};

/// Returns what a statement gives of a file.
fn one_text(store: &CheckIns, sql: &'static str) -> String {
    let database = store.0.file.database().unwrap();
    let found = database.connections.read(async |connection| {
        let row = Statement::new(sql).first(connection).await?;
        text(&row.unwrap(), 0)
    });
    found.unwrap()
}

/// Another process that reads the file and ends removes its log, unless these locks say that it is in use.
#[cfg(target_os = "linux")]
#[test]
fn a_file_is_locked_as_long_as_it_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let locks = || {
        let inode = format!(":{} ", std::fs::metadata(&path).unwrap().ino());
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().filter(|it| it.contains(&inode)).count()
    };
    let store = opened(Some(&path));
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    assert!(locks() > 0);
    // It is opened again while a request still reads from the one before.
    let before = store.0.file.database().unwrap();
    store.0.file.fail(&before, StoreError::new(StoreFault::Io, "read", "the disk was away"));
    store.0.writer.take_turn().unwrap();
    let after = store.0.file.database().unwrap();
    assert!(!Arc::ptr_eq(&before, &after));
    assert!(locks() > 0);
    drop((before, after));
    assert!(locks() > 0);
}

#[test]
fn no_failure_empties_memory() {
    let store = opened(None);
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    for fault in [StoreFault::Io, StoreFault::TimedOut, StoreFault::Damaged, StoreFault::Statement]
    {
        let database = store.0.file.database().unwrap();
        store.0.file.fail(&database, StoreError::new(fault, "read", "a statement failed"));
        store.0.writer.take_turn().unwrap();
        assert_eq!(names(&store), ["a"], "{fault:?}");
    }
}

#[test]
fn a_statement_that_fails_does_not_close_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = opened(Some(&directory.path().join("nodes.sqlite")));
    store.note(&check_in("a", 1));
    let filter = NodeFilter { name_part: Some("x".repeat(50_001)), ..NodeFilter::default() };
    let listed = store.nodes(&filter, NodeRange { offset: 0, limit: 1 });
    assert_eq!(listed.unwrap_err().fault, StoreFault::Statement);
    assert_eq!(names(&store), ["a"]);
}

#[test]
fn promises_are_kept_some_at_a_time() {
    let store = opened(None);
    let mut receipts = Vec::new();
    for number in 0..600 {
        let row = Row::of(&Noted::from(&check_in(&format!("n{number}"), 1))).unwrap();
        let room = store.0.pending.try_room(row.body.len()).unwrap();
        let (sender, receipt) = oneshot::channel();
        store.0.pending.put(&format!("n{number}"), row.into(), room, Some(sender));
        receipts.push(receipt);
    }
    let batch = store.0.pending.queue().take(256, usize::MAX);
    assert_eq!(batch.nodes.len(), 256);
    store.0.pending.queue().put_back(batch);
    store.0.writer.take_turn().unwrap();
    // Those of the batch that was put back were not promised any more.
    let kept = receipts.iter_mut().filter_map(|it| it.try_recv().ok()).flatten();
    assert_eq!(kept.count(), 600 - 256);
}

#[test]
fn what_is_promised_waits_however_much_comes_after_it() {
    let store = opened(None);
    let row = Row::of(&Noted::from(&check_in("n", 7))).unwrap();
    let (sender, mut receipt) = oneshot::channel();
    let room = store.0.pending.try_room(row.body.len()).unwrap();
    store.0.pending.put("n", row.into(), room, Some(sender));
    let snapshots = [snapshot(1, &[rule("Debian")]), snapshot(2, &[rule("Suse")])];
    for number in 0..40 {
        let snapshot = &snapshots[usize::from(number % 2 == 0)];
        ask(&store, number, snapshot, &Node::named("n"));
    }
    let waiting = store.0.pending.queue().get("n").len();
    assert!((2..30).contains(&waiting), "{waiting}");
    store.0.writer.take_turn().unwrap();
    assert_eq!(receipt.try_recv(), Ok(Ok(())));
    let known = store.get("n").unwrap().check_in.unwrap();
    assert_eq!(known.node.fact["n"], json!(7));
}

#[test]
fn each_request_that_waits_is_told_of_what_it_sent() {
    let store = opened(None);
    let promise = |second| {
        let mut check_in = check_in("n", second);
        check_in.node.fact.insert("second".to_owned(), second.into());
        let row = Row::of(&Noted::from(&check_in)).unwrap();
        let room = store.0.pending.try_room(row.body.len()).unwrap();
        let (sender, receipt) = oneshot::channel();
        store.0.pending.put("n", row.into(), room, Some(sender));
        receipt
    };
    let snapshot = snapshot(1, &[rule("Debian")]);
    let [mut first, mut second] = [1, 2].map(|it| {
        let receipt = promise(it);
        // What it is answered between them keeps them apart.
        ask(&store, it, &snapshot, &node("n", &json!({"os": {"family": "Debian"}})));
        receipt
    });
    let take = || store.0.pending.queue().take(256, 1);
    let refused = StoreError::new(StoreFault::Limit, "written", "it is full");
    take().answer(|_| Err(refused.clone()));
    assert_eq!(first.try_recv(), Ok(Err(refused)));
    assert!(second.try_recv().is_err(), "it still waits");
    store.0.pending.queue().written();
    store.0.writer.take_turn().unwrap();
    assert_eq!(second.try_recv(), Ok(Ok(())));
}

#[test]
fn what_is_deleted_leaves_the_log_when_its_readers_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let store = opened(Some(&path));
    store.note(&check_in("a-name-that-is-deleted", 1));
    store.0.writer.take_turn().unwrap();
    let is_left = || {
        let files = std::fs::read_dir(directory.path()).unwrap().map(|it| it.unwrap().path());
        let contents: Vec<Vec<u8>> = files.map(|it| std::fs::read(it).unwrap()).collect();
        contents.iter().any(|it| it.windows(22).any(|it| it == b"a-name-that-is-deleted"))
    };
    assert!(is_left());
    let database = store.0.file.database().unwrap();
    let reading = database.connections.read_together(async |connection| {
        let count = Statement::new("SELECT COUNT(*) FROM nodes").first(connection).await?;
        let count = integer(&count.unwrap(), 0);
        // The log cannot be emptied while this reads; it waits for 5 s.
        let store = store.clone();
        let forget = std::thread::spawn(move || store.forget_node("a-name-that-is-deleted"));
        assert!(forget.join().unwrap().unwrap());
        count
    });
    assert_eq!(reading.unwrap(), 1);
    assert!(is_left());
    store.0.writer.retry_give_back();
    assert!(!is_left());
}

#[test]
fn a_copy_in_the_place_of_a_removed_file_is_read_while_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let store = opened(Some(&path));
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    assert_eq!(one_text(&store, "PRAGMA journal_mode"), "wal");
    std::fs::remove_file(&path).unwrap();
    store.0.writer.take_turn().unwrap();
    assert_eq!(names(&store), ["a"]);
    assert_eq!(one_text(&store, "PRAGMA journal_mode"), "wal");
}

/// The directory is renamed, or its volume is detached: what was stored must not be lost where it comes back.
#[test]
fn a_removed_file_that_cannot_be_written_once_more_is_read_on() {
    let directory = tempfile::tempdir().unwrap();
    let (data, away) = (directory.path().join("data"), directory.path().join("away"));
    std::fs::create_dir(&data).unwrap();
    let store = opened(Some(&data.join("nodes.sqlite")));
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    std::fs::rename(&data, &away).unwrap();
    store.note(&check_in("b", 1));
    for _ in 0..3 {
        assert!(store.0.writer.take_turn().is_err());
        for name in ["a", "b"] {
            assert!(store.get(name).unwrap().check_in.is_some(), "{name}");
        }
    }
    // Another directory in its place gets everything.
    std::fs::create_dir(&data).unwrap();
    store.0.writer.take_turn().unwrap();
    assert_eq!(names(&store), ["a", "b"]);
    store.0.file.close();
    drop(store);
    assert_eq!(names(&opened(Some(&data.join("nodes.sqlite")))), ["a", "b"]);
}

#[test]
fn the_file_of_a_newer_version_stays_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let store = opened(Some(&path));
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    let database = store.0.file.database().unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (99, 'newer', TRUE, x'00', 0)";
    database.connections.maintain(Statement::new(newer)).unwrap();
    drop(database);
    store.0.file.close();
    drop(store);
    let store = opened(Some(&path));
    let error = store.get("a").unwrap_err();
    assert!(error.to_string().contains("newer version"), "{error}");
    assert!(path.exists() && find_put_aside(&path).is_none());
}

/// What was stored before a migration is still there after it, and goes on being written.
#[test]
fn the_file_of_an_older_version_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let store = opened(Some(&path));
    let snapshot = snapshot(1, &[]);
    ask(&store, 1, &snapshot, &node("a", &json!({"a": 1})));
    ask(&store, 1, &snapshot, &node("c", &json!({"a": 1})));
    store.note(&check_in("d", 1));
    store.0.writer.take_turn().unwrap();
    let database = store.0.file.database().unwrap();
    for older in [
        "DROP INDEX nodes_by_path_set",
        "ALTER TABLE nodes DROP COLUMN inputs_hash",
        "ALTER TABLE nodes DROP COLUMN facts_at",
        "ALTER TABLE nodes DROP COLUMN trusted_at",
        "ALTER TABLE nodes DROP COLUMN answered_at",
        "DROP TABLE forgotten_nodes",
        "DROP TABLE replicas",
        "DROP TABLE node_counts",
        "DROP INDEX changes_of_commits",
        "DROP INDEX answers_by_state",
        "DROP INDEX nodes_by_name",
        "DELETE FROM _sqlx_migrations WHERE version > 1",
    ] {
        database.connections.maintain(Statement::new(older)).unwrap();
    }
    drop(database);
    store.0.file.close();
    drop(store);
    let store = opened(Some(&path));
    assert_eq!(names(&store), ["a", "c", "d"]);
    assert_eq!(store.counts(Timestamp::MIN, Timestamp::MAX).unwrap().commits.len(), 1);
    store.note(&check_in("b", 2));
    store.note(&check_in("a", 3));
    store.0.writer.take_turn().unwrap();
    assert_eq!(names(&store), ["a", "b", "c", "d"]);
    assert_eq!(
        one_text(&store, "SELECT CAST(COUNT(*) AS TEXT) FROM nodes WHERE inputs_hash IS NULL"),
        "4"
    );
}

/// A node is not seen in the future for ever because a clock was wrong once.
#[test]
fn after_the_clock_is_set_back_nodes_are_seen_by_the_right_time() {
    let store = opened(None);
    for (second, expected) in [(1_000_000, 1_000_000), (999_990, 1_000_000), (5_000, 5_000)] {
        let time = Timestamp::from_second(second).unwrap();
        store.note(&CheckIn { time, ..check_in("a", second) });
        store.0.writer.take_turn().unwrap();
        let seen = one_text(&store, "SELECT CAST(last_seen / 1000000 AS TEXT) FROM nodes");
        assert_eq!(seen, expected.to_string());
    }
}

#[test]
fn what_nothing_refers_to_is_swept() {
    let store = opened(None);
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    let database = store.0.file.database().unwrap();
    for number in 0..2500 {
        let unused = format!(
            "INSERT INTO answers (digest, state, body) VALUES (CAST('{number}' AS BLOB), 0, x'00')"
        );
        let unused = Statement::new(Box::leak(unused.into_boxed_str()));
        database.connections.maintain(unused).unwrap();
    }
    let used = "UPDATE nodes SET answer = (SELECT MAX(id) FROM answers)";
    database.connections.maintain(Statement::new(used)).unwrap();
    let unused = "INSERT INTO path_sets (digest, paths) VALUES (x'01', '')";
    database.connections.maintain(Statement::new(unused)).unwrap();
    let counts = || {
        [
            "SELECT CAST(COUNT(*) AS TEXT) FROM answers",
            "SELECT CAST(COUNT(*) AS TEXT) FROM path_sets",
        ]
        .map(|it| one_text(&store, it))
    };
    // A part at a time, then from the first again.
    for (left, deleted) in [("1500", 1001), ("500", 1000), ("1", 499), ("1", 0), ("1", 0)] {
        assert_eq!(store.0.writer.sweep(), deleted);
        assert_eq!(counts(), [left, "0"]);
    }
}

/// A statement has a parameter for each node that it deletes, and SQLite takes 32,766 of them.
#[test]
fn a_limit_that_is_lowered_lets_many_nodes_give_way() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let limit = |nodes: u64| limited(Some(&path), StoreLimits { nodes, ..LIMITS });
    let store = limit(100_000);
    store.note(&check_in("b", 1));
    store.0.writer.take_turn().unwrap();
    let database = store.0.file.database().unwrap();
    for statement in [
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 40000) \
         INSERT INTO nodes (name, first_seen, last_seen, settled, writer, checked_in, has_facts, \
         raw_bytes, stored_bytes, facts_hash) SELECT 'n' || n, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM n",
        "UPDATE totals SET nodes = 40001",
    ] {
        database.connections.maintain(Statement::new(statement)).unwrap();
    }
    drop(database);
    store.0.file.close();
    drop(store);
    let store = limit(10);
    assert_eq!(store.counts(Timestamp::MIN, Timestamp::MAX).unwrap().total, 40_001);
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    assert_counted(&store);
    assert_eq!(store.counts(Timestamp::MIN, Timestamp::MAX).unwrap().total, 10);
    assert_eq!(names(&store), ["a"], "the others have no facts");
}
