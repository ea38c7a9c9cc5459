//! Accepting connections until told to stop.
#![expect(clippy::disallowed_methods, reason = "refusals are logged once a second")]

mod on_flush;
mod pace;
mod pieces;
mod refusals;
mod room;
mod seats;
mod tls;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

pub(super) use on_flush::FlushCallback;
pub use tls::{CrlPolicy, OnGap, Tls, TlsError, TlsFiles};

pub(super) use pace::TooSlow;
pub(super) use room::{NoRoom, Room};

use on_flush::{Flushed, PendingCallbacks};
use pace::{Attended, Paced};
use pieces::Streaming;
use refusals::Refusals;
use seats::{BUFFER, Caller, Phase, Seats, Taking};

use super::access::take_query_token;
use crate::facts::CertificateFacts;
use crate::telemetry::{ConnectionEnd, Metrics};

/// The longest head of a request, in bytes.
const HEAD_LIMIT: usize = BUFFER;

/// An address with what answers there.
#[derive(Debug)]
pub struct Endpoint {
    /// Where clients come in.
    pub door: Listener,
    /// What answers.
    pub routes: Router,
    /// What metrics call it.
    pub name: &'static str,
    /// How many connections it may have.
    pub connections: usize,
}

/// How connections are served.
#[derive(Clone, Debug)]
pub struct Serving {
    /// How long requests in flight may take when we stop.
    pub grace: Duration,
    /// How long a client may keep us waiting.
    pub client_timeout: Duration,
    /// What counts connections.
    pub metrics: Arc<Metrics>,
}

impl Endpoint {
    /// Writes to the log where clients come in.
    pub fn announce(&self) {
        let version = env!("CARGO_PKG_VERSION");
        match &self.door {
            Listener::Plain(listener) => match listener.local_addr() {
                Ok(address) => tracing::info!(version, "listening on http://{address}"),
                Err(error) => tracing::warn!(%error, "cannot tell the address"),
            },
            Listener::Tls(listener, _) => match listener.local_addr() {
                Ok(address) => tracing::info!(version, "listening on https://{address}"),
                Err(error) => tracing::warn!(%error, "cannot tell the address"),
            },
            Listener::Unix(_) => tracing::info!(version, "listening on a unix socket"),
        }
    }
}

/// Where clients come in.
#[derive(Debug)]
pub enum Listener {
    /// In the clear.
    Plain(TcpListener),
    /// Over TLS.
    Tls(TcpListener, Arc<Tls>),
    /// A unix socket.
    Unix(UnixListener),
}

/// What is known of a connection, for the handlers of its requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// The certificate that the client showed.
    pub(super) certificate: Option<Arc<CertificateFacts>>,
    /// Whether it came through the unix socket, whose file says who may.
    pub(super) is_local: bool,
    /// Whether it is beyond the number of connections: only probes are answered.
    pub(super) is_spare: bool,
}

/// Serves all endpoints until `stop`, then finishes what is in flight within the grace period.
pub async fn serve(endpoints: Vec<Endpoint>, stop: CancellationToken, serving: Serving) {
    let connections = TaskTracker::new();
    let accepting = TaskTracker::new();
    for endpoint in endpoints {
        accepting.spawn(accept(endpoint, connections.clone(), stop.clone(), serving.clone()));
    }
    accepting.close();
    accepting.wait().await;
    connections.close();
    if tokio::time::timeout(serving.grace, connections.wait()).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
}

/// How long no connection may come before the backlog counts as drained at the stop. A busy machine
/// can take this long to say that there is one.
const BACKLOG_IDLE: Duration = Duration::from_millis(100);

/// How long the backlog is drained at most: under load it has no end.
const BACKLOG: Duration = Duration::from_secs(1);

/// How long a connection that is open when we stop may take to ask for the first time.
const FIRST_REQUEST: Duration = Duration::from_millis(500);

async fn accept(
    endpoint: Endpoint,
    connections: TaskTracker,
    stop: CancellationToken,
    serving: Serving,
) {
    let Endpoint { door, routes, name, connections: limit } = endpoint;
    let seats = Arc::new(Seats::new(name, limit, Arc::clone(&serving.metrics)));
    let refusals: Arc<Refusals> = Arc::default();
    let attend = async |(accepted, caller): (Accepted, Caller)| {
        let taking = Arc::new(seats.take(&caller).await);
        let patience = serving.client_timeout;
        let (routes, stop, refusals) = (routes.clone(), stop.clone(), Arc::clone(&refusals));
        let connection = Connection { routes, stop, taking, refusals, patience };
        connections.spawn(connection.attend(accepted));
    };
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = door.accept() => accepted,
        };
        match accepted {
            // A connection that has a seat is served, also when the stop comes at the same time.
            Ok(accepted) => tokio::select! {
                biased;
                () = attend(accepted) => {}
                () = stop.cancelled() => break,
            },
            Err(error) => {
                // Such as too many open files.
                tracing::warn!(listener = name, %error, "accept failed");
                seats.make_room();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    // Drain the accept backlog: these clients take it that they are answered.
    let last = async {
        while let Ok(Ok(waiting)) = tokio::time::timeout(BACKLOG_IDLE, door.accept()).await {
            attend(waiting).await;
        }
    };
    let _over = tokio::time::timeout(BACKLOG, last).await;
}

enum Accepted {
    Plain(TcpStream),
    Tls(TcpStream, Arc<Tls>),
    Unix(tokio::net::UnixStream),
}

impl Listener {
    async fn accept(&self) -> std::io::Result<(Accepted, Caller)> {
        Ok(match self {
            Self::Plain(listener) => {
                let (stream, address) = listener.accept().await?;
                (Accepted::Plain(prepared(stream)), address.ip().into())
            }
            Self::Tls(listener, tls) => {
                let (stream, address) = listener.accept().await?;
                (Accepted::Tls(prepared(stream), Arc::clone(tls)), address.ip().into())
            }
            Self::Unix(listener) => (Accepted::Unix(listener.accept().await?.0), Caller::Local),
        })
    }
}

fn prepared(stream: TcpStream) -> TcpStream {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection is gone already");
    }
    stream
}

/// A connection that is served.
#[derive(Clone)]
struct Connection {
    routes: Router,
    stop: CancellationToken,
    taking: Arc<Taking>,
    refusals: Arc<Refusals>,
    patience: Duration,
}

impl Connection {
    /// Serves it until it ends or has to give way.
    async fn attend(self, accepted: Accepted) {
        let evicted = self.taking.seat.evicted.clone();
        let is_spare = self.taking.seat.is_spare;
        let serving = async {
            match accepted {
                Accepted::Plain(stream) => {
                    self.serve(stream, Peer { is_spare, ..Peer::default() }).await;
                }
                Accepted::Unix(stream) => {
                    let peer = Peer { is_local: true, is_spare, ..Peer::default() };
                    self.serve(stream, peer).await;
                }
                Accepted::Tls(stream, tls) => self.serve_tls(stream, &tls).await,
            }
        };
        tokio::select! {
            () = serving => {}
            () = evicted.cancelled() => tracing::debug!("connection closed, it gave way to another"),
        }
    }

    /// Shakes hands, and serves until the client's certificate is not valid any more.
    async fn serve_tls(self, stream: TcpStream, tls: &Tls) {
        // Slow handshakes hold up no other connection.
        let peer = stream.peer_addr().ok();
        let address = peer.map_or_else(|| "?".to_owned(), |it| it.to_string());
        let shake = tokio::time::timeout(self.patience, tls.accept(stream));
        let (shaken, refused) = Tls::noting_refusals(shake).await;
        if let Some(reason) = refused {
            self.taking.count(ConnectionEnd::CertificateRefused);
            let caller = peer.map_or(Caller::Local, |it| it.ip().into());
            if let Some(unlogged) = self.refusals.logs(caller, Instant::now()) {
                tracing::warn!(peer = address, unlogged, "client certificate refused: {reason}");
            }
        }
        let (stream, certificate) = match shaken {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => {
                tracing::debug!(peer = address, %error, "TLS handshake failed");
                return;
            }
            Err(_) => {
                self.taking.count(ConnectionEnd::SlowHandshake);
                tracing::debug!(peer = address, "TLS handshake took too long");
                return;
            }
        };
        self.taking.enters(Phase::Head);
        let is_spare = self.taking.seat.is_spare;
        let Some(certificate) = certificate else {
            return self.serve(stream, Peer { is_spare, ..Peer::default() }).await;
        };
        self.taking.belongs_to(Caller::Certificate(certificate.facts.certname.clone()));
        let facts = Some(Arc::new(certificate.facts.clone()));
        let peer = Peer { certificate: facts, is_local: false, is_spare };
        let taking = Arc::clone(&self.taking);
        tokio::select! {
            () = self.serve(stream, peer) => {}
            reason = tls.until_refused(&certificate) => {
                taking.count(ConnectionEnd::CertificateRefused);
                tracing::warn!(
                    peer = address,
                    "connection closed, its client certificate is refused now: {reason}"
                );
            }
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer) {
        let Self { routes, stop, taking, patience, .. } = self;
        // Each connection asks whether to stop whenever it does something: asking a token of its own
        // keeps no other connection waiting.
        let stop = stop.child_token();
        let asked = Arc::new(Notify::new());
        let asking = Arc::clone(&asked);
        let outbox = PendingCallbacks::default();
        let (sending, requested) = (outbox.clone(), Arc::clone(&taking));
        let service = tower::service_fn(move |request: hyper::Request<Incoming>| {
            asking.notify_one();
            requested.releases();
            requested.enters(Phase::Work);
            let room = Room::default();
            let paced =
                |it| Body::new(Paced::new(it, Arc::clone(&requested), patience, room.clone()));
            let mut request: Request = request.map(paced);
            take_query_token(&mut request);
            request.extensions_mut().insert(peer.clone());
            let answering = routes.clone().oneshot(request);
            let (sending, answered) = (sending.clone(), Arc::clone(&requested));
            room.scope(async move {
                let response = answering.await?;
                answered.answers(&response);
                let response = Streaming::watch(response, answered);
                Ok::<_, Infallible>(sending.take(response))
            })
        });
        let service = TowerToHyperService::new(service);
        let stream = Attended::new(Flushed::new(stream, outbox), taking, patience);
        let serving = http1::Builder::new()
            .title_case_headers(true)
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .max_buf_size(HEAD_LIMIT)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(serving);
        let done = tokio::select! {
            done = serving.as_mut() => done,
            () = stop.cancelled() => {
                // A first request may be on its way; what comes after an answer is told to go elsewhere.
                tokio::select! {
                    done = serving.as_mut() => done,
                    _ = tokio::time::timeout(FIRST_REQUEST, asked.notified()) => {
                        serving.as_mut().graceful_shutdown();
                        serving.await
                    }
                }
            }
        };
        if let Err(error) = done {
            tracing::debug!(%error, "the connection ended early");
        }
    }
}
