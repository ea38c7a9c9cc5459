//! What is counted.

use std::alloc::System;
use std::hint::black_box;
use std::sync::Arc;

use clade::internals::classification::{self, Version};
use clade::internals::model::{Budget, Meter, Node};
use clade::internals::snapshot::{AnsweredNode, LiveSnapshot, Snapshot};
use clade::internals::validation::{
    Checked, FileKind, Search, SourceContent, SourceFile, read_file, validate,
};
use serde::de::IgnoredAny;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::world::{Scale, estates, nodes};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many nodes are asked about.
const NODES: usize = 300;

/// How a line begins whose count callgrind dumps; the divisor follows.
pub const INSTRUCTIONS: &str = "instructions";

/// How a line begins that has a count of allocations.
pub const ALLOCATIONS: &str = "allocations";

/// How a line begins that has a count of bytes.
pub const BYTES: &str = "bytes";

/// The estates to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Those of the table.
    Checked,
    /// Those, and 100,000 groups.
    Large,
}

/// Runs what callgrind counts.
pub fn run(sizes: Sizes) {
    // What a pool computes would not be counted.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    if let Err(why) = pool.build_global() {
        println!("{why}");
    }
    for groups in [100, 1_000, 10_000] {
        let world = World::of(groups);
        world.rows();
        if groups == 10_000 {
            world.body_row();
            world.build_rows();
        }
    }
    if sizes == Sizes::Large {
        World::of(100_000).rows();
    }
}

/// Does what callgrind counts, and dumps.
#[inline(never)]
fn counted_row(work: &mut dyn FnMut()) {
    work();
    // So that the call above is not the last thing done.
    black_box(());
}

/// Counts what is done for a number of nodes, groups or files, and names it.
fn count(name: &str, divisor: usize, work: &mut dyn FnMut()) {
    println!("{INSTRUCTIONS} {divisor} {name}");
    counted_row(work);
}

/// An estate with nodes to ask about.
struct World {
    groups: usize,
    files: Vec<SourceFile>,
    checked: Checked,
    live: LiveSnapshot,
    nodes: Vec<Node>,
    bodies: Vec<Vec<u8>>,
}

impl World {
    fn of(groups: usize) -> Self {
        let scale = Scale::of(groups);
        let files: Vec<SourceFile> = estates::files(scale, 1)
            .into_iter()
            .map(|(path, text)| SourceFile {
                path: path.into(),
                content: SourceContent::Bytes(text.into_bytes().into()),
            })
            .collect();
        let mut checked = None;
        let mut live = None;
        let mut build = || {
            let found = validate(&files, Search::Decisive);
            live = Some(LiveSnapshot::new(Arc::new(snapshot(&found))));
            checked = Some(found);
        };
        if groups == 10_000 {
            count("P11 full build of 10k groups, a file", groups, &mut build);
        } else {
            build();
        }
        let (Some(checked), Some(live)) = (checked, live) else {
            unreachable!("it was built above")
        };
        let nodes = nodes::nodes(scale, NODES, 2);
        let bodies = nodes.iter().map(nodes::body).collect();
        let world = Self { groups, files, checked, live, nodes, bodies };
        world.check();
        world
    }

    /// Checks that matching agrees with asking every group.
    fn check(&self) {
        let snapshot = self.live.snapshot();
        for node in self.nodes.iter().take(3) {
            let plain = classification::matches(&snapshot.estate.hierarchy, node).unwrap();
            assert_eq!(snapshot.index().matching(&snapshot.estate.hierarchy, node).unwrap(), plain);
        }
    }

    /// Counts matching and whole requests, after all nodes have been asked about once.
    fn rows(&self) {
        let size = match self.groups {
            100 => "100",
            1_000 => "1k",
            10_000 => "10k",
            _ => "100k",
        };
        let snapshot = self.live.snapshot();
        let (index, hierarchy) = (snapshot.index(), &snapshot.estate.hierarchy);
        let resolved: Vec<_> = self.nodes.iter().map(|node| index.resolve(node)).collect();
        let mut matching = || {
            for resolved in &resolved {
                black_box(index.matches(hierarchy, black_box(resolved)).unwrap());
            }
        };
        matching();
        count(&format!("P1 matching at {size} groups, a node"), NODES, &mut matching);
        let mut request = || {
            for (node, body) in self.nodes.iter().zip(&self.bodies) {
                let request = index.read(&node.name, black_box(body)).unwrap();
                let groups = index.matches(hierarchy, &request.resolved).unwrap();
                let facts = AnsweredNode::received(&node.name, &request);
                black_box(self.live.classified(&facts, &groups, Version::V1).ok());
            }
        };
        request();
        count(&format!("P3 whole request at {size} groups, a node"), NODES, &mut request);
        let region = Region::new(ALLOCATOR);
        request();
        let change = region.change();
        let allocations = (change.allocations + change.reallocations) as f64 / NODES as f64;
        println!(
            "{ALLOCATIONS} {allocations:.1} P3 whole request at {size} groups, allocations of a node"
        );
        let region = Region::new(ALLOCATOR);
        let again =
            Snapshot::new(snapshot.commit, snapshot.estate.clone(), Arc::default(), Vec::new());
        let change = region.change();
        let bytes =
            (change.bytes_allocated as f64 - change.bytes_deallocated as f64) / self.groups as f64;
        println!("{BYTES} {bytes:.0} P10 compiled rules of {size} groups, a group");
        drop(again);
    }

    fn body_row(&self) {
        let index = self.live.snapshot().index();
        count("P5 reading a body, a node", NODES, &mut || {
            for (node, body) in self.nodes.iter().zip(&self.bodies) {
                black_box(index.read(&node.name, black_box(body)).unwrap());
            }
        });
        count("P5 `serde_json` skipping a body, a node", NODES, &mut || {
            for body in &self.bodies {
                black_box(serde_json::from_slice::<IgnoredAny>(black_box(body)).unwrap());
            }
        });
    }

    /// Counts how one file is built into the commit before.
    fn build_rows(&self) {
        let snapshot = self.live.snapshot();
        for (what, from, to) in [
            ("description", "classes:\n", "description: changed\nclasses:\n"),
            ("rule", "rule: [\"=\"", "# changed\nrule: [\"~\""),
        ] {
            let changed = self.files.iter().filter_map(|file| {
                let SourceContent::Bytes(bytes) = &file.content else { return None };
                let text = std::str::from_utf8(bytes).ok()?;
                let content = SourceContent::Bytes(text.replace(from, to).into_bytes().into());
                text.contains(from).then(|| SourceFile { path: Arc::clone(&file.path), content })
            });
            let changed: Vec<SourceFile> = changed.skip(100).step_by(10).take(10).collect();
            count(&format!("P12 rebuild of 10k groups after a {what}"), changed.len(), &mut || {
                for file in &changed {
                    let reading = Arc::new(read_file(file, FileKind::Groups));
                    let again = self
                        .checked
                        .incremental(&[reading], &[], &Meter::new(Budget::DEFAULT))
                        .unwrap();
                    let (estate, origins) =
                        (again.estate.clone().unwrap(), Arc::clone(&again.origins));
                    black_box(snapshot.amended(snapshot.commit, estate, origins, Vec::new()));
                }
            });
        }
    }
}

fn snapshot(checked: &Checked) -> Snapshot {
    let commit = "0123456789012345678901234567890123456789".parse().unwrap();
    Snapshot::new(commit, checked.estate.clone().unwrap(), Arc::clone(&checked.origins), Vec::new())
}
