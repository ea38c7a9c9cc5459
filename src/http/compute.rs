//! Runs long computations on threads of their own.
//!
//! The threads that read requests and write responses also answer probes and small requests. A long
//! computation runs elsewhere, in a lane (a bulkhead): a lane bounds how many run at a time, and how many
//! bytes of requests wait. A light computation runs at once: passing it to another thread would cost more.

use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;

use futures_util::future::{Either, ready};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::blocking::{Panicked, run_blocking, run_yielding};
use super::error::ApiError;
use super::light_limit::LightLimit;
use crate::model::Node;

/// The computations for one kind of requests: those of one lane never wait for those of another.
#[derive(Debug)]
pub(super) struct Lane {
    light: LightLimit,
    running: Semaphore,
    /// The KiB of waiting requests.
    waiting: Semaphore,
    /// Whether its threads yield to those that answer agents, since its computations take long.
    yields: bool,
}

/// How many KiB of requests may wait in one lane; more get 503.
const WAITING: usize = 64 << 10;

/// How long a request waits.
const WAIT: Duration = Duration::from_secs(30);

/// Classification, which agents wait for. Thousands of patterns may be searched for in one long fact, so what
/// most nodes send is light, and no more.
pub(super) static NODES: LazyLock<Lane> = LazyLock::new(|| Lane::new(64 << 10, cores().min(16)));

/// Bodies that are made into values, which takes the same time for each of their bytes.
pub(super) static BODIES: LazyLock<Lane> = LazyLock::new(|| Lane::new(256 << 10, cores().min(16)));

/// Requests of people and tools: explanations, translations, lists of groups.
pub(super) static TOOLS: LazyLock<Lane> =
    LazyLock::new(|| Lane::new(8 << 10, (cores() / 2).clamp(1, 4)));

/// Lists of nodes, which read the store: one chunk at a time, since one node can take 150 MiB.
pub(super) static LISTS: LazyLock<Lane> =
    LazyLock::new(|| Lane { yields: true, ..Lane::new(0, 1) });

/// Lists of nodes that files or `PuppetDB` complete, for which the others must not wait.
pub(super) static COMPLETED_LISTS: LazyLock<Lane> =
    LazyLock::new(|| Lane { yields: true, ..Lane::new(0, 1) });

fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The weight of one group where all groups are matched.
pub(super) const GROUP: usize = 64;

impl Lane {
    fn new(heavy: usize, running: usize) -> Self {
        let (running, waiting) = (Semaphore::new(running), Semaphore::new(WAITING));
        Self { light: LightLimit::new(heavy), running, waiting, yields: false }
    }

    /// Runs a computation; the weight is about how many bytes it reads.
    ///
    /// # Errors
    ///
    /// Returns 503 `busy` if too much waits already, or for too long.
    pub(super) fn run<T: Send + 'static>(
        &'static self,
        weight: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, ApiError>> + Send {
        if self.light.admits(weight) {
            return Either::Left(ready(Ok(self.light.measured(weight, work))));
        }
        let work = move || self.light.measured(weight, work);
        // Boxed, so that the futures of light requests have no room for it: the allocator needs a lock for more than a
        // KiB.
        Either::Right(Box::pin(self.run_apart(weight, work)))
    }

    /// Runs a computation on a thread of its own, since its weight says little of how long it takes.
    ///
    /// # Errors
    ///
    /// As [`Lane::run`].
    pub(super) async fn run_apart<T: Send + 'static>(
        &'static self,
        weight: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = self.admit(weight).await?;
        self.run_admitted(permit, work).await
    }

    /// Runs the computation of a further chunk of a response: it waits without a limit.
    pub(super) async fn run_next<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = self.running.acquire().await.map_err(|_| ApiError::busy())?;
        self.run_admitted(permit, work).await
    }

    /// Runs work on a thread that may block. The thread holds the permit: the work goes on when its client
    /// disconnects.
    async fn run_admitted<T: Send + 'static>(
        &'static self,
        permit: SemaphorePermit<'static>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let work = move || {
            let _permit = permit;
            work()
        };
        let done = if self.yields { run_yielding(work).await } else { run_blocking(work).await };
        done.map_err(|Panicked| ApiError::internal("The answer could not be computed."))
    }

    async fn admit(&self, weight: usize) -> Result<SemaphorePermit<'_>, ApiError> {
        if let Ok(permit) = self.running.try_acquire() {
            return Ok(permit);
        }
        let kibibytes = u32::try_from((weight >> 10).clamp(1, WAITING)).unwrap_or(u32::MAX);
        let _waiting = self.waiting.try_acquire_many(kibibytes).map_err(|_| ApiError::busy())?;
        let waited = tokio::time::timeout(WAIT, self.running.acquire()).await;
        waited.ok().and_then(Result::ok).ok_or_else(ApiError::busy)
    }
}

/// Returns the weight of a node: about the bytes of its facts and trusted data.
pub(super) fn weight(node: &Node) -> usize {
    let values = node.fact.values().chain(node.trusted.values());
    values.map(weight_of).sum()
}

fn weight_of(value: &Value) -> usize {
    8 + match value {
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(weight_of).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() + weight_of(value)).sum()
        }
        Value::Number(number) => number.as_str().len(),
        Value::Null | Value::Bool(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use axum::response::IntoResponse as _;

    use super::*;
    use crate::java_regex::Pattern;

    fn lane() -> &'static Lane {
        Box::leak(Box::new(Lane::new(1000, 1)))
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the test waits for its tasks")]
    async fn light_work_goes_on_while_heavy_work_runs_and_waits() {
        let lane = lane();
        let (go, gone) = mpsc::channel::<()>();
        let (begin, began) = mpsc::channel::<()>();
        let running = tokio::spawn(lane.run(1000, move || {
            begin.send(()).unwrap();
            gone.recv().ok();
            "ran"
        }));
        tokio::task::spawn_blocking(move || began.recv().unwrap()).await.unwrap();
        let waiting = tokio::spawn(lane.run(WAITING << 10, || "waited"));
        while lane.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(lane.run(999, || "light").await.unwrap(), "light");
        let refused = lane.run(1000, || "never").await.unwrap_err().into_response();
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
        go.send(()).unwrap();
        assert_eq!(running.await.unwrap().unwrap(), "ran");
        assert_eq!(waiting.await.unwrap().unwrap(), "waited");
        assert_eq!(lane.waiting.available_permits(), WAITING);
    }

    /// Eight agents with 60 KB of a text that 640 patterns were backtracked in made all others wait for eight seconds.
    #[tokio::test]
    async fn what_turns_out_to_take_long_runs_apart_from_then_on() {
        use std::thread::{ThreadId, current};

        let lane = lane();
        let pattern = Pattern::parse("(?<![0-9])[a-f][0-9]{1,4}(?![0-9])x").unwrap();
        let search = |weight: usize| {
            let (pattern, subject) = (pattern.clone(), "a12 ".repeat(weight * 10));
            move || -> ThreadId {
                assert_eq!(pattern.is_found_in(&subject), Ok(false));
                current().id()
            }
        };
        let here = current().id();
        assert_eq!(lane.run(900, search(900)).await.unwrap(), here);
        assert_ne!(lane.run(900, search(900)).await.unwrap(), here);
        // What is light enough stays here.
        assert_eq!(lane.run(1, search(1)).await.unwrap(), here);
        assert_ne!(lane.run(800, || current().id()).await.unwrap(), here);
        for _ in 0..2_000 {
            lane.run(900, || ()).await.unwrap();
        }
        assert_eq!(lane.run(900, || current().id()).await.unwrap(), here);
    }
}
