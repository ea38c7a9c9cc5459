//! Which of many heads contains a commit, found for all commits by one walk.

use std::collections::HashMap;

use super::Repository;
use crate::git::commit_links::CommitLinks;
use crate::git::object_id::oid;
use crate::model::CommitId;

/// The commits that some heads contain, each with the first head that does.
#[derive(Debug, Default)]
pub struct ContainedCommits {
    first: HashMap<git2::Oid, FirstHead>,
    /// How many heads were read.
    heads: u32,
    /// The commits that could not be read.
    unread: Vec<git2::Oid>,
}

/// The first head that contains a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstHead {
    /// The commit is a head, and none before it contains it.
    Itself,
    /// Another one, by its place among the heads: histories are long, and this takes half as much memory as a `usize`.
    Other(u32),
}

impl ContainedCommits {
    /// Returns whether a head is the commit or contains it.
    pub fn contains(&self, commit: CommitId) -> bool {
        self.first.contains_key(&oid(commit))
    }

    /// Returns the place of the first head that contains a commit and is another one.
    pub fn first_above(&self, commit: CommitId) -> Option<usize> {
        match self.first.get(&oid(commit))? {
            FirstHead::Itself => None,
            FirstHead::Other(place) => usize::try_from(*place).ok(),
        }
    }
}

impl Repository {
    /// Reads what some heads contain: each commit once, however many heads there are. What cannot be read contains
    /// nothing.
    pub fn contained_commits(&self, heads: &[CommitId]) -> ContainedCommits {
        let mut contained = ContainedCommits::default();
        self.add_contained(&mut contained, heads);
        contained
    }

    /// Reads what more heads contain, which stand behind those that were read before.
    pub fn add_contained(&self, contained: &mut ContainedCommits, heads: &[CommitId]) {
        let ContainedCommits { first, heads: known, unread } = contained;
        let heads = heads.iter().map(|it| oid(*it));
        let from = *known;
        *known = u32::try_from(heads.len()).map_or(u32::MAX, |more| from.saturating_add(more));
        let Ok(database) = self.inner.odb() else { return unread.extend(heads) };
        let mut waiting = Vec::new();
        for (place, head) in (from..).zip(heads) {
            waiting.push(head);
            while let Some(commit) = waiting.pop() {
                match first.get(&commit) {
                    None => {
                        let links = CommitLinks::find(&self.inner, &database, commit);
                        let Ok(links) = links else {
                            unread.push(commit);
                            continue;
                        };
                        waiting.extend(links.parents);
                        let is_itself = commit == head;
                        let found =
                            if is_itself { FirstHead::Itself } else { FirstHead::Other(place) };
                        first.insert(commit, found);
                    }
                    // What leads here from the first other head was not reached before: it would contain this one, too.
                    Some(FirstHead::Itself) if commit != head => {
                        first.insert(commit, FirstHead::Other(place));
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Returns whether a commit is there now that could not be read before.
    pub fn has_any_unread(&self, contained: &ContainedCommits) -> bool {
        let Ok(database) = self.inner.odb() else { return false };
        contained.unread.iter().any(|it| database.exists(*it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes random histories with merges, and returns the commits.
    fn history(git: &git2::Repository, random: &mut fastrand::Rng) -> Vec<CommitId> {
        let tree = git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let mut made: Vec<git2::Oid> = Vec::new();
        for number in 0..14 {
            let time = git2::Time::new(1_000 + random.i64(..9), 0);
            let who = git2::Signature::new("a", "a@example.com", &time).unwrap();
            let parents: Vec<_> = made
                .iter()
                .filter(|_| random.usize(..made.len()) < 2)
                .map(|it| git.find_commit(*it).unwrap())
                .collect();
            let parents: Vec<_> = parents.iter().take(3).collect();
            made.push(git.commit(None, &who, &who, &number.to_string(), &tree, &parents).unwrap());
        }
        made.iter().map(|it| it.to_string().parse().unwrap()).collect()
    }

    #[test]
    fn one_walk_finds_what_a_walk_for_each_head_finds() {
        for seed in 0..30 {
            let directory = tempfile::tempdir().unwrap();
            let git = git2::Repository::init_bare(directory.path()).unwrap();
            let mut random = fastrand::Rng::with_seed(seed);
            let commits = history(&git, &mut random);
            let repository = Repository::at(directory.path()).unwrap();
            let heads: Vec<CommitId> =
                (0..6).map(|_| commits[random.usize(..commits.len())]).collect();
            let contained = repository.contained_commits(&heads);
            for commit in &commits {
                let contains = |head: &CommitId| repository.is_ancestor(*commit, *head).unwrap();
                let first = heads.iter().position(|it| it != commit && contains(it));
                assert_eq!(contained.first_above(*commit), first, "seed {seed}: {commit}");
                assert_eq!(contained.contains(*commit), heads.iter().any(contains), "{seed}");
            }
        }
    }

    #[test]
    fn what_is_missing_contains_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path()).unwrap();
        let commits = history(&git, &mut fastrand::Rng::with_seed(1));
        let repository = Repository::at(directory.path()).unwrap();
        let absent = CommitId::from_bytes([7; 20]);
        let contained = repository.contained_commits(&[absent, commits[0]]);
        assert!(!contained.contains(absent) && contained.contains(commits[0]));
    }
}
