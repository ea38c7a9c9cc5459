//! What a difference is written from, in every format.

use serde_json::{Value, json};

use super::side::LoadedSide;
use crate::impact::Impact;

/// A difference, with the names of what is compared.
pub(super) struct DiffReport<'a> {
    pub(super) base: &'a LoadedSide,
    pub(super) head: &'a LoadedSide,
    pub(super) impact: &'a Impact,
    /// The facts files that cannot be read.
    pub(super) unreadable: &'a [String],
}

impl DiffReport<'_> {
    /// Returns the report as the document of `--format json`.
    pub(super) fn to_value(&self) -> Value {
        let mut value = json!({"base": self.base.to_value(), "head": self.head.to_value()});
        if let (Value::Object(all), Value::Object(impact)) = (&mut value, self.impact.to_value()) {
            all.extend(impact);
            all.insert("unreadable".to_owned(), json!(self.unreadable));
        }
        value
    }
}

/// Returns how many of something there are: `1 node`, `2 nodes`.
pub(super) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
