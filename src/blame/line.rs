//! Where a value is written.

use super::BlameKey;
use crate::diagnostic::Place;
use crate::document::{Limits, Node, read};

/// Returns the line of a value in the file of the group or node that defines it: that of the nearest key
/// around it if it is not written itself, or that of the document if the file says something else now.
pub fn line_of(key: &BlameKey, place: &Place, content: &[u8]) -> u32 {
    let documents = read(content, &Limits::DEFAULT).documents;
    let named_at = |it: &Node| it.get("name").map_or(it.span, |name| name.span);
    let mut line = place.span.start.line;
    let Some(mut at) = documents.iter().find(|it| named_at(it) == place.span) else { return line };
    for step in key.path() {
        let is_step = |written: &str| written.strip_prefix("::").unwrap_or(written) == step;
        let Some(entry) = at.entries().iter().find(|it| is_step(&it.key)) else { break };
        line = entry.key_span.start.line;
        at = &entry.value;
    }
    line
}
