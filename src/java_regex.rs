//! Java 17 regular expressions: the only place that knows a regex crate.
//!
//! A pattern is read by a parser of Java's own syntax into a tree of code-point sets, in which all
//! flags, properties and case folding are resolved. Two matchers run it: the `regex` crate, in
//! linear time, where the meaning can be kept, and a backtracker of our own that remembers what
//! has failed for everything else, under a budget of steps.

mod ast;
mod backtrack;
mod effort;
mod error;
mod example;
mod fold;
mod glob;
mod ledger;
mod one_pass;
mod parse;
mod pattern;
mod postgres;
mod program;
mod required;
mod set;
mod suspicion;
mod translate;

pub use effort::steps_of_thread;
pub use error::{Overrun, PatternError};
pub use example::{Automata, Ends, Example, Examples, MOST_PATTERNS, WantedText};
pub use glob::from_glob;
pub use one_pass::OnePass;
pub use pattern::Pattern;
pub use postgres::postgres_literal;
pub use required::{KnownSubjects, SHORT, SubjectKind};
pub use suspicion::suspicions;

#[cfg(test)]
mod tests;
