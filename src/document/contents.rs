//! Everything that was found in a file.

use super::comment::Ignore;
use super::fault::Fault;
use super::node::Node;
use super::place::Span;

/// Everything that was found in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The documents, as far as they could be read.
    pub documents: Vec<Node>,
    /// What is wrong; a file with faults must not be used.
    pub faults: Vec<Fault>,
    /// Whether a fault ended the reading before the end of the file.
    pub is_cut_off: bool,
    /// The warnings that comments silence.
    pub ignores: Vec<Ignore>,
    /// The comments that stand where a value is expected, without a blank behind their `#`.
    pub in_place_of_values: Vec<(Span, String)>,
}
