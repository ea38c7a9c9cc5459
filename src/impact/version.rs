//! The two states, and how a node is classified in one.

use crate::classification::{ClassificationError, Explanation};

/// How a node is classified.
pub(super) type Result<'e> = std::result::Result<Explanation<'e>, ClassificationError>;

/// One of the two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StateVersion {
    /// The state before.
    Base,
    /// The state after.
    Head,
}

/// Both states.
pub(super) const STATES: [StateVersion; 2] = [StateVersion::Base, StateVersion::Head];
