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
                let kind = match (entry.kind(), entry.filemode()) {
                    (Some(ObjectType::Tree), _) if depth == DEPTH => {
                        let detail = format!("directories lie in each other over {DEPTH} deep");
                        return Err(ReadError::new(what, detail));
                    }
                    (Some(ObjectType::Tree), _) => {
                        let below = self.inner().find_tree(entry.id()).map_err(fail)?;
                        waiting.push((format!("{parent}{name}/"), depth + 1, below));
                        continue;
                    }
                    (Some(ObjectType::Commit), _) => EntryKind::Submodule,
                    (_, LINK) => EntryKind::Link,
                    _ => EntryKind::File(BlobId::from_bytes(super::repository::bytes(entry.id()))),
                };
                files.push(TreeEntry { path: format!("{parent}{name}"), kind });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}
