//! Callbacks for when a response was sent.
//!
//! The HTTP library takes a response and writes it some time later. It flushes a connection when it has
//! written everything: the kernel then has what the library took before.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// An extension of a response: called when the kernel has all of it, dropped if that never happens.
#[derive(Clone)]
pub(in crate::http) struct FlushCallback(Arc<dyn Fn() + Send + Sync>);

impl FlushCallback {
    pub(in crate::http) fn new(what: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(what))
    }
}

/// The callbacks for the next flush of a connection.
#[derive(Clone, Default)]
pub(super) struct PendingCallbacks(Arc<Mutex<Vec<FlushCallback>>>);

impl PendingCallbacks {
    /// Takes the callback of a response, if it has one.
    pub(super) fn take(&self, mut response: Response) -> Response {
        let Some(callback) = response.extensions_mut().remove::<FlushCallback>() else {
            return response;
        };
        let callbacks = self.clone();
        response.map(|body| Body::new(WatchedBody { body, callback: Some(callback), callbacks }))
    }
}

/// The body of a response with a callback.
struct WatchedBody {
    body: Body,
    callback: Option<FlushCallback>,
    callbacks: PendingCallbacks,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        // A body that was not read to its end is never sent.
        if self.body.is_end_stream() {
            self.callbacks.0.lock().extend(self.callback.take());
        }
    }
}

/// A connection that runs the pending callbacks when it is flushed.
pub(super) struct Flushed<S> {
    stream: S,
    callbacks: PendingCallbacks,
}

impl<S> Flushed<S> {
    pub(super) fn new(stream: S, callbacks: PendingCallbacks) -> Self {
        Self { stream, callbacks }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Flushed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Flushed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        let sent = std::mem::take(&mut *self.callbacks.0.lock());
        for FlushCallback(what) in sent {
            what();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    use hyper::server::conn::http1;
    use hyper_util::rt::TokioIo;
    use hyper_util::service::TowerToHyperService;
    use std::convert::Infallible;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio_util::task::TaskTracker;

    /// Shows whether the callback ran, and whether it still can.
    type Ran = Arc<Mutex<Option<()>>>;

    /// Serves one connection that buffers so many bytes, with the same response each time.
    fn connect(
        answer: impl IntoResponse + Clone + Send + Sync + 'static,
        capacity: usize,
    ) -> (DuplexStream, Ran) {
        let (client, server) = tokio::io::duplex(capacity);
        let ran = Ran::default();
        let (callbacks, running) = (PendingCallbacks::default(), Arc::clone(&ran));
        let taking = callbacks.clone();
        let service = tower::service_fn(move |_: hyper::Request<hyper::body::Incoming>| {
            let running = Arc::clone(&running);
            let mut response = answer.clone().into_response();
            response
                .extensions_mut()
                .insert(FlushCallback::new(move || *running.lock() = Some(())));
            let response = taking.take(response);
            async move { Ok::<_, Infallible>(response) }
        });
        let stream = TokioIo::new(Flushed::new(server, callbacks));
        let service = TowerToHyperService::new(service);
        TaskTracker::new().spawn(http1::Builder::new().serve_connection(stream, service));
        (client, ran)
    }

    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    fn has_run(ran: &Ran) -> bool {
        ran.lock().is_some()
    }

    #[tokio::test]
    async fn what_has_left_has_run() {
        for (status, body) in [
            (StatusCode::OK, "x".repeat(100)),
            (StatusCode::SEE_OTHER, String::new()),
            (StatusCode::NO_CONTENT, String::new()),
        ] {
            let (mut client, ran) = connect((status, body), 4096);
            settle().await;
            assert!(!has_run(&ran));
            client.write_all(b"GET / HTTP/1.1\r\nHost: c\r\n\r\n").await.unwrap();
            settle().await;
            assert!(has_run(&ran), "{status}");
        }
    }

    #[tokio::test]
    async fn the_callback_of_a_response_that_is_not_read_never_runs() {
        let body = "x".repeat(1000);
        let (mut client, ran) = connect(body.clone(), 64);
        client.write_all(b"GET / HTTP/1.1\r\nHost: c\r\n\r\n").await.unwrap();
        settle().await;
        assert!(!has_run(&ran));
        // Most of it leaves, but not all.
        client.read_exact(&mut [0; 800]).await.unwrap();
        settle().await;
        assert!(!has_run(&ran));
        drop(client);
        settle().await;
        assert!(!has_run(&ran));
        assert_eq!(Arc::strong_count(&ran), 1, "the callback is dropped");

        let (mut client, ran) = connect(body, 64);
        client.write_all(b"GET / HTTP/1.1\r\nHost: c\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut all = Vec::new();
        client.read_to_end(&mut all).await.unwrap();
        assert!(all.ends_with(b"xx") && has_run(&ran));
    }
}
