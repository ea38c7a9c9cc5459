//! Which nodes a file can concern.

use std::sync::Arc;

use crate::model::{Comparison, Condition, Group, Node, Path};
use crate::rule::evaluate;
use crate::validation::{FileKind, FileReading, GroupFile};

/// The nodes that what a file says can concern, so that a commit that adds, changes or removes the file may
/// change their answers.
///
/// Where the own rule of a group does not match, no descendant of it does either: neither its values nor its
/// place in the tree can concern the node.
#[derive(Clone, Debug, PartialEq)]
pub enum ConcernedNodes {
    /// All: a file with errors counts as one of those.
    All,
    /// None.
    Nothing,
    /// One.
    One(Box<str>),
    /// Those that a rule of the file matches, as far as its group alone can tell.
    Matching(Box<[Arc<Condition>]>),
}

impl ConcernedNodes {
    /// Returns the nodes that a file can concern.
    pub fn of(reading: &FileReading, kind: FileKind) -> Self {
        match kind {
            FileKind::Settings => Self::All,
            FileKind::Environment | FileKind::Tests => Self::Nothing,
            FileKind::Node => reading.node().map_or(Self::All, |it| Self::One(it.into())),
            FileKind::Groups => {
                let rule = |file: &GroupFile| file.group()?.rule.clone();
                let rules: Option<Box<[_]>> = reading.groups().iter().map(rule).collect();
                rules.filter(|it| !it.is_empty()).map_or(Self::All, Self::Matching)
            }
        }
    }

    /// Returns whether a node is among them. A rule that cannot be evaluated may match.
    pub fn contains(&self, node: &Node) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::One(name) => **name == *node.name,
            Self::Matching(rules) => rules.iter().any(|rule| may_match(rule, node)),
        }
    }

    /// Passes on the paths that decide which nodes these are.
    pub fn paths(&self, each: &mut impl FnMut(&Path)) {
        if let Self::Matching(rules) = self {
            for rule in rules {
                paths_of(rule, each);
            }
        }
    }

    /// Returns about how many bytes it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::All | Self::Nothing => 32,
            Self::One(name) => 32 + name.len(),
            Self::Matching(rules) => 32 + rules.iter().map(|it| bytes_of(it)).sum::<usize>(),
        }
    }
}

/// Returns whether a group may match a node, as far as it alone can tell; nothing is known of one without a rule.
pub fn may_be_in(group: &Group, node: &Node) -> bool {
    group.rule.as_ref().is_none_or(|rule| may_match(rule, node))
}

/// Returns whether a rule may match a node: also where it cannot be evaluated.
fn may_match(rule: &Condition, node: &Node) -> bool {
    evaluate(rule, node) != Ok(false)
}

/// Returns about how many bytes a rule takes, with its patterns compiled.
fn bytes_of(rule: &Condition) -> usize {
    match rule {
        Condition::And(terms) | Condition::Or(terms) => {
            64 + terms.iter().map(bytes_of).sum::<usize>()
        }
        Condition::Not(inner) => 64 + bytes_of(inner),
        Condition::Test(test) => match &test.comparison {
            Comparison::Finds(pattern) => 2_000 + 40 * pattern.as_str().len(),
            comparison => 200 + comparison.operand().len(),
        },
    }
}

/// Passes on the paths that a rule mentions.
pub fn paths_of(rule: &Condition, each: &mut impl FnMut(&Path)) {
    match rule {
        Condition::And(terms) | Condition::Or(terms) => {
            for term in terms {
                paths_of(term, each);
            }
        }
        Condition::Not(inner) => paths_of(inner, each),
        Condition::Test(test) => each(&test.path),
    }
}
