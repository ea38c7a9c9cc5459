//! One connection, as its listener sees it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::Caller;

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(in crate::http::server) enum Phase {
    /// The client shakes hands, sends the head of a request, or does nothing.
    Head = 0,
    /// The client sends a body.
    Body = 1,
    /// The daemon works.
    Work = 2,
    /// The client takes an answer.
    Answer = 3,
}

/// One connection.
#[derive(Debug)]
pub(in crate::http::server) struct Seat {
    pub(super) id: u64,
    /// Cancelled when the connection has to give way.
    pub(in crate::http::server) evicted: CancellationToken,
    /// Whether it is beyond the limit, and has probes answered only.
    pub(in crate::http::server) is_spare: bool,
    /// Whether part of a request is left unread.
    pub(in crate::http::server) is_unread: AtomicBool,
    /// Whether the end of the answer is not known yet.
    pub(super) is_streaming: AtomicBool,
    caller: Mutex<Caller>,
    /// The phase in the two lowest bits, above them when it began, in milliseconds.
    phase: AtomicU64,
    held: AtomicUsize,
}

impl Seat {
    pub(super) fn new(id: u64, caller: Caller, is_spare: bool, now: u64) -> Self {
        let seat = Self {
            id,
            evicted: CancellationToken::new(),
            is_spare,
            is_unread: AtomicBool::new(false),
            is_streaming: AtomicBool::new(false),
            caller: Mutex::new(caller),
            phase: AtomicU64::new(0),
            held: AtomicUsize::new(0),
        };
        seat.enter(Phase::Head, now);
        seat
    }

    pub(super) fn enter(&self, phase: Phase, now: u64) {
        self.phase.store(now << 2 | phase as u64, Ordering::Relaxed);
    }

    pub(in crate::http::server) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) & 3 {
            0 => Phase::Head,
            1 => Phase::Body,
            2 => Phase::Work,
            _ => Phase::Answer,
        }
    }

    pub(super) fn since(&self) -> u64 {
        self.phase.load(Ordering::Relaxed) >> 2
    }

    /// Returns whether the client has to do something, and not the daemon.
    pub(super) fn is_waited_for(&self) -> bool {
        self.phase() != Phase::Work
    }

    pub(super) fn caller(&self) -> Caller {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_caller(&self, caller: Caller) {
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) = caller;
    }

    pub(super) fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns what it held.
    pub(super) fn release(&self) -> usize {
        self.held.swap(0, Ordering::Relaxed)
    }
}
