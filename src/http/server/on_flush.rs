//! Things to do when an answer has left.
//!
//! The HTTP library takes an answer and writes it some time later. It flushes a connection when all
//! that it has to say is written: what was taken before is then with the kernel.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// An extension of a response: what to do when it has left. It is dropped if that never happens.
#[derive(Clone)]
pub(in crate::http) struct FlushCallback(Arc<dyn Fn() + Send + Sync>);

impl FlushCallback {
    pub(in crate::http) fn new(what: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(what))
    }
}

/// What is to be done when a connection is flushed.
#[derive(Clone, Default)]
pub(super) struct PendingCallbacks(Arc<Mutex<Vec<FlushCallback>>>);

impl PendingCallbacks {
    /// Takes what is to be done when a response has left.
    pub(super) fn take(&self, mut response: Response) -> Response {
        let Some(on_sent) = response.extensions_mut().remove::<FlushCallback>() else {
            return response;
        };
        let outbox = self.clone();
        response.map(|body| Body::new(Watched { body, on_sent: Some(on_sent), outbox }))
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<FlushCallback>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of a response that something is to be done for.
struct Watched {
    body: Body,
    on_sent: Option<FlushCallback>,
    outbox: PendingCallbacks,
}

impl HttpBody for Watched {
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

impl Drop for Watched {
    fn drop(&mut self) {
        // One that was not taken to the end never leaves.
        if self.body.is_end_stream() {
            self.outbox.waiting().extend(self.on_sent.take());
        }
    }
}

/// A connection that does what is to be done when it is flushed.
pub(super) struct Flushed<S> {
    stream: S,
    outbox: PendingCallbacks,
}

impl<S> Flushed<S> {
    pub(super) fn new(stream: S, outbox: PendingCallbacks) -> Self {
        Self { stream, outbox }
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
        let sent = std::mem::take(&mut *self.outbox.waiting());
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

    /// Shows whether it was told, and whether it can still be.
    type Told = Arc<Mutex<Option<()>>>;

    /// Serves one connection that has room for so many bytes, each answer being the same.
    fn connect(
        answer: impl IntoResponse + Clone + Send + Sync + 'static,
        room: usize,
    ) -> (DuplexStream, Told) {
        let (client, server) = tokio::io::duplex(room);
        let told = Told::default();
        let (outbox, telling) = (PendingCallbacks::default(), Arc::clone(&told));
        let taking = outbox.clone();
        let service = tower::service_fn(move |_: hyper::Request<hyper::body::Incoming>| {
            let telling = Arc::clone(&telling);
            let mut response = answer.clone().into_response();
            response
                .extensions_mut()
                .insert(FlushCallback::new(move || *telling.lock().unwrap() = Some(())));
            let response = taking.take(response);
            async move { Ok::<_, Infallible>(response) }
        });
        let stream = TokioIo::new(Flushed::new(server, outbox));
        let service = TowerToHyperService::new(service);
        TaskTracker::new().spawn(http1::Builder::new().serve_connection(stream, service));
        (client, told)
    }

    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    fn is_told(told: &Told) -> bool {
        told.lock().unwrap().is_some()
    }

    #[tokio::test]
    async fn what_has_left_is_told() {
        for (status, body) in [
            (StatusCode::OK, "x".repeat(100)),
            (StatusCode::SEE_OTHER, String::new()),
            (StatusCode::NO_CONTENT, String::new()),
        ] {
            let (mut client, told) = connect((status, body), 4096);
            settle().await;
            assert!(!is_told(&told));
            client.write_all(b"GET / HTTP/1.1\r\nHost: c\r\n\r\n").await.unwrap();
            settle().await;
            assert!(is_told(&told), "{status}");
        }
    }

    #[tokio::test]
    async fn what_nobody_takes_is_not_told() {
        let body = "x".repeat(1000);
        let (mut client, told) = connect(body.clone(), 64);
        client.write_all(b"GET / HTTP/1.1\r\nHost: c\r\n\r\n").await.unwrap();
        settle().await;
        assert!(!is_told(&told));
        // Most of it leaves, but not all.
        client.read_exact(&mut [0; 800]).await.unwrap();
        settle().await;
        assert!(!is_told(&told));
        drop(client);
        settle().await;
        assert!(!is_told(&told));
        assert_eq!(Arc::strong_count(&told), 1, "nobody can tell any more");

        let (mut client, told) = connect(body, 64);
        client.write_all(b"GET / HTTP/1.1\r\nHost: c\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut all = Vec::new();
        client.read_to_end(&mut all).await.unwrap();
        assert!(all.ends_with(b"xx") && is_told(&told));
    }
}
