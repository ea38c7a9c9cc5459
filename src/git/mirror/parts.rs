//! What a mirror remembers of its refs and packs.

use std::path::PathBuf;
use std::time::Instant;

use git2::Oid;
use parking_lot::Mutex;

use super::skipped::{SkippedRef, SkippedRefs};

/// What came of fetching the refs beside the watched one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedOthers {
    /// The refs that are not fetched.
    pub skipped: Vec<SkippedRef>,
    /// Whether the watched ref has moved since it was fetched. Its new commit may be here then, and readers may ask
    /// for it before it is followed.
    pub watched_moved: bool,
}

/// A ref of the remote, and its name in the mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) source: String,
    pub(super) kept: String,
    pub(super) target: Oid,
}

/// What is known of the refs beside the watched one.
#[derive(Debug, Default)]
pub(super) struct Others {
    pub(super) skipped: SkippedRefs,
    /// The names of those that are not UTF-8, as they are shown.
    pub(super) not_utf8: Vec<String>,
    /// Whether some have moved since they were fetched.
    pub(super) moved: bool,
}

/// A pack whose objects are in another one as well, by its index.
#[derive(Debug)]
pub(super) struct JoinedPack {
    pub(super) index: PathBuf,
    /// The index of the other one.
    pub(super) into: PathBuf,
    /// When they were joined.
    pub(super) since: Instant,
}

/// Packs that have been joined and are to be removed.
#[derive(Debug, Default)]
pub(super) struct Joined(pub(super) Mutex<Vec<JoinedPack>>);
