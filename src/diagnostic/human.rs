//! Reports for people, as rustc writes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::visible::{COMMANDS, is_hidden};
use super::{Colour, Diagnostic, Kind, Place, Report, Severity, ShownFindings};
use crate::wording::counted;

/// The longest line that is shown, in bytes: what is longer is not written by people.
const LINE_LIMIT: usize = 400;

/// Related places that are this many lines away are shown in one piece.
const NEAR: u32 = 8;

pub(super) fn render(report: &Report, colour: Colour, shown: ShownFindings) -> String {
    let most = match shown {
        ShownFindings::All => usize::MAX,
        ShownFindings::FirstOfEachKind(most) => most,
    };
    let mut counts: BTreeMap<(Severity, Kind), usize> = BTreeMap::new();
    let is_shown = |it: &&Diagnostic| {
        let count = counts.entry((it.severity, it.kind)).or_default();
        *count += 1;
        *count <= most
    };
    let all = report.diagnostics.iter().map(Arc::as_ref);
    let mut text = findings(all.filter(is_shown), &report.sources, colour);
    text.push_str(&hidden(&counts, most));
    text.push_str(&summary(report));
    text
}

/// Says how many findings of each kind are not shown.
fn hidden(counts: &BTreeMap<(Severity, Kind), usize>, most: usize) -> String {
    let hidden = |((severity, kind), count): (&(Severity, Kind), &usize)| {
        let more = count.checked_sub(most).filter(|it| *it > 0)?;
        Some(format!("{severity}[{kind}]: {more} more are not shown\n"))
    };
    let lines: String = counts.iter().filter_map(hidden).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("{lines}  = help: `clade validate --all` shows them, `--stats` counts them\n\n")
}

/// Writes findings with the lines that they are about.
pub(super) fn findings<'d>(
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    sources: &BTreeMap<Arc<str>, String>,
    colour: Colour,
) -> String {
    let renderer = match colour {
        Colour::Ansi => Renderer::styled(),
        Colour::Plain => Renderer::plain(),
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&renderer.render(&[group(diagnostic, sources)]));
        text.push_str("\n\n");
    }
    text
}

/// Writes the last line: how much was found in how much.
pub(super) fn summary(report: &Report) -> String {
    let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
    let found: Vec<String> = [(errors, "error"), (warnings, "warning")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| counted(number, word))
        .collect();
    let (groups, files) = (counted(report.groups, "group"), counted(report.files.len(), "file"));
    if found.is_empty() {
        format!("no findings in {groups}, {files}\n")
    } else {
        format!("{} in {groups}, {files}\n", found.join(" and "))
    }
}

fn group<'r>(diagnostic: &'r Diagnostic, sources: &'r BTreeMap<Arc<str>, String>) -> Group<'r> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(visible(&diagnostic.message)).id(diagnostic.kind.as_str());
    let mut elements: Vec<Element<'r>> = Vec::new();
    let mut near = Vec::new();
    let mut far = Vec::new();
    for related in &diagnostic.related {
        let distance = related.place.span.start.line.abs_diff(diagnostic.place.span.start.line);
        let is_near = related.place.file == diagnostic.place.file && distance <= NEAR;
        if is_near { near.push(related) } else { far.push(related) }
    }
    let mut annotated = vec![(AnnotationKind::Primary, &diagnostic.place, None)];
    annotated.extend(
        near.iter().map(|it| (AnnotationKind::Context, &it.place, Some(it.message.as_str()))),
    );
    elements.push(snippet(&annotated, sources));
    for related in far {
        let annotation = (AnnotationKind::Context, &related.place, Some(related.message.as_str()));
        let shown = snippet(&[annotation], sources);
        let lacks_label = !matches!(shown, Element::Cause(_));
        elements.push(shown);
        if lacks_label {
            elements.push(Level::NOTE.message(visible(&related.message)).into());
        }
    }
    if let Some(help) = &diagnostic.help {
        elements.push(Level::HELP.message(visible(help)).into());
    }
    elements.push(Level::NOTE.message(diagnostic.kind.page()).into());
    title.elements(elements)
}

type Annotated<'r> = (AnnotationKind, &'r Place, Option<&'r str>);

/// Shows the lines of places in one file; only the name of the file and the place where the lines
/// cannot be shown.
fn snippet<'r>(places: &[Annotated<'r>], sources: &'r BTreeMap<Arc<str>, String>) -> Element<'r> {
    let Some((_, first, _)) = places.first() else { return Element::from(Origin::path("")) };
    let origin = || {
        Origin::path(visible(&first.file))
            .line(first.span.start.line as usize)
            .char_column(first.span.start.column as usize)
            .into()
    };
    let Some(source) = sources.get(&first.file) else { return origin() };
    // A byte-order mark is not a part of the first line.
    let (source, mark) = source.strip_prefix('\u{feff}').map_or((source.as_str(), 0), |it| (it, 3));
    let offset = |at: u32| (at as usize).saturating_sub(mark).min(source.len());
    let starts = places.iter().map(|(_, place, _)| offset(place.span.start.offset));
    let ends = places.iter().map(|(_, place, _)| offset(place.span.end.offset));
    let (Some(from), Some(to)) = (starts.min(), ends.max()) else { return origin() };
    let from = source.get(..from).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let to = source.get(to..).and_then(|after| after.find('\n')).map_or(source.len(), |at| to + at);
    let Some(window) = source.get(from..to) else { return origin() };
    // A line of Windows ends so; only within one it hides what stands before it.
    let window = window.strip_suffix('\r').unwrap_or(window);
    let is_unsafe = |it: char| is_hidden(it) && !matches!(it, '\t' | '\n' | '\r');
    let has_command = COMMANDS.iter().any(|it| window.contains(it));
    if window.lines().any(|line| line.len() > LINE_LIMIT || line.contains('\r'))
        || window.contains(is_unsafe)
        || has_command
    {
        return origin();
    }
    let line = places.iter().map(|(_, place, _)| place.span.start.line).min().unwrap_or(1);
    let mut snippet = Snippet::source(window).line_start(line as usize).path(visible(&first.file));
    for (kind, place, label) in places {
        let start = offset(place.span.start.offset).saturating_sub(from);
        let end = offset(place.span.end.offset).saturating_sub(from).max(start);
        let annotation = (*kind).span(start..end);
        snippet = snippet.annotation(match label {
            Some(label) => annotation.label(visible(label)),
            None => annotation,
        });
    }
    snippet.into()
}

/// Returns a text without what would move the cursor or colour a terminal.
fn visible(text: &str) -> String {
    super::visible_up_to(text, LINE_LIMIT)
}
