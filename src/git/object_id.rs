//! Ids as libgit2 has them and as the core has them.

use crate::model::{BlobId, CommitId};

/// Returns the bytes of an id.
pub(super) fn bytes(oid: git2::Oid) -> [u8; 20] {
    // libgit2 is built for SHA-1 alone here and opens no other repository.
    oid.as_bytes().try_into().unwrap_or_default()
}

pub(super) fn id_of(oid: git2::Oid) -> CommitId {
    CommitId::from_bytes(bytes(oid))
}

pub(super) fn oid(id: CommitId) -> git2::Oid {
    raw(id.as_bytes())
}

pub(super) fn blob_oid(id: BlobId) -> git2::Oid {
    raw(id.as_bytes())
}

/// Returns the id with the given bytes; the zero id, which names nothing, cannot come of 20 bytes.
fn raw(bytes: &[u8; 20]) -> git2::Oid {
    git2::Oid::from_bytes(bytes).unwrap_or(git2::Oid::ZERO_SHA1)
}
