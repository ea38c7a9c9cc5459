//! Which groups match, without asking each of them.
//!
//! A group has a *guard* if there are texts of which a node must have at least one for the group's
//! rule to hold: a value that it must equal, or a literal that must be in it for a pattern to be
//! found. A group is asked
//!
//! - when a text of its guard is there, if that is rarer than what its ancestors demand;
//! - else when its nearest ancestor with a rule has matched.
//!
//! What is not asked is false for certain, never merely unlikely and never unknown: so the answer,
//! and the error where there is one, are those of [`matches`](crate::classification::matches).

mod build;
mod compile;
mod guard;
mod patch;
mod run;
mod texts;

use std::sync::Arc;

use aho_corasick::AhoCorasick;

use super::lists::Lists;
use super::paths::{PathId, Paths, ResolvedPaths};
use crate::classification::ClassificationError;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Comparison, Node};
use texts::{TextId, Texts};

/// The place of a group, as the index writes it.
type Place = u32;

/// No group, or no text.
const NONE: u32 = u32::MAX;

/// The rules of all groups, compiled together.
#[derive(Clone, Debug)]
pub struct Index {
    paths: Arc<Paths>,
    base: Arc<Base>,
    patch: Option<Arc<Patch>>,
}

/// The rules of all groups of a commit.
#[derive(Debug)]
struct Base {
    /// What is known of each path.
    about: Box<[PathInfo]>,
    finders: Box<[Finder]>,
    texts: Texts,
    /// The groups that ask for a text.
    asked_by: Lists,
    members: Box<[Member]>,
    /// The groups to ask when a group has matched; the last list is of those to ask always.
    dependents: Lists,
    program: Program,
}

/// The rules of groups that later commits have changed. These groups are asked about every node
/// whom their nearest ancestor with a rule matches.
#[derive(Debug)]
struct Patch {
    /// The groups in order, and where their code starts.
    starts: Box<[(Place, u32)]>,
    program: Program,
}

/// Rules as code.
#[derive(Debug)]
struct Program {
    code: Box<[Op]>,
    /// The members of each set of texts, in order.
    sets: Box<[TextId]>,
    /// Each distinct comparison that is more than being equal to a text.
    tests: Box<[Test]>,
}

/// What rules ask of a path.
#[derive(Clone, Debug, Default)]
struct PathInfo {
    /// Whether its text is compared with others.
    is_compared: bool,
    /// Whether its elements are.
    is_list: bool,
}

/// Finds the literals of patterns in the values of paths that mostly have the same value, as the
/// name of a node and that of its certificate have: then it is searched once.
#[derive(Debug)]
struct Finder {
    /// None if there are too many of them; then they are never looked for.
    literals: Option<AhoCorasick>,
    paths: Box<[Searched]>,
}

/// Who asks for literals at a path.
#[derive(Debug)]
struct Searched {
    path: PathId,
    /// The groups that ask for a literal.
    asked_by: Lists,
    /// The groups to ask where a value is not one line.
    odd: Box<[Place]>,
    /// The groups to ask where it is not one line in ASCII.
    not_ascii: Box<[Place]>,
    /// The groups to ask where it is long.
    long: Box<[Place]>,
}

/// A group.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The nearest ancestor with a rule.
    above: Place,
    /// The first place behind the descendants.
    end: Place,
    /// Where its code starts.
    start: u32,
}

/// A part of a rule. Its parts follow it.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// All parts up to the end hold.
    And { end: u32 },
    /// A part up to the end holds.
    Or { end: u32 },
    /// The part that follows does not hold.
    Not,
    /// It never holds.
    Never,
    /// The value at a path has a text.
    Is { path: PathId, text: TextId },
    /// The value at a path has one of several texts.
    OneOf { path: PathId, first: u32, end: u32 },
    /// Another comparison, by its number.
    Test(u32),
}

/// A comparison.
#[derive(Clone, Debug)]
struct Test {
    path: PathId,
    comparison: Comparison,
    /// Whether more than one rule asks for it.
    is_shared: bool,
}

impl Index {
    /// Returns what a node has where rules look.
    pub fn see<'n>(&self, node: &'n Node) -> ResolvedPaths<'n> {
        self.paths.see(node)
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Returns the groups that match what is seen of a node, parents first.
    ///
    /// # Errors
    ///
    /// Returns [`ClassificationError`] if it cannot be found out whether a group matches.
    pub fn matches(
        &self,
        hierarchy: &Hierarchy,
        sight: &ResolvedPaths<'_>,
    ) -> Result<Vec<GroupIndex>, ClassificationError> {
        let found = run::Run::new(self, sight).matches(hierarchy);
        found.map_err(|failure| run::error(hierarchy, failure))
    }
}
