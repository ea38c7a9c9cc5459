//! The thread that writes check-ins.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};

use super::batch::WriteOutcomes;
use super::database::{Database, StoreLimits};
use super::error::{StoreError, StoreFault};
use super::file::{StoreFile, StoreHealth};
use super::forgotten::Deletion;
use super::former::{self, Import, RowsKept};
use super::pending::{BETWEEN_OPENINGS, Pending};
use super::prepared::{Preparation, PreparedNode, WriterId};
use super::queue::{Fresh, Urgency, WriteBatch};
use super::schedule::{HOUSEKEEPING, HousekeepingSchedule};
use super::settings::StoreSettings;
use crate::priority;
use crate::telemetry::{DropReason, Metrics};

/// How long after a failure the store is tried again, at first and at the most.
const RETRY: (Duration, Duration) = (BETWEEN_OPENINGS, Duration::from_secs(10));

/// How many nodes, and bytes of facts, are written in one transaction at most.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 8 << 20;

/// How much the clock of the server may differ before the log says so.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(1);

/// Whether the file was examined for damage since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Examination {
    Due,
    Begun,
}

/// Whether there was something to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrote {
    Some,
    Nothing,
}

/// Writes what waits to the file. Reads of the whole store have it write before them.
#[derive(Debug)]
pub(super) struct StoreWriter {
    file: Arc<StoreFile>,
    pending: Arc<Pending>,
    metrics: Arc<Metrics>,
    /// Held by the thread that writes.
    turn: Mutex<()>,
    /// Tells this daemon from others that write to the same database.
    number: WriterId,
    preparation: Mutex<Preparation>,
    /// Whether what was deleted may still stand in the log of the file.
    is_give_back_due: AtomicBool,
    /// How many nodes are written in one transaction: fewer after one that took too long.
    batch: AtomicUsize,
    /// Whether the clock of the server was found to show another time.
    clock_differs: AtomicBool,
    /// Up to which id answers have been examined whether something refers to them.
    swept: AtomicI64,
}

impl StoreWriter {
    pub(super) fn new(file: Arc<StoreFile>, pending: Arc<Pending>, metrics: Arc<Metrics>) -> Self {
        let preparation = Preparation::default();
        Self {
            file,
            pending,
            metrics,
            turn: Mutex::default(),
            number: preparation.writer,
            preparation: Mutex::new(preparation),
            is_give_back_due: AtomicBool::new(false),
            batch: AtomicUsize::new(BATCH),
            clock_differs: AtomicBool::new(false),
            swept: AtomicI64::new(0),
        }
    }

    /// Returns the number of this daemon among those that write to the same database.
    pub(super) fn number(&self) -> i64 {
        self.number.number()
    }

    /// Returns what prepares check-ins.
    #[cfg(test)]
    pub(super) fn preparation(&self) -> MutexGuard<'_, Preparation> {
        self.preparation.lock()
    }

    /// Opens the store and writes what comes in until stopped; calls `on_change` when something is wrong
    /// and when it is well again. Blocking.
    pub(super) fn keep_writing(&self, on_change: &dyn Fn(&StoreHealth)) {
        priority::yield_to_requests();
        let mut reported = String::new();
        let mut retry = RETRY.0;
        #[expect(clippy::disallowed_methods, reason = "time passes for a store")]
        let clocks = || (Instant::now(), Timestamp::now());
        let started = clocks();
        let (mut schedule, mut gave_back) = (HousekeepingSchedule::new(started), started.0);
        let (mut examination, mut opened) = (Examination::Due, started.0);
        loop {
            let done = self.take_turn();
            if done.is_ok()
                && std::mem::replace(&mut examination, Examination::Begun) == Examination::Due
            {
                self.examine();
            }
            let health = self.file.state().health.clone();
            let now = format!("{health:?}");
            if now != reported {
                on_change(&health);
                reported = now;
            }
            let mut queue = self.pending.queue();
            if queue.stopping && (queue.is_empty() || done.is_err()) {
                queue.reject_promised(&StoreError::new(
                    StoreFault::Io,
                    "written",
                    "the daemon stops",
                ));
                drop(queue);
                self.file.close();
                return;
            }
            if done.is_err() {
                // Meanwhile no node is seen.
                schedule.postpone(clocks());
                self.pending.pause(&mut queue, retry);
                retry = (retry * 2).min(RETRY.1);
                continue;
            }
            retry = RETRY.0;
            self.pending.wait_for_work(&mut queue, HOUSEKEEPING);
            let now = clocks();
            if queue.is_woken {
                self.pending.space_openings(&mut queue, now.0.saturating_duration_since(opened));
                opened = now.0;
                // It may be an older state of the store.
                schedule.postpone(now);
            }
            drop(queue);
            if schedule.is_due(now) {
                self.forget(now.1);
            }
            if now.0.saturating_duration_since(gave_back) > HOUSEKEEPING {
                gave_back = now.0;
                self.retry_give_back();
            }
        }
    }

    /// Examines the file in a thread of its own: that takes as long as reading it.
    fn examine(&self) {
        let file = Arc::clone(&self.file);
        let examine = move || {
            let Ok(database) = file.database() else { return };
            if let Err(error) = database.examine() {
                file.fail(&database, error);
            }
        };
        // Damage that is not looked for shows when it is read.
        std::thread::Builder::new().name("examine-store".to_owned()).spawn(examine).ok();
    }

    /// Writes what waits now before all is read; only the writer retries what failed.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.check_health()?;
        let turn = self.turn.lock();
        // It may have failed meanwhile: one that waits for it is enough.
        self.check_health()?;
        self.write_in_turn(turn)
    }

    fn check_health(&self) -> Result<(), StoreError> {
        let failing = self.file.state().health.failing.clone();
        failing.map_or(Ok(()), Err)
    }

    /// Writes what waits, and notes whether that works.
    pub(super) fn take_turn(&self) -> Result<(), StoreError> {
        self.write_in_turn(self.turn.lock())
    }

    fn write_in_turn(&self, turn: MutexGuard<'_, ()>) -> Result<(), StoreError> {
        let was_failing = self.file.state().health.failing.is_some();
        // A damaged file makes the database panic, even while it is closed.
        let done = catch_unwind(AssertUnwindSafe(|| self.write_waiting()));
        let done = done.unwrap_or_else(|_| {
            Err(StoreError::new(StoreFault::Io, "written", "the database failed; reopening it"))
        });
        let mut state = self.file.state();
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
                let mut queue = self.pending.queue();
                queue.reject_promised(error);
                // It closed the file itself, and opens it here.
                queue.is_woken = false;
                drop(queue);
                // What is on disk can be read though nothing can be written.
                self.file.ready().ok();
            }
        }
        drop(turn);
        done
    }

    /// Writes all that waits now, and not all that comes meanwhile: under load that would never end.
    fn write_waiting(&self) -> Result<(), StoreError> {
        let end = self.pending.queue().end();
        self.file.ready()?;
        // What keeps a former file from being read keeps nothing from being written.
        let imported = self.import_former();
        while self.write_batch()? == Wrote::Some {
            if self.pending.queue().is_written_up_to(end) {
                break;
            }
        }
        imported
    }

    /// Takes over what a former version kept.
    fn import_former(&self) -> Result<(), StoreError> {
        let StoreSettings { former, cache, .. } = &self.file.settings;
        let Some(former) = former.as_deref().filter(|it| it.exists()) else {
            if self.file.imports() {
                self.file.end_import();
            }
            return Ok(());
        };
        let database = self.file.ready_to_write()?;
        let mut keep = |rows: Vec<(String, Fresh)>| {
            let mut refused = 0;
            for some in rows.chunks(BATCH) {
                if self.pending.queue().stopping {
                    return Ok(RowsKept::Nothing);
                }
                refused += self.write_former(&database, some)?;
            }
            // What went to a file that was put aside or deleted meanwhile is not kept.
            if !Arc::ptr_eq(&self.file.ready()?, &database) {
                let reason = "the file was put aside or deleted meanwhile";
                return Err(StoreError::new(StoreFault::Io, "written", reason));
            }
            Ok(RowsKept::AllBut(refused))
        };
        if former::import(former, *cache, &mut keep)? == Import::Ended {
            self.file.end_import();
            database.save_generation();
        }
        Ok(())
    }

    /// Writes rows of a former version; returns how many were not taken.
    fn write_former(
        &self,
        database: &Arc<Database>,
        rows: &[(String, Fresh)],
    ) -> Result<usize, StoreError> {
        let write = |rows: &[(String, Fresh)]| {
            let mut preparation = self.preparation.lock();
            let prepared = |(name, fresh): &(String, Fresh)| {
                let check_ins = vec![preparation.check_in(name, fresh)?];
                Ok::<_, StoreError>(PreparedNode { name: name.clone(), check_ins })
            };
            let nodes: Vec<PreparedNode> = rows.iter().map(prepared).collect::<Result<_, _>>()?;
            database.write(&nodes, &preparation, &self.file.settings.limits)
        };
        match write(rows) {
            Ok(WriteOutcomes { refused, .. }) => Ok(refused.len()),
            Err(error) if error.fault == StoreFault::Value => match rows {
                // No retry helps it.
                [(node, _)] => {
                    tracing::error!(%node, %error, "a node of a former version is left out: the database does not take it");
                    Ok(1)
                }
                _ => rows
                    .iter()
                    .map(|row| self.write_former(database, std::slice::from_ref(row)))
                    .sum(),
            },
            Err(error) => Err(self.file.fail(database, error)),
        }
    }

    /// Writes some of what waits.
    fn write_batch(&self) -> Result<Wrote, StoreError> {
        if self.file.state().health.failing.is_some() {
            let database = self.file.ready_to_write()?;
            database.probe().map_err(|error| self.file.fail(&database, error))?;
        }
        {
            let mut queue = self.pending.queue();
            if queue.is_empty() {
                queue.urgency = Urgency::CanWait;
                return Ok(Wrote::Nothing);
            }
        }
        let database = self.file.ready_to_write()?;
        let most = self.batch.load(Ordering::Relaxed);
        let mut batch = self.pending.queue().take(most, BATCH_BYTES);
        let write = || {
            let mut preparation = self.preparation.lock();
            let nodes = batch.nodes.iter().map(|(name, it)| preparation.node(name, it));
            let nodes: Vec<PreparedNode> = nodes.collect::<Result<_, StoreError>>()?;
            database.write(&nodes, &preparation, &self.file.settings.limits)
        };
        let written = write().map_err(|error| self.file.fail(&database, error));
        // What went to a deleted file is lost when the process ends, so it does not count as written.
        let written = written.and_then(|it| self.file.ready().map(|_| it));
        match written {
            Ok(WriteOutcomes { refused, size, has_removed }) => {
                if has_removed {
                    self.file.note_removal();
                }
                self.batch.store((most * 2).min(BATCH), Ordering::Relaxed);
                self.metrics.set_check_ins(size.nodes, size.bytes);
                self.metrics.count_check_ins(batch.check_ins_beside(&refused));
                self.report_refused(refused.len());
                batch.answer(|name| {
                    let reason = "the store has as many nodes or bytes as its limits allow";
                    let refused = refused.iter().any(|it| it == name);
                    let error = || StoreError::new(StoreFault::Limit, "written", reason);
                    if refused { Err(error()) } else { Ok(()) }
                });
                let written = self.pending.queue().written();
                drop((written, batch));
                database.save_generation();
                Ok(Wrote::Some)
            }
            Err(error) if error.fault == StoreFault::Value => {
                self.part(batch, &error);
                Ok(Wrote::Some)
            }
            Err(error) => {
                if error.fault == StoreFault::TimedOut {
                    // As a whole it would take as long the next time.
                    self.batch.store((most / 2).max(1), Ordering::Relaxed);
                }
                batch.answer(|_| Err(error.clone()));
                let dropped = self.pending.queue().put_back(batch);
                self.metrics.count_dropped_check_ins(DropReason::StorageFailed, dropped);
                Err(error)
            }
        }
    }

    /// Has a batch written in smaller ones, where the database does not take a value of one node in it. The check-ins of
    /// that one, alone at last, are dropped: no retry helps them.
    fn part(&self, mut batch: WriteBatch, error: &StoreError) {
        let nodes = batch.nodes.len();
        self.batch.store((nodes / 2).max(1), Ordering::Relaxed);
        let mut queue = self.pending.queue();
        if nodes > 1 {
            let dropped = queue.put_back_all(batch);
            drop(queue);
            return self.metrics.count_dropped_check_ins(DropReason::StorageFailed, dropped);
        }
        let written = queue.written();
        drop(queue);
        batch.answer(|_| Err(error.clone()));
        let dropped = batch.nodes.values().map(|it| it.check_ins.len()).sum();
        self.metrics.count_dropped_check_ins(DropReason::StorageFailed, dropped);
        for node in batch.nodes.keys() {
            tracing::error!(%node, %error, "check-ins are dropped: the database does not take them");
        }
        drop(written);
    }

    /// Counts check-ins that the limits refuse, and says so.
    fn report_refused(&self, nodes: usize) {
        if nodes > 0 {
            self.metrics.count_dropped_check_ins(DropReason::Limit, nodes);
            tracing::warn!(nodes, "check-ins are not kept: the limits of the store are reached");
        }
    }

    /// Deletes all that is kept of a node; returns whether it was known.
    pub(super) fn forget_node(&self, name: &str) -> Result<bool, StoreError> {
        self.check_health()?;
        let database = self.file.database()?;
        // What is being written is written first.
        let turn = self.turn.lock();
        let waited = self.pending.queue().forget(name);
        let deletion = Deletion { time: Timestamp::now(), writer: self.number };
        let known = database.forget_node(name, deletion);
        let known = known.map_err(|error| self.file.fail(&database, error));
        if known == Ok(true) {
            // The node is deleted, whatever becomes of this.
            self.give_back(&database);
            database.save_generation();
        }
        // As it is with what is written.
        let known = known.and_then(|it| self.file.ready().map(|_| it));
        drop(turn);
        Ok(known? || waited)
    }

    /// Forgets nodes that were not seen for long before a time, and changes that are old.
    pub(super) fn forget(&self, now: Timestamp) {
        self.file.put_aside();
        let Some(now) = self.shared_time(now) else { return };
        let StoreLimits { forget_after, history, .. } = self.file.settings.limits;
        let before = |age: Duration| {
            let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
            now.as_microsecond().saturating_sub(age)
        };
        let (nodes_before, changes_before) = (before(forget_after), before(history));
        let forgotten = self.forget_some(|it| it.forget(nodes_before));
        if forgotten > 0 {
            tracing::info!(nodes = forgotten, "nodes that were not seen for long are forgotten");
        }
        let changes = self.forget_some(|it| it.forget_changes(changes_before));
        self.forget_some(|it| it.drop_deletions(now));
        let swept = self.sweep();
        if forgotten + changes + swept > 0 {
            self.is_give_back_due.store(true, Ordering::Relaxed);
            self.retry_give_back();
        }
    }

    /// Returns the earlier of the times by the clocks of this daemon and of the server: a clock that is ahead would have what
    /// other daemons saw a moment ago forgotten.
    fn shared_time(&self, now: Timestamp) -> Option<Timestamp> {
        let database = self.file.database().ok()?;
        let server = database.server_time().map_err(|error| self.file.fail(&database, error));
        let Some(server) = server.ok()? else { return Some(now) };
        let ahead = now.duration_since(server);
        let differs = ahead.abs() > CLOCKS_DIFFER;
        if self.clock_differs.swap(differs, Ordering::Relaxed) != differs && differs {
            tracing::warn!(
                seconds = ahead.as_secs(),
                "the clock of this machine is ahead of that of PostgreSQL, or behind it; what is old is forgotten by the earlier of the two"
            );
        }
        Some(now.min(server))
    }

    /// Deletes some of what nothing refers to; from the first again when all has been examined. Returns how much
    /// was deleted.
    pub(super) fn sweep(&self) -> usize {
        let Ok(database) = self.file.database() else { return 0 };
        let _turn = self.turn.lock();
        match database.sweep(self.swept.load(Ordering::Relaxed)) {
            Ok((last, deleted)) => {
                self.swept.store(last.unwrap_or(0), Ordering::Relaxed);
                deleted
            }
            Err(error) => {
                self.file.fail(&database, error);
                0
            }
        }
    }

    /// Gives back what is left to be given back.
    pub(super) fn retry_give_back(&self) {
        if self.is_give_back_due.load(Ordering::Relaxed)
            && let Ok(database) = self.file.database()
        {
            let _turn = self.turn.lock();
            self.give_back(&database);
        }
    }

    /// Gives back what is free in the file, and notes whether something is left to do later.
    fn give_back(&self, database: &Arc<Database>) {
        let done = database.give_back().map_err(|error| self.file.fail(database, error));
        self.is_give_back_due.store(done != Ok(true), Ordering::Relaxed);
    }

    /// Forgets until nothing more is to be forgotten; check-ins are written in between. Returns how much was
    /// forgotten.
    fn forget_some(&self, forget: impl Fn(&Database) -> Result<usize, StoreError>) -> usize {
        let mut forgotten = 0;
        loop {
            let Ok(database) = self.file.database() else { return forgotten };
            let turn = self.turn.lock();
            let count = forget(&database);
            drop(turn);
            match count {
                Ok(0) => return forgotten,
                Ok(count) => {
                    self.file.note_removal();
                    forgotten += count;
                }
                Err(error) => {
                    self.file.fail(&database, error);
                    return forgotten;
                }
            }
            if self.pending.queue().stopping {
                return forgotten;
            }
            if self.write_now().is_err() {
                return forgotten;
            }
        }
    }

    /// Writes what waits, while much is forgotten.
    fn write_now(&self) -> Result<(), StoreError> {
        let is_empty = self.pending.queue().is_empty();
        if is_empty { Ok(()) } else { self.take_turn() }
    }
}
