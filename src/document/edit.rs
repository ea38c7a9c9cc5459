//! Changing a document by its places: what does not change stays byte for byte.
//!
//! [`edit`] is told what the document shall read as. It compares that with what it reads as now,
//! and touches the lines that differ: comments, order, quoting and layout of everything else are
//! kept. The result is read again; where it is not what was wanted (an alias that followed a
//! change of its anchor, say), what still differs is changed in turn, and as a last resort the
//! document is written from scratch.

mod align;
mod block;
mod change;
mod flow;
mod plan;
mod replace;
mod same;
mod text;

use serde_json::Value;

use super::token::line_start;
use super::{Limits, Node, ValueLayout, read, token, write};
use change::TextChange;
use plan::Plan;
use same::same;

/// A document cannot be changed as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file has faults, or not so many documents.
    #[error("the file has faults, so it cannot be edited")]
    Unreadable,
    /// Even written from scratch, it would not read as wanted.
    #[error("the file would not be read as what was to be written")]
    Unwritable,
}

/// How often what still differs is changed again.
const ROUNDS: usize = 4;

/// Changes the text of a file so that the document with this number reads as `target`.
///
/// New keys are put where they stand in `target`; `layout` says how new values are laid out, given
/// the keys that lead to them.
///
/// # Errors
///
/// Returns an error if the file has faults or cannot be made to read so.
pub fn edit(
    text: &str,
    document: usize,
    target: &Value,
    layout: &dyn Fn(&[&str]) -> ValueLayout,
) -> Result<String, EditError> {
    // A byte-order mark is not a character of the first line.
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        return edit(rest, document, target, layout).map(|it| format!("\u{feff}{it}"));
    }
    let before = documents(text).ok_or(EditError::Unreadable)?;
    let mut wanted: Vec<Value> = before.iter().map(Node::to_value).collect();
    *wanted.get_mut(document).ok_or(EditError::Unreadable)? = target.clone();
    let is_done = |text: &str| {
        documents(text).is_some_and(|found| {
            found.len() == wanted.len()
                && found.iter().zip(&wanted).all(|(node, value)| same(&node.to_value(), value))
        })
    };
    let rounds = |start: String| {
        let mut text = start;
        for _ in 0..ROUNDS {
            if is_done(&text) {
                return Some(text);
            }
            let changes = {
                let found = documents(&text)?;
                Plan::of(&text, layout).changes(found.get(document)?, target)
            };
            text = apply(&text, changes)?;
        }
        is_done(&text).then_some(text)
    };
    if let Some(done) = rounds(text.to_owned()) {
        return Ok(done);
    }
    let expanded = before.get(document).and_then(|node| apply(text, aliases(text, node)));
    if let Some(done) = expanded.filter(|it| it != text).and_then(rounds) {
        return Ok(done);
    }
    let node = before.get(document).ok_or(EditError::Unreadable)?;
    let whole = TextChange {
        from: line_start(text, node.span.start.offset as usize),
        to: node.span.end.offset as usize,
        with: write(target, layout).trim_end().to_owned(),
    };
    apply(text, vec![whole]).filter(|it| is_done(it)).ok_or(EditError::Unwritable)
}

/// Takes a document out of a file; what stands above it, such as a comment on the whole file,
/// stays.
///
/// # Errors
///
/// Returns an error if the file has faults or the document cannot be told from its neighbours.
pub fn remove_document(text: &str, document: usize) -> Result<String, EditError> {
    let before = documents(text).ok_or(EditError::Unreadable)?;
    let node = before.get(document).ok_or(EditError::Unreadable)?;
    let start = node.span.start.offset as usize;
    let end = node.span.end.offset as usize;
    let next_marker = marker_after(text, end);
    let change = match marker_before(text, start) {
        // It goes with the marker above it, up to the next one.
        Some(marker) if document > 0 => (marker, next_marker.map_or(text.len(), |it| it.0)),
        _ => (line_start(text, start), next_marker.map_or(text.len(), |it| it.1)),
    };
    let with = String::new();
    let text = apply(text, vec![TextChange { from: change.0, to: change.1, with }]);
    let is_done = |text: &String| {
        documents(text).is_some_and(|found| {
            let kept = before.iter().enumerate().filter(|(at, _)| *at != document);
            found.len() + 1 == before.len()
                && found.iter().zip(kept).all(|(a, (_, b))| a.to_value() == b.to_value())
        })
    };
    text.filter(is_done).ok_or(EditError::Unwritable)
}

/// Finds the last line with `---` before a place.
fn marker_before(text: &str, at: usize) -> Option<usize> {
    let mut end = line_start(text, at);
    // Content may stand on the line of its marker.
    if is_marker(text.get(end..).unwrap_or_default()) {
        return Some(end);
    }
    while end > 0 {
        let start = line_start(text, end - 1);
        if is_marker(text.get(start..).unwrap_or_default()) {
            return Some(start);
        }
        end = start;
    }
    None
}

/// Finds the first line with `---` after a place: where it begins, and where the next one does.
fn marker_after(text: &str, at: usize) -> Option<(usize, usize)> {
    let mut start = next_line(text, at);
    while start < text.len() {
        let next = next_line(text, start);
        if is_marker(text.get(start..).unwrap_or_default()) {
            return Some((start, next));
        }
        start = next;
    }
    None
}

fn is_marker(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|it| it.is_empty() || it.starts_with(char::is_whitespace))
}

/// Returns the documents of a text, if it has no faults.
fn documents(text: &str) -> Option<Vec<Node>> {
    let contents = read(text.as_bytes(), &Limits::DEFAULT);
    contents.faults.is_empty().then_some(contents.documents)
}

/// Returns the changes that write every alias out.
fn aliases(text: &str, node: &Node) -> Vec<TextChange> {
    if plan::is_alias(text, node) {
        let with = write::inline(&node.to_value());
        let (from, to) = (node.span.start.offset as usize, node.span.end.offset as usize);
        return vec![TextChange { from, to, with }];
    }
    let inside = node.elements().iter().chain(node.entries().iter().map(|entry| &entry.value));
    inside.flat_map(|it| aliases(text, it)).collect()
}

/// Makes the changes; none if two of them overlap.
fn apply(text: &str, mut changes: Vec<TextChange>) -> Option<String> {
    // What is put in comes before what is taken out at the same place.
    changes.sort_by_key(|it| (it.from, it.to > it.from));
    let mut changed = String::with_capacity(text.len());
    let mut at = 0;
    for change in changes {
        changed.push_str(text.get(at..change.from)?);
        changed.push_str(&change.with);
        at = change.to;
    }
    changed.push_str(text.get(at..)?);
    Some(changed)
}

/// Returns where the next line begins, or the end of the text.
fn next_line(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |it| at + it + 1)
}

/// Returns whether what stands between a place and the end of its line is blank or a comment.
fn rest_is_blank(text: &str, at: usize) -> bool {
    let rest = text.get(at..token::line_end(text, at)).unwrap_or_default();
    let trimmed = rest.trim_start();
    trimmed.is_empty()
        || (trimmed.starts_with('#') && (trimmed.len() < rest.len() || rest.is_empty()))
}

#[cfg(test)]
mod tests;
