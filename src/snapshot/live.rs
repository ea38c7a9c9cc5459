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
    /// Returns a live snapshot whose cache is empty. It finds out what all rules mention, if that is not known: the
    /// first requests would wait for it otherwise.
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        snapshot.mentioned();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::{Estate, Hierarchy, root_group};
    use crate::model::{CommitId, Interpolation};

    #[test]
    fn what_rules_mention_is_known_before_the_first_request() {
        let estate = Estate {
            hierarchy: Hierarchy::build(root_group().into_iter().collect()).unwrap(),
            individuals: Arc::default(),
            environments: Arc::default(),
            catalogues: Arc::default(),
            interpolation: Interpolation::Off,
        };
        let commit = CommitId::from_bytes([1; 20]);
        let snapshot = Arc::new(Snapshot::new(commit, estate, Arc::default(), Vec::new()));
        assert!(snapshot.mentioned.get().is_none());
        assert!(LiveSnapshot::new(snapshot).snapshot().mentioned.get().is_some());
    }
}
