//! The language of the docs, the source and the tests: words that do not belong in technical prose.
//!
//! `docs/glossary.md` says which word stands for which thing, CONTRIBUTING.md how a sentence is written here.

mod functions;
mod types;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::program::root;
use crate::table::each_row;

/// What is read: files, and directories with everything below them.
const READ: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Cargo.toml",
    "Dockerfile",
    "justfile",
    ".ci",
    "benches",
    "charts",
    "docs",
    "examples",
    "fuzz",
    "packaging",
    "schemas",
    "src",
    "tests",
];

/// Directories of what tools write.
const WRITTEN_BY_TOOLS: &[&str] = &["target", "corpus", "artifacts", "node_modules"];

/// What stands between two words: blanks, also with the start of a comment's next line, or the `_` of a name.
const GAP: &str = r"[\s/#*!|_]+";

/// A word with what to write for it.
struct Word {
    pattern: Regex,
    instead: &'static str,
}

/// Returns the words that have no place here. `_` ends a word, so that the names of functions count.
fn words() -> Vec<Word> {
    let prose = [
        (
            "nobody|somebody|anybody|whoever",
            "name who: the client, an operator, an unauthenticated request",
        ),
        ("anew", "again, or say what happens: `is recompiled`"),
        ("wherefore", "therefore"),
        ("looked at", "fetched, read, checked"),
        ("found wanting", "rejected"),
        ("hand(?:s|ed)? out", "returns"),
        ("hand(?:s|ed)? on", "passes"),
        ("minds", "rejects, checks"),
        ("cannot be had", "cannot be fetched"),
        ("(?:is|are|was|were|be) let in", "accepted, authenticated"),
        ("doors?|knock(?:s|ed|ing)?", "an entry point, a request"),
        ("heard|talk(?:s|ed|ing)?", "say what is sent or received"),
        ("in no time", "say how long it takes"),
    ];
    let constants = ("PATIENCE", "TIMEOUT");
    let marks = ("TODO|FIXME|XXX", "do it, or open an issue");
    let word = |prefix: &str, (pattern, instead): (&str, &'static str)| Word {
        pattern: Regex::new(&format!(
            "{prefix}(?:\\b|_)(?:{})(?:\\b|_)",
            pattern.replace(' ', GAP)
        ))
        .unwrap(),
        instead,
    };
    prose
        .into_iter()
        .map(|it| word("(?i)", it))
        .chain([constants, marks].map(|it| word("", it)))
        .collect()
}

/// "X is no Y" for "X is not a Y". "There is no Y", "is no longer" and "is no more" are plain English.
struct IsNo(Regex);

impl IsNo {
    fn new() -> Self {
        let before = format!("(?:(?P<there>there{GAP})|\\b|_)");
        let after = r"(?:\b|_)(?P<longer>[\s/#*!|_]*(?:longer|more)\b)?";
        let pattern = format!("(?i){before}is{GAP}no{after}");
        Self(Regex::new(&pattern).unwrap())
    }

    fn positions<'a>(&'a self, text: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.0
            .captures_iter(text)
            .filter(|it| it.name("there").is_none() && it.name("longer").is_none())
            .filter_map(|it| it.get(0).map(|found| found.start()))
    }
}

fn files() -> Vec<PathBuf> {
    fn walk(path: PathBuf, found: &mut Vec<PathBuf>) {
        if !path.is_dir() {
            found.push(path);
            return;
        }
        if path.file_name().is_some_and(|it| WRITTEN_BY_TOOLS.iter().any(|name| it == *name)) {
            return;
        }
        for entry in std::fs::read_dir(path).unwrap() {
            walk(entry.unwrap().path(), found);
        }
    }
    let mut found = Vec::new();
    for name in READ {
        walk(root().join(name), &mut found);
    }
    found.sort();
    found
}

/// Returns the source files of the library with their paths from the root.
fn sources() -> Vec<(String, String)> {
    let read = |file: PathBuf| {
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        (path, std::fs::read_to_string(file).unwrap())
    };
    files().into_iter().filter(|it| it.starts_with(root().join("src"))).map(read).collect()
}

/// Returns the number and the text of the line at a position.
fn line_at(text: &str, position: usize) -> (usize, &str) {
    let number = text[..position].matches('\n').count();
    (number + 1, text.lines().nth(number).unwrap_or_default().trim())
}

#[test]
fn the_prose_has_no_words_of_a_dialect() {
    let (words, is_no) = (words(), IsNo::new());
    let mut found = String::new();
    for file in files() {
        let path = file.strip_prefix(root()).unwrap();
        // This file has the words to name them.
        if path == Path::new("tests/integration/tidy.rs") {
            continue;
        }
        // What is not text (archives, images, databases) has no prose.
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let mut hits: Vec<(usize, &str)> = words
            .iter()
            .flat_map(|word| word.pattern.find_iter(&text).map(|it| (it.start(), word.instead)))
            .chain(is_no.positions(&text).map(|at| (at, "`is not a`")))
            .collect();
        hits.sort_unstable();
        for (position, instead) in hits {
            let start = text[position..].find(|it: char| it.is_alphanumeric()).unwrap_or(0);
            let (number, line) = line_at(&text, position + start);
            writeln!(found, "{}:{number}: {line}\n    {instead}", path.display()).unwrap();
        }
    }
    assert!(found.is_empty(), "words that have no place here (docs/glossary.md):\n{found}");
}

/// Where the version of Rust stands besides Cargo.toml, and what stands before it.
const RUST: &[(&str, &str)] = &[
    ("README.md", "Rust "),
    ("CONTRIBUTING.md", "Rust "),
    ("CONTRIBUTING.md", "requires rustc "),
    ("Dockerfile", "FROM rust:"),
    (".devcontainer/devcontainer.json", "rustup toolchain install "),
];

#[test]
fn every_file_names_the_rust_of_the_manifest() {
    each_row(RUST, |(file, before)| {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let named = format!("{before}{}", env!("CARGO_PKG_RUST_VERSION"));
        assert!(text.contains(&named), "expected `{named}` in {file}");
    });
}

#[test]
fn words_are_found_in_prose_and_in_names() {
    let words = words();
    let is_dialect = |text: &str| {
        words.iter().any(|it| it.pattern.is_match(text))
            || IsNo::new().positions(text).next().is_some()
    };
    for text in [
        "Nobody knows",
        "/// it is looked\n    /// at twice",
        "fn a_mirror_is_fetched_anew() {",
        "`x` is no setting",
        "fn what_is_no_rule_is_refused() {",
        "# TODO: later",
        "fn nobody_there() {",
        "it is handed\n    /// out",
        "const START_PATIENCE: Duration",
        "struct Heard {",
    ] {
        assert!(is_dialect(text), "{text}");
    }
    for text in [
        "There is no group `x`",
        "fn there_is_no_answer() {",
        "the key is no longer read",
        "mktemp -d /tmp/x.XXXXXX",
        "todo = \"warn\"",
        "reminds, renewed, nobodys",
    ] {
        assert!(!is_dialect(text), "{text}");
    }
}
