//! The fault campaign: what is injected into the real program, what is promised, and what is seen.
//!
//! `cargo test --test faults` injects the fast half, `cargo test --test faults -- --all` everything,
//! and a name or the start of one selects. Each area is a file with a table [`FAULTS`].
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "faults are reported by panics and read files"
)]

mod host;
mod rights;

#[path = "../integration/program.rs"]
#[expect(dead_code, reason = "the integration tests use more of it")]
mod program;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

/// Something that goes wrong, and what must hold all the same.
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
    /// Takes at most a few seconds.
    Fast,
    /// Injected with `--all` only.
    #[expect(dead_code, reason = "no slow fault yet")]
    Slow,
}

/// What was seen while the promise held.
#[derive(Debug)]
pub(crate) enum Seen {
    /// One sentence, with figures where there are any.
    Held(String),
    /// What the machine lacks, such as `faketime`.
    Skipped(&'static str),
}

/// Every fault, by area.
const AREAS: &[&[Fault]] = &[rights::FAULTS, host::FAULTS];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let all = arguments.iter().any(|it| it == "--all");
    let names: Vec<&String> = arguments.iter().filter(|it| !it.starts_with('-')).collect();
    let is_chosen = |fault: &&Fault| match names.as_slice() {
        [] => all || fault.speed == Speed::Fast,
        names => names.iter().any(|it| fault.name.contains(it.as_str())),
    };
    let (mut held, mut failed, mut skipped) = (0, 0, 0);
    for fault in AREAS.iter().copied().flatten().filter(is_chosen) {
        let began = Instant::now();
        let outcome = catch_unwind(fault.run);
        let took = began.elapsed().as_secs_f32();
        match outcome {
            Ok(Seen::Held(seen)) => {
                held += 1;
                println!("fault {} ... held ({took:.1} s): {seen}", fault.name);
            }
            Ok(Seen::Skipped(peer)) => {
                skipped += 1;
                println!("fault {} ... skipped: needs {peer}", fault.name);
            }
            Err(_) => {
                failed += 1;
                println!("fault {} ... FAILED ({took:.1} s)", fault.name);
                println!("  promised: {}\n  injected: {}", fault.promise, fault.injection);
            }
        }
    }
    println!("\n{held} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
