//! The names of groups that tests expect.

use std::collections::HashMap;

use crate::hierarchy::{GroupIndex, Hierarchy};

/// The groups of each name.
#[derive(Default)]
pub(super) struct GroupNames<'h>(HashMap<&'h str, Vec<GroupIndex>>);

impl<'h> GroupNames<'h> {
    pub(super) fn of(hierarchy: &'h Hierarchy) -> Self {
        let mut names: HashMap<&str, Vec<GroupIndex>> = HashMap::new();
        for index in hierarchy.indexes() {
            names.entry(hierarchy.group(index).name.as_str()).or_default().push(index);
        }
        Self(names)
    }

    pub(super) fn find(&self, name: &str) -> &[GroupIndex] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}
