//! Why a rule could not be evaluated.

use std::sync::Arc;

/// Whether a condition holds could not be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// A pattern used up its step budget.
    #[error("the pattern `{pattern}` used up its step budget")]
    Steps {
        /// The pattern at fault.
        pattern: Arc<str>,
    },
    /// The node is known by stored facts, and the value at a path was not stored.
    #[error(
        "`{path}` is not stored, because of a mask or `--store-facts`; it is known while the node itself asks"
    )]
    Withheld {
        /// The path, as the console writes it.
        path: Arc<str>,
    },
}
