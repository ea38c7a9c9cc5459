//! Groups that can match one node and give it different values, found without any node.
//!
//! Two groups that match a node conflict where neither is above the other, nothing below them
//! matches, and their values differ, set or inherited. For every two such groups the solver looks
//! for a node that both match and that nothing below them does. What is reported was seen: that
//! node was classified, and the conflict is between these two.

mod alarm;
mod cause;
mod conflicting_pairs;
mod evidence;
mod limits;
mod meeting;
mod outcome;
mod partners;
mod search;
mod setting;
mod subject;

use crate::hierarchy::Estate;
use crate::rule::Solver;
use limits::LIMITS;

pub use alarm::{Alarm, Differing, Overlap, Pair};
pub use evidence::{Evidence, Rank};
pub use outcome::{Acknowledged, Overlaps};
pub use setting::Setting;

/// Finds the groups of an estate that can conflict.
pub fn overlaps<'e>(
    estate: &'e Estate,
    evidence: &Evidence,
    acknowledged: Acknowledged<'_>,
    solver: Solver,
) -> Overlaps<'e> {
    search::search(estate, evidence, acknowledged, solver, LIMITS)
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
