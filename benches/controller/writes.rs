//! Writes through the API on a large estate, alone, from many writers at once, and beside reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::daemon::{Client, Daemon};
use crate::estate::Estate;
use crate::{GROUPS, milliseconds, quantile, row};

/// How many writes of each kind are made one after the other.
const TIMES: usize = 50;

/// How many write at once.
const WRITERS: usize = 50;

/// How many clients read during the writes.
const READERS: usize = 8;

/// How long they read with and without writes.
const READING: Duration = Duration::from_secs(20);

const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// `BENCH_GROUPS`, `BENCH_TIMES` and `BENCH_SECONDS` make it small, to see whether it works.
fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |it| it.parse().unwrap())
}

pub(crate) fn writes() {
    let groups = setting("BENCH_GROUPS", GROUPS);
    let times = setting("BENCH_TIMES", TIMES);
    let usual = usize::try_from(READING.as_secs()).unwrap();
    let reading = Duration::from_secs(setting("BENCH_SECONDS", usual).try_into().unwrap());
    let estate = Estate::new(groups);
    let daemon = Daemon::start(&estate, &["--interval", "1h", "--writes", "commit"]);
    daemon.wait_for(&estate.head());
    one_by_one(&daemon, &estate, groups, times);
    together(&daemon, &estate);
    beside_reads(&daemon, reading);
}

fn create(client: &mut Client, name: &str) -> String {
    let body = format!(r#"{{"name": "{name}", "parent": "{ROOT}", "classes": {{}}}}"#);
    client.post("/v1/groups", &body)
}

fn id_of(created: &str) -> String {
    let location = created.split("Location: /v1/groups/").nth(1);
    location.unwrap_or_else(|| panic!("not made: {created}")).chars().take(36).collect()
}

/// Each kind of write, from the request to the answer, which comes when it is pushed and answers.
fn one_by_one(daemon: &Daemon, estate: &Estate, groups: usize, times: usize) {
    let mut client = daemon.client();
    let mut ids = Vec::new();
    let mut kinds: Vec<(&str, Vec<Duration>)> = Vec::new();
    for kind in ["create", "edit", "pin", "delete"] {
        let mut measured = Vec::new();
        for number in 0..times {
            let began = Instant::now();
            let (answer, status) = match kind {
                "create" => (create(&mut client, &format!("New {number}")), " 303 "),
                "edit" => {
                    let body = format!(r#"{{"description": "change {number}"}}"#);
                    (client.post(&format!("/v1/groups/{}", ids[number]), &body), " 200 ")
                }
                "pin" => {
                    let body = format!(r#"{{"nodes": ["pinned{number}.example.com"]}}"#);
                    (client.post(&format!("/v1/groups/{}/pin", ids[number]), &body), " 204 ")
                }
                _ => (client.delete(&format!("/v1/groups/{}", ids[number])), " 204 "),
            };
            measured.push(began.elapsed());
            assert!(answer.lines().next().unwrap().contains(status), "{kind}: {answer}");
            if kind == "create" {
                ids.push(id_of(&answer));
            }
        }
        kinds.push((kind, measured));
    }
    // Each was answered when it was on the remote and answered.
    assert_eq!(client.live(), estate.head());
    assert_eq!(estate.linear(), 1 + 4 * times);
    for (kind, mut measured) in kinds {
        let (p50, p99) = (quantile(&mut measured, 0.5), quantile(&mut measured, 0.99));
        row(
            &format!("{kind} a group among {groups}, pushed and active: p50, p99"),
            &format!("{:.0} ms, {:.0} ms", milliseconds(p50), milliseconds(p99)),
            "500 ms",
        );
    }
}

/// Many writers at once, each with its own group.
fn together(daemon: &Daemon, estate: &Estate) {
    let before = estate.linear();
    let began = Instant::now();
    let writers: Vec<JoinHandle<(Duration, String)>> = (0..WRITERS)
        .map(|number| {
            let mut client = daemon.client();
            std::thread::spawn(move || {
                let began = Instant::now();
                let answer = create(&mut client, &format!("Together {number}"));
                (began.elapsed(), answer.lines().next().unwrap_or_default().to_owned())
            })
        })
        .collect();
    let (mut times, mut statuses) = (Vec::new(), BTreeMap::<String, usize>::new());
    for writer in writers {
        let (time, status) = writer.join().unwrap();
        times.push(time);
        *statuses.entry(status).or_default() += 1;
    }
    let all = began.elapsed();
    let applied = statuses.get("HTTP/1.1 303 See Other").copied().unwrap_or_default();
    let commits = estate.linear() - before;
    let (p50, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    row(
        &format!("{WRITERS} writers at once: applied, commits in one line, {statuses:?}"),
        &format!("{applied}, {commits}"),
        "as many, none lost",
    );
    row(
        "the same: p50, p99, all",
        &format!(
            "{:.0} ms, {:.0} ms, {:.0} ms",
            milliseconds(p50),
            milliseconds(p99),
            milliseconds(all)
        ),
        "",
    );
}

/// Classifications without and with a stream of writes, in turn.
fn beside_reads(daemon: &Daemon, reading: Duration) {
    let calm = read(daemon, reading);
    let stop = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicUsize::new(0));
    let writer = {
        let (stop, written, mut client) =
            (Arc::clone(&stop), Arc::clone(&written), daemon.client());
        std::thread::spawn(move || {
            let id = id_of(&create(&mut client, "Stream"));
            while !stop.load(Ordering::Relaxed) {
                let number = written.fetch_add(1, Ordering::Relaxed);
                let body = format!(r#"{{"description": "change {number}"}}"#);
                let answer = client.post(&format!("/v1/groups/{id}"), &body);
                assert!(answer.contains(" 200 "), "{answer}");
            }
        })
    };
    let busy = read(daemon, reading);
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    let written = written.load(Ordering::Relaxed);
    for part in [0.5, 0.99] {
        let (mut calm, mut busy) = (calm.clone(), busy.clone());
        let (before, during) = (quantile(&mut calm, part), quantile(&mut busy, part));
        row(
            &format!(
                "p{:.0} of classifications of {READERS} clients during {written} writes as a multiple of that without",
                part * 100.0
            ),
            &format!(
                "{:.2} of {:.2} ms",
                during.as_secs_f64() / before.as_secs_f64(),
                milliseconds(before)
            ),
            "1, measurably",
        );
    }
}

fn read(daemon: &Daemon, reading: Duration) -> Vec<Duration> {
    let readers: Vec<JoinHandle<Vec<Duration>>> = (0..READERS)
        .map(|reader| {
            let mut client = daemon.client();
            std::thread::spawn(move || {
                let (began, mut times) = (Instant::now(), Vec::new());
                while began.elapsed() < reading {
                    let path = format!("/v1/classified/nodes/host{reader}-{}", times.len());
                    let asked = Instant::now();
                    let answer = client.post(&path, r#"{"fact": {"os": {"family": "Debian"}}}"#);
                    times.push(asked.elapsed());
                    assert!(answer.contains(" 200 OK"), "{answer}");
                    // An agent run is not a busy loop; the machine has two cores.
                    std::thread::sleep(Duration::from_millis(10));
                }
                times
            })
        })
        .collect();
    readers.into_iter().flat_map(|it| it.join().unwrap()).collect()
}
