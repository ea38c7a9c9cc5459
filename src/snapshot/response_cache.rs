//! Answers from behind the name on: nodes that the same groups match get the same.
//!
//! Only the snapshot that answers keeps them: there is one, while many are kept built.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashMap;

use crate::classification::Version;
use crate::hierarchy::GroupIndex;

/// How many bytes are kept; what comes then is written anew each time.
const BYTES: usize = 8 << 20;

/// The answers that were written so far; none are kept at first.
#[derive(Debug, Default)]
pub(super) struct Tails(RwLock<Option<Shelf>>);

#[derive(Debug, Default)]
struct Shelf {
    v1: ByGroups,
    v2: ByGroups,
    bytes: usize,
}

/// Answers by the groups that match.
type ByGroups = HashMap<Box<[GroupIndex]>, Arc<[u8]>>;

impl Shelf {
    fn has_room_for(&self, size: usize) -> bool {
        self.bytes + size <= BYTES
    }
}

impl Tails {
    fn read(&self) -> RwLockReadGuard<'_, Option<Shelf>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Shelf>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what is written from now on.
    pub(super) fn open(&self) {
        self.write().get_or_insert_default();
    }

    /// Forgets everything and keeps nothing more.
    pub(super) fn close(&self) {
        // Others need not wait until the memory is given back.
        let kept = self.write().take();
        drop(kept);
    }

    pub(super) fn get(&self, groups: &[GroupIndex], version: Version) -> Option<Arc<[u8]>> {
        let shelf = self.read();
        let shelf = shelf.as_ref()?;
        let tails = match version {
            Version::V1 => &shelf.v1,
            Version::V2 => &shelf.v2,
        };
        tails.get(groups).map(Arc::clone)
    }

    pub(super) fn keep(&self, groups: &[GroupIndex], version: Version, tail: &[u8]) {
        let size = size_of_val(groups) + tail.len();
        // Nobody waits for a shelf that is closed or full.
        if !self.read().as_ref().is_some_and(|it| it.has_room_for(size)) {
            return;
        }
        let mut shelf = self.write();
        let Some(shelf) = shelf.as_mut().filter(|it| it.has_room_for(size)) else { return };
        let tails = match version {
            Version::V1 => &mut shelf.v1,
            Version::V2 => &mut shelf.v2,
        };
        // Another thread may have been faster.
        if tails.insert(groups.into(), tail.into()).is_none() {
            shelf.bytes += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::{Hierarchy, root_group};

    #[test]
    fn so_much_is_kept_as_there_is_room_for_while_it_is_open() {
        let hierarchy = Hierarchy::build(root_group().into_iter().collect()).unwrap();
        let (none, root) = ([], [hierarchy.root()]);
        let tails = Tails::default();
        tails.keep(&root, Version::V1, b"a");
        assert_eq!(tails.get(&root, Version::V1), None, "it is not open");
        tails.open();
        tails.keep(&root, Version::V1, b"a");
        assert_eq!(tails.get(&root, Version::V1).as_deref(), Some(&b"a"[..]));
        assert_eq!(tails.get(&root, Version::V2), None);
        assert_eq!(tails.get(&none, Version::V1), None);
        // What is known already takes no more room.
        (0..10).for_each(|_| tails.keep(&root, Version::V1, b"a"));
        let rest = BYTES - 1 - size_of_val(&root);
        tails.keep(&none, Version::V2, &vec![b'b'; rest + 1]);
        assert_eq!(tails.get(&none, Version::V2), None, "there is no room");
        tails.keep(&none, Version::V2, &vec![b'b'; rest]);
        assert!(tails.get(&none, Version::V2).is_some());
        // To open it again forgets nothing.
        tails.open();
        assert!(tails.get(&root, Version::V1).is_some());
        tails.close();
        tails.keep(&root, Version::V1, b"a");
        assert_eq!(tails.get(&root, Version::V1), None);
    }
}
