//! What a finding depends on.

/// Which groups a finding in a group depends on: what they say, their places in the tree, and where
/// they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::validation) enum FindingScope {
    /// The group alone.
    Group,
    /// The group and its descendants, which may override what it sets.
    Descendants,
    /// The group and its ancestors, whose rules and values it inherits.
    Ancestors,
    /// Every group.
    Estate,
}
