//! The thread that writes check-ins.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::batch::WriteOutcomes;
use super::database::{Database, StoreLimits};
use super::error::{StoreError, StoreFault};
use super::file::{StoreFile, StoreHealth};
use super::former;
use super::pending::Pending;
use super::prepared::{Preparation, PreparedNode};
use super::queue::{Fresh, Urgency};
use super::settings::StoreSettings;
use crate::telemetry::{DropReason, Metrics};

/// How long after a failure the store is tried again, at first and at the most.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// How often nodes are forgotten that were not seen, and how soon after the start.
const HOUSEKEEPING: Duration = Duration::from_mins(1);
const FIRST_HOUSEKEEPING: Duration = Duration::from_mins(10);

/// How many nodes, and bytes of facts, are written in one transaction.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 8 << 20;

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
    started: (Instant, Timestamp),
    /// Held by the thread that writes.
    turn: Mutex<()>,
    preparation: Mutex<Preparation>,
}

impl StoreWriter {
    pub(super) fn new(file: Arc<StoreFile>, pending: Arc<Pending>, metrics: Arc<Metrics>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "time passes for a store")]
        let started = (Instant::now(), Timestamp::now());
        Self {
            file,
            pending,
            metrics,
            started,
            turn: Mutex::default(),
            preparation: Mutex::default(),
        }
    }

    /// Opens the store and writes what comes in until stopped; calls `tell` when something is wrong
    /// and when it is well again. Blocking.
    pub(super) fn keep_writing(&self, tell: &dyn Fn(&StoreHealth)) {
        let mut told = String::new();
        let mut retry = RETRY.0;
        let mut housekeeping = FIRST_HOUSEKEEPING;
        let mut examination = Examination::Due;
        loop {
            let done = self.take_turn();
            if done.is_ok()
                && std::mem::replace(&mut examination, Examination::Begun) == Examination::Due
            {
                self.examine();
            }
            let health = self.file.state().health.clone();
            let now = format!("{health:?}");
            if now != told {
                tell(&health);
                told = now;
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
                self.pending.pause(&mut queue, retry);
                retry = (retry * 2).min(RETRY.1);
                continue;
            }
            retry = RETRY.0;
            self.pending.wait_for_work(&mut queue, HOUSEKEEPING);
            drop(queue);
            if self.started.0.elapsed() > housekeeping {
                housekeeping = self.started.0.elapsed() + HOUSEKEEPING;
                self.forget();
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

    /// Writes what waits before all is read; only the writer retries what failed.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        let failing = self.file.state().health.failing.clone();
        match failing {
            Some(error) => Err(error),
            None => self.take_turn(),
        }
    }

    /// Writes what waits, and notes whether that works.
    pub(super) fn take_turn(&self) -> Result<(), StoreError> {
        let turn = self.turn.lock();
        let was_failing = self.file.state().health.failing.is_some();
        // A damaged file makes the database panic, even while it is closed.
        let done = catch_unwind(AssertUnwindSafe(|| self.write_all()));
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
                self.pending.queue().reject_promised(error);
                // What is on disk can be read though nothing can be written.
                self.file.ready().ok();
            }
        }
        drop(turn);
        done
    }

    /// Writes all that waits.
    fn write_all(&self) -> Result<(), StoreError> {
        self.file.ready()?;
        self.import_former()?;
        while self.write_batch()? == Wrote::Some {}
        Ok(())
    }

    /// Takes over what a former version kept.
    fn import_former(&self) -> Result<(), StoreError> {
        let StoreSettings { former, limits, .. } = &self.file.settings;
        let Some(former) = former.as_deref().filter(|it| it.exists()) else { return Ok(()) };
        let database = self.file.ready_to_write()?;
        let mut keep = |rows: Vec<(String, Fresh)>| {
            let mut preparation = self.preparation.lock();
            for some in rows.chunks(BATCH) {
                let nodes: Result<Vec<PreparedNode>, StoreError> = some
                    .iter()
                    .map(|(name, fresh)| {
                        let check_ins = vec![preparation.check_in(name, fresh)?];
                        Ok::<_, StoreError>(PreparedNode { name: name.clone(), check_ins })
                    })
                    .collect();
                let written = database.write(&nodes?, &preparation, limits);
                written.map_err(|error| self.file.fail(&database, error))?;
            }
            Ok(())
        };
        former::import(former, &mut keep, || self.file.find_put_aside())
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
        let mut batch = self.pending.queue().take(BATCH, BATCH_BYTES);
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
            Ok(WriteOutcomes { refused, size }) => {
                self.metrics.set_check_ins(size.nodes, size.bytes);
                self.metrics.count_check_ins(batch.nodes.len() - refused.len());
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
                self.pending.queue().written();
                Ok(Wrote::Some)
            }
            Err(error) => {
                batch.answer(|_| Err(error.clone()));
                self.pending.queue().put_back(batch);
                Err(error)
            }
        }
    }

    /// Deletes all that is kept of a node; returns whether it was known.
    pub(super) fn forget_node(&self, name: &str) -> Result<bool, StoreError> {
        if let Some(error) = self.file.state().health.failing.clone() {
            return Err(error);
        }
        let database = self.file.database()?;
        // What is being written is written first.
        let turn = self.turn.lock();
        let waited = self.pending.queue().forget(name);
        let known = database.forget_node(name).map_err(|error| self.file.fail(&database, error));
        drop(turn);
        Ok(known? || waited)
    }

    /// Forgets nodes that were not seen for long, and changes that are old.
    fn forget(&self) {
        self.file.put_aside();
        let (instant, timestamp) = self.started;
        let now = Timestamp::now();
        let passed = now.as_second().saturating_sub(timestamp.as_second());
        let elapsed = i64::try_from(instant.elapsed().as_secs()).unwrap_or(i64::MAX);
        // No node is forgotten since the clock was set.
        if passed.abs_diff(elapsed) > 86_400 {
            return;
        }
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
        if forgotten + changes > 0 {
            self.forget_some(|it| it.give_back().map(|()| 0));
        }
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
                Ok(count) => forgotten += count,
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
