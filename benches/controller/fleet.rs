//! What a change does to a fleet that has checked in.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::daemon::Daemon;
use crate::estate::Estate;
use crate::world::{Scale, nodes};
use crate::{GROUPS, row};

/// How many nodes have facts of their own; the others have the facts of one of these.
const DISTINCT: usize = 1_000;

/// How often each comparison is measured.
const RUNS: usize = 7;

/// Compares two commits over all nodes.
pub(crate) fn diff() {
    for (count, must) in [(20_000, "1 s"), (100_000, "5 s")] {
        let estate = Estate::new(GROUPS);
        let first = estate.head();
        let limits = ["--store-max-nodes", "200000", "--store-max-bytes", "8589934592"];
        let daemon = Daemon::start(&estate, &limits);
        daemon.wait_for(&first);
        let second = estate.change(5);
        daemon.webhook(&second);
        daemon.wait_for(&second);
        let compare = |head: &str| {
            let began = Instant::now();
            let answer = daemon.client().get(&format!("/controller/diff/{first}/{head}"));
            (compared(&answer), began.elapsed())
        };
        // A check-in behind an answer is dropped where too many wait to be stored; then the node asks again.
        while compare(&second).0 < count {
            check_in(&daemon, count);
        }
        measure(&daemon, &format!("one group of few changed, {count} stored nodes"), must, || {
            compare(&second).1
        });
        let third = estate.add_group_of_half();
        daemon.webhook(&third);
        daemon.wait_for(&third);
        measure(&daemon, &format!("every second of {count} stored nodes moved"), must, || {
            compare(&third).1
        });
    }
}

fn measure(daemon: &Daemon, what: &str, must: &str, compare: impl Fn() -> Duration) {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| compare()).collect();
    times.sort_unstable();
    let seconds = |at: usize| times[at].as_secs_f64();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let measured = format!(
        "{:.2} s ({:.2}–{:.2} s, load {}), {:.0} MiB resident",
        seconds(RUNS / 2),
        seconds(0),
        seconds(RUNS - 1),
        load.split(' ').next().unwrap_or_default(),
        daemon.memory() as f64 / f64::from(1 << 20)
    );
    row(&format!("comparing commits: {what} of 24 KB"), &measured, must);
}

/// Returns how many nodes were compared.
fn compared(answer: &str) -> usize {
    let nodes = answer.split("\"summary\":{\"nodes\":").nth(1);
    let digits =
        nodes.and_then(|it| it.split(',').next()).unwrap_or_else(|| panic!("{answer:.500}"));
    digits.parse().unwrap()
}

/// How many threads have nodes ask, and how long each waits between two: about 600 a second, more than a fleet
/// of 100,000 nodes asks.
const CLIENTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(6);

/// Has nodes ask for their classification.
fn check_in(daemon: &Daemon, count: usize) {
    let scale = Scale::of(GROUPS);
    let bodies: Vec<Vec<u8>> = nodes::nodes(scale, DISTINCT, 18).iter().map(nodes::body).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = daemon.client();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let body = std::str::from_utf8(&bodies[number % DISTINCT]).unwrap();
                    let path = format!("/v1/classified/nodes/node{number:06}.example.com");
                    let answer = client.post(&path, body);
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:.300}");
                    std::thread::sleep(PAUSE);
                }
            });
        }
    });
}
