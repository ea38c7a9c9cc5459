//! What a finding depends on.

/// What a finding in a group depends on beside names, environments and parents, which stay the same
/// wherever not all groups are checked again.
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
