//! Says in the log of the daemon how many lines were dropped.
#![expect(clippy::disallowed_methods, reason = "what was dropped is logged from time to time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::telemetry::Metrics;

/// How often dropped lines are logged.
pub(super) const REPORT: Duration = Duration::from_mins(1);

/// Logs how many lines were dropped. Who drops one does so too: a writer that hangs says nothing.
#[derive(Debug)]
pub(super) struct DropReport {
    metrics: Arc<Metrics>,
    progress: Mutex<ReportProgress>,
}

#[derive(Debug)]
struct ReportProgress {
    reported: u64,
    due: Instant,
}

impl DropReport {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        let progress = ReportProgress { reported: 0, due: Instant::now() };
        Self { metrics, progress: Mutex::new(progress) }
    }

    /// Logs what was dropped since the last time, at most once a minute.
    pub(super) fn log(&self) {
        // Another thread does it.
        let Some(mut progress) = self.progress.try_lock() else { return };
        if Instant::now() >= progress.due {
            self.log_since(&mut progress);
        }
    }

    /// Logs what was dropped since the last time, however short ago that is.
    pub(super) fn log_rest(&self) {
        self.log_since(&mut self.progress.lock());
    }

    fn log_since(&self, progress: &mut ReportProgress) {
        let dropped = self.metrics.dropped_decisions();
        if dropped > progress.reported {
            tracing::warn!(
                "{} lines of the decision log were dropped, {dropped} since the start",
                dropped - progress.reported
            );
            progress.reported = dropped;
            progress.due = Instant::now() + REPORT;
        }
    }
}
