//! Where the log goes: a bounded queue, and a thread that writes it to stderr.
//!
//! Logging never blocks: when stderr is not read and the queue is full, lines are dropped, counted, and
//! their number is logged when there is room again. A line is bounded, and so is the queue.

mod line;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

pub(super) use line::LineForm;

/// How many lines wait to be written.
const QUEUE: usize = 1024;

/// How long the end waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Takes lines of the log and never blocks.
#[derive(Clone, Debug)]
pub(super) struct LogQueue {
    form: LineForm,
    lines: SyncSender<LogMessage>,
    dropped: Arc<AtomicU64>,
}

enum LogMessage {
    Line(Vec<u8>),
    /// All lines before it are written.
    Flush(SyncSender<()>),
}

/// Writes the last lines when it is dropped.
#[derive(Debug)]
pub struct LogGuard(SyncSender<LogMessage>);

impl LogQueue {
    /// Starts the thread that writes.
    pub(super) fn start(
        form: LineForm,
        to: impl Write + Send + 'static,
    ) -> io::Result<(Self, LogGuard)> {
        let (lines, queue) = sync_channel(QUEUE);
        let dropped: Arc<AtomicU64> = Arc::default();
        let counted = Arc::clone(&dropped);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || keep_writing(&queue, to, &counted, form))?;
        let guard = LogGuard(lines.clone());
        Ok((Self { form, lines, dropped }, guard))
    }

    /// Returns how many lines were dropped so far.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Write for LogQueue {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = self.form.bounded(bytes);
        if self.lines.try_send(LogMessage::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let (done, written) = sync_channel(1);
        let mut message = LogMessage::Flush(done);
        let step = Duration::from_millis(10);
        let mut waited = Duration::ZERO;
        // A full queue empties, or stderr is not read and the last lines are lost.
        while let Err(full) = self.0.try_send(message) {
            if waited > LAST_LINES {
                return;
            }
            thread::sleep(step);
            waited += step;
            message = match full {
                std::sync::mpsc::TrySendError::Full(it)
                | std::sync::mpsc::TrySendError::Disconnected(it) => it,
            };
        }
        let _too_late = written.recv_timeout(LAST_LINES);
    }
}

fn keep_writing(
    queue: &Receiver<LogMessage>,
    mut to: impl Write,
    dropped: &AtomicU64,
    form: LineForm,
) {
    let mut said = 0;
    // Whether a part of a line was written, as on a disk that becomes full.
    let mut is_cut = false;
    let mut write = |line: &[u8]| {
        if is_cut && write_all(&mut to, b"\n").is_err() {
            return false;
        }
        let written = write_all(&mut to, line);
        is_cut = written.is_err_and(|count| count > 0);
        written.is_ok()
    };
    while let Ok(message) = queue.recv() {
        match message {
            LogMessage::Line(line) => {
                if !write(&line) {
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            LogMessage::Flush(done) => {
                let _gone = done.send(());
            }
        }
        let lost = dropped.load(Ordering::Relaxed);
        if lost > said && write(&form.lost(lost - said)) {
            said = lost;
        }
    }
}

/// Writes a line.
///
/// # Errors
///
/// Returns how much of it was written before stderr was gone, or its disk was full.
fn write_all(to: &mut impl Write, line: &[u8]) -> Result<(), usize> {
    let mut written = 0;
    while let Some(rest) = line.get(written..).filter(|it| !it.is_empty()) {
        match to.write(rest) {
            Ok(count) if count > 0 => written += count,
            // Another process may have made the pipe non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return Err(written),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
