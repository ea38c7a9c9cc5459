//! Which facts are put into values, and which groups have such values.

use std::sync::Arc;

use crate::classification::references_of_group;
use crate::hierarchy::{Estate, GroupIndex};
use crate::mentioned::MentionedPaths;
use crate::model::Interpolation;

/// The facts and trusted data that values mention.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueFacts {
    paths: Arc<MentionedPaths>,
    /// Whether the values of each group mention some, inherited ones too; empty if none do.
    of_groups: Box<[bool]>,
}

impl ValueFacts {
    pub(super) fn of(estate: &Estate) -> Self {
        if estate.interpolation == Interpolation::Off {
            return Self::default();
        }
        let hierarchy = &estate.hierarchy;
        let mut of_groups: Vec<bool> = Vec::with_capacity(hierarchy.len());
        // Parents come first.
        for (index, group) in hierarchy.indexes().zip(hierarchy.groups()) {
            let parent = hierarchy.parent(index);
            let mut mentions =
                parent.is_some_and(|it| of_groups.get(it.number()).copied().unwrap_or_default());
            references_of_group(group, &mut |_| mentions = true);
            of_groups.push(mentions);
        }
        Self { paths: MentionedPaths::in_values(estate).into(), of_groups: of_groups.into() }
    }

    /// Returns the same with the paths of another commit where they are equal.
    pub(super) fn sharing(self, before: &Self) -> Self {
        if self.paths != before.paths {
            return self;
        }
        Self { paths: Arc::clone(&before.paths), ..self }
    }

    /// Returns whether the paths are those of another commit.
    pub(super) fn shares_paths_of(&self, before: &Self) -> bool {
        Arc::ptr_eq(&self.paths, &before.paths)
    }

    /// Returns the paths that values mention.
    pub(super) fn paths(&self) -> &MentionedPaths {
        &self.paths
    }

    /// Returns whether the values of one of the groups mention a fact, inherited ones too.
    pub(super) fn are_in_values_of(&self, groups: &[GroupIndex]) -> bool {
        let is_one = |it: &GroupIndex| self.of_groups.get(it.number()).copied().unwrap_or_default();
        !self.of_groups.is_empty() && groups.iter().any(is_one)
    }
}
