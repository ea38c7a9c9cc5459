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
mod compiled;
mod guard;
mod literals;
mod matcher;
mod numbers;
mod patch;
mod renumber;
mod text_table;
mod texts;

use std::sync::Arc;

use super::paths::{PathValue, Paths, ResolvedPaths};
use crate::classification::{ClassificationError, matches};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::mentioned::MentionedPaths;
use crate::model::Node;
use crate::rule::EvaluationError;

use matcher::{Matcher, error};

pub use compiled::Index;

impl Index {
    /// Returns what a node has where rules look.
    pub fn resolve<'n>(&self, node: &'n Node) -> ResolvedPaths<'n> {
        self.paths.resolve(node)
    }

    /// Returns the index for an estate whose values mention some facts: they are read of a request, too.
    #[must_use]
    pub(super) fn with_values(self, mentioned: &MentionedPaths) -> Self {
        let values = mentioned.outermost_values();
        if *values == **self.paths.values() {
            return self;
        }
        Self { paths: Arc::new(self.paths.with_values(values.into())), ..self }
    }

    /// Returns whether this stands beside the compiled rules of another index.
    pub(super) fn shares_base_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    /// Returns whether this has the paths of another index.
    pub(super) fn shares_paths_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.paths, &other.paths)
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Returns whether a node brings the certname that rules look for, or none looks for it.
    pub fn knows_certname(&self, resolved: &ResolvedPaths<'_>) -> bool {
        let certname = self.paths.certname();
        certname.is_none_or(|it| !matches!(resolved.get(it), PathValue::Missing))
    }

    /// Returns the groups that match a node, parents first.
    ///
    /// # Errors
    ///
    /// Returns [`ClassificationError`] if it cannot be found out whether a group matches.
    pub fn matching(
        &self,
        hierarchy: &Hierarchy,
        node: &Node,
    ) -> Result<Vec<GroupIndex>, ClassificationError> {
        let resolved = self.resolve(node);
        // Guards take all values for known.
        if resolved.is_withheld {
            matches(hierarchy, node)
        } else {
            self.matches(hierarchy, &resolved)
        }
    }

    /// Returns the groups that match what is seen of a node, parents first.
    ///
    /// # Errors
    ///
    /// Returns [`ClassificationError`] if it cannot be found out whether a group matches, or if the node may
    /// have a value that was not stored: [`Self::matching`] finds out whether that matters.
    pub fn matches(
        &self,
        hierarchy: &Hierarchy,
        resolved: &ResolvedPaths<'_>,
    ) -> Result<Vec<GroupIndex>, ClassificationError> {
        if resolved.is_withheld {
            let cause = EvaluationError::Withheld { path: "a value that rules read".into() };
            return Err(ClassificationError::of(hierarchy.group(hierarchy.root()), cause));
        }
        let found = Matcher::new(self, resolved).matches(hierarchy);
        found.map_err(|failure| error(hierarchy, failure))
    }
}
