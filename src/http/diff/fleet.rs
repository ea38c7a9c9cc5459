//! The nodes that have checked in.

use super::super::check_ins::complete;
use super::super::node_lookup::has_stored_facts;
use super::super::server::MemoryReservation;
use super::rows::{FleetNode, RestrictedRow, RowBatch, UseRows};
use crate::mentioned::MentionedPaths;
use crate::store::{CheckIn, CheckIns, StoreError};

/// Passes on every node that has checked in. Blocking.
///
/// # Errors
///
/// Returns an error if the store cannot be read.
pub(super) fn read(
    check_ins: &CheckIns,
    paths: &MentionedPaths,
    each: UseRows<'_, RestrictedRow>,
) -> Result<(), StoreError> {
    let restrict = |CheckIn { node, .. }: CheckIn| {
        let kept = paths.keep(&node);
        if has_stored_facts(&node) { FleetNode::Known(kept) } else { FleetNode::Bare(kept) }
    };
    let mut batch = RowBatch::new(each);
    check_ins.for_each(&MemoryReservation::for_lists(), |listed| {
        batch.push(complete(check_ins, listed).map(restrict));
    })?;
    batch.flush();
    Ok(())
}
