//! Deadlines for slow clients: for the bytes of a request's body and for reading a response.
//!
//! A client earns time with the bytes that it moves. `tower-http`'s timeouts are for a whole request, which
//! would cut off a large body over a slow line, or wait as long for a client that sends nothing.
#![expect(clippy::disallowed_methods, reason = "clients are waited for")]

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::connection_limit::{ConnectionGuard, PendingBody, Phase};
use super::memory_budget::{MemoryEstimate, MemoryReservation, PendingReservation};
use crate::telemetry::ConnectionEnd;

/// The rate in bytes a second at which a client earns more time.
const LEAST_RATE: u64 = 32 << 10;

/// How long a body may take, whatever its rate.
const LONGEST_BODY: Duration = Duration::from_mins(10);

/// How long, and for how many bytes, the rest of a request is read after an early response.
const LINGER: (Duration, usize) = (Duration::from_secs(1), 4 << 20);

/// A client sends the body of its request too slowly.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body arrived too slowly")]
pub(in crate::http) struct BodyTimeout;

/// The time by which a client must have moved so many bytes.
struct Deadline {
    began: Instant,
    timeout: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Deadline {
    fn new(timeout: Duration) -> Self {
        let sleep = Box::pin(tokio::time::sleep(timeout));
        Self { began: Instant::now(), timeout, sleep }
    }

    /// Completes when the time for so many bytes is over.
    fn poll(&mut self, bytes: u64, cx: &mut Context<'_>) -> Poll<()> {
        let earned = Duration::from_millis(bytes.saturating_mul(1000) / LEAST_RATE);
        let deadline = self.began + (self.timeout + earned).min(LONGEST_BODY.max(self.timeout));
        if self.sleep.deadline().into_std() != deadline {
            self.sleep.as_mut().reset(deadline.into());
        }
        self.sleep.as_mut().poll(cx)
    }
}

/// The body of a request, with a deadline.
pub(super) struct TimedBody {
    body: Incoming,
    guard: Arc<ConnectionGuard>,
    timeout: Duration,
    received: u64,
    waiting: Option<(Deadline, PendingBody)>,
    reservation: MemoryReservation,
    estimate: MemoryEstimate,
    arrival: Arrival,
}

/// How much of a body has arrived.
enum Arrival {
    Incomplete,
    /// All of it; it waits for memory.
    Complete(PendingReservation),
    Admitted,
}

impl TimedBody {
    pub(super) fn new(
        body: Incoming,
        guard: Arc<ConnectionGuard>,
        timeout: Duration,
        reservation: MemoryReservation,
    ) -> Self {
        let (estimate, arrival) = (MemoryEstimate::default(), Arrival::Incomplete);
        Self { body, guard, timeout, received: 0, waiting: None, reservation, estimate, arrival }
    }

    /// Waits for the memory that a complete body needs; until then its bytes count as buffered.
    fn poll_admission(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, <Self as HttpBody>::Error>>> {
        if let Arrival::Incomplete = self.arrival {
            self.waiting = None;
            self.arrival =
                if self.estimate.is_nothing() || self.reservation.try_reserve(self.estimate) {
                    Arrival::Admitted
                } else {
                    Arrival::Complete(PendingReservation::new(&self.reservation, self.estimate))
                };
        }
        let admitted = match &mut self.arrival {
            Arrival::Complete(admission) => ready!(admission.poll(cx)),
            Arrival::Incomplete | Arrival::Admitted => Ok(()),
        };
        self.arrival = Arrival::Admitted;
        self.guard.release_buffered();
        Poll::Ready(admitted.err().map(|error| Err(error.into())))
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if !matches!(this.arrival, Arrival::Incomplete) {
            return this.poll_admission(cx);
        }
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let data = frame.data_ref().map(Bytes::as_ref).unwrap_or_default();
                this.received += data.len() as u64;
                if this.reservation.is_text_alone() {
                    this.estimate.add_text(data);
                } else {
                    this.estimate.add(data);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => this.poll_admission(cx),
            Poll::Ready(Some(Err(error))) => {
                this.waiting = None;
                this.guard.release_buffered();
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Pending => {
                let Self { guard, timeout, received, waiting, .. } = this;
                let (deadline, _) =
                    waiting.get_or_insert_with(|| (Deadline::new(*timeout), guard.await_body()));
                ready!(deadline.poll(*received, cx));
                this.waiting = None;
                this.guard.count(ConnectionEnd::SlowBody);
                Poll::Ready(Some(Err(BodyTimeout.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_admitted = matches!(self.arrival, Arrival::Admitted) || self.estimate.is_nothing();
        is_admitted && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        self.guard.release_buffered();
        if !self.body.is_end_stream() {
            self.guard.mark_unread();
        }
    }
}

/// A connection whose client has a deadline for reading what is written.
pub(super) struct TimedStream<S> {
    stream: S,
    guard: Arc<ConnectionGuard>,
    timeout: Duration,
    written: u64,
    write_deadline: Option<Deadline>,
    closing: Closing,
}

/// How far a connection is closed.
enum Closing {
    Open,
    Lingering(Pin<Box<Sleep>>, usize),
}

impl<S: AsyncRead + AsyncWrite + Unpin> TimedStream<S> {
    pub(super) fn new(stream: S, guard: Arc<ConnectionGuard>, timeout: Duration) -> Self {
        Self { stream, guard, timeout, written: 0, write_deadline: None, closing: Closing::Open }
    }

    /// Completes when the client has read too little for too long.
    fn poll_write_deadline<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let write_deadline = self.write_deadline.get_or_insert_with(|| Deadline::new(self.timeout));
        ready!(write_deadline.poll(self.written, cx));
        self.guard.count(ConnectionEnd::SlowReader);
        Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)))
    }

    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        done: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match done {
            Poll::Ready(Ok(count)) => {
                self.written += count as u64;
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.poll_write_deadline(cx),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.guard.add_received(buffer.filled().len().saturating_sub(before));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.wrote(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(done) => {
                // A streamed response is still being made after its first flush. A body is waited for, or handled, where
                // `100 Continue` was written.
                let phase = self.guard.slot.phase();
                if self.written > 0 && matches!(phase, Phase::Response | Phase::Head) {
                    self.guard.enter(Phase::Head);
                    self.guard.note_flush();
                }
                (self.written, self.write_deadline) = (0, None);
                Poll::Ready(done)
            }
            Poll::Pending => self.poll_write_deadline(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Closing::Open = this.closing {
            match Pin::new(&mut this.stream).poll_shutdown(cx) {
                Poll::Ready(done) => done?,
                Poll::Pending => return this.poll_write_deadline(cx),
            }
            if !this.guard.slot.is_unread.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            let sleep = Box::pin(tokio::time::sleep(LINGER.0));
            this.closing = Closing::Lingering(sleep, LINGER.1);
        }
        // Closing with bytes unread resets the connection, and the client may lose the answer.
        let Closing::Lingering(sleep, left) = &mut this.closing else { return Poll::Ready(Ok(())) };
        loop {
            if sleep.as_mut().poll(cx).is_ready() || *left == 0 {
                return Poll::Ready(Ok(()));
            }
            let mut bytes = [0; 4096];
            let mut buffer = ReadBuf::new(&mut bytes);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    *left = left.saturating_sub(buffer.filled().len());
                }
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
        }
    }
}
