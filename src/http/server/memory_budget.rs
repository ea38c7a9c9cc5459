//! Bounds the memory of parsed requests.
//!
//! Parsed JSON takes many times the memory of its text. So a complete body waits until the budget has the
//! memory for its values, and the reservation is released when the response is made and no thread works on
//! the request any longer. Ordinary requests never wait for large ones: each kind has a budget. A body that can be
//! answered from its text reserves the memory of its text alone, and that of values when it turns out to need them.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use wide::u8x16;

use super::connection_limit::ConnectionGuard;
use crate::facts::RowRoom;
use crate::model::NODE_VALUES;
use crate::store::LARGE_ROW;

/// The size in KiB from which a request is large.
const IS_LARGE: usize = 2 << 10;

/// How long a request waits for memory.
const WAIT: Duration = Duration::from_secs(30);

/// The memory of one value, in bytes: `{"":0}` has two values.
const VALUE: usize = 300;

/// How many copies of a text are in memory.
const TEXTS: usize = 3;

/// The memory for one kind of requests.
pub(super) struct MemoryBudget {
    /// The free KiB.
    free: Semaphore,
    /// All KiB.
    total: usize,
    /// The KiB of waiting texts; more get 503.
    waiting: Semaphore,
    /// The least KiB that a waiting text counts, since a thread may wait with it.
    least: usize,
}

impl MemoryBudget {
    const fn new(total: usize, waiting: usize, least: usize) -> Self {
        let (free, waiting) = (Semaphore::const_new(total), Semaphore::const_new(waiting));
        Self { free, total, waiting, least }
    }

    /// Waits for all KiB but so many.
    #[cfg(test)]
    pub(super) async fn admit_all_but(&'static self, kibibytes: usize) -> SemaphorePermit<'static> {
        self.admit_eventually(self.total - kibibytes).await.unwrap()
    }

    /// Returns the permit for so many KiB if they are free now.
    fn try_admit(&'static self, kibibytes: usize) -> Option<SemaphorePermit<'static>> {
        self.free.try_acquire_many(permits(kibibytes.min(self.total))).ok()
    }

    /// Waits for so many KiB, with a text of so many KiB in memory. A request that needs more than the
    /// budget gets all of it.
    async fn admit(
        &'static self,
        kibibytes: usize,
        text: usize,
    ) -> Result<SemaphorePermit<'static>, OverBudget> {
        if let Some(permit) = self.try_admit(kibibytes) {
            return Ok(permit);
        }
        let wanted = permits(kibibytes.min(self.total));
        let text = permits(text.max(self.least));
        let _waiting = self.waiting.try_acquire_many(text).map_err(|_| OverBudget)?;
        let waited = tokio::time::timeout(WAIT, self.free.acquire_many(wanted)).await;
        waited.ok().and_then(Result::ok).ok_or(OverBudget)
    }

    /// Waits for so many KiB without a limit, with nothing in memory yet.
    async fn admit_eventually(
        &'static self,
        kibibytes: usize,
    ) -> Result<SemaphorePermit<'static>, OverBudget> {
        let wanted = permits(kibibytes.min(self.total));
        self.free.acquire_many(wanted).await.map_err(|_| OverBudget)
    }
}

pub(super) static ORDINARY: MemoryBudget = MemoryBudget::new(32 << 10, 16 << 10, 64);

/// A request with the most values takes all of it.
static LARGE: MemoryBudget = MemoryBudget::new(56 << 10, 16 << 10, 256);

tokio::task_local! {
    static CURRENT: MemoryReservation;
}

/// The budget has no memory for a request.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many large requests are worked on")]
pub(in crate::http) struct OverBudget;

/// The memory that a request has reserved. All clones share it; dropping the last one releases it.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct MemoryReservation(Arc<Reserved>);

#[derive(Debug, Default)]
struct Reserved {
    permits: Mutex<SmallVec<[SemaphorePermit<'static>; 1]>>,
    /// Whether the body that is read counts as text alone.
    is_text_alone: AtomicBool,
    /// The connection that the request came through. Work that outlives it keeps no slot.
    guard: Weak<ConnectionGuard>,
}

impl MemoryReservation {
    /// Returns the reservation of a request that came through a connection.
    pub(super) fn of_connection(guard: &Arc<ConnectionGuard>) -> Self {
        Self(Arc::new(Reserved { guard: Arc::downgrade(guard), ..Reserved::default() }))
    }

    /// Returns the reservation of the current request. Work that outlives the request keeps it.
    pub(in crate::http) fn of_request() -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_default()
    }

    /// Returns a reservation of its own for a request that is made within the current one. What a page asks of one route
    /// is gone, but for its text, when it asks the next: reservations that lasted would keep each other waiting.
    pub(in crate::http) fn within_request() -> Self {
        let guard = Weak::clone(&Self::of_request().0.guard);
        Self(Arc::new(Reserved { guard, ..Reserved::default() }))
    }

    /// Handles a request with this reservation.
    pub(in crate::http) async fn scope<F: Future>(self, handling: F) -> F::Output {
        CURRENT.scope(self, handling).await
    }

    /// Reads a body for which the memory of its text alone is reserved. What makes values of it reserves their memory
    /// before, by [`Self::reserve_values`].
    pub(in crate::http) async fn while_text_alone<F: Future>(reading: F) -> F::Output {
        let of_request = Self::of_request();
        of_request.0.is_text_alone.store(true, Ordering::Relaxed);
        let read = reading.await;
        // Other bodies may be read for the same request, by a page that asks routes.
        of_request.0.is_text_alone.store(false, Ordering::Relaxed);
        read
    }

    /// Returns whether the body that is read counts as text alone.
    pub(super) fn is_text_alone(&self) -> bool {
        self.0.is_text_alone.load(Ordering::Relaxed)
    }

    /// Waits for the memory of the values of a text that has been reserved for as text alone.
    ///
    /// # Errors
    ///
    /// Returns an error if too much waits already, or it waited too long.
    pub(in crate::http) async fn reserve_values(&self, text: &[u8]) -> Result<(), OverBudget> {
        // Requests that kept a part while they wait for the rest could wait for each other.
        self.0.permits.lock().clear();
        let estimate = MemoryEstimate::of(text);
        if self.try_reserve(estimate) {
            return Ok(());
        }
        // As a body that waits for memory does from the start.
        if let Some(guard) = self.0.guard.upgrade() {
            guard.count_buffered(text.len());
        }
        let reserved = self.reserve(estimate).await;
        if let Some(guard) = self.0.guard.upgrade() {
            guard.release_buffered();
        }
        reserved
    }

    /// Waits for the memory of a parsed text.
    ///
    /// # Errors
    ///
    /// Returns an error if too much waits already, or it waited too long.
    async fn reserve(&self, estimate: MemoryEstimate) -> Result<(), OverBudget> {
        let permit = estimate.admit().await?;
        self.keep(permit);
        Ok(())
    }

    /// Reserves the memory of a parsed text if it is free now, and returns whether it is.
    pub(super) fn try_reserve(&self, estimate: MemoryEstimate) -> bool {
        let permit = estimate.budget().try_admit(estimate.kibibytes());
        permit.map(|it| self.keep(it)).is_some()
    }

    fn keep(&self, permit: SemaphorePermit<'static>) {
        self.0.permits.lock().push(permit);
    }

    /// Returns what reserves memory for rows of the store, for the current request.
    pub(in crate::http) fn for_rows() -> impl RowRoom + Send + 'static {
        let (reservation, runtime) = (Self::of_request(), Handle::current());
        StoredRows { reservation, wait: Wait::Limited, runtime }
    }

    /// Returns what reserves memory for an answer, apart from what the current request has: it is released with it.
    pub(in crate::http) fn for_answer() -> AnswerRoom {
        let (reservation, runtime) = (Self::default(), Handle::current());
        AnswerRoom(StoredRows { reservation, wait: Wait::Limited, runtime })
    }

    /// Returns what reserves memory for rows that are read one after the other, apart from the request's
    /// own. A list that has begun cannot become a 503, and comparisons would start again from the first
    /// row, so each row waits without a limit.
    pub(in crate::http) fn for_lists() -> impl RowRoom + Send + 'static {
        let (reservation, runtime) = (Self::default(), Handle::current());
        StoredRows { reservation, wait: Wait::Unlimited, runtime }
    }

    /// Releases what was reserved last beyond the memory of a text.
    fn shrink_last(&self, estimate: MemoryEstimate) {
        let mut permits = self.0.permits.lock();
        if let Some(last) = permits.last_mut() {
            drop(last.split(last.num_permits().saturating_sub(estimate.kibibytes())));
        }
    }

    /// Releases the memory of values: only the text is left.
    pub(in crate::http) fn keep_text(&self, bytes: usize) {
        let mut permits = self.0.permits.lock();
        let needed = MemoryEstimate { bytes, values: 0 }.kibibytes();
        permits.retain_mut(|it| {
            // An ordinary request waits for disks without a reservation: a few kilobytes for each connection.
            if it.num_permits() < IS_LARGE {
                return false;
            }
            drop(it.split(it.num_permits().saturating_sub(needed)));
            true
        });
    }
}

/// How long a reader of rows waits for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Limited,
    Unlimited,
}

/// Reserves memory for an answer while it is put together.
pub(in crate::http) struct AnswerRoom(StoredRows);

impl AnswerRoom {
    /// Waits for the memory of a part with so many bytes and values; returns whether it is there in time. Blocking.
    pub(in crate::http) fn admits(&self, bytes: usize, values: usize) -> bool {
        self.0.admits(MemoryEstimate { bytes, values })
    }
}

/// Reserves memory for the rows that are read for a request.
struct StoredRows {
    reservation: MemoryReservation,
    wait: Wait,
    runtime: Handle,
}

impl StoredRows {
    fn admits(&self, estimate: MemoryEstimate) -> bool {
        self.admits_beside(estimate, estimate.bytes)
    }

    /// Waits for memory, with a text of so many bytes in memory already.
    fn admits_beside(&self, estimate: MemoryEstimate, text: usize) -> bool {
        let admitted = self.runtime.block_on(async {
            match self.wait {
                Wait::Limited => estimate.admit_beside(text).await,
                Wait::Unlimited => estimate.admit_eventually().await,
            }
        });
        admitted.map(|permit| self.reservation.keep(permit)).is_ok()
    }

    /// Waits for what a text takes that has been read, unless it is so large that the most that it may take was waited
    /// for before.
    fn admits_read(&self, bytes: usize, estimate: MemoryEstimate) -> bool {
        if bytes < LARGE_ROW {
            return self.admits(estimate);
        }
        self.reservation.shrink_last(estimate);
        true
    }
}

impl RowRoom for StoredRows {
    /// Before a large row is read only its size is known, so the most that it can take is reserved.
    fn admits_bytes(&self, bytes: usize) -> bool {
        let most = MemoryEstimate { bytes, values: NODE_VALUES.min(bytes / 2) };
        bytes < LARGE_ROW || self.admits_beside(most, 0)
    }

    fn admits_row(&self, row: &[u8]) -> bool {
        self.admits_read(row.len(), MemoryEstimate::of(row))
    }

    fn admits_document(&self, text: &[u8]) -> bool {
        self.admits_read(text.len(), MemoryEstimate::of_document(text))
    }

    fn release(&self) {
        self.reservation.0.permits.lock().clear();
    }
}

/// The memory that a JSON text takes once it is parsed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemoryEstimate {
    bytes: usize,
    values: usize,
}

impl MemoryEstimate {
    fn of(text: &[u8]) -> Self {
        let mut all = Self::default();
        all.add(text);
        all
    }

    /// Returns the memory of a document in JSON or YAML. Where YAML has no brackets each line and each `-` may have a
    /// value, an alias may have all of them, and the parser keeps where each stands.
    fn of_document(text: &[u8]) -> Self {
        let mut all = Self::of(text);
        if !text.trim_ascii_start().starts_with(b"{") {
            let mut aliases = 0;
            for pair in text.array_windows() {
                match pair {
                    [_, b'\n' | b'\r'] | [b'-' | b'?', b' '] => all.values += 1,
                    [b' ' | b'[' | b',' | b':', b'*'] => aliases += 1,
                    _ => {}
                }
            }
            let values = (all.values + 1).saturating_mul(2).saturating_mul(1 + aliases);
            all.values = values.min(NODE_VALUES * 2);
        }
        all
    }

    /// Adds a part of the text. Commas within strings count as well: telling them apart takes longer than
    /// classifying a node.
    pub(super) fn add(&mut self, text: &[u8]) {
        self.add_text(text);
        self.values += count_separators(text);
    }

    /// Adds a part of a text of which no values are made.
    pub(super) fn add_text(&mut self, text: &[u8]) {
        self.bytes += text.len();
    }

    pub(super) fn is_nothing(self) -> bool {
        self.bytes == 0
    }

    /// A text is in memory as it was received, as it was parsed, and as it is stored or sent.
    fn kibibytes(self) -> usize {
        (self.bytes * TEXTS).saturating_add(self.values.saturating_mul(VALUE)).div_ceil(1024)
    }

    async fn admit(self) -> Result<SemaphorePermit<'static>, OverBudget> {
        self.admit_beside(self.bytes).await
    }

    /// Waits for the memory, with a text of so many bytes in memory already.
    async fn admit_beside(self, text: usize) -> Result<SemaphorePermit<'static>, OverBudget> {
        self.budget().admit(self.kibibytes(), text / 1024).await
    }

    async fn admit_eventually(self) -> Result<SemaphorePermit<'static>, OverBudget> {
        self.budget().admit_eventually(self.kibibytes()).await
    }

    fn budget(self) -> &'static MemoryBudget {
        if self.kibibytes() < IS_LARGE { &ORDINARY } else { &LARGE }
    }
}

/// Counts commas and opening brackets, sixteen bytes at a time: each of their places has a counter of its own.
fn count_separators(text: &[u8]) -> usize {
    let (blocks, rest) = text.as_chunks::<16>();
    // 255 is the most that a counter can hold.
    let in_blocks: usize = blocks.chunks(255).map(in_part).sum();
    let mut last = [0; 16];
    for (place, byte) in last.iter_mut().zip(rest) {
        *place = *byte;
    }
    in_blocks + in_part(&[last])
}

fn in_part(blocks: &[[u8; 16]]) -> usize {
    let mut counts = u8x16::ZERO;
    for block in blocks {
        let bytes = u8x16::new(*block);
        // `[` and `{` differ in one bit. What is found is -1.
        let opens = (bytes | u8x16::splat(0x20)).simd_eq(u8x16::splat(b'{'));
        counts -= bytes.simd_eq(u8x16::splat(b',')) | opens;
    }
    counts.to_array().into_iter().map(usize::from).sum()
}

fn permits(kibibytes: usize) -> u32 {
    u32::try_from(kibibytes).unwrap_or(u32::MAX)
}

/// A complete body that waits for memory.
pub(super) struct PendingReservation(Pin<Box<dyn Future<Output = Result<(), OverBudget>> + Send>>);

impl PendingReservation {
    pub(super) fn new(reservation: &MemoryReservation, estimate: MemoryEstimate) -> Self {
        let reservation = reservation.clone();
        Self(Box::pin(async move { reservation.reserve(estimate).await }))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), OverBudget>> {
        self.0.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the test waits for its task")]
    async fn requests_beyond_the_budget_wait_and_beyond_the_limit_of_waiting_ones_fail() {
        let budget: &'static MemoryBudget = Box::leak(Box::new(MemoryBudget::new(100, 10, 1)));
        let part = budget.admit(60, 5).await.unwrap();
        let waiting = tokio::spawn(budget.admit(500, 10));
        while budget.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(budget.admit(60, 0).await.is_err(), "too much waits");
        drop(part);
        let all = waiting.await.unwrap().unwrap();
        assert_eq!((all.num_permits(), budget.waiting.available_permits()), (100, 10));
    }

    #[test]
    fn every_comma_and_opening_bracket_counts() {
        let all: Vec<u8> = (0..=255).collect();
        for (text, count) in
            [(&b""[..], 0), (b"{\"a\": [1, 2], \"b\": {}}", 5), (&all, 3), (&[b'['; 9999], 9999)]
        {
            assert_eq!(count_separators(text), count);
        }
    }

    #[tokio::test]
    async fn the_last_clone_releases_the_reservation() {
        let reservation = MemoryReservation::default();
        let outliving = reservation.clone().scope(async { MemoryReservation::of_request() }).await;
        let large = vec![b','; 10_000];
        reservation.reserve(MemoryEstimate::of(&large)).await.unwrap();
        let taken = || -> usize {
            outliving.0.permits.lock().iter().map(SemaphorePermit::num_permits).sum()
        };
        assert_eq!(taken(), (10_000 * (VALUE + TEXTS)).div_ceil(1024));
        drop(reservation);
        outliving.keep_text(large.len());
        assert_eq!(taken(), (10_000 * TEXTS).div_ceil(1024));
    }

    #[tokio::test]
    async fn a_large_row_takes_what_it_may_take_until_it_is_read() {
        let reservation = MemoryReservation::default();
        let (taken, runtime) = (reservation.clone(), Handle::current());
        let taken = move || -> usize {
            taken.0.permits.lock().iter().map(SemaphorePermit::num_permits).sum()
        };
        let read = move || {
            let rows = StoredRows { reservation, wait: Wait::Limited, runtime };
            let row = vec![b'x'; 300 << 10];
            assert!(rows.admits_bytes(LARGE_ROW - 1));
            assert_eq!(taken(), 0, "a small row is read at once");
            assert!(rows.admits_bytes(row.len()));
            assert_eq!(taken(), 300 * TEXTS + (150 << 10) * VALUE / 1024);
            assert!(rows.admits_row(&row));
            assert_eq!(taken(), 300 * TEXTS);
            assert!(rows.admits_row(b"{}"));
            assert_eq!(taken(), 300 * TEXTS + 1);
            rows.release();
            assert_eq!(taken(), 0);
            // YAML has a value in each line; JSON has no more for its lines.
            let kibibytes =
                |bytes: usize, values: usize| (bytes * TEXTS + values * VALUE).div_ceil(1024);
            assert!(rows.admits_document(&b"a: 1\n".repeat(1000)));
            assert_eq!(taken(), kibibytes(5000, 2002));
            rows.release();
            // An alias may stand for all that is before it.
            assert!(rows.admits_document(b"x: &x [1, 2]\ny: *x"));
            assert_eq!(taken(), kibibytes(18, 16));
            rows.release();
            assert!(rows.admits_document(&b"- - - 1\r".repeat(100)));
            assert_eq!(taken(), kibibytes(800, 802));
            rows.release();
            assert!(rows.admits_document(&[b"{", &*b"\n".repeat(1000)].concat()));
            assert_eq!(taken(), kibibytes(1001, 1));
        };
        tokio::task::spawn_blocking(read).await.unwrap();
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the test waits for its task")]
    async fn a_list_waits_where_too_many_requests_wait_already() {
        let budget: &'static MemoryBudget = Box::leak(Box::new(MemoryBudget::new(100, 10, 1)));
        let all = budget.admit(100, 0).await.unwrap();
        let request = tokio::spawn(budget.admit(100, 10));
        while budget.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let list = tokio::spawn(budget.admit_eventually(500));
        drop(all);
        drop(request.await.unwrap().unwrap());
        assert_eq!(list.await.unwrap().unwrap().num_permits(), 100);
    }

    #[test]
    fn ordinary_facts_are_no_large_request() {
        let facts = vec![r#""name": {"a": "text of a fact", "b": [1, 2]}"#; 600].join(",");
        assert!(facts.len() > 24_000);
        assert!(MemoryEstimate::of(facts.as_bytes()).kibibytes() < IS_LARGE);
    }
}
