//! Revisions, trees and blobs.

use std::os::unix::ffi::OsStrExt as _;

use clade::internals::git::{EntryKind, Repository};
use clade::internals::model::{Budget, BudgetItem, CommitId, Meter};
use git2::{ObjectType, Oid};

use super::meter;
use crate::repository::{Origin, Put};
use crate::table::each_row;

fn listed(repository: &Repository, commit: &str, directory: &str) -> Vec<(String, &'static str)> {
    let files = repository.files(commit.parse().unwrap(), directory, &meter()).unwrap();
    let kind = |kind| match kind {
        EntryKind::File(_) => "file",
        EntryKind::Link => "link",
        EntryKind::Submodule => "submodule",
    };
    files.into_iter().map(|it| (it.path, kind(it.kind))).collect()
}

#[test]
fn files_are_listed_by_path_and_never_followed() {
    let origin = Origin::new();
    let commit = origin.commit(
        "main",
        &[
            ("estate/groups/web.yaml", Put::File("name: Web\n")),
            ("estate/groups/a/b.yaml", Put::File("name: B\n")),
            ("estate/groups/a.yaml", Put::File("name: A\n")),
            ("estate/groups/passwd", Put::Link("/etc/passwd")),
            ("estate/nodes", Put::Submodule),
            ("elsewhere.txt", Put::File("")),
        ],
    );
    let repository = Repository::discover(&origin.path()).unwrap();
    let expected = [
        ("groups/a.yaml", "file"),
        ("groups/a/b.yaml", "file"),
        ("groups/passwd", "link"),
        ("groups/web.yaml", "file"),
        ("nodes", "submodule"),
    ];
    for directory in ["estate", "estate/", "/estate"] {
        let listed = listed(&repository, &commit, directory);
        assert_eq!(listed, expected.map(|(path, kind)| (path.to_owned(), kind)), "{directory}");
    }
    assert_eq!(listed(&repository, &commit, ".").len(), 6);
    for (directory, expected) in [
        ("nope", "the commit has no directory `nope`"),
        ("elsewhere.txt", "the commit has no directory `elsewhere.txt`"),
    ] {
        let error =
            repository.files(commit.parse().unwrap(), directory, &meter()).unwrap_err().to_string();
        assert_eq!(error.replace(&commit, "ID"), expected);
    }
}

#[test]
fn content_and_size_of_a_blob_are_read() {
    let (origin, commit) = Origin::with_a_commit();
    let repository = Repository::discover(&origin.path()).unwrap();
    let files = repository.files(commit.parse().unwrap(), "", &meter()).unwrap();
    let EntryKind::File(blob) = files[0].kind else { panic!("{files:?}") };
    assert_eq!(repository.blob_size(blob).unwrap(), 10);
    assert_eq!(repository.blob(blob).as_deref(), Ok(&b"name: Web\n"[..]));
}

#[test]
fn names_that_are_not_utf8_are_shown_replaced() {
    let origin = Origin::new();
    let blob = origin.git().blob(b"x").unwrap();
    let mut builder = origin.git().treebuilder(None).unwrap();
    builder.insert(std::ffi::OsStr::from_bytes(b"\xff.yaml"), blob, 0o100_644).unwrap();
    let commit = origin.commit_tree("main", builder.write().unwrap());
    let repository = Repository::discover(&origin.path()).unwrap();
    assert_eq!(listed(&repository, &commit, ""), [("\u{fffd}.yaml".to_owned(), "file")]);
}

/// Nests a tree in directories `a` of the given depth; each holds it the given number of times.
fn nested(origin: &Origin, depth: usize, times: usize) -> Oid {
    let blob = origin.git().blob(b"x").unwrap();
    let mut builder = origin.git().treebuilder(None).unwrap();
    builder.insert("x.yaml", blob, 0o100_644).unwrap();
    let mut tree = builder.write().unwrap();
    for _ in 0..depth {
        let mut builder = origin.git().treebuilder(None).unwrap();
        for index in 0..times {
            builder.insert(format!("{index}"), tree, 0o040_000).unwrap();
        }
        tree = builder.write().unwrap();
    }
    tree
}

#[test]
fn trees_made_to_exhaust_the_reader_are_refused() {
    let origin = Origin::new();
    let files = |depth, times| {
        let commit = origin.commit_tree("main", nested(&origin, depth, times));
        let repository = Repository::discover(&origin.path()).unwrap();
        let files = repository.files(commit.parse().unwrap(), "", &meter());
        files.map(|it| it.len()).map_err(|error| error.to_string().replace(&commit, "ID"))
    };
    assert_eq!(files(128, 1), Ok(1));
    let deep = "the commit is too large: it has more than 128 directories within each other: 129 were counted before reading stopped";
    assert_eq!(files(129, 1), Err(deep.to_owned()));
    assert_eq!(files(5000, 1), Err(deep.to_owned()));
    // Twelve small objects that look like 10^12 files.
    let wide = "the commit is too large: it has more than 250000 files and directories: 250001 were counted before reading stopped";
    assert_eq!(files(12, 10), Err(wide.to_owned()));
}

#[test]
fn changes_of_a_commit_are_found_without_reading_the_rest() {
    let origin = Origin::new();
    let put =
        |files: &[(&str, Put<'_>)]| origin.rewrite("main", files).parse::<CommitId>().unwrap();
    let first = put(&[("e/a/x", Put::File("1")), ("e/b", Put::File("1")), ("f", Put::File("1"))]);
    let second = put(&[
        ("e/a/x", Put::File("1")),
        ("e/a/y", Put::File("2")),
        ("e/b/c", Put::File("1")),
        ("e/l", Put::Link("b")),
        ("f", Put::File("2")),
    ]);
    let third = put(&[("g", Put::File("3"))]);
    let repository = Repository::discover(&origin.path()).unwrap();
    let changed = |before, commit, directory| {
        let files = repository.changed_files(before, commit, directory, &meter()).unwrap();
        files.into_iter().map(|it| it.path).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(changed(Some(first), second, "e"), "a/y b/c l");
    assert_eq!(changed(Some(first), second, ""), "e/a/y e/b/c e/l f");
    assert_eq!(changed(Some(second), first, "e"), "b");
    assert_eq!(changed(Some(second), third, "e"), "");
    assert_eq!(changed(Some(third), second, "e"), changed(None, second, "e"));
    assert_eq!(changed(None, second, "e"), "a/x a/y b/c l");
    assert_eq!(changed(Some(second), second, ""), "");
    assert!(repository.changed_files(None, CommitId::from_bytes([9; 20]), "", &meter()).is_err());
}

#[test]
fn a_commit_names_author_time_and_change() {
    let (origin, commit) = Origin::with_a_commit();
    let repository = Repository::discover(&origin.path()).unwrap();
    let info = repository.commit(commit.parse().unwrap()).unwrap();
    assert_eq!(
        (info.author.as_str(), info.time.to_string().as_str(), info.subject.as_str()),
        ("Ada", "2025-10-09T08:53:20Z", "A commit")
    );
}

#[test]
fn history_follows_first_parents() {
    let (origin, first) = Origin::with_a_commit();
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    let third = origin.commit("main", &[("a", Put::File("b"))]);
    let other = origin.rewrite("other", &[("a", Put::File("c"))]);
    let repository = Repository::discover(&origin.path()).unwrap();
    let [first, second, third, other]: [CommitId; 4] =
        [first, second, third, other].map(|it| it.parse().unwrap());
    assert_eq!(repository.log(third, 9).unwrap(), [third, second, first]);
    assert_eq!(repository.log(third, 2).unwrap(), [third, second]);
    for (ancestor, descendant, expected) in
        [(first, third, true), (third, third, true), (third, first, false), (other, third, false)]
    {
        assert_eq!(repository.is_ancestor(ancestor, descendant), Ok(expected));
    }
    let unknown = CommitId::from_bytes([9; 20]);
    assert!(repository.log(unknown, 1).is_err() && repository.is_ancestor(unknown, first).is_err());
}

#[test]
fn a_revision_is_what_rev_parse_understands() {
    let (origin, first) = Origin::with_a_commit();
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    origin.tag("v1", &first);
    // A branch must not change the meaning of a full id.
    origin.set(&first, &second);
    // Nor that of a part of one.
    origin.set(&first[..9], &second);
    origin.set(&second[..9], &second);
    // Nor where another object is made that begins as the commit does.
    let begins_so = |text: &[u8]| {
        let id = Oid::hash_object(ObjectType::Blob, text).unwrap().to_string();
        id.get(..4) == first.get(..4)
    };
    let text = (0..u32::MAX).map(u32::to_le_bytes).find(|it| begins_so(it)).unwrap();
    origin.git().blob(&text).unwrap();
    origin.set(&first[..4], &second);
    let repository = Repository::discover(&origin.path()).unwrap();
    let rows = [
        (&first[..4], None),
        ("main", Some(&second)),
        ("refs/heads/main", Some(&second)),
        ("HEAD", Some(&second)),
        ("HEAD~1", Some(&first)),
        ("main^{commit}", Some(&second)),
        ("v1", Some(&first)),
        (&first, Some(&first)),
        (&second[..10], Some(&second)),
        (&second[..9], Some(&second)),
        (&first[..9], None),
        ("main:a", None),
        ("HEAD~2", None),
        ("HEAD..main", None),
        ("nope", None),
        ("", None),
        ("ma\0in", None),
        ("ffffffffffffffffffffffffffffffffffffffff", None),
    ];
    each_row(rows, |(revision, expected)| {
        let resolved = repository.resolve(revision).ok().map(|it| it.to_string());
        assert_eq!(resolved.as_ref(), expected, "{revision:?}");
    });
}

#[test]
fn what_is_not_a_repository_is_reported() {
    let empty = tempfile::tempdir().unwrap();
    let error = Repository::discover(empty.path()).unwrap_err().to_string();
    assert_eq!(error, format!("`{}` is not a git repository", empty.path().display()));
}

#[test]
fn what_a_commit_changes_leads_from_the_files_of_another_to_its_own() {
    let file = |path: &'static str, text: &'static str| (path, Put::File(text));
    let origin = Origin::new();
    let commits: Vec<CommitId> = [
        vec![
            file("g/a.yaml", "1"),
            file("g/b/c.yaml", "1"),
            file("g/b/d.yaml", "1"),
            file("h", "1"),
        ],
        vec![file("g/a.yaml", "2"), file("g/b", "1"), file("g/c/d/e.yaml", "1")],
        vec![file("g/a/a.yaml", "1"), file("g/a.yaml", "1"), ("g/b/c.yaml", Put::Link("/x"))],
        vec![file("g/b.yaml", "1"), file("g/b/c.yaml", "1"), file("g/b-c", "1"), file("h", "2")],
    ]
    .iter()
    .enumerate()
    .map(|(number, files)| origin.commit(&format!("branch{number}"), files).parse().unwrap())
    .collect();
    let repository = Repository::discover(&origin.path()).unwrap();
    for (before, after) in commits.iter().flat_map(|it| commits.iter().map(move |to| (*it, *to))) {
        for directory in ["", "g"] {
            let files = |commit| {
                let meter = Meter::new(Budget::DEFAULT);
                (repository.files(commit, directory, &meter).unwrap(), meter.counts())
            };
            let ((mut files_before, cost), (files_after, expected)) = (files(before), files(after));
            let changes = |most| {
                repository
                    .changes_between(before, after, directory, most, &Budget::DEFAULT)
                    .unwrap()
            };
            let found = changes(64).unwrap();
            files_before.retain(|it| {
                !found.removed.contains(&it.path)
                    && !found.written.iter().any(|to| to.path == it.path)
            });
            files_before.extend(found.written.iter().cloned());
            files_before.sort_by(|a, b| a.path.cmp(&b.path));
            assert_eq!(files_before, files_after, "{before} {after} {directory}");
            let meter = Meter::from(Budget::DEFAULT, cost.without(&found.removed_cost));
            meter.charge_all(&found.added_cost).unwrap();
            for item in [BudgetItem::Entries, BudgetItem::PathBytes] {
                assert_eq!(meter.counts().get(item), expected.get(item), "{item} {before} {after}");
            }
            assert!(meter.counts().get(BudgetItem::Depth) >= expected.get(BudgetItem::Depth));
            assert_eq!(changes(0).is_some(), found.written.is_empty() && found.removed.is_empty());
        }
    }
}
