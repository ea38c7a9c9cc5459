//! Reports as workflow commands of GitHub Actions.
//!
//! GitHub shows ten errors and ten warnings of a step; errors come first.

use std::fmt::Write as _;

use super::details::details;
use super::{Diagnostic, Report, visible};

pub(super) fn render(report: &Report) -> String {
    report.errors_first().into_iter().fold(String::new(), |mut text, diagnostic| {
        write_command(&mut text, &report.prefix, diagnostic);
        text
    })
}

fn write_command(text: &mut String, prefix: &str, diagnostic: &Diagnostic) {
    let span = diagnostic.place.span;
    let file = property(&format!("{prefix}{}", visible(&diagnostic.place.file)));
    let level = diagnostic.severity;
    let _infallible =
        write!(text, "::{level} file={file},line={},endLine={}", span.start.line, span.end.line);
    // Columns over several lines are not allowed.
    if span.start.line == span.end.line {
        let _infallible = write!(text, ",col={},endColumn={}", span.start.column, span.end.column);
    }
    // An annotation has one place; the others are named in its text.
    let message = format!("{}{}", visible(&diagnostic.message), details(diagnostic, prefix));
    let _infallible =
        writeln!(text, ",title={}::{}", property(diagnostic.kind.as_str()), data(&message));
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
