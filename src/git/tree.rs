//! The files of a tree, without checking anything out.

use std::path::Path;

use git2::ObjectType;

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
        let (what, root) = self.tree(commit, directory)?;
        let fail = |error: git2::Error| ReadError::new(what.as_str(), error.message());
        let mut files = Vec::new();
        let mut seen = 0;
        let mut waiting = vec![(String::new(), 0, root)];
        while let Some((parent, depth, tree)) = waiting.pop() {
            seen += tree.len();
            if seen > ENTRIES {
                return Err(ReadError::new(what, format!("it has more than {ENTRIES} entries")));
            }
            for entry in &tree {
                let name = String::from_utf8_lossy(entry.name_bytes());
                match kind(&entry) {
                    Some(kind) => files.push(TreeEntry { path: format!("{parent}{name}"), kind }),
                    None if depth == DEPTH => {
                        let detail = format!("directories lie in each other over {DEPTH} deep");
                        return Err(ReadError::new(what, detail));
                    }
                    None => {
                        let below = self.inner().find_tree(entry.id()).map_err(fail)?;
                        waiting.push((format!("{parent}{name}/"), depth + 1, below));
                    }
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Returns the files below a directory that one commit has otherwise than another, as the second
    /// has them; `None` if there are more than so many, or files that only one of them has.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory does not exist or a tree cannot be read.
    pub fn changes(
        &self,
        before: CommitId,
        after: CommitId,
        directory: &str,
        most: usize,
    ) -> Result<Option<Vec<TreeEntry>>, ReadError> {
        let (_, old) = self.tree(before, directory)?;
        let (what, new) = self.tree(after, directory)?;
        let fail = |error: git2::Error| ReadError::new(what.as_str(), error.message());
        let mut changes = Vec::new();
        // Each pair of directories that differ has a file that differs, or goes deeper; so what is
        // looked at is limited by the changes and the depth.
        let mut waiting = vec![(String::new(), 0, old, new)];
        while let Some((parent, depth, old, new)) = waiting.pop() {
            if old.len() != new.len() || depth > DEPTH || waiting.len() > most {
                return Ok(None);
            }
            for (a, b) in old.iter().zip(&new) {
                if a.name_bytes() != b.name_bytes() {
                    return Ok(None);
                }
                if a.id() == b.id() && a.filemode() == b.filemode() {
                    continue;
                }
                let name = String::from_utf8_lossy(b.name_bytes());
                match (kind(&a), kind(&b)) {
                    (Some(_), Some(kind)) => {
                        changes.push(TreeEntry { path: format!("{parent}{name}"), kind });
                    }
                    (None, None) => {
                        let tree = |entry: &git2::TreeEntry<'_>| self.inner().find_tree(entry.id());
                        let below = (tree(&a).map_err(fail)?, tree(&b).map_err(fail)?);
                        waiting.push((format!("{parent}{name}/"), depth + 1, below.0, below.1));
                    }
                    _ => return Ok(None),
                }
                if changes.len() > most {
                    return Ok(None);
                }
            }
        }
        Ok(Some(changes))
    }

    /// Returns a directory of a commit's tree, and what to call it.
    fn tree(
        &self,
        commit: CommitId,
        directory: &str,
    ) -> Result<(String, git2::Tree<'_>), ReadError> {
        let what = match directory {
            "" | "." => format!("the tree of the commit {commit}"),
            _ => format!("the directory `{directory}` of the commit {commit}"),
        };
        let fail = |error: git2::Error| ReadError::new(what.as_str(), error.message());
        let mut root = self.find_commit(commit)?.tree().map_err(fail)?;
        let path = directory.trim_matches('/');
        if !matches!(path, "" | ".") {
            let entry = root.get_path(Path::new(path)).map_err(fail)?;
            let object = entry.to_object(self.inner()).map_err(fail)?;
            root = object.into_tree().map_err(|_| ReadError::new(what.as_str(), "it is a file"))?;
        }
        Ok((what, root))
    }
}

/// Returns what an entry of a tree is; `None` for a directory.
fn kind(entry: &git2::TreeEntry<'_>) -> Option<EntryKind> {
    match (entry.kind(), entry.filemode()) {
        (Some(ObjectType::Tree), _) => None,
        (Some(ObjectType::Commit), _) => Some(EntryKind::Submodule),
        (_, LINK) => Some(EntryKind::Link),
        _ => Some(EntryKind::File(BlobId::from_bytes(super::repository::bytes(entry.id())))),
    }
}
