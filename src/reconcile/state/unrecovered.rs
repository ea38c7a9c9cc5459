//! The commit that was live before the restart, as long as none is live.

use crate::git::SignatureFault;
use crate::model::CommitId;

/// Why the commit that was live before the restart is not live now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::reconcile) enum RecoveryFault {
    /// Its signature or one in its history, which other keys may allow.
    #[error(transparent)]
    Signature(SignatureFault),
    /// What keys do not change.
    #[error("{0}")]
    Other(String),
}

impl From<SignatureFault> for RecoveryFault {
    fn from(fault: SignatureFault) -> Self {
        match fault {
            // Whether it is signed is not decided: its head is followed, and what is damaged is fetched again.
            SignatureFault::UnreadableCommit { source, .. } => {
                Self::Other(format!("its signature cannot be checked: {source}"))
            }
            fault => Self::Signature(fault),
        }
    }
}

/// The commit that was live before the restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unrecovered {
    pub(super) commit: CommitId,
    pub(super) fault: RecoveryFault,
    /// Whether keys that changed since allow it: it waits for the builder.
    pub(super) is_allowed: bool,
}
