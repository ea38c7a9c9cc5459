//! Caches the ENC documents of requests without facts.
//!
//! A document is served again while the same commit is live and the node has not checked in: its facts
//! need not be read, nor its groups matched.
//!
//! The cache is our own and not a crate's, because a document may be inserted only if the node did not
//! check in while the document was made: the comparison with the reservation, the insertion and the
//! accounting of bytes happen under one lock.

use std::sync::Arc;

use axum::body::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::model::CommitId;

/// How many bytes the cache may hold.
const BYTES: usize = 32 << 20;

/// The cached documents.
#[derive(Clone, Debug, Default)]
pub struct EncCache(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    by_name: HashMap<String, Entry>,
    bytes: usize,
    reservations: u64,
}

#[derive(Debug)]
struct Entry {
    commit: CommitId,
    /// The reservation that may insert the document.
    reservation: u64,
    document: Option<Bytes>,
}

/// The right to insert a document; it ends when the node checks in.
#[derive(Debug)]
pub(super) struct Reservation(u64);

impl EncCache {
    /// Returns the document of a node, or the right to insert the one that is made now.
    pub(super) fn find(&self, name: &str, commit: CommitId) -> Result<Bytes, Reservation> {
        let mut entries = self.0.lock();
        let entry = entries.by_name.get(name).filter(|entry| entry.commit == commit);
        if let Some(document) = entry.and_then(|entry| entry.document.clone()) {
            return Ok(document);
        }
        entries.reservations += 1;
        let reservation = entries.reservations;
        entries.put(name, Entry { commit, reservation, document: None });
        Err(Reservation(reservation))
    }

    /// Inserts a document, unless the node has checked in since the reservation.
    pub(super) fn insert(&self, name: &str, reservation: &Reservation, document: Bytes) {
        let mut entries = self.0.lock();
        let entry = entries.by_name.get(name).filter(|it| it.reservation == reservation.0);
        if let Some(commit) = entry.map(|entry| entry.commit) {
            let document = Some(document);
            entries.put(name, Entry { commit, reservation: reservation.0, document });
        }
    }

    /// Evicts the document of a node that checks in.
    pub(super) fn evict(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

impl Entries {
    fn put(&mut self, name: &str, entry: Entry) {
        self.remove(name);
        self.bytes += size(name, &entry);
        if self.bytes > BYTES {
            // The next requests make the documents again.
            self.by_name.clear();
            self.bytes = size(name, &entry);
        }
        self.by_name.insert(name.to_owned(), entry);
    }

    fn remove(&mut self, name: &str) {
        if let Some((name, entry)) = self.by_name.remove_entry(name) {
            self.bytes -= size(&name, &entry);
        }
    }
}

fn size(name: &str, entry: &Entry) -> usize {
    100 + name.len() + entry.document.as_ref().map_or(0, Bytes::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_cached_until_another_commit_is_live_or_the_node_checks_in() {
        let cache = EncCache::default();
        let commit = |text: &str| text.repeat(40).parse::<CommitId>().unwrap();
        let (old, new) = (commit("1"), commit("2"));
        let text = |text: &'static str| Bytes::from_static(text.as_bytes());
        let reservation = cache.find("a", old).unwrap_err();
        cache.insert("a", &reservation, text("first"));
        assert_eq!(cache.find("a", old).unwrap(), "first");
        let reservation = cache.find("a", new).unwrap_err();
        // It checks in while the document is made of what was known before.
        cache.evict("a");
        cache.insert("a", &reservation, text("too late"));
        let reservation = cache.find("a", new).unwrap_err();
        cache.insert("a", &reservation, text("second"));
        assert_eq!(cache.find("a", new).unwrap(), "second");
        cache.evict("a");
        assert_eq!(cache.0.lock().bytes, 0);
    }

    #[test]
    fn the_cache_has_a_limit() {
        let cache = EncCache::default();
        let commit = "1".repeat(40).parse::<CommitId>().unwrap();
        let large = Bytes::from(vec![b'x'; BYTES / 3]);
        for name in ["a", "b", "c", "d"] {
            let reservation = cache.find(name, commit).unwrap_err();
            cache.insert(name, &reservation, large.clone());
            assert!(cache.0.lock().bytes <= BYTES);
        }
        assert_eq!(cache.find("d", commit).unwrap(), large);
        assert!(cache.find("a", commit).is_err());
    }
}
