//! What can be wrong with a rule.

use std::ops::Range;

/// A fault in a rule as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    /// Whether the rule or a pattern in it is at fault.
    pub kind: RuleFaultKind,
    /// The way to the faulty element of the array form: an index for each level; empty for the
    /// rule as a whole, and always for a rule in the console's notation.
    pub element: Vec<usize>,
    /// The faulty characters within the text of the element, counted from 0; `None` if the whole
    /// element is at fault.
    pub characters: Option<Range<usize>>,
    /// One line, lowercase, without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// What a fault in a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleFaultKind {
    /// The rule does not follow the grammar.
    Grammar,
    /// The operand of `~` is not a pattern.
    Pattern,
    /// A path of the rule leads deeper than facts are read.
    Depth,
    /// The rule has more comparisons than are read.
    Size,
}
