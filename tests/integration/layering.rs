//! Which module may use which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Module -> the modules it may name; `*` stands for all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("document", &[]),
    ("puppet", &[]),
    ("diagnostic", &["document"]),
    ("java_regex", &[]),
    ("model", &["java_regex"]),
    ("rule", &["java_regex", "model"]),
    ("hierarchy", &["model", "rule"]),
    ("classification", &["model", "rule", "hierarchy"]),
    (
        "validation",
        &[
            "model",
            "rule",
            "java_regex",
            "hierarchy",
            "classification",
            "document",
            "diagnostic",
            "puppet",
        ],
    ),
    ("snapshot", &["model", "rule", "java_regex", "hierarchy", "classification", "diagnostic"]),
    (
        "impact",
        &["model", "rule", "hierarchy", "classification", "snapshot", "diagnostic", "document"],
    ),
    (
        "changeset",
        &["model", "rule", "hierarchy", "document", "diagnostic", "validation", "puppet"],
    ),
    ("history", &["model", "hierarchy", "validation"]),
    ("process", &[]),
    ("git", &["model", "process", "config"]),
    ("forge", &["model", "config"]),
    ("facts", &["model", "document"]),
    ("config", &["document", "diagnostic"]),
    ("telemetry", &["diagnostic"]),
    ("store", &["model", "telemetry"]),
    (
        "reconcile",
        &[
            "changeset",
            "history",
            "model",
            "document",
            "forge",
            "git",
            "process",
            "validation",
            "snapshot",
            "diagnostic",
            "telemetry",
            "config",
        ],
    ),
    (
        "http",
        &[
            "changeset",
            "history",
            "model",
            "rule",
            "hierarchy",
            "classification",
            "snapshot",
            "impact",
            "diagnostic",
            "validation",
            "reconcile",
            "facts",
            "store",
            "git",
            "telemetry",
            "config",
            "document",
        ],
    ),
    ("cli", &["*"]),
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
    "java_regex",
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
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns every source file with the module it belongs to.
fn files() -> Vec<(String, PathBuf)> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|it| it == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&source(), &mut found);
    found.sort();
    let module = |path: &Path| {
        let inside = path.strip_prefix(source()).unwrap().with_extension("");
        let parts: Vec<&str> = inside.iter().map(|part| part.to_str().unwrap()).collect();
        match parts.as_slice() {
            [first, ..] => (*first).to_owned(),
            [] => unreachable!(),
        }
    };
    found
        .into_iter()
        .map(|path| (module(&path), path))
        .filter(|(module, _)| module != "lib" && module != "main")
        .collect()
}

/// Returns the code of a file: without comments, without its inline tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn modules_use_only_what_they_may() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut wrong = Vec::new();
    for (module, path) in files() {
        if path.ends_with("tests.rs") || path.to_string_lossy().contains("/tests/") {
            continue;
        }
        let may = allowed[module.as_str()];
        for part in code(&path).split("crate::").skip(1) {
            let word = |text: &str| -> String {
                text.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect()
            };
            let first = word(part);
            if first != module && !may.contains(&"*") && !may.contains(&first.as_str()) {
                wrong.push(format!("{} uses {first}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn pure_modules_do_no_io() {
    let mut wrong = Vec::new();
    for (module, path) in files() {
        if PURE.iter().any(|pure| module.split("::").next() == Some(pure)) {
            let code = code(&path);
            let named = IMPURE.iter().filter(|it| code.contains(**it));
            wrong.extend(named.map(|it| format!("{} names {it}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_module_is_in_the_table() {
    let text = std::fs::read_to_string(source().join("lib.rs")).unwrap();
    let listed: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert!(!listed.is_empty());
    for module in listed {
        assert!(ALLOWED.iter().any(|(name, _)| *name == module), "{module} is not in the table");
    }
}
