//! The orders of a list of nodes.

use std::str::FromStr;

/// What a list of nodes is sorted by; those that are equal in it stand by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeSortKey {
    /// The certname.
    #[default]
    Certname,
    /// When the node was seen last.
    LastSeen,
    /// When the node first got its answer; nodes without one stand last.
    Since,
    /// What came of the last classification; nodes without any stand last.
    State,
    /// The environment; nodes without one stand last.
    Environment,
}

/// Which end of a list comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortDirection {
    /// The least.
    #[default]
    Ascending,
    /// The greatest.
    Descending,
}

/// The order of a list of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeOrder {
    /// What it is sorted by.
    pub key: NodeSortKey,
    /// Which end comes first.
    pub direction: SortDirection,
}

/// A text is not an order of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected one of `certname`, `last-seen`, `since`, `state`, `environment`, with `-` before it for the other direction"
)]
pub struct UnknownNodeOrder;

impl FromStr for NodeOrder {
    type Err = UnknownNodeOrder;

    fn from_str(text: &str) -> Result<Self, UnknownNodeOrder> {
        let (word, direction) = match text.strip_prefix('-') {
            Some(word) => (word, SortDirection::Descending),
            None => (text, SortDirection::Ascending),
        };
        let key = match word {
            "certname" | "name" => NodeSortKey::Certname,
            "last-seen" => NodeSortKey::LastSeen,
            "since" => NodeSortKey::Since,
            "state" => NodeSortKey::State,
            "environment" => NodeSortKey::Environment,
            _ => return Err(UnknownNodeOrder),
        };
        Ok(Self { key, direction })
    }
}
