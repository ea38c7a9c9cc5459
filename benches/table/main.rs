//! How fast a snapshot classifies, in this process: `cargo bench --bench table` prints rows of the
//! table of `docs/performance.md`; words behind `--` name some of them, and `--background-load=2` keeps the machine busy.
//!
//! Every figure is a ratio of two things measured in turn in one run, so that machines and their
//! neighbours matter little. What one thread does in this process is measured by the processor's time, except in `cold`.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a program that measures and prints"
)]

#[path = "../background_load/mod.rs"]
mod background_load;
#[path = "../compiled/mod.rs"]
mod compiled;
#[path = "../world/mod.rs"]
mod world;

mod builds;
mod cold;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use clade::internals::classification::{self, Version};
use clade::internals::hierarchy::Estate;
use clade::internals::model::{Budget, BudgetItem, Node};
use clade::internals::snapshot::{AnsweredNode, LiveSnapshot, Snapshot};
use compiled::snapshot;
use rustix::time::{ClockId, clock_gettime};
use serde::de::IgnoredAny;
use world::{Scale, estates, nodes};

/// How many nodes are classified in one round.
const NODES: usize = 300;

/// How often each side is measured; the median counts.
const ROUNDS: usize = 101;

/// The same for matching, of which a round takes a fraction of a millisecond or two of them. Other programs on the same
/// core come and go within seconds, and so long a row must take.
const MANY_ROUNDS: usize = 501;

/// The same for what takes long.
const FEW_ROUNDS: usize = 15;

/// How often all nodes are matched by the index after each time that every group was asked.
const PASSES: usize = 15;

fn main() {
    let Some(_load) = background_load::BackgroundLoad::start() else { return };
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let chosen =
        |names: &[&str]| wanted.is_empty() || wanted.iter().any(|it| names.contains(&it.as_str()));
    println!("| # | ratio, measured in one run | today | must | aim |\n|---|---|---|---|---|");
    // First, since a daemon does not begin in the memory that a large estate has left behind.
    if chosen(&["P11", "P12"]) {
        builds::measure();
    }
    if chosen(&["P1", "P2", "P3", "P4", "P5", "P10"]) {
        sizes();
    }
    if chosen(&["cold"]) {
        let [hundred, ten, large] = [100, 10_000, 100_000].map(World::of_size);
        cold::measure([&hundred, &ten, &large]);
    }
    if chosen(&["P15"]) {
        facts_in_values();
    }
    if chosen(&["P14"]) {
        defiant();
    }
    // Last: what it leaves behind would be taken for room of others.
    if chosen(&["P16"]) {
        builds::measure_many();
    }
}

/// Prints a row of the table.
fn row(number: &str, what: &str, today: &str, must: &str, aim: &str) {
    println!("| {number} | {what} | {today} | {must} | {aim} |");
}

/// An estate with nodes to ask about.
struct World {
    /// As the daemon answers from it: what was answered is kept.
    live: LiveSnapshot,
    nodes: Vec<Node>,
    bodies: Vec<Vec<u8>>,
}

impl World {
    fn of_size(groups: usize) -> Self {
        let scale = Scale::of(groups);
        Self::of(estates::files(scale, 1), scale)
    }

    fn of(files: Vec<(String, String)>, scale: Scale) -> Self {
        let live = LiveSnapshot::new(Arc::new(snapshot(estate(files))));
        let nodes = nodes::nodes(scale, NODES, 2);
        let bodies = nodes.iter().map(nodes::body).collect();
        let world = Self { live, nodes, bodies };
        world.check();
        world
    }

    fn snapshot(&self) -> &Snapshot {
        self.live.snapshot()
    }

    /// Checks that both ways of matching agree, and that the short answer does.
    fn check(&self) {
        let Snapshot { estate, .. } = self.snapshot();
        let index = self.snapshot().index();
        for node in self.nodes.iter().take(20) {
            let plain = classification::matches(&estate.hierarchy, node).unwrap();
            assert_eq!(index.matches(&estate.hierarchy, &index.resolve(node)).unwrap(), plain);
        }
    }

    /// Returns the time of matching one node whose values are there, by the index.
    fn matching(&self) -> Duration {
        let (index, hierarchy) = (self.snapshot().index(), &self.snapshot().estate.hierarchy);
        let resolved_paths: Vec<_> = self.nodes.iter().map(|node| index.resolve(node)).collect();
        let began = computed();
        for resolved in &resolved_paths {
            black_box(index.matches(hierarchy, black_box(resolved)).unwrap());
        }
        computed().saturating_sub(began) / NODES as u32
    }

    /// Returns the time of matching one node by asking every group.
    fn plainly(&self) -> Duration {
        let count = if self.snapshot().estate.hierarchy.len() > 20_000 { 20 } else { 100 };
        let began = computed();
        for node in self.nodes.iter().take(count) {
            let hierarchy = &self.snapshot().estate.hierarchy;
            black_box(classification::matches(hierarchy, black_box(node)).unwrap());
        }
        computed().saturating_sub(began) / count as u32
    }

    /// Returns the time of a request in this process, from the body to the bytes of the answer.
    fn request(&self) -> Duration {
        let (index, hierarchy) = (self.snapshot().index(), &self.snapshot().estate.hierarchy);
        let began = computed();
        for (node, body) in self.nodes.iter().zip(&self.bodies) {
            let request = index.read(&node.name, black_box(body)).unwrap();
            let groups = index.matches(hierarchy, &request.resolved).unwrap();
            let facts = AnsweredNode::received(&node.name, &request);
            black_box(self.live.classified(&facts, &groups, Version::V1).ok());
        }
        computed().saturating_sub(began) / NODES as u32
    }

    /// Returns the time of `serde_json` skipping a body.
    fn skipping(&self) -> Duration {
        let began = computed();
        for body in &self.bodies {
            black_box(serde_json::from_slice::<IgnoredAny>(black_box(body)).unwrap());
        }
        computed().saturating_sub(began) / NODES as u32
    }
}

fn estate(files: Vec<(String, String)>) -> Estate {
    compiled::estate(files, generous())
}

/// 100,000 groups are more than the default limits admit.
fn generous() -> Budget {
    BudgetItem::ALL.into_iter().fold(Budget::DEFAULT, |budget, it| {
        budget.with_limit(it, Budget::DEFAULT.limit(it).saturating_mul(10))
    })
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

fn micros(duration: Duration) -> String {
    format!("{:.2} µs", seconds(duration) * 1e6)
}

/// Returns what this thread has computed. The clock on the wall also counts what other programs compute on its core: on a
/// busy machine the kernel lets one of them in about every 4 ms, which is about how long the nodes of a row take, so that
/// a median had none or one of them in it.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Measures several things in turn and returns the median of each.
fn in_turn<const N: usize>(rounds: usize, sides: [&dyn Fn() -> Duration; N]) -> [Duration; N] {
    let mut times: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..rounds {
        for (times, side) in times.iter_mut().zip(sides) {
            times.push(side());
        }
    }
    times.map(median)
}

fn sizes() {
    let [hundred, thousand, ten] = [100, 1_000, 10_000].map(World::of_size);
    let [m100, m1k, m10k] =
        in_turn(MANY_ROUNDS, [&|| hundred.matching(), &|| thousand.matching(), &|| ten.matching()]);
    let [r100, r10k, skip] =
        in_turn(ROUNDS, [&|| hundred.request(), &|| ten.request(), &|| ten.skipping()]);
    eprintln!("matching {} {} {}", micros(m100), micros(m1k), micros(m10k));
    eprintln!("request {} {}, skipping {}", micros(r100), micros(r10k), micros(skip));
    // Both ways in turn, so that what neighbours do weighs on both.
    let both = |world: &World, rounds: usize| {
        let mut times: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            times[0].push(world.plainly());
            // What the other way leaves in the caches is not part of either: the figure is that of
            // one look after the other, as in P1 and P2.
            times[1].extend((0..=PASSES).map(|_| world.matching()).skip(1));
        }
        let [plain, ours] = times.map(median);
        (plain, seconds(plain) / seconds(ours))
    };
    let ((p1k, x1k), (p10k, x10k)) = (both(&thousand, ROUNDS), both(&ten, FEW_ROUNDS));
    let conflicts = ten.nodes.iter().filter(|node| {
        let groups = classification::matches(&ten.snapshot().estate.hierarchy, node).unwrap();
        ten.snapshot().classified(&(*node).into(), &groups, Version::V1).is_err()
    });
    let conflicts = conflicts.count();
    drop((thousand, ten));
    let large = World::of_size(100_000);
    let [m100_beside, m100k] = in_turn(MANY_ROUNDS, [&|| hundred.matching(), &|| large.matching()]);
    let r100k = median((0..FEW_ROUNDS).map(|_| large.request()).collect());
    let (p100k, x100k) = both(&large, FEW_ROUNDS);
    let bytes = memory(&large.snapshot().estate) / 100_000.0;
    eprintln!(
        "matching {} {} {} {}; asking every group {} {} {}; request {} {} {}; skipping {}; {conflicts} conflicts of {NODES}",
        micros(m100),
        micros(m1k),
        micros(m10k),
        micros(m100k),
        micros(p1k),
        micros(p10k),
        micros(p100k),
        micros(r100),
        micros(r10k),
        micros(r100k),
        micros(skip),
    );
    let ratio = |a: Duration, b: Duration| seconds(a) / seconds(b);
    row(
        "P1",
        "matching at 10k groups ÷ 100 groups",
        &format!("{:.2}", ratio(m10k, m100)),
        "≤ 3.5",
        "≤ 2",
    );
    let exponent = ratio(m100k, m100_beside).log10() / 3.0;
    row(
        "P2",
        "growth exponent of matching, 100 → 100k groups",
        &format!("{exponent:.2}"),
        "≤ 0.25",
        "≤ 0.15",
    );
    row(
        "P3",
        "whole request in process at 10k ÷ 100 groups",
        &format!("{:.2}", ratio(r10k, r100)),
        "≤ 1.25",
        "≤ 1.1",
    );
    row(
        "P4",
        "plain evaluator ÷ index, at 1k / 10k / 100k groups",
        &format!("{x1k:.0} / {x10k:.0} / {x100k:.0}"),
        "≥ 50 / 400 / 10,000",
        "≥ 100 / 1,000 / 25,000",
    );
    row(
        "P5",
        "whole request in process (10k groups) ÷ `serde_json` skipping the same body",
        &format!("{:.2}", ratio(r10k, skip)),
        "≤ 1.6",
        "≤ 1.0",
    );
    row(
        "P10",
        "heap bytes a group at 100k groups (index and inherited values)",
        &format!("{bytes:.0}"),
        "≤ 1,000",
        "≤ 500",
    );
}

/// Returns the resident memory that a snapshot adds to its estate, in bytes.
fn memory(estate: &Estate) -> f64 {
    // What building leaves behind is used again by the next; several share what was free before.
    const COPIES: usize = 4;
    let first = snapshot(estate.clone());
    ask_for_all(&first);
    let copies: Vec<Estate> = (0..COPIES).map(|_| estate.clone()).collect();
    let before = resident();
    let snapshots: Vec<Snapshot> = copies.into_iter().map(snapshot).collect();
    // What groups inherit is written when it is asked for.
    snapshots.iter().for_each(ask_for_all);
    let used = resident() - before;
    drop((first, snapshots));
    used / COPIES as f64
}

/// Asks for what every group inherits.
fn ask_for_all(snapshot: &Snapshot) {
    let (hierarchy, node) = (&snapshot.estate.hierarchy, Node::named("n"));
    for group in hierarchy.indexes() {
        let mut groups: Vec<_> = hierarchy.lineage(group).collect();
        groups.reverse();
        black_box(snapshot.classified(&(&node).into(), &groups, Version::V1).ok());
    }
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|it| it.parse().ok())
        .map_or(f64::NAN, |it: f64| it * 1024.0)
}

/// Facts in one value of ten.
fn facts_in_values() {
    let scale = Scale::of(10_000);
    let with = World::of(estates::files_with_facts(scale, 1), scale);
    let without = World::of_size(10_000);
    // Both in turn, often: what is looked for is small.
    let mut ratios: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let [with, without] = [with.request(), without.request()];
            seconds(with) / seconds(without)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    row(
        "P15",
        "whole request in process (10k groups) with facts in one value of ten ÷ without",
        &format!("{:.2}", ratios[ratios.len() / 2]),
        "≤ 1.1",
        "≤ 1.05",
    );
}

/// Rules that have nothing to index.
fn defiant() {
    let shapes =
        ["patterns without a literal", "negations", "numbers", "broad equality and number"];
    let ratios: Vec<f64> = shapes
        .iter()
        .map(|shape| {
            let groups = if shape.starts_with("patterns") { 1_000 } else { 10_000 };
            let world = World::of(estates::defiant(shape, groups), Scale::of(groups));
            let [ours, plain] = in_turn(FEW_ROUNDS, [&|| world.matching(), &|| world.plainly()]);
            eprintln!("{shape}: {} plain {}", micros(ours), micros(plain));
            seconds(ours) / seconds(plain)
        })
        .collect();
    let all: Vec<String> = ratios.iter().map(|it| format!("{it:.2}")).collect();
    row(
        "P14",
        &format!("rules that defeat the index (siblings: {}): index ÷ plain", shapes.join(", ")),
        &all.join(" / "),
        "≤ 1.0",
        "≤ 0.3",
    );
}
