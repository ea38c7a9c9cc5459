//! How many bytes of inherited values the written groups of a snapshot may have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Room for inherited values. What a group sets itself is bounded by the budget of its commit; but each group that names a
/// class is written with all parameters that the groups above set, so many groups below a large class would be as long as
/// both together.
#[derive(Clone, Debug)]
pub(super) struct RenderedRoom(Arc<AtomicUsize>);

/// Bytes that are taken of the room; dropped, they are given back.
#[derive(Debug)]
pub(super) struct RoomShare {
    room: RenderedRoom,
    bytes: usize,
}

impl RenderedRoom {
    /// Makes room for so many bytes, which snapshots share that were made of each other.
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Returns whether there is room for so many bytes now.
    pub(super) fn has(&self, bytes: usize) -> bool {
        self.0.load(Ordering::Relaxed) >= bytes
    }

    /// Takes some bytes, if there is room for them.
    pub(super) fn take(&self, bytes: usize) -> Option<RoomShare> {
        let less = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(RoomShare { room: self.clone(), bytes })
    }
}

impl Drop for RoomShare {
    fn drop(&mut self) {
        self.room.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}
