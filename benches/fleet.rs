//! Whole fleets: what `clade diff` and the search for groups that could conflict take.
//! `cargo bench --bench fleet` prints the table of `docs/reference/fleet.md`.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a program that measures and prints"
)]

#[path = "world/mod.rs"]
mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clade::internals::classification::Evidence;
use clade::internals::diagnostic::Place;
use clade::internals::impact::{Impact, NodeComparison, Side, StateComparison, Survey};
use clade::internals::mentioned::MentionedPaths;
use clade::internals::model::Node;
use clade::internals::rule::Solver;
use clade::internals::validation::{Checked, Search, SourceContent, SourceFile, validate};
use rayon::prelude::*;
use world::{Scale, estates, nodes};

const SEED: u64 = 20_261_121;

fn main() {
    println!("| what | measured | must |\n|---|---|---|");
    diff();
    stored();
    overlaps();
    for mix in MIXES {
        mixed(2_000, mix, 10);
    }
    for mix in MIXES.iter().filter(|(what, _)| *what == ALL) {
        mixed(5_000, mix, 5);
    }
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
    let comparison = StateComparison::new(side(&base), side(&head));
    let compared: Vec<(String, NodeComparison)> =
        nodes.par_iter().map(|node| (node.name.clone(), comparison.node(node))).collect();
    let mut survey = Survey::default();
    survey.extend(compared);
    let impact = Impact::gather(comparison.groups().to_vec(), Vec::new(), survey).unwrap();
    let took = began.elapsed();
    println!(
        "| one file changed, 10,000 nodes, 1,000 groups: {} nodes change | {:.3} s | 5 s |",
        impact.changed(),
        took.as_secs_f64()
    );
}

/// Nodes as the store has them: facts as text, of which a comparison needs what rules mention.
fn stored() {
    const NODES: usize = 20_000;
    let scale = Scale::of(1_000);
    let files = estates::files(scale, SEED);
    let base = validate(&sources(&files), Search::Decisive);
    let texts: Vec<(String, String, String)> = nodes::nodes(scale, NODES, SEED)
        .into_iter()
        .map(|Node { name, fact, trusted }| {
            let text = |map| serde_json::Value::Object(map).to_string();
            (name, text(fact), text(trusted))
        })
        .collect();
    for (what, rule, facts) in [
        ("few", "name ~ \"^role-1-\"", Facts::Restricted),
        ("all", "kernel = Linux", Facts::Restricted),
        ("few", "name ~ \"^role-1-\"", Facts::Whole),
        ("all", "kernel = Linux", Facts::Whole),
    ] {
        let mut changed = files.clone();
        let new = format!("name: New\nrule: '{rule}'\nvariables: {{brand_new: true}}\n");
        changed.push(("groups/new.yaml".to_owned(), new));
        let head = validate(&sources(&changed), Search::Decisive);
        let paths = [&base, &head].map(|it| MentionedPaths::of(it.estate.as_ref().unwrap()));
        let paths = paths[0].union(&paths[1]);
        let keep = |(name, fact, trusted): &(String, String, String)| {
            let (fact, trusted) = paths.keep_text(fact, trusted).unwrap();
            Node { name: name.clone(), fact, trusted }
        };
        let restricted: Vec<Node> = match facts {
            Facts::Restricted => texts.par_iter().map(keep).collect(),
            Facts::Whole => Vec::new(),
        };
        let comparison = StateComparison::new(side(&base), side(&head));
        let (began, computed) = (Instant::now(), cpu());
        let compare = |node: &Node| (node.name.clone(), comparison.node(node));
        let compared: Vec<(String, NodeComparison)> = match facts {
            Facts::Restricted => restricted.par_iter().map(compare).collect(),
            Facts::Whole => texts.par_iter().map(|it| compare(&keep(it))).collect(),
        };
        let compared_after = (began.elapsed(), cpu().saturating_sub(computed));
        let mut survey = Survey::default();
        survey.extend(compared);
        let impact = Impact::gather(comparison.groups().to_vec(), Vec::new(), survey).unwrap();
        println!(
            "| {NODES} stored nodes, {facts:?} facts, of which {what} change: {} | {:.3} s ({:.1} µs of a processor a node), with the report {:.3} s | 1 s |",
            impact.changed(),
            compared_after.0.as_secs_f64(),
            compared_after.1.as_secs_f64() * 1e6 / NODES as f64,
            began.elapsed().as_secs_f64()
        );
    }
}

/// Returns the time that the program has computed; the kernel counts hundredths of a second.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// What a comparison reads of a node.
#[derive(Clone, Copy, Debug)]
enum Facts {
    /// What rules mention.
    Restricted,
    /// The text of all facts.
    Whole,
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

/// How rules look: what it is, and the rule of a group by its number.
type Mix = (&'static str, fn(usize) -> String);

/// The mix of all others.
const ALL: &str = "all of these";

const MIXES: &[Mix] = &[
    ("prefixes of names", prefix),
    ("one fact", fact),
    ("whole names", whole),
    ("pinned lists", pinned),
    ("alternatives", alternatives),
    ("ranges and `not`", ranges),
    (ALL, |number| match number % 6 {
        0 => prefix(number),
        1 => fact(number),
        2 => whole(number),
        3 => pinned(number),
        4 => alternatives(number),
        _ => ranges(number),
    }),
    ("any two meet", |number| format!("rule: flags.f{number} = 1")),
];

fn prefix(number: usize) -> String {
    format!("rule: name ~ \"^app{number:04}-\"")
}

fn fact(number: usize) -> String {
    format!("rule: trusted.extensions.pp_role = r{number}")
}

fn whole(number: usize) -> String {
    format!(r#"rule: 'name ~ "^(web|db|cache)-\d+\.(eu|us)\.s{number:04}\.example\.com$"'"#)
}

fn pinned(number: usize) -> String {
    let names: Vec<String> = (0..20).map(|it| format!("h{number}-{it}.example.net")).collect();
    format!("pinned: [{}]", names.join(", "))
}

fn alternatives(number: usize) -> String {
    format!(
        r#"rule: '(name ~ "^alt{number:04}" or trusted.extensions.pp_role = alt{number}) and (site = s{0} or name ~ "-s{0}$")'"#,
        number % 7
    )
}

fn ranges(number: usize) -> String {
    let next = number + 1;
    format!("rule: load.number >= {number} and load.number < {next} and not (name ~ \"^test\")")
}

/// Every pair of groups that all set the same differently, a fifth of them below others, and of which the last two
/// conflict.
fn mixed(count: usize, (what, rule): &Mix, must_seconds: u32) {
    let mut text = String::from("name: All Nodes\nvariables: {value: root}\n");
    for number in 0..count {
        let parent =
            if number % 5 == 4 { format!("parent: G{}\n", number - 1) } else { String::new() };
        let rule = rule(if number % 5 == 4 { number - 1 } else { number });
        let value = if number % 10 == 3 {
            String::new()
        } else {
            format!("variables: {{value: {number}}}\n")
        };
        write!(text, "---\nname: G{number}\n{parent}{rule}\n{value}").unwrap();
    }
    write!(text, "---\nname: Last\nvariables: {{value: x}}\n{}\n", rule(count - 2)).unwrap();
    let chunks: Vec<&str> = text.split("---\n").collect();
    let files: Vec<estates::File> = chunks
        .chunks(500)
        .enumerate()
        .map(|(at, it)| (format!("groups/{at}.yaml"), it.join("---\n")))
        .collect();
    let sources = sources(&files);
    let checked = validate(&sources, Search::Decisive);
    let estate = checked.estate.as_ref().unwrap();
    let began = Instant::now();
    let found = clade::internals::classification::overlaps(
        estate,
        &Evidence::default(),
        &|_, _| false,
        Solver::default(),
    );
    let took = began.elapsed();
    let pairs: usize = found.alarms.iter().map(|it| it.pairs.len()).sum();
    let ended = found.ended_at.map_or("to the end", |_| "**ended early**");
    println!(
        "| {count} groups that differ, {what}: {pairs} pairs, {} undecided, {} steps, {ended} | {:.3} s | {must_seconds} s |",
        found.undecided,
        found.steps,
        took.as_secs_f64()
    );
}
