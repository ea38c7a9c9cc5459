//! The memory that requests take while they are worked on.
//!
//! What a text of JSON says takes many times the memory of the text. So a body that has arrived waits
//! until there is room for what will be made of it, and the room is given back when the answer is made
//! and nothing works on the request any more. Ordinary requests never wait for large ones.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::facts::RowRoom;
use crate::model::NODE_VALUES;
use crate::store::LARGE_ROW;

/// From how many KiB on a request is large.
const IS_LARGE: usize = 2 << 10;

/// How long a request waits.
const WAIT: Duration = Duration::from_secs(30);

/// What a value takes, in bytes: `{"":0}` are two.
const VALUE: usize = 300;

/// How often a text is in memory.
const TEXTS: usize = 3;

/// The room of one kind of requests.
struct Rooms {
    room: Semaphore,
    /// How many KiB it has.
    most: usize,
    /// The KiB of texts that wait; more get 503.
    waiting: Semaphore,
    /// For how many KiB one that waits counts at least, since a thread may wait with it.
    least: usize,
}

impl Rooms {
    const fn new(most: usize, waiting: usize, least: usize) -> Self {
        let (room, waiting) = (Semaphore::const_new(most), Semaphore::const_new(waiting));
        Self { room, most, waiting, least }
    }

    /// Waits for so many KiB, with a text of so many KiB in memory. One that takes more than all has all.
    async fn admit(
        &'static self,
        kibibytes: usize,
        text: usize,
    ) -> Result<SemaphorePermit<'static>, NoRoom> {
        let wanted = permits(kibibytes.min(self.most));
        if let Ok(permit) = self.room.try_acquire_many(wanted) {
            return Ok(permit);
        }
        let text = permits(text.max(self.least));
        let _waiting = self.waiting.try_acquire_many(text).map_err(|_| NoRoom)?;
        let waited = tokio::time::timeout(WAIT, self.room.acquire_many(wanted)).await;
        waited.ok().and_then(Result::ok).ok_or(NoRoom)
    }

    /// Waits for so many KiB however long it takes, with nothing in memory yet.
    async fn admit_at_last(
        &'static self,
        kibibytes: usize,
    ) -> Result<SemaphorePermit<'static>, NoRoom> {
        let wanted = permits(kibibytes.min(self.most));
        self.room.acquire_many(wanted).await.map_err(|_| NoRoom)
    }
}

static ORDINARY: Rooms = Rooms::new(32 << 10, 16 << 10, 64);

/// A request with as many values as one may have has all of it.
static LARGE: Rooms = Rooms::new(56 << 10, 16 << 10, 256);

tokio::task_local! {
    static CURRENT: Room;
}

/// There is no room for what a request brings.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many large requests are worked on")]
pub(in crate::http) struct NoRoom;

/// The room that a request takes. All clones share it; the last one gives it back.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct Room(Arc<Mutex<Vec<SemaphorePermit<'static>>>>);

impl Room {
    /// Returns that of the request that is being answered. What outlives the request holds on to it.
    pub(in crate::http) fn of_request() -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_default()
    }

    /// Answers a request within a room of its own.
    pub(super) async fn scope<F: Future>(self, answering: F) -> F::Output {
        CURRENT.scope(self, answering).await
    }

    /// Waits for what a text of JSON takes once it is read.
    ///
    /// # Errors
    ///
    /// Returns an error if too much waits already, or it waited too long.
    async fn make(&self, expansion: Expansion) -> Result<(), NoRoom> {
        let permit = expansion.admit().await?;
        self.keep(permit);
        Ok(())
    }

    fn keep(&self, permit: SemaphorePermit<'static>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(permit);
    }

    /// Returns the room for a row of the store. It belongs to the request that is being answered.
    pub(in crate::http) fn for_rows() -> impl RowRoom + Send + 'static {
        let (room, runtime) = (Self::of_request(), Handle::current());
        StoredRows { room, patience: Patience::Limited, runtime }
    }

    /// Returns the room for rows that are read one after the other, apart from that of the request. An
    /// answer that has begun cannot become a 503, so it waits for each row as long as it must.
    pub(in crate::http) fn for_lists() -> impl RowRoom + Send + 'static {
        let (room, runtime) = (Self::default(), Handle::current());
        StoredRows { room, patience: Patience::Unlimited, runtime }
    }

    /// Gives back what was taken last beyond what a text needs.
    fn shrink_last(&self, expansion: Expansion) {
        let mut permits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = permits.last_mut() {
            drop(last.split(last.num_permits().saturating_sub(expansion.kibibytes())));
        }
    }

    /// Gives back what was taken for values: only the text is left.
    pub(in crate::http) fn keep_text(&self, bytes: usize) {
        let mut permits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let needed = Expansion { bytes, values: 0 }.kibibytes();
        permits.retain_mut(|it| {
            // What is ordinary waits for disks without a room: a few kilobytes for each connection.
            if it.num_permits() < IS_LARGE {
                return false;
            }
            drop(it.split(it.num_permits().saturating_sub(needed)));
            true
        });
    }
}

/// How long a reader of rows waits for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Limited,
    Unlimited,
}

/// The room that rows take which are read for a request.
struct StoredRows {
    room: Room,
    patience: Patience,
    runtime: Handle,
}

impl StoredRows {
    fn admits(&self, expansion: Expansion) -> bool {
        let room = async {
            match self.patience {
                Patience::Limited => expansion.admit().await,
                Patience::Unlimited => expansion.admit_at_last().await,
            }
        };
        self.runtime.block_on(room).map(|permit| self.room.keep(permit)).is_ok()
    }
}

impl RowRoom for StoredRows {
    /// Before it is read nothing is known of a large row but its size, so it takes what it may take at
    /// the most.
    fn admits_bytes(&self, bytes: usize) -> bool {
        bytes < LARGE_ROW || self.admits(Expansion { bytes, values: NODE_VALUES.min(bytes / 2) })
    }

    fn admits_row(&self, row: &[u8]) -> bool {
        if row.len() < LARGE_ROW {
            return self.admits(Expansion::of(row));
        }
        self.room.shrink_last(Expansion::of(row));
        true
    }

    fn release(&self) {
        self.room.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What a text of JSON takes once it is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expansion {
    bytes: usize,
    values: usize,
}

impl Expansion {
    fn of(text: &[u8]) -> Self {
        let mut all = Self::default();
        all.add(text);
        all
    }

    /// Adds a part of the text. Commas within strings count, too: telling them apart takes longer than
    /// classifying a node.
    pub(super) fn add(&mut self, text: &[u8]) {
        self.bytes += text.len();
        self.values += text.iter().filter(|it| matches!(it, b',' | b'[' | b'{')).count();
    }

    pub(super) fn is_nothing(self) -> bool {
        self.bytes == 0
    }

    /// Texts are in memory as they came, as they were read, and as they are written down or answered.
    fn kibibytes(self) -> usize {
        (self.bytes * TEXTS).saturating_add(self.values.saturating_mul(VALUE)).div_ceil(1024)
    }

    async fn admit(self) -> Result<SemaphorePermit<'static>, NoRoom> {
        self.rooms().admit(self.kibibytes(), self.bytes / 1024).await
    }

    async fn admit_at_last(self) -> Result<SemaphorePermit<'static>, NoRoom> {
        self.rooms().admit_at_last(self.kibibytes()).await
    }

    fn rooms(self) -> &'static Rooms {
        if self.kibibytes() < IS_LARGE { &ORDINARY } else { &LARGE }
    }
}

fn permits(kibibytes: usize) -> u32 {
    u32::try_from(kibibytes).unwrap_or(u32::MAX)
}

/// A body that has arrived, and waits for room.
pub(super) struct Admission(Pin<Box<dyn Future<Output = Result<(), NoRoom>> + Send>>);

impl Admission {
    pub(super) fn new(room: &Room, expansion: Expansion) -> Self {
        let room = room.clone();
        Self(Box::pin(async move { room.make(expansion).await }))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NoRoom>> {
        self.0.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the test waits for its task")]
    async fn what_does_not_fit_waits_and_more_than_may_wait_is_refused() {
        let rooms: &'static Rooms = Box::leak(Box::new(Rooms::new(100, 10, 1)));
        let part = rooms.admit(60, 5).await.unwrap();
        let waiting = tokio::spawn(rooms.admit(500, 10));
        while rooms.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(rooms.admit(60, 0).await.is_err(), "too much waits");
        drop(part);
        let all = waiting.await.unwrap().unwrap();
        assert_eq!((all.num_permits(), rooms.waiting.available_permits()), (100, 10));
    }

    #[tokio::test]
    async fn the_last_who_holds_on_to_a_request_gives_its_room_back() {
        let room = Room::default();
        let outliving = room.clone().scope(async { Room::of_request() }).await;
        let large = vec![b','; 10_000];
        room.make(Expansion::of(&large)).await.unwrap();
        let taken = || -> usize {
            outliving.0.lock().unwrap().iter().map(SemaphorePermit::num_permits).sum()
        };
        assert_eq!(taken(), (10_000 * (VALUE + TEXTS)).div_ceil(1024));
        drop(room);
        outliving.keep_text(large.len());
        assert_eq!(taken(), (10_000 * TEXTS).div_ceil(1024));
    }

    #[tokio::test]
    async fn a_large_row_takes_what_it_may_take_until_it_is_read() {
        let room = Room::default();
        let (taken, runtime) = (room.clone(), Handle::current());
        let taken = move || -> usize {
            taken.0.lock().unwrap().iter().map(SemaphorePermit::num_permits).sum()
        };
        let read = move || {
            let rows = StoredRows { room, patience: Patience::Limited, runtime };
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
        };
        tokio::task::spawn_blocking(read).await.unwrap();
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the test waits for its task")]
    async fn a_list_waits_where_too_many_requests_wait_already() {
        let rooms: &'static Rooms = Box::leak(Box::new(Rooms::new(100, 10, 1)));
        let all = rooms.admit(100, 0).await.unwrap();
        let request = tokio::spawn(rooms.admit(100, 10));
        while rooms.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let list = tokio::spawn(rooms.admit_at_last(500));
        drop(all);
        drop(request.await.unwrap().unwrap());
        assert_eq!(list.await.unwrap().unwrap().num_permits(), 100);
    }

    #[test]
    fn ordinary_facts_are_no_large_request() {
        let facts = vec![r#""name": {"a": "text of a fact", "b": [1, 2]}"#; 600].join(",");
        assert!(facts.len() > 24_000);
        assert!(Expansion::of(facts.as_bytes()).kibibytes() < IS_LARGE);
    }
}
