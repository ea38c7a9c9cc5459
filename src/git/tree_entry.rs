//! The entries of trees as git writes them.

use std::cmp::Ordering;

use git2::{ObjectType, TreeEntry};

use super::object_id::bytes;
use crate::model::BlobId;

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

const LINK: i32 = 0o120_000;

/// Returns what an entry of a tree is; `None` for a directory.
pub(super) fn kind_of(entry: &TreeEntry<'_>) -> Option<EntryKind> {
    match (entry.kind(), entry.filemode()) {
        (Some(ObjectType::Tree), _) => None,
        (Some(ObjectType::Commit), _) => Some(EntryKind::Submodule),
        (_, LINK) => Some(EntryKind::Link),
        _ => Some(EntryKind::File(BlobId::from_bytes(bytes(entry.id())))),
    }
}

/// Returns whether an entry may stand behind another, or first, in a tree that git writes.
pub(super) fn is_in_place(last: Option<&TreeEntry<'_>>, entry: &TreeEntry<'_>) -> bool {
    let name = entry.name_bytes();
    let is_name = !name.contains(&b'/') && !matches!(name, b"." | b"..");
    is_name && last.is_none_or(|last| order(last, entry).is_lt())
}

/// Compares the names of two entries as trees sort them: that of a directory as if it ended with `/`.
pub(super) fn order(one: &TreeEntry<'_>, other: &TreeEntry<'_>) -> Ordering {
    let key = |entry: &TreeEntry<'_>| match kind_of(entry) {
        None => Some(b'/'),
        Some(_) => None,
    };
    let (a, b) = (one.name_bytes(), other.name_bytes());
    let common = a.len().min(b.len());
    let (a_start, b_start) = (a.get(..common).unwrap_or(a), b.get(..common).unwrap_or(b));
    a_start.cmp(b_start).then_with(|| {
        let next = |name: &[u8], entry| name.get(common).copied().or_else(|| key(entry));
        next(a, one).cmp(&next(b, other)).then(a.len().cmp(&b.len()))
    })
}
