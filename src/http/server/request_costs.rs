//! What a request costs beside its computing: allocations, and polls of its connection.
//!
//! An allocation can wait for the lock of an arena that another thread has, and a poll for a thread to wake, so both are
//! tails. Their numbers are part of what a request promises, as the instructions of its core are, which
//! `benches/instructions` counts.

use std::future::poll_fn;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream as Client;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use allocation_counter::measure;
use axum::http::header;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::connection::{AcceptedStream, Connection};
use super::connection_limit::{ClientKey, ConnectionLimit};
use super::refusal_log::RefusalLog;
use crate::http::fixture::Fixture;
use crate::http::privacy::PrivacyPolicy;
use crate::http::router::RouteSet;

/// What the requests of a connection took.
#[derive(Debug, Default)]
struct Costs {
    /// Allocations of the thread that answers.
    allocations: u64,
    /// How often the runtime polled the connection.
    polls: u64,
}

/// Sends a request so often on one connection.
fn serve(fixture: &Fixture, request: &[u8], times: usize) -> Costs {
    let (mut client, server) = Client::pair().unwrap();
    server.set_nonblocking(true).unwrap();
    let request = request.to_vec();
    let asking = thread::spawn(move || {
        let mut answer = vec![0; 64 << 10];
        for _ in 0..times {
            // So that the connection sleeps before each.
            thread::sleep(Duration::from_millis(1));
            client.write_all(&request).unwrap();
            read_answer(&mut client, &mut answer);
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let metrics = Arc::<crate::telemetry::Metrics>::default();
    let routes = fixture.dispatcher.clone();
    let mut polls = 0;
    let taken = measure(|| {
        runtime.block_on(async {
            let limit = Arc::new(ConnectionLimit::new("test", 8, metrics));
            let guard = Arc::new(limit.acquire(&ClientKey::Local).await);
            let connection = Connection {
                routes,
                stop: CancellationToken::new(),
                guard,
                refusal_log: Arc::<RefusalLog>::default(),
                timeout: Duration::from_mins(1),
            };
            let stream = AcceptedStream::Unix(UnixStream::from_std(server).unwrap());
            let mut serving = pin!(connection.run(stream));
            poll_fn(|cx| {
                polls += 1;
                serving.as_mut().poll(cx)
            })
            .await;
        });
    });
    asking.join().unwrap();
    Costs { allocations: taken.count_total, polls }
}

/// Reads one answer, which has to be a good one.
fn read_answer(client: &mut Client, buffer: &mut [u8]) {
    let mut length = 0;
    loop {
        length += client.read(&mut buffer[length..]).unwrap();
        let text = std::str::from_utf8(&buffer[..length]).unwrap();
        assert!(text.starts_with("HTTP/1.1 200") || length < 12, "{text}");
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut fields = head.lines().filter_map(|it| it.split_once(": "));
            let is_length = |(name, _): &(&str, &str)| {
                header::CONTENT_LENGTH.as_str().eq_ignore_ascii_case(name)
            };
            let (_, length) = fields.find(is_length).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                return;
            }
        }
    }
}

/// Returns what one request takes, as the difference of two connections that send the same one often.
fn costs(fixture: &Fixture, request: &str) -> Costs {
    let request = request.as_bytes();
    // What is filled at first, such as the buffers of a thread, is left out.
    serve(fixture, request, 20);
    let (few, many) = (serve(fixture, request, 20), serve(fixture, request, 220));
    Costs {
        allocations: (many.allocations - few.allocations) / 200,
        polls: (many.polls - few.polls) / 200,
    }
}

/// Returns a request to classify a node by such facts.
fn classify(body: &str) -> String {
    format!(
        "POST /v2/classified/nodes/n.example.com HTTP/1.1\r\nHost: localhost\r\nContent-Type: \
         application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

const ENC: &str = "GET /enc/n.example.com HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Returns facts of about 24 KB, as nodes have them.
fn facts() -> String {
    let facts = (0..116).map(|number| {
        format!(
            "\"fact_{number}\": {{\"name\": \"value {number}\", \"sizes\": [{number}, 1048576, true], \"path\": \
             \"/usr/share/{number}/{}\"}}",
            "x".repeat(120)
        )
    });
    let facts: Vec<String> = facts.collect();
    format!("{{\"fact\": {{\"kernel\": \"Linux\", {}}}, \"trusted\": {{}}}}", facts.join(", "))
}

fn fixture() -> Fixture {
    let group =
        "name: A\nrule: [\"=\", [fact, kernel], Linux]\nclasses:\n  ntp: {servers: [a, b]}\n";
    Fixture::of(RouteSet::Whole, ["name: A\n", group], PrivacyPolicy::default())
}

#[test]
fn a_request_allocates_little_beside_its_body() {
    let fixture = fixture();
    let classified = costs(&fixture, &classify(&facts()));
    // Nine are for the body, the answer and the check-in; most others are of axum and hyper.
    assert!(classified.allocations <= 23, "{classified:?}");
    let enc = costs(&fixture, ENC);
    assert!(enc.allocations <= 14, "{enc:?}");
}

/// A second poll would be one for which another thread is woken.
#[test]
fn a_request_that_comes_at_once_is_answered_in_one_poll() {
    let fixture = fixture();
    let body = "{\"fact\": {\"kernel\": \"Linux\"}, \"trusted\": {}}";
    let (classified, enc) = (costs(&fixture, &classify(body)), costs(&fixture, ENC));
    assert!(classified.polls <= 1 && enc.polls <= 1, "{classified:?} {enc:?}");
}
