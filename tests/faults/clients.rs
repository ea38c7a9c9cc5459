//! Clients that break HTTP, on purpose or not: they get an error, and all other clients an answer.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::program::{Daemon, GitRepository};
use crate::{Fault, Seen, Speed};

const ERROR: &str = "an error with status 4xx or a closed connection, never a classification or a file, and other clients get their answers as before";

macro_rules! fault {
    ($name:literal, $promise:expr, $injection:literal, $run:expr) => {
        Fault {
            name: concat!("clients::", $name),
            promise: $promise,
            injection: $injection,
            speed: Speed::Fast,
            run: $run,
        }
    };
}

pub(crate) const FAULTS: &[Fault] = &[
    fault!(
        "two-lengths",
        "a body with an ambiguous end is refused, or is the last one of its connection: the bytes after it are never a request",
        "both Content-Length and Transfer-Encoding, and two Content-Length that differ",
        two_lengths
    ),
    fault!(
        "bad-lengths",
        ERROR,
        "a length that is negative, signed, hexadecimal, or too long",
        || {
            refused(&[
                post("Content-Length: -1\r\n", "{}"),
                post("Content-Length: +2\r\n", "{}"),
                post("Content-Length: 0x2\r\n", "{}"),
                post("Content-Length: 99999999999999999999999\r\n", "{}"),
            ])
        }
    ),
    fault!(
        "bad-chunks",
        ERROR,
        "chunk sizes that are not numbers, overflow, or end in one line feed",
        || {
            refused(&[
                post("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"),
                post("Transfer-Encoding: chunked\r\n", "-2\r\n{}\r\n0\r\n\r\n"),
                post("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
                post("Transfer-Encoding: chunked\r\n", "2\r\n{}XX0\r\n\r\n"),
                post("Transfer-Encoding: identity, foo\r\n", "{}"),
            ])
        }
    ),
    fault!(
        "large-head",
        ERROR,
        "a header of 2 MiB, 20,000 headers, and a target of 200 kB",
        || {
            let many = "X-Many: y\r\n".repeat(20_000);
            refused(&[
                format!(
                    "GET /v1/groups HTTP/1.1\r\nHost: localhost\r\nX-A: {}\r\n\r\n",
                    "a".repeat(2 << 20)
                )
                .into(),
                format!("GET /v1/groups HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").into(),
                format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(200_000)).into(),
            ])
        }
    ),
    fault!(
        "zero-bytes",
        ERROR,
        "zero and control bytes in method, target, header and body",
        || {
            refused(&[
                b"GE\0T / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
                b"GET /v1/gr\0oups HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
                b"GET /v1/groups HTTP/1.1\r\nHost: localhost\r\nX: \0\r\n\r\n".to_vec(),
                b"GET /v1/groups HTTP/1.1\r\nHost: localhost\r\nX\0: a\r\n\r\n".to_vec(),
                b"GET /v1/groups HTTP/1.1\r\nHost: localhost\r\nX : a\r\n\r\n".to_vec(),
                post("Content-Length: 3\r\n", "\0{}"),
            ])
        }
    ),
    fault!(
        "traversal",
        ERROR,
        "`..`, `%2e%2e%2f`, `%00` and bytes that are not UTF-8 in paths",
        || {
            let target = |it: &str| {
                format!("GET {it} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").into()
            };
            refused(&[
                target("/../../../../etc/passwd"),
                target("/v1/groups/..%2f..%2f..%2fetc%2fpasswd"),
                target("/v1/groups/%2e%2e/%2e%2e/etc/passwd"),
                target("/v1/groups/%00"),
                target("/v1/groups/%ff%fe"),
                target("/v1/environments/..%2f..%2f.git%2fconfig"),
                target("/controller/commits/..%2f..%2fconfig"),
                target("/v1/groups?commit=..%2f..%2fetc%2fpasswd"),
                target("/v1/groups?commit=--upload-pack%3dtouch"),
            ])
        }
    ),
    fault!("no-http", ERROR, "TLS, SSH, HTTP/2 and noise on the port", || {
        refused(&[
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
            b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            b"GET /v1/groups HTTP/9.9\r\nHost: localhost\r\n\r\n".to_vec(),
            (0..=255).cycle().take(10_000).collect(),
        ])
    }),
    fault!(
        "deep-bodies",
        ERROR,
        "100,000 nested lists, and facts that are a list, a number, a text",
        || {
            let body = |it: &str| {
                let length = it.len();
                post(&format!("Connection: close\r\nContent-Length: {length}\r\n"), it)
            };
            refused(&[
                body(&"[".repeat(100_000)),
                body(&format!("{{\"fact\":{}", "{\"a\":".repeat(100_000))),
                body(r#"{"fact": []}"#),
                body(r#"{"fact": 5}"#),
                body(r#"{"trusted": "x"}"#),
                body("{\"fact\": {\"a\": \"\u{1}\"}}"),
                body(r#"{"fact": {"a": NaN}}"#),
            ])
        }
    ),
    fault!("large-bodies", ERROR, "17 MiB of facts, and a length of 1 TB", || {
        let large = format!("{{\"fact\": {{\"a\": \"{}\"}}}}", "x".repeat(17 << 20));
        refused(&[
            post(&format!("Connection: close\r\nContent-Length: {}\r\n", large.len()), &large),
            post("Content-Length: 1000000000000\r\n", "{}"),
        ])
    }),
    fault!(
        "pipelined",
        "requests on one connection are answered in order, each whole",
        "200 requests of three kinds in one write",
        pipelined
    ),
    fault!(
        "unread",
        "clients that read nothing delay no other client",
        "20 connections that ask for 2 MB and never read",
        unread
    ),
    fault!(
        "reset",
        "clients that disconnect leak nothing",
        "400 connections that are dropped before, within and after their request",
        reset
    ),
    fault!(
        "silent",
        "connections without a request delay no other client",
        "300 connections that send half a head",
        silent
    ),
];

/// Returns a classification request with more headers.
fn post(headers: &str, body: &str) -> Vec<u8> {
    format!("POST /v1/classified/nodes/web1 HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n{body}")
        .into()
}

fn daemon() -> (GitRepository, Daemon) {
    let repository = GitRepository::new();
    let group = "name: A\nrule: [\"~\", name, \".*\"]\nclasses: {everywhere: {}}\n";
    repository.commit("first", &[("groups/a.yaml", group)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    (repository, daemon)
}

/// Sends bytes and returns what comes back within a second or until the peer closes.
fn raw(daemon: &Daemon, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    // It may be closed before all is sent.
    stream.write_all(bytes).ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    String::from_utf8_lossy(&answer).into_owned()
}

fn refused(requests: &[Vec<u8>]) -> Seen {
    let (_repository, daemon) = daemon();
    let mut statuses = std::collections::BTreeMap::<String, u32>::new();
    for request in requests {
        let shown = String::from_utf8_lossy(&request[..request.len().min(120)]).into_owned();
        let answer = raw(&daemon, request);
        let status = answer.split(' ').nth(1).unwrap_or("closed").to_owned();
        assert!(status == "closed" || status.starts_with('4'), "{status} for {shown:?}: {answer}");
        // The bytes after a request with an ambiguous end are not a request.
        assert_eq!(
            answer.matches("HTTP/1.1 ").count(),
            usize::from(status != "closed"),
            "{shown:?}"
        );
        assert!(!answer.contains("everywhere") && !answer.contains("root:"), "{answer}");
        *statuses.entry(status).or_default() += 1;
        assert_eq!(daemon.get("/v1/classified/nodes/web1").status, 200, "after {shown:?}");
    }
    let statuses: Vec<String> =
        statuses.iter().map(|(status, count)| format!("{count} × {status}")).collect();
    Seen::Held(statuses.join(", "))
}

/// A proxy in front may have read the other length: what follows must not pass for a request.
fn two_lengths() -> Seen {
    let (_repository, daemon) = daemon();
    let hidden = "0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut statuses = Vec::new();
    for headers in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 40\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: x, chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
    ] {
        let answer = raw(&daemon, &post(headers, hidden));
        let status = answer.split(' ').nth(1).unwrap_or("closed").to_owned();
        assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{headers}: {answer}");
        assert!(answer.is_empty() || answer.contains("Connection: close"), "{headers}: {answer}");
        statuses.push(status);
    }
    Seen::Held(format!("{}, each the last answer of its connection", statuses.join(", ")))
}

fn pipelined() -> Seen {
    let (_repository, daemon) = daemon();
    let mut requests = String::new();
    for number in 0..200 {
        requests += match number % 3 {
            0 => "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
            1 => {
                "POST /v1/classified/nodes/web1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
            }
            _ => "GET /v1/nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n",
        };
    }
    requests += "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    stream.write_all(requests.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let statuses: Vec<&str> =
        answer.split("HTTP/1.1 ").skip(1).map(|it| it.split(' ').next().unwrap()).collect();
    let expected: Vec<&str> = (0..=200).map(|it| if it % 3 == 2 { "404" } else { "200" }).collect();
    assert_eq!(statuses[..200], expected[..200]);
    Seen::Held("201 answers in order".to_owned())
}

/// Sends requests while clients misbehave; returns the slowest answer.
fn slowest(daemon: &Daemon) -> Duration {
    let ask = || {
        let began = Instant::now();
        assert_eq!(daemon.get("/v1/classified/nodes/web1").status, 200);
        assert_eq!(daemon.get("/livez").status, 200);
        began.elapsed()
    };
    (0..20).map(|_| ask()).max().unwrap()
}

fn unread() -> Seen {
    let repository = GitRepository::new();
    let text = "x".repeat(200_000);
    let files: Vec<(String, String)> = (0..10)
        .map(|it| (format!("groups/{it}.yaml"), format!("name: G{it}\ndescription: {text}\n")))
        .collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    repository.commit("first", &files);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let _held: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(&daemon.address).unwrap();
            stream.write_all(b"GET /v1/groups HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    let slowest = slowest(&daemon);
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    Seen::Held(format!("others wait {} ms at most", slowest.as_millis()))
}

fn reset() -> Seen {
    let (_repository, daemon) = daemon();
    let files = || std::fs::read_dir(format!("/proc/{}/fd", daemon.id())).unwrap().count();
    slowest(&daemon);
    let before = files();
    let whole = post("Content-Length: 2\r\n", "{}");
    for number in 0..400 {
        let mut stream = TcpStream::connect(&daemon.address).unwrap();
        stream.write_all(&whole[..whole.len() * (number % 5) / 4]).ok();
        if number % 2 == 0 {
            stream.shutdown(Shutdown::Write).ok();
        }
    }
    slowest(&daemon);
    daemon.wait_until("the connections are closed", |_| files() <= before + 4);
    Seen::Held("as many open files as before".to_owned())
}

fn silent() -> Seen {
    let (_repository, daemon) = daemon();
    let _held: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(&daemon.address).unwrap();
            stream.write_all(b"GET /v1/groups HTTP/1.1\r\nHost").unwrap();
            stream
        })
        .collect();
    let slowest = slowest(&daemon);
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    Seen::Held(format!("others wait {} ms at most", slowest.as_millis()))
}
