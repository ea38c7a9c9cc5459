//! What is known of a commit.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Finding;
use crate::model::CommitId;
use crate::reconcile::{self, CommitDetails, Outcome};

/// A commit, whether it is valid, and what became of it here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Commit {
    /// Its id.
    pub commit: CommitId,
    /// The name of its author.
    pub author: String,
    /// When it was made, by its committer's clock.
    pub time: Timestamp,
    /// The first line of its message.
    pub subject: String,
    /// Whether it is valid.
    pub valid: bool,
    /// How many groups it has; null if it is not valid.
    #[schema(required)]
    pub groups: Option<usize>,
    /// What is wrong in it, or noticed.
    pub diagnostics: Vec<Finding>,
    /// What became of it, in one line.
    pub message: String,
    /// What became of it.
    #[serde(flatten)]
    pub state: CommitState,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum CommitState {
    /// It answers.
    Live {
        /// Since when.
        since: Timestamp,
    },
    /// It answered, and does so no more.
    Replaced {
        /// Since when it answered, the last time.
        since: Timestamp,
        /// Until when.
        until: Timestamp,
        /// The commit that answered next.
        by: CommitId,
    },
    /// It is not valid and never answers.
    Rejected {
        /// When it was rejected.
        since: Timestamp,
        /// Where it failed.
        stage: Stage,
    },
    /// A newer commit of the branch came with it or before it was built.
    Superseded {
        /// When.
        since: Timestamp,
        /// The newer one.
        by: CommitId,
    },
    /// It is the head of the branch and will answer if it is valid.
    Pending {
        /// When it was fetched; null where that is not known.
        #[schema(required)]
        since: Option<Timestamp>,
    },
    /// It is valid, and waits for an operator or for the remote.
    Held {
        /// When it was fetched; null where that is not known.
        #[schema(required)]
        since: Option<Timestamp>,
    },
    /// The branch had it before this daemon followed it.
    Older,
    /// The repository has it, the branch does not: such as the head of a pull request.
    Elsewhere,
    /// A state that this program does not know.
    #[serde(other)]
    Unknown,
}

/// Where a commit can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Its signature.
    Verify,
    /// It could not be read.
    Load,
    /// Its files.
    Check,
    /// A stage that this program does not know.
    #[serde(other)]
    Unknown,
}

impl Stage {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Load => "load",
            Self::Check => "check",
            Self::Unknown => "unknown",
        }
    }
}

impl From<reconcile::Stage> for Stage {
    fn from(stage: reconcile::Stage) -> Self {
        match stage {
            reconcile::Stage::Verify => Self::Verify,
            reconcile::Stage::Load => Self::Load,
            reconcile::Stage::Check => Self::Check,
        }
    }
}

impl From<reconcile::CommitState> for CommitState {
    fn from(state: reconcile::CommitState) -> Self {
        use reconcile::CommitState as State;
        match state {
            State::Live { since } => Self::Live { since },
            State::Replaced { since, until, by } => Self::Replaced { since, until, by },
            State::Rejected { since, stage } => Self::Rejected { since, stage: stage.into() },
            State::Superseded { since, by } => Self::Superseded { since, by },
            State::Pending { since } => Self::Pending { since },
            State::Held { since } => Self::Held { since },
            State::Older => Self::Older,
            State::Elsewhere => Self::Elsewhere,
        }
    }
}

impl From<&CommitDetails> for Commit {
    fn from(details: &CommitDetails) -> Self {
        let CommitDetails { info, outcome, state } = details;
        let (groups, diagnostics) = match outcome {
            Outcome::Valid(snapshot) => (Some(snapshot.estate.hierarchy.len()), &snapshot.warnings),
            Outcome::Rejected(rejected) => (None, &rejected.diagnostics),
        };
        Self {
            commit: info.id,
            author: info.author.clone(),
            time: info.time,
            subject: info.subject.clone(),
            valid: groups.is_some(),
            groups,
            diagnostics: diagnostics.iter().map(|it| Finding::from(it.as_ref())).collect(),
            message: state.in_words(),
            state: (*state).into(),
        }
    }
}
