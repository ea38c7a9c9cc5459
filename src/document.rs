//! Bytes to values with places: the only YAML reader of the program.
//!
//! Untrusted input is the rule here: sizes, depth and the expansion of aliases are
//! limited, and what two YAML readers would read differently is refused instead of
//! being guessed.

mod advice;
mod belonging;
mod build;
mod comment;
mod edit;
mod fault;
mod format;
mod node;
mod place;
mod scalar;
mod text;
mod token;
mod write;

pub use comment::Ignore;
pub use edit::{EditError, edit, remove_document};
pub use fault::{Fault, FaultKind, bounded};
pub use format::format;
pub use node::{Content, Entry, Node};
pub use place::{Position, Span};
pub use text::read_text;
pub use write::{Layout, quote, write};

/// What one file may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of a file in bytes.
    pub file_bytes: u64,
    /// The levels of lists and mappings.
    pub depth: usize,
    /// The values that aliases may add.
    pub alias_nodes: usize,
    /// The bytes of text that aliases may add: one alias of a long string is one value.
    pub alias_bytes: usize,
    /// The faults after which reading ends.
    pub faults: usize,
}

impl Limits {
    /// The limits of a group repository: 1 MiB, 64 levels; 50,000 values and 4 MiB by aliases; 1,000
    /// faults.
    pub const DEFAULT: Self = Self {
        file_bytes: 1 << 20,
        depth: 64,
        alias_nodes: 50_000,
        alias_bytes: 4 << 20,
        faults: 1_000,
    };
}

/// Everything that was found in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The documents, as far as they could be read.
    pub documents: Vec<Node>,
    /// What is wrong; a file with faults must not be used.
    pub faults: Vec<Fault>,
    /// The warnings that comments silence.
    pub ignores: Vec<Ignore>,
    /// The comments that stand where a value is expected, without a blank behind their `#`.
    pub in_place_of_values: Vec<(Span, String)>,
}

/// Reads the documents of a file.
///
/// Every fault that can be found is found; only a fault of the syntax ends the reading.
pub fn read(bytes: &[u8], limits: &Limits) -> Contents {
    read_counted(bytes, limits, &mut |_| Count::Continue)
}

/// Whether reading goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// It does.
    Continue,
    /// It ends here; what was read so far must not be used.
    Stop,
}

/// Reads the documents of a file, and has every value counted before it is kept.
pub fn read_counted(
    bytes: &[u8],
    limits: &Limits,
    count: &mut dyn FnMut(usize) -> Count,
) -> Contents {
    let text = match read_text(bytes, limits) {
        Ok(text) => text,
        Err(fault) => return Contents { faults: vec![fault], ..Contents::default() },
    };
    build::build(&text, limits, count)
}

#[cfg(test)]
mod tests;
