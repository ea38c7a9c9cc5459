//! A progress bar on a terminal; nothing elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

/// How many pass between two drawings.
const STEP: usize = 512;

/// The width of the bar in characters.
const WIDTH: usize = 30;

/// The progress through so many things.
pub(super) struct ProgressBar {
    total: usize,
    /// What they are, in the plural.
    what: &'static str,
    done: usize,
    began: Instant,
    shown: bool,
}

impl ProgressBar {
    pub(super) fn new(total: usize, what: &'static str) -> Self {
        let shown = total > STEP && std::io::stderr().is_terminal();
        Self { total, what, done: 0, began: Instant::now(), shown }
    }

    /// Counts one.
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
        let (done, total, what) = (self.done, self.total, self.what);
        write!(std::io::stderr(), "\r{bar} {done}/{total} {what}, {left:.0} s left ").ok();
    }

    pub(super) fn end(&self) {
        if self.shown {
            write!(std::io::stderr(), "\r\u{1b}[K").ok();
        }
    }
}
