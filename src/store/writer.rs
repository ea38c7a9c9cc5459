//! The thread that writes check-ins.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::error::{StoreError, StoreFault};
use super::file::{StoreFile, StoreHealth};
use super::pending::Pending;
use super::queue::Urgency;
use crate::telemetry::{DropReason, Metrics};

/// How long after a failure the store is tried again, at first and at the most.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// How often nodes are forgotten that were not seen, and how soon after the start.
const HOUSEKEEPING: Duration = Duration::from_mins(1);
const FIRST_HOUSEKEEPING: Duration = Duration::from_mins(10);

/// Writes what waits to the file. Reads of the whole store have it write before them.
#[derive(Debug)]
pub(super) struct StoreWriter {
    file: Arc<StoreFile>,
    pending: Arc<Pending>,
    metrics: Arc<Metrics>,
    started: (Instant, Timestamp),
    /// Held by the thread that writes.
    turn: Mutex<()>,
}

impl StoreWriter {
    pub(super) fn new(file: Arc<StoreFile>, pending: Arc<Pending>, metrics: Arc<Metrics>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "time passes for a store")]
        let started = (Instant::now(), Timestamp::now());
        Self { file, pending, metrics, started, turn: Mutex::default() }
    }

    /// Opens the store and writes what comes in until stopped; calls `tell` when something is wrong
    /// and when it is well again. Blocking.
    pub(super) fn keep_writing(&self, tell: &dyn Fn(&StoreHealth)) {
        let mut told = String::new();
        let mut retry = RETRY.0;
        let mut housekeeping = FIRST_HOUSEKEEPING;
        loop {
            let done = self.take_turn();
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
        let done = catch_unwind(AssertUnwindSafe(|| self.write_batch()));
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

    fn write_batch(&self) -> Result<(), StoreError> {
        self.file.ready()?;
        if self.file.state().health.failing.is_some() {
            let database = self.file.ready_to_write()?;
            database.probe().map_err(|error| self.file.fail(&database, error))?;
        }
        {
            let mut queue = self.pending.queue();
            if queue.is_empty() {
                queue.urgency = Urgency::CanWait;
                return Ok(());
            }
        }
        let database = self.file.ready_to_write()?;
        let mut batch = self.pending.queue().take();
        let written = database.write(batch.rows(), &self.file.settings.limits);
        let written = written.map_err(|error| self.file.fail(&database, error));
        // What went to a deleted file is lost when the process ends, so it does not count as written.
        let written = written.and_then(|it| self.file.ready().map(|_| it));
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
                self.pending.queue().written();
                Ok(())
            }
            Err(error) => {
                batch.answer(|_| Err(error.clone()));
                self.pending.queue().put_back(batch);
                Err(error)
            }
        }
    }

    /// Forgets nodes that were not seen for long.
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
        let after =
            i64::try_from(self.file.settings.limits.forget_after.as_secs()).unwrap_or(i64::MAX);
        let before = now.as_second().saturating_sub(after);
        let Ok(database) = self.file.database() else { return };
        let _turn = self.turn.lock();
        match database.forget(before) {
            Ok(0) => {}
            Ok(nodes) => tracing::info!(nodes, "nodes that were not seen for long are forgotten"),
            Err(error) => {
                self.file.fail(&database, error);
            }
        }
    }
}
