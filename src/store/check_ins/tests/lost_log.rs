//! A file whose log was lost, or that was emptied, must not look like one that never had more.

use std::os::unix::fs::MetadataExt as _;

use super::*;
use crate::store::beside::beside;
use crate::store::sql::Statement;

const FILES: [&str; 3] = ["", "-wal", "-generation"];

/// Copies what a daemon leaves that is killed now.
fn killed(path: &Path) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("nodes.sqlite");
    for suffix in FILES {
        let from = beside(path, suffix);
        if from.exists() {
            std::fs::copy(from, beside(&copy, suffix)).unwrap();
        }
    }
    let generation = beside(&copy, "-generation");
    if let Ok(text) = std::fs::read_to_string(&generation) {
        let inode = std::fs::metadata(&copy).unwrap().ino();
        let (_, number) = text.split_once(' ').unwrap();
        std::fs::write(generation, format!("{inode:020} {number}")).unwrap();
    }
    (directory, copy)
}

fn write(store: &CheckIns, names: &[&str]) {
    for name in names {
        store.note(&check_in(name, 1));
    }
    store.0.writer.take_turn().unwrap();
}

fn cut(path: &Path, bytes: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

/// Moves the log into the file, as SQLite does after 4 MB of it.
fn checkpoint(store: &CheckIns) {
    let database = store.0.file.database().unwrap();
    database.connections.maintain(Statement::new("PRAGMA wal_checkpoint(PASSIVE)")).unwrap();
}

#[test]
fn a_file_that_was_emptied_or_lost_its_log_is_put_aside() {
    type Damage = fn(&Path, &Path);
    let cases: [(&str, Damage); 11] = [
        ("the file is emptied", |file, _| cut(file, 0)),
        ("the file is cut to a byte", |file, _| cut(file, 1)),
        ("the file is cut to a page", |file, _| cut(file, 4096)),
        ("the file is removed", |file, _| std::fs::remove_file(file).unwrap()),
        ("the log is removed", |_, log| std::fs::remove_file(log).unwrap()),
        ("the log is emptied", |_, log| cut(log, 0)),
        ("the log is cut in its header", |_, log| cut(log, 31)),
        ("the log is cut in its first page", |_, log| cut(log, 100)),
        ("a byte of the header of the log", |_, log| flip(log, 17)),
        ("a byte of the first page of the log", |_, log| flip(log, 70)),
        ("zeros in the log", |_, log| {
            std::fs::write(log, vec![0; std::fs::read(log).unwrap().len()]).unwrap();
        }),
    ];
    for is_moved in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nodes.sqlite");
        let store = opened(Some(&path));
        write(&store, &["a"]);
        if is_moved {
            checkpoint(&store);
            write(&store, &["b"]);
        }
        for (what, damage) in cases {
            let (_directory, path) = killed(&path);
            let log = beside(&path, "-wal");
            let bytes = std::fs::metadata(&log).unwrap().len();
            damage(&path, &log);
            let damaged = std::fs::metadata(&log).map_or(0, |it| it.len());
            let store = opened(Some(&path));
            let fault = |name| store.get(name).unwrap().whole().map_err(|it| it.fault);
            assert_eq!(fault("a"), Err(StoreFault::PutAside), "{what}");
            let aside = find_put_aside(&path).unwrap();
            let kept = std::fs::metadata(beside(&aside, "-wal")).map_or(0, |it| it.len());
            assert_eq!(kept, damaged, "{what}: {bytes} bytes");
            write(&store, &["c"]);
            assert_eq!(names(&store), ["c"], "{what}");
            drop(store);
            let store = opened(Some(&path));
            assert!(store.get("a").unwrap().whole().is_err(), "{what}");
            assert_eq!(names(&store), ["c"], "{what}");
        }
    }
}

#[test]
fn an_emptied_file_is_put_aside_after_a_clean_end() {
    for bytes in [0, 1, 4096] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nodes.sqlite");
        let store = opened(Some(&path));
        write(&store, &["a"]);
        store.0.file.close();
        drop(store);
        for suffix in ["-wal", "-shm", "-generation", ".new"] {
            assert!(!beside(&path, suffix).exists(), "{suffix}");
        }
        cut(&path, bytes);
        let store = opened(Some(&path));
        let error = store.get("a").unwrap().whole().unwrap_err();
        assert_eq!(error.fault, StoreFault::PutAside, "{bytes}");
    }
}

/// Everything that was written is there, and nothing is put aside.
fn assert_whole(what: &str, path: &Path, expected: &[&str]) {
    let store = opened(Some(path));
    assert_eq!(find_put_aside(path), None, "{what}");
    assert_eq!(names(&store), expected, "{what}");
}

#[test]
fn a_kill_at_any_moment_leaves_a_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let check = |what: &str, expected: &[&str]| {
        let (_directory, copy) = killed(&path);
        // Another program may open and close what is left first.
        let (_other, checkpointed) = killed(&path);
        drop(opened(Some(&checkpointed)));
        assert_whole(what, &copy, expected);
        assert_whole(what, &copy, expected);
        assert_whole(what, &checkpointed, expected);
    };
    // One that was killed while it made the file.
    std::fs::write(beside(&path, ".new"), "").unwrap();
    let store = opened(Some(&path));
    write(&store, &["a"]);
    check("written", &["a"]);
    checkpoint(&store);
    check("moved", &["a"]);
    let generation = beside(&path, "-generation");
    let earlier = std::fs::read(&generation).unwrap();
    write(&store, &["b"]);
    check("written after that", &["a", "b"]);
    let later = std::fs::read(&generation).unwrap();
    assert!(later > earlier);
    std::fs::write(&generation, &earlier).unwrap();
    check("before the generation is noted", &["a", "b"]);
    std::fs::remove_file(&generation).unwrap();
    check("before the first generation is noted", &["a", "b"]);
    std::fs::write(&generation, &later).unwrap();
    store.0.file.database().unwrap().give_back().unwrap();
    check("the log is emptied", &["a", "b"]);
    write(&store, &["c"]);
    check("written to the empty log", &["a", "b", "c"]);
    let (_directory, closing) = killed(&path);
    let database = store.0.file.database().unwrap();
    database.connections.close();
    check("closed, before the generation is removed", &["a", "b", "c"]);
    database.end();
    assert!(!generation.exists());
    check("closed", &["a", "b", "c"]);
    // Without a log it is one of a backup.
    for suffix in ["-wal", "-generation"] {
        std::fs::remove_file(beside(&closing, suffix)).unwrap();
    }
    assert_whole("the file alone", &closing, &["a", "b"]);
}

#[test]
fn a_backup_in_the_place_of_the_file_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let store = opened(Some(&path));
    write(&store, &["a"]);
    let backup = directory.path().join("backup");
    store.0.file.database().unwrap().copy_to(&backup).unwrap();
    checkpoint(&store);
    write(&store, &["b"]);
    // After a kill.
    let (_directory, copy) = killed(&path);
    std::fs::remove_file(beside(&copy, "-wal")).unwrap();
    std::fs::copy(&backup, beside(&copy, "-other")).unwrap();
    std::fs::rename(beside(&copy, "-other"), &copy).unwrap();
    assert_whole("renamed", &copy, &["a"]);
    // After a clean end, into the same file.
    store.0.file.close();
    drop(store);
    std::fs::copy(&backup, &path).unwrap();
    assert_whole("copied", &path, &["a"]);
}

#[test]
fn a_file_or_log_that_is_removed_or_cut_while_it_is_open_loses_nothing_unnoticed() {
    type Damage = fn(&Path, &Path, &Path);
    let cases: [(&str, bool, Damage); 7] = [
        ("the log is removed", true, |_, log, _| std::fs::remove_file(log).unwrap()),
        ("the log and its index are removed", true, |_, log, index| {
            std::fs::remove_file(log).unwrap();
            std::fs::remove_file(index).unwrap();
        }),
        ("another log is in its place", true, |_, log, _| {
            std::fs::copy(log, log.with_extension("copy")).unwrap();
            std::fs::rename(log.with_extension("copy"), log).unwrap();
        }),
        ("the log is emptied", false, |_, log, _| cut(log, 0)),
        ("the log is cut", false, |_, log, _| cut(log, std::fs::metadata(log).unwrap().len() / 2)),
        ("the file is emptied", false, |file, _, _| cut(file, 0)),
        ("the file is cut", false, |file, _, _| cut(file, 8192)),
    ];
    for is_moved in [false, true] {
        for (what, is_whole, damage) in cases {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("nodes.sqlite");
            let store = opened(Some(&path));
            write(&store, &["a"]);
            if is_moved {
                checkpoint(&store);
                write(&store, &["b"]);
            }
            damage(&path, &beside(&path, "-wal"), &beside(&path, "-shm"));
            store.note(&check_in("c", 1));
            let done = store.0.writer.take_turn();
            assert!(done.is_ok() || !is_whole, "{what}: {done:?}");
            store.0.writer.take_turn().unwrap();
            let check = |store: &CheckIns| {
                let found = store.get("a").unwrap().whole();
                assert!(matches!(found, Ok(Some(_)) | Err(_)), "{what}");
                assert!(found.is_ok() || !is_whole, "{what}");
                assert!(store.get("c").unwrap().check_in.is_some(), "{what}");
                println!("{what}: {}", if found.is_ok() { "whole" } else { "put aside" });
            };
            check(&store);
            let (_directory, copy) = killed(&path);
            for entry in std::fs::read_dir(directory.path()).unwrap() {
                let name = entry.unwrap().file_name();
                if name.to_str().unwrap().contains(".damaged-") {
                    std::fs::write(copy.with_file_name(name), "").unwrap();
                }
            }
            check(&opened(Some(&copy)));
        }
    }
}

/// How many bytes a page has in the log.
const PAGE: usize = 4096 + 24;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Writes five nodes one after the other; returns where in the log each ended.
fn written_one_by_one(path: &Path) -> (CheckIns, Vec<usize>) {
    let store = opened(Some(path));
    let log = beside(path, "-wal");
    let ends = NAMES.map(|name| {
        write(&store, &[name]);
        usize::try_from(std::fs::metadata(&log).unwrap().len()).unwrap()
    });
    (store, ends.to_vec())
}

#[test]
fn a_damaged_byte_within_the_log_loses_nothing_unnoticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let (_store, ends) = written_one_by_one(&path);
    // Checksums and salts of the first pages of each write, and some of all bytes.
    let heads = ends[..3].iter().flat_map(|it| [it + 9, it + 17, it + 30]);
    let positions: Vec<usize> = heads.chain((40..ends[4]).step_by(23_456)).collect();
    let mut lost = 0;
    for position in positions {
        let (_directory, copy) = killed(&path);
        flip(&beside(&copy, "-wal"), position);
        let store = opened(Some(&copy));
        // Nothing was written after the last one, which shows that it was written.
        for name in &NAMES[..3] {
            let found = store.get(name).unwrap().whole();
            assert!(!matches!(found, Ok(None)), "{name}, {position} of {ends:?}");
        }
        lost += usize::from(find_put_aside(&copy).is_some());
    }
    assert!(lost > 5, "{lost}");
}

#[test]
fn a_write_that_a_power_failure_interrupted_is_dropped_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let (_store, ends) = written_one_by_one(&path);
    let (before, end) = (ends[3], ends[4]);
    // Pages reach the disk in any order, or not at all.
    for missing in (before..end).step_by(PAGE) {
        for also in [before, end - PAGE] {
            let (_directory, copy) = killed(&path);
            let mut bytes = std::fs::read(beside(&copy, "-wal")).unwrap();
            bytes[missing..missing + PAGE].fill(0);
            bytes[also + 40..also + PAGE].fill(0);
            std::fs::write(beside(&copy, "-wal"), bytes).unwrap();
            assert_whole("a missing page", &copy, &NAMES[..4]);
        }
        let (_directory, copy) = killed(&path);
        cut(&beside(&copy, "-wal"), missing as u64 + 7);
        assert_whole("a missing end", &copy, &NAMES[..4]);
    }
}
