//! How many findings there are, by kind and by file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use crate::cli::output::DataFormat;
use crate::cli::page::{Cell, Page};
use crate::diagnostic::{Format, Kind, Report, Severity, ShownFindings, visible};

/// Counts of errors and warnings.
#[derive(Clone, Copy, Default)]
struct Tally {
    errors: usize,
    warnings: usize,
}

impl Tally {
    fn add(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
    }

    fn all(self) -> usize {
        self.errors + self.warnings
    }
}

/// Writes the counts, most first; people are shown as many files as findings of a kind.
pub(super) fn write(report: &Report, format: Format, shown: ShownFindings, page: Page) -> String {
    let mut of_kinds: BTreeMap<Kind, Tally> = BTreeMap::new();
    let mut of_files: BTreeMap<&str, Tally> = BTreeMap::new();
    for found in &report.diagnostics {
        of_kinds.entry(found.kind).or_default().add(found.severity);
        of_files.entry(found.place.file.as_ref()).or_default().add(found.severity);
    }
    let kinds = most_first(of_kinds.into_iter().map(|(kind, it)| (kind.as_str(), it)).collect());
    let files = most_first(of_files.into_iter().collect());
    if format == Format::Json {
        return json(report, &kinds, &files);
    }
    let most = match shown {
        ShownFindings::All => usize::MAX,
        ShownFindings::FirstOfEachKind(most) => most,
    };
    let mut text = rows("kind", &kinds, page);
    text.push('\n');
    text.push_str(&rows("file", files.get(..most).unwrap_or(&files), page));
    if let Some(more) = files.len().checked_sub(most).filter(|it| *it > 0) {
        let _infallible = writeln!(text, "{more} more files are not shown: `--all` shows them");
    }
    text.push('\n');
    text.push_str(&report.summary());
    text
}

fn most_first(mut counts: Vec<(&str, Tally)>) -> Vec<(&str, Tally)> {
    // The names are in order, which stays among equal counts.
    counts.sort_by_key(|(_, it)| std::cmp::Reverse(it.all()));
    counts
}

fn rows(title: &str, counts: &[(&str, Tally)], page: Page) -> String {
    let row = |(name, it): &(&str, Tally)| {
        let numbers = [("findings", it.all()), ("errors", it.errors), ("warnings", it.warnings)];
        let [all, errors, warnings] =
            numbers.map(|(title, number)| format!("{number:>width$}", width = title.len()));
        [all, errors, warnings, visible(name).into_owned()].map(Cell::from)
    };
    let rows: Vec<_> = counts.iter().map(row).collect();
    page.table(["findings", "errors", "warnings", title], &rows)
}

fn json(report: &Report, kinds: &[(&str, Tally)], files: &[(&str, Tally)]) -> String {
    let counts = |name: &str, counts: &[(&str, Tally)]| -> Vec<serde_json::Value> {
        let count = |(value, it): &(&str, Tally)| json!({name: value, "findings": it.all(), "error": it.errors, "warning": it.warnings});
        counts.iter().map(count).collect()
    };
    DataFormat::Json.write(&json!({
        "commit": report.commit,
        "valid": report.is_valid(),
        "groups": report.groups,
        "summary": {
            "error": report.count(Severity::Error),
            "warning": report.count(Severity::Warning),
        },
        "by_kind": counts("kind", kinds),
        "by_file": counts("file", files),
    }))
}
