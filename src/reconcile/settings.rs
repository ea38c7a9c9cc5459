//! What the controller follows, and how.

use std::path::PathBuf;
use std::time::Duration;

use super::head_check::HeadChecker;
use super::policy::Policy;
use super::source::Target;
use crate::forge::{CommitStatus, Forge, StatusState};
use crate::git::{MirrorOptions, Verification};
use crate::model::{Budget, CommitId};

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
    /// How often the branch is fetched.
    pub interval: Duration,
    /// Where the journal is kept; none keeps it in memory.
    pub data: Option<PathBuf>,
    /// How choices are made.
    pub policy: Policy,
    /// How remotes are reached: the deadline of a push, and what interrupts one.
    pub transport: Box<MirrorOptions>,
    /// What one commit may cost.
    pub budget: Budget,
    /// How many bytes the snapshots of other commits may take beside the live one.
    pub snapshot_cache: u64,
    /// Whose commits may be served.
    pub verification: Verification,
    /// The forge that gets commit statuses.
    pub reporting: Option<Reporting>,
}

/// The forge that gets commit statuses, and how they are named.
#[derive(Clone, Debug)]
pub struct Reporting {
    /// The forge.
    pub forge: Forge,
    /// The name of this daemon among those that follow the same repository.
    pub instance: String,
    /// The address of this daemon for readers of the status.
    pub public_url: Option<String>,
    /// What checks heads of pull requests.
    pub head_checker: HeadChecker,
}

impl Reporting {
    /// Returns a status of a commit.
    pub(super) fn status(
        &self,
        commit: CommitId,
        context: &str,
        state: StatusState,
        description: String,
    ) -> CommitStatus {
        let (context, link) = (context.to_owned(), self.link(commit));
        CommitStatus { commit, context, state, description, link }
    }

    fn link(&self, commit: CommitId) -> Option<String> {
        let base = self.public_url.as_deref()?.trim_end_matches('/');
        Some(format!("{base}/controller/commits/{commit}"))
    }
}
