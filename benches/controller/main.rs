//! What operators are promised of the controller, measured on the real program over real sockets.
//! `cargo bench --bench controller` prints the table of `docs/controller-load.md`; a word behind `--`
//! names one of the measurements.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a program that measures and prints"
)]

mod blame;
mod daemon;
mod estate;
mod fleet;
#[path = "../world/mod.rs"]
mod world;
mod writes;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use daemon::Daemon;
use estate::Estate;

/// As many groups as a big estate has.
const GROUPS: usize = 10_000;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|it| it == name);
    println!("| what | measured | must |\n|---|---|---|");
    for (name, measure) in [
        ("webhook", webhook as fn()),
        ("restart", restart),
        ("swaps", swaps),
        ("flood", flood),
        ("commits", commits),
        ("idle", idle),
        ("writes", writes::writes),
        ("diff", fleet::diff),
        ("blame", blame::blame),
    ] {
        if chosen(name) {
            measure();
        }
    }
}

fn row(what: &str, measured: &str, must: &str) {
    println!("| {what} | {measured} | {must} |");
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Returns the value below which a part of the sorted times lies.
fn quantile(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small index")]
    let index = ((times.len() - 1) as f64 * part).round() as usize;
    times[index]
}

/// From a signed webhook to the first answer of the new commit, in turn with a shallow clone.
fn webhook() {
    let estate = Estate::new(GROUPS);
    let daemon = Daemon::start(&estate, &["--interval", "1h"]);
    daemon.wait_for(&estate.head());
    let mut client = daemon.client();
    let (mut ours, mut clones) = (Vec::new(), Vec::new());
    for number in 0..150 {
        let commit = estate.change(number);
        let began = Instant::now();
        daemon.webhook(&commit);
        while client.live() != commit {}
        ours.push(began.elapsed());
        if number % 15 == 0 {
            let into = tempfile::tempdir().unwrap();
            let began = Instant::now();
            let done = Command::new("git")
                .args(["clone", "-q", "--depth", "1"])
                .arg(format!("file://{}", estate.path().display()))
                .arg(into.path().join("clone"))
                .status();
            assert!(done.unwrap().success());
            clones.push(began.elapsed());
        }
    }
    let clone = quantile(&mut clones, 0.5);
    let (p50, p99) = (quantile(&mut ours, 0.5), quantile(&mut ours, 0.99));
    row(
        "signed webhook to the first answer of the new commit, 10,000 groups, one file changed: p50",
        &format!("{:.0} ms", milliseconds(p50)),
        "60 ms",
    );
    row("the same: p99", &format!("{:.0} ms", milliseconds(p99)), "250 ms");
    row(
        "the p50 as a part of `git clone --depth 1` with its checkout",
        &format!("{:.3} of {:.0} ms", p50.as_secs_f64() / clone.as_secs_f64(), milliseconds(clone)),
        "0.1",
    );
}

/// From a start after SIGKILL, while the remote is gone, to the first right answer.
fn restart() {
    let estate = Estate::new(GROUPS);
    let mut daemon = Daemon::start(&estate, &[]);
    daemon.wait_for(&estate.head());
    estate.take_away();
    let mut times = Vec::new();
    for _ in 0..10 {
        daemon = daemon.restart_after_kill(&estate);
        let answer = daemon.client().post("/v1/classified/nodes/web1", "{}");
        assert!(answer.contains("200 OK"), "{answer}");
        times.push(daemon.started.elapsed());
    }
    row(
        "first right answer after SIGKILL, the remote gone, 10,000 groups: the slowest of 10",
        &format!("{:.0} ms", milliseconds(quantile(&mut times, 1.0))),
        "1,000 ms",
    );
}

/// Requests of many clients while the commit that answers is swapped.
fn swaps() {
    let estate = Estate::new(1_000);
    let daemon = Daemon::start(&estate, &["--interval", "1h"]);
    daemon.wait_for(&estate.head());
    let quiet = hammer(&daemon, 200, || std::thread::sleep(Duration::from_secs(10)));
    let swapped = hammer(&daemon, 200, || {
        let mut client = daemon.client();
        for number in 0..500 {
            let commit = estate.change_pair(number);
            daemon.webhook(&commit);
            while client.live() != commit {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    let (mut before, mut during) = (quiet.times, swapped.times);
    let (calm, busy) = (quantile(&mut before, 0.99), quantile(&mut during, 0.99));
    row(
        "failed responses of 200 clients during 500 swaps",
        &format!("{} of {}", swapped.failed, during.len()),
        "0",
    );
    row("responses that mix two commits", &swapped.mixed.to_string(), "0");
    row(
        "p99 during the swaps as a multiple of that without",
        &format!("{:.2} of {:.0} ms", busy.as_secs_f64() / calm.as_secs_f64(), milliseconds(calm)),
        "1.5",
    );
}

struct Hammered {
    times: Vec<Duration>,
    failed: usize,
    mixed: usize,
}

fn hammer(daemon: &Daemon, clients: usize, meanwhile: impl FnOnce()) -> Hammered {
    let stop = Arc::new(AtomicBool::new(false));
    let (failed, mixed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            let (stop, failed, mixed) =
                (Arc::clone(&stop), Arc::clone(&failed), Arc::clone(&mixed));
            let mut client = daemon.client();
            std::thread::spawn(move || {
                let mut times = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    let answer = client.post("/v1/classified/nodes/pair", "{}");
                    times.push(began.elapsed());
                    if !answer.contains("200 OK") {
                        failed.fetch_add(1, Ordering::Relaxed);
                    } else if !Estate::is_of_one_commit(&answer) {
                        mixed.fetch_add(1, Ordering::Relaxed);
                    }
                    // An agent run is not a busy loop; the machine has two cores.
                    std::thread::sleep(Duration::from_millis(100));
                }
                times
            })
        })
        .collect();
    meanwhile();
    stop.store(true, Ordering::Relaxed);
    let times = threads.into_iter().flat_map(|it| it.join().unwrap()).collect();
    Hammered { times, failed: failed.load(Ordering::Relaxed), mixed: mixed.load(Ordering::Relaxed) }
}

/// Webhooks at a rate beyond that of any forge.
fn flood() {
    const RATE: u32 = 2_000;
    const SECONDS: u32 = 30;
    let estate = Estate::new(1_000);
    let daemon = Daemon::start(&estate, &["--interval", "1h"]);
    daemon.wait_for(&estate.head());
    for _ in 0..200 {
        daemon.webhook(&estate.head());
    }
    let before = daemon.memory();
    let began = Instant::now();
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let mut client = daemon.client();
            std::thread::spawn(move || {
                for number in 0..RATE * SECONDS / 4 {
                    let due = Duration::from_secs_f64(f64::from(number) * 4.0 / f64::from(RATE));
                    std::thread::sleep(due.saturating_sub(began.elapsed()));
                    let id = format!("{sender}-{number}");
                    let answer =
                        client.webhook(daemon::SECRET, &format!("{:0>40}", number % 7), &id);
                    assert!(answer.contains(" 20"), "{answer}");
                }
            })
        })
        .collect();
    for sender in senders {
        sender.join().unwrap();
    }
    let rate = f64::from(RATE * SECONDS) / began.elapsed().as_secs_f64();
    let grown = (daemon.memory() as f64 - before as f64) / f64::from(1 << 20);
    row(
        &format!("growth of memory in {SECONDS} s of {rate:.0} webhooks a second"),
        &format!("{grown:.1} MiB"),
        "16 MiB",
    );
}

/// Memory and files over a long life.
fn commits() {
    let estate = Estate::new(1_000);
    let daemon = Daemon::start(&estate, &["--interval", "1h"]);
    let mut client = daemon.client();
    let mut samples = Vec::new();
    for number in 0..1_000 {
        let commit = estate.change(number);
        daemon.webhook(&commit);
        while client.live() != commit {
            std::thread::sleep(Duration::from_millis(1));
        }
        if matches!(number, 499 | 999) {
            samples.push((daemon.memory() as f64 / f64::from(1 << 20), daemon.files()));
        }
    }
    let [(memory, files), (later, files_later)] = samples[..] else { unreachable!() };
    row(
        "memory after 500 and after 1,000 commits",
        &format!("{memory:.1} MiB, {later:.1} MiB"),
        "steady",
    );
    row("open files then", &format!("{files}, {files_later}"), "steady");
}

/// A daemon without requests.
fn idle() {
    let estate = Estate::new(GROUPS);
    let daemon = Daemon::start(&estate, &[]);
    daemon.wait_for(&estate.head());
    std::thread::sleep(Duration::from_secs(2));
    let (before, began) = (daemon.cpu(), Instant::now());
    std::thread::sleep(Duration::from_mins(1));
    let share =
        daemon.cpu().saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    row("CPU while idle, looking every 30 s", &format!("{share:.2} %"), "1 %");
}
