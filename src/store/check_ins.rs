//! The store of check-ins, as the rest of the crate sees it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::check_in::{
    CheckIn, Content, FactsPresence, ListedCheckIn, Noted, Received, Row, Stored, TrustedRow,
};
use super::database::{Database, Fresh, Keeping, StoreLimits};
use super::error::{StoreError, StoreFault};
use super::opening::{find_put_aside, open, open_existing, put_aside};
use super::queue::{CheckInQueue, Receipt, Urgency};
use crate::facts::{RowRoom, Unlimited};
use crate::model::{Map, NODE_VALUES, Value, has_more_values};
use crate::telemetry::{DropReason, Metrics};

/// How long check-ins are collected before they are written together.
const COLLECT: Duration = Duration::from_millis(200);

/// How many KiB may wait to be written.
const ROOM: usize = 32 << 10;

/// How long room in the queue is waited for, and then the disk.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a read waits for the file to be opened after the start.
const OPENING: Duration = Duration::from_secs(5);

/// How long after a failure the store is tried again, at first and at the most.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// How often nodes are forgotten that were not seen, and how soon after the start.
const HOUSEKEEPING: Duration = Duration::from_mins(1);
const FIRST_HOUSEKEEPING: Duration = Duration::from_mins(10);

/// From how many bytes on a row is large: room for it is waited for before it is read.
pub(crate) const LARGE_ROW: usize = 256 << 10;

/// How many bytes of rows are read at a time: a list that is being sent holds on to them.
const READ: usize = 256 << 10;

/// How many JSON values a row may have: those of a request, and what stands around them.
const ROW_VALUES: usize = NODE_VALUES + 100;

/// How many bytes of check-ins are kept in memory, where there is no file.
const IN_MEMORY: u64 = 64 << 20;

/// Where and how much is kept.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The file; memory without one.
    pub path: Option<PathBuf>,
    /// How many bytes of the file are kept in memory.
    pub cache: usize,
    /// How much is kept.
    pub limits: StoreLimits,
}

/// What is wrong with the store, for people.
#[derive(Clone, Debug, Default)]
pub struct StoreHealth {
    /// Why check-ins cannot be kept or read now.
    pub failing: Option<StoreError>,
    /// The damaged file that was put aside, as long as it is there.
    pub put_aside: Option<PathBuf>,
}

/// The latest classification request of each node.
#[derive(Clone, Debug)]
pub struct CheckIns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: StoreSettings,
    metrics: Arc<Metrics>,
    started: (Instant, Timestamp),
    room: Arc<Semaphore>,
    queue: Mutex<CheckInQueue>,
    changed: Condvar,
    state: Mutex<StoreState>,
    opened: Condvar,
    /// Held by the one who writes.
    turn: Mutex<()>,
    /// Held while a row is read for its trusted data alone.
    skimming: Mutex<()>,
}

#[derive(Debug)]
struct StoreState {
    phase: FileState,
    health: StoreHealth,
}

#[derive(Debug)]
enum FileState {
    /// It is opened for the first time.
    Opening,
    Open(Arc<Database>),
    /// It failed, and is opened again soon.
    Closed(StoreError),
}

impl CheckIns {
    /// Makes a store, which [`Self::keep_writing`] opens.
    pub fn new(mut settings: StoreSettings, metrics: Arc<Metrics>) -> Self {
        if settings.path.is_none() {
            settings.limits.bytes = settings.limits.bytes.min(IN_MEMORY);
        }
        let put_aside = settings.path.as_deref().and_then(find_put_aside);
        let health = StoreHealth { failing: None, put_aside };
        #[expect(clippy::disallowed_methods, reason = "time passes for a store")]
        let started = (Instant::now(), Timestamp::now());
        Self(Arc::new(Inner {
            settings,
            metrics,
            started,
            room: Arc::new(Semaphore::new(ROOM)),
            queue: Mutex::default(),
            changed: Condvar::new(),
            state: Mutex::new(StoreState { phase: FileState::Opening, health }),
            opened: Condvar::new(),
            turn: Mutex::default(),
            skimming: Mutex::default(),
        }))
    }

    /// Returns whether what is kept outlives the process.
    pub fn is_durable(&self) -> bool {
        self.0.settings.path.is_some()
    }

    /// Notes a check-in; it is written soon, and read at once. What cannot be kept is counted.
    pub fn note<'n>(&self, check_in: impl Into<Noted<'n>>) {
        let check_in = check_in.into();
        if let Some(row) = Row::of(&check_in) {
            self.0.note(&check_in.node.name, row);
        }
    }

    /// Notes a check-in whose facts were not read; it is written soon, and read at once.
    pub fn note_received(&self, received: &Received<'_>) {
        if let Some(row) = Row::of_received(*received) {
            self.0.note(received.name, row);
        }
    }

    /// Keeps a check-in: it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not known to be on disk.
    pub async fn keep(&self, received: &Received<'_>) -> Result<(), StoreError> {
        let row = Row::of_received(*received).ok_or_else(|| {
            StoreError::new(StoreFault::Io, "written", "no JSON can be made of it")
        })?;
        if let Some(error) = self.0.state().health.failing.clone() {
            return Err(error);
        }
        let room = Arc::clone(&self.0.room).acquire_many_owned(kibibytes(&row));
        let room = tokio::time::timeout(PATIENCE, room).await.ok().and_then(Result::ok);
        let room = room.ok_or_else(|| {
            StoreError::new(
                StoreFault::Busy,
                "written",
                "too many wait to be written; try again soon",
            )
        })?;
        let (receipt, written) = oneshot::channel();
        self.0.put(received.name, row, room, Some(receipt));
        match tokio::time::timeout(PATIENCE, written).await {
            Ok(Ok(written)) => written,
            Ok(Err(_)) => Err(StoreError::new(StoreFault::Io, "written", "the daemon stops")),
            Err(_) => Err(StoreError::new(
                StoreFault::Io,
                "written",
                format!("the disk did not answer for {} s", PATIENCE.as_secs()),
            )),
        }
    }

    /// Returns what is known of a node. Blocking.
    #[cfg(test)]
    pub fn get(&self, name: &str) -> Result<Stored, StoreError> {
        self.get_within(name, &Unlimited)
    }

    /// Returns what is known of a node, if there is room for what its row takes. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read, or there is no room.
    pub fn get_within(&self, name: &str, room: &dyn RowRoom) -> Result<Stored, StoreError> {
        let check_in: Option<CheckIn> = self.0.latest(name, room)?;
        let lost = self.0.lost(name, check_in.as_ref());
        Ok(Stored { check_in, lost })
    }

    /// Returns the trusted data that are known of a node, whatever facts it has. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn trusted(&self, name: &str) -> Result<Map<String, Value>, StoreError> {
        // The facts are skipped, and one row is in memory at a time.
        let _one = self.0.skimming.lock();
        let row: Option<TrustedRow> = self.0.latest(name, &Unlimited)?;
        Ok(row.map(|it| it.node.trusted).unwrap_or_default())
    }

    /// Returns why a check-in may be less than what was known of its node, if it may.
    pub fn lost(&self, check_in: &CheckIn) -> Option<StoreError> {
        self.0.lost(&check_in.node.name, Some(check_in))
    }

    /// Returns the name that so many nodes stand before, by name. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn name_at(&self, offset: usize) -> Result<Option<String>, StoreError> {
        self.0.flush()?;
        let database = self.0.database()?;
        database.name_at(offset).map_err(|error| self.0.fail(&database, error))
    }

    /// Returns some check-ins by name, from a name on; none after the last. Small rows come as many
    /// as fit into [`READ`], a large one comes alone, once there is room for it. A row that cannot be
    /// read is an error of its own. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read, or there is no room.
    pub fn some_from(
        &self,
        name: &str,
        room: &dyn RowRoom,
    ) -> Result<impl Iterator<Item = ListedCheckIn> + Send + use<>, StoreError> {
        let database = self.0.database()?;
        let failed = |error| self.0.fail(&database, error);
        let (mut large, mut from) = (None, name.to_owned());
        while let Some((name, bytes)) = database.first_from(&from).map_err(failed)?
            && bytes >= LARGE_ROW
        {
            large = self.0.read_large(&database, &name, bytes, room)?;
            if large.is_some() {
                break;
            }
            // The node was forgotten after its name was read; the next large row must not wait for memory
            // that this thread holds.
            room.release();
            from = after(&name);
        }
        let rows = match large {
            Some(_) => Vec::new(),
            None => database.rows(&from, READ).map_err(failed)?,
        };
        let small = rows.into_iter();
        let small = small.map(|(name, row)| ListedCheckIn { check_in: read(&name, &row), name });
        Ok(large.into_iter().chain(small))
    }

    /// Calls `each` with every check-in, by name; `each` keeps no large one. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read, or there is no room.
    pub fn for_each(
        &self,
        room: &dyn RowRoom,
        mut each: impl FnMut(ListedCheckIn),
    ) -> Result<(), StoreError> {
        self.0.flush()?;
        let mut from = Some(String::new());
        while let Some(name) = from.take() {
            for listed in self.some_from(&name, room)? {
                from = Some(after(&listed.name));
                each(listed);
            }
            room.release();
        }
        Ok(())
    }

    /// Opens the store and writes what comes in until stopped; calls `tell` when something is wrong
    /// and when it is well again. Blocking.
    pub fn keep_writing(&self, tell: &dyn Fn(&StoreHealth)) {
        let mut told = String::new();
        let mut retry = RETRY.0;
        let mut housekeeping = FIRST_HOUSEKEEPING;
        loop {
            let done = self.0.take_turn();
            let health = self.0.state().health.clone();
            let now = format!("{health:?}");
            if now != told {
                tell(&health);
                told = now;
            }
            let mut queue = self.0.queue();
            if queue.stopping && (queue.is_empty() || done.is_err()) {
                queue.reject_promised(&StoreError::new(
                    StoreFault::Io,
                    "written",
                    "the daemon stops",
                ));
                return;
            }
            if done.is_err() {
                let still = |it: &mut CheckInQueue| !it.stopping;
                self.0.changed.wait_while_for(&mut queue, still, retry);
                retry = (retry * 2).min(RETRY.1);
                continue;
            }
            retry = RETRY.0;
            let idle = |it: &mut CheckInQueue| {
                it.is_empty() && !it.stopping && it.urgency == Urgency::CanWait
            };
            let waited = self.0.changed.wait_while_for(&mut queue, idle, HOUSEKEEPING);
            if !waited.timed_out() {
                let more = |it: &mut CheckInQueue| !it.stopping && it.urgency == Urgency::CanWait;
                self.0.changed.wait_while_for(&mut queue, more, COLLECT);
            }
            drop(queue);
            if self.0.started.0.elapsed() > housekeeping {
                housekeeping = self.0.started.0.elapsed() + HOUSEKEEPING;
                self.0.forget();
            }
        }
    }

    /// Ends the writing when what waits is written.
    pub fn stop(&self) {
        self.0.queue().stopping = true;
        self.0.changed.notify_all();
    }
}

/// Returns the first name that can stand behind another.
pub(crate) fn after(name: &str) -> String {
    format!("{name}\0")
}

fn admit(is_admitted: bool) -> Result<(), StoreError> {
    let reason = "too many large nodes are read; try again soon";
    is_admitted.then_some(()).ok_or_else(|| StoreError::new(StoreFault::Busy, "read", reason))
}

fn kibibytes(row: &Row) -> u32 {
    u32::try_from(row.bytes.len() / 1024 + 1).unwrap_or(u32::MAX)
}

/// Reads a row. An older version kept rows that take more memory than a node may.
fn read<R: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<R, StoreError> {
    if has_more_values(bytes, ROW_VALUES) {
        let reason = format!(
            "the row of `{name}` has over {NODE_VALUES} JSON values, the most that one node may have; the node is known again when it checks in with fewer"
        );
        return Err(StoreError::new(StoreFault::Row, "read", reason));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        StoreError::new(
            StoreFault::Row,
            "read",
            format!("the row of `{name}` makes no sense: {error}"),
        )
    })
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, CheckInQueue> {
        self.queue.lock()
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock()
    }

    fn note(&self, name: &str, row: Row) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(kibibytes(&row)) else {
            let failing = self.state().health.failing.is_some();
            let why = if failing { DropReason::StorageFailed } else { DropReason::QueueFull };
            self.metrics.count_dropped_check_ins(why, 1);
            return;
        };
        self.put(name, row, room, None);
    }

    fn put(&self, name: &str, row: Row, room: OwnedSemaphorePermit, receipt: Option<Receipt>) {
        let keeping = if receipt.is_some() { Keeping::Promised } else { Keeping::Noted };
        let fresh = Fresh { row: Arc::new(row), keeping };
        let mut queue = self.queue();
        // The writer sleeps until there is something, and then waits for more: waking it each time
        // would cost more than all the rest.
        let wakes = queue.is_empty() || receipt.is_some();
        let before = queue.put(name, fresh, room, receipt);
        drop(queue);
        // Giving back so much memory takes time in which others can go on.
        drop(before);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Returns what the row of a node says, if there is room for it.
    fn latest<R: Content>(&self, name: &str, room: &dyn RowRoom) -> Result<Option<R>, StoreError> {
        let admit_and_read = |bytes: &[u8]| {
            admit(room.admits_bytes(bytes.len()))?;
            admit(room.admits_row(bytes))?;
            read(name, bytes)
        };
        let waiting = self.queue().get(name);
        if let Some(fresh) = waiting.as_ref().filter(|it| it.row.facts == FactsPresence::Some) {
            return admit_and_read(&fresh.row.bytes).map(Some);
        }
        let database = self.database()?;
        let failed = |error| self.fail(&database, error);
        let bytes = database.row_bytes(name).map_err(failed)?.unwrap_or_default();
        admit(room.admits_bytes(bytes))?;
        let found = if bytes < LARGE_ROW {
            let row = database.with_row(name, <[u8]>::to_vec).map_err(failed)?;
            row.map(|it| admit(room.admits_row(&it)).and_then(|()| read(name, &it)))
        } else {
            // The room was waited for, so nothing is waited for while the row is held.
            let read = |it: &[u8]| admit(room.admits_row(it)).and_then(|()| read(name, it));
            database.with_row(name, read).map_err(failed)?
        };
        let found: Option<R> = found.transpose()?;
        // A request without facts does not hide facts that are known.
        match (found, waiting) {
            (Some(found), Some(_)) if found.has_facts() => Ok(Some(found)),
            (_, Some(fresh)) => admit_and_read(&fresh.row.bytes).map(Some),
            (found, None) => Ok(found),
        }
    }

    /// Returns the check-in of a large row once there is room for it; none if it is gone.
    fn read_large(
        &self,
        database: &Arc<Database>,
        name: &str,
        bytes: usize,
        room: &dyn RowRoom,
    ) -> Result<Option<ListedCheckIn>, StoreError> {
        admit(room.admits_bytes(bytes))?;
        let read = |row: &[u8]| {
            // A row that was replaced by a small one needs no more than was admitted.
            if row.len() >= LARGE_ROW {
                admit(room.admits_row(row))?;
            }
            Ok(ListedCheckIn { name: name.to_owned(), check_in: read(name, row) })
        };
        let listed = database.with_row(name, read).map_err(|error| self.fail(database, error))?;
        listed.transpose()
    }

    /// Returns an error if a damaged file is put aside that may hold facts or trusted data which the
    /// check-in lacks.
    fn lost(&self, name: &str, check_in: Option<&CheckIn>) -> Option<StoreError> {
        let is_whole = |it: &CheckIn| !it.node.fact.is_empty() && !it.node.trusted.is_empty();
        if check_in.is_some_and(is_whole) {
            return None;
        }
        let path = self.put_aside()?;
        let reason = format!(
            "`{}` was damaged and put aside, and may hold facts or trusted data of `{name}`; the node is known again when it checks in with facts and trusted data, or when that file is removed",
            path.display()
        );
        Some(StoreError::new(StoreFault::PutAside, "read", reason))
    }

    /// Returns the open file; waits for it just after the start.
    fn database(&self) -> Result<Arc<Database>, StoreError> {
        let opening = |it: &mut StoreState| matches!(it.phase, FileState::Opening);
        let mut state = self.state();
        self.opened.wait_while_for(&mut state, opening, OPENING);
        match &state.phase {
            FileState::Open(database) => Ok(Arc::clone(database)),
            FileState::Closed(error) => Err(error.clone()),
            FileState::Opening => Err(StoreError::new(
                StoreFault::Busy,
                "read",
                "they are being opened; try again soon",
            )),
        }
    }

    /// Returns the open file, opening it where it is closed, and moving it where its name is gone.
    fn ready(&self) -> Result<Arc<Database>, StoreError> {
        let known = match &self.state().phase {
            FileState::Open(database) => Some(Arc::clone(database)),
            FileState::Opening | FileState::Closed(_) => None,
        };
        let StoreSettings { path, cache, limits } = &self.settings;
        // Another process, or a person, may have made the file meanwhile.
        let has_file = path.as_deref().is_some_and(Path::exists);
        let known = known.filter(|it| !(it.is_in_memory() && has_file));
        let opened = match known {
            Some(database) if database.is_in_place() => return Ok(database),
            Some(database) => {
                tracing::warn!("the file of the check-ins was removed; writing it once more");
                let replacement = open(path.as_deref(), *cache)?;
                database.copy_to(&replacement, limits)?;
                replacement
            }
            None => match open_existing(path.as_deref(), *cache) {
                Ok(opened) => opened,
                Err(error) => {
                    self.state().phase = FileState::Closed(error.clone());
                    self.opened.notify_all();
                    return Err(error);
                }
            },
        };
        Ok(self.use_from_now_on(opened))
    }

    /// Returns the open file for writing: the first write makes it.
    fn ready_to_write(&self) -> Result<Arc<Database>, StoreError> {
        let database = self.ready()?;
        match &self.settings.path {
            Some(path) if database.is_in_memory() => {
                let made = open(Some(path), self.settings.cache);
                let made = made.map_err(|error| self.fail(&database, error))?;
                Ok(self.use_from_now_on(made))
            }
            _ => Ok(database),
        }
    }

    fn use_from_now_on(&self, opened: Database) -> Arc<Database> {
        if let Ok(size) = opened.size() {
            self.metrics.set_check_ins(size.nodes, size.bytes);
        }
        let opened = Arc::new(opened);
        let mut state = self.state();
        state.health.put_aside = self.settings.path.as_deref().and_then(find_put_aside);
        state.phase = FileState::Open(Arc::clone(&opened));
        self.opened.notify_all();
        opened
    }

    /// Writes what waits before all is read; only the writer retries what failed.
    fn flush(&self) -> Result<(), StoreError> {
        let failing = self.state().health.failing.clone();
        match failing {
            Some(error) => Err(error),
            None => self.take_turn(),
        }
    }

    /// Writes what waits, and notes whether that works.
    fn take_turn(&self) -> Result<(), StoreError> {
        let turn = self.turn.lock();
        let was_failing = self.state().health.failing.is_some();
        // A damaged file makes the database panic, even while it is closed.
        let done = catch_unwind(AssertUnwindSafe(|| self.write_batch()));
        let done = done.unwrap_or_else(|_| {
            Err(StoreError::new(StoreFault::Io, "written", "the database failed; reopening it"))
        });
        let mut state = self.state();
        match &done {
            Ok(()) if was_failing => {
                tracing::info!("check-ins are stored again");
                state.health.failing = None;
            }
            Ok(()) => {}
            Err(error) => {
                if !was_failing {
                    tracing::error!(%error, "storing check-ins failed; retrying");
                }
                self.metrics.count_store_failure();
                state.health.failing = Some(error.clone());
                drop(state);
                self.queue().reject_promised(error);
                // What is on disk can be read though nothing can be written.
                self.ready().ok();
            }
        }
        drop(turn);
        done
    }

    fn write_batch(&self) -> Result<(), StoreError> {
        self.ready()?;
        if self.state().health.failing.is_some() {
            let database = self.ready_to_write()?;
            database.probe().map_err(|error| self.fail(&database, error))?;
        }
        {
            let mut queue = self.queue();
            if queue.is_empty() {
                queue.urgency = Urgency::CanWait;
                return Ok(());
            }
        }
        let database = self.ready_to_write()?;
        let mut batch = self.queue().take();
        let written = database.write(batch.rows(), &self.settings.limits);
        let written = written.map_err(|error| self.fail(&database, error));
        // What went to a deleted file is lost when the process ends, so it does not count as written.
        let written = written.and_then(|it| self.ready().map(|_| it));
        match written {
            Ok((refused, size)) => {
                let refused: Vec<String> = refused.into_iter().map(str::to_owned).collect();
                self.metrics.set_check_ins(size.nodes, size.bytes);
                self.metrics.count_check_ins(batch.rows.len() - refused.len());
                if !refused.is_empty() {
                    self.metrics.count_dropped_check_ins(DropReason::Limit, refused.len());
                    tracing::warn!(
                        nodes = refused.len(),
                        "check-ins are not kept: the limits of the store are reached"
                    );
                }
                batch.answer(|name| {
                    let reason = "the store has as many nodes or bytes as its limits allow";
                    let refused = refused.iter().any(|it| it == name);
                    let error = || StoreError::new(StoreFault::Limit, "written", reason);
                    if refused { Err(error()) } else { Ok(()) }
                });
                self.queue().written();
                Ok(())
            }
            Err(error) => {
                batch.answer(|_| Err(error.clone()));
                self.queue().put_back(batch);
                Err(error)
            }
        }
    }

    /// Notes that an operation on an open file failed: one that cannot be used any more is closed,
    /// and put aside where it is damaged.
    fn fail(&self, database: &Arc<Database>, error: StoreError) -> StoreError {
        if !error.ends_the_file() {
            return error;
        }
        let mut state = self.state();
        let is_this = matches!(&state.phase, FileState::Open(open) if Arc::ptr_eq(open, database));
        if !is_this {
            return error;
        }
        if let Some(path) = self.settings.path.as_deref().filter(|_| error.calls_for_a_new_file()) {
            // Where this fails, opening it fails too, and says so.
            put_aside(path, &error).ok();
            state.health.put_aside = find_put_aside(path);
        }
        state.phase = FileState::Closed(error.clone());
        drop(state);
        // The writer opens it again.
        self.queue().urgency = Urgency::AtOnce;
        self.changed.notify_one();
        error
    }

    /// Returns the file that was put aside, if it is still there.
    fn put_aside(&self) -> Option<PathBuf> {
        let mut state = self.state();
        if state.health.put_aside.as_ref().is_some_and(|it| !it.exists()) {
            state.health.put_aside = self.settings.path.as_deref().and_then(find_put_aside);
        }
        state.health.put_aside.clone()
    }

    /// Forgets nodes that were not seen for long.
    fn forget(&self) {
        self.put_aside();
        let (instant, timestamp) = self.started;
        let now = Timestamp::now();
        let passed = now.as_second().saturating_sub(timestamp.as_second());
        let elapsed = i64::try_from(instant.elapsed().as_secs()).unwrap_or(i64::MAX);
        // No node is forgotten since the clock was set.
        if passed.abs_diff(elapsed) > 86_400 {
            return;
        }
        let after = i64::try_from(self.settings.limits.forget_after.as_secs()).unwrap_or(i64::MAX);
        let before = now.as_second().saturating_sub(after);
        let Ok(database) = self.database() else { return };
        let _turn = self.turn.lock();
        match database.forget(before) {
            Ok(0) => {}
            Ok(nodes) => tracing::info!(nodes, "nodes that were not seen for long are forgotten"),
            Err(error) => {
                self.fail(&database, error);
            }
        }
    }
}

#[cfg(test)]
mod tests;
