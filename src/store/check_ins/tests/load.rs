//! What holds while more comes in than can be written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use super::*;
use crate::masking::{CommitForm, Masks, StoredExtent, StoredForm};

/// A test that hangs is a failure.
const DEADLINE: Duration = Duration::from_mins(1);

#[test]
fn a_node_that_waits_is_written_though_others_ask_all_the_time() {
    let store = opened(None);
    for name in ["z", "y"] {
        store.note(&check_in(name, 1));
    }
    let mut written = Vec::new();
    for round in 0..4 {
        // Its name comes first, and its turn does not.
        store.note(&check_in("a", round));
        let batch = store.0.pending.queue().take(1, usize::MAX);
        written.extend(batch.nodes.into_keys());
    }
    assert_eq!(written, ["z", "y", "a", "a"]);
}

#[test]
fn what_could_not_be_written_keeps_its_turn() {
    let store = opened(None);
    store.note(&check_in("z", 1));
    let batch = store.0.pending.queue().take(1, usize::MAX);
    store.note(&check_in("a", 1));
    store.note(&check_in("z", 2));
    store.0.pending.queue().put_back(batch);
    assert_eq!(store.get("z").unwrap().check_in, Some(check_in("z", 2)));
    let batch = store.0.pending.queue().take(1, usize::MAX);
    assert_eq!(batch.nodes.into_keys().collect::<Vec<_>>(), ["z"]);
    store.0.pending.queue().written();
    assert!(!store.0.pending.queue().forget("z"), "it does not wait twice");
}

#[test]
fn a_list_is_read_though_more_comes_in_than_is_written() {
    let limits = StoreLimits { nodes: 1_000_000, ..LIMITS };
    let store = limited(None, limits);
    store.note(&check_in("a", 1));
    let (stop, (sender, listed)) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                for number in 0_u32.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    store.note(&check_in(&format!("n{thread}-{number}"), 1));
                }
            });
        }
        let store = store.clone();
        // Not of the scope: it would wait for a list that never ends.
        std::thread::spawn(move || {
            let range = NodeRange { offset: 0, limit: 1 };
            sender.send(store.nodes(&NodeFilter::default(), range)).ok();
        });
        let listed = listed.recv_timeout(DEADLINE);
        stop.store(true, Ordering::Relaxed);
        let nodes = listed.expect("the list ends").unwrap().nodes;
        assert_eq!(nodes[0].name, "a");
    });
}

#[test]
fn the_latest_of_check_ins_without_facts_is_read() {
    let store = opened(None);
    let bare = |role: &str| {
        let mut bare = check_in("a", 0);
        bare.node.fact.clear();
        bare.node.trusted.insert("role".to_owned(), role.into());
        bare
    };
    store.note(&bare("first"));
    let _writing = store.0.pending.queue().take(1, usize::MAX);
    store.note(&bare("second"));
    assert_eq!(store.get("a").unwrap().check_in, Some(bare("second")));
}

#[test]
fn facts_that_are_sent_again_are_compressed_once() {
    let store = opened(None);
    for (fact, compressed) in [(1, true), (1, false), (2, true), (2, false), (1, true)] {
        store.note(&check_in("a", fact));
        let batch = store.0.pending.queue().take(1, usize::MAX);
        let mut preparation = store.0.writer.preparation();
        let prepared = preparation.node("a", &batch.nodes["a"]).unwrap();
        assert_eq!(prepared.check_ins[0].facts.is_compressed(), compressed, "{fact}");
    }
}

#[test]
fn facts_that_another_daemon_replaced_are_written_again() {
    let Some(server) = Postgres::shared() else { return };
    let location = server.schema().parse().unwrap();
    let [store, other] = [(), ()].map(|()| opened_at(&location, LIMITS));
    for (store, fact) in [(&store, 1), (&other, 2), (&store, 1)] {
        store.note(&check_in("a", fact));
        store.0.writer.take_turn().unwrap();
        assert_eq!(names(store), ["a"]);
        assert_eq!(store.get("a").unwrap().check_in, Some(check_in("a", fact)));
        assert_eq!(other.get("a").unwrap().check_in, Some(check_in("a", fact)));
    }
}

#[test]
fn a_check_in_that_waits_is_read_as_it_will_be_stored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let store = opened(Some(&path));
    let masks = Masks::of_settings(&["os.secret".parse().unwrap()]);
    let form = StoredForm { masks, facts: StoredExtent::All };
    store.note_received(Received {
        time: Timestamp::UNIX_EPOCH,
        transaction_uuid: None,
        commit: None,
        answered: None,
        name: "a",
        fact: r#"{"os":{"family":"Debian","secret":"hunter2-hunter2"}}"#,
        trusted: "{}",
        said: SaidPart::Both,
        form: CommitForm::new(&form, Arc::default),
    });
    for _ in 0..2 {
        let node = store.get("a").unwrap().check_in.unwrap().node;
        assert_eq!(node.fact["os"], json!({"family": "Debian", "secret": crate::model::MASKED}));
        store.0.writer.take_turn().unwrap();
    }
    drop(store);
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(7).any(|it| it == b"hunter2"));
    }
}

/// While nothing can be written, commits go on, and each that answered is kept built.
#[test]
fn what_waits_holds_a_bounded_number_of_commits() {
    let store = opened(None);
    let snapshots: Vec<_> = (1..=80).map(|it| history::snapshot(it, &[])).collect();
    for (second, snapshot) in (0..).zip(&snapshots) {
        let node = history::node(&format!("n{second}"), &json!({"a": second}));
        history::ask(&store, second, snapshot, &node);
    }
    let held = snapshots.iter().filter(|it| Arc::strong_count(it) > 1).count();
    assert_eq!(held, 64);
    history::written(&store);
    assert_eq!(names(&store).len(), 64);
    assert!(names(&store).iter().any(|it| it == "n79"));
}

/// A database that fails, gives back what it took, and is tried again with the next commits.
#[test]
fn what_is_put_back_holds_a_bounded_number_of_commits() {
    let store = opened(None);
    let snapshots: Vec<_> = (1..=80).map(|it| history::snapshot(it, &[])).collect();
    let mut dropped = 0;
    for (second, snapshot) in (0..).zip(&snapshots) {
        let batch = store.0.pending.queue().take(usize::MAX, usize::MAX);
        let node = history::node(&format!("n{second}"), &json!({"a": second}));
        history::ask(&store, second, snapshot, &node);
        dropped += store.0.pending.queue().put_back(batch);
    }
    let held = snapshots.iter().filter(|it| Arc::strong_count(it) > 1).count();
    assert_eq!((held, dropped), (64, 16));
}

/// A commit that answers again after others is not the oldest.
#[test]
fn the_commit_that_answers_keeps_its_check_ins() {
    let store = opened(None);
    let snapshots: Vec<_> = (1..=65).map(|it| history::snapshot(it, &[])).collect();
    let ask = |second: u8, snapshot: u8| {
        let node = history::node(&format!("n{second}"), &json!({"a": second}));
        history::ask(&store, second.into(), &snapshots[usize::from(snapshot)], &node);
    };
    for number in 0..64 {
        ask(number, number);
    }
    // The first was pinned again; then the next commit is pushed.
    ask(64, 0);
    ask(65, 64);
    history::written(&store);
    let names = names(&store);
    assert_eq!(names.len(), 65);
    assert!(names.iter().any(|it| it == "n0") && !names.iter().any(|it| it == "n1"));
}

/// Threads that make pages may wait long for their turn on a busy machine, with the connections that they hold.
#[test]
fn agents_do_not_wait_for_pages() {
    let directory = tempfile::tempdir().unwrap();
    let store = opened(Some(&directory.path().join("nodes.sqlite")));
    store.note(&check_in("a", 1));
    store.0.writer.take_turn().unwrap();
    let database = store.0.file.database().unwrap();
    let (begun, end) = (mpsc::channel(), std::sync::Barrier::new(6));
    std::thread::scope(|scope| {
        for _ in 0..5 {
            let (database, begun, end) = (&database, begun.0.clone(), &end);
            scope.spawn(move || {
                crate::priority::serve_people();
                let held = database.connections.read(async |_| {
                    begun.send(()).unwrap();
                    end.wait();
                    Ok(())
                });
                // Three of the pages find no connection in time.
                if held.is_err() {
                    end.wait();
                }
            });
        }
        for _ in 0..2 {
            begun.1.recv_timeout(DEADLINE).unwrap();
        }
        assert_eq!(store.get("a").unwrap().check_in, Some(check_in("a", 1)));
        end.wait();
    });
}
