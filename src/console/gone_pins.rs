//! Pins to nodes that have not checked in.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::group_link::GroupLink;
use crate::hierarchy::Hierarchy;
use crate::http::{InProcessApi, InProcessError};
use crate::model::{CommitId, Group};
use crate::rule::parts;
use crate::snapshot::Snapshot;
use crate::store::FleetVersion;

/// How many items of each kind a page lists.
pub(super) const LISTED: usize = 50;

/// The pins to nodes that the store does not know.
#[derive(Debug, Default)]
pub(super) struct GonePins {
    /// The first in the order of groups.
    pub(super) first: Vec<GonePin>,
    /// How many there are.
    pub(super) total: usize,
}

/// A pinned node, and the group that pins it.
#[derive(Debug)]
pub(super) struct GonePin {
    pub(super) node: Arc<str>,
    pub(super) group: GroupLink,
}

/// What was found last, which is true as long as it is about the same commit and the same nodes: a fleet has tens of
/// thousands of pins, each of which is looked up.
#[derive(Debug, Default)]
pub(super) struct PinMemory(Mutex<Option<Remembered>>);

#[derive(Clone, Debug)]
struct Remembered {
    commit: CommitId,
    fleet: FleetVersion,
    pins: Arc<GonePins>,
}

impl PinMemory {
    /// Returns the pins of a snapshot to nodes that are not known.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub(super) async fn gone(
        &self,
        api: &InProcessApi,
        snapshot: &Snapshot,
    ) -> Result<Arc<GonePins>, InProcessError> {
        let last = self.0.lock().clone();
        if let Some(last) = last.filter(|it| it.commit == snapshot.commit)
            && last.fleet == api.fleet_version().await?
        {
            return Ok(last.pins);
        }
        let hierarchy = &snapshot.estate.hierarchy;
        let names: BTreeSet<&Arc<str>> = pins(hierarchy).map(|(node, _)| node).collect();
        let (unknown, fleet) = api.unknown_nodes(names.into_iter().cloned().collect()).await?;
        let pins = Arc::new(GonePins::among(hierarchy, &unknown));
        let commit = snapshot.commit;
        *self.0.lock() = Some(Remembered { commit, fleet, pins: Arc::clone(&pins) });
        Ok(pins)
    }
}

impl GonePins {
    fn among(hierarchy: &Hierarchy, unknown: &BTreeSet<String>) -> Self {
        let mut gone = Self { first: Vec::new(), total: 0 };
        for (node, group) in pins(hierarchy) {
            if unknown.contains(node.as_ref()) {
                if gone.total < LISTED {
                    let (node, group) = (Arc::clone(node), GroupLink::to(group));
                    gone.first.push(GonePin { node, group });
                }
                gone.total += 1;
            }
        }
        gone
    }

    /// Returns how many are not among the first.
    pub(super) fn further(&self) -> usize {
        self.total.saturating_sub(self.first.len())
    }
}

/// Returns every pin: the node, and the group that pins it.
fn pins(hierarchy: &Hierarchy) -> impl Iterator<Item = (&Arc<str>, &Group)> {
    hierarchy.groups().flat_map(|group| {
        let nodes = group.rule.as_deref().map(|it| parts(it).1).unwrap_or_default();
        nodes.into_iter().map(move |node| (node, group))
    })
}
