//! Where values are written.

use crate::answer::AnswerKey;
use crate::diagnostic::Place;
use crate::document::{Limits, Node, read};

/// Returns the line of each of some values in a file, given with the place of the group or node that defines
/// it: that of the nearest key around the value if it is not written itself, or that of the document if the
/// file has no such document.
pub fn lines_of(values: &[(&AnswerKey, &Place)], content: &[u8]) -> Vec<u32> {
    let documents = read(content, &Limits::DEFAULT).documents;
    let line = |(key, place): &(&AnswerKey, &Place)| {
        let document = documents.iter().find(|it| it.name_span() == place.span);
        document.map_or(place.span.start.line, |it| line_in(it, key, place))
    };
    values.iter().map(line).collect()
}

fn line_in(document: &Node, key: &AnswerKey, place: &Place) -> u32 {
    let (mut line, mut at) = (place.span.start.line, document);
    for step in key.path() {
        let is_step = |written: &str| written.strip_prefix("::").unwrap_or(written) == step;
        let Some(entry) = at.entries().iter().find(|it| is_step(&it.key)) else { break };
        line = entry.key_span.start.line;
        at = &entry.value;
    }
    line
}
