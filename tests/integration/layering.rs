//! Which module may use which, and that no files use each other in a circle.
//!
//! Both are checked on files: a name counts for the file that defines it, through whatever
//! `pub use` it came. A module that only declares and re-exports what its children define uses none of
//! them; one that defines what a child imports, and calls that child, stands in a circle with it.

mod graph;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use graph::Graph;

/// Module -> the modules it may name, lower layers first; `*` stands for all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("byte_set", &[]),
    ("document", &["byte_set"]),
    ("puppet", &[]),
    ("wording", &[]),
    ("diagnostic", &["document", "wording"]),
    ("age", &[]),
    ("json_schema", &["document", "diagnostic", "wording"]),
    ("json", &[]),
    ("java_regex", &[]),
    ("model", &["java_regex"]),
    ("rule", &["java_regex", "model"]),
    ("hierarchy", &["model", "rule"]),
    ("classification", &["model", "rule", "hierarchy", "wording"]),
    ("mentioned", &["json", "model", "rule", "hierarchy", "classification"]),
    ("masking", &["json", "model", "mentioned"]),
    (
        "validation",
        &[
            "byte_set",
            "model",
            "rule",
            "java_regex",
            "hierarchy",
            "classification",
            "document",
            "diagnostic",
            "json_schema",
            "puppet",
            "wording",
        ],
    ),
    (
        "snapshot",
        &[
            "json",
            "model",
            "rule",
            "java_regex",
            "hierarchy",
            "mentioned",
            "classification",
            "diagnostic",
        ],
    ),
    ("answer", &["model", "hierarchy", "classification", "diagnostic"]),
    (
        "impact",
        &[
            "model",
            "rule",
            "hierarchy",
            "classification",
            "masking",
            "snapshot",
            "diagnostic",
            "document",
        ],
    ),
    (
        "changeset",
        &[
            "model",
            "rule",
            "hierarchy",
            "document",
            "diagnostic",
            "validation",
            "puppet",
            "wording",
        ],
    ),
    ("history", &["model", "hierarchy", "validation"]),
    ("blame", &["answer", "model", "rule", "validation", "diagnostic", "document"]),
    ("config", &["document", "diagnostic"]),
    ("expected_panic", &[]),
    ("telemetry", &["diagnostic", "expected_panic"]),
    ("process", &[]),
    ("priority", &[]),
    ("git", &["model", "process", "config", "expected_panic"]),
    ("forge", &["model", "config"]),
    ("facts", &["model", "document", "json"]),
    ("client", &["model", "diagnostic", "facts", "config"]),
    ("puppetdb", &["model", "facts", "client"]),
    ("puppet_server", &["model", "puppet", "client", "config"]),
    (
        "store",
        &[
            "answer",
            "classification",
            "config",
            "facts",
            "hierarchy",
            "masking",
            "mentioned",
            "model",
            "priority",
            "snapshot",
            "telemetry",
        ],
    ),
    (
        "decision_log",
        &[
            "answer",
            "model",
            "hierarchy",
            "classification",
            "masking",
            "mentioned",
            "snapshot",
            "telemetry",
        ],
    ),
    (
        "reconcile",
        &[
            "answer",
            "blame",
            "classification",
            "changeset",
            "history",
            "model",
            "priority",
            "document",
            "forge",
            "git",
            "hierarchy",
            "process",
            "validation",
            "snapshot",
            "diagnostic",
            "telemetry",
            "config",
            "wording",
        ],
    ),
    ("overview", &["model", "reconcile", "snapshot", "store", "telemetry"]),
    (
        "http",
        &[
            "answer",
            "overview",
            "changeset",
            "history",
            "model",
            "priority",
            "rule",
            "hierarchy",
            "classification",
            "decision_log",
            "masking",
            "mentioned",
            "snapshot",
            "impact",
            "diagnostic",
            "document",
            "json_schema",
            "validation",
            "reconcile",
            "facts",
            "puppet",
            "puppet_server",
            "store",
            "git",
            "forge",
            "telemetry",
            "config",
            "document",
        ],
    ),
    (
        "console",
        &[
            "age",
            "answer",
            "diagnostic",
            "forge",
            "hierarchy",
            "http",
            "model",
            "reconcile",
            "rule",
            "snapshot",
            "store",
            "wording",
        ],
    ),
    ("cli", &["*"]),
    ("internals", &["*"]),
];

/// What a pure module never names.
const IMPURE: &[&str] = &[
    "git2::",
    "axum::",
    "tokio::",
    "hyper::",
    "clap::",
    "ureq::",
    "tracing::",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
];

const PURE: &[&str] = &[
    "age",
    "answer",
    "blame",
    "byte_set",
    "json",
    "java_regex",
    "masking",
    "mentioned",
    "changeset",
    "history",
    "impact",
    "document",
    "puppet",
    "diagnostic",
    "rule",
    "model",
    "hierarchy",
    "classification",
    "validation",
    "snapshot",
    "wording",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The files of this crate.
static GRAPH: LazyLock<Graph> = LazyLock::new(|| Graph::of(&source()));

/// Returns the module at the root of the crate that a file belongs to.
fn module_of(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap()
}

#[test]
fn modules_use_only_what_they_may() {
    let mut wrong = Vec::new();
    for (file, targets) in &GRAPH.edges {
        let module = module_of(file);
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == module) else { continue };
        for (target, names) in targets {
            let used = module_of(target);
            if used != module && !allowed.contains(&"*") && !allowed.contains(&used) {
                wrong.push(format!("{file} uses {names:?} of {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_table_has_lower_layers_first() {
    for (at, (module, allowed)) in ALLOWED.iter().enumerate() {
        let lower: BTreeSet<&str> = ALLOWED[..at].iter().map(|(name, _)| *name).collect();
        let upper: Vec<_> =
            allowed.iter().filter(|it| **it != "*" && !lower.contains(*it)).collect();
        assert!(upper.is_empty(), "{module} uses {upper:?}, which stand above it");
    }
}

#[test]
fn files_do_not_use_each_other_in_a_circle() {
    let circles: Vec<_> = GRAPH.circles().iter().map(|it| GRAPH.describe(it)).collect();
    assert!(circles.is_empty(), "{} circles of files:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn the_graph_follows_names_to_the_files_that_define_them() {
    let directory = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod x; mod y; pub use x::X; pub use y::*; struct Own; fn f() { y::g() }"),
        ("a/x.rs", "use super::Own; pub struct X; impl X { fn of(_: crate::b::B) {} }"),
        ("a/y.rs", "pub struct Y; pub fn g() { println!(\"{}\", super::x::h()) }"),
        (
            "b.rs",
            "use crate::a::{X, Y as Z}; use serde::X as W; pub struct B; #[cfg(test)] mod tests;",
        ),
    ] {
        let path = directory.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let graph = Graph::of(directory.path());
    let edges: Vec<String> = graph
        .edges
        .iter()
        .flat_map(|(from, targets)| targets.keys().map(move |to| format!("{from} -> {to}")))
        .collect();
    assert_eq!(
        edges,
        [
            "a.rs -> a/y.rs",
            "a/x.rs -> a.rs",
            "a/x.rs -> b.rs",
            "a/y.rs -> a/x.rs",
            "b.rs -> a/x.rs",
            "b.rs -> a/y.rs",
        ]
    );
    let circles: Vec<Vec<&str>> =
        graph.circles().into_iter().map(|it| it.into_iter().collect()).collect();
    assert_eq!(circles, [["a.rs", "a/x.rs", "a/y.rs", "b.rs"]]);
}

/// Returns the code of a file: without comments, without its inline tests.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn pure_modules_do_no_io() {
    let mut wrong = Vec::new();
    for file in GRAPH.edges.keys().filter(|it| PURE.contains(&module_of(it))) {
        let code = code(&std::fs::read_to_string(source().join(file)).unwrap());
        let named = IMPURE.iter().filter(|it| code.contains(**it));
        wrong.extend(named.map(|it| format!("{file} names {it}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn one_file_has_work_that_blocks_run_for_requests() {
    let names_it = |file: &&String| {
        let text = std::fs::read_to_string(source().join(file)).unwrap();
        code(&text).contains("spawn_blocking")
    };
    // The start and the end of the daemon have no requests.
    let files = GRAPH.edges.keys().filter(|it| module_of(it) != "cli");
    assert_eq!(files.filter(names_it).collect::<Vec<_>>(), ["http/blocking.rs"]);
}

/// Returns the extractors of axum for the path of a request that a file names.
fn path_extractors(module: &source::Module) -> Vec<String> {
    let extractors = ["Path", "RawPathParams", "NestedPath", "MatchedPath", "OriginalUri"];
    let imported = module.imports.iter().map(|it| &it.path);
    let named = imported.chain(&module.paths).filter_map(|path| match path.as_slice() {
        [axum, extract, name] if axum == "axum" && extract == "extract" => Some(name),
        _ => None,
    });
    named.filter(|it| extractors.contains(&it.as_str())).cloned().collect()
}

/// The router of axum does not see their requests: its extractors would find no parameters.
#[test]
fn handlers_of_the_api_read_no_parameters_of_axum() {
    let modules = source::modules(&source());
    let naming: BTreeSet<&str> = modules
        .values()
        .filter(|it| !path_extractors(it).is_empty())
        .map(|it| module_of(&it.file))
        .collect();
    assert_eq!(naming, BTreeSet::from(["console"]));
}

#[test]
fn every_module_is_in_the_table() {
    let modules = source::modules(&source());
    let listed: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        modules[&Vec::new()].children.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        listed
    );
}
