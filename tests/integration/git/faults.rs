//! Servers that misbehave: each failure has its reason, and the deadline always holds.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clade::internals::git::{FetchError, FetchFailure, Mirror, MirrorOptions, Remote};

use super::server::{Request, Server, drip, has_git, http_backend, status};
use super::transports::options;
use crate::repository::{Origin, Put};

const TIMEOUT: Duration = Duration::from_millis(400);

/// Fetches once, and checks that it ends within its limit.
fn fetch(url: &str, options: MirrorOptions) -> FetchError {
    let data = tempfile::tempdir().unwrap();
    let timeout = options.timeout;
    let mirror = Mirror::open(data.path(), Remote::parse(url).unwrap(), options).unwrap();
    let start = Instant::now();
    let error = mirror.fetch(None).unwrap_err();
    let took = start.elapsed();
    assert!(took < timeout + Duration::from_millis(500), "{url} took {took:?}");
    error
}

fn hasty() -> MirrorOptions {
    MirrorOptions { timeout: TIMEOUT, ..options() }
}

#[test]
fn each_answer_of_a_server_has_its_reason() {
    for (line, headers, failure) in [
        ("401 Unauthorized", "", FetchFailure::AuthenticationFailed),
        ("403 Forbidden", "", FetchFailure::AuthenticationFailed),
        ("404 Not Found", "", FetchFailure::RepositoryNotFound),
        ("410 Gone", "", FetchFailure::RepositoryNotFound),
        ("500 Internal Server Error", "", FetchFailure::Other),
        ("503 Service Unavailable", "", FetchFailure::Other),
        ("302 Found", "", FetchFailure::RedirectRefused),
        ("302 Found", "Location: https://example.invalid/x\r\n", FetchFailure::RedirectRefused),
        ("200 OK", "Content-Type: text/html\r\n", FetchFailure::RepositoryNotFound),
    ] {
        let server = Server::http(move |_| status(line, headers));
        let error = fetch(&format!("http://127.0.0.1:{}/x.git", server.port), options());
        assert_eq!(error.failure, failure, "{line} {headers}: {error}");
    }
}

#[test]
fn a_refused_connection_and_an_unknown_name_are_different_faults() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // A label that is too long: the resolver refuses it without a query.
    let unknown = "x".repeat(64);
    for scheme in ["git", "http", "https"] {
        let error = fetch(&format!("{scheme}://127.0.0.1:{port}/x.git"), options());
        assert_eq!(error.failure, FetchFailure::ConnectFailed, "{error}");
        let error = fetch(&format!("{scheme}://{unknown}.invalid/x.git"), options());
        assert_eq!(error.failure, FetchFailure::DnsFailed, "{error}");
    }
}

#[test]
fn a_peer_without_tls_is_reported() {
    let server = Server::start(|mut stream| {
        stream.write_all(b"SSH-2.0-OpenSSH_10.0\r\n").ok();
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    });
    let error = fetch(&format!("https://127.0.0.1:{}/x.git", server.port), options());
    assert_eq!(error.failure, FetchFailure::TlsFailed, "{error}");
}

#[test]
fn the_deadline_holds_against_silence_and_drops() {
    let refs = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n";
    let silent = Server::start(|mut stream| {
        // It reads all there is and never says a word.
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    });
    let slow_head = Server::start(|mut stream| drip(&mut stream, b"HTTP/1.1 200 OK\r\nX-Slow: "));
    let slow_body = Server::start(move |mut stream| {
        Request::read(&mut stream);
        write!(stream, "{refs}Content-Length: 1000000\r\n\r\n").ok();
        drip(&mut stream, b"001e# service=git-upload-pack\n0000");
    });
    // The length of a packet, and of a TLS record, whose end never comes.
    let slow_packet = Server::start(|mut stream| drip(&mut stream, b"fff0"));
    let slow_record = Server::start(|mut stream| drip(&mut stream, b"\x16\x03\x03\x40\x00\x02"));
    for (url, what) in [
        (format!("http://127.0.0.1:{}/x", silent.port), "silent"),
        (format!("https://127.0.0.1:{}/x", silent.port), "silent in the handshake"),
        (format!("git://127.0.0.1:{}/x", silent.port), "silent"),
        (format!("http://127.0.0.1:{}/x", slow_head.port), "slow head"),
        (format!("https://127.0.0.1:{}/x", slow_record.port), "slow handshake"),
        (format!("http://127.0.0.1:{}/x", slow_body.port), "slow body"),
        (format!("git://127.0.0.1:{}/x", slow_packet.port), "slow packet"),
    ] {
        let error = fetch(&url, hasty());
        let message = format!("`{url}` cannot be fetched: it took longer than 400ms");
        assert_eq!((error.failure, error.message), (FetchFailure::Timeout, message), "{what}");
    }
}

/// A change of the answer that holds a pack.
enum Spoil {
    CutShort,
    TurnABit,
}

#[test]
fn a_spoilt_pack_leaves_the_mirror_as_it_was() {
    if !has_git() {
        return;
    }
    let (origin, first) = Origin::with_a_commit();
    for (spoil, failure) in [
        (Spoil::CutShort, FetchFailure::ConnectFailed),
        (Spoil::TurnABit, FetchFailure::MalformedResponse),
    ] {
        let directory = origin.path().parent().unwrap().to_owned();
        let spoiling = Arc::new(AtomicBool::new(true));
        let spoils = Arc::clone(&spoiling);
        let server = Server::http(move |request| {
            let mut answer = http_backend(&directory, request);
            if request.method == "POST" && spoils.load(Ordering::SeqCst) {
                match spoil {
                    Spoil::CutShort => answer.truncate(answer.len() - 60),
                    Spoil::TurnABit => {
                        // Progress for people comes before and after the pack.
                        let pack = answer.windows(4).position(|it| it == b"PACK").unwrap();
                        answer[pack + 30] ^= 1;
                    }
                }
            }
            answer
        });
        let data = tempfile::tempdir().unwrap();
        let url = format!("http://127.0.0.1:{}/groups.git", server.port);
        let mirror = Mirror::open(data.path(), Remote::parse(&url).unwrap(), options()).unwrap();
        let error = mirror.fetch(None).unwrap_err();
        assert_eq!(error.failure, failure, "{error}");
        assert!(mirror.repository().unwrap().resolve(&first).is_err());
        spoiling.store(false, Ordering::SeqCst);
        assert_eq!(mirror.fetch(None).unwrap().head.to_string(), first);
    }
}

#[test]
fn more_bytes_than_allowed_are_not_taken() {
    if !has_git() {
        return;
    }
    let origin = Origin::new();
    // Text that does not compress.
    let text: String =
        (0..20_000_u32).map(|it| it.wrapping_mul(2_654_435_761).to_string()).collect();
    origin.commit("main", &[("groups/large.yaml", Put::File(&text))]);
    let directory = origin.path().parent().unwrap().to_owned();
    let server = Server::http(move |request| http_backend(&directory, request));
    let url = format!("http://127.0.0.1:{}/groups.git", server.port);
    let error = fetch(&url, MirrorOptions { max_bytes: 10_000, ..options() });
    let message = format!("`{url}` cannot be fetched: it sends more than 10000 bytes");
    assert_eq!((error.failure, error.message), (FetchFailure::LimitExceeded, message));
}
