//! The fault campaign: faults that are injected into the real program, their promises and the observations.
//!
//! `cargo test --test faults` injects the fast half, `-- --all` everything, `-- --list` shows the
//! names, and a part of a name selects. Each area is a file with a table `FAULTS`; with
//! `UPDATE_DOCS=1` the observations go into `docs/reference/faults.md`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "faults are reported by panics and read files"
)]

mod campaign;
mod page;

mod activation;
mod broken_commits;
mod check_ins;
mod clients;
mod clocks;
mod commits;
mod crashes;
mod disks;
mod forges;
mod git;
mod git_servers;
mod history;
mod host;
mod load;
mod memory;
mod puppetdbs;
mod remotes;
mod rights;
mod roles;
mod server;
mod soak;

#[path = "../integration/follow.rs"]
mod follow;
#[path = "../integration/forge.rs"]
#[expect(dead_code, reason = "the integration tests use more of it")]
mod forge;
#[path = "../integration/hub.rs"]
#[expect(dead_code, reason = "the integration tests use more of it")]
mod hub;
#[path = "../integration/program.rs"]
#[expect(dead_code, reason = "the integration tests use more of it")]
mod program;

#[path = "../integration/mtls.rs"]
mod mtls;
#[path = "../integration/repository.rs"]
#[expect(dead_code, reason = "the integration tests use more of it")]
mod repository;
#[path = "../../benches/world/mod.rs"]
mod world;

use std::process::ExitCode;

use soak::Lives;

/// A fault, and the promise that must hold in spite of it.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The name, such as `rights::keys-without-groups`; it is stable.
    pub(crate) name: &'static str,
    /// What Clade promises.
    pub(crate) promise: &'static str,
    /// How the fault is injected.
    pub(crate) injection: &'static str,
    /// Whether it is injected in every run.
    pub(crate) speed: Speed,
    /// Injects it. Panics if the promise is broken.
    pub(crate) run: fn() -> Seen,
}

/// Whether a fault is injected in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    /// Takes at most a few seconds, and may run beside another one.
    Fast,
    /// Injected with `--all` or by its name only, and alone.
    Slow,
}

/// The observation while the promise held.
#[derive(Debug)]
pub(crate) enum Seen {
    /// One sentence, with figures where there are any.
    Held(String),
    /// What the machine lacks, such as `faketime`.
    Skipped(&'static str),
}

/// Every fault, by area.
const AREAS: &[&[Fault]] = &[
    activation::FAULTS,
    broken_commits::FAULTS,
    check_ins::FAULTS,
    clients::FAULTS,
    clocks::FAULTS,
    commits::FAULTS,
    crashes::FAULTS,
    disks::FAULTS,
    forges::FAULTS,
    git_servers::FAULTS,
    history::FAULTS,
    host::FAULTS,
    memory::FAULTS,
    puppetdbs::FAULTS,
    remotes::FAULTS,
    rights::FAULTS,
    roles::FAULTS,
    server::FAULTS,
    load::FAULTS,
];

fn main() -> ExitCode {
    let arguments = campaign::Arguments::parse(std::env::args().skip(1));
    let endured = match (arguments.load, arguments.soak) {
        (Some(minutes), _) => Some(load::run_for(minutes)),
        (None, Some(minutes)) => {
            let lives = if arguments.has_long_life { Lives::OneLong } else { Lives::Several };
            Some(soak::run_for(minutes, lives))
        }
        (None, None) => None,
    };
    if let Some(held) = endured {
        return if held { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let chosen = arguments.choose(AREAS);
    if arguments.lists {
        for fault in chosen {
            println!("{}: {:?}", fault.name, fault.speed);
        }
        return ExitCode::SUCCESS;
    }
    let results = campaign::run(&chosen);
    let is_documented = page::check(AREAS, &results);
    let count = |kind: fn(&campaign::Outcome) -> bool| {
        results.iter().filter(|(_, outcome)| kind(outcome)).count()
    };
    let held = count(|it| matches!(it, campaign::Outcome::Held(_)));
    let failed = count(|it| matches!(it, campaign::Outcome::Failed(_)));
    let skipped = count(|it| matches!(it, campaign::Outcome::Skipped));
    // Once more, at the end, where a log of which only the end is kept still has them.
    for (_, outcome) in &results {
        if let campaign::Outcome::Failed(report) = outcome {
            println!("\n{report}");
        }
    }
    println!("\n{held} passed, {failed} failed, {skipped} skipped");
    if failed == 0 && is_documented { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
