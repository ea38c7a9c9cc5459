//! The refs of a mirror that are its own.

/// The ref that names the live commit, so that a restart finds it.
pub(super) const LIVE: &str = "refs/clade/live";

/// Before the full name of a watched ref: where that was at the last fetch.
pub(super) const WATCHED: &str = "refs/clade/watched/";
