//! What stands below the message of a finding in formats that have no place of their own for it.

use std::fmt::Write as _;

use super::{Diagnostic, visible};

/// Returns lines with the related places and the help of a finding, each with the line break before it.
pub(super) fn details(diagnostic: &Diagnostic, prefix: &str) -> String {
    let mut text = String::new();
    for related in &diagnostic.related {
        let (file, start) = (visible(&related.place.file), related.place.span.start);
        let message = visible(&related.message);
        let _infallible =
            write!(text, "\n{prefix}{file}:{}:{}: {message}", start.line, start.column);
    }
    if let Some(help) = &diagnostic.help {
        let _infallible = write!(text, "\nhelp: {}", visible(help));
    }
    text
}
