//! A daemon without threads, in a world that does its worst: pushes, rewinds, bad commits, pins, writes, clocks that are
//! set, full disks, lost remotes, and kills between any two effects.
//!
//! Everything but the transport, the disk and the clocks is the daemon's own code: the state, the journal, the
//! verifier, the builder, the writer, over a real repository. One seed decides what happens; after every step the
//! promises of the controller are checked. A failure prints its seed: `just simulate SEED` replays it.

mod actions;
mod daemon;
mod disk;
mod kill;
mod promises;
mod remote;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use world::{Defect, World};

/// How many steps one world lives through: then a new one begins, with an empty repository.
const STEPS: u32 = 400;

/// How many steps `cargo test` takes; `.ci/run` sets `CLADE_SIMULATION_STEPS`.
const DEFAULT_STEPS: u32 = 12_000;

#[expect(clippy::disallowed_methods, reason = "the length of the run is the caller's choice")]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Lives through one world, and returns the promise that was broken, with everything that happened.
fn live(seed: u64, defect: Option<Defect>) -> Result<(), String> {
    let mut world = World::new(seed, defect);
    for _ in 0..STEPS {
        world.act();
        world.check()?;
    }
    world.settle()
}

#[test]
fn no_promise_is_broken_whatever_happens() {
    if let Some(seed) = number("CLADE_SIMULATION_SEED") {
        if let Err(broken) = live(seed, None) {
            panic!("seed {seed}: {broken}");
        }
        return;
    }
    let steps = number("CLADE_SIMULATION_STEPS").unwrap_or(DEFAULT_STEPS.into());
    // Every run sees other worlds; a failure names its seed.
    let first = number("CLADE_SIMULATION_FIRST").unwrap_or_else(|| fastrand::u64(..1 << 40));
    let next = AtomicU64::new(first);
    let end = first + steps.div_ceil(STEPS.into());
    let live_on = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return None;
            }
            if let Err(broken) = live(seed, None) {
                next.store(end, Ordering::Relaxed);
                return Some(format!("replay with `just simulate {seed}`: {broken}"));
            }
        }
    };
    // A world has one thread to itself; as many live at once as the machine has cores.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let broken: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(live_on)).collect();
        threads.into_iter().filter_map(|it| it.join().unwrap()).collect()
    });
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// The defects that the fault campaign found in the controller before there was a simulation: each is
/// put back, and must be found.
#[test]
fn the_defects_of_the_past_would_have_been_found() {
    for defect in Defect::ALL {
        let found = (0..200).find_map(|seed| Some((seed, live(seed, Some(defect)).err()?)));
        let Some((seed, broken)) = found else { panic!("{defect:?} is not found") };
        let line = broken.lines().next().unwrap_or_default();
        println!("{defect:?}: found in world {seed}: {line}");
        assert!(line.contains(defect.promise()), "{defect:?}: {broken}");
    }
}
