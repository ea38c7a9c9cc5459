//! Reads the nodes of a fleet from the store.

use super::super::check_ins::complete;
use super::super::node_lookup::has_stored_facts;
use super::super::server::MemoryReservation;
use super::rows::{FleetNode, FleetRow, RestrictedRow, RowBatch, UseRows};
use crate::facts::RowRoom as _;
use crate::mentioned::MentionedPaths;
use crate::model::{Node, is_left_out};
use crate::store::{CheckIn, CheckIns, ScanExtent, ScannedNode, StoreError, Stored};

/// A node on its way from the store.
#[derive(Debug)]
pub(in crate::http) enum ReadNode {
    /// It is decoded where it is examined.
    Scanned(ScannedNode),
    /// It was read alone.
    Restricted(RestrictedRow),
}

impl FleetRow for ReadNode {
    fn decode(self, paths: &MentionedPaths) -> Result<Option<FleetNode>, StoreError> {
        match self {
            Self::Restricted(row) => row.map(Some),
            Self::Scanned(scanned) => {
                let has_facts = scanned.has_facts;
                let node = scanned.node(paths)?;
                Ok(node.map(|it| {
                    let has_facts = has_facts && !is_left_out(&it.fact);
                    fleet_node(it, has_facts)
                }))
            }
        }
    }
}

fn fleet_node(node: Node, has_facts: bool) -> FleetNode {
    if has_facts { FleetNode::Known(node) } else { FleetNode::Bare(node) }
}

/// Passes on nodes that have checked in; all of them while some may be incomplete. Blocking.
///
/// # Errors
///
/// Returns an error if the store cannot be read.
pub(in crate::http) fn read(
    check_ins: &CheckIns,
    paths: &MentionedPaths,
    extent: ScanExtent,
    each: UseRows<'_, ReadNode>,
) -> Result<(), StoreError> {
    let room = MemoryReservation::for_lists();
    let restrict = |CheckIn { node, .. }: CheckIn| {
        let kept = paths.keep(&node);
        fleet_node(kept, has_stored_facts(&node))
    };
    if check_ins.may_be_incomplete() {
        // Which nodes are less than they were is told by all that is stored of them.
        let mut pass = |rows: Vec<RestrictedRow>| {
            each(rows.into_iter().map(ReadNode::Restricted).collect());
        };
        let mut batch = RowBatch::new(&mut pass);
        check_ins.for_each(&room, |listed| {
            batch.push(complete(check_ins, listed).map(restrict));
        })?;
        batch.flush();
        return Ok(());
    }
    check_ins.scan(paths, extent, |nodes| {
        let mut rows = Vec::with_capacity(nodes.len());
        for node in nodes {
            if node.large().is_none() {
                rows.push(ReadNode::Scanned(node));
                continue;
            }
            let read = check_ins.get_within(&node.name, &room).and_then(Stored::whole);
            // None if it was forgotten meanwhile.
            if let Some(read) = read.transpose() {
                rows.push(ReadNode::Restricted(read.map(restrict)));
            }
            // What rules mention of it may be large, too.
            each(std::mem::take(&mut rows));
            room.release();
        }
        each(rows);
    })
}
