//! Git: repositories, revisions, trees, and the mirror that follows a remote.
//!
//! Blocking, over `git2`. A [`Repository`] belongs to one thread at a time; opening one costs a
//! few milliseconds, so whoever needs one opens it.

mod mirror;
mod remote;
mod repository;

pub use mirror::{Fetched, Mirror, MirrorError};
pub use remote::{FetchError, FetchFailure, Remote, RemoteError};
pub use repository::{
    CommitInfo, EntryKind, OpenError, ReadError, Repository, RevisionError, TreeEntry,
};
