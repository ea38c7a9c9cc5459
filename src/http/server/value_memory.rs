//! Memory for the values of a body is waited for where values are made, and nowhere else.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::connection::{AcceptedStream, Connection};
use super::connection_limit::{ClientKey, ConnectionLimit};
use super::memory_budget::ORDINARY;
use super::refusal_log::RefusalLog;
use crate::http::fixture::Fixture;
use crate::http::privacy::PrivacyPolicy;
use crate::http::router::RouteSet;
use crate::telemetry::Metrics;

/// Sends a request on a connection of its own, and returns the status of the answer.
async fn ask(fixture: &Fixture, path: &str, body: String) -> u16 {
    let (mut client, server) = UnixStream::pair().unwrap();
    let limit = Arc::new(ConnectionLimit::new("test", 8, Arc::<Metrics>::default()));
    let connection = Connection {
        routes: fixture.dispatcher.clone(),
        stop: CancellationToken::new(),
        guard: Arc::new(limit.acquire(&ClientKey::Local).await),
        refusal_log: Arc::<RefusalLog>::default(),
        timeout: Duration::from_mins(1),
    };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let asking = async {
        client.write_all((head + &body).as_bytes()).await.unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).await.unwrap();
        str::from_utf8(&status[9..]).unwrap().parse().unwrap()
    };
    tokio::select! {
        () = connection.run(AcceptedStream::Unix(server)) => panic!("the connection ended"),
        status = asking => status,
    }
}

/// Returns facts of 5,000 values, which take one and a half MiB.
fn facts() -> String {
    let facts: Vec<_> = (0..5_000).map(|number| format!("\"f{number}\":1")).collect();
    facts.join(",")
}

const CLASSIFY: &str = "/v1/classified/nodes/n";

/// Asks while the budget has one MiB left, and later. Returns whether the answer came at once.
async fn is_answered_without_memory(fixture: &Fixture, path: &str, body: String) -> bool {
    let held = ORDINARY.admit_all_but(1 << 10).await;
    let mut asking = Box::pin(ask(fixture, path, body));
    let at_once = tokio::time::timeout(Duration::from_secs(1), asking.as_mut()).await;
    drop(held);
    let status = match at_once {
        Ok(status) => status,
        Err(_) => asking.await,
    };
    assert_eq!(status, 200);
    at_once.is_ok()
}

#[tokio::test]
async fn a_body_waits_for_the_memory_of_its_values_only_where_they_are_made() {
    let group = "name: A\nrule: [\"=\", [fact, kernel], Linux]\n";
    let fixture = Fixture::of(RouteSet::Whole, ["name: A\n", group], PrivacyPolicy::default());
    let (facts, list) = (facts(), vec!["1234"; 5_000].join(","));
    let rows = [
        ("no value is made", CLASSIFY, format!("{{\"fact\":{{{facts}}}}}"), true),
        ("few are", CLASSIFY, format!("{{\"fact\":{{\"kernel\":[1,2],{facts}}}}}"), true),
        (
            "a rule reads a long list",
            CLASSIFY,
            format!("{{\"fact\":{{\"kernel\":[{list}]}}}}"),
            false,
        ),
        ("an id that is none", CLASSIFY, format!("{{\"transaction_uuid\":[{list}]}}"), false),
        (
            "it is declined as text",
            CLASSIFY,
            format!("{{\"fact\":{{\"name\":\"n\",\"values\":{{{facts}}}}}}}"),
            false,
        ),
        ("another route", "/enc/n", format!("{{\"fact\":{{{facts}}}}}"), false),
    ];
    for (what, path, body, at_once) in rows {
        assert_eq!(is_answered_without_memory(&fixture, path, body).await, at_once, "{what}");
    }
}
