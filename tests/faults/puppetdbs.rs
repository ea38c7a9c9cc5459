//! A PuppetDB that misbehaves: a command says why and exits with 2, and the daemon answers with an error
//! what needs it, never without facts.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::commits::within;
use crate::git::server::{Request, Server, status};
use crate::program::{Daemon, Done, GitRepository, Response, clade, serve};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "puppetdbs::diff",
        promise: "`clade diff --puppetdb` reports the fault, exits with 2, prints nothing, and sends its token nowhere else",
        injection: "garbage, pages, half an answer, a redirect, a node without a name or with 9,000,000 values, instead of the names of nodes and of their facts; another node than was requested",
        speed: Speed::Fast,
        run: diff,
    },
    Fault {
        name: "puppetdbs::diff-endless",
        promise: "an answer without an end is cut off within 1 GiB of address space: exit 2",
        injection: "a list of names, a list of nodes, and a node, that never end",
        speed: Speed::Slow,
        run: diff_endless,
    },
    Fault {
        name: "puppetdbs::diff-hang",
        promise: "a PuppetDB that does not answer is given up after a minute: exit 2",
        injection: "the PuppetDB takes the request and never answers",
        speed: Speed::Slow,
        run: diff_hang,
    },
    Fault {
        name: "puppetdbs::daemon",
        promise: "`GET /enc` of a node that only PuppetDB knows is an error while PuppetDB misbehaves; requests with facts are answered",
        injection: "garbage, half an answer, a redirect, an endless node and one of 9,000,000 values, within 640 MiB of address space",
        speed: Speed::Slow,
        run: daemon,
    },
    Fault {
        name: "puppetdbs::daemon-hang",
        promise: "a PuppetDB that does not answer delays only requests that need it, and these by no more than its deadline",
        injection: "the PuppetDB takes 40 requests and never answers",
        speed: Speed::Slow,
        run: daemon_hang,
    },
];

/// The address space of a command.
const SPACE: u64 = 1 << 30;

/// What a PuppetDB does with a request.
type Misbehave = fn(&mut TcpStream);

fn send(stream: &mut TcpStream, bytes: &[u8]) {
    // The client has closed the connection.
    stream.write_all(bytes).ok();
}

fn answer(stream: &mut TcpStream, body: &str) {
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}", body.len());
    send(stream, format!("{head}\r\n\r\n{body}").as_bytes());
}

/// Sends the beginning of an answer, and then something for ever.
fn endless(stream: &mut TcpStream, start: &str, more: &str) {
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok();
    stream.write_all(start.as_bytes()).ok();
    let more = more.repeat(4096);
    while stream.write_all(more.as_bytes()).is_ok() {}
}

/// Returns a list of one node with nine million values.
fn wide() -> String {
    format!("[{{\"certname\":\"a\",\"facts\":{{\"x\":[{}0]}}}}]", "0,".repeat(8_000_000))
}

fn puppetdb(misbehave: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> (Server, String) {
    let server = Server::start(move |mut stream| {
        if Request::read(&mut stream).is_some() {
            misbehave(&mut stream);
        }
    });
    let url = format!("http://127.0.0.1:{}", server.port);
    (server, url)
}

/// One that misbehaves only when it is asked for the facts of its node, `a`.
fn puppetdb_with_names(
    misbehave: impl Fn(&mut TcpStream) + Send + Sync + 'static,
) -> (Server, String) {
    let server = Server::start(move |mut stream| {
        let Some(request) = Request::read(&mut stream) else { return };
        if String::from_utf8_lossy(&request.body).contains("extract") {
            answer(&mut stream, "[{\"certname\": \"a\"}]");
        } else {
            misbehave(&mut stream);
        }
    });
    let url = format!("http://127.0.0.1:{}", server.port);
    (server, url)
}

fn two_commits() -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    repository.commit("second", &[("groups/a.yaml", "name: A\nclasses: {ntp: {}}\n")]);
    repository
}

fn diff_with(repository: &GitRepository, url: &str) -> Done {
    let path = repository.text_path();
    let token = repository.path().join(".git/token");
    std::fs::write(&token, "secret-token").unwrap();
    let token = token.to_str().unwrap();
    let arguments = ["diff", "HEAD~1", "HEAD", "--repo", &path, "--puppetdb", url];
    let token = ["--token-file", token];
    within(SPACE, &clade(&[&arguments[..], &token].concat())).output().unwrap().into()
}

/// Runs the command, and returns what it says.
fn refused(repository: &GitRepository, url: &str) -> String {
    let done = diff_with(repository, url);
    assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{}", done.stderr);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{}", done.stderr);
    assert!(lines[0].starts_with("error: "), "{}", done.stderr);
    assert!(!lines[0].contains("secret"), "{}", done.stderr);
    lines[0].to_owned()
}

fn diff() -> Seen {
    let repository = two_commits();
    let asked = Arc::new(AtomicUsize::new(0));
    let other = Server::start({
        let asked = Arc::clone(&asked);
        move |_| {
            asked.fetch_add(1, Ordering::SeqCst);
        }
    });
    let port = other.port;
    let (_server, url) = puppetdb(move |stream| {
        let location = format!("Location: http://127.0.0.1:{port}/\r\n");
        stream.write_all(&status("302 Found", &location)).ok();
    });
    let said = refused(&repository, &url);
    assert!(
        said.ends_with("answers 302 Found, and redirects are not followed: correct the URL"),
        "{said}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 0, "the other host was asked");
    let cases: &[(Misbehave, &str)] = &[
        (|stream| send(stream, &[0, 255, 7, 13, 10].repeat(1000)), "cannot reach `"),
        (|_| {}, "cannot reach `"),
        (
            |stream| answer(stream, "<html>Please log in</html>"),
            "it is not a list of JSON: expected value",
        ),
        (
            |stream| answer(stream, "{\"error\": \"no\"}"),
            "it is not a list of JSON: invalid type: map",
        ),
        (
            |stream| answer(stream, "[{\"facts\": {}}]"),
            "a node cannot be read: missing field `certname`",
        ),
        (
            |stream| {
                answer(stream, "[{\"certname\": \"a\", \"facts\": \"{'password': 'hunter2'}\"}]");
            },
            "a node cannot be read: facts and trusted data are objects, and this is none at line 1",
        ),
        (|stream| answer(stream, "[{\"certname\": \"a\", \"facts\": {}}"), "it broke off: EOF"),
        (
            |stream| send(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n[{\"certname\""),
            "it broke off: ",
        ),
        (|stream| answer(stream, &wide()), "more than"),
        (|stream| send(stream, &status("503 Service Unavailable", "")), "answers 503"),
    ];
    for (misbehave, piece) in cases {
        for (_server, url) in [puppetdb(*misbehave), puppetdb_with_names(*misbehave)] {
            let said = refused(&repository, &url);
            assert!(said.contains(piece), "expected `{piece}`: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    let (_server, url) = puppetdb_with_names(|stream| {
        answer(stream, "[{\"certname\": \"b\", \"facts\": {}}]");
    });
    let said = refused(&repository, &url);
    assert!(said.contains("PuppetDB answers with `b`, a node that was not requested"), "{said}");
    // One that is well.
    let (_server, url) = puppetdb(|stream| {
        answer(stream, "[{\"certname\": \"web\", \"facts\": {}, \"trusted\": {}}]");
    });
    let done = diff_with(&repository, &url);
    assert_eq!(done.status, 0, "{}", done.stderr);
    Seen::Held(format!("{} answers are refused in one line each, with exit 2", 2 * cases.len() + 2))
}

fn diff_endless() -> Seen {
    let repository = two_commits();
    let mut all = Vec::new();
    let names: Misbehave = |stream| endless(stream, "[", "{\"certname\":\"a\"},");
    let nodes: [(Misbehave, &str); 3] = [
        (
            |stream| endless(stream, "[{\"certname\":\"a\",\"facts\":{\"x\":[", "0,"),
            "an element has more than 16777216 bytes",
        ),
        (
            |stream| endless(stream, "[{\"certname\":\"a\",\"facts\":{\"x\":\"", "long"),
            "an element has more than 16777216 bytes",
        ),
        (
            |stream| endless(stream, "[", "{\"certname\":\"a\",\"facts\":{\"x\":[0,0,0,0]}},"),
            "cannot be used: it broke off",
        ),
    ];
    let nodes = nodes.map(|(misbehave, piece)| (puppetdb_with_names(misbehave), piece));
    let names = (puppetdb(names), "the names of the nodes take more than");
    for ((_server, url), piece) in [names].into_iter().chain(nodes) {
        let began = Instant::now();
        let said = refused(&repository, &url);
        assert!(said.contains(piece), "expected `{piece}`: {said}");
        all.push(format!("{:.1} s", began.elapsed().as_secs_f32()));
    }
    Seen::Held(format!("exit 2 after {}", all.join(", ")))
}

fn diff_hang() -> Seen {
    let (_server, url) = puppetdb(|stream| {
        std::io::copy(stream, &mut std::io::sink()).ok();
    });
    let began = Instant::now();
    let said = refused(&two_commits(), &url);
    Seen::Held(format!("{said}, after {:.0} s", began.elapsed().as_secs_f32()))
}

fn start(repository: &GitRepository, url: &str) -> Daemon {
    let program = serve(&["--repo", &repository.text_path(), "--puppetdb", url]);
    Daemon::launch(within(640 << 20, &program))
}

/// Checks that what needs no facts of PuppetDB is answered.
fn assert_answers(daemon: &Daemon) {
    assert_eq!(daemon.get("/v1/groups").status, 200);
    let answer = daemon.request("POST", "/v1/classified/nodes/known", "{\"fact\": {}}");
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// Checks that the answer has `Retry-After`.
fn assert_unreachable(answer: &Response) {
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert_eq!(answer.json()["kind"], "puppetdb-unreachable");
    assert_eq!(answer.header("Retry-After"), Some("5"));
}

fn daemon() -> Seen {
    let repository = two_commits();
    let cases: &[Misbehave] = &[
        |stream| send(stream, &[0, 255, 7, 13, 10].repeat(1000)),
        |stream| answer(stream, "<html>"),
        |stream| answer(stream, "[{\"certname\": \"web\", \"facts\": {}}"),
        |stream| answer(stream, &wide()),
        |stream| endless(stream, "[{\"certname\":\"web\",\"facts\":{\"x\":[", "0,"),
        |stream| send(stream, &status("302 Found", "Location: http://127.0.0.2:9/\r\n")),
    ];
    for misbehave in cases {
        let (_server, url) = puppetdb(*misbehave);
        let daemon = start(&repository, &url);
        let answer = daemon.get("/enc/web");
        assert_unreachable(&answer);
        assert_answers(&daemon);
    }
    let (_server, url) = puppetdb(|stream| {
        answer(stream, "[{\"certname\": \"web\", \"facts\": {}, \"trusted\": {}}]");
    });
    assert_eq!(start(&repository, &url).get("/enc/web").status, 200);
    Seen::Held(format!("an error {} times, 200 from one that is well", cases.len()))
}

fn daemon_hang() -> Seen {
    let repository = two_commits();
    let (_server, url) = puppetdb(|stream| {
        std::io::copy(stream, &mut std::io::sink()).ok();
    });
    let daemon = start(&repository, &url);
    let began = Instant::now();
    let ask = |number: usize| {
        let address = daemon.address.clone();
        move || Daemon::at(&address).get(&format!("/enc/n{number}")).status
    };
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..40).map(|it| scope.spawn(ask(it))).collect();
        std::thread::sleep(Duration::from_millis(200));
        assert_answers(&daemon);
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|it| *it == 503), "{statuses:?}");
    let took = began.elapsed().as_secs_f32();
    Seen::Held(format!("40 errors after {took:.1} s, other answers meanwhile"))
}
