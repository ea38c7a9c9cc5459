//! A bare axum server: what requests cost that do less, or only the least.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::world::Scale;
use crate::{GROUPS, least};

/// The server, in a process of its own.
pub(crate) struct Bare {
    child: Child,
    pub(crate) address: String,
}

impl Bare {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--bare", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.next().unwrap().unwrap();
        Self { child, address }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::main]
pub(crate) async fn serve(port: &str) {
    // A reply of the size that classifications have.
    let reply = "x".repeat(1024);
    let (fixed, read) = (reply.clone(), reply.clone());
    let (validated, parsed) = (reply.clone(), reply);
    let router = Router::new()
        .route("/fixed/{name}", get(|| async move { fixed.clone() }))
        .route(
            "/read/{name}",
            post(|body: Bytes| async move { answer(!body.is_empty(), read.clone()) }),
        )
        .route(
            "/validate/{name}",
            post(|body: Bytes| async move {
                answer(serde_json::from_slice::<IgnoredAny>(&body).is_ok(), validated.clone())
            }),
        )
        .route(
            "/value/{name}",
            post(|body: Bytes| async move {
                answer(serde_json::from_slice::<Value>(&body).is_ok(), parsed.clone())
            }),
        )
        .merge(least::router(Scale::of(GROUPS)));
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    axum::serve(listener, router).await.unwrap();
}

fn answer(good: bool, reply: String) -> Response {
    if good { reply.into_response() } else { StatusCode::BAD_REQUEST.into_response() }
}
