//! A progress bar on a terminal; nothing elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

/// How many nodes pass between two drawings.
const STEP: usize = 512;

/// The width of the bar in characters.
const WIDTH: usize = 30;

/// The progress through so many nodes.
pub(super) struct ProgressBar {
    total: usize,
    done: usize,
    began: Instant,
    shown: bool,
}

impl ProgressBar {
    pub(super) fn new(total: usize) -> Self {
        let shown = total > STEP && std::io::stderr().is_terminal();
        Self { total, done: 0, began: Instant::now(), shown }
    }

    /// Counts a node.
    pub(super) fn advance(&mut self) {
        self.done += 1;
        if !self.shown || !self.done.is_multiple_of(STEP) {
            return;
        }
        let filled = (WIDTH * self.done / self.total.max(1)).min(WIDTH);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH - filled));
        let elapsed = self.began.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
        let left = elapsed * self.total.saturating_sub(self.done) as f64 / self.done as f64;
        // Without stderr there is no place for the bar.
        write!(std::io::stderr(), "\r{bar} {}/{} nodes, {left:.0} s left ", self.done, self.total)
            .ok();
    }

    pub(super) fn end(&self) {
        if self.shown {
            write!(std::io::stderr(), "\r\u{1b}[K").ok();
        }
    }
}
