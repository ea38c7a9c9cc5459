//! What can be wrong with groups that are valid by themselves.

/// A fault among groups; each number is a place in the list of groups that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HierarchyFault {
    /// Two groups have one id.
    DuplicateId {
        /// The group that comes first.
        first: usize,
        /// The other group.
        second: usize,
    },
    /// Two groups of one environment have one name.
    DuplicateName {
        /// The group that comes first.
        first: usize,
        /// The other group.
        second: usize,
    },
    /// The parent of a group does not exist.
    MissingParent {
        /// The group.
        group: usize,
    },
    /// Each of the groups is the parent of the one before it, and the first that of the last.
    Cycle {
        /// The groups; the first is the one that comes first in the list.
        groups: Vec<usize>,
    },
    /// The root group has another parent, or a rule other than the one it must have; or another group has its name.
    Root {
        /// The root group, or the one that has its name.
        group: usize,
        /// What is wrong with it.
        fault: RootFault,
    },
}

/// What can be wrong with the root group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootFault {
    /// It has another parent.
    #[error("the root group is its own parent")]
    Parent,
    /// It has a rule other than the one that matches every node.
    #[error("the rule of the root group cannot be changed")]
    Rule,
    /// A group with another id has its name, where no group is written as the root group.
    #[error("`All Nodes` in `production` is the name of the root group")]
    Name,
}
