//! A snapshot that is live, with what it has answered.

use std::sync::Arc;

use super::response_cache::ResponseCache;
use super::{AnsweredNode, NoDocument, Snapshot};
use crate::classification::Version;
use crate::hierarchy::GroupIndex;

/// A snapshot that answers agents, and the cache of the responses that it has written.
///
/// The cache goes with the last request that uses it, while the snapshot may stay built.
#[derive(Debug)]
pub struct LiveSnapshot {
    snapshot: Arc<Snapshot>,
    response_cache: ResponseCache,
}

impl LiveSnapshot {
    /// Returns a live snapshot whose cache is empty.
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot, response_cache: ResponseCache::default() }
    }

    /// Returns the snapshot.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Writes the classified document of a node that some groups match, parents first. It is the one
    /// of [`Snapshot::classified`].
    ///
    /// # Errors
    ///
    /// Returns why there is none.
    pub fn classified(
        &self,
        node: &AnsweredNode<'_>,
        groups: &[GroupIndex],
        version: Version,
    ) -> Result<Vec<u8>, NoDocument<'_>> {
        self.snapshot.classified_with(Some(&self.response_cache), node, groups, version)
    }
}
