//! Git: repositories, revisions, trees, and the mirror that follows a remote.
//!
//! Blocking, over `git2`. A [`Repository`] may move between threads but serves one at a time;
//! opening one costs well under a millisecond, so each thread that needs one opens its own with
//! [`Mirror::repository`] or [`Repository::discover`].
//!
//! Paths, `file://`, `git://`, `http://`, `https://` and `ssh://` can be mirrored. Network transports
//! are ours ([`transport`]), since those of libgit2 know time-outs per read only and would need
//! OpenSSL.

mod alternates;
mod commit;
mod commit_links;
mod cut_history;
mod durable;
mod failure;
mod file_changes;
mod grafts;
mod libgit2;
mod local_push;
mod loose_object;
mod mirror;
mod move_lock;
mod object_copy;
mod object_guard;
mod object_id;
mod options;
mod own_files;
mod pack_index;
mod push;
mod push_error;
mod push_outcome;
mod push_report;
mod refs;
mod regular_file;
mod remote;
mod remote_branch;
mod repository;
mod signature;
mod transport;
mod tree;
mod tree_difference;
mod tree_entry;
mod working_tree;

pub use commit::{NewCommit, Person};
pub use failure::{FetchError, FetchFailure};
pub use file_changes::FileChanges;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use mirror::fuzz_join;
pub use mirror::{Fetched, FetchedOthers, Mirror, MirrorError, SkippedRef, foreign_entry};
pub use options::{
    Credentials, HttpOptions, Interrupt, MirrorOptions, ObjectLimits, Proxy, SshOptions,
};
pub use push_error::PushError;
pub use refs::short_name;
pub use remote::{Remote, Scheme};
pub use repository::{
    CommitInfo, CommitPresence, ContainedCommits, ObjectFault, OpenError, Opener, ReadError,
    Repository, ResolveError, RevisionError, RevisionFault, StagedEntry,
};
pub use signature::{
    Base, KeyFiles, Sightings, SignatureFault, Signer, Verification, VerifyMode, WatchedKeys,
    check_allowed_signers, check_openpgp_keys,
};
pub use transport::{check_known_hosts, check_private_key};
pub use tree::{FilesError, TreeEntry};
pub use tree_difference::TreeComparer;
pub use tree_entry::EntryKind;
