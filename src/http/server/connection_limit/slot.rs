//! One connection, as its listener sees it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::client_key::ClientKey;

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(in crate::http::server) enum Phase {
    /// It waits for a TLS handshake or the head of a request.
    Head = 0,
    /// It waits for the body of a request.
    Body = 1,
    /// The daemon handles a request.
    Handling = 2,
    /// It waits for the client to read a response.
    Response = 3,
}

/// The slot of a connection: what the listener knows of it.
#[derive(Debug)]
pub(in crate::http::server) struct Slot {
    pub(super) id: u64,
    /// Cancelled to evict the connection.
    pub(in crate::http::server) evicted: CancellationToken,
    /// Whether it is beyond the limit: then only probes are answered.
    pub(super) is_over_limit: AtomicBool,
    /// Whether part of a request is left unread.
    pub(in crate::http::server) is_unread: AtomicBool,
    /// Whether a response of unknown length is still being made. Each time that what is there is sent, its phase becomes
    /// that of the next head.
    pub(super) is_streaming: AtomicBool,
    client: Mutex<ClientKey>,
    /// The phase in the two lowest bits, above them when it began, in milliseconds.
    phase: AtomicU64,
    buffered: AtomicUsize,
}

impl Slot {
    pub(super) fn new(id: u64, client: ClientKey, is_over_limit: bool, now: u64) -> Self {
        let slot = Self {
            id,
            evicted: CancellationToken::new(),
            is_over_limit: AtomicBool::new(is_over_limit),
            is_unread: AtomicBool::new(false),
            is_streaming: AtomicBool::new(false),
            client: Mutex::new(client),
            phase: AtomicU64::new(0),
            buffered: AtomicUsize::new(0),
        };
        slot.enter(Phase::Head, now);
        slot
    }

    pub(super) fn enter(&self, phase: Phase, now: u64) {
        self.phase.store(now << 2 | phase as u64, Ordering::Relaxed);
    }

    pub(in crate::http::server) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) & 3 {
            0 => Phase::Head,
            1 => Phase::Body,
            2 => Phase::Handling,
            _ => Phase::Response,
        }
    }

    pub(super) fn since(&self) -> u64 {
        self.phase.load(Ordering::Relaxed) >> 2
    }

    /// Returns since when it waits for the head of a request, if it does.
    pub(super) fn head_since(&self) -> Option<u64> {
        let phase = self.phase.load(Ordering::Relaxed);
        let is_head = phase & 3 == Phase::Head as u64;
        (is_head && !self.is_streaming.load(Ordering::Relaxed)).then_some(phase >> 2)
    }

    /// Returns whether the connection waits for its client, not for the daemon.
    pub(super) fn waits_for_client(&self) -> bool {
        self.phase() != Phase::Handling
    }

    pub(super) fn client(&self) -> ClientKey {
        self.client.lock().clone()
    }

    pub(super) fn set_client(&self, client: ClientKey) {
        *self.client.lock() = client;
    }

    pub(super) fn add_buffered(&self, bytes: usize) {
        self.buffered.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn buffered(&self) -> usize {
        self.buffered.load(Ordering::Relaxed)
    }

    /// Returns what it buffered.
    pub(super) fn release(&self) -> usize {
        self.buffered.swap(0, Ordering::Relaxed)
    }
}
