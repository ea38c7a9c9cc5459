//! Whole fleets: what `clade diff` and the search for groups that could conflict take.
//! `cargo bench --bench fleet` prints the table of `docs/reference/fleet.md`.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program that measures and prints"
)]

#[path = "world/mod.rs"]
mod world;

use std::collections::BTreeMap;
use std::time::Instant;

use clade::diagnostic::Place;
use clade::impact::{Comparison, Impact, NodeComparison, Side, Survey};
use clade::validation::{Checked, Search, SourceContent, SourceFile, validate};
use rayon::prelude::*;
use world::{Scale, estates, nodes};

const SEED: u64 = 20_261_121;

fn main() {
    println!("| what | measured | must |\n|---|---|---|");
    diff();
    overlaps();
}

fn sources(files: &[estates::File]) -> Vec<SourceFile> {
    let source = |(path, text): &estates::File| SourceFile {
        path: path.as_str().into(),
        content: SourceContent::Bytes(text.as_bytes().into()),
    };
    files.iter().map(source).collect()
}

fn side(checked: &Checked) -> Side<'_> {
    static UNKNOWN: BTreeMap<String, Place> = BTreeMap::new();
    let estate = checked.estate.as_ref().unwrap();
    Side { estate, origins: &checked.origins, node_origins: &UNKNOWN }
}

/// A change of one file over 10,000 nodes and 1,000 groups, facts read.
fn diff() {
    let scale = Scale::of(1_000);
    let files = estates::files(scale, SEED);
    let mut changed = files.clone();
    let new = "name: New\nrule: name ~ \"1\"\nvariables: {brand_new: true}\n";
    changed.push(("groups/new.yaml".to_owned(), new.to_owned()));
    let base = validate(&sources(&files), Search::Decisive);
    let head = validate(&sources(&changed), Search::Decisive);
    assert!(head.is_valid(), "{:?}", head.diagnostics.first());
    let nodes = nodes::nodes(scale, 10_000, SEED);
    let began = Instant::now();
    let comparison = Comparison::new(side(&base), side(&head));
    let compared: Vec<(String, NodeComparison)> =
        nodes.par_iter().map(|node| (node.name.clone(), comparison.node(node))).collect();
    let mut survey = Survey::default();
    survey.extend(compared);
    let impact = Impact::gather(comparison.groups().to_vec(), Vec::new(), survey);
    let took = began.elapsed();
    println!(
        "| one file changed, 10,000 nodes, 1,000 groups: {} nodes change | {:.3} s | 5 s |",
        impact.changed(),
        took.as_secs_f64()
    );
}

/// Every pair of 2,000 groups.
fn overlaps() {
    let files = estates::files(Scale::of(2_000), SEED);
    let sources = sources(&files);
    let began = Instant::now();
    let plain = validate(&sources, Search::Decisive);
    let without = began.elapsed();
    let began = Instant::now();
    let thorough = validate(&sources, Search::Everything);
    let took = began.elapsed().saturating_sub(without);
    let found = thorough.diagnostics.len() - plain.diagnostics.len();
    println!(
        "| groups that could conflict among 2,000: {found} found | {:.3} s | 5 s |",
        took.as_secs_f64()
    );
}
