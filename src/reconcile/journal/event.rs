//! What the journal records.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::changeset::WriteOutcome;
use crate::forge::StatusState;
use crate::model::CommitId;
use crate::reconcile::attribution::Attribution;
use crate::reconcile::trigger::Trigger;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When, by the clock of this machine.
    pub time: Timestamp,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What can happen: to a commit, unless it is said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The watched branch was seen at it.
    Fetched {
        /// The commit.
        commit: CommitId,
    },
    /// It became live.
    Activated {
        /// The commit.
        commit: CommitId,
        /// What brought it here.
        trigger: Trigger,
    },
    /// It was rejected. What is wrong with its files stays; one that could not be read, or whose signature was refused, may
    /// be live later.
    Rejected {
        /// The commit.
        commit: CommitId,
        /// Where it failed.
        stage: Stage,
    },
    /// It is valid and signed as it must be, and a pin or a resume that is waited for keeps it from being live.
    Held {
        /// The commit.
        commit: CommitId,
    },
    /// A newer one came before it was built.
    Superseded {
        /// The commit.
        commit: CommitId,
        /// The newer one.
        by: CommitId,
    },
    /// The forge has its commit status.
    Reported {
        /// The commit.
        commit: CommitId,
        /// What the status is about.
        context: String,
        /// What it came to.
        state: StatusState,
        /// What it says of a valid commit's part in answers; none of older versions, and of other statuses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        live: Option<LiveReport>,
    },
    /// A check of it, the head of a pull request, begins in a process of its own.
    HeadCheckBegan {
        /// The commit.
        commit: CommitId,
    },
    /// That check was stopped with the daemon.
    HeadCheckStopped {
        /// The commit.
        commit: CommitId,
    },
    /// That check ended; its commit status follows.
    HeadChecked {
        /// The commit.
        commit: CommitId,
        /// What it came to.
        state: StatusState,
        /// A sentence about it.
        description: String,
    },
    /// An operator had the branch fetched.
    FetchRequested {
        /// Who, and why.
        #[serde(flatten)]
        by: Attribution,
    },
    /// An operator pinned it.
    Pinned {
        /// The commit.
        commit: CommitId,
        /// Who, and why.
        #[serde(flatten)]
        by: Attribution,
    },
    /// An operator has the branch followed again.
    Resumed {
        /// Who, and why.
        #[serde(flatten)]
        by: Attribution,
        /// The head that they accept although it does not descend from what answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accepts: Option<CommitId>,
    },
    /// An operator had a node forgotten.
    NodeForgotten {
        /// The node.
        node: String,
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// Its signatures are what `--verify` demands.
    Verified {
        /// The commit.
        commit: CommitId,
        /// Whose key signed it.
        signer: String,
    },
    /// The clock of this machine was set.
    ClockSet {
        /// What it showed last before.
        until: Timestamp,
        /// The earliest that it can have shown after.
        since: Timestamp,
    },
    /// Writes of clients are about to be pushed.
    Pushing {
        /// The writes, in order.
        writes: Vec<PushedWrite>,
    },
    /// The clients of writes have their answers.
    Answered {
        /// The commits of the writes.
        commits: Vec<CommitId>,
    },
}

impl Event {
    /// Returns the commit if it says that one was the head of the branch.
    pub(in crate::reconcile) fn head(&self) -> Option<CommitId> {
        match self {
            Self::Fetched { commit } | Self::Activated { commit, .. } => Some(*commit),
            _ => None,
        }
    }

    /// Returns whether it says whether a commit is pinned.
    pub(in crate::reconcile) fn is_of_pins(&self) -> bool {
        matches!(self, Self::Pinned { .. } | Self::Resumed { .. })
    }

    /// Returns whether it matters after a long time, as what was live when does.
    pub(super) fn is_lasting(&self) -> bool {
        !matches!(
            self,
            Self::Reported { .. }
                | Self::HeadCheckBegan { .. }
                | Self::HeadCheckStopped { .. }
                | Self::HeadChecked { .. }
                | Self::Pushing { .. }
                | Self::Answered { .. }
        )
    }
}

/// What the forge shows of a valid commit's part in the answers of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiveReport {
    /// It answers.
    Answers,
    /// It never did: a newer one came first.
    Superseded,
    /// It did, until one answered that does not contain it: after a pin, or a rewind of the branch.
    Replaced,
}

/// A write of a client that may be at the remote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PushedWrite {
    /// The same for the same request of the same client.
    pub fingerprint: String,
    /// The commit.
    pub commit: CommitId,
    /// The answer to the client.
    pub answer: WriteOutcome,
}

/// Where a commit can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Its signature.
    Verify,
    /// It could not be read.
    Load,
    /// Its files.
    Check,
}
