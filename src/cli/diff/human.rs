//! A difference for people.

use std::fmt::Write as _;

use super::{Said, count};
use crate::diagnostic::{Colour, visible_up_to};
use crate::impact::{Difference, Entry, GroupChange, ValueChange, ValueKind};

/// How many names of nodes are shown.
const NAMES: usize = 5;

/// A name or value longer than this is cut.
const LONGEST: usize = 4_000;

struct Paint(Colour);

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        let text = visible_up_to(text, LONGEST);
        match self.0 {
            Colour::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Colour::Plain => text,
        }
    }

    fn added(&self, text: &str) -> String {
        self.with("32", text)
    }

    fn removed(&self, text: &str) -> String {
        self.with("31", text)
    }

    fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    fn faint(&self, text: &str) -> String {
        self.with("2", text)
    }
}

/// Writes everything, the change of most nodes first.
pub(super) fn write(said: &Said<'_>, colour: Colour) -> String {
    let paint = Paint(colour);
    let impact = said.impact;
    let mut text = String::new();
    let summary = format!(
        "{} of {} change between {} and {}",
        impact.changed(),
        count(impact.nodes, "node"),
        said.base.name,
        said.head.name
    );
    // A string takes whatever is written to it.
    writeln!(text, "{}", paint.bold(&summary)).ok();
    let (appearing, disappearing) = impact.conflicts();
    if appearing > 0 {
        let line = format!("conflicts appear on {}", count(appearing, "node"));
        writeln!(text, "{}", paint.removed(&line)).ok();
    }
    if disappearing > 0 {
        writeln!(
            text,
            "{}",
            paint.added(&format!("conflicts disappear on {}", count(disappearing, "node")))
        )
        .ok();
    }
    if !said.unreadable.is_empty() {
        writeln!(text, "{} could not be read", count(said.unreadable.len(), "facts file")).ok();
    }
    if impact.groups.is_empty() {
        writeln!(text, "no group differs").ok();
    }
    for entry in &impact.entries {
        write_entry(&mut text, entry, said, &paint);
    }
    text
}

fn write_entry(text: &mut String, entry: &Entry, said: &Said<'_>, paint: &Paint) {
    writeln!(text, "\n{}", paint.bold(&nodes(entry))).ok();
    let rows: Vec<(String, String, String)> = entry
        .change
        .changes
        .iter()
        .map(|change| {
            let (what, shown) = row(&change.what, paint);
            let causes = change.causes.iter().filter_map(|it| said.impact.groups.get(*it));
            let what = visible_up_to(&what, LONGEST);
            (what, shown, causes.map(cause).collect::<Vec<_>>().join("; "))
        })
        .collect();
    let width = rows.iter().map(|(what, ..)| what.chars().count()).max().unwrap_or_default();
    let mut before: Option<&str> = None;
    for (what, shown, cause) in &rows {
        let because = match before {
            Some(same) if same == cause => String::new(),
            _ if cause.is_empty() => String::new(),
            _ => format!("  {}", paint.faint(&format!("<- {cause}"))),
        };
        writeln!(text, "  {what:<width$}  {shown}{because}").ok();
        before = Some(cause);
    }
}

/// Returns the names of an entry, not all of many.
pub(super) fn nodes(entry: &Entry) -> String {
    let shown: Vec<&str> = entry.nodes.iter().take(NAMES).map(String::as_str).collect();
    let more = match entry.nodes.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}: {}{more}", count(entry.nodes.len(), "node"), shown.join(", "))
}

/// Says which group causes something, and where it is written.
pub(super) fn cause(change: &GroupChange) -> String {
    let place = match (&change.file, change.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        _ => String::new(),
    };
    format!("{}: {}{place}", change.name, change.how.in_words())
}

fn row(what: &Difference, paint: &Paint) -> (String, String) {
    let moved = |old: Option<String>, new: Option<String>| match (old, new) {
        (Some(old), Some(new)) => format!("{} -> {}", paint.removed(&old), paint.added(&new)),
        (Some(old), None) => format!("{} -> not set", paint.removed(&old)),
        (None, Some(new)) => format!("not set -> {}", paint.added(&new)),
        (None, None) => String::new(),
    };
    match what {
        Difference::Entered(group) => ("+ group".to_owned(), paint.added(&group.name)),
        Difference::Left(group) => ("- group".to_owned(), paint.removed(&group.name)),
        Difference::Renamed { from, to } => {
            ("group".to_owned(), moved(Some(from.name.clone()), Some(to.name.clone())))
        }
        Difference::Conflict(it) => match (&it.old, &it.new) {
            (_, Some(new)) => ("conflict".to_owned(), paint.removed(new)),
            _ => ("conflict".to_owned(), paint.added("gone")),
        },
        Difference::Environment { old, new } => {
            ("environment".to_owned(), moved(Some(old.clone()), Some(new.clone())))
        }
        Difference::ClassAdded(class) => ("+ class".to_owned(), paint.added(class)),
        Difference::ClassRemoved(class) => ("- class".to_owned(), paint.removed(class)),
        Difference::Value(it) => (label(it), moved(json(it.old.as_ref()), json(it.new.as_ref()))),
    }
}

fn json(value: Option<&serde_json::Value>) -> Option<String> {
    value.map(ToString::to_string)
}

/// Returns the name of a value as Puppet has it.
pub(super) fn label(change: &ValueChange) -> String {
    match (change.kind, &change.class) {
        (ValueKind::Variable, _) | (_, None) => format!("${}", change.name),
        (ValueKind::Parameter, Some(class)) => format!("{class}::{}", change.name),
        (ValueKind::ConfigData, Some(class)) => format!("{class}::{} (data)", change.name),
    }
}
