//! What is measured every few seconds: the process, its directory, and the times of check-ins.

use std::fs::DirEntry;
use std::path::Path;
use std::sync::Mutex;

use super::fleet::{CHANGED_SHARE, WRITTEN_SHARE};
use super::histogram::Histogram;
use super::site::Site;
use crate::load::ask;

/// The unit of the times in `/proc/PID/stat` on Linux.
const TICK_MILLIS: f64 = 10.0;

/// What the history of answers takes at most for each change, in MiB. Its changes are kept for two hours at least after
/// each start, so that a run never sees one forgotten; `src/store/check_ins/tests/year.rs` does.
const CHANGE_MIB: f64 = 320.0 / 1024.0 / 1024.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Seconds since the start.
    pub(super) at: f64,
    pub(super) life: u32,
    pub(super) memory_mib: f64,
    /// Open files beside packs.
    pub(super) files: f64,
    /// Packs that are open: one comes with each commit, until some are joined.
    pub(super) packs: f64,
    pub(super) threads: f64,
    pub(super) disk_mib: f64,
    /// What the history may take of it, by the changes that commits and writes have made.
    pub(super) history_mib: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// The processor's time of the whole daemon for each check-in, all that runs beside them included.
    pub(super) computing_ms: f64,
    /// The machine's, of all that runs on it.
    pub(super) load: f64,
    /// Check-ins of this life that were answered and not stored.
    pub(super) dropped: f64,
    /// The nodes that the store has, at its last write in this life.
    pub(super) stored: f64,
}

/// Measures until the end; returns the samples, and the times of all check-ins.
pub(super) fn measure(site: &Site<'_>, times: &Mutex<Histogram>) -> (Vec<Sample>, Histogram) {
    let (mut samples, mut all) = (Vec::new(), Histogram::new());
    let mut computed = None;
    while !site.is_over() {
        site.sleep(site.plan.sample_every);
        let window = std::mem::replace(&mut *times.lock().unwrap(), Histogram::new());
        all.add(&window);
        let Some((pid, life)) = site.process() else { continue };
        // It may end at any time.
        let Some(process) = Process::read(pid) else { continue };
        let before = computed.replace((life, process.computed_ms));
        let Some((_, before)) = before.filter(|it| it.0 == life) else { continue };
        if window.count() == 0 {
            continue;
        }
        let (_, metrics) = ask(&site.address, "GET", "/metrics", "").unwrap_or_default();
        samples.push(Sample {
            at: site.tally.elapsed().as_secs_f64(),
            life,
            memory_mib: process.memory_mib,
            files: process.files,
            packs: process.packs,
            threads: process.threads,
            disk_mib: disk_kib(&site.data) / 1024.0,
            history_mib: changes(site) * CHANGE_MIB,
            p50_ms: window.millis(500),
            p99_ms: window.millis(990),
            computing_ms: (process.computed_ms - before) / f64::from(window.count()),
            load: load(),
            dropped: sum(&metrics, "clade_check_ins_dropped_total"),
            stored: sum(&metrics, "clade_check_ins_nodes"),
        });
    }
    (samples, all)
}

/// Returns how many answers have changed: nodes pick a change up when they check in.
fn changes(site: &Site<'_>) -> f64 {
    let count = |what: &str| f64::from(u32::try_from(site.tally.of(what)).unwrap_or(u32::MAX));
    let share = count("commits") * CHANGED_SHARE + count("writes") * WRITTEN_SHARE;
    share * f64::from(site.plan.names)
}

struct Process {
    memory_mib: f64,
    files: f64,
    packs: f64,
    threads: f64,
    computed_ms: f64,
}

impl Process {
    fn read(pid: u32) -> Option<Self> {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
        let status = read("status")?;
        let value = |key: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let stat = read("stat")?;
        let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
        let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        // One that has been removed has ` (deleted)` behind its name.
        let is_pack = |file: &DirEntry| {
            let file = std::fs::read_link(file.path()).unwrap_or_default();
            file.parent().is_some_and(|it| it.ends_with("objects/pack"))
        };
        let (packs, files): (Vec<DirEntry>, Vec<DirEntry>) = open.partition(is_pack);
        let count = |it: Vec<DirEntry>| u32::try_from(it.len()).ok().map(f64::from);
        Some(Self {
            memory_mib: value("VmRSS:")? / 1024.0,
            files: count(files)?,
            packs: count(packs)?,
            threads: value("Threads:")?,
            computed_ms: (ticks(11)? + ticks(12)?) * TICK_MILLIS,
        })
    }
}

/// Returns what a directory takes on disk; files may vanish meanwhile.
fn disk_kib(directory: &Path) -> f64 {
    use std::os::unix::fs::MetadataExt as _;

    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(it) if it.is_dir() => disk_kib(&entry.path()),
        // In blocks of 512 bytes.
        Ok(it) => f64::from(u32::try_from(it.blocks()).unwrap_or(u32::MAX)) / 2.0,
        Err(_) => 0.0,
    });
    sizes.sum()
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// Returns a metric, over all its labels.
fn sum(metrics: &str, name: &str) -> f64 {
    let lines = metrics.lines().filter_map(|it| it.strip_prefix(name));
    let values = lines.filter(|it| it.starts_with([' ', '{']));
    values.filter_map(|it| it.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Returns the check-ins that were dropped in all lives, as far as was measured.
pub(super) fn all_dropped(samples: &[Sample]) -> f64 {
    let lives = samples.chunk_by(|a, b| a.life == b.life);
    lives.map(|life| life.iter().map(|it| it.dropped).fold(0.0, f64::max)).sum()
}
