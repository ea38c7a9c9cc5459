//! The entries of trees as git writes them.

use std::cmp::Ordering;

use git2::{ObjectType, Tree, TreeEntry};

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

/// Returns whether the entry at an index may stand there in a tree that git writes.
pub(super) fn is_in_place(tree: &Tree<'_>, at: usize, entry: &TreeEntry<'_>) -> bool {
    let name = entry.name_bytes();
    let is_name = !name.contains(&b'/') && !matches!(name, b"." | b"..");
    let last = at.checked_sub(1).and_then(|it| tree.get(it));
    is_name && last.is_none_or(|last| order(&last, entry).is_lt()) && !has_twin(tree, at, entry)
}

/// Returns whether a directory has the name of a file, which stands before it, or the other way round. All that stands
/// between them begins with the name.
fn has_twin(tree: &Tree<'_>, at: usize, entry: &TreeEntry<'_>) -> bool {
    let name = entry.name_bytes();
    let begins_alike = |it| tree.get(it).filter(|it| it.name_bytes().starts_with(name));
    let is_twin = |it: TreeEntry<'_>| it.name_bytes().len() == name.len();
    match kind_of(entry) {
        None => (0..at).rev().map_while(begins_alike).any(is_twin),
        Some(_) => (at + 1..tree.len()).map_while(begins_alike).any(is_twin),
    }
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
