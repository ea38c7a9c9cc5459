//! Why the files of a repository are not there.

use crate::diagnostic::Diagnostic;
use crate::model::Exceeded;
use crate::validation::too_large;

/// The files are not there.
pub(super) enum NotRead {
    /// They cannot be read.
    Failed(anyhow::Error),
    /// The repository is not valid, whatever they say.
    Rejected(Box<Diagnostic>),
}

impl From<anyhow::Error> for NotRead {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Exceeded> for NotRead {
    fn from(exceeded: Exceeded) -> Self {
        Self::Rejected(Box::new(too_large(exceeded)))
    }
}
