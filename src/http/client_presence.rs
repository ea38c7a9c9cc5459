//! Whether the client of a request still waits: long work on a thread of its own ends when it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::ApiError;

/// The presence of a client. Dropped with the request, it stops the work that watches it.
#[derive(Debug, Default)]
pub(super) struct ClientPresence(ClientWatch);

/// Work that a client waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientWatch(Arc<AtomicBool>);

impl ClientPresence {
    /// Returns what the work asks.
    pub(super) fn watch(&self) -> ClientWatch {
        self.0.clone()
    }
}

impl Drop for ClientPresence {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl ClientWatch {
    /// Returns whether the client has left.
    pub(super) fn is_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns what becomes true when the client leaves.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Ends the work if the client has left.
    ///
    /// # Errors
    ///
    /// Returns an error then, which no client reads.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        if self.is_gone() { Err(ApiError::busy()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_watched_until_the_request_is_dropped() {
        let presence = ClientPresence::default();
        let watch = presence.watch();
        assert!(!watch.is_gone() && watch.check().is_ok());
        drop(presence);
        assert!(watch.is_gone() && watch.check().is_err());
    }
}
