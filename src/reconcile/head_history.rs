//! What the heads contain that the branch was at, as it was read for earlier requests.

use crate::git::{ContainedCommits, Repository};
use crate::model::CommitId;

/// What the heads contain: each commit of their history is read once, and of later heads what is new. A long history takes
/// long, so only what asks for it has it read.
#[derive(Debug, Default)]
pub(super) struct HeadHistory {
    heads: Vec<CommitId>,
    contained: ContainedCommits,
}

impl HeadHistory {
    /// Reads what some heads contain and is not known yet. Where they are others than before, such as after the journal was
    /// made shorter, or what was missing is there, everything is read again.
    pub(super) fn follow(&mut self, repository: &Repository, heads: Vec<CommitId>) {
        let is_outdated = repository.has_any_unread(&self.contained);
        // All are known to a request that read the journal before another one.
        if !is_outdated && self.heads.starts_with(&heads) {
            return;
        }
        if is_outdated || !heads.starts_with(&self.heads) {
            *self = Self::default();
        }
        let new = heads.get(self.heads.len()..).unwrap_or_default();
        repository.add_contained(&mut self.contained, new);
        self.heads = heads;
    }

    /// Returns the place of the first head that contains a commit and is another one; it may be behind those that were
    /// given last.
    pub(super) fn first_above(&self, commit: CommitId) -> Option<usize> {
        self.contained.first_above(commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a line of commits, and returns them.
    fn line(git: &git2::Repository, length: usize) -> Vec<CommitId> {
        let tree = git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let who = git2::Signature::new("a", "a@example.com", &git2::Time::new(0, 0)).unwrap();
        let mut made: Vec<git2::Oid> = Vec::new();
        for number in 0..length {
            let parent = made.last().map(|it| git.find_commit(*it).unwrap());
            let parents: Vec<_> = parent.iter().collect();
            made.push(git.commit(None, &who, &who, &number.to_string(), &tree, &parents).unwrap());
        }
        made.iter().map(|it| it.to_string().parse().unwrap()).collect()
    }

    #[test]
    fn heads_that_come_later_are_found_as_if_all_were_read_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path()).unwrap();
        let commits = line(&git, 8);
        let repository = Repository::at(directory.path()).unwrap();
        let mut history = HeadHistory::default();
        for places in [&[2, 4][..], &[2, 4, 4, 1, 7], &[2, 4], &[4, 1, 7], &[]] {
            let heads: Vec<CommitId> = places.iter().map(|it| commits[*it]).collect();
            history.follow(&repository, heads);
            for (number, commit) in commits.iter().enumerate() {
                let first = places.iter().position(|it| *it > number);
                let found = history.first_above(*commit).filter(|it| *it < places.len());
                assert_eq!(found, first, "{places:?} {number}");
            }
        }
    }

    #[test]
    fn what_was_missing_is_read_when_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path()).unwrap();
        let commits = line(&git, 3);
        let name = commits[2].to_string();
        let (start, rest) = name.split_at(2);
        let object = directory.path().join("objects").join(start).join(rest);
        let away = directory.path().join("away");
        std::fs::rename(&object, &away).unwrap();
        let mut history = HeadHistory::default();
        let follow = |history: &mut HeadHistory| {
            let repository = Repository::at(directory.path()).unwrap();
            history.follow(&repository, vec![commits[1], commits[2]]);
        };
        follow(&mut history);
        assert_eq!(history.first_above(commits[1]), None);
        std::fs::rename(&away, &object).unwrap();
        follow(&mut history);
        assert_eq!(history.first_above(commits[1]), Some(1));
    }
}
