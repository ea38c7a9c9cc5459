//! Accepting connections until told to stop.

mod sent;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

pub(super) use sent::OnSent;
pub use tls::{CrlPolicy, OnGap, Tls, TlsError, TlsFiles};

use sent::{Flushed, Outbox};
use tls::ClientCertificate;

use crate::facts::CertificateFacts;

/// How long a client may take for the head of a request, and for the handshake of TLS.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How many connections are served at once at each address; more wait.
const CONNECTIONS: usize = 4096;

/// The longest head of a request, in bytes.
const HEAD_LIMIT: usize = 64 << 10;

/// An address with what answers there.
#[derive(Debug)]
pub struct Endpoint {
    /// Where clients come in.
    pub door: Door,
    /// What answers.
    pub routes: Router,
}

impl Endpoint {
    /// Writes to the log where clients come in.
    pub fn announce(&self) {
        let version = env!("CARGO_PKG_VERSION");
        match &self.door {
            Door::Plain(listener) => match listener.local_addr() {
                Ok(address) => tracing::info!(version, "listening on http://{address}"),
                Err(error) => tracing::warn!(%error, "cannot tell the address"),
            },
            Door::Tls(listener, _) => match listener.local_addr() {
                Ok(address) => tracing::info!(version, "listening on https://{address}"),
                Err(error) => tracing::warn!(%error, "cannot tell the address"),
            },
            Door::Unix(_) => tracing::info!(version, "listening on a unix socket"),
        }
    }
}

/// Where clients come in.
#[derive(Debug)]
pub enum Door {
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
}

/// Serves all endpoints until `stop`, then finishes what is in flight within the grace period.
pub async fn serve(endpoints: Vec<Endpoint>, stop: CancellationToken, grace: Duration) {
    let connections = TaskTracker::new();
    let accepting = TaskTracker::new();
    for endpoint in endpoints {
        accepting.spawn(accept(endpoint, connections.clone(), stop.clone()));
    }
    accepting.close();
    accepting.wait().await;
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
}

/// How long connections are accepted that were on their way when we stopped.
const LAST_ACCEPTS: Duration = Duration::from_millis(20);

/// How long a connection that is open when we stop may take to ask for the first time.
const FIRST_REQUEST: Duration = Duration::from_millis(500);

async fn accept(endpoint: Endpoint, connections: TaskTracker, stop: CancellationToken) {
    let Endpoint { door, routes } = endpoint;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place.ok(),
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = door.accept() => accepted,
        };
        match accepted {
            Ok(accepted) => {
                connections.spawn(attend(accepted, routes.clone(), stop.clone(), place));
            }
            Err(error) => {
                // Such as too many open files: others may close theirs.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // Whoever was let in by the kernel before we stopped listening takes it that we answer.
    let last = async {
        while let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let Ok(waiting) = door.accept().await else { break };
            connections.spawn(attend(waiting, routes.clone(), stop.clone(), Some(place)));
        }
    };
    // There is no end to them where many knock.
    let _over = tokio::time::timeout(LAST_ACCEPTS, last).await;
}

/// Serves one connection.
async fn attend(
    accepted: Accepted,
    routes: Router,
    stop: CancellationToken,
    place: Option<OwnedSemaphorePermit>,
) {
    match accepted {
        Accepted::Plain(stream) => connection(stream, Peer::default(), routes, stop, place).await,
        Accepted::Unix(stream) => {
            let peer = Peer { certificate: None, is_local: true };
            connection(stream, peer, routes, stop, place).await;
        }
        Accepted::Tls(stream, tls) => {
            // Slow handshakes hold up no other connection.
            let address = stream.peer_addr().map_or_else(|_| "?".to_owned(), |it| it.to_string());
            let shake = tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream));
            let (shaken, refused) = Tls::noting_refusals(shake).await;
            if let Some(reason) = refused {
                tracing::warn!(peer = address, "client certificate refused: {reason}");
            }
            match shaken {
                Ok(Ok((stream, certificate))) => {
                    serve_tls(stream, &tls, certificate, routes, stop, place).await;
                }
                Ok(Err(error)) => tracing::debug!(peer = address, %error, "TLS handshake failed"),
                Err(_) => tracing::debug!(peer = address, "TLS handshake took too long"),
            }
        }
    }
}

/// Serves a connection over TLS until it ends or the client's certificate is not valid any more.
async fn serve_tls(
    stream: TlsStream<TcpStream>,
    tls: &Tls,
    certificate: Option<ClientCertificate>,
    routes: Router,
    stop: CancellationToken,
    place: Option<OwnedSemaphorePermit>,
) {
    let Some(certificate) = certificate else {
        return connection(stream, Peer::default(), routes, stop, place).await;
    };
    let peer = Peer { certificate: Some(Arc::new(certificate.facts.clone())), is_local: false };
    tokio::select! {
        () = connection(stream, peer, routes, stop, place) => {}
        reason = tls.until_refused(&certificate) => {
            tracing::warn!("connection closed, its client certificate is refused now: {reason}");
        }
    }
}

enum Accepted {
    Plain(TcpStream),
    Tls(TcpStream, Arc<Tls>),
    Unix(tokio::net::UnixStream),
}

impl Door {
    async fn accept(&self) -> std::io::Result<Accepted> {
        Ok(match self {
            Self::Plain(listener) => Accepted::Plain(prepared(listener.accept().await?.0)),
            Self::Tls(listener, tls) => {
                Accepted::Tls(prepared(listener.accept().await?.0), Arc::clone(tls))
            }
            Self::Unix(listener) => Accepted::Unix(listener.accept().await?.0),
        })
    }
}

fn prepared(stream: TcpStream) -> TcpStream {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection is gone already");
    }
    stream
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: Peer,
    routes: Router,
    stop: CancellationToken,
    place: Option<OwnedSemaphorePermit>,
) {
    // Each connection asks whether to stop whenever it does something: asking a token of its own
    // keeps nobody else waiting.
    let stop = stop.child_token();
    let asked = Arc::new(Notify::new());
    let asking = Arc::clone(&asked);
    let outbox = Outbox::default();
    let taking = outbox.clone();
    let routes = ServiceExt::<Request>::map_response(routes, move |it| taking.take(it));
    let service = routes.map_request(move |request: hyper::Request<hyper::body::Incoming>| {
        asking.notify_one();
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(peer.clone());
        request
    });
    let service = TowerToHyperService::new(service);
    let serving = http1::Builder::new()
        .title_case_headers(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_LIMIT)
        .serve_connection(TokioIo::new(Flushed::new(stream, outbox)), service);
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
    drop(place);
}
