//! What a node gets, value by value: as blame shows it and as the store keeps it, and how two answers differ.
//!
//! The name of the node is not part of an answer, so nodes that the same groups match share one.

mod cause;
mod change;
mod digest;
mod key;
mod outline;
mod record;
mod values;
mod written;

pub use cause::{ChangeCause, GivenAnswer, MentionedFacts, cause};
pub use change::{AnswerChange, changes};
pub use digest::AnswerDigest;
pub use key::AnswerKey;
pub use outline::AnswerOutline;
pub use record::{AnswerRecord, ConflictRecord, NodeState, RuleFailure};
pub use values::{Answer, Defined, DefiningGroup, NoAnswer};
pub use written::UnreadableAnswer;

#[cfg(test)]
mod tests;
