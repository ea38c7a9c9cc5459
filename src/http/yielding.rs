//! Requests of people, on threads that yield to those that answer agents.
//!
//! A page reads the store for some milliseconds and is then written: an agent whose request comes in meanwhile must
//! not wait for that, on the same thread or on the same core.

use std::sync::LazyLock;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::runtime::Runtime;
use tokio_util::task::AbortOnDropHandle;

use super::error::ApiError;
use super::server::MemoryReservation;
use crate::priority::{self, STACK};

/// The threads, and those that they let wait for a disk; none if the system gives none.
static PEOPLE: LazyLock<Option<Runtime>> =
    LazyLock::new(|| threads_apart("people", 2, priority::serve_people));

/// Starts threads apart from those that answer agents, each with a priority; none if the system gives none.
pub(super) fn threads_apart(
    name: &'static str,
    workers: usize,
    set_priority: fn(),
) -> Option<Runtime> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.thread_stack_size(STACK);
    threads.worker_threads(workers).thread_name(name).on_thread_start(set_priority).enable_all();
    threads.build().ok()
}

/// Handles a request on threads that yield. It ends when its client disconnects.
pub async fn yielding(request: Request, next: Next) -> Response {
    let Some(people) = &*PEOPLE else { return next.run(request).await };
    let handling = MemoryReservation::of_request().scope(next.run(request));
    match AbortOnDropHandle::new(people.spawn(handling)).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            // As if it had run here.
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => ApiError::internal("The daemon stops.").into_response(),
        },
    }
}
