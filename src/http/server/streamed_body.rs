//! Bodies of responses that are made while they are sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::connection_limit::ConnectionGuard;

/// The body of a response that has one chunk at a time in memory.
pub(super) struct StreamedBody {
    body: Body,
    guard: Arc<ConnectionGuard>,
    has_ended: bool,
}

impl StreamedBody {
    /// Counts the chunk that waits to be sent as buffered by the connection, if the length is unknown.
    pub(super) fn watch(response: Response, guard: Arc<ConnectionGuard>) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| Body::new(Self { body, guard, has_ended: false }))
    }
}

impl HttpBody for StreamedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => self.guard.buffer_chunk(frame.data_ref().map_or(0, Bytes::len)),
            // What cannot be written is logged where it is written.
            Some(Err(_)) | None => self.has_ended = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for StreamedBody {
    fn drop(&mut self) {
        self.guard.end_stream();
        let is_cut = !self.has_ended && !self.body.is_end_stream();
        if is_cut && self.guard.slot.evicted.is_cancelled() {
            self.guard.log_cut_response();
        }
    }
}
