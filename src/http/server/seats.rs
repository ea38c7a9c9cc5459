//! The connections of one listener, and which of them gives way when there are too many.
//!
//! A connection costs a descriptor and memory for as long as its client likes, so a few clients could
//! take all that there is. Each listener has seats; a new connection always gets one: if all are taken,
//! the caller with the most connections loses the one that has kept the daemon waiting longest. What
//! the daemon itself works on never gives way. Requests that are not whole yet are limited besides, by
//! caller, in number and in bytes.
#![expect(clippy::disallowed_methods, reason = "clients are waited for")]

mod seat;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::HttpBody as _;
use axum::response::Response;

pub(super) use seat::{Phase, Seat};

use crate::telemetry::{ConnectionEnd, Metrics};

/// How many connections beyond the limit are let in for probes while none can give way.
const SPARE: usize = 64;

/// How many bytes are held of requests that are not whole, and of answers that are not taken.
const HELD: usize = 48 << 20;

/// How many bytes the buffer of a connection has at the most: the start of a request takes them twice.
pub(super) const BUFFER: usize = 64 << 10;

/// Answers of fewer bytes are not counted.
const SMALL_ANSWER: usize = 16 << 10;

/// What an answer holds at the least whose length is not known: the piece of it that waits to be sent,
/// and what the next ones are made of.
const STREAMED: usize = 512 << 10;

/// How long a listener whose connections are all being worked on waits before it tries again.
const RETRY: Duration = Duration::from_millis(20);

/// Who a connection belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Caller {
    /// Known by its address; for IPv6 by its network of 64 bits, which is one site's.
    Address(IpAddr),
    /// Known by its certificate.
    Certificate(String),
    /// On this machine, through a unix socket.
    Local,
}

impl From<IpAddr> for Caller {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(it) => {
                let network = it.to_bits() & !u128::from(u64::MAX);
                Self::Address(IpAddr::V6(network.into()))
            }
            it @ IpAddr::V4(_) => Self::Address(it),
        }
    }
}

/// The seats of one listener.
#[derive(Debug)]
pub(super) struct Seats {
    listener: &'static str,
    connections: usize,
    metrics: Arc<Metrics>,
    began: Instant,
    taken: Mutex<Taken>,
    held: AtomicUsize,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    seats: HashMap<u64, Arc<Seat>>,
    by_caller: HashMap<Caller, usize>,
    /// How many requests are not whole, and whose.
    unfinished: usize,
    unfinished_by_caller: HashMap<Caller, usize>,
}

/// A connection's hold on its seat.
#[derive(Debug)]
pub(super) struct Taking {
    pub(super) seat: Arc<Seat>,
    seats: Arc<Seats>,
}

/// A request that is not whole yet.
#[derive(Debug)]
pub(super) struct Unfinished {
    taking: Arc<Taking>,
    caller: Caller,
}

impl Seats {
    pub(super) fn new(listener: &'static str, connections: usize, metrics: Arc<Metrics>) -> Self {
        let connections = connections.max(1);
        let (taken, held) = (Mutex::default(), AtomicUsize::new(0));
        Self { listener, connections, metrics, began: Instant::now(), taken, held }
    }

    /// Takes a seat, for which another connection may have to give way.
    pub(super) async fn take(self: &Arc<Self>, caller: &Caller) -> Taking {
        loop {
            if let Some(taking) = self.try_take(caller) {
                return taking;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn try_take(self: &Arc<Self>, caller: &Caller) -> Option<Taking> {
        let mut taken = self.lock();
        let mut is_spare = false;
        if taken.seats.len() >= self.connections && !self.evict_longest(&mut taken) {
            if taken.seats.len() >= self.connections + SPARE {
                return None;
            }
            is_spare = true;
        }
        let id = taken.next;
        taken.next += 1;
        let seat = Arc::new(Seat::new(id, caller.clone(), is_spare, self.now()));
        taken.seats.insert(id, Arc::clone(&seat));
        *taken.by_caller.entry(caller.clone()).or_default() += 1;
        self.metrics.set_connections(self.listener, taken.seats.len());
        Some(Taking { seat, seats: Arc::clone(self) })
    }

    /// Makes one connection give way, such as when there are no descriptors left.
    pub(super) fn make_room(&self) {
        self.evict_longest(&mut self.lock());
    }

    /// Counts a connection that the daemon ends.
    pub(super) fn count(&self, end: ConnectionEnd) {
        self.metrics.count_connection_end(self.listener, end);
    }

    /// Returns the milliseconds since the listener began.
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of the caller with the most connections, or else of all, evicts the one waited for longest.
    fn evict_longest(&self, taken: &mut Taken) -> bool {
        let most = taken.by_caller.iter().max_by_key(|it| *it.1).map(|it| it.0.clone());
        let seat = most
            .and_then(|most| taken.longest(|it| it.is_waited_for() && it.caller() == most))
            .or_else(|| taken.longest(Seat::is_waited_for));
        seat.is_some_and(|seat| {
            self.evict(taken, &seat);
            true
        })
    }

    fn evict(&self, taken: &mut Taken, seat: &Seat) {
        seat.evicted.cancel();
        self.remove(taken, seat);
        self.count(ConnectionEnd::GaveWay);
    }

    fn remove(&self, taken: &mut Taken, seat: &Seat) {
        self.held.fetch_sub(seat.release(), Ordering::Relaxed);
        if taken.seats.remove(&seat.id).is_none() {
            return;
        }
        decrease(&mut taken.by_caller, &seat.caller());
        self.metrics.set_connections(self.listener, taken.seats.len());
    }
}

impl Taken {
    /// Returns the connection that has been in its phase longest, of several the first.
    fn longest(&self, fits: impl Fn(&Seat) -> bool) -> Option<Arc<Seat>> {
        self.seats.values().filter(|it| fits(it)).min_by_key(|it| (it.since(), it.id)).cloned()
    }
}

impl Taking {
    /// Puts the connection down to another caller.
    pub(super) fn belongs_to(&self, caller: Caller) {
        let mut taken = self.seats.lock();
        if taken.seats.contains_key(&self.seat.id) {
            decrease(&mut taken.by_caller, &self.seat.caller());
            *taken.by_caller.entry(caller.clone()).or_default() += 1;
        }
        self.seat.set_caller(caller);
    }

    /// Says what the connection does from now on.
    pub(super) fn enters(&self, phase: Phase) {
        self.seat.enter(phase, self.seats.now());
    }

    /// Notes bytes of a request.
    pub(super) fn receives(&self, bytes: usize) {
        let buffered = BUFFER.saturating_sub(self.seat.held() / 2).min(bytes);
        self.holds(bytes + buffered);
    }

    /// Notes bytes of a request or an answer. If too many are held, what takes longest gives way.
    pub(super) fn holds(&self, bytes: usize) {
        if !self.seat.is_waited_for() {
            return;
        }
        self.seat.hold(bytes);
        if self.seats.held.fetch_add(bytes, Ordering::Relaxed) + bytes > HELD {
            let mut taken = self.seats.lock();
            if let Some(seat) = taken.longest(|it| it.is_waited_for() && it.held() > 0) {
                self.seats.evict(&mut taken, &seat);
            }
        }
    }

    /// Notes that there is an answer, which is held until the client has taken it.
    pub(super) fn answers(&self, response: &Response) {
        self.releases();
        self.enters(Phase::Answer);
        let length = response.body().size_hint().exact();
        self.seat.is_streaming.store(length.is_none(), Ordering::Relaxed);
        let bytes = length.map_or(STREAMED, |it| usize::try_from(it).unwrap_or(usize::MAX));
        if bytes >= SMALL_ANSWER {
            self.holds(bytes);
        }
    }

    /// Notes the piece of an answer that waits to be sent; the one before has been.
    pub(super) fn streams(&self, bytes: usize) {
        self.releases();
        self.holds(bytes.max(STREAMED));
    }

    /// Notes that all that was written has been sent.
    pub(super) fn has_sent(&self) {
        if !self.seat.is_streaming.load(Ordering::Relaxed) {
            self.releases();
        }
    }

    /// Notes that the bytes of the request have been handed over.
    pub(super) fn releases(&self) {
        self.seats.held.fetch_sub(self.seat.release(), Ordering::Relaxed);
    }

    /// Notes that an answer does not wait for the rest of the request.
    pub(super) fn leaves_unread(&self) {
        self.seat.is_unread.store(true, Ordering::Relaxed);
    }

    /// Notes that a body is being waited for. A quarter of all connections may wait for bodies of one
    /// caller, half of them altogether; beyond that, the longest gives way.
    pub(super) fn waits_for_body(self: &Arc<Self>) -> Unfinished {
        let caller = self.seat.caller();
        self.enters(Phase::Body);
        let mut taken = self.seats.lock();
        taken.unfinished += 1;
        let of_caller = taken.unfinished_by_caller.entry(caller.clone()).or_default();
        *of_caller += 1;
        let is_body = |it: &Seat| it.phase() == Phase::Body;
        let longest = if *of_caller > (self.seats.connections / 4).max(1) {
            taken.longest(|it| is_body(it) && it.caller() == caller)
        } else if taken.unfinished > (self.seats.connections / 2).max(1) {
            taken.longest(is_body)
        } else {
            None
        };
        if let Some(seat) = longest {
            self.seats.evict(&mut taken, &seat);
        }
        Unfinished { taking: Arc::clone(self), caller }
    }

    pub(super) fn count(&self, end: ConnectionEnd) {
        self.seats.count(end);
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.seats.remove(&mut self.seats.lock(), &self.seat);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut taken = self.taking.seats.lock();
        taken.unfinished = taken.unfinished.saturating_sub(1);
        decrease(&mut taken.unfinished_by_caller, &self.caller);
        drop(taken);
        self.taking.enters(Phase::Work);
    }
}

fn decrease(counts: &mut HashMap<Caller, usize>, caller: &Caller) {
    if let Some(count) = counts.get_mut(caller) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(caller);
        }
    }
}

#[cfg(test)]
mod tests;
