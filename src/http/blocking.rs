//! Runs work that blocks on threads of its own; no other file of the daemon's interface does.
//!
//! The threads that read requests and write responses also answer probes, so they never wait for a disk or
//! for another server. [`Readers`] bounds how many requests do so at a time. Computations are bounded by
//! [`compute`](super::compute).

use std::sync::LazyLock;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::ApiError;
use super::server::MemoryReservation;
use super::yielding::threads_apart;
use crate::priority;

/// Blocking work has panicked. The hook for panics has logged where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Panicked;

/// Runs work on a thread that may block. The work goes on when its client disconnects, and holds the memory
/// of the request until it ends.
///
/// # Errors
///
/// Returns an error if the work panics.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Panicked> {
    tokio::task::spawn_blocking(with_memory(work)).await.map_err(|_| Panicked)
}

/// The threads of work that takes long; none if the system gives none.
static YIELDING: LazyLock<Option<Runtime>> =
    LazyLock::new(|| threads_apart("lists", 1, priority::yield_to_requests));

/// Runs work as [`run_blocking`] does, on a thread that yields to those that answer agents.
///
/// # Errors
///
/// Returns an error if the work panics.
pub(super) async fn run_yielding<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Panicked> {
    let work = with_memory(work);
    let running = match &*YIELDING {
        Some(threads) => threads.spawn_blocking(work),
        None => tokio::task::spawn_blocking(work),
    };
    running.await.map_err(|_| Panicked)
}

/// Makes work hold the memory of the request.
fn with_memory<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let memory = MemoryReservation::of_request();
    move || {
        let _held = memory;
        work()
    }
}

/// Requests that read from one place; only some of them do at a time.
#[derive(Debug)]
pub(super) struct Readers {
    running: Semaphore,
    /// The message of the error if the work panics.
    panicked: &'static str,
}

/// Readers of the repository.
pub(super) static REPOSITORY: Readers = Readers::new("The repository could not be read.");

/// Readers of the store of check-ins.
pub(super) static STORE: Readers = Readers::new("The check-ins could not be read.");

/// Readers of files of facts, each of which has one in memory: others wait before they have read anything.
pub(super) static FACTS_FILES: Readers = Readers::new("The facts could not be read.");

/// How many requests read from one place at once; each has a thread.
const RUNNING: usize = 20;

/// How long a request waits until it may read.
const WAIT: Duration = Duration::from_secs(30);

impl Readers {
    const fn new(panicked: &'static str) -> Self {
        Self { running: Semaphore::const_new(RUNNING), panicked }
    }

    /// Waits until a request may read. Its work holds the permit until it ends.
    ///
    /// # Errors
    ///
    /// Returns 503 `busy` if it waits for too long.
    pub(super) async fn admit(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        let waited = tokio::time::timeout(WAIT, self.running.acquire()).await;
        waited.ok().and_then(Result::ok).ok_or_else(ApiError::busy)
    }

    /// Reads on a thread that may block, when the request may.
    ///
    /// # Errors
    ///
    /// Returns the error of the work, 503 `busy` if it waits for too long, or 500 if the work panics.
    pub(super) async fn run<T: Send + 'static, E: Into<ApiError> + Send + 'static>(
        &'static self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = self.admit().await?;
        let work = move || {
            let _permit = permit;
            work()
        };
        self.run_at_once(work).await
    }

    /// Reads for an operator, who never waits for clients.
    ///
    /// # Errors
    ///
    /// Returns the error of the work, or 500 if the work panics.
    pub(super) async fn run_at_once<T: Send + 'static, E: Into<ApiError> + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError> {
        match run_blocking(work).await {
            Ok(done) => done.map_err(Into::into),
            Err(Panicked) => Err(ApiError::internal(self.panicked)),
        }
    }
}

/// How many requests for one kind of long work run or wait; more get 503.
const TURNS: usize = 8;

/// Requests for long work that runs for one of them at a time.
#[derive(Debug)]
pub(super) struct Turns {
    requests: Semaphore,
    running: Semaphore,
}

/// The permits of a request for long work: to be among those that run or wait, and to run.
pub(super) type TurnPermits = [SemaphorePermit<'static>; 2];

/// How long a request for long work waits for its turn: such work takes minutes.
const TURN_WAIT: Duration = Duration::from_mins(5);

impl Turns {
    pub(super) const fn new() -> Self {
        Self { requests: Semaphore::const_new(TURNS), running: Semaphore::const_new(1) }
    }

    /// Waits until the work of a request may run. It holds the permits until it ends.
    ///
    /// # Errors
    ///
    /// Returns 503 `busy` if too many requests wait, or this one waits for too long.
    pub(super) async fn take(&'static self) -> Result<TurnPermits, ApiError> {
        let request = self.requests.try_acquire().map_err(|_| ApiError::busy())?;
        let waited = tokio::time::timeout(TURN_WAIT, self.running.acquire()).await;
        let running = waited.ok().and_then(Result::ok).ok_or_else(ApiError::busy)?;
        Ok([request, running])
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::mpsc;

    use super::*;

    static FEW: Readers =
        Readers { running: Semaphore::const_new(1), panicked: "It could not be read." };

    #[tokio::test]
    async fn work_that_panics_is_an_error_and_frees_its_place() {
        for _ in 0..2 {
            let done = FEW.run(|| -> Result<(), Infallible> { panic!("a defect") }).await;
            assert_eq!(done.unwrap_err().status(), 500);
        }
        assert_eq!(FEW.run(|| Ok::<_, Infallible>(1)).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn work_goes_on_without_its_client() {
        let (begin, began) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let (end, ended) = mpsc::channel();
        let mut request = Box::pin(run_blocking(move || {
            begin.send(()).unwrap();
            gone.recv().unwrap();
            end.send(()).unwrap();
        }));
        let is_ready = std::future::poll_fn(|context| {
            std::task::Poll::Ready(request.as_mut().poll(context).is_ready())
        });
        assert!(!is_ready.await);
        began.recv().unwrap();
        drop(request);
        go.send(()).unwrap();
        ended.recv_timeout(Duration::from_mins(1)).unwrap();
    }
}
