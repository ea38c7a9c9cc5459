//! What a difference is written from, in every format.

use serde::{Serialize, Serializer};
use serde_json::Value;

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

/// The document of `--format json`: written piece by piece, since it may be larger than the memory.
impl Serialize for DiffReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            base: Value,
            head: Value,
            #[serde(flatten)]
            impact: &'a Impact,
            unreadable: &'a [String],
        }
        let Self { base, head, impact, unreadable } = self;
        let (base, head) = (base.to_value(), head.to_value());
        Document { base, head, impact, unreadable }.serialize(serializer)
    }
}

/// Returns how many of something there are: `1 node`, `2 nodes`.
pub(super) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
