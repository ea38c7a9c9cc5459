//! The files of a commit by path, for what is read of them a second time, or found on the way.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use super::tree_files::source_file;
use crate::git::{EntryKind, ReadError, Repository, TreeEntry};
use crate::validation::{SourceContent, SourceFile};

/// Files that replace those of a commit, by path; none removes one.
pub(super) type Changes = BTreeMap<String, Option<String>>;

/// The files of a commit, as they are with some changes.
pub(super) struct CommitTree<'t> {
    repository: &'t Repository,
    entries: HashMap<&'t str, &'t TreeEntry>,
    changed: &'t [SourceFile],
    changes: &'t Changes,
    /// The first file that could not be read.
    failure: OnceCell<ReadError>,
}

impl<'t> CommitTree<'t> {
    pub(super) fn new(
        repository: &'t Repository,
        entries: &'t [TreeEntry],
        changed: &'t [SourceFile],
        changes: &'t Changes,
    ) -> Self {
        let entries = entries.iter().map(|it| (it.path.as_str(), it)).collect();
        Self { repository, entries, changed, changes, failure: OnceCell::new() }
    }

    /// Returns what stands at a path; none if there is nothing, or it cannot be read.
    pub(super) fn read(&self, path: &str) -> Option<SourceContent> {
        if self.is_changed(path) {
            let file = self.changed.iter().find(|it| &*it.path == path)?;
            return Some(file.content.clone());
        }
        match source_file(self.repository, self.entries.get(path)?) {
            Ok(file) => Some(file.content),
            Err(error) => {
                drop(self.failure.set(error));
                None
            }
        }
    }

    /// Returns what git has at a path.
    pub(super) fn kind(&self, path: &str) -> Option<EntryKind> {
        self.entries.get(path).map(|it| it.kind)
    }

    /// Returns whether a file is not what git has.
    pub(super) fn is_changed(&self, path: &str) -> bool {
        self.changes.contains_key(path)
    }

    /// Returns whether everything could be read so far.
    pub(super) fn is_whole(&self) -> bool {
        self.failure.get().is_none()
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// Returns the first error.
    pub(super) fn finish(self) -> Result<(), ReadError> {
        self.failure.into_inner().map_or(Ok(()), Err)
    }
}
