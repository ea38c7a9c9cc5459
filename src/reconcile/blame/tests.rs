//! Walks of several nodes over one history.

use std::path::Path;
use std::sync::Arc;

use super::{Blame, BlameCache, BlamedValue};
use crate::git::Repository;
use crate::model::{Budget, CommitId, Node};
use crate::reconcile::build_queue::BuildQueue;
use crate::reconcile::read::load;
use crate::reconcile::reading_cache::ReadingCache;

/// Commits files on top of HEAD.
fn commit(git: &git2::Repository, files: &[(&str, String)]) -> CommitId {
    let mut index = git.index().unwrap();
    for (path, text) in files {
        let entry = git2::IndexEntry {
            ctime: git2::IndexTime::new(0, 0),
            mtime: git2::IndexTime::new(0, 0),
            dev: 0,
            ino: 0,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: git2::Oid::ZERO_SHA1,
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        };
        index.add_frombuffer(&entry, text.as_bytes()).unwrap();
    }
    let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
    index.write().unwrap();
    let author = git2::Signature::now("Ada", "ada@example.org").unwrap();
    let parent = git.head().ok().map(|it| it.peel_to_commit().unwrap());
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    let id = git.commit(Some("HEAD"), &author, &author, "c", &tree, &parents).unwrap();
    id.to_string().parse().unwrap()
}

/// Makes a history in which the root group, one in the middle and one of a node change; returns its newest commit.
fn history(directory: &Path) -> CommitId {
    let git = git2::Repository::init(directory).unwrap();
    let root = |v: usize| format!("name: All Nodes\nvariables: {{v: {v}, w: {}}}\n", v / 7);
    let middle = |v: usize| format!("name: Middle\nrule: name ~ n\nclasses: {{m: {{v: {v}}}}}\n");
    let leaf = |of: usize, v: usize| {
        format!("name: Leaf {of}\nparent: Middle\nrule: name = n{of}\nvariables: {{l: {v}}}\n")
    };
    let leaves = ["groups/l1.yaml", "groups/l2.yaml"];
    let mut files = vec![("groups/root.yaml", root(0)), ("groups/middle.yaml", middle(0))];
    files.extend([(leaves[0], leaf(1, 0)), (leaves[1], leaf(2, 0))]);
    let mut head = commit(&git, &files);
    for number in 1..40 {
        head = match number % 5 {
            0 => commit(&git, &[("groups/middle.yaml", middle(number))]),
            1 => commit(&git, &[(leaves[0], leaf(1, number / 20))]),
            _ => commit(&git, &[("groups/root.yaml", root(number))]),
        };
    }
    head
}

fn blamed(blame: &Blame<'_>, head: CommitId, name: &str) -> Vec<(String, CommitId)> {
    let mut found: Vec<BlamedValue> = Vec::new();
    blame.run(head, &Node::named(name.to_owned()), None, &mut |it| found.push(it)).unwrap();
    found.into_iter().map(|it| (it.key, it.commit.id)).collect()
}

#[test]
fn a_walk_for_another_node_builds_no_commit_that_is_known_to_be_valid() {
    let directory = tempfile::tempdir().unwrap();
    let head = history(directory.path());
    let repository = Repository::discover(directory.path()).unwrap();
    let blame = || Blame::new(&repository, "", Budget::DEFAULT, &|| true);
    let alone: Vec<_> = ["n1", "n2", "n3"].map(|it| blamed(&blame(), head, it)).into();
    let cache = BlameCache::default();
    assert_eq!(blamed(&blame().with_cache(&cache), head, "n1"), alone[0]);
    // No slot is free, so that a build of any commit fails.
    let (queue, readings) = (BuildQueue::full(), ReadingCache::default());
    let checked = Arc::new(load(&repository, head, "").unwrap());
    for (name, alone) in [("n2", &alone[1]), ("n3", &alone[2])] {
        let blame = blame().beside(&queue, &readings).with_cache(&cache);
        let blame = blame.with_built(Some((head, Arc::clone(&checked))));
        assert_eq!(blamed(&blame, head, name), *alone);
    }
    assert!(alone[1].len() > 5, "{alone:?}");
}
