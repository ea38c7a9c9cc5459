//! How fast the daemon answers: `cargo bench --bench http` starts the real program and a bare axum
//! server with endpoints to compare with, asks them in turn, and prints rows of the table of
//! `docs/performance.md`.
//!
//! `P13` prints that row alone, `profile` asks each alone, long enough for a profiler, `check-ins` and `console` print
//! rows of their own.
//!
//! Both servers have a worker for each core, and share the machine with the client: their rates are
//! compared, and the time that they compute for a request, which neighbours disturb less.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a program that measures and prints"
)]

#[path = "../background_load/mod.rs"]
mod background_load;
#[path = "../compiled/mod.rs"]
mod compiled;
#[path = "../world/mod.rs"]
mod world;

mod bare;
mod check_ins;
mod client;
mod connection;
mod daemon;
mod least;
mod pages;

use std::time::Duration;

use client::{Load, Rate};
use daemon::Daemon;
use world::{Scale, nodes};

const GROUPS: usize = 10_000;

/// How many nodes ask, one after the other.
const NODES: usize = 200;

/// How long one endpoint is asked at a time, and how often its turn comes. Turns are short, so that
/// a machine that becomes faster or slower does so for all.
const TURN: Duration = Duration::from_millis(500);
const TURNS: usize = 15;

fn main() {
    if let Some(port) = std::env::args().skip_while(|it| it != "--bare").nth(1) {
        bare::serve(&port);
        return;
    }
    let Some(_load) = background_load::BackgroundLoad::start() else { return };
    let scale = Scale::of(GROUPS);
    if std::env::args().any(|it| it == "check-ins") {
        let nodes = nodes::nodes(scale, NODES, 2);
        let bodies: Vec<(String, Vec<u8>)> =
            nodes.iter().map(|node| (node.name.clone(), nodes::body(node))).collect();
        check_ins::check_ins(scale, &bodies);
        return;
    }
    if std::env::args().any(|it| it == "console") {
        let nodes = nodes::nodes(scale, NODES, 2);
        let bodies: Vec<(String, Vec<u8>)> =
            nodes.iter().map(|node| (node.name.clone(), nodes::body(node))).collect();
        pages::pages(scale, &bodies);
        return;
    }
    let daemon = Daemon::start(scale);
    let nodes = nodes::nodes(scale, NODES, 2);
    let bodies: Vec<(String, Vec<u8>)> =
        nodes.iter().map(|node| (node.name.clone(), nodes::body(node))).collect();
    let classify = Load::posts(&daemon.address, "/v1/classified/nodes/", &bodies);
    if std::env::args().any(|it| it == "profile") {
        let bare = bare::Bare::start();
        profile(&[
            ("classify", &classify, daemon.pid()),
            ("enc", &Load::gets(&daemon.address, "/enc/", &bodies), daemon.pid()),
            ("least", &Load::posts(&bare.address, "/least/", &bodies), bare.pid()),
            ("fixed", &Load::gets(&bare.address, "/fixed/", &bodies), bare.pid()),
        ]);
        return;
    }
    if std::env::args().any(|it| it == "P13") {
        swaps(&daemon, &classify);
        return;
    }
    let bare = bare::Bare::start();
    let to_bare = |path: &str| Load::posts(&bare.address, path, &bodies);
    let loads = [
        (&classify, daemon.pid()),
        (&to_bare("/read/"), bare.pid()),
        (&to_bare("/validate/"), bare.pid()),
        (&to_bare("/value/"), bare.pid()),
        (&Load::gets(&daemon.address, "/enc/", &bodies), daemon.pid()),
        (&Load::gets(&bare.address, "/fixed/", &bodies), bare.pid()),
        (&to_bare("/least/"), bare.pid()),
    ];
    let turns = in_turn(&loads);
    println!("| # | ratio, measured in one run | requests/s | CPU | must | aim |");
    println!("|---|---|---|---|---|---|");
    let row = |number: &str, ours: usize, theirs: usize, what: &str, must: &str, aim: &str| {
        let ratio = |of: fn(&Rate) -> f64| {
            let mut ratios: Vec<f64> =
                turns.iter().map(|turn| of(&turn[ours]) / of(&turn[theirs])).collect();
            ratios.sort_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        let (rate, cpu) = (ratio(|it| it.per_second), ratio(|it| 1.0 / it.cpu.as_secs_f64()));
        println!("| {number} | {what} | {rate:.2} | {cpu:.2} | {must} | {aim} |");
    };
    row("P6", 0, 1, "classify ÷ reading the same body", "≥ 0.30", "≥ 0.45");
    row("P7", 0, 2, "classify ÷ reading and validating", "≥ 0.75", "≥ 1.0");
    row("P8", 0, 3, "classify ÷ parsing to `Value`", "≥ 3.5", "≥ 6");
    row("P9", 4, 5, "GET ENC of a known node ÷ GET of a fixed 1 KB reply", "≥ 0.6", "≥ 0.85");
    for (number, theirs, what) in [
        ("P6 least", 1, "the least that classifying takes ÷ reading the same body"),
        ("P7 least", 2, "the least ÷ reading and validating"),
        ("P8 least", 3, "the least ÷ parsing to `Value`"),
    ] {
        row(number, 6, theirs, what, "", "");
    }
    swaps(&daemon, &classify);
}

/// Asks each alone, long enough for a profiler.
fn profile(loads: &[(&str, &Load, u32)]) {
    for &(name, load, pid) in loads {
        eprintln!("{name}: process {pid}");
        eprintln!("{:?}", load.run(Duration::from_secs(15), pid));
    }
}

/// Asks endpoints in turn; returns what came of each in every turn.
fn in_turn<const N: usize>(loads: &[(&Load, u32); N]) -> Vec<[Rate; N]> {
    let turn = |_| loads.map(|(load, pid)| load.run(TURN, pid));
    // In the first turn the daemon still reads the history of the repository.
    let turns: Vec<[Rate; N]> = (0..=TURNS).map(turn).skip(1).collect();
    for (at, name) in
        ["classify", "read", "validate", "value", "enc", "fixed", "least"].iter().enumerate()
    {
        let rate = Rate::median(turns.iter().map(|turn| turn[at]).collect());
        eprintln!(
            "{name}: {:.0} requests/s, {:.1} µs CPU, p50 {:.0} µs, p99 {:.0} µs",
            rate.per_second,
            rate.cpu.as_secs_f64() * 1e6,
            rate.p50.as_secs_f64() * 1e6,
            rate.p99.as_secs_f64() * 1e6
        );
    }
    turns
}

/// How often requests are asked in peace and while commits come: a p99 of some seconds differs by a third from one to
/// the next.
const SWAP_TURNS: usize = 9;

/// Requests while commits come and go, against requests in peace.
fn swaps(daemon: &Daemon, load: &Load) {
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    let load = load.paced();
    for _ in 0..SWAP_TURNS {
        quiet.push(load.run(Duration::from_secs(4), daemon.pid()));
        let changing = daemon.keep_changing();
        busy.push(load.run(Duration::from_secs(4), daemon.pid()));
        let built = changing.stop();
        eprintln!("{built} commits were built meanwhile");
    }
    let (quiet, busy) = (Rate::median(quiet), Rate::median(busy));
    eprintln!("p99 {:?} without commits, {:?} with", quiet.p99, busy.p99);
    println!(
        "| P13 | p99 of requests while a 10k snapshot is rebuilt and swapped ÷ p99 without | {:.2} | | ≤ 1.5 | ≤ 1.1 |",
        busy.p99.as_secs_f64() / quiet.p99.as_secs_f64()
    );
}
