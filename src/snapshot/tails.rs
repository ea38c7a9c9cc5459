//! Answers from behind the name on: nodes that the same groups match get the same.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;

use crate::classification::Version;
use crate::hierarchy::GroupIndex;

/// How many bytes are kept for each snapshot; what comes then is written anew each time.
const BYTES: usize = 8 << 20;

/// The answers that were written so far, by the groups that match.
#[derive(Debug, Default)]
pub(super) struct Tails {
    v1: RwLock<Shelf>,
    v2: RwLock<Shelf>,
    bytes: AtomicUsize,
}

type Shelf = HashMap<Box<[GroupIndex]>, Arc<[u8]>>;

impl Tails {
    fn of(&self, version: Version) -> &RwLock<Shelf> {
        match version {
            Version::V1 => &self.v1,
            Version::V2 => &self.v2,
        }
    }

    pub(super) fn get(&self, groups: &[GroupIndex], version: Version) -> Option<Arc<[u8]>> {
        let shelf = self.of(version).read().unwrap_or_else(PoisonError::into_inner);
        shelf.get(groups).map(Arc::clone)
    }

    pub(super) fn keep(&self, groups: &[GroupIndex], version: Version, tail: &[u8]) {
        let size = size_of_val(groups) + tail.len();
        if self.bytes.fetch_add(size, Ordering::Relaxed) > BYTES {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            return;
        }
        let mut shelf = self.of(version).write().unwrap_or_else(PoisonError::into_inner);
        shelf.insert(groups.into(), tail.into());
    }
}
