//! The abstract syntax of rules.

use std::fmt;
use std::sync::Arc;

use super::Decimal;
use crate::java_regex::Pattern;

/// A boolean expression over a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// All of at least one condition hold.
    And(Vec<Self>),
    /// At least one of at least one condition holds.
    Or(Vec<Self>),
    /// The condition does not hold.
    Not(Box<Self>),
    /// A value of the node compares as wanted.
    Test(Test),
}

impl Condition {
    /// Returns whether a term compares a fact.
    pub fn reads_facts(&self) -> bool {
        match self {
            Self::And(terms) | Self::Or(terms) => terms.iter().any(Self::reads_facts),
            Self::Not(inner) => inner.reads_facts(),
            Self::Test(test) => test.path.is_of_fact(),
        }
    }

    /// Returns how many comparisons it has.
    pub fn size(&self) -> u64 {
        match self {
            Self::And(terms) | Self::Or(terms) => terms.iter().map(Self::size).sum(),
            Self::Not(inner) => inner.size(),
            Self::Test(_) => 1,
        }
    }
}

/// A comparison of one value of the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Where the value is.
    pub path: Path,
    /// What it is compared with, and how.
    pub comparison: Comparison,
}

/// An operator with its operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// `=`: the text is the same.
    Equals(Arc<str>),
    /// `~`: a Java regular expression is found in the string.
    Finds(Pattern),
    /// `> >= < <=`: the number stands in an order to the operand. It is rarer than other comparisons, whose size is
    /// that of most rules.
    Number(Arc<NumberComparison>),
    /// `<:`: the array has an element with this text.
    Contains(Arc<str>),
}

/// A comparison of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberComparison {
    /// The order wanted.
    pub order: Order,
    /// The operand as written.
    pub operand: Box<str>,
    /// The operand as a number; `None` never holds.
    pub number: Option<Decimal>,
}

/// A numeric order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `<`
    Less,
    /// `<=`
    AtMost,
}

impl Comparison {
    /// Returns the operator as the array form writes it.
    pub fn operator(&self) -> &'static str {
        match self {
            Self::Equals(_) => "=",
            Self::Finds(_) => "~",
            Self::Number(comparison) => match comparison.order {
                Order::Greater => ">",
                Order::AtLeast => ">=",
                Order::Less => "<",
                Order::AtMost => "<=",
            },
            Self::Contains(_) => "<:",
        }
    }

    /// Returns the order and the number that this compares with; `None` if it is another comparison, or its operand is
    /// not a number.
    pub fn number(&self) -> Option<(Order, &Decimal)> {
        let Self::Number(comparison) = self else { return None };
        Some((comparison.order, comparison.number.as_ref()?))
    }

    /// Returns whether this never holds: its operand should be a number and is none.
    pub fn lacks_number(&self) -> bool {
        matches!(self, Self::Number(comparison) if comparison.number.is_none())
    }

    /// Returns the operand as written.
    pub fn operand(&self) -> &str {
        match self {
            Self::Equals(text) | Self::Contains(text) => text,
            Self::Finds(pattern) => pattern.as_str(),
            Self::Number(comparison) => &comparison.operand,
        }
    }
}

/// Where in a node a value is.
///
/// The form it was written in is kept, since the API shows rules as they were written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// The bare string `name`: the certname.
    Name,
    /// Any other bare string; nothing is ever there.
    Bare(Arc<str>),
    /// An array; the first segment is `fact`, `facts`, `trusted` or `name`.
    Segments(Arc<[Segment]>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// The value of a key.
    Key(Arc<str>),
    /// An element of an array, from 0.
    Index(u64),
}

impl Path {
    /// Returns whether the path leads to a fact.
    pub fn is_of_fact(&self) -> bool {
        let Self::Segments(segments) = self else { return false };
        matches!(segments.first(), Some(Segment::Key(root)) if matches!(root.as_ref(), "fact" | "facts"))
    }

    /// Returns whether the console's notation has a form for the path.
    ///
    /// It has none for a bare string other than `name`, for `["fact"]` alone, for an index right
    /// behind `fact`, and for anything behind `name`. No node has a value that compares there.
    pub(crate) fn has_console_form(&self) -> bool {
        let root = |segment: &Segment, names: &[&str]| matches!(segment, Segment::Key(root) if names.contains(&root.as_ref()));
        match self {
            Self::Name => true,
            Self::Bare(_) => false,
            Self::Segments(segments) => match segments.as_ref() {
                [only] => root(only, &["name", "trusted"]),
                [first, second, ..] => {
                    root(first, &["trusted"])
                        || (root(first, &["fact", "facts"]) && matches!(second, Segment::Key(_)))
                }
                [] => false,
            },
        }
    }
}

impl fmt::Display for Path {
    /// Writes the path as the console does: `os.release.major`, `processors.models[0]`,
    /// `trusted.extensions."1.3.6.1"`; one that the console cannot write, in the array form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("name"),
            Self::Bare(text) => write!(f, "{text:?}"),
            Self::Segments(segments) if !self.has_console_form() => {
                f.write_str("[")?;
                for (at, segment) in segments.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    match segment {
                        Segment::Index(index) => write!(f, "{index}")?,
                        Segment::Key(key) => write!(f, "{key:?}")?,
                    }
                }
                f.write_str("]")
            }
            Self::Segments(segments) => {
                let facts = self.is_of_fact();
                let shadowed = matches!(segments.get(1), Some(Segment::Key(key)) if matches!(key.as_ref(), "fact" | "facts" | "trusted" | "name"));
                let skip = usize::from(facts && segments.len() > 1 && !shadowed);
                segments.iter().skip(skip).enumerate().try_for_each(|(at, segment)| match segment {
                    Segment::Index(index) => write!(f, "[{index}]"),
                    Segment::Key(key) => {
                        if at > 0 {
                            f.write_str(".")?;
                        }
                        if is_bare_segment(key) { f.write_str(key) } else { write_quoted(f, key) }
                    }
                })
            }
        }
    }
}

/// Returns whether the console's notation writes a path segment without quotes.
pub(crate) fn is_bare_segment(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let keyword = ["and", "or", "not"].iter().any(|word| text.eq_ignore_ascii_case(word));
    !text.is_empty() && text.bytes().all(word) && !keyword
}

/// Writes text in the console's double quotes: only `"` and `\` are escaped.
pub(crate) fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    let mut written = 0;
    for (at, _) in text.match_indices(['"', '\\']) {
        f.write_str(text.get(written..at).unwrap_or_default())?;
        f.write_str("\\")?;
        written = at;
    }
    f.write_str(text.get(written..).unwrap_or_default())?;
    f.write_str("\"")
}
