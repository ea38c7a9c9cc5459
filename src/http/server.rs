//! Accepting connections until told to stop.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a client may take for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long requests in flight may take after the stop.
const GRACE: Duration = Duration::from_secs(25);

/// How many connections are served at once; more wait.
const CONNECTIONS: usize = 4096;

/// Serves the routes until `stop`, then finishes what is in flight.
pub async fn serve(listener: TcpListener, routes: Router, stop: CancellationToken) {
    let connections = TaskTracker::new();
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = std::sync::Arc::clone(&places).acquire_owned() => place,
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connection(stream, routes.clone(), stop.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                // Such as too many open files: others may close theirs.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    connections.close();
    if tokio::time::timeout(GRACE, connections.wait()).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
}

async fn connection(stream: TcpStream, routes: Router, stop: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection is gone already");
    }
    let service =
        TowerToHyperService::new(tower::ServiceExt::<axum::extract::Request>::map_request(
            routes,
            |request: axum::http::Request<hyper::body::Incoming>| {
                request.map(axum::body::Body::new)
            },
        ));
    let serving = http1::Builder::new()
        .title_case_headers(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let done = tokio::select! {
        done = serving.as_mut() => done,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%error, "the connection ended early");
    }
}
