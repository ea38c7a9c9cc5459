//! Clients that take their time: how long an answer may take to be taken, and a body to come.
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

use super::room::{Admission, Expansion, Room};
use super::seats::{Phase, Taking, Unfinished};
use crate::telemetry::ConnectionEnd;

/// How many bytes a second earn a client more time.
const RATE: u64 = 32 << 10;

/// How long a body may take, whatever its rate.
const LONGEST: Duration = Duration::from_mins(10);

/// How long, and for how many bytes, a client is listened to that was answered before it had sent all.
const LINGER: (Duration, usize) = (Duration::from_secs(1), 4 << 20);

/// The body of a request comes too slowly.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body came too slowly")]
pub(in crate::http) struct TooSlow;

/// Until when a client has to have moved so many bytes.
struct Deadline {
    began: Instant,
    patience: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Deadline {
    fn new(patience: Duration) -> Self {
        let sleep = Box::pin(tokio::time::sleep(patience));
        Self { began: Instant::now(), patience, sleep }
    }

    /// Is ready when the time for so many bytes is over.
    fn poll(&mut self, bytes: u64, cx: &mut Context<'_>) -> Poll<()> {
        let earned = Duration::from_millis(bytes.saturating_mul(1000) / RATE);
        let deadline = self.began + (self.patience + earned).min(LONGEST.max(self.patience));
        if self.sleep.deadline().into_std() != deadline {
            self.sleep.as_mut().reset(deadline.into());
        }
        self.sleep.as_mut().poll(cx)
    }
}

/// A body that has to come.
pub(super) struct Paced {
    body: Incoming,
    taking: Arc<Taking>,
    patience: Duration,
    received: u64,
    waiting: Option<(Deadline, Unfinished)>,
    room: Room,
    expansion: Expansion,
    arrival: Arrival,
}

/// How far a body is.
enum Arrival {
    Coming,
    /// It is whole, and waits for room.
    Whole(Admission),
    Admitted,
}

impl Paced {
    pub(super) fn new(body: Incoming, taking: Arc<Taking>, patience: Duration, room: Room) -> Self {
        let (expansion, arrival) = (Expansion::default(), Arrival::Coming);
        Self { body, taking, patience, received: 0, waiting: None, room, expansion, arrival }
    }

    /// Has a body that is whole wait for room; until then its bytes are held.
    fn poll_admission(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, <Self as HttpBody>::Error>>> {
        if let Arrival::Coming = self.arrival {
            self.waiting = None;
            self.arrival = if self.expansion.is_nothing() {
                Arrival::Admitted
            } else {
                Arrival::Whole(Admission::new(&self.room, self.expansion))
            };
        }
        let admitted = match &mut self.arrival {
            Arrival::Whole(admission) => ready!(admission.poll(cx)),
            Arrival::Coming | Arrival::Admitted => Ok(()),
        };
        self.arrival = Arrival::Admitted;
        self.taking.releases();
        Poll::Ready(admitted.err().map(|error| Err(error.into())))
    }
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if !matches!(this.arrival, Arrival::Coming) {
            return this.poll_admission(cx);
        }
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let data = frame.data_ref().map(Bytes::as_ref).unwrap_or_default();
                this.received += data.len() as u64;
                this.expansion.add(data);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => this.poll_admission(cx),
            Poll::Ready(Some(Err(error))) => {
                this.waiting = None;
                this.taking.releases();
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Pending => {
                let Self { taking, patience, received, waiting, .. } = this;
                let (deadline, _) = waiting
                    .get_or_insert_with(|| (Deadline::new(*patience), taking.waits_for_body()));
                ready!(deadline.poll(*received, cx));
                this.waiting = None;
                this.taking.count(ConnectionEnd::SlowBody);
                Poll::Ready(Some(Err(TooSlow.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_admitted = matches!(self.arrival, Arrival::Admitted) || self.expansion.is_nothing();
        is_admitted && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        self.taking.releases();
        if !self.body.is_end_stream() {
            self.taking.leaves_unread();
        }
    }
}

/// A connection whose client has to take what is written.
pub(super) struct Attended<S> {
    stream: S,
    taking: Arc<Taking>,
    patience: Duration,
    written: u64,
    stuck: Option<Deadline>,
    ending: Ending,
}

/// How far the end of a connection is.
enum Ending {
    Open,
    Lingering(Pin<Box<Sleep>>, usize),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Attended<S> {
    pub(super) fn new(stream: S, taking: Arc<Taking>, patience: Duration) -> Self {
        Self { stream, taking, patience, written: 0, stuck: None, ending: Ending::Open }
    }

    /// Is ready when the client has not taken enough for too long.
    fn poll_stuck<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let stuck = self.stuck.get_or_insert_with(|| Deadline::new(self.patience));
        ready!(stuck.poll(self.written, cx));
        self.taking.count(ConnectionEnd::SlowReader);
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
            Poll::Pending => self.poll_stuck(cx),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Attended<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.taking.receives(buffer.filled().len().saturating_sub(before));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Attended<S> {
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
                // What streams is served still: it is not waited for from the first flush on.
                if self.written > 0 && self.taking.seat.phase() != Phase::Work {
                    self.taking.enters(Phase::Head);
                    self.taking.has_sent();
                }
                (self.written, self.stuck) = (0, None);
                Poll::Ready(done)
            }
            Poll::Pending => self.poll_stuck(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Ending::Open = this.ending {
            match Pin::new(&mut this.stream).poll_shutdown(cx) {
                Poll::Ready(done) => done?,
                Poll::Pending => return this.poll_stuck(cx),
            }
            if !this.taking.seat.is_unread.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            let sleep = Box::pin(tokio::time::sleep(LINGER.0));
            this.ending = Ending::Lingering(sleep, LINGER.1);
        }
        // Closing with bytes unread resets the connection, and the client may lose the answer.
        let Ending::Lingering(sleep, left) = &mut this.ending else { return Poll::Ready(Ok(())) };
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
