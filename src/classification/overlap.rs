//! Groups that can match one node and give it different values, found without any node.
//!
//! Two groups that match a node conflict where neither is above the other, nothing below them
//! matches, and their values differ, set or inherited. For every two such groups the solver looks
//! for a node that both match and that nothing below them does. What is reported was seen: that
//! node was classified, and the conflict is between these two.

mod alarm;
mod cause;
mod evidence;
mod meeting;
mod search;

use crate::hierarchy::{Estate, GroupIndex};
use crate::model::{ClassName, Key, VariableName};

pub use alarm::{Alarm, Differing, Overlap, Pair};
pub use evidence::{Evidence, Rank};

/// Something that a group gives to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting<'e> {
    /// Its environment.
    Environment,
    /// A parameter of a class.
    Parameter(&'e ClassName, &'e Key),
    /// A variable.
    Variable(&'e VariableName),
    /// An item of config data.
    ConfigData(&'e ClassName, &'e Key),
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Overlaps<'e> {
    /// One alarm a cause, what known nodes show first.
    pub alarms: Vec<Alarm<'e>>,
    /// The group at which the search ended, if there was too much to search.
    pub ended_at: Option<GroupIndex>,
    /// How many pairs the solver could not decide.
    pub undecided: usize,
    /// How many steps the search took.
    pub steps: u64,
}

/// Which values are left out of the findings: those of a group that another's differ from.
pub type Acknowledged<'a> = &'a dyn Fn(GroupIndex, Setting<'_>) -> bool;

/// How much is searched.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Steps of all kinds; the largest search takes some seconds on a small machine.
    steps: u64,
    /// Pairs that conflict, of all causes.
    pairs: usize,
    /// Pairs that conflict, of one cause.
    pairs_of_cause: usize,
    /// Pairs that conflict for the values of the same two groups.
    pairs_of_values: usize,
}

const LIMITS: Limits =
    Limits { steps: 100_000_000, pairs: 10_000, pairs_of_cause: 300, pairs_of_values: 12 };

/// Finds the groups of an estate that can conflict.
pub fn overlaps<'e>(
    estate: &'e Estate,
    evidence: &Evidence,
    acknowledged: Acknowledged<'_>,
) -> Overlaps<'e> {
    search::search(estate, evidence, acknowledged, LIMITS)
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
