//! Bytes to values with places: the only YAML reader of the program.
//!
//! Untrusted input is the rule here: sizes, depth and the expansion of aliases are
//! limited, and what two YAML readers would read differently is refused instead of
//! being guessed.

mod advice;
mod belonging;
mod build;
mod comment;
mod contents;
mod count;
mod edit;
mod fault;
mod format;
mod input;
mod limits;
mod node;
mod place;
mod plain;
mod read;
mod scalar;
mod text;
mod token;
mod write;

pub use comment::Ignore;
pub use contents::Contents;
pub use count::Count;
pub use edit::{EditError, edit_documents, remove_documents};
pub use fault::{Fault, FaultKind, bounded};
pub use format::format;
pub use limits::Limits;
pub use node::{Content, Entry, Node};
pub use place::{Position, Span};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use plain::fuzz_plain;
pub use read::{read, read_counted};
pub use text::read_text;
pub use write::{ValueLayout, quote, write, write_indented};

#[cfg(test)]
mod tests;
