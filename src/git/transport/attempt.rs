//! One connection to a remote, and the thread that it belongs to.
//!
//! libgit2 makes a transport from a URL alone, in the thread that fetches. What else a transport
//! needs (deadline, credentials, limits) and its typed errors are in the [`Attempt`] that this thread
//! has entered.
#![expect(clippy::disallowed_methods, reason = "deadlines are measured by the clock")]

use std::cell::RefCell;
use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::advertisement::{Advertisement, NeededRefs};
use super::guard::{Excess, Guard};
use crate::config::SecretMask;
use crate::git::failure::{FetchError, FetchFailure, failure_of};
use crate::git::options::{HttpOptions, Interrupt, MirrorOptions, SshOptions};
use crate::git::remote::Remote;

/// One connection to a remote: list its refs, and fetch or push.
#[derive(Debug)]
pub(in crate::git) struct Attempt {
    pub(super) remote: Remote,
    pub(super) http: HttpOptions,
    pub(super) ssh: SshOptions,
    timeout: Duration,
    deadline: Instant,
    max_bytes: u64,
    interrupt: Interrupt,
    transfer: Transfer,
    /// Checks what the remote sends.
    guard: Mutex<Guard>,
    received: AtomicU64,
    /// Whether the remote may have got a command that changes it.
    sent: AtomicBool,
    /// Which refs a push needs.
    needed: OnceLock<NeededRefs>,
    /// What is masked in what the remote says.
    secrets: OnceLock<SecretMask>,
    /// Why a hook of the remote refuses the push, in its words.
    refusal: OnceLock<String>,
    /// The first thing that went wrong: what libgit2 says afterwards only follows from it.
    failure: OnceLock<FetchError>,
}

/// What an attempt does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transfer {
    Fetch,
    Push,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Attempt>>> = const { RefCell::new(None) };
}

/// Ends the attempt of this thread when dropped.
#[derive(Debug)]
pub(in crate::git) struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

impl Attempt {
    /// Begins a fetch; the clock runs from here.
    pub(in crate::git) fn fetch(remote: &Remote, options: &MirrorOptions) -> Arc<Self> {
        Arc::new(Self::begin(remote, options, Transfer::Fetch))
    }

    /// Begins a push; the clock runs from here.
    pub(in crate::git) fn push(remote: &Remote, options: &MirrorOptions) -> Arc<Self> {
        Arc::new(Self::begin(remote, options, Transfer::Push))
    }

    fn begin(remote: &Remote, options: &MirrorOptions, transfer: Transfer) -> Self {
        let guard = match transfer {
            Transfer::Fetch => Guard::new(options.objects),
            Transfer::Push => Guard::of_push(),
        };
        Self {
            remote: remote.clone(),
            http: options.http.clone(),
            ssh: options.ssh.clone(),
            timeout: options.timeout,
            deadline: Instant::now() + options.timeout,
            max_bytes: options.max_bytes,
            interrupt: options.interrupt.clone(),
            transfer,
            guard: Mutex::new(guard),
            received: AtomicU64::new(0),
            sent: AtomicBool::new(false),
            needed: OnceLock::new(),
            secrets: OnceLock::new(),
            refusal: OnceLock::new(),
            failure: OnceLock::new(),
        }
    }

    /// Has the transports of this thread work for this attempt.
    pub(in crate::git) fn enter(self: &Arc<Self>) -> Entered {
        CURRENT.set(Some(Arc::clone(self)));
        Entered(())
    }

    /// Returns the time that is left.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none, or the daemon must stop.
    pub(in crate::git) fn remaining(&self) -> Result<Duration, FetchError> {
        if self.interrupt.is_interrupted() {
            return Err(self.error(FetchFailure::Other, "the daemon is stopping"));
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.timed_out()) } else { Ok(left) }
    }

    /// Returns the error that fits what libgit2 says.
    pub(in crate::git) fn explain(&self, error: &git2::Error) -> FetchError {
        let first = self.failure.get().cloned();
        first.unwrap_or_else(|| self.error(failure_of(error), error.message()))
    }

    /// Notes what went wrong.
    pub(in crate::git) fn note(&self, error: FetchError) {
        // A later one only follows from the first.
        self.failure.set(error).ok();
    }

    /// Returns whether the remote, or the way to it, is why it failed.
    pub(in crate::git) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    pub(super) fn timed_out(&self) -> FetchError {
        self.error(FetchFailure::Timeout, format_args!("it took longer than {:?}", self.timeout))
    }

    pub(in crate::git) fn error(&self, failure: FetchFailure, detail: impl Display) -> FetchError {
        let detail = self.hide_secrets(&detail.to_string());
        match self.transfer {
            Transfer::Fetch => FetchError::at(&self.remote, failure, detail),
            Transfer::Push => FetchError::of_push(&self.remote, failure, detail),
        }
    }

    /// Notes which refs of the remote a push needs.
    pub(in crate::git) fn need_refs(&self, needed: NeededRefs) {
        // They are known before the remote is asked.
        self.needed.set(needed).ok();
    }

    /// Returns what the refs go through that a remote sends first.
    pub(super) fn advertisement(&self) -> Advertisement {
        match self.transfer {
            Transfer::Fetch => Advertisement::over(),
            Transfer::Push => Advertisement::of(self.needed.get().cloned().unwrap_or_default()),
        }
    }

    /// Notes what the remote is sent and must not be shown.
    pub(in crate::git) fn note_secrets(&self, secrets: &[&str]) {
        // They are read once.
        self.secrets.set(SecretMask::of(secrets.iter().copied())).ok();
    }

    /// Returns what the remote says without the secrets that it was sent.
    pub(in crate::git) fn hide_secrets(&self, said: &str) -> String {
        self.secrets.get().map_or_else(|| said.to_owned(), |it| it.hide(said))
    }

    /// Notes why a hook of the remote refuses the push.
    pub(super) fn note_refusal(&self, words: &str) {
        self.refusal.set(words.to_owned()).ok();
    }

    /// Returns why a hook of the remote refuses the push, if one does.
    pub(in crate::git) fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    /// Checks bytes from the network, before libgit2 has them.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), FetchError> {
        self.count(bytes.len())?;
        let (taken, is_shallow) = {
            let mut guard = self.guard.lock();
            (guard.take(bytes), guard.is_shallow())
        };
        if is_shallow && self.transfer == Transfer::Fetch {
            let detail = "it is a shallow clone, which lacks older commits: run `git fetch --unshallow` in it, or \
                          name the repository that it was cloned from";
            return Err(self.error(FetchFailure::ShallowRemote, detail));
        }
        taken.map_err(|excess| match excess {
            Excess::Limit(detail) => self.error(FetchFailure::LimitExceeded, detail),
            Excess::Fatal(text) => self.error(FetchFailure::Other, format!("it gives up: {text}")),
            // None of it gets to the disk: objects there are as they were.
            Excess::Malformed(detail) => {
                self.error(FetchFailure::MalformedResponse, format!("malformed response: {detail}"))
            }
        })
    }

    /// Returns the names of refs of the remote that are not UTF-8.
    pub(in crate::git) fn refs_not_utf8(&self) -> Vec<String> {
        self.guard.lock().refs_not_utf8().to_vec()
    }

    /// Counts bytes that are brought.
    pub(in crate::git) fn count(&self, bytes: usize) -> Result<(), FetchError> {
        let before = self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        if before + bytes as u64 > self.max_bytes {
            let detail = format_args!("it sends more than {} bytes", self.max_bytes);
            return Err(self.error(FetchFailure::LimitExceeded, detail));
        }
        Ok(())
    }

    /// Notes what is about to be sent after the refs were asked for.
    pub(super) fn note_sent(&self, bytes: &[u8]) {
        /// How libgit2 says goodbye where it has no command.
        const FLUSH: &[u8] = b"0000";
        if bytes != FLUSH {
            self.sent.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the remote refused what was sent: it changes nothing by it later.
    pub(super) fn note_refused(&self) {
        self.sent.store(false, Ordering::Relaxed);
    }

    /// Returns whether the remote may have got a command that changes it.
    pub(in crate::git) fn has_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    /// Notes an error and returns what libgit2 is given instead.
    pub(super) fn fail(&self, error: FetchError) -> git2::Error {
        let stand_in = git2::Error::from_str(&error.message);
        self.note(error);
        stand_in
    }

    /// The same for a stream.
    pub(super) fn fail_io(&self, error: FetchError) -> io::Error {
        let stand_in = io::Error::other(error.message.clone());
        self.note(error);
        stand_in
    }
}

/// Returns the attempt that this thread has entered.
pub(super) fn current() -> Result<Arc<Attempt>, git2::Error> {
    CURRENT
        .with_borrow(Clone::clone)
        .ok_or_else(|| git2::Error::from_str("this thread has entered no attempt"))
}
