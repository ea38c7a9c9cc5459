//! The rules of all groups, compiled together.

use std::sync::Arc;

use super::super::lists::{NumberLists, PrefixedLists};
use super::super::paths::{PathId, Paths};
use super::literals::LiteralFinder;
use super::numbers::GroupNumber;
use super::text_table::{TextPlace, TextTable};
use crate::model::Comparison;

/// The rules of all groups, compiled together.
#[derive(Clone, Debug)]
pub struct Index {
    pub(super) paths: Arc<Paths>,
    pub(super) base: Arc<CompiledRules>,
    pub(super) patch: Option<Arc<Patch>>,
}

/// The rules of all groups of a commit.
#[derive(Debug)]
pub(super) struct CompiledRules {
    /// What is known of each path.
    pub(super) path_info: Box<[PathInfo]>,
    pub(super) searches: Box<[LiteralSearch]>,
    pub(super) texts: TextTable,
    /// Where the code of each group starts, with [`Op::Group`].
    pub(super) starts: Box<[u32]>,
    /// The groups to ask when a group has matched.
    pub(super) dependents: PrefixedLists,
    /// Where those are that are always asked.
    pub(super) always: u32,
    pub(super) program: RuleProgram,
    /// How many groups have come since all rules were compiled, or got a rule, or lost one: their code, and
    /// that of groups that are gone, takes room that is never given back.
    pub(super) added: u32,
}

/// The rules of groups that later commits have changed. These groups are asked about every node
/// whom their nearest ancestor with a rule matches.
#[derive(Debug)]
pub(super) struct Patch {
    /// The groups in order, and where their code starts.
    pub(super) starts: Box<[(GroupNumber, u32)]>,
    pub(super) program: RuleProgram,
}

/// Rules as code.
#[derive(Debug)]
pub(super) struct RuleProgram {
    pub(super) code: Box<[Op]>,
    /// The members of each set of texts, in order.
    pub(super) sets: Arc<[TextPlace]>,
    /// Each distinct comparison that is more than being equal to a text.
    pub(super) tests: Arc<[CompiledTest]>,
    /// Patterns as [`OnePass`] code, each behind its length.
    ///
    /// [`OnePass`]: crate::java_regex::OnePass
    pub(super) patterns: Arc<[u8]>,
}

/// What rules ask of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathInfo {
    /// Whether its text is compared with others.
    pub(super) is_compared: bool,
    /// Whether its elements are.
    pub(super) is_list: bool,
}

/// Finds the literals of patterns in the values of paths that mostly have the same value, as the
/// name of a node and that of its certificate have: then it is searched once.
#[derive(Debug)]
pub(super) struct LiteralSearch {
    /// None if there are too many of them; then they are never looked for.
    pub(super) literals: Option<Arc<LiteralFinder>>,
    pub(super) paths: Box<[Searched]>,
}

/// Who asks for literals at a path.
#[derive(Debug)]
pub(super) struct Searched {
    pub(super) path: PathId,
    /// The groups that ask for a literal.
    pub(super) asked_by: NumberLists,
    /// The groups to ask where a value is not one line.
    pub(super) odd: Box<[GroupNumber]>,
    /// The groups to ask where it is not one line in ASCII.
    pub(super) not_ascii: Box<[GroupNumber]>,
    /// The groups to ask where it is long.
    pub(super) long: Box<[GroupNumber]>,
}

/// A group, as it is compiled.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupEntry {
    /// The nearest ancestor with a rule.
    pub(super) above: GroupNumber,
    /// Where its rule starts, if it has one.
    pub(super) start: u32,
}

/// A part of a rule. Its parts follow it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// The rule of a group follows: its nearest ancestor with a rule, the first place behind its descendants, and
    /// where the groups are that are asked when it has matched. They lie beside the rule since they are read with it.
    Group { above: GroupNumber, end: GroupNumber, dependents: u32 },
    /// All parts up to the end hold.
    And { end: u32 },
    /// A part up to the end holds.
    Or { end: u32 },
    /// The part that follows does not hold.
    Not,
    /// It never holds.
    Never,
    /// The value at a path has a text.
    Is { path: PathId, text: TextPlace },
    /// The value at a path has one of several texts.
    OneOf { path: PathId, first: u32, end: u32 },
    /// The list at a path has an element; the place of a text tells the path.
    Has { element: TextPlace },
    /// Another comparison, by its number.
    Test(u32),
    /// A comparison by its number, and its pattern as code, which lies beside that of others.
    Finds { path: PathId, test: u32, pattern: u32 },
}

/// A comparison.
#[derive(Clone, Debug)]
pub(super) struct CompiledTest {
    pub(super) path: PathId,
    pub(super) comparison: Comparison,
    /// Whether more than one rule asks for it.
    pub(super) is_shared: bool,
}
