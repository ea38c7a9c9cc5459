//! A difference as a comment on a pull request: short, the largest changes first, details folded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::human::{INTERPOLATION, because, label, names_apart, nodes};
use super::report::DiffReport;
use crate::diagnostic::visible_up_to;
use crate::impact::{Causes, CausingChange, ChangeRef, Difference, ReportEntry};
use crate::wording::counted;

/// Forges take comments of 65,536 characters; some room is left for what a pipeline adds.
const LONGEST: usize = 60_000;

/// A value longer than this is cut.
const VALUE: usize = 120;

/// A name longer than this is cut.
const NAME: usize = 400;

/// The first line, by which a pipeline finds its comment to update it.
const MARKER: &str = "<!-- clade-diff -->";

/// Writes the comment.
pub(super) fn write(report: &DiffReport<'_>) -> String {
    let impact = report.impact;
    let mut text = format!("{MARKER}\n### Classification: ");
    let mut headline = match impact.changed() {
        0 => format!("no node of {} changes", impact.nodes),
        changed => format!("{changed} of {} change", counted(impact.nodes, "node")),
    };
    // A string takes whatever is written to it.
    if impact.counts.errors_staying > 0 {
        write!(headline, ", {} not known", impact.counts.errors_staying).ok();
    }
    writeln!(text, "{headline}\n").ok();
    for paragraph in unclassified(report) {
        writeln!(text, "{paragraph}\n").ok();
    }
    write_summary(&mut text, report);
    let footer =
        format!("\n<sub>{} → {}</sub>\n", escape(&report.base.name), escape(&report.head.name));
    let mut cut = 0;
    for entry in &impact.entries {
        let room = LONGEST.checked_sub(text.len() + footer.len()).filter(|_| cut == 0);
        match room.and_then(|it| details(entry, report, it)) {
            Some(details) => text.push_str(&details),
            None => cut += entry.nodes.len(),
        }
    }
    if cut > 0 {
        writeln!(
            text,
            "\nThe details of {} are cut; `clade diff` shows them all.",
            counted(cut, "more node")
        )
        .ok();
    }
    text + &footer
}

/// Says which nodes have no classification, or could not be compared; a paragraph each.
fn unclassified(report: &DiffReport<'_>) -> Vec<String> {
    let (impact, counts) = (report.impact, report.impact.counts);
    let nodes = |number| counted(number, "node");
    let mut paragraphs = Vec::new();
    let mut add = |number: usize, paragraph: &dyn Fn() -> String| {
        if number > 0 {
            paragraphs.push(paragraph());
        }
    };
    add(counts.conflicts_appearing, &|| {
        let nodes = nodes(counts.conflicts_appearing);
        format!("> [!CAUTION]\n> Conflicts appear on {nodes}: the agents there will fail.")
    });
    add(counts.errors_appearing, &|| {
        let nodes = nodes(counts.errors_appearing);
        format!(
            "> [!CAUTION]\n> Rules can no longer be evaluated on {nodes}: the agents there will fail."
        )
    });
    add(counts.conflicts_disappearing, &|| {
        format!("Conflicts disappear on {}.", nodes(counts.conflicts_disappearing))
    });
    add(counts.errors_disappearing, &|| {
        format!("Rules can be evaluated again on {}.", nodes(counts.errors_disappearing))
    });
    add(counts.errors_staying, &|| {
        let nodes = nodes(counts.errors_staying);
        format!(
            "> [!WARNING]\n> Rules cannot be evaluated on {nodes}, before and after: whether the change affects them is not known."
        )
    });
    add(counts.conflicts_staying + counts.errors_staying, &|| {
        let (before, after) = (counts.unclassified_before, counts.unclassified_after);
        let verb = if after == 1 { "has" } else { "have" };
        let (all, conflicts) = (nodes(impact.nodes), nodes(counts.conflicts_staying));
        format!(
            "{after} of {all} {verb} no classification (before: {before}); {conflicts} in conflict before and after."
        )
    });
    add(report.unreadable.len(), &|| {
        let files = counted(report.unreadable.len(), "facts file");
        format!("> [!WARNING]\n> {files} could not be read, so those nodes are missing here.")
    });
    paragraphs
}

/// Writes a row for each group that changed.
fn write_summary(text: &mut String, report: &DiffReport<'_>) {
    const ROWS: usize = 20;
    let impact = report.impact;
    let mut caused: BTreeMap<ChangeRef, usize> = BTreeMap::new();
    for entry in &impact.entries {
        let causes = entry.changes.iter().flat_map(|it| it.causes.changes());
        for cause in causes.collect::<BTreeSet<_>>() {
            *caused.entry(*cause).or_default() += entry.nodes.len();
        }
    }
    let moved = |change: ChangeRef| caused.get(&change).copied().unwrap_or(0);
    let groups = (0..impact.groups.len()).map(ChangeRef::Group);
    let all = groups.chain((0..impact.node_files.len()).map(ChangeRef::NodeFile));
    let setting = Some(ChangeRef::Interpolation).filter(|it| moved(*it) > 0);
    let mut rows: Vec<(usize, ChangeRef)> = all.chain(setting).map(|it| (moved(it), it)).collect();
    if rows.is_empty() {
        text.push_str("No group differs.\n");
        return;
    }
    text.push_str("| group | change | nodes |\n|---|---|--:|\n");
    rows.sort_by_key(|(moved, change)| (std::cmp::Reverse(*moved), *change));
    for (moved, change) in rows.iter().take(ROWS) {
        let (name, how, file, line) = match impact.cause(*change) {
            Some(CausingChange::Group(it)) => (it.name.clone(), &it.how, &it.file, it.line),
            Some(CausingChange::NodeFile(it)) => {
                (format!("node {}", it.node), &it.how, &it.file, it.line)
            }
            Some(CausingChange::Interpolation) => {
                writeln!(text, "| | {} | {moved} |", escape(INTERPOLATION)).ok();
                continue;
            }
            None => continue,
        };
        let place = match (file, line) {
            (Some(file), Some(line)) => format!(" ({})", code(&format!("{file}:{line}"))),
            _ => String::new(),
        };
        let words = escape(&how.in_words());
        writeln!(text, "| {} | {words}{place} | {moved} |", escape(&name)).ok();
    }
    if let Some(more) = rows.len().checked_sub(ROWS).filter(|it| *it > 0) {
        writeln!(text, "| … and {more} more groups | | |").ok();
    }
}

/// Writes what some nodes get differently; none if that is longer than there is room.
fn details(entry: &ReportEntry, report: &DiffReport<'_>, room: usize) -> Option<String> {
    let mut text = format!("\n<details><summary><b>{}</b>", escape(&nodes(entry)));
    let headline = headline(entry);
    write!(text, "{headline}</summary>\n\n").ok();
    text.push_str("| | before | after | because |\n|---|---|---|---|\n");
    for change in &entry.changes {
        let (what, old, new) = row(&change.what);
        let because = because(change, report.impact);
        let lines: Vec<String> = because.lines().iter().map(|it| escape(it)).collect();
        let together = match &change.causes {
            Causes::Together(_) => "only together:<br>",
            Causes::Each(_) | Causes::Undecided => "",
        };
        let lines = lines.join("<br>");
        writeln!(text, "| {what} | {old} | {new} | {together}{lines} |").ok();
        if text.len() > room {
            return None;
        }
    }
    text.push_str("\n</details>\n");
    Some(text).filter(|it| it.len() <= room)
}

/// Says in the folded line what weighs most.
fn headline(entry: &ReportEntry) -> String {
    let changes = &entry.changes;
    let conflict =
        changes.iter().any(|it| matches!(&it.what, Difference::Conflict(it) if it.new.is_some()));
    let error =
        changes.iter().any(|it| matches!(&it.what, Difference::Error(it) if it.new.is_some()));
    let environment = changes.iter().find_map(|it| match &it.what {
        Difference::Environment { old, new } => Some(format!("environment {old} → {new}")),
        _ => None,
    });
    let classes = changes
        .iter()
        .filter(|it| matches!(it.what, Difference::ClassAdded(_) | Difference::ClassRemoved(_)))
        .count();
    let values = changes.iter().filter(|it| matches!(it.what, Difference::Value(_))).count();
    let mut parts = Vec::new();
    if conflict {
        parts.push("CONFLICT".to_owned());
    }
    if error {
        parts.push("ERROR".to_owned());
    }
    parts.extend(environment.map(|it| escape(&it)));
    if classes > 0 {
        parts.push(counted(classes, "class"));
    }
    if values > 0 {
        parts.push(counted(values, "value"));
    }
    if parts.is_empty() { String::new() } else { format!(" · {}", parts.join(", ")) }
}

/// Writes text as code in a cell of a table: between more backticks than it has in a row.
fn code(text: &str) -> String {
    let shown = visible_up_to(text, NAME).replace('|', "\\|");
    let longest = shown.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    if longest == 0 {
        return format!("`{shown}`");
    }
    // A blank at both ends is not a part of it.
    let fence = "`".repeat(longest + 1);
    format!("{fence} {shown} {fence}")
}

fn row(what: &Difference) -> (String, String, String) {
    let value = |value: Option<&serde_json::Value>| match value {
        None => "*not set*".to_owned(),
        Some(value) => {
            let whole = value.to_string();
            let mut shown: String = whole.chars().take(VALUE).collect();
            if shown.len() < whole.len() {
                shown.push('…');
            }
            code(&shown)
        }
    };
    let none = String::new;
    match what {
        Difference::Entered(group) => {
            ("group".to_owned(), none(), format!("**+** {}", escape(&group.name)))
        }
        Difference::Left(group) => {
            ("group".to_owned(), format!("**−** {}", escape(&group.name)), none())
        }
        Difference::Renamed { from, to } => {
            let [from, to] = names_apart(from, to);
            ("group".to_owned(), escape(&from), escape(&to))
        }
        Difference::Conflict(it) => {
            let shown = |side: &Option<String>| {
                side.as_ref().map_or_else(none, |it| format!("**conflict**: {}", escape(it)))
            };
            ("conflict".to_owned(), shown(&it.old), shown(&it.new))
        }
        Difference::Error(it) => {
            let shown = |side: &Option<String>| {
                side.as_ref().map_or_else(none, |it| format!("**error**: {}", escape(it)))
            };
            ("error".to_owned(), shown(&it.old), shown(&it.new))
        }
        Difference::Environment { old, new } => ("environment".to_owned(), code(old), code(new)),
        Difference::ClassAdded(class) => {
            ("class".to_owned(), none(), format!("**+** {}", code(class)))
        }
        Difference::ClassRemoved(class) => {
            ("class".to_owned(), format!("**−** {}", code(class)), none())
        }
        Difference::Value(it) => {
            (code(&label(it)), value(it.old.as_deref()), value(it.new.as_deref()))
        }
    }
}

/// Keeps text from being taken for markup.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for char in visible_up_to(text, NAME).chars() {
        match char {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            // A name must not mention a user.
            '@' => escaped.push_str("&#64;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => {
                escaped.push('\\');
                escaped.push(char);
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::code;
    use crate::table::each_row;

    #[test]
    fn code_is_shown_as_it_is() {
        let rows = [
            ("a", "`a`"),
            ("a'b''c", "`a'b''c`"),
            ("a`b``c", "``` a`b``c ```"),
            ("a|b", "`a\\|b`"),
            ("`", "`` ` ``"),
        ];
        each_row(rows, |(text, expected)| assert_eq!(code(text), expected));
    }
}
