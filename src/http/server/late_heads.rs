//! Connections whose client is late with the head of a request end, and no others.
#![expect(clippy::disallowed_methods, reason = "the tests wait for deadlines")]

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::connection::{AcceptedStream, Connection};
use super::connection_limit::{ClientKey, ConnectionLimit};
use super::refusal_log::RefusalLog;
use super::request_handler::RequestHandler;
use crate::telemetry::Metrics;

const TIMEOUT: Duration = Duration::from_millis(300);

/// Answers `/slow` for three times as long as a head may take, and all else once its body is there.
#[derive(Clone)]
struct SlowBodies;

impl RequestHandler for SlowBodies {
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn handle(&self, request: Request) -> Self::Future {
        let is_slow = request.uri().path() == "/slow";
        let chunks = stream::unfold(0, async |sent| {
            if sent > 0 {
                tokio::time::sleep(TIMEOUT * 3 / 2).await;
            }
            (sent < 3).then(|| (Ok::<_, std::io::Error>(Bytes::from_static(b"part")), sent + 1))
        });
        let body = if is_slow { Body::from_stream(Box::pin(chunks)) } else { Body::from("whole") };
        Box::pin(async move {
            let received = to_bytes(request.into_body(), usize::MAX).await;
            let status = if received.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
            let mut response = Response::new(body);
            *response.status_mut() = status;
            response
        })
    }
}

/// Sends something on a connection, and returns what came back, and after how long it ended.
async fn exchange(sent: &[u8]) -> (String, Duration) {
    exchange_parts(&[sent]).await
}

/// Sends parts, each two thirds of the time of a head after the one before, but for the second, which follows soon.
async fn exchange_parts(sent: &[&[u8]]) -> (String, Duration) {
    let (mut client, server) = UnixStream::pair().unwrap();
    let limit = Arc::new(ConnectionLimit::new("test", 8, Arc::<Metrics>::default()));
    let connection = Connection {
        routes: SlowBodies,
        stop: CancellationToken::new(),
        guard: Arc::new(limit.acquire(&ClientKey::Local).await),
        refusal_log: Arc::<RefusalLog>::default(),
        timeout: TIMEOUT,
    };
    let began = Instant::now();
    let asking = async {
        for (number, part) in sent.iter().enumerate() {
            let pause = [Duration::ZERO, TIMEOUT / 15, TIMEOUT * 2 / 3][number.min(2)];
            tokio::time::sleep(pause).await;
            client.write_all(part).await.unwrap();
        }
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let ((), answer) = tokio::join!(connection.run(AcceptedStream::Unix(server)), asking);
    (answer, began.elapsed())
}

#[tokio::test]
async fn a_connection_ends_when_a_head_is_late() {
    let whole = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let (second, body) = (
        format!("{whole}{whole}GET /"),
        format!("{whole}POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}"),
    );
    let rows = [
        ("", 0),
        ("GET / HTTP/1.1\r\nHos", 0),
        (whole, 1),
        (second.as_str(), 2),
        (body.as_str(), 2),
    ];
    for (sent, answers) in rows {
        let (answer, took) = exchange(sent.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 200").count(), answers, "{sent:?}: {answer}");
        assert!(
            TIMEOUT <= took + Duration::from_millis(20) && took < TIMEOUT * 5,
            "{sent:?} {took:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_takes_longer_than_a_head_may_is_sent_whole() {
    let (answer, took) = exchange(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.matches("part").count(), 3, "{answer}");
    assert!(answer.ends_with("0\r\n\r\n"), "{answer}");
    // Two pauses, the one before the end, and the next head.
    assert!(TIMEOUT * 4 <= took, "{took:?}");
}

#[tokio::test]
async fn a_body_that_is_sent_when_it_is_asked_for_may_take_longer_than_a_head() {
    // So many bytes in a second earn the time that they take.
    let part = vec![b' '; 64 << 10];
    let length = part.len() * 4;
    for expects in ["", "Expect: 100-continue\r\n"] {
        let head =
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{expects}\r\n");
        let (answer, took) = exchange_parts(&[head.as_bytes(), &part, &part, &part, &part]).await;
        assert_eq!(answer.contains("100 Continue"), !expects.is_empty(), "{answer}");
        assert!(answer.contains("HTTP/1.1 200"), "{expects:?} {answer}");
        assert!(TIMEOUT * 2 < took, "{took:?}");
    }
}
