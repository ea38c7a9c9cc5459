//! Writing a report in one of the formats.

use std::collections::BTreeMap;

use super::report::{Colour, Format, Report, ShownFindings};
use super::{Diagnostic, github, gitlab, human, json, junit, sarif};

/// Writes findings for people, with the lines of the one text that they are about; `file` names the text.
pub fn annotate(text: &str, file: &str, diagnostics: &[Diagnostic], colour: Colour) -> String {
    let sources = BTreeMap::from([(file.into(), text.to_owned())]);
    human::findings(diagnostics, &sources, colour)
}

impl Report {
    /// Writes the report; the text ends with one line break, or is empty.
    pub fn render(&self, format: Format, colour: Colour) -> String {
        match format {
            Format::Human => self.render_for_people(colour, ShownFindings::All),
            Format::Json => json::render(self),
            Format::Github => github::render(self),
            Format::Gitlab => gitlab::render(self),
            Format::Sarif => sarif::render(self),
            Format::Junit => junit::render(self),
        }
    }

    /// Writes the report for people, with so many of its findings; the last line counts all.
    pub fn render_for_people(&self, colour: Colour, shown: ShownFindings) -> String {
        human::render(self, colour, shown)
    }

    /// Returns the line that says how much was found in how much.
    pub fn summary(&self) -> String {
        human::summary(self)
    }
}
