//! What a search for conflicts takes, and what comes of it.

use super::alarm::Alarm;
use super::setting::Setting;
use crate::hierarchy::GroupIndex;

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
