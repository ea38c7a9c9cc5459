//! What handlers hand over.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::input::DecisionInput;
use crate::classification::ClassificationError;
use crate::hierarchy::GroupIndex;
use crate::snapshot::Snapshot;

/// What a node got, and how that came.
#[derive(Clone, Debug)]
pub struct Decision {
    /// When.
    pub time: Timestamp,
    /// The path of the request.
    pub path: String,
    /// The name of the caller's token or certificate.
    pub requested_by: Option<String>,
    /// The id of the request, as in the access log.
    pub request_id: Option<String>,
    /// The certname.
    pub name: String,
    /// The snapshot that answered.
    pub snapshot: Arc<Snapshot>,
    /// What the node was classified by.
    pub input: DecisionInput,
    /// The groups that match, parents first, or why that is not known.
    pub groups: Result<Vec<GroupIndex>, ClassificationError>,
    /// The time from the snapshot to the groups.
    pub took: Duration,
}

impl Decision {
    /// Returns about how many bytes it takes, beside its snapshot.
    pub(super) fn size(&self) -> usize {
        let groups = self.groups.as_ref().map_or(0, |it| size_of_val(it.as_slice()));
        self.input.size() + self.path.len() + self.name.len() + groups + size_of::<Self>()
    }
}

/// What goes to the thread that writes.
#[derive(Debug)]
pub(super) enum QueueItem {
    Decision(Box<Decision>),
    /// Nothing follows.
    Stop,
}
