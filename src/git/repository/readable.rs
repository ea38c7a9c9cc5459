//! Whether the system lets objects be read.
#![expect(clippy::disallowed_methods, reason = "packs are files")]

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::{ObjectFault, ReadError, Repository};
use crate::git::object_guard::ObjectDirectories;
use crate::git::regular_file::open_regular;
use crate::model::CommitId;

/// How many packs are opened at once: a repository that is repacked now and then has fewer.
const MOST_PACKS: usize = 64;

impl Repository {
    /// Returns whether one commit is the other or an ancestor of it; a commit that is missing or damaged shows no
    /// ancestors.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does not let the history be read now.
    pub fn shows_ancestor(
        &self,
        ancestor: CommitId,
        descendant: CommitId,
    ) -> Result<bool, ReadError> {
        Ok(self.read_ancestry(ancestor, descendant)?.unwrap_or(false))
    }

    /// Returns whether one commit is the other or an ancestor of it; none if a commit that decides is missing or damaged.
    ///
    /// # Errors
    ///
    /// As [`Self::shows_ancestor`].
    pub fn read_ancestry(
        &self,
        ancestor: CommitId,
        descendant: CommitId,
    ) -> Result<Option<bool>, ReadError> {
        for _ in 0..2 {
            match self.is_ancestor(ancestor, descendant) {
                Err(error) if error.fault() == ObjectFault::System => return Err(error),
                // It may have been unreadable until then, and is asked again.
                Err(_) => self.check_readable()?,
                Ok(found) => return Ok(Some(found)),
            }
        }
        Ok(None)
    }

    /// Checks that the system lets packs be opened. Where it does not, as where file descriptors run out, libgit2 says
    /// of their objects that they are missing.
    ///
    /// # Errors
    ///
    /// Returns why one cannot be opened.
    pub fn check_readable(&self) -> Result<(), ReadError> {
        let objects = self.inner.commondir().join("objects");
        let directories = ObjectDirectories::of(&objects);
        let directories = directories.map_err(|it| ReadError::new("a directory of objects", it))?;
        // libgit2 keeps them open, too.
        let mut open = Vec::new();
        for directory in directories {
            let packs = directory.join("pack");
            let opened = open_packs(&packs, &mut open);
            opened
                .map_err(|it| ReadError::new(format!("`{}`", packs.display()), it.to_string()))?;
        }
        Ok(())
    }
}

/// Opens the packs of a directory and their indexes; none if there is no such directory.
fn open_packs(directory: &Path, open: &mut Vec<File>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let is_pack = path.extension().is_some_and(|it| it == "pack");
        if !is_pack || open.len() >= MOST_PACKS {
            continue;
        }
        let opened = open_regular(&path.with_extension("idx")).and_then(|_| open_regular(&path));
        match opened {
            Ok(file) => open.push(file),
            // Another process may have repacked meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::git::CommitPresence;

    fn commit_on(git: &git2::Repository, parent: Option<CommitId>) -> CommitId {
        let tree = git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let who = git2::Signature::now("a", "a@example.com").unwrap();
        let parent = parent.map(|it| git.find_commit(it.to_string().parse().unwrap()).unwrap());
        let parents: Vec<_> = parent.iter().collect();
        let made = git.commit(None, &who, &who, "a commit", &tree, &parents).unwrap();
        made.to_string().parse().unwrap()
    }

    /// Makes a repository of three commits in one pack, and returns them with the pack.
    fn packed(directory: &Path) -> ([CommitId; 3], PathBuf) {
        let git = git2::Repository::init_bare(directory).unwrap();
        let first = commit_on(&git, None);
        let second = commit_on(&git, Some(first));
        let third = commit_on(&git, Some(second));
        let packs = directory.join("objects/pack");
        let mut builder = git.packbuilder().unwrap();
        for commit in [first, second, third] {
            builder.insert_commit(commit.to_string().parse().unwrap()).unwrap();
        }
        builder.write(&packs, 0).unwrap();
        for entry in fs::read_dir(directory.join("objects")).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().len() == 2 {
                fs::remove_dir_all(path).unwrap();
            }
        }
        let mut files = fs::read_dir(packs).unwrap().map(|it| it.unwrap().path());
        let pack = files.find(|it| it.extension().is_some_and(|it| it == "pack")).unwrap();
        ([first, second, third], pack)
    }

    #[test]
    fn packs_that_cannot_be_opened_show_nothing_and_missing_commits_no_ancestors() {
        let directory = tempfile::tempdir().unwrap();
        let ([first, second, third], pack) = packed(directory.path());
        let (repository, absent) =
            (Repository::at(directory.path()).unwrap(), CommitId::from_bytes([7; 20]));
        // The system does not let the pack be opened for a while.
        let aside = pack.with_extension("aside");
        fs::rename(&pack, &aside).unwrap();
        fs::create_dir(&pack).unwrap();
        for ancestor in [first, third, absent] {
            let error = repository.shows_ancestor(ancestor, second).unwrap_err().to_string();
            assert!(error.ends_with("cannot be read: it is not a regular file"), "{error}");
            assert_eq!(repository.presence(ancestor), CommitPresence::Unknown);
        }
        fs::remove_dir(&pack).unwrap();
        fs::rename(&aside, &pack).unwrap();
        for (ancestor, expected) in [(first, true), (third, false), (absent, false)] {
            assert_eq!(repository.shows_ancestor(ancestor, second), Ok(expected));
            let is_known = ancestor != absent;
            assert_eq!(
                repository.read_ancestry(ancestor, second),
                Ok(is_known.then_some(expected))
            );
        }
        assert_eq!(repository.presence(first), CommitPresence::Present);
        assert_eq!(repository.presence(absent), CommitPresence::Absent);
    }
}
