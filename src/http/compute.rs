//! Answers that take long to compute, on threads of their own.
//!
//! The threads that read requests and write answers also answer probes and small requests. What may
//! compute for long is computed elsewhere, in a lane: so many at a time, and so many bytes of requests
//! that wait. What is light is computed at once: handing it over would cost more.

use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::ApiError;
use super::server::Room;
use crate::model::Node;

/// Requests of one kind: those of one lane never wait for those of another.
#[derive(Debug)]
pub(super) struct Lane {
    /// From this weight on, a request is computed on a thread of its own.
    heavy: usize,
    running: Semaphore,
    /// The KiB of requests that wait.
    waiting: Semaphore,
}

/// How many KiB of requests wait in one lane; more get 503.
const WAITING: usize = 64 << 10;

/// How long a request waits.
const WAIT: Duration = Duration::from_secs(30);

/// What agents wait for: classification.
pub(super) static NODES: LazyLock<Lane> = LazyLock::new(|| Lane::new(256 << 10, cores().min(16)));

/// What people and tools ask: explanations, translations, lists of groups.
pub(super) static TOOLS: LazyLock<Lane> =
    LazyLock::new(|| Lane::new(64 << 10, (cores() / 2).clamp(1, 4)));

/// Lists of nodes, which read the store: one piece at a time, since one node can take 150 MiB.
pub(super) static LISTS: LazyLock<Lane> = LazyLock::new(|| Lane::new(0, 1));

fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// What one group weighs where all groups are asked.
pub(super) const GROUP: usize = 64;

impl Lane {
    fn new(heavy: usize, running: usize) -> Self {
        Self { heavy, running: Semaphore::new(running), waiting: Semaphore::new(WAITING) }
    }

    /// Computes an answer; the weight is about how many bytes are read for it.
    ///
    /// # Errors
    ///
    /// Returns 503 `busy` if too much waits already, or for too long.
    pub(super) async fn run<T: Send + 'static>(
        &'static self,
        weight: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        if weight < self.heavy {
            return Ok(work());
        }
        let permit = self.admit(weight).await?;
        hand_over(permit, work).await
    }

    /// Computes a further piece of an answer that is being sent: it waits as long as it must.
    pub(super) async fn go_on<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = self.running.acquire().await.map_err(|_| ApiError::busy())?;
        hand_over(permit, work).await
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

/// Runs work on a thread that may block. It holds the permit: a client that goes away does not end
/// the work.
async fn hand_over<T: Send + 'static>(
    permit: SemaphorePermit<'static>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    // The memory that the request takes is taken until the end of the work, too.
    let room = Room::of_request();
    let work = move || {
        let _held = (permit, room);
        work()
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ApiError::internal("The answer could not be computed."))
}

/// Returns what a node weighs: about the bytes of its facts and trusted data.
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
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use axum::response::IntoResponse as _;

    use super::*;

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
}
