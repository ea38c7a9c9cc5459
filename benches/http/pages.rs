//! How long the pages of the console take, how large they are, and what a person who clicks costs those that ask.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Load, Rate};
use super::daemon::Daemon;
use super::world::Scale;

/// How many nodes have checked in.
const FLEET: usize = 100_000;

/// How often each page is loaded.
const LOADS: usize = 100;

/// How often a person clicks.
const CLICK: Duration = Duration::from_millis(500);

/// Measures every page with a whole fleet, and requests of agents beside a person who clicks.
pub(crate) fn pages(scale: Scale, bodies: &[(String, Vec<u8>)]) {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let limit = ["--store-max-nodes", "200000", "--data-dir", data.to_str().unwrap()];
    let daemon = Daemon::start_with(scale, &limit);
    check_in(&daemon.address, bodies);
    let mut client = Client::new(&daemon.address);
    let counted: Value = client.json("/controller/node-counts");
    let groups: Value = client.json("/v1/groups?limit=300");
    let group = groups[250]["id"].as_str().unwrap().to_owned();
    eprintln!("{} nodes", counted["total"]);
    let status: Value = client.json("/controller/status");
    let head = status["active"]["commit"].as_str().unwrap().to_owned();
    let of_page = [
        "/".to_owned(),
        "/nodes".to_owned(),
        "/nodes?q=i777".to_owned(),
        "/nodes?sort=-last-seen".to_owned(),
        "/nodes?sort=-state&offset=50000".to_owned(),
        "/nodes/i777.example.com".to_owned(),
        "/nodes/i777.example.com/history".to_owned(),
        "/nodes/i777.example.com/facts".to_owned(),
        "/groups".to_owned(),
        format!("/groups/{group}"),
        "/commits".to_owned(),
        format!("/commits/{head}"),
        "/problems".to_owned(),
        "/query?rule=name%20%3D%20i777.example.com".to_owned(),
    ];
    println!("| page | p50 ms | p99 ms | KiB compressed |");
    println!("|---|---|---|---|");
    for path in &of_page {
        let began = Instant::now();
        client.get(path);
        let first = began.elapsed();
        // One that takes long is loaded less often.
        let loads = if first > Duration::from_millis(500) { 12 } else { LOADS };
        let mut times = Vec::new();
        let mut size = 0;
        for _ in 0..loads {
            let began = Instant::now();
            size = client.get(path).len();
            times.push(began.elapsed());
        }
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        println!(
            "| `{path}` | {:.1} | {:.1} | {:.1} |",
            at(50).as_secs_f64() * 1e3,
            at(99).as_secs_f64() * 1e3,
            size as f64 / 1024.0
        );
    }
    clicks(&daemon, &Load::posts(&daemon.address, "/v1/classified/nodes/", bodies), &of_page);
}

/// Requests of agents while a person clicks from page to page, against requests in peace.
fn clicks(daemon: &Daemon, load: &Load, pages: &[String]) {
    let load = load.paced();
    let turn = Duration::from_secs(4);
    let mut ratios = Vec::new();
    load.run(turn, daemon.pid());
    for _ in 0..9 {
        let quiet: Rate = load.run(turn, daemon.pid());
        let stop = AtomicBool::new(false);
        let busy = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = Client::new(&daemon.address);
                for path in pages.iter().cycle() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    client.get(path);
                    std::thread::sleep(CLICK);
                }
            });
            let busy = load.run(turn, daemon.pid());
            stop.store(true, Ordering::Relaxed);
            busy
        });
        ratios.push(busy.p99.as_secs_f64() / quiet.p99.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "| C1 | p99 of requests while a person clicks ÷ p99 without | {:.2} ({:.2}–{:.2}) | | ≤ 1.1 | ≤ 1.0 |",
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1]
    );
}

/// Checks a fleet in, over a few connections at an even pace.
fn check_in(address: &str, bodies: &[(String, Vec<u8>)]) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::new(address);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= FLEET {
                        return;
                    }
                    let body = &bodies[number % bodies.len()].1;
                    let path = format!("/v1/classified/nodes/i{number}.example.com");
                    client.send("POST", &path, body);
                    std::thread::sleep(Duration::from_millis(3));
                }
            });
        }
    });
}

/// A connection that stays, of a browser.
struct Client(TcpStream);

impl Client {
    fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    fn get(&mut self, path: &str) -> Vec<u8> {
        let (status, body) = self.exchange("GET", path, "Accept-Encoding: gzip\r\n", b"");
        assert!(status.contains(" 200 "), "{path}: {status}");
        body
    }

    fn json(&mut self, path: &str) -> Value {
        serde_json::from_slice(&self.exchange("GET", path, "", b"").1).unwrap()
    }

    fn send(&mut self, method: &str, path: &str, body: &[u8]) {
        self.exchange(method, path, "", body);
    }

    /// Asks; returns the first line and the body of the response.
    fn exchange(&mut self, method: &str, path: &str, more: &str, body: &[u8]) -> (String, Vec<u8>) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let (mut response, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let read = self.0.read(&mut buffer).unwrap();
            assert!(read > 0, "{method} {path}: the server closed the connection");
            response.extend_from_slice(&buffer[..read]);
            let Some(head) = response.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
            let text = std::str::from_utf8(&response[..head]).unwrap().to_owned();
            let is_chunked = text.to_ascii_lowercase().contains("transfer-encoding: chunked");
            let length = text.lines().find_map(|it| {
                let (name, value) = it.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
            });
            let is_whole = match is_chunked {
                true => response.ends_with(b"0\r\n\r\n"),
                false => response.len() >= head + 4 + length.unwrap_or_default(),
            };
            if is_whole {
                let body = response.split_off(head + 4);
                return (
                    text.lines().next().unwrap_or_default().to_owned(),
                    dechunked(body, is_chunked),
                );
            }
        }
    }
}

/// Joins the chunks of a body.
fn dechunked(body: Vec<u8>, is_chunked: bool) -> Vec<u8> {
    if !is_chunked {
        return body;
    }
    let (mut whole, mut rest) = (Vec::new(), &body[..]);
    loop {
        let end = rest.windows(2).position(|it| it == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
}
