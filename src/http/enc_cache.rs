//! Replies to those who ask about a node by its name alone.
//!
//! What was answered is answered again as long as the same commit answers and nothing new is known
//! of the node: its facts need not be read, nor its groups found.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use hashbrown::HashMap;

use crate::model::CommitId;

/// How many bytes of replies are kept.
const BYTES: usize = 32 << 20;

/// The replies that are kept.
#[derive(Clone, Debug, Default)]
pub struct EncCache(Arc<Mutex<Shelf>>);

#[derive(Debug, Default)]
struct Shelf {
    slots: HashMap<String, Slot>,
    bytes: usize,
    tickets: u64,
}

#[derive(Debug)]
struct Slot {
    commit: CommitId,
    /// Who may put the reply here.
    ticket: u64,
    reply: Option<Bytes>,
}

/// The right to keep a reply, which is lost when something new is known of the node.
#[derive(Debug)]
pub(super) struct Reservation(u64);

impl EncCache {
    /// Returns the reply about a node, or the right to keep the one that is made now.
    pub(super) fn find(&self, name: &str, commit: CommitId) -> Result<Bytes, Reservation> {
        let mut shelf = self.shelf();
        let slot = shelf.slots.get(name).filter(|slot| slot.commit == commit);
        if let Some(reply) = slot.and_then(|slot| slot.reply.clone()) {
            return Ok(reply);
        }
        shelf.tickets += 1;
        let ticket = shelf.tickets;
        shelf.put(name, Slot { commit, ticket, reply: None });
        Err(Reservation(ticket))
    }

    /// Keeps a reply, if nothing new is known of the node since the ticket was handed out.
    pub(super) fn keep(&self, name: &str, ticket: &Reservation, reply: Bytes) {
        let mut shelf = self.shelf();
        let slot = shelf.slots.get(name).filter(|slot| slot.ticket == ticket.0);
        if let Some(commit) = slot.map(|slot| slot.commit) {
            shelf.put(name, Slot { commit, ticket: ticket.0, reply: Some(reply) });
        }
    }

    /// Forgets the reply about a node of which something new is known.
    pub(super) fn forget(&self, name: &str) {
        self.shelf().take(name);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn put(&mut self, name: &str, slot: Slot) {
        self.take(name);
        self.bytes += size(name, &slot);
        if self.bytes > BYTES {
            // They are made again by those who ask again.
            self.slots.clear();
            self.bytes = size(name, &slot);
        }
        self.slots.insert(name.to_owned(), slot);
    }

    fn take(&mut self, name: &str) {
        if let Some((name, slot)) = self.slots.remove_entry(name) {
            self.bytes -= size(&name, &slot);
        }
    }
}

fn size(name: &str, slot: &Slot) -> usize {
    100 + name.len() + slot.reply.as_ref().map_or(0, Bytes::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_kept_until_another_commit_answers_or_more_is_known() {
        let replies = EncCache::default();
        let commit = |text: &str| text.repeat(40).parse::<CommitId>().unwrap();
        let (old, new) = (commit("1"), commit("2"));
        let text = |text: &'static str| Bytes::from_static(text.as_bytes());
        let ticket = replies.find("a", old).unwrap_err();
        replies.keep("a", &ticket, text("first"));
        assert_eq!(replies.find("a", old).unwrap(), "first");
        let ticket = replies.find("a", new).unwrap_err();
        // It checks in while the reply is made of what was known before.
        replies.forget("a");
        replies.keep("a", &ticket, text("too late"));
        let ticket = replies.find("a", new).unwrap_err();
        replies.keep("a", &ticket, text("second"));
        assert_eq!(replies.find("a", new).unwrap(), "second");
        replies.forget("a");
        assert_eq!(replies.shelf().bytes, 0);
    }

    #[test]
    fn replies_have_a_limit() {
        let replies = EncCache::default();
        let commit = "1".repeat(40).parse::<CommitId>().unwrap();
        let large = Bytes::from(vec![b'x'; BYTES / 3]);
        for name in ["a", "b", "c", "d"] {
            let ticket = replies.find(name, commit).unwrap_err();
            replies.keep(name, &ticket, large.clone());
            assert!(replies.shelf().bytes <= BYTES);
        }
        assert_eq!(replies.find("d", commit).unwrap(), large);
        assert!(replies.find("a", commit).is_err());
    }
}
