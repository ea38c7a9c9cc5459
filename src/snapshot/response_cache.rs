//! Responses from behind the name on: nodes that the same groups match get the same.
//!
//! Only a live snapshot has one: one or two are live, while many are kept built.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashMap;

use super::rendered_tail::RenderedTail;
use crate::classification::Version;
use crate::hierarchy::GroupIndex;

/// How many bytes are kept; what comes then is written again for each request.
const BYTES: usize = 8 << 20;

/// The responses that were written so far.
#[derive(Debug, Default)]
pub(super) struct ResponseCache(RwLock<CacheEntries>);

#[derive(Debug, Default)]
struct CacheEntries {
    v1: ByGroups,
    v2: ByGroups,
    bytes: usize,
}

/// Responses by the groups that match.
type ByGroups = HashMap<Box<[GroupIndex]>, Arc<RenderedTail>>;

impl CacheEntries {
    fn has_room_for(&self, size: usize) -> bool {
        self.bytes + size <= BYTES
    }
}

impl ResponseCache {
    fn read(&self) -> RwLockReadGuard<'_, CacheEntries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, CacheEntries> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, groups: &[GroupIndex], version: Version) -> Option<Arc<RenderedTail>> {
        let entries = self.read();
        let by_groups = match version {
            Version::V1 => &entries.v1,
            Version::V2 => &entries.v2,
        };
        by_groups.get(groups).map(Arc::clone)
    }

    pub(super) fn insert(&self, groups: &[GroupIndex], version: Version, tail: &Arc<RenderedTail>) {
        let size = size_of_val(groups) + tail.size();
        // A full cache must not make requests wait for the write lock.
        if !self.read().has_room_for(size) {
            return;
        }
        let mut entries = self.write();
        if !entries.has_room_for(size) {
            return;
        }
        let by_groups = match version {
            Version::V1 => &mut entries.v1,
            Version::V2 => &mut entries.v2,
        };
        // Another thread may have been faster.
        if by_groups.insert(groups.into(), Arc::clone(tail)).is_none() {
            entries.bytes += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::{Hierarchy, root_group};

    #[test]
    fn so_much_is_kept_as_there_is_room_for() {
        let hierarchy = Hierarchy::build(root_group().into_iter().collect()).unwrap();
        let (none, root) = ([], [hierarchy.root()]);
        let cache = ResponseCache::default();
        let tail = |text: &[u8]| Arc::new(RenderedTail { text: text.to_vec(), holes: Vec::new() });
        assert!(cache.get(&root, Version::V1).is_none(), "it is empty at first");
        cache.insert(&root, Version::V1, &tail(b"a"));
        assert_eq!(cache.get(&root, Version::V1).unwrap().text, b"a");
        assert!(cache.get(&root, Version::V2).is_none());
        assert!(cache.get(&none, Version::V1).is_none());
        // What is known already takes no more room.
        (0..10).for_each(|_| cache.insert(&root, Version::V1, &tail(b"a")));
        let rest = BYTES - 1 - size_of_val(&root);
        cache.insert(&none, Version::V2, &tail(&vec![b'b'; rest + 1]));
        assert!(cache.get(&none, Version::V2).is_none(), "there is no room");
        cache.insert(&none, Version::V2, &tail(&vec![b'b'; rest]));
        assert!(cache.get(&none, Version::V2).is_some());
        cache.insert(&[], Version::V1, &tail(b"c"));
        assert!(cache.get(&[], Version::V1).is_none(), "it is full");
        assert!(cache.get(&root, Version::V1).is_some(), "what was kept stays");
    }
}
