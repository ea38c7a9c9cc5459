//! The files of a commit that the groups are made of.

use std::sync::Arc;

use crate::document::Limits;
use crate::git::{EntryKind, ReadError, Repository, TreeEntry};
use crate::model::BlobId;
use crate::validation::{FileKind, Layout, SourceContent, SourceFile};

/// The names of the file with layout and policy, the first of which counts.
pub(super) const SETTINGS_FILES: [&str; 2] = ["clade.yaml", "clade.yml"];

/// A file of a commit whose path makes it one of groups, nodes, environments or tests.
pub(super) struct TreeFile<'e> {
    pub(super) entry: &'e TreeEntry,
    pub(super) path: Arc<str>,
    pub(super) kind: FileKind,
}

/// What the reading of a file depends on.
pub(super) type Key = (BlobId, Arc<str>, FileKind);

impl<'e> TreeFile<'e> {
    /// Returns the file of an entry; `None` if its path is of no kind.
    pub(super) fn of(entry: &'e TreeEntry, layout: &Layout) -> Option<Self> {
        let path: Arc<str> = entry.path.as_str().into();
        let file = SourceFile { path: Arc::clone(&path), content: unread(entry) };
        Some(Self { entry, path, kind: layout.kind_of(&file)? })
    }

    /// Reads the content, whose size may be known, unless it is too large for a document. The path is shared: it is
    /// kept with the reading and in its key.
    pub(super) fn source(
        &self,
        repository: &Repository,
        size: Option<u64>,
    ) -> Result<SourceFile, ReadError> {
        let content = content_of_size(repository, self.entry, size)?;
        Ok(SourceFile { path: Arc::clone(&self.path), content })
    }

    /// Returns the key of its reading; a link or submodule is not read.
    pub(super) fn key(&self) -> Option<Key> {
        match self.entry.kind {
            EntryKind::File(blob) => Some((blob, Arc::clone(&self.path), self.kind)),
            EntryKind::Link | EntryKind::Submodule => None,
        }
    }
}

/// Returns whether a file is the one with layout and policy.
pub(super) fn is_settings(path: &str) -> bool {
    SETTINGS_FILES.contains(&path)
}

/// Reads the content of an entry, unless it is too large for a document.
pub(super) fn source_file(
    repository: &Repository,
    entry: &TreeEntry,
) -> Result<SourceFile, ReadError> {
    let content = content_of_size(repository, entry, None)?;
    Ok(SourceFile { path: entry.path.as_str().into(), content })
}

/// Reads the content of an entry whose size may be known, unless it is too large for a document.
fn content_of_size(
    repository: &Repository,
    entry: &TreeEntry,
    size: Option<u64>,
) -> Result<SourceContent, ReadError> {
    Ok(match entry.kind {
        EntryKind::Link => SourceContent::Link,
        EntryKind::Submodule => SourceContent::Submodule,
        EntryKind::File(blob) => {
            let size = size.map_or_else(|| repository.blob_size(blob), Ok)?;
            if size > Limits::DEFAULT.file_bytes {
                SourceContent::TooLarge(size)
            } else {
                SourceContent::Bytes(repository.blob(blob)?)
            }
        }
    })
}

/// Returns the kind of content without reading it.
fn unread(entry: &TreeEntry) -> SourceContent {
    match entry.kind {
        EntryKind::File(_) => SourceContent::TooLarge(0),
        EntryKind::Link => SourceContent::Link,
        EntryKind::Submodule => SourceContent::Submodule,
    }
}
