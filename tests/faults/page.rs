//! `docs/reference/faults.md`: the table of faults with their observations.
//!
//! A run writes only the rows of what it injected, so that a part of the campaign can be run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::Fault;
use crate::campaign::Outcome;
use crate::program::root;

const PAGE: &str = "docs/reference/faults.md";

/// People write the text above this line.
const MARK: &str =
    "<!-- From here on UPDATE_DOCS=1 cargo test --test faults -- --all writes the page. -->\n";

const NOT_YET: &str = "not injected yet";

/// Compares the page with the faults, or writes it; returns whether they agree.
pub(crate) fn check(areas: &[&[Fault]], results: &[(&Fault, Outcome)]) -> bool {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (before, table) = page.split_once(MARK).unwrap_or_else(|| panic!("{PAGE} has no mark"));
    let shown = rows(table);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let written = format!("{before}{MARK}{}", write(areas, results, &shown));
        std::fs::write(root().join(PAGE), written).unwrap();
        return true;
    }
    let names: BTreeSet<&str> = areas.iter().copied().flatten().map(|it| it.name).collect();
    let shown: BTreeSet<&str> = shown.keys().copied().collect();
    let run = "run UPDATE_DOCS=1 cargo test --test faults -- NAME";
    let missing: Vec<&&str> = names.difference(&shown).collect();
    if !missing.is_empty() {
        println!("{PAGE} lacks {missing:?}: {run}");
    }
    let gone: Vec<&&str> = shown.difference(&names).collect();
    if !gone.is_empty() {
        println!("{PAGE} names {gone:?}, which are gone: {run}");
    }
    names == shown
}

/// Returns the observations by the name of the fault.
fn rows(table: &str) -> BTreeMap<&str, &str> {
    let cells = table.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (_, seen) = rest.strip_suffix(" |")?.rsplit_once(" | ")?;
        Some((name, seen))
    });
    cells.collect()
}

fn write(
    areas: &[&[Fault]],
    results: &[(&Fault, Outcome)],
    shown: &BTreeMap<&str, &str>,
) -> String {
    let mut text = String::new();
    for faults in areas {
        let Some(first) = faults.first() else { continue };
        let area = first.name.split("::").next().unwrap_or_default().replace('-', " ");
        write!(text, "\n## {area}\n\n| fault | promised | injected | seen |\n|---|---|---|---|\n")
            .unwrap();
        for fault in *faults {
            let result = results.iter().find(|(it, _)| it.name == fault.name);
            let seen = match result {
                Some((_, Outcome::Held(seen))) => cell(seen),
                Some((_, Outcome::Failed(_))) => "**the promise was broken**".to_owned(),
                Some((_, Outcome::Skipped)) | None => {
                    shown.get(fault.name).copied().unwrap_or(NOT_YET).to_owned()
                }
            };
            let (promise, injection) = (cell(fault.promise), cell(fault.injection));
            writeln!(text, "| `{}` | {promise} | {injection} | {seen} |", fault.name).unwrap();
        }
    }
    text
}

/// Returns a text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}
