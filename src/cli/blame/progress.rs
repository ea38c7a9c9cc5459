//! Progress on a terminal; nothing elsewhere.
//!
//! It has neither colours nor other escape sequences, so that it is the same with `NO_COLOR`.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::git::Opener;
use crate::model::CommitId;

/// How long is waited until something is shown, and until it is shown again.
const PAUSE: Duration = Duration::from_millis(200);

/// How far a walk has come.
pub(in crate::cli) struct WalkProgress {
    is_shown: bool,
    walked: AtomicUsize,
    /// How many commits there are; 0 until they are counted.
    total: AtomicUsize,
    status: Mutex<StatusLine>,
}

impl WalkProgress {
    pub(in crate::cli) fn new() -> Self {
        Self {
            is_shown: std::io::stderr().is_terminal(),
            walked: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            status: Mutex::new(StatusLine::new()),
        }
    }

    pub(in crate::cli) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Counts the commits of a branch.
    pub(in crate::cli) fn count(&self, opener: &Opener, head: CommitId) {
        // Where some commits are missing, the total is not known.
        if let Ok(chain) = opener.open().and_then(|it| it.log(head, usize::MAX)) {
            self.total.store(chain.len(), Ordering::Relaxed);
        }
    }

    /// Counts a commit of the walk.
    pub(in crate::cli) fn advance(&self) {
        let walked = self.walked.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_shown {
            let total = self.total.load(Ordering::Relaxed);
            self.status.lock().show(|| text(walked, total));
        }
    }

    /// Makes room for a line of the answer.
    pub(in crate::cli) fn clear(&self) {
        if self.is_shown {
            self.status.lock().clear();
        }
    }
}

fn text(walked: usize, total: usize) -> String {
    match total {
        0 => format!("{walked} commits"),
        _ => format!("{walked} of {total} commits"),
    }
}

/// Shows on a terminal how long a daemon has been at work.
pub(super) fn while_waiting<T: Send>(ask: impl FnOnce() -> T + Send) -> T {
    if !std::io::stderr().is_terminal() {
        return ask();
    }
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let began = Instant::now();
            let mut status = StatusLine::new();
            while is_done.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let seconds = began.elapsed().as_secs();
                if seconds > 0 {
                    status.show(|| format!("the daemon walks the branch: {seconds} s"));
                }
            }
            status.clear();
        });
        let answer = ask();
        drop(done);
        answer
    })
}

/// A line on stderr that is written again and again.
struct StatusLine {
    shown: Instant,
    width: usize,
}

impl StatusLine {
    fn new() -> Self {
        Self { shown: Instant::now(), width: 0 }
    }

    /// Shows a text, if the one before has been shown for long enough.
    fn show(&mut self, text: impl FnOnce() -> String) {
        if self.shown.elapsed() < PAUSE {
            return;
        }
        let text = text();
        // Without stderr there is no place for it.
        let _gone = write!(std::io::stderr(), "\r{text:<width$}\r", width = self.width);
        self.width = text.len();
        self.shown = Instant::now();
    }

    fn clear(&mut self) {
        if self.width > 0 {
            let _gone = write!(std::io::stderr(), "\r{:width$}\r", "", width = self.width);
            self.width = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_shown_once_it_is_known() {
        assert_eq!(text(7, 0), "7 commits");
        assert_eq!(text(7, 9000), "7 of 9000 commits");
    }
}
