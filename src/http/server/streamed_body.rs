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
}

impl StreamedBody {
    /// Counts the chunk that waits to be sent as buffered by the connection, if the length is unknown.
    pub(super) fn watch(response: Response, guard: Arc<ConnectionGuard>) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| Body::new(Self { body, guard }))
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
        if let Some(Ok(frame)) = &frame {
            self.guard.buffer_chunk(frame.data_ref().map_or(0, Bytes::len));
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
