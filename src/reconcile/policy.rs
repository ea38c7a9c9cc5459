//! How choices of the loop are made.

use std::time::Duration;

/// How choices are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What a rewritten history does.
    pub on_rewrite: OnRewrite,
    /// How long a head that is older than the live commit is taken for a replica's lag.
    pub rewind_grace: Duration,
    /// After how long without a successful fetch the answers are stale.
    pub max_staleness: Option<Duration>,
    /// What being stale does.
    pub on_stale: OnStale,
}

/// What a rewritten history does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRewrite {
    /// It is followed, and reported.
    #[default]
    Follow,
    /// It waits until an operator resumes, or the branch comes back.
    Hold,
}

/// What being stale does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStale {
    /// Answers go on, with a header that says so.
    #[default]
    Serve,
    /// The same, and the daemon is not ready.
    Unready,
    /// There are no answers.
    Refuse,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            on_rewrite: OnRewrite::Follow,
            rewind_grace: Duration::from_secs(30),
            max_staleness: None,
            on_stale: OnStale::Serve,
        }
    }
}
