//! What the store of nodes costs those that ask.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::client::{Load, Rate};
use super::connection::Connection;
use super::daemon::Daemon;
use super::world::Scale;

/// Two tokens: check-ins of the second are stored.
const ASKS: &str = "bench-token-that-asks-0000000001";
const CHECKS_IN: &str = "bench-token-that-checks-in-00001";

/// How many nodes are imported.
const FLEET: usize = 100_000;

/// How many check-ins a second come in meanwhile: those of 100,000 nodes in under three minutes.
const IMPORTED: usize = 600;

/// Measures the rate of answers with and without the store, and how long they take while it is busy.
pub(crate) fn check_ins(scale: Scale, bodies: &[(String, Vec<u8>)]) {
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.yaml");
    let grant = |name, token, roles| {
        let mut hex = String::new();
        for byte in Sha256::digest(token) {
            write!(hex, "{byte:02x}").unwrap();
        }
        format!("- name: {name}\n  sha256: {hex}\n  roles: [{roles}]\n")
    };
    let asks = grant("asks", ASKS, "classify");
    let checks_in = grant("checks-in", CHECKS_IN, "classify, check-in, read, operate");
    std::fs::write(&tokens, asks + &checks_in).unwrap();
    let data = directory.path().join("data");
    let more = ["--tokens-file", tokens.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
    let daemon = Daemon::start_with(scale, &more);
    let of = |token, bodies: &[(String, Vec<u8>)]| {
        Load::posts_with(&daemon.address, "/v1/classified/nodes/", bodies, token)
    };
    let (without, with) = (of(ASKS, bodies), of(CHECKS_IN, bodies));
    // Each request is of another node: nothing is known of any.
    let fleet: Vec<(String, Vec<u8>)> = (0..4_000)
        .map(|number| (format!("f{number}.example.com"), bodies[number % bodies.len()].1.clone()))
        .collect();
    let fleet = of(CHECKS_IN, &fleet);
    rates(&daemon, &without, [("200 nodes", &with), ("4,000 nodes", &fleet)]);
    tails(&daemon, &without, bodies);
}

fn rates(daemon: &Daemon, without: &Load, with: [(&str, &Load); 2]) {
    // Short turns, so that a machine that becomes faster or slower does so for both.
    const TURNS: usize = 31;
    let turn = Duration::from_millis(700);
    without.run(turn, daemon.pid());
    let pid = daemon.pid();
    for (what, with) in with {
        let (mut ratios, mut work) = (Vec::new(), [0.0, 0.0]);
        let mut run = |load: &Load, of: usize| {
            let before = answering(pid);
            let rate = load.run(turn, pid).per_second;
            work[of] +=
                answering(pid).saturating_sub(before).as_secs_f64() / (rate * turn.as_secs_f64());
            rate
        };
        for _ in 0..TURNS {
            let asked = run(without, 0);
            ratios.push(run(with, 1) / asked);
            // What waits is written before the next turn.
            std::thread::sleep(Duration::from_millis(1500));
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "| S4 | classify with the store ÷ without, {what} | {:.2} (quartiles {:.2}–{:.2}) | {:.2} | ≥ 0.9 | ≥ 0.97 |",
            ratios[TURNS / 2],
            ratios[TURNS / 4],
            ratios[TURNS * 3 / 4],
            work[0] / work[1]
        );
    }
}

/// Returns the time that the threads of a daemon have computed which do not yield to others.
fn answering(pid: u32) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let ticks = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
        let count = |at: usize| fields.get(at)?.parse::<u64>().ok();
        (fields.get(16) == Some(&"0")).then(|| count(11).zip(count(12)))?.map(|it| it.0 + it.1)
    });
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// Requests while the fleet checks in, nodes are deleted and pages are read, against requests in peace.
fn tails(daemon: &Daemon, load: &Load, bodies: &[(String, Vec<u8>)]) {
    let load = load.paced();
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    let next = Arc::new(AtomicUsize::new(0));
    while next.load(Ordering::Relaxed) < FLEET {
        quiet.push(load.run(Duration::from_secs(4), daemon.pid()));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| import(&daemon.address, bodies, &next, &stop));
            scope.spawn(|| list_and_delete(&daemon.address, &next, &stop));
            for _ in 0..4 {
                busy.push(load.run(Duration::from_secs(4), daemon.pid()));
            }
            stop.store(true, Ordering::Relaxed);
        });
        std::thread::sleep(Duration::from_secs(2));
    }
    let mut ratios: Vec<f64> = busy
        .chunks(4)
        .zip(&quiet)
        .map(|(busy, quiet)| {
            Rate::median(busy.to_vec()).p99.as_secs_f64() / quiet.p99.as_secs_f64()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let (quiet, busy) = (Rate::median(quiet), Rate::median(busy));
    eprintln!("p99 in peace {:?}, beside the store's work {:?}", quiet.p99, busy.p99);
    println!(
        "| S5 | p99 of requests while {FLEET} nodes are imported, some deleted and pages read ÷ p99 without | {:.2} ({:.2}–{:.2}) | | ≤ 1.5 | ≤ 1.1 |",
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1]
    );
}

/// Checks in nodes that are not known, at an even pace.
fn import(address: &str, bodies: &[(String, Vec<u8>)], next: &AtomicUsize, stop: &AtomicBool) {
    let mut connection = Connection::new(address);
    let began = Instant::now();
    for sent in 0_u32.. {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if stop.load(Ordering::Relaxed) || number >= FLEET {
            break;
        }
        let body = &bodies[number % bodies.len()].1;
        ask(&mut connection, "POST", &format!("/v1/classified/nodes/i{number}.example.com"), body);
        let due = Duration::from_secs(1) * sent / u32::try_from(IMPORTED).unwrap();
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
}

fn list_and_delete(address: &str, next: &AtomicUsize, stop: &AtomicBool) {
    let mut connection = Connection::new(address);
    let mut deleted = 0;
    while !stop.load(Ordering::Relaxed) {
        ask(
            &mut connection,
            "GET",
            "/controller/nodes?environment=production&state=classified&limit=100",
            b"",
        );
        let known = next.load(Ordering::Relaxed);
        let end = (deleted + 5).min(known);
        for number in deleted..end {
            ask(
                &mut connection,
                "DELETE",
                &format!("/controller/nodes/i{number}.example.com"),
                b"",
            );
        }
        deleted = deleted.max(end);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Asks as one whose check-ins are stored.
fn ask(connection: &mut Connection, method: &str, path: &str, body: &[u8]) {
    let token = format!("Authorization: Bearer {CHECKS_IN}\r\n");
    let (status, _) = connection.exchange(method, path, &token, body);
    assert!(
        status.starts_with("HTTP/1.1 2") || status.starts_with("HTTP/1.1 404"),
        "{path}: {status}"
    );
}
