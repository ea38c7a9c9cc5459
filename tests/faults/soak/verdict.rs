//! Which series must stay level, and whether they do.

use std::fmt::Write as _;

use super::plan::{Lives, Plan};
use super::samples::Sample;
use super::trend::{Point, Tolerance, Trend, median};

/// What is compared with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Each process begins again: one life with itself, and with the other lives.
    Lives,
    /// It goes on over restarts.
    Run,
    /// Likewise, once each node is in the store: on a busy machine that takes longer than the warm-up.
    FullStore,
}

/// The most packs that are open: as many as `src/git/libgit2.rs` keeps. They are a saw-tooth, up by one with each commit
/// and down when some are joined, so that a part of it rises.
const MOST_PACKS: f64 = 64.0;

/// The share of the nodes with which the store counts as full.
const FULL: f64 = 0.99;

pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) value: fn(&Sample) -> f64,
    extent: Extent,
    /// The run fails beyond it.
    tolerance: Tolerance,
}

const fn tolerance(share: f64, absolute: f64) -> Tolerance {
    Tolerance { share, absolute }
}

/// Caches fill and allocators keep what they had, so a tenth of memory may come in a life. Times depend on what else
/// runs on the machine; the computing time of a check-in does so less.
pub(super) const SERIES: &[Series] = &[
    Series {
        name: "resident memory",
        unit: "MiB",
        value: |it| it.memory_mib,
        extent: Extent::Lives,
        tolerance: tolerance(0.1, 8.0),
    },
    Series {
        name: "open files beside packs",
        unit: "",
        value: |it| it.files,
        extent: Extent::Lives,
        tolerance: tolerance(0.1, 4.0),
    },
    Series {
        name: "threads",
        unit: "",
        value: |it| it.threads,
        extent: Extent::Lives,
        tolerance: tolerance(0.1, 4.0),
    },
    Series {
        name: "data directory beside the history",
        unit: "MiB",
        value: |it| it.disk_mib - it.history_mib,
        extent: Extent::FullStore,
        tolerance: tolerance(0.1, 16.0),
    },
    Series {
        name: "computing time of a check-in",
        unit: "ms",
        value: |it| it.computing_ms,
        extent: Extent::Run,
        tolerance: tolerance(0.25, 0.2),
    },
    Series {
        name: "p50 of check-ins",
        unit: "ms",
        value: |it| it.p50_ms,
        extent: Extent::Run,
        tolerance: tolerance(0.5, 0.5),
    },
    Series {
        name: "p99 of check-ins",
        unit: "ms",
        value: |it| it.p99_ms,
        extent: Extent::Run,
        tolerance: tolerance(1.0, 5.0),
    },
];

/// Returns a table of the trends, and whether all are level.
pub(super) fn verdict(plan: &Plan, samples: &[Sample]) -> (String, bool) {
    let mut table = "| series | median | range | rise | an hour | tolerated | |\n|---|---|---|---|---|---|---|\n".to_owned();
    let mut holds = true;
    for series in SERIES {
        for (of, trend) in trends(plan, samples, series) {
            let is_level = trend.is_some_and(|it| it.is_level(series.tolerance));
            holds &= is_level;
            let row = match trend {
                Some(trend) => row(series, &trend, samples),
                None => "too few samples | | | |".to_owned(),
            };
            let verdict = if is_level { "level" } else { "**RISES**" };
            writeln!(table, "| {}{of} | {row} {verdict} |", series.name).unwrap();
        }
    }
    let (_, packs) = range(&samples.iter().map(|it| it.packs).collect::<Vec<_>>());
    holds &= packs <= MOST_PACKS;
    writeln!(table, "\nat most {packs} packs were open, and {MOST_PACKS} may be").unwrap();
    let load = |it: &Sample| it.load;
    let loads: Vec<f64> = samples.iter().map(load).collect();
    let (least, most) = range(&loads);
    writeln!(
        table,
        "\nload of the machine {least:.1} to {most:.1}, median {:.1}",
        median(loads).unwrap_or_default()
    )
    .unwrap();
    (table, holds)
}

fn row(series: &Series, trend: &Trend, samples: &[Sample]) -> String {
    let (least, most) = range(&samples.iter().map(series.value).collect::<Vec<_>>());
    let Trend { level, rise, per_hour } = trend;
    let most_rise = (level * series.tolerance.share).max(series.tolerance.absolute);
    let unit = series.unit;
    format!(
        "{level:.1} {unit} | {least:.1}–{most:.1} | {rise:+.2} | {per_hour:+.2} | {most_rise:.2} |"
    )
}

fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().min_by(f64::total_cmp);
    let most = values.iter().copied().max_by(f64::total_cmp);
    (least.unwrap_or_default(), most.unwrap_or_default())
}

fn trends(plan: &Plan, samples: &[Sample], series: &Series) -> Vec<(&'static str, Option<Trend>)> {
    let point = |it: &Sample| -> Point { (it.at, (series.value)(it)) };
    let warm = samples.partition_point(|it| it.at < plan.warm_up.as_secs_f64());
    let since = |first: usize| -> Vec<Point> { samples[first..].iter().map(point).collect() };
    match series.extent {
        Extent::Run => vec![("", Trend::of(&since(warm)))],
        Extent::FullStore => {
            let is_full = |it: &Sample| it.stored >= f64::from(plan.names) * FULL;
            let full = samples.iter().position(is_full).unwrap_or(samples.len());
            vec![(", with all nodes", Trend::of(&since(full.max(warm))))]
        }
        Extent::Lives => {
            let lives = settled_lives(plan, samples);
            let lives: Vec<Vec<Point>> =
                lives.iter().map(|life| life.iter().map(point).collect()).collect();
            let mut trends = vec![(", within a life", Trend::within(&lives))];
            if plan.lives == Lives::Several {
                trends.push((", from life to life", Trend::between(&lives)));
            }
            trends
        }
    }
}

/// Returns the samples of each life after the warm-up, from when each node has checked in once in it: a daemon keeps
/// something for each node that it has seen. The last third counts in any case, and the first in none.
fn settled_lives(plan: &Plan, samples: &[Sample]) -> Vec<Vec<Sample>> {
    let lives = samples.chunk_by(|a, b| a.life == b.life);
    let begins_warm =
        |life: &&[Sample]| life.first().is_some_and(|it| it.at >= plan.warm_up.as_secs_f64());
    let round = f64::from(plan.names) / f64::from(plan.pace);
    let settled = |life: &[Sample]| {
        let all_seen = life.partition_point(|it| it.at - life[0].at < round);
        life[all_seen.clamp(life.len() / 3, life.len() * 2 / 3)..].to_vec()
    };
    lives.filter(begins_warm).map(settled).collect()
}
