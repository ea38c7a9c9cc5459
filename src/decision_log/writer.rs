//! The thread that writes the log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::decision::QueueItem;
use super::drop_report::{DropReport, REPORT};
use super::event::EventWriter;
use super::file::{DecisionFile, count_lines};
use super::waiting::WaitingDecisions;
use crate::telemetry::{DecisionDrop, Metrics};

/// How many bytes are written together.
const BATCH: usize = 32 << 10;

/// Writes decisions until the log is stopped.
#[derive(Debug)]
pub struct DecisionWriter {
    pub(super) queue: Receiver<QueueItem>,
    pub(super) waiting: Arc<WaitingDecisions>,
    pub(super) is_stopping: Arc<AtomicBool>,
    pub(super) events: EventWriter,
    pub(super) sink: DecisionSink,
    pub(super) metrics: Arc<Metrics>,
    pub(super) report: Arc<DropReport>,
}

/// Where lines go.
#[derive(Debug)]
pub(super) enum DecisionSink {
    Stdout {
        /// Whether it could not be written last time.
        is_failing: bool,
    },
    File(DecisionFile),
}

/// Lines to write together.
#[derive(Debug, Default)]
struct Batch {
    lines: Vec<u8>,
    count: usize,
}

impl DecisionWriter {
    /// Writes until the log is stopped. Blocking.
    pub fn run(self) {
        let Self { queue, waiting, is_stopping, mut events, mut sink, metrics, report } = self;
        let mut batch = Batch::default();
        let mut is_stopped = false;
        while !is_stopped {
            let timeout = if is_stopping.load(Ordering::Relaxed) { Duration::ZERO } else { REPORT };
            let mut item = match queue.recv_timeout(timeout) {
                Ok(item) => Some(item),
                Err(RecvTimeoutError::Timeout) => {
                    is_stopped = timeout.is_zero();
                    None
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            while let Some(it) = item {
                match it {
                    QueueItem::Decision(decision) => {
                        batch.count += 1;
                        waiting.set_writing(batch.count);
                        waiting.release(&decision);
                        events.write(*decision, &mut batch.lines);
                    }
                    QueueItem::Stop => is_stopped = true,
                }
                let is_full = batch.lines.len() >= BATCH;
                item = if is_full || is_stopped { None } else { queue.try_recv().ok() };
            }
            if batch.count > 0 {
                let written = sink.write(&batch.lines);
                metrics.count_logged_decisions(written);
                metrics.count_dropped_decisions(DecisionDrop::WriteFailed, batch.count - written);
                batch.lines.clear();
                // A long line does not take its memory for ever.
                batch.lines.shrink_to(2 * BATCH);
                batch.count = 0;
                waiting.set_writing(0);
            }
            report.log();
        }
        report.log_rest();
    }
}

impl DecisionSink {
    /// Writes lines; returns how many were written whole.
    fn write(&mut self, lines: &[u8]) -> usize {
        match self {
            Self::Stdout { is_failing } => {
                let (count, outcome) = write_all(&mut io::stdout(), lines);
                match &outcome {
                    Ok(()) if *is_failing => {
                        tracing::info!("the decision log on the standard output is written again");
                    }
                    Err(error) if !*is_failing => tracing::error!(
                        "the decision log on the standard output cannot be written, lines are dropped: {error}"
                    ),
                    _ => {}
                }
                *is_failing = outcome.is_err();
                count
            }
            Self::File(file) => file.write(lines),
        }
    }
}

/// Writes lines to a stream; one that is gone loses them. Returns how many were written whole.
fn write_all(to: &mut impl io::Write, lines: &[u8]) -> (usize, io::Result<()>) {
    let (mut rest, mut outcome) = (lines, Ok(()));
    while !rest.is_empty() {
        match to.write(rest) {
            Ok(count) if count > 0 => rest = rest.get(count..).unwrap_or_default(),
            // Another process may have made the pipe non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) => outcome = Err(io::ErrorKind::WriteZero.into()),
            Err(error) => outcome = Err(error),
        }
        if outcome.is_err() {
            break;
        }
    }
    let written = lines.len() - rest.len();
    // A last line without an end is lost.
    match to.flush() {
        Ok(()) => (count_lines(lines.get(..written).unwrap_or_default()), outcome),
        Err(error) => (0, outcome.and(Err(error))),
    }
}
