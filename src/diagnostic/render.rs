//! Writing a report in one of the formats.

use super::report::{Colour, Format, Report};
use super::{github, gitlab, human, json, junit, sarif};

impl Report {
    /// Writes the report; the text ends with one line break, or is empty.
    pub fn render(&self, format: Format, colour: Colour) -> String {
        match format {
            Format::Human => human::render(self, colour),
            Format::Json => json::render(self),
            Format::Github => github::render(self),
            Format::Gitlab => gitlab::render(self),
            Format::Sarif => sarif::render(self),
            Format::Junit => junit::render(self),
        }
    }
}
