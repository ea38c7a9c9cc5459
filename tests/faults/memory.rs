//! The memory of one daemon with a large fleet, under one attack after the other and under all at once.

mod attacks;
mod client;
mod facts_files;
mod leaves;
mod pushes;
mod site;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::{Fault, Seen, Speed};
use attacks::{ATTACKS, Attack};
use client::{Counts, Stop};
use facts_files::FactsFiles;
use leaves::ManyLeaves;
use site::{Site, Size};
use values::LargeValues;

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "memory::whole-campaign",
        promise: "probes answer, every answer is that of the commit that it names, and resident memory stays below the chart's 512 MiB",
        injection: "1,000 groups, 20,000 nodes with 24 KB of facts each; each attack alone, then all of them at once for 60 s",
        speed: Speed::Slow,
        run: || campaign(Size { groups: 1_000, nodes: 20_000 }, Duration::from_mins(1)),
    },
    Fault {
        name: "memory::old-commits-of-10000-groups",
        promise: "old commits of a large estate are read within 512 MiB",
        injection: "10,000 groups, 269 requests with `?commit=`, 20 at once",
        speed: Speed::Slow,
        run: old_commits,
    },
    Fault {
        name: "memory::comparison-of-large-nodes",
        promise: "a comparison and a list hold one large node at a time: below 192 MiB",
        injection: "24 nodes with one fact of 9 MB each; `/controller/diff` and `/v1/nodes?facts=1`, four of each at once",
        speed: Speed::Slow,
        run: large_nodes,
    },
    Fault {
        name: "memory::comparison-of-large-values",
        promise: "a comparison has each value in memory once, and is 413 beyond 64 MiB: below 192 MiB",
        injection: "400 nodes, each with another set of 12 texts of 20 KB; a commit changes the texts, another what a fact of 100 KB of each node is put into; four readers each",
        speed: Speed::Slow,
        run: large_values,
    },
    Fault {
        name: "memory::values-that-many-groups-inherit",
        promise: "a classification, its explanation, the stored answer and a comparison take memory for what groups set, not for what each inherits: below 192 MiB",
        injection: "a node in 600 groups that inherit 8,000 variables and differ in one, and another in as many that name a class of 8,000 parameters; a commit changes all values",
        speed: Speed::Fast,
        run: many_leaves,
    },
    Fault {
        name: "memory::large-facts-files-at-once",
        promise: "the files of `--facts-dir` wait for memory as check-ins do: below 192 MiB",
        injection: "16 nodes with 30,000 facts in a file of JSON and as many of YAML, all asked about at once",
        speed: Speed::Fast,
        run: facts_files,
    },
];

/// The memory limit of the chart. Resident memory includes the pages of files that are mapped, 20 MiB of
/// the program itself, which a container's limit would reclaim.
const LIMIT_MIB: u64 = 512;

/// What old commits of a large estate may take.
const OLD_COMMITS_MIB: u64 = 512;

/// What comparisons and lists of nodes with 216 MB of facts may take.
const LARGE_NODES_MIB: u64 = 192;

/// What nodes may take that are in many groups with the same values.
const MANY_LEAVES_MIB: u64 = 192;

/// What facts files may take of which each takes 15 MiB or more once it is read.
const FACTS_FILES_MIB: u64 = 192;

/// How long each attack runs alone; `CLADE_MEMORY_ALONE` sets other seconds, to search for a cause.
const ALONE: u64 = 8;

/// How long the longest answer of a probe may take: machines are slow, and so is this build.
const TIMEOUT: Duration = Duration::from_secs(30);

fn campaign(size: Size, together: Duration) -> Seen {
    let site = Site::new(size);
    let mut peaks = Peaks::default();
    peaks.note("start", &site);
    site.store_nodes();
    peaks.note("20,000 nodes stored", &site);
    let chosen = chosen();
    let alone = std::env::var("CLADE_MEMORY_ALONE").ok().and_then(|it| it.parse().ok());
    let alone = Duration::from_secs(alone.unwrap_or(ALONE));
    for attack in chosen.iter().filter(|_| !alone.is_zero()) {
        run(&site, std::slice::from_ref(attack), alone, &mut peaks);
    }
    run(&site, &chosen, together, &mut peaks);
    site.assert_whole();
    peaks.assert_within(LIMIT_MIB);
    Seen::Held(peaks.to_string())
}

/// Returns the attacks; `CLADE_MEMORY_ATTACKS=a,b` chooses some, to search for a cause.
fn chosen() -> Vec<&'static Attack> {
    let names = std::env::var("CLADE_MEMORY_ATTACKS").unwrap_or_default();
    let is_chosen = |it: &&Attack| names.is_empty() || names.split(',').any(|name| name == it.name);
    ATTACKS.iter().filter(is_chosen).collect()
}

/// Runs attacks at once, with probes and ordinary clients beside them.
fn run(site: &Site, attacks: &[&'static Attack], time: Duration, peaks: &mut Peaks) {
    let name = match attacks {
        [one] => one.name,
        _ => "all at once",
    };
    site.reset_peak();
    let stop = Stop::new(time);
    let (mut counts, mut slowest) = (BTreeMap::<&str, Counts>::new(), Duration::ZERO);
    std::thread::scope(|scope| {
        let stop = &stop;
        let attackers: Vec<_> = attacks
            .iter()
            .flat_map(|attack| (0..attack.clients).map(move |client| (*attack, client)))
            .map(|(attack, client)| {
                let attacker = scope.spawn(move || (attack.run)(site, client, stop));
                (attack.name, attacker)
            })
            .collect();
        let probes = scope.spawn(|| site.probe(stop, TIMEOUT));
        let clients: Vec<_> =
            (0..4).map(|client| scope.spawn(move || site.ask_and_compare(client, stop))).collect();
        for (name, attacker) in attackers {
            counts.entry(name).or_default().add(&attacker.join().unwrap());
        }
        slowest = probes.join().unwrap();
        for client in clients {
            counts.entry("ordinary clients").or_default().add(&client.join().unwrap());
        }
    });
    peaks.note(name, site);
    eprintln!("  {name}: peak {} MiB, probes {} ms at most", peaks.last(), slowest.as_millis());
    for (name, counts) in counts {
        eprintln!("    {name}: {counts}");
    }
    site.settle();
}

fn old_commits() -> Seen {
    let site = Site::new(Size { groups: 10_000, nodes: 0 });
    let mut peaks = Peaks::default();
    peaks.note("start", &site);
    let began = Instant::now();
    let statuses = attacks::read_each_old_commit(&site, 20);
    peaks.note("269 old commits", &site);
    site.assert_alive();
    peaks.assert_within(OLD_COMMITS_MIB);
    Seen::Held(format!("{peaks}; {statuses} in {} s", began.elapsed().as_secs()))
}

fn large_nodes() -> Seen {
    let site = Site::new(Size { groups: 1_000, nodes: 0 });
    let mut peaks = Peaks::default();
    attacks::store_large_nodes(&site, 24);
    site.reset_peak();
    let statuses = attacks::read_large_nodes(&site, 4);
    peaks.note("8 readers", &site);
    site.assert_alive();
    assert_eq!(statuses.to_string(), "8 × 200");
    peaks.assert_within(LARGE_NODES_MIB);
    Seen::Held(peaks.to_string())
}

fn large_values() -> Seen {
    let site = LargeValues::new();
    let mut peaks = Peaks::default();
    site.take_peak();
    for (phase, range, expected) in
        [("texts", "HEAD~3/HEAD~2", "4 × 200"), ("facts", "HEAD~1/HEAD", "4 × 413")]
    {
        assert_eq!(site.compare(range, 4).to_string(), expected, "{phase}");
        peaks.0.push((phase, site.take_peak()));
    }
    peaks.assert_within(LARGE_NODES_MIB);
    Seen::Held(peaks.to_string())
}

fn many_leaves() -> Seen {
    let site = ManyLeaves::new();
    let mut peaks = Peaks::default();
    peaks.0.push(("start", site.peak_mib()));
    site.ask();
    peaks.0.push(("asked", site.peak_mib()));
    peaks.assert_within(MANY_LEAVES_MIB);
    Seen::Held(peaks.to_string())
}

fn facts_files() -> Seen {
    let site = FactsFiles::new();
    let mut peaks = Peaks::default();
    peaks.0.push(("start", site.peak_mib()));
    let statuses = site.ask();
    peaks.0.push(("asked", site.peak_mib()));
    // On a slow machine the last wait for longer than they may.
    assert!(statuses[&200] >= 16, "{statuses:?}");
    peaks.assert_within(FACTS_FILES_MIB);
    Seen::Held(format!("{peaks}; {statuses:?}"))
}

/// Returns the peak memory of a process in MiB.
fn process_peak(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// The peak memory of the daemon in each phase, in MiB.
#[derive(Debug, Default)]
struct Peaks(Vec<(&'static str, u64)>);

impl Peaks {
    fn note(&mut self, phase: &'static str, site: &Site) {
        self.0.push((phase, site.peak_mib()));
    }

    fn last(&self) -> u64 {
        self.0.last().map_or(0, |it| it.1)
    }

    fn assert_within(&self, most: u64) {
        assert!(self.0.iter().all(|(_, peak)| *peak < most), "{self}");
    }
}

impl std::fmt::Display for Peaks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for (phase, peak) in &self.0 {
            let separator = if text.is_empty() { "" } else { ", " };
            write!(text, "{separator}{phase} {peak}")?;
        }
        write!(f, "peak RSS in MiB: {text}")
    }
}
