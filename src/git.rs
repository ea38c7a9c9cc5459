//! Git: repositories, revisions, trees, and the mirror that follows a remote.
//!
//! Blocking, over `git2`. A [`Repository`] may move between threads but serves one at a time;
//! opening one costs well under a millisecond, so each thread that needs one opens its own with
//! [`Mirror::repository`] or [`Repository::discover`].
//!
//! Paths, `file://`, `git://`, `http://` and `https://` can be mirrored. Network transports are
//! ours ([`transport`]), since those of libgit2 know time-outs per read only and would need
//! OpenSSL. `ssh` would be one more file there; until then [`Remote::parse`] refuses it.

mod failure;
mod libgit2;
mod mirror;
mod options;
mod remote;
mod repository;
mod transport;
mod tree;

pub use failure::{FetchError, FetchFailure};
pub use mirror::{Fetched, Mirror, MirrorError, Movement, Observed};
pub use options::{Credentials, HttpOptions, MirrorOptions, Proxy};
pub use remote::{Remote, RemoteError, Scheme};
pub use repository::{CommitInfo, OpenError, ReadError, Repository, RevisionError};
pub use tree::{EntryKind, TreeEntry};
