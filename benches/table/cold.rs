//! Matching of a node when the caches of the processor hold something else, as they do where another program had the
//! core since the last request. What the node has is read right before, as the daemon reads it of the body.
//!
//! Each node is timed by itself, by the clock on the wall: about one in a thousand is interrupted.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{World, median, micros, row, seconds};

/// How many nodes are matched after a walk of their own in one round.
const NODES: usize = 60;

const ROUNDS: usize = 5;

/// Memory that takes the place of what the caches held.
struct OtherMemory(Vec<u64>);

impl OtherMemory {
    fn of(mebibytes: usize) -> Self {
        Self(vec![1; mebibytes << 17])
    }

    fn walk(&mut self) {
        for word in &mut self.0 {
            *word = black_box(word.wrapping_add(1));
        }
    }
}

/// Returns the times of matching a node after a walk through other memory.
fn matching(world: &World, other: &mut OtherMemory) -> Vec<Duration> {
    let (index, hierarchy) = (world.snapshot().index(), &world.snapshot().estate.hierarchy);
    let nodes = world.nodes.iter().take(NODES);
    let time = nodes.map(|node| {
        other.walk();
        let resolved = index.resolve(node);
        let began = Instant::now();
        black_box(index.matches(hierarchy, black_box(&resolved)).unwrap());
        began.elapsed()
    });
    time.collect()
}

/// Prints how long matching takes after walks of two lengths: the cache of a core has one or two MiB, the one that cores
/// share some tens.
pub(super) fn measure(worlds: [&World; 3]) {
    for mebibytes in [2, 64] {
        let mut other = OtherMemory::of(mebibytes);
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..ROUNDS {
            for (times, world) in times.iter_mut().zip(worlds) {
                times.extend(matching(world, &mut other));
            }
        }
        let [small, medium, large] = times.map(median);
        let what = format!("matching after a walk through {mebibytes} MiB");
        eprintln!("{what}: {} {} {}", micros(small), micros(medium), micros(large));
        let ratio = seconds(medium) / seconds(small);
        row(
            "P1 cold",
            &format!("{what} at 10k groups ÷ 100 groups"),
            &format!("{ratio:.2}"),
            "",
            "",
        );
    }
}
