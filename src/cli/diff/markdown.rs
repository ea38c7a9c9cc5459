//! A difference as a comment on a pull request: short, the largest changes first, details folded.

use std::fmt::Write as _;

use super::human::{cause, label, nodes};
use super::{Said, count};
use crate::diagnostic::visible_up_to;
use crate::impact::{Difference, Entry};

/// Forges take comments of 65,536 characters; some room is left for what a pipeline adds.
const LONGEST: usize = 60_000;

/// A value longer than this is cut.
const VALUE: usize = 120;

/// A name longer than this is cut.
const NAME: usize = 400;

/// The first line, by which a pipeline finds its comment to update it.
const MARKER: &str = "<!-- clade-diff -->";

/// Writes the comment.
pub(super) fn write(said: &Said<'_>) -> String {
    let impact = said.impact;
    let (appearing, disappearing) = impact.conflicts();
    let mut text = format!("{MARKER}\n### Classification: ");
    let headline = match impact.changed() {
        0 => format!("no node of {} changes", impact.nodes),
        changed => format!("{changed} of {} change", count(impact.nodes, "node")),
    };
    // A string takes whatever is written to it.
    writeln!(text, "{headline}\n").ok();
    if appearing > 0 {
        writeln!(
            text,
            "> [!CAUTION]\n> Conflicts appear on {}: the agents there will fail.\n",
            count(appearing, "node")
        )
        .ok();
    }
    if disappearing > 0 {
        writeln!(text, "Conflicts disappear on {}.\n", count(disappearing, "node")).ok();
    }
    if !said.unreadable.is_empty() {
        writeln!(
            text,
            "> [!WARNING]\n> {} could not be read, so those nodes are missing here.\n",
            count(said.unreadable.len(), "facts file")
        )
        .ok();
    }
    write_summary(&mut text, said);
    let footer =
        format!("\n<sub>{} → {}</sub>\n", escape(&said.base.name), escape(&said.head.name));
    let mut cut = 0;
    for entry in &impact.entries {
        let details = details(entry, said);
        if cut > 0 || text.len() + details.len() + footer.len() > LONGEST {
            cut += entry.nodes.len();
            continue;
        }
        text.push_str(&details);
    }
    if cut > 0 {
        writeln!(
            text,
            "\nThe details of {} are cut; `clade diff` shows them all.",
            count(cut, "more node")
        )
        .ok();
    }
    text + &footer
}

/// Writes a row for each group that changed.
fn write_summary(text: &mut String, said: &Said<'_>) {
    const ROWS: usize = 20;
    let impact = said.impact;
    if impact.groups.is_empty() {
        text.push_str("No group differs.\n");
        return;
    }
    text.push_str("| group | change | nodes |\n|---|---|--:|\n");
    let moved = |index: usize| -> usize {
        let caused =
            |entry: &&Entry| entry.change.changes.iter().any(|it| it.causes.contains(&index));
        impact.entries.iter().filter(caused).map(|it| it.nodes.len()).sum()
    };
    let mut rows: Vec<(usize, usize)> =
        (0..impact.groups.len()).map(|index| (moved(index), index)).collect();
    rows.sort_by_key(|(moved, index)| (std::cmp::Reverse(*moved), *index));
    for (moved, index) in rows.iter().take(ROWS) {
        let Some(group) = impact.groups.get(*index) else { continue };
        let place = match (&group.file, group.line) {
            (Some(file), Some(line)) => format!(" ({})", code(&format!("{file}:{line}"))),
            _ => String::new(),
        };
        let words = escape(&group.how.in_words());
        writeln!(text, "| {} | {words}{place} | {moved} |", escape(&group.name)).ok();
    }
    if let Some(more) = rows.len().checked_sub(ROWS).filter(|it| *it > 0) {
        writeln!(text, "| … and {more} more groups | | |").ok();
    }
}

fn details(entry: &Entry, said: &Said<'_>) -> String {
    let mut text = format!("\n<details><summary><b>{}</b>", escape(&nodes(entry)));
    let headline = headline(entry);
    write!(text, "{headline}</summary>\n\n").ok();
    text.push_str("| | before | after | because |\n|---|---|---|---|\n");
    for change in &entry.change.changes {
        let (what, old, new) = row(&change.what);
        let causes = change.causes.iter().filter_map(|it| said.impact.groups.get(*it));
        let because: Vec<String> = causes.map(|it| escape(&cause(it))).collect();
        writeln!(text, "| {what} | {old} | {new} | {} |", because.join("<br>")).ok();
    }
    text.push_str("\n</details>\n");
    text
}

/// Says in the folded line what weighs most.
fn headline(entry: &Entry) -> String {
    let changes = &entry.change.changes;
    let conflict =
        changes.iter().any(|it| matches!(&it.what, Difference::Conflict(it) if it.new.is_some()));
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
    parts.extend(environment.map(|it| escape(&it)));
    if classes > 0 {
        parts.push(format!("{classes} class{}", if classes == 1 { "" } else { "es" }));
    }
    if values > 0 {
        parts.push(count(values, "value"));
    }
    if parts.is_empty() { String::new() } else { format!(" · {}", parts.join(", ")) }
}

/// Writes text as code in a cell of a table.
fn code(text: &str) -> String {
    format!("`{}`", visible_up_to(text, NAME).replace('`', "'").replace('|', "\\|"))
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
            ("group".to_owned(), escape(&from.name), escape(&to.name))
        }
        Difference::Conflict(it) => {
            let shown = |side: &Option<String>| {
                side.as_ref().map_or_else(none, |it| format!("**conflict**: {}", escape(it)))
            };
            ("conflict".to_owned(), shown(&it.old), shown(&it.new))
        }
        Difference::Environment { old, new } => ("environment".to_owned(), code(old), code(new)),
        Difference::ClassAdded(class) => {
            ("class".to_owned(), none(), format!("**+** {}", code(class)))
        }
        Difference::ClassRemoved(class) => {
            ("class".to_owned(), format!("**−** {}", code(class)), none())
        }
        Difference::Value(it) => (code(&label(it)), value(it.old.as_ref()), value(it.new.as_ref())),
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
            // A name must not call anybody.
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
