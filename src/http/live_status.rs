//! The status as it changes: server-sent events, for pages that stay open.
//!
//! Each listener is a response without an end, so there are few of them, and all end when the daemon stops. Every
//! second the stream looks whether its listener may still read, and what the status is.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::types::{ConditionStatus, Status};
use crate::model::CommitId;

/// How many pages may listen at a time.
const LISTENERS: usize = 64;

/// How often the status is compared.
const TICK: Duration = Duration::from_secs(1);

/// After how many comparisons without news something is sent, so that both ends see whether the other is there.
const QUIET: u32 = 15;

/// After how many comparisons a stream ends: a browser asks again, with the session that it has then.
const LONGEST: u32 = 600;

/// Who may listen, and until when.
#[derive(Clone, Debug)]
pub struct LiveStatus {
    places: Arc<Semaphore>,
    stop: CancellationToken,
    tick: Duration,
}

impl LiveStatus {
    /// Has listeners until a token is cancelled.
    pub fn until(stop: CancellationToken) -> Self {
        Self { places: Arc::new(Semaphore::new(LISTENERS)), stop, tick: TICK }
    }

    /// Returns a response that goes on with what `read` returns, each time that is something else, and ends when it
    /// returns nothing; none if there are too many already.
    pub(super) fn listen(
        &self,
        read: impl FnMut() -> Option<StatusEvent> + Send + 'static,
    ) -> Option<Response> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut ticks = tokio::time::interval(self.tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let body = Events {
            read: Box::new(read),
            ticks,
            stopped: Box::pin(self.stop.clone().cancelled_owned()),
            last: None,
            quiet: 0,
            left: LONGEST,
            _place: place,
        };
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            // For proxies such as nginx, which would wait for the end.
            (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        ];
        Some((headers, Body::new(body)).into_response())
    }
}

/// What pages are told: which commits there are, and what holds. It has nothing that others wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct StatusEvent {
    commit: Option<CommitId>,
    newest: Option<CommitId>,
    rejected: Option<CommitId>,
    pinned: Option<CommitId>,
    conditions: Vec<(String, ConditionStatus, String)>,
}

impl From<Status> for StatusEvent {
    fn from(status: Status) -> Self {
        let conditions = status.conditions.into_iter();
        Self {
            commit: status.active.map(|it| it.commit),
            newest: status.observed.map(|it| it.commit),
            rejected: status.last_failed.map(|it| it.commit),
            pinned: status.pinned,
            conditions: conditions.map(|it| (it.kind, it.status, it.reason)).collect(),
        }
    }
}

/// The body of the response.
struct Events {
    read: Box<dyn FnMut() -> Option<StatusEvent> + Send>,
    ticks: Interval,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    last: Option<StatusEvent>,
    quiet: u32,
    left: u32,
    _place: OwnedSemaphorePermit,
}

impl HttpBody for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        loop {
            ready!(self.ticks.poll_tick(cx));
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                return Poll::Ready(None);
            }
            let Some(event) = (self.read)() else { return Poll::Ready(None) };
            if self.last.as_ref() != Some(&event) {
                let text = serde_json::to_string(&event).unwrap_or_default();
                self.last = Some(event);
                self.quiet = 0;
                let frame = Frame::data(format!("event: status\ndata: {text}\n\n").into());
                return Poll::Ready(Some(Ok(frame)));
            }
            self.quiet += 1;
            if self.quiet >= QUIET {
                self.quiet = 0;
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b": still here\n\n")))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn event(number: u8) -> StatusEvent {
        let commit = format!("{number:040x}").parse().ok();
        let none = None;
        StatusEvent { commit, newest: none, rejected: none, pinned: none, conditions: Vec::new() }
    }

    async fn next(response: &mut Response) -> Option<String> {
        let frame = response.body_mut().frame().await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn news_are_sent_once_until_the_right_is_gone() {
        let tick = Duration::from_millis(1);
        let live = LiveStatus { tick, ..LiveStatus::until(CancellationToken::new()) };
        let mut told = 0..;
        let mut response = live
            .listen(move || match told.next().unwrap() {
                0..2 => Some(event(1)),
                2..40 => Some(event(2)),
                _ => None,
            })
            .unwrap();
        for expected in
            [Some("event: status\ndata: {"), Some("event: status\n"), Some(": "), Some(": "), None]
        {
            let found = next(&mut response).await;
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().starts_with(expected.unwrap_or_default()));
        }
    }

    #[tokio::test]
    async fn listeners_are_few_and_end_with_the_daemon() {
        let stop = CancellationToken::new();
        let live = LiveStatus::until(stop.clone());
        let mut all: Vec<Response> =
            (0..LISTENERS).map(|_| live.listen(|| Some(event(1))).unwrap()).collect();
        assert!(live.listen(|| Some(event(1))).is_none());
        drop(all.pop());
        all.push(live.listen(|| Some(event(1))).unwrap());
        stop.cancel();
        for mut response in all {
            assert_eq!(next(&mut response).await, None);
        }
    }
}
