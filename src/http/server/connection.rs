//! One connection: the TLS handshake, then its requests, until it ends, is evicted, or the daemon stops.
#![expect(clippy::disallowed_methods, reason = "refusals are logged once a second")]

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::client_timeout::{TimedBody, TimedStream};
use super::connection_limit::{ClientKey, ConnectionGuard, Phase, READ_BUFFER};
use super::memory_budget::MemoryReservation;
use super::on_flush::{Flushed, PendingCallbacks};
use super::refusal_log::RefusalLog;
use super::request_handler::RequestHandler;
use super::self_wakes::absorb_self_wakes;
use super::streamed_body::StreamedBody;
use super::tls::{ClientCertificate, Tls};
use crate::http::access::take_query_token;
use crate::http::request_context::{Peer, RequestContext};
use crate::telemetry::ConnectionEnd;

/// The longest head of a request, in bytes.
const HEAD_LIMIT: usize = READ_BUFFER;

/// How long a connection that is open when the daemon stops may take until its first request.
const FIRST_REQUEST: Duration = Duration::from_millis(500);

fn address_of(stream: &TcpStream) -> Option<IpAddr> {
    stream.peer_addr().ok().map(|it| it.ip())
}

/// A stream that a listener accepted.
pub(super) enum AcceptedStream {
    Plain(TcpStream),
    Tls(TcpStream, Arc<Tls>),
    Unix(UnixStream),
}

/// What a connection is served with.
pub(super) struct Connection<H> {
    pub(super) routes: H,
    pub(super) stop: CancellationToken,
    pub(super) guard: Arc<ConnectionGuard>,
    pub(super) refusal_log: Arc<RefusalLog>,
    pub(super) timeout: Duration,
}

impl<H: RequestHandler> Connection<H> {
    /// Serves the connection until it ends or is evicted.
    pub(super) async fn run(self, accepted: AcceptedStream) {
        let evicted = self.guard.slot.evicted.clone();
        let serving = async {
            match accepted {
                AcceptedStream::Plain(stream) => {
                    let address = address_of(&stream);
                    self.serve(stream, Peer { address, ..Peer::default() }).await;
                }
                AcceptedStream::Unix(stream) => {
                    let peer = Peer { is_local: true, ..Peer::default() };
                    self.serve(stream, peer).await;
                }
                AcceptedStream::Tls(stream, tls) => self.serve_tls(stream, &tls).await,
            }
        };
        tokio::select! {
            biased;
            () = serving => {}
            () = evicted.cancelled() => tracing::debug!("connection evicted for another one"),
        }
    }

    /// Shakes hands, and serves until the client certificate is refused.
    async fn serve_tls(self, stream: TcpStream, tls: &Tls) {
        let (peer, ip) = (stream.peer_addr().ok(), address_of(&stream));
        let address = peer.map_or_else(|| "?".to_owned(), |it| it.to_string());
        let client = peer.map_or(ClientKey::Local, |it| it.ip().into());
        let Some((stream, certificate)) = self.shake_hands(stream, tls, client, &address).await
        else {
            return;
        };
        self.guard.enter(Phase::Head);
        let Some(certificate) = certificate else {
            return self.serve(stream, Peer { address: ip, ..Peer::default() }).await;
        };
        self.guard.set_client(ClientKey::Certificate(certificate.facts.certname.clone()));
        let facts = Some(Arc::new(certificate.facts.clone()));
        let peer = Peer { certificate: facts, address: ip, ..Peer::default() };
        let guard = Arc::clone(&self.guard);
        // The certificate may have been refused during the handshake: it is checked before anything is answered.
        tokio::select! {
            biased;
            reason = tls.until_refused(&certificate) => {
                guard.count(ConnectionEnd::CertificateRefused);
                tracing::warn!(
                    peer = address,
                    "connection closed, its client certificate is refused now: {reason}"
                );
            }
            () = self.serve(stream, peer) => {}
        }
    }

    /// Shakes hands within the deadline; counts and logs a failure.
    async fn shake_hands(
        &self,
        stream: TcpStream,
        tls: &Tls,
        client: ClientKey,
        address: &str,
    ) -> Option<(TlsStream<TcpStream>, Option<ClientCertificate>)> {
        let handshake = tokio::time::timeout(self.timeout, tls.accept(stream));
        let (done, refused) = Tls::noting_refusals(handshake).await;
        if let Some(reason) = refused {
            self.guard.count(ConnectionEnd::CertificateRefused);
            if let Some(unlogged) = self.refusal_log.count(client, Instant::now()) {
                tracing::warn!(peer = address, unlogged, "client certificate refused: {reason}");
            }
        }
        match done {
            Ok(Ok(done)) => Some(done),
            Ok(Err(error)) => {
                tracing::debug!(peer = address, %error, "TLS handshake failed");
                None
            }
            Err(_) => {
                self.guard.count(ConnectionEnd::SlowHandshake);
                tracing::debug!(peer = address, "TLS handshake took too long");
                None
            }
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer) {
        // Each connection polls the token whenever it does something: a token of its own keeps no other
        // connection waiting.
        let stop = self.stop.child_token();
        let (guard, timeout) = (Arc::clone(&self.guard), self.timeout);
        let connection = Arc::new(self);
        let callbacks = PendingCallbacks::default();
        let (requested, first) = (Arc::new(Notify::new()), Once::new());
        let (notify, pending) = (Arc::clone(&requested), callbacks.clone());
        let waited_for = Arc::clone(&guard);
        let service = service_fn(move |request| {
            first.call_once(|| notify.notify_one());
            connection.handle(request, peer.clone(), pending.clone())
        });
        let stream = TimedStream::new(Flushed::new(stream, callbacks), guard, timeout);
        let serving = http1::Builder::new()
            .title_case_headers(true)
            // Heads have an alarm here that is not set for each of them.
            .header_read_timeout(None)
            .max_buf_size(HEAD_LIMIT)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(serving);
        let serving = async {
            tokio::select! {
                biased;
                done = absorb_self_wakes(poll_fn(|cx| serving.as_mut().poll(cx))) => done,
                () = stop.cancelled() => {
                    // A first request may be on its way; after its response the connection is closed.
                    tokio::select! {
                        done = serving.as_mut() => done,
                        _ = tokio::time::timeout(FIRST_REQUEST, requested.notified()) => {
                            serving.as_mut().graceful_shutdown();
                            serving.await
                        }
                    }
                }
            }
        };
        let done = tokio::select! {
            biased;
            done = serving => done,
            () = waited_for.await_late_head(timeout) => {
                tracing::debug!("the head of a request took too long");
                return;
            }
        };
        if let Err(error) = done {
            tracing::debug!(%error, "the connection ended early");
        }
    }

    /// Answers one request, with deadlines and limits on its body and its response.
    fn handle(
        &self,
        request: hyper::Request<Incoming>,
        peer: Peer,
        callbacks: PendingCallbacks,
    ) -> impl Future<Output = Result<Response, Infallible>> + use<H> {
        let guard = Arc::clone(&self.guard);
        guard.release_buffered();
        guard.enter(Phase::Handling);
        let reservation = MemoryReservation::of_connection(&guard);
        let timed = |it: Incoming| {
            if it.is_end_stream() {
                return Body::empty();
            }
            Body::new(TimedBody::new(it, Arc::clone(&guard), self.timeout, reservation.clone()))
        };
        let mut request: Request = request.map(timed);
        take_query_token(&mut request);
        let is_over_limit = self.guard.is_over_limit();
        RequestContext::of_mut(request.extensions_mut()).peer = Peer { is_over_limit, ..peer };
        let response = self.routes.handle(request);
        reservation.scope(async move {
            let response = response.await;
            guard.begin_response(&response);
            let response = StreamedBody::watch(response, guard);
            Ok(callbacks.take(response))
        })
    }
}
