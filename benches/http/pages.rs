//! How long the pages of the console take, how large they are, and what a person who clicks costs those that ask.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Load, Rate};
use super::connection::Connection;
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
    let mut client = Browser::new(&daemon.address);
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

/// How many turns with clicks are compared with turns without.
const PAIRS: usize = 24;

/// Requests of agents while a person clicks from page to page, against requests in peace.
fn clicks(daemon: &Daemon, load: &Load, pages: &[String]) {
    let load = load.paced();
    let turn = Duration::from_secs(2);
    let in_peace = || load.run(turn, daemon.pid());
    // Each turn goes on where the one before ended.
    let next = AtomicUsize::new(0);
    let while_clicking = || {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = Browser::new(&daemon.address);
                while !stop.load(Ordering::Relaxed) {
                    let page = next.fetch_add(1, Ordering::Relaxed) % pages.len();
                    client.get(&pages[page]);
                    std::thread::sleep(CLICK);
                }
            });
            let busy = load.run(turn, daemon.pid());
            stop.store(true, Ordering::Relaxed);
            busy
        })
    };
    in_peace();
    // A machine that becomes faster or slower does so for both: each comes first as often as the other.
    let pair = |number: usize| -> (Rate, Rate) {
        if number.is_multiple_of(2) {
            let quiet = in_peace();
            (while_clicking(), quiet)
        } else {
            (while_clicking(), in_peace())
        }
    };
    let ratio = |(busy, quiet): (Rate, Rate)| busy.p99.as_secs_f64() / quiet.p99.as_secs_f64();
    let mut ratios: Vec<f64> = (0..PAIRS).map(|it| ratio(pair(it))).collect();
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
                let mut client = Browser::new(address);
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

/// A connection of a browser.
struct Browser(Connection);

impl Browser {
    fn new(address: &str) -> Self {
        Self(Connection::new(address))
    }

    fn get(&mut self, path: &str) -> Vec<u8> {
        let (status, body) = self.0.exchange("GET", path, "Accept-Encoding: gzip\r\n", b"");
        assert!(status.contains(" 200 "), "{path}: {status}");
        body
    }

    fn json(&mut self, path: &str) -> Value {
        serde_json::from_slice(&self.0.exchange("GET", path, "", b"").1).unwrap()
    }

    fn send(&mut self, method: &str, path: &str, body: &[u8]) {
        self.0.exchange(method, path, "", body);
    }
}
