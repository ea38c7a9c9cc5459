//! The files of a tree, without checking anything out.

use std::path::Path;

use git2::{ObjectType, Tree, TreeEntry as TreeEntryOf};

use super::repository::{ReadError, Repository};
use crate::model::{BlobId, CommitId};

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path from the directory that was asked for, with `/`; what is not UTF-8 is replaced.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What stands in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file with its content.
    File(BlobId),
    /// A symbolic link.
    Link,
    /// A submodule.
    Submodule,
}

/// How deep directories may lie in each other. A push may nest them without end.
const DEPTH: usize = 128;

/// How many entries, directories counted, may lie below one directory. Trees that hold each other
/// many times over make a few kilobytes look like billions of files.
const ENTRIES: usize = 1_000_000;

const LINK: i32 = 0o120_000;

impl Repository {
    /// Returns every file below a directory of a commit's tree, by path; links are not followed,
    /// and what lies elsewhere in the tree is not looked at.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory does not exist, a tree cannot be read, directories lie in
    /// each other more than 128 deep, or there are more than a million entries.
    pub fn files(&self, commit: CommitId, directory: &str) -> Result<Vec<TreeEntry>, ReadError> {
        self.walk(self.tree_of(commit, directory)?, None, &name_of(commit, directory))
    }

    /// Returns the files below a directory of a commit's tree that another commit, if there is one,
    /// does not have so; those that are gone are not among them, and where the directory is missing
    /// there are none. What both have in common is not looked at.
    ///
    /// # Errors
    ///
    /// As [`Repository::files`].
    pub fn changed_files(
        &self,
        before: Option<CommitId>,
        commit: CommitId,
        directory: &str,
    ) -> Result<Vec<TreeEntry>, ReadError> {
        self.find_commit(commit)?;
        let Ok(tree) = self.tree_of(commit, directory) else { return Ok(Vec::new()) };
        let old = before.and_then(|before| self.tree_of(before, directory).ok());
        self.walk(tree, old, &name_of(commit, directory))
    }

    /// Returns the files below a directory that two commits have, but not the same, as the second has
    /// them; `None` if there are more than so many, or files that only one of the commits has.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory does not exist or a tree cannot be read.
    pub fn amended_files(
        &self,
        before: CommitId,
        after: CommitId,
        directory: &str,
        most: usize,
    ) -> Result<Option<Vec<TreeEntry>>, ReadError> {
        let what = name_of(after, directory);
        let fail = |error: git2::Error| ReadError::new(what.as_str(), error.message());
        let tree = |entry: &TreeEntryOf<'_>| self.inner().find_tree(entry.id()).map_err(fail);
        let mut files = Vec::new();
        // Two directories that differ have a file that differs, if need be further down: so what is
        // looked at is limited by the number of files and the depth.
        let (old, new) = (self.tree_of(before, directory)?, self.tree_of(after, directory)?);
        let mut waiting = vec![(String::new(), 0, old, new)];
        while let Some((parent, depth, old, new)) = waiting.pop() {
            if old.len() != new.len() || depth > DEPTH || waiting.len() + files.len() > most {
                return Ok(None);
            }
            for (a, b) in old.iter().zip(&new) {
                if a.name_bytes() != b.name_bytes() {
                    return Ok(None);
                }
                if a.id() == b.id() && a.filemode() == b.filemode() {
                    continue;
                }
                let path = format!("{parent}{}", String::from_utf8_lossy(b.name_bytes()));
                match (kind(&a), kind(&b)) {
                    (Some(_), Some(kind)) => files.push(TreeEntry { path, kind }),
                    (None, None) => {
                        waiting.push((format!("{path}/"), depth + 1, tree(&a)?, tree(&b)?));
                    }
                    _ => return Ok(None),
                }
            }
        }
        Ok(Some(files).filter(|it| it.len() <= most))
    }

    fn tree_of(&self, commit: CommitId, directory: &str) -> Result<Tree<'_>, ReadError> {
        let what = name_of(commit, directory);
        let fail = |error: git2::Error| ReadError::new(what.as_str(), error.message());
        let root = self.find_commit(commit)?.tree().map_err(fail)?;
        let path = directory.trim_matches('/');
        if matches!(path, "" | ".") {
            return Ok(root);
        }
        let entry = root.get_path(Path::new(path)).map_err(fail)?;
        let object = entry.to_object(self.inner()).map_err(fail)?;
        object.into_tree().map_err(|_| ReadError::new(what.as_str(), "it is a file"))
    }

    /// Returns the files of a tree that another one, if there is one, does not have so.
    fn walk(
        &self,
        tree: Tree<'_>,
        old: Option<Tree<'_>>,
        what: &str,
    ) -> Result<Vec<TreeEntry>, ReadError> {
        let fail = |error: git2::Error| ReadError::new(what, error.message());
        let mut files = Vec::new();
        let mut seen = 0;
        let mut waiting = vec![(String::new(), 0, tree, old)];
        while let Some((parent, depth, tree, old)) = waiting.pop() {
            seen += tree.len();
            if seen > ENTRIES {
                return Err(ReadError::new(what, format!("it has more than {ENTRIES} entries")));
            }
            for entry in &tree {
                let before = old.as_ref().and_then(|old| old.get_name_bytes(entry.name_bytes()));
                let same = |it: &TreeEntryOf<'_>| {
                    it.id() == entry.id() && it.filemode() == entry.filemode()
                };
                if before.as_ref().is_some_and(same) {
                    continue;
                }
                let name = String::from_utf8_lossy(entry.name_bytes());
                match kind(&entry) {
                    Some(kind) => files.push(TreeEntry { path: format!("{parent}{name}"), kind }),
                    None if depth == DEPTH => {
                        let detail = format!("directories lie in each other over {DEPTH} deep");
                        return Err(ReadError::new(what, detail));
                    }
                    None => {
                        let below = self.inner().find_tree(entry.id()).map_err(fail)?;
                        let before = before.and_then(|it| self.inner().find_tree(it.id()).ok());
                        waiting.push((format!("{parent}{name}/"), depth + 1, below, before));
                    }
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}

/// Names the tree of a commit, or a directory of it, for messages.
fn name_of(commit: CommitId, directory: &str) -> String {
    match directory {
        "" | "." => format!("the tree of the commit {commit}"),
        _ => format!("the directory `{directory}` of the commit {commit}"),
    }
}

/// Returns what an entry of a tree is; `None` for a directory.
fn kind(entry: &TreeEntryOf<'_>) -> Option<EntryKind> {
    match (entry.kind(), entry.filemode()) {
        (Some(ObjectType::Tree), _) => None,
        (Some(ObjectType::Commit), _) => Some(EntryKind::Submodule),
        (_, LINK) => Some(EntryKind::Link),
        _ => Some(EntryKind::File(BlobId::from_bytes(super::repository::bytes(entry.id())))),
    }
}
