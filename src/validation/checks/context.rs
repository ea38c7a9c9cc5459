//! What groups are checked against.

use std::sync::Arc;

use super::super::catalogue::Catalogues;
use super::super::layout::ValidationPolicy;
use super::super::places::Places;
use super::super::search::Search;
use crate::hierarchy::Hierarchy;
use crate::java_regex::Automata;
use crate::model::{Interpolation, Meter};

/// What groups are checked against.
pub(in crate::validation) struct CheckContext<'r> {
    pub(in crate::validation) hierarchy: &'r Hierarchy,
    pub(in crate::validation) catalogues: &'r Catalogues,
    pub(in crate::validation) places: Places<'r>,
    pub(in crate::validation) policy: ValidationPolicy,
    pub(in crate::validation) interpolation: Interpolation,
    pub(in crate::validation) search: Search,
    pub(in crate::validation) automata: &'r Arc<Automata>,
    pub(in crate::validation) meter: &'r Meter,
}
