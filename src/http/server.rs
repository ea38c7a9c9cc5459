//! Accepts connections and serves them until the daemon stops.
//!
//! The transports are our own, on top of `hyper`: `tower-http` limits requests, and what has to be limited
//! here comes before and after a request. [`connection_limit`] bounds connections and their buffers,
//! [`client_timeout`] gives clients deadlines by the bytes that they move and [`connection`] one for each head,
//! [`memory_budget`] bounds the memory of parsed bodies, [`on_flush`] runs callbacks once the kernel has a response, and
//! [`self_wakes`] keeps connections from waking other threads.

mod client_timeout;
mod connection;
mod connection_limit;
mod memory_budget;
mod on_flush;
mod refusal_log;
mod request_handler;
mod self_wakes;
mod streamed_body;
mod tls;

#[cfg(test)]
mod late_heads;
#[cfg(test)]
mod request_costs;
#[cfg(test)]
mod value_memory;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(super) use client_timeout::BodyTimeout;
pub(super) use connection_limit::BUFFERED_BYTES;
pub(super) use memory_budget::{AnswerRoom, MemoryReservation, OverBudget};
pub(super) use on_flush::FlushCallback;
pub use request_handler::RequestHandler;
pub use tls::{CrlPolicy, OnGap, Tls, TlsFiles};

use connection::{AcceptedStream, Connection};
use connection_limit::{ClientKey, ConnectionLimit};
use refusal_log::RefusalLog;

use crate::telemetry::Metrics;

/// A listener with its routes.
#[derive(Debug)]
pub struct Endpoint<H> {
    /// Accepts connections.
    pub listener: Listener,
    /// Answers requests.
    pub routes: H,
    /// The label of the listener in metrics.
    pub name: &'static str,
    /// How many connections the listener may have.
    pub connection_limit: usize,
}

/// How connections are served.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// How long requests in flight may take when the daemon stops.
    pub grace: Duration,
    /// How long a connection may wait for its client.
    pub client_timeout: Duration,
    /// Counts connections.
    pub metrics: Arc<Metrics>,
}

impl<H> Endpoint<H> {
    /// Logs the address of the listener.
    pub fn announce(&self) {
        let version = env!("CARGO_PKG_VERSION");
        let (scheme, listener) = match &self.listener {
            Listener::Plain(listener) => ("http", listener),
            Listener::Tls(listener, _) => ("https", listener),
            Listener::Unix(_) => {
                tracing::info!(version, "listening on a unix socket");
                return;
            }
        };
        match listener.local_addr() {
            Ok(address) => tracing::info!(version, "listening on {scheme}://{address}"),
            Err(error) => tracing::warn!(%error, "the address of the listener cannot be read"),
        }
    }
}

/// A socket that accepts connections.
#[derive(Debug)]
pub enum Listener {
    /// TCP without encryption.
    Plain(TcpListener),
    /// TLS.
    Tls(TcpListener, Arc<Tls>),
    /// A unix socket.
    Unix(UnixListener),
}

/// Serves all endpoints until `stop`, then finishes requests in flight within the grace period.
pub async fn serve<H: RequestHandler>(
    endpoints: Vec<Endpoint<H>>,
    stop: CancellationToken,
    options: ServeOptions,
) {
    let connections = TaskTracker::new();
    let accepting = TaskTracker::new();
    for endpoint in endpoints {
        accepting.spawn(accept(endpoint, connections.clone(), stop.clone(), options.clone()));
    }
    accepting.close();
    accepting.wait().await;
    connections.close();
    if tokio::time::timeout(options.grace, connections.wait()).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
}

/// The accept backlog counts as drained after this time without a connection. A busy machine can take
/// this long to report one.
const BACKLOG_IDLE: Duration = Duration::from_millis(100);

/// The longest drain of the accept backlog: under load it has no end.
const BACKLOG: Duration = Duration::from_secs(1);

async fn accept<H: RequestHandler>(
    endpoint: Endpoint<H>,
    connections: TaskTracker,
    stop: CancellationToken,
    options: ServeOptions,
) {
    let Endpoint { listener, routes, name, connection_limit } = endpoint;
    let limit = ConnectionLimit::new(name, connection_limit, Arc::clone(&options.metrics));
    let limit = Arc::new(limit);
    let refusal_log: Arc<RefusalLog> = Arc::default();
    let spawn = async |(stream, client): (AcceptedStream, ClientKey)| {
        let guard = Arc::new(limit.acquire(&client).await);
        let timeout = options.client_timeout;
        let (routes, stop, refusal_log) =
            (routes.for_connection(), stop.clone(), Arc::clone(&refusal_log));
        let connection = Connection { routes, stop, guard, refusal_log, timeout };
        connections.spawn(connection.run(stream));
    };
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            // A connection that has a slot is served, also when the stop comes at the same time.
            Ok(accepted) => tokio::select! {
                biased;
                () = spawn(accepted) => {}
                () = stop.cancelled() => break,
            },
            Err(error) => {
                // Such as too many open files.
                tracing::warn!(listener = name, %error, "accept failed");
                limit.evict_one();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    // Drain the accept backlog: the kernel has accepted these clients already.
    let drain = async {
        while let Ok(Ok(waiting)) = tokio::time::timeout(BACKLOG_IDLE, listener.accept()).await {
            spawn(waiting).await;
        }
    };
    let _over = tokio::time::timeout(BACKLOG, drain).await;
}

impl Listener {
    async fn accept(&self) -> std::io::Result<(AcceptedStream, ClientKey)> {
        Ok(match self {
            Self::Plain(listener) => {
                let (stream, address) = listener.accept().await?;
                (AcceptedStream::Plain(without_delay(stream)), address.ip().into())
            }
            Self::Tls(listener, tls) => {
                let (stream, address) = listener.accept().await?;
                let stream = AcceptedStream::Tls(without_delay(stream), Arc::clone(tls));
                (stream, address.ip().into())
            }
            Self::Unix(listener) => {
                (AcceptedStream::Unix(listener.accept().await?.0), ClientKey::Local)
            }
        })
    }
}

fn without_delay(stream: TcpStream) -> TcpStream {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection is closed already");
    }
    stream
}
