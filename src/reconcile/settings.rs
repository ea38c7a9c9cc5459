//! What the controller follows, and how.

use std::path::PathBuf;
use std::time::Duration;

use super::commit_status::Reporting;
use crate::git::{Mirror, MirrorOptions, Verification};
use crate::model::Budget;

/// Where the branch is.
#[derive(Debug)]
pub enum Target {
    /// In a repository of this machine that is read as it is.
    Local(PathBuf),
    /// At a remote that a mirror follows.
    Remote(Mirror),
}

/// What the controller follows.
#[derive(Debug)]
pub struct Settings {
    /// Where the branch is.
    pub target: Target,
    /// The address for the status, without credentials.
    pub address: String,
    /// The branch; none for what HEAD names.
    pub branch: Option<String>,
    /// The directory of the groups in the repository.
    pub path: String,
    /// How often the branch is looked at.
    pub interval: Duration,
    /// Where the journal is kept; none keeps it in memory.
    pub data: Option<PathBuf>,
    /// What is done where there is a choice.
    pub policy: Policy,
    /// How remotes are talked to: the deadline of a push, and what interrupts one.
    pub transport: Box<MirrorOptions>,
    /// What one commit may cost.
    pub budget: Budget,
    /// How many bytes the snapshots of other commits may take beside the one that answers.
    pub snapshot_cache: u64,
    /// Whose commits may answer.
    pub verification: Verification,
    /// The forge to tell what commits came to.
    pub reporting: Option<Reporting>,
}

/// What is done where there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What a rewritten history does.
    pub on_rewrite: OnRewrite,
    /// How long a head that is older than the commit that answers is taken for a replica's lag.
    pub rewind_grace: Duration,
    /// After how long without a successful look at the remote the answers are stale.
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
