//! The fault that ends the reading of a rule.

use std::ops::Range;

use super::super::fault::{RuleFault, RuleFaultKind};

/// The fault that ends the reading.
pub(super) type BoxedFault = Box<RuleFault>;

#[expect(
    clippy::unnecessary_box_returns,
    reason = "the results of the descent carry it on every level"
)]
pub(super) fn fault(
    characters: Range<usize>,
    message: impl Into<String>,
    help: Option<&str>,
) -> BoxedFault {
    Box::new(RuleFault {
        kind: RuleFaultKind::Grammar,
        element: Vec::new(),
        characters: Some(characters),
        message: message.into(),
        help: help.map(str::to_owned),
    })
}
