//! The store of nodes: memory, size on disk, and how long lists and histories take.
//! `cargo bench --bench store [NODES]` prints the table of `docs/performance.md`.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a program that measures and prints"
)]

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clade::internals::facts::Unlimited;
use clade::internals::hierarchy::{Estate, Hierarchy, root_group};
use clade::internals::model::{CommitId, Interpolation, Node};
use clade::internals::snapshot::Snapshot;
use clade::internals::store::{
    Answered, Certname, CheckIns, NodeFilter, NodeRange, Received, SaidPart, StoreLimits,
    StoreLocation, StoreSettings,
};
use jiff::Timestamp;
use serde_json::{Value, json};

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|it| !it.starts_with('-'));
    let nodes = arguments.next().map_or(100_000, |it| it.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    println!("load average: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    println!("| what | measured | must | aim |\n|---|---|---|---|");
    let snapshots: Vec<Arc<Snapshot>> = (1..=4).map(snapshot).collect();
    check_in_twice(&store, nodes, &snapshots[0], directory.path());
    lists(&store, &snapshots[0]);
    histories(&store, &snapshots, directory.path());
    std::process::exit(0);
}

fn open(directory: &std::path::Path) -> CheckIns {
    let limits = StoreLimits {
        nodes: 1_000_000,
        bytes: 1 << 40,
        forget_after: Duration::from_hours(24 * 30),
        history: Duration::from_hours(24 * 90),
    };
    let location = StoreLocation::Sqlite(directory.join("nodes.sqlite"));
    let settings =
        StoreSettings { location, is_own_place: true, former: None, cache: 32 << 20, limits };
    let store = CheckIns::new(settings, Arc::default());
    let writer = store.clone();
    std::thread::spawn(move || writer.keep_writing(&|_| {}));
    store
}

/// A snapshot of 40 groups by site and family.
fn snapshot(digit: u8) -> Arc<Snapshot> {
    let root = root_group().unwrap();
    let mut groups = vec![root.clone()];
    for number in 0..40_u8 {
        let mut group = root.clone();
        group.id = format!("00000000-0000-4000-8000-0000000000{:02x}", number + 1).parse().unwrap();
        group.name = format!("group {number}").parse().unwrap();
        let site = format!("site{}", number % 20);
        let rule = json!(["=", ["fact", "site"], site]);
        group.rule = Some(Arc::new(clade::internals::rule::read(&rule).unwrap()));
        let classes = json!({format!("role{number}"): {"port": u32::from(number), "tier": digit}});
        group.classes = Arc::new(serde_json::from_value(classes).unwrap());
        groups.push(group);
    }
    let estate = Estate {
        hierarchy: Hierarchy::build(groups).unwrap(),
        individuals: Arc::default(),
        environments: Arc::default(),
        catalogues: Arc::default(),
        interpolation: Interpolation::Off,
    };
    let commit = CommitId::from_bytes([digit; 20]);
    Arc::new(Snapshot::new(commit, estate, Arc::default(), Vec::new()))
}

/// 24 KB of facts: mostly names that all nodes share, and a few KB that only this one has.
fn facts(node: u32, round: u32) -> Value {
    let mut state = u64::from(node) << 32 | u64::from(round) | 1;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let mut interfaces = serde_json::Map::new();
    for number in 0..6 {
        let mac = format!(
            "52:54:00:{:02x}:{:02x}:{:02x}",
            random() & 255,
            random() & 255,
            random() & 255
        );
        let ip = format!("10.{}.{}.{}", random() & 255, random() & 255, random() & 255);
        interfaces.insert(
            format!("enp{number}s0"),
            json!({"mac": mac, "ip": ip, "netmask": "255.255.255.0", "mtu": 1500, "operational_state": "up",
                "bindings": [{"address": ip, "netmask": "255.255.255.0", "network": "10.0.0.0"}]}),
        );
    }
    let mut mounts = serde_json::Map::new();
    for number in 0..30 {
        let used = random();
        mounts.insert(
            format!("/srv/volume-{number}"),
            json!({"device": format!("/dev/mapper/vg0-lv{number}"), "filesystem": "xfs", "size_bytes": 107_374_182_400_u64,
                "used_bytes": used, "available_bytes": 107_374_182_400_u64 - u64::from(used),
                "options": ["rw", "relatime", "attr2", "inode64", "noquota"], "capacity": "12.31%"}),
        );
    }
    let mut packages = serde_json::Map::new();
    for number in 0..280 {
        packages.insert(format!("package-name-{number}"), json!({"version": format!("{}.{}.{}-1", number % 9, number % 13, number % 7), "provider": "apt"}));
    }
    let key: String = (0..90).fold(String::new(), |mut key, _| {
        write!(key, "{:x}", random()).unwrap();
        key
    });
    json!({
        "os": {"family": "Debian", "name": "Debian", "release": {"full": "12.5", "major": "12", "minor": "5"}},
        "site": format!("site{}", node % 20), "uptime_seconds": round * 1800 + node,
        "networking": {"hostname": format!("node{node}"), "fqdn": format!("node{node}.example.com"), "interfaces": interfaces},
        "mountpoints": mounts, "packages": packages, "ssh": {"rsa": {"key": key}},
        "memory": {"system": {"used_bytes": random(), "available_bytes": random(), "total": "15.62 GiB"}},
    })
}

fn ask(store: &CheckIns, name: &str, snapshot: &Arc<Snapshot>, facts: &Value, time: Timestamp) {
    let text = facts.to_string();
    let node = Node { fact: facts.as_object().unwrap().clone(), ..Node::named(name) };
    let groups = snapshot.index().matching(&snapshot.estate.hierarchy, &node);
    let groups = groups.map(Vec::into_boxed_slice);
    store.note_received(Received {
        time,
        transaction_uuid: Some("c5a1a1b6-5a3e-4c0b-9f5e-2f6b0f0f2f11"),
        commit: Some(snapshot.commit),
        answered: Some(Answered {
            snapshot: Arc::clone(snapshot),
            groups,
            certname: Certname::AsSent,
        }),
        name,
        fact: &text,
        trusted: "{\"authenticated\":\"remote\",\"certname\":\"n\",\"extensions\":{}}",
        said: SaidPart::Both,
        form: None,
    });
}

/// Waits until all is written.
fn flush(store: &CheckIns) {
    store.nodes(&NodeFilter::default(), NodeRange { offset: 0, limit: 1 }).unwrap();
}

fn check_in_twice(
    store: &CheckIns,
    nodes: u32,
    snapshot: &Arc<Snapshot>,
    directory: &std::path::Path,
) {
    let size = facts(7, 0).to_string().len();
    flush(store);
    let before = resident();
    let stop = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (store, stop) = (store.clone(), Arc::clone(&stop));
        move || {
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let begun = Instant::now();
                store.get_within("node7.example.com", &Unlimited).unwrap();
                times.push(begun.elapsed());
                std::thread::sleep(Duration::from_millis(20));
            }
            times
        }
    });
    let begun = Instant::now();
    let start = Timestamp::from_second(1_780_000_000).unwrap();
    for round in 0..2_u32 {
        for node in 0..nodes {
            let time = start + jiff::SignedDuration::from_secs(i64::from(round) * 1800);
            ask(store, &format!("node{node}.example.com"), snapshot, &facts(node, round), time);
            if node % 200 == 199 {
                flush(store);
            }
        }
        flush(store);
        let took = begun.elapsed().as_secs_f64();
        println!("| {nodes} nodes × {size} B, round {round}: written after | {took:.0} s | | |");
    }
    let grown = resident().saturating_sub(before);
    println!("| resident memory above the start | {} MiB | ≤ 128 MiB | ≤ 64 MiB |", grown >> 20);
    let bytes = on_disk(directory);
    println!(
        "| store per node | {:.2} KB | ≤ 8 KB | ≤ 4 KB |",
        bytes as f64 / f64::from(nodes) / 1000.0
    );
    stop.store(true, Ordering::Relaxed);
    row("read of one node meanwhile, p50 and p99", reader.join().unwrap(), "", "");
}

fn lists(store: &CheckIns, snapshot: &Arc<Snapshot>) {
    let id =
        snapshot.estate.hierarchy.groups().find(|it| it.name.as_str() == "group 3").unwrap().id;
    let filters = [
        (
            "group and class",
            NodeFilter {
                groups: Some([id].into()),
                class: Some("role23".parse().unwrap()),
                ..NodeFilter::default()
            },
        ),
        (
            "part of the name and class",
            NodeFilter {
                name_part: Some("e9".to_owned()),
                class: Some("role23".parse().unwrap()),
                ..NodeFilter::default()
            },
        ),
        (
            "environment and silent",
            NodeFilter {
                environment: Some("production".parse().unwrap()),
                silent_since: Some(Timestamp::now()),
                ..NodeFilter::default()
            },
        ),
    ];
    for (name, filter) in filters {
        let mut times = Vec::new();
        let mut total = 0;
        for number in 0..100 {
            let begun = Instant::now();
            let range = NodeRange { offset: (number % 10) * 100, limit: 100 };
            total = store.nodes(&filter, range).unwrap().total;
            times.push(begun.elapsed());
        }
        row(
            &format!("page of 100 by {name} ({total} nodes), p50 and p99"),
            times,
            "≤ 50 ms",
            "≤ 10 ms",
        );
    }
}

fn histories(store: &CheckIns, snapshots: &[Arc<Snapshot>], directory: &std::path::Path) {
    flush(store);
    let before = on_disk(directory);
    let mut state = facts(1, 0);
    for change in 0..10_000_u32 {
        state["site"] = format!("site{}", change % 20).into();
        let snapshot = &snapshots[(change as usize / 7) % snapshots.len()];
        let time = Timestamp::from_second(1_790_000_000 + i64::from(change)).unwrap();
        ask(store, "flapping.example.com", snapshot, &state, time);
        if change % 10 == 9 {
            flush(store);
        }
    }
    flush(store);
    let count = store.history("flapping.example.com", 20_000, None).unwrap().len();
    let bytes = on_disk(directory).saturating_sub(before) as f64 / count as f64;
    println!("| store per change ({count} changes) | {bytes:.0} B | ≤ 1 KB | ≤ 300 B |");
    let times = (0..100).map(|_| {
        let begun = Instant::now();
        assert_eq!(store.history("flapping.example.com", 100, None).unwrap().len(), 100);
        begun.elapsed()
    });
    row("first page of its history, p50 and p99", times.collect(), "≤ 20 ms", "≤ 5 ms");
}

fn row(name: &str, mut times: Vec<Duration>, must: &str, aim: &str) {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1000.0;
    println!("| {name} | {:.1} ms, {:.1} ms | {must} | {aim} |", at(50), at(99));
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn on_disk(directory: &std::path::Path) -> u64 {
    // Without the log, which is empty after a checkpoint.
    std::fs::metadata(directory.join("nodes.sqlite")).unwrap().len()
}
