//! A difference for people.

use std::io::{self, Write};

use super::report::DiffReport;
use crate::cli::page::paint;
use crate::diagnostic::{Colour, visible_up_to};
use crate::impact::{
    Causes, CausingChange, Change, Difference, GroupName, How, Impact, ReportEntry, ValueChange,
    ValueKind,
};
use crate::wording::{counted, listed};

/// How many names of nodes are shown.
const NAMES: usize = 5;

/// What is said of a change of `interpolate`.
pub(super) const INTERPOLATION: &str = "clade.yaml: interpolate changed";

/// A name or value longer than this is cut.
const LONGEST: usize = 4_000;

struct Paint(Colour);

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        paint(self.0, code, &visible_up_to(text, LONGEST))
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
pub(super) fn write(report: &DiffReport<'_>, colour: Colour, to: &mut dyn Write) -> io::Result<()> {
    let paint = Paint(colour);
    let impact = report.impact;
    let summary = format!(
        "{} of {} change between {} and {}",
        impact.changed(),
        counted(impact.nodes, "node"),
        report.base.name,
        report.head.name
    );
    writeln!(to, "{}", paint.bold(&summary))?;
    for (line, mood) in unclassified(impact) {
        let painted = match mood {
            Mood::Bad => paint.removed(&line),
            Mood::Good => paint.added(&line),
        };
        writeln!(to, "{painted}")?;
    }
    if !report.unreadable.is_empty() {
        writeln!(to, "{} could not be read", counted(report.unreadable.len(), "facts file"))?;
    }
    if impact.groups.is_empty() && impact.node_files.is_empty() {
        writeln!(to, "no group differs")?;
    }
    for entry in &impact.entries {
        write_entry(entry, report, &paint, to)?;
    }
    Ok(())
}

fn write_entry(
    entry: &ReportEntry,
    report: &DiffReport<'_>,
    paint: &Paint,
    to: &mut dyn Write,
) -> io::Result<()> {
    writeln!(to, "\n{}", paint.bold(&nodes(entry)))?;
    let row = |change: &Change| {
        let (what, shown) = row(&change.what, paint);
        (visible_up_to(&what, LONGEST), shown)
    };
    let widths = entry.changes.iter().map(|it| row(it).0.chars().count());
    let width = widths.max().unwrap_or_default();
    let mut before: Option<String> = None;
    for change in &entry.changes {
        // All causes at once would be much more than what is shown of them.
        let (what, shown) = row(change);
        let cause = because(change, report.impact).join(&change.causes);
        let because = match &before {
            Some(same) if *same == cause => String::new(),
            _ => format!("  {}", paint.faint(&format!("<- {cause}"))),
        };
        writeln!(to, "  {what:<width$}  {shown}{because}")?;
        before = Some(cause);
    }
    Ok(())
}

/// Returns the names of an entry, not all of many.
pub(super) fn nodes(entry: &ReportEntry) -> String {
    format!("{}: {}", counted(entry.nodes.len(), "node"), listed(entry.nodes.iter(), NAMES))
}

/// How a line is meant.
#[derive(Clone, Copy)]
pub(super) enum Mood {
    Bad,
    Good,
}

/// Says which nodes have no classification.
pub(super) fn unclassified(impact: &Impact) -> Vec<(String, Mood)> {
    let counts = impact.counts;
    let nodes = |number| counted(number, "node");
    let mut lines = Vec::new();
    if counts.conflicts_appearing > 0 {
        let line = format!("conflicts appear on {}", nodes(counts.conflicts_appearing));
        lines.push((line, Mood::Bad));
    }
    if counts.errors_appearing > 0 {
        let line =
            format!("rules can no longer be evaluated on {}", nodes(counts.errors_appearing));
        lines.push((line, Mood::Bad));
    }
    if counts.conflicts_disappearing > 0 {
        let line = format!("conflicts disappear on {}", nodes(counts.conflicts_disappearing));
        lines.push((line, Mood::Good));
    }
    if counts.errors_disappearing > 0 {
        let line = format!("rules can be evaluated again on {}", nodes(counts.errors_disappearing));
        lines.push((line, Mood::Good));
    }
    if counts.conflicts_staying > 0 {
        let line = format!("{} in conflict before and after", nodes(counts.conflicts_staying));
        lines.push((line, Mood::Bad));
    }
    if counts.errors_staying > 0 {
        let line = format!(
            "rules cannot be evaluated on {} before and after",
            nodes(counts.errors_staying)
        );
        lines.push((line, Mood::Bad));
    }
    let (before, after) = (counts.unclassified_before, counts.unclassified_after);
    if counts.conflicts_staying + counts.errors_staying > 0 {
        let verb = if after == 1 { "has" } else { "have" };
        let all = nodes(impact.nodes);
        let line = format!("{after} of {all} {verb} no classification (before: {before})");
        lines.push((line, Mood::Bad));
    }
    lines
}

/// The causes of a difference, in words.
pub(super) struct Because(Vec<String>);

impl Because {
    /// Writes them in one line.
    fn join(&self, causes: &Causes) -> String {
        match causes {
            Causes::Each(_) | Causes::Undecided => self.0.join("; "),
            Causes::Together(_) => format!("only together: {}", self.0.join(" + ")),
        }
    }

    /// Returns the lines of a cell.
    pub(super) fn lines(&self) -> &[String] {
        &self.0
    }
}

/// Says what causes a difference; never nothing.
pub(super) fn because(change: &Change, impact: &Impact) -> Because {
    let known = change.causes.changes().iter().filter_map(|it| impact.cause(*it));
    let mut causes: Vec<String> = known.map(|it| cause(it, &change.what)).collect();
    if causes.is_empty() {
        causes.push("cause not decided: too many changes may act on the node".to_owned());
    }
    Because(causes)
}

/// Says what causes a difference, and where it is written.
fn cause(change: CausingChange<'_>, of: &Difference) -> String {
    let (name, how, file): (String, &How, _) = match change {
        CausingChange::Group(it) => (it.name.clone(), &it.how, &it.file),
        CausingChange::NodeFile(it) => (format!("node {}", it.node), &it.how, &it.file),
        CausingChange::Interpolation => return INTERPOLATION.to_owned(),
    };
    let place = match (file, change.line(of)) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        _ => String::new(),
    };
    format!("{name}: {}{place}", how.in_words())
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
            let [from, to] = names_apart(from, to);
            ("group".to_owned(), moved(Some(from), Some(to)))
        }
        Difference::Conflict(it) => match (&it.old, &it.new) {
            (Some(old), Some(new)) => {
                ("conflict".to_owned(), moved(Some(old.clone()), Some(new.clone())))
            }
            (_, Some(new)) => ("conflict".to_owned(), paint.removed(new)),
            _ => ("conflict".to_owned(), paint.added("gone")),
        },
        Difference::Error(it) => match (&it.old, &it.new) {
            (_, Some(new)) => ("error".to_owned(), paint.removed(new)),
            _ => ("error".to_owned(), paint.added("gone")),
        },
        Difference::Environment { old, new } => {
            ("environment".to_owned(), moved(Some(old.clone()), Some(new.clone())))
        }
        Difference::ClassAdded(class) => ("+ class".to_owned(), paint.added(class)),
        Difference::ClassRemoved(class) => ("- class".to_owned(), paint.removed(class)),
        Difference::Value(it) => {
            (label(it), moved(json(it.old.as_deref()), json(it.new.as_deref())))
        }
    }
}

/// Returns two names of a group that differ: with its ids where its name has stayed.
pub(super) fn names_apart(from: &GroupName, to: &GroupName) -> [String; 2] {
    let with_id = |it: &GroupName| format!("{} (id {})", it.name, it.id);
    match from.name == to.name {
        true => [from, to].map(with_id),
        false => [from, to].map(|it| it.name.clone()),
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
