//! `--soak MINUTES`: a month of a site in so many minutes, with what it takes measured all the time. With `--long-life`
//! the daemon runs three quarters of it without a restart.
//!
//! 100,000 nodes check in, commits and writes come, commits are compared, the console is read, the remote is out of
//! reach for a while, and the daemon is restarted and killed. Answers are recomputed from the commits that they name. The
//! run fails when one is wrong, when something fails that may not, or when a series of [`verdict::SERIES`] rises after
//! the warm-up.

mod check_ins;
mod connection;
mod fleet;
mod histogram;
mod oracle;
mod plan;
mod plot;
mod samples;
mod site;
mod tally;
mod trend;
mod verdict;
mod visitors;

use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

use check_ins::{CONNECTIONS, CheckIns};
use fleet::Fleet;
use histogram::Histogram;
use oracle::Oracle;
pub(crate) use plan::Lives;
use plan::Plan;
use samples::Sample;
use site::{Conductor, Site};
use tally::Tally;

use crate::hub::Hub;
use crate::program::root;

/// How many answers may wait to be checked.
const WAITING: usize = 512;

struct Measured {
    samples: Vec<Sample>,
    times: Histogram,
    page_times: Histogram,
    diff_times: Histogram,
}

/// Runs it; returns whether everything held.
pub(crate) fn run_for(minutes: u64, lives: Lives) -> bool {
    let plan = Plan::of(minutes, lives);
    let fleet = Fleet::new(plan.names);
    let files = fleet.files();
    let pairs: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let hub = Hub::new(&pairs);
    println!(
        "{} nodes, {} check-ins a second, {} groups, {} min",
        plan.names,
        plan.pace,
        files.len(),
        plan.time.as_secs() / 60
    );
    let tally = Tally::new();
    let Measured { samples, times, page_times, diff_times } = endure(&plan, &fleet, &hub, &tally);
    let (table, is_level) = verdict::verdict(&plan, &samples);
    let summary = format!(
        "{}; {:.0} of the check-ins were answered and not stored; pages took {:.0} ms at the median and {:.0} ms at p99, diffs {:.1} s and {:.1} s",
        summary(&plan, &tally, &times),
        samples::all_dropped(&samples),
        page_times.millis(500),
        page_times.millis(990),
        diff_times.millis(500) / 1000.0,
        diff_times.millis(990) / 1000.0,
    );
    println!("{summary}\n\n{table}\n{tally}");
    let path = match std::env::var_os("UPDATE_DOCS") {
        Some(_) => root().join("docs/images").join(lives.picture()),
        None => root().join("target").join(lives.picture()),
    };
    // With another target directory there is none here.
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, plot::draw(&plan, &samples, &summary)).unwrap();
    println!("drawn: {}", path.display());
    for what in ["checked answers", "commits", "writes", "diffs", "pages", "restarts"] {
        if tally.of(what) == 0 {
            tally.broken(format!("no {what}"));
        }
    }
    tally.is_clean() && is_level
}

/// Runs the daemon with all that asks it until the end.
fn endure(plan: &Plan, fleet: &Fleet, hub: &Hub, tally: &Tally) -> Measured {
    let site = Site::new(plan, tally, hub);
    let oracle = Oracle::new(fleet, &site.repository);
    let times = Mutex::new(Histogram::new());
    let conductor = Conductor::new(&site, hub);
    let check_ins = CheckIns::new(plan, fleet, &oracle, tally, &site.address, &times);
    let (sender, given) = sync_channel(WAITING);
    let (samples, times) = std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            let (check_ins, sender) = (&check_ins, sender.clone());
            scope.spawn(move || check_ins.run(&sender));
        }
        drop(sender);
        let oracle = &oracle;
        scope.spawn(move || oracle.check_all(&given, tally));
        scope.spawn(|| visitors::load_pages(&site, fleet));
        scope.spawn(|| visitors::compare_commits(&site));
        scope.spawn(|| visitors::write_groups(&site));
        let samples = scope.spawn(|| samples::measure(&site, &times));
        conductor.run();
        samples.join().unwrap()
    });
    Measured {
        samples,
        times,
        page_times: site.page_times.into_inner().unwrap(),
        diff_times: site.diff_times.into_inner().unwrap(),
    }
}

fn summary(plan: &Plan, tally: &Tally, times: &Histogram) -> String {
    format!(
        "{} check-ins of {} nodes at {} a second ({} checked), {} commits, {} writes, {} diffs over all nodes, {} pages, {} restarts, {} times without the remote; check-ins took {:.1} ms at the median, {:.1} ms at p99 and {:.0} ms at p99.9",
        tally.of("check-ins"),
        plan.names,
        plan.pace,
        tally.of("checked answers"),
        tally.of("commits"),
        tally.of("writes"),
        tally.of("diffs"),
        tally.of("pages"),
        tally.of("restarts"),
        tally.of("times without the remote"),
        times.millis(500),
        times.millis(990),
        times.millis(999),
    )
}
