//! Takes decisions without ever blocking.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use super::decision::{Decision, QueueItem};
use super::drop_report::DropReport;
use super::event::{DaemonLabels, EventWriter};
use super::file::DecisionFile;
use super::rotation::FileRotation;
use super::waiting::WaitingDecisions;
use super::writer::{DecisionSink, DecisionWriter};
use crate::masking::Masks;
use crate::telemetry::{DecisionDrop, Metrics};

/// How many decisions wait to be written.
const QUEUE: usize = 4096;

/// Where the log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionTarget {
    /// The standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

/// How the log is written.
#[derive(Clone, Debug)]
pub struct DecisionLogSettings {
    /// Where.
    pub target: DecisionTarget,
    /// How large a file gets before the next one is begun.
    pub max_bytes: u64,
    /// How many files are kept beside the one that is written.
    pub keep: u32,
    /// What is not shown.
    pub masks: Masks,
}

/// Takes decisions.
#[derive(Clone, Debug)]
pub struct DecisionLog(Arc<DecisionQueue>);

#[derive(Debug)]
struct DecisionQueue {
    queue: SyncSender<QueueItem>,
    waiting: Arc<WaitingDecisions>,
    is_stopping: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
    report: Arc<DropReport>,
}

impl DecisionLog {
    /// Opens a log, which its writer writes.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened.
    pub fn open(
        settings: DecisionLogSettings,
        metrics: Arc<Metrics>,
    ) -> io::Result<(Self, DecisionWriter)> {
        let DecisionLogSettings { target, max_bytes, keep, masks } = settings;
        let sink = match target {
            DecisionTarget::Stdout => DecisionSink::Stdout { is_failing: false },
            DecisionTarget::File(path) => {
                DecisionSink::File(DecisionFile::open(path, FileRotation { max_bytes, keep })?)
            }
        };
        let (sender, queue) = sync_channel(QUEUE);
        let (waiting, is_stopping) =
            (Arc::<WaitingDecisions>::default(), Arc::<AtomicBool>::default());
        let report = Arc::new(DropReport::new(Arc::clone(&metrics)));
        let events = EventWriter::new(DaemonLabels::new(host_name()), masks);
        let shared = DecisionQueue {
            queue: sender,
            waiting: Arc::clone(&waiting),
            is_stopping: Arc::clone(&is_stopping),
            metrics: Arc::clone(&metrics),
            report: Arc::clone(&report),
        };
        Ok((
            Self(Arc::new(shared)),
            DecisionWriter { queue, waiting, is_stopping, events, sink, metrics, report },
        ))
    }

    /// Takes a decision, or counts it as dropped.
    pub fn record(&self, decision: Decision) {
        let DecisionQueue { queue, waiting, metrics, report, .. } = &*self.0;
        let is_sent = waiting.admit(&decision)
            && match queue.try_send(QueueItem::Decision(Box::new(decision))) {
                Ok(()) => true,
                Err(TrySendError::Full(item) | TrySendError::Disconnected(item)) => {
                    if let QueueItem::Decision(decision) = item {
                        waiting.release(&decision);
                    }
                    false
                }
            };
        if !is_sent {
            metrics.count_dropped_decisions(DecisionDrop::QueueFull, 1);
            report.log();
        }
    }

    /// Logs at the end of the daemon what was dropped, and what the writer has not written.
    pub fn log_lost(&self) {
        let DecisionQueue { waiting, report, .. } = &*self.0;
        report.log_rest();
        let lost = waiting.count();
        if lost > 0 {
            tracing::error!(
                "{lost} lines of the decision log are lost: what it is written to did not take them in time"
            );
        }
    }

    /// Ends the writer when what waits is written.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
        // A writer that does not wait for an item sees that by itself.
        self.0.queue.try_send(QueueItem::Stop).ok();
    }
}

/// Returns the name of this machine, if it is known. A unit may hide `/proc/sys`.
fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Some(name).filter(|it| !it.is_empty())
}
