//! Why a branch is not pushed.

use super::failure::FetchError;

/// A push did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The branch is not where the caller believes it is.
    #[error("the branch moved meanwhile")]
    Moved,
    /// The remote refuses it; in its words.
    #[error("the remote refuses the push: {0}")]
    Rejected(String),
    /// Nothing changed at the remote.
    #[error("{0}")]
    Failed(FetchError),
    /// It is not known whether it is there: the connection broke and the remote cannot be asked.
    #[error("whether the push arrived is not known: {0}")]
    Unknown(FetchError),
}
