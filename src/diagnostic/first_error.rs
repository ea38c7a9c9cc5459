//! The first error of many findings, on one line.

use std::sync::Arc;

use super::visible::visible;
use super::{Diagnostic, Severity};

/// Returns the first error with its place, and how many more there are; none if there is no error.
pub fn first_error(diagnostics: &[Arc<Diagnostic>]) -> Option<String> {
    let mut errors = diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let first = errors.next()?;
    let more = match errors.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let start = first.place.span.start;
    let (file, message) = (visible(&first.place.file), visible(&first.message));
    Some(format!("{file}:{}:{}: {message}{more}", start.line, start.column))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Kind, Place};
    use crate::document::Span;

    #[test]
    fn the_first_error_has_its_place_and_no_codes_of_a_terminal() {
        let finding = |severity, file: &str, message: &str| {
            let place = Place { file: file.into(), span: Span::START };
            let mut found = Diagnostic::new(Kind::MissingParent, place, message);
            found.severity = severity;
            Arc::new(found)
        };
        let warning = || finding(Severity::Warning, "groups/a.yaml", "a warning");
        let error = || finding(Severity::Error, "groups/\u{1b}[2J.yaml", "no parent `\u{202e}`");
        let shown = "groups/\u{fffd}[2J.yaml:1:1: no parent `\u{fffd}`";
        assert_eq!(first_error(&[]), None);
        assert_eq!(first_error(&[warning()]), None);
        assert_eq!(first_error(&[warning(), error()]).unwrap(), shown);
        let several = [warning(), error(), warning(), error(), error()];
        assert_eq!(first_error(&several).unwrap(), format!("{shown} (and 2 more)"));
    }
}
