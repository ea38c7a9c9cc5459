//! Limits the connections of one listener, and evicts the slowest client's when there are too many.
//!
//! A connection costs a descriptor and memory for as long as its client keeps it open, so a few clients
//! could take all of them. A new connection always gets a slot: if all are in use, the client with the
//! most connections loses the one that has kept the daemon waiting longest. A connection whose request
//! the daemon handles is never evicted. Incomplete requests have limits of their own, by client, in number
//! and in bytes.
//!
//! `tower`'s limits do not do this: they see requests, not connections, and they queue or refuse new work,
//! where this evicts the oldest wait.
#![expect(clippy::disallowed_methods, reason = "clients are waited for")]

mod client_key;
mod slot;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::HttpBody as _;
use axum::response::Response;
use parking_lot::Mutex;

pub(super) use client_key::ClientKey;
pub(super) use slot::{Phase, Slot};

use super::refusal_log::RefusalLog;
use crate::telemetry::{ConnectionEnd, Metrics};

/// How many connections beyond the limit are accepted for probes while none can be evicted.
const PROBE_CONNECTIONS: usize = 64;

/// How many bytes of incomplete requests and unread responses all connections together may buffer.
pub(in crate::http) const BUFFERED_BYTES: usize = 48 << 20;

/// The largest read buffer of a connection, in bytes: the start of a request takes them twice.
pub(super) const READ_BUFFER: usize = 64 << 10;

/// Responses of fewer bytes are not counted.
const SMALL_RESPONSE: usize = 16 << 10;

/// The least that a response of unknown length is counted with, in bytes: the chunk that waits to be sent,
/// and what the next ones are made of.
const STREAMED_RESPONSE: usize = 512 << 10;

/// How long a listener waits before it tries again while it can evict no connection.
const RETRY: Duration = Duration::from_millis(20);

/// The connections of one listener, up to a limit.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    listener: &'static str,
    most: usize,
    metrics: Arc<Metrics>,
    began: Instant,
    open: Mutex<OpenConnections>,
    buffered: AtomicUsize,
    cut_responses: RefusalLog,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next_id: u64,
    slots: HashMap<u64, Arc<Slot>>,
    by_client: HashMap<ClientKey, usize>,
    /// How many requests are incomplete.
    pending_bodies: usize,
    pending_bodies_by_client: HashMap<ClientKey, usize>,
}

/// Holds the slot of a connection; dropping it frees the slot.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    pub(super) slot: Arc<Slot>,
    limit: Arc<ConnectionLimit>,
}

/// Counts an incomplete request until it is dropped.
#[derive(Debug)]
pub(super) struct PendingBody {
    guard: Arc<ConnectionGuard>,
    client: ClientKey,
}

impl ConnectionLimit {
    pub(super) fn new(listener: &'static str, most: usize, metrics: Arc<Metrics>) -> Self {
        Self {
            listener,
            most: most.max(1),
            metrics,
            began: Instant::now(),
            open: Mutex::default(),
            buffered: AtomicUsize::new(0),
            cut_responses: RefusalLog::default(),
        }
    }

    /// Returns a slot, for which another connection may be evicted.
    pub(super) async fn acquire(self: &Arc<Self>, client: &ClientKey) -> ConnectionGuard {
        loop {
            if let Some(guard) = self.try_acquire(client) {
                return guard;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn try_acquire(self: &Arc<Self>, client: &ClientKey) -> Option<ConnectionGuard> {
        let mut open = self.open.lock();
        let mut is_over_limit = false;
        if open.slots.len() >= self.most && !self.evict_longest(&mut open) {
            if open.slots.len() >= self.most + PROBE_CONNECTIONS {
                return None;
            }
            is_over_limit = true;
        }
        let id = open.next_id;
        open.next_id += 1;
        let slot = Arc::new(Slot::new(id, client.clone(), is_over_limit, self.now()));
        open.slots.insert(id, Arc::clone(&slot));
        *open.by_client.entry(client.clone()).or_default() += 1;
        self.metrics.set_connections(self.listener, open.slots.len());
        Some(ConnectionGuard { slot, limit: Arc::clone(self) })
    }

    /// Evicts one connection, such as when there are no descriptors left.
    pub(super) fn evict_one(&self) {
        self.evict_longest(&mut self.open.lock());
    }

    /// Returns the milliseconds since the listener began.
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Counts a connection that the daemon ends.
    pub(super) fn count(&self, end: ConnectionEnd) {
        self.metrics.count_connection_end(self.listener, end);
    }

    /// Evicts the connection that has waited longest for its client: of the client with the most
    /// connections, else of all.
    fn evict_longest(&self, open: &mut OpenConnections) -> bool {
        let most = open.by_client.iter().max_by_key(|it| *it.1).map(|it| it.0.clone());
        let slot = most
            .and_then(|most| open.longest(|it| it.waits_for_client() && it.client() == most))
            .or_else(|| open.longest(Slot::waits_for_client));
        let is_found = slot.is_some();
        if let Some(slot) = slot {
            self.evict(open, &slot);
        }
        is_found
    }

    fn evict(&self, open: &mut OpenConnections, slot: &Slot) {
        slot.evicted.cancel();
        self.remove(open, slot);
        self.count(ConnectionEnd::GaveWay);
    }

    fn remove(&self, open: &mut OpenConnections, slot: &Slot) {
        self.buffered.fetch_sub(slot.release(), Ordering::Relaxed);
        if open.slots.remove(&slot.id).is_none() {
            return;
        }
        decrease(&mut open.by_client, &slot.client());
        self.metrics.set_connections(self.listener, open.slots.len());
    }
}

impl OpenConnections {
    /// Returns the connection that has been in its phase longest, of several the first.
    fn longest(&self, fits: impl Fn(&Slot) -> bool) -> Option<Arc<Slot>> {
        self.slots.values().filter(|it| fits(it)).min_by_key(|it| (it.since(), it.id)).cloned()
    }
}

impl ConnectionGuard {
    /// Returns whether the connection is beyond the limit. One that was stays open, and is within it as soon as others
    /// have ended.
    pub(super) fn is_over_limit(&self) -> bool {
        if !self.slot.is_over_limit.load(Ordering::Relaxed) {
            return false;
        }
        let is_over = self.limit.open.lock().slots.len() > self.limit.most;
        self.slot.is_over_limit.store(is_over, Ordering::Relaxed);
        is_over
    }

    /// Counts the connection for another client.
    pub(super) fn set_client(&self, client: ClientKey) {
        let mut open = self.limit.open.lock();
        if open.slots.contains_key(&self.slot.id) {
            decrease(&mut open.by_client, &self.slot.client());
            *open.by_client.entry(client.clone()).or_default() += 1;
        }
        self.slot.set_client(client);
    }

    /// Notes what the connection does from now on.
    pub(super) fn enter(&self, phase: Phase) {
        // How long a request is handled is not asked.
        let since = if phase == Phase::Handling { self.slot.since() } else { self.limit.now() };
        self.slot.enter(phase, since);
    }

    /// Waits until the head of a request is late.
    pub(super) async fn await_late_head(&self, timeout: Duration) {
        loop {
            // A head that is not waited for yet will have all of the time.
            let waited =
                self.slot.head_since().map_or(0, |since| self.limit.now().saturating_sub(since));
            let left = timeout.saturating_sub(Duration::from_millis(waited));
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// Counts received bytes of a request.
    pub(super) fn add_received(&self, bytes: usize) {
        let buffered = READ_BUFFER.saturating_sub(self.slot.buffered() / 2).min(bytes);
        self.add_buffered(bytes + buffered);
    }

    /// Counts bytes of a request or a response. If all connections buffer too many, the longest wait is
    /// evicted.
    pub(super) fn add_buffered(&self, bytes: usize) {
        if self.slot.waits_for_client() {
            self.count_buffered(bytes);
        }
    }

    /// Counts bytes as [`Self::add_buffered`] does, of a request that waits for memory.
    pub(super) fn count_buffered(&self, bytes: usize) {
        self.slot.add_buffered(bytes);
        if self.limit.buffered.fetch_add(bytes, Ordering::Relaxed) + bytes > BUFFERED_BYTES {
            let mut open = self.limit.open.lock();
            if let Some(slot) = open.longest(|it| it.waits_for_client() && it.buffered() > 0) {
                self.limit.evict(&mut open, &slot);
            }
        }
    }

    /// Counts a response, which is buffered until the client has read it.
    pub(super) fn begin_response(&self, response: &Response) {
        self.release_buffered();
        self.enter(Phase::Response);
        let length = response.body().size_hint().exact();
        self.slot.is_streaming.store(length.is_none(), Ordering::Relaxed);
        let bytes =
            length.map_or(STREAMED_RESPONSE, |it| usize::try_from(it).unwrap_or(usize::MAX));
        if bytes >= SMALL_RESPONSE {
            self.add_buffered(bytes);
        }
    }

    /// Notes that a response of unknown length has been made.
    pub(super) fn end_stream(&self) {
        // To take what is still to be sent, the client has as long as a head may take.
        if self.slot.phase() == Phase::Head {
            self.enter(Phase::Head);
        }
        self.slot.is_streaming.store(false, Ordering::Relaxed);
    }

    /// Counts the chunk of a response that waits to be sent; the one before it has been sent.
    pub(super) fn buffer_chunk(&self, bytes: usize) {
        self.release_buffered();
        self.add_buffered(bytes.max(STREAMED_RESPONSE));
    }

    /// Notes that everything written has been sent.
    pub(super) fn note_flush(&self) {
        if !self.slot.is_streaming.load(Ordering::Relaxed) {
            self.release_buffered();
        }
    }

    /// Notes that the buffered bytes were handed over.
    pub(super) fn release_buffered(&self) {
        // Mostly there is nothing to release, and all threads share the sum.
        let released = self.slot.release();
        if released > 0 {
            self.limit.buffered.fetch_sub(released, Ordering::Relaxed);
        }
    }

    /// Logs that an evicted connection has sent a part of its response.
    pub(super) fn log_cut_response(&self) {
        let client = self.slot.client();
        let listener = self.limit.listener;
        if let Some(unlogged) = self.limit.cut_responses.count(client.clone(), Instant::now()) {
            tracing::warn!(
                listener,
                %client,
                unlogged,
                "a response is cut off: its client reads too slowly, and its connection gave way to another one"
            );
        }
    }

    /// Notes that the response does not wait for the rest of the request.
    pub(super) fn mark_unread(&self) {
        self.slot.is_unread.store(true, Ordering::Relaxed);
    }

    /// Notes that the connection waits for a body. A quarter of all connections may wait for bodies of one
    /// client, half of them for bodies of all clients; beyond that, the longest wait is evicted.
    pub(super) fn await_body(self: &Arc<Self>) -> PendingBody {
        let client = self.slot.client();
        self.enter(Phase::Body);
        let mut open = self.limit.open.lock();
        open.pending_bodies += 1;
        let of_client = open.pending_bodies_by_client.entry(client.clone()).or_default();
        *of_client += 1;
        let is_body = |it: &Slot| it.phase() == Phase::Body;
        let longest = if *of_client > (self.limit.most / 4).max(1) {
            open.longest(|it| is_body(it) && it.client() == client)
        } else if open.pending_bodies > (self.limit.most / 2).max(1) {
            open.longest(is_body)
        } else {
            None
        };
        if let Some(slot) = longest {
            self.limit.evict(&mut open, &slot);
        }
        PendingBody { guard: Arc::clone(self), client }
    }

    /// Counts the end of the connection by the daemon.
    pub(super) fn count(&self, end: ConnectionEnd) {
        self.limit.count(end);
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.limit.remove(&mut self.limit.open.lock(), &self.slot);
    }
}

impl Drop for PendingBody {
    fn drop(&mut self) {
        let mut open = self.guard.limit.open.lock();
        open.pending_bodies = open.pending_bodies.saturating_sub(1);
        decrease(&mut open.pending_bodies_by_client, &self.client);
        drop(open);
        self.guard.enter(Phase::Handling);
    }
}

fn decrease(counts: &mut HashMap<ClientKey, usize>, client: &ClientKey) {
    if let Some(count) = counts.get_mut(client) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(client);
        }
    }
}

#[cfg(test)]
mod tests;
