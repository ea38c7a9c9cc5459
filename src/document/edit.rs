//! Changing a document by its places: what does not change stays byte for byte.
//!
//! [`edit_documents`] is told what documents shall read as. It compares that with what they read as now,
//! and touches the lines that differ: comments, order, quoting and layout of everything else are
//! kept. The result is read again; where it is not what was wanted (an alias that followed a
//! change of its anchor, say), what still differs is changed in turn, and as a last resort the
//! document is written from scratch.

mod align;
mod block;
mod change;
mod flow;
mod line_index;
mod numbering;
mod plan;
mod replace;
mod same;
mod subsequence;
mod text;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::token::line_start;
use super::{Limits, Node, ValueLayout, read, write};
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
    /// It would have more bytes than a file may have.
    #[error("the file would have {0} bytes, {allowed} are allowed", allowed = MOST_BYTES)]
    TooLarge(usize),
}

/// How many bytes a file may have.
const MOST_BYTES: u64 = Limits::DEFAULT.file_bytes;

/// How often what still differs is changed again.
const ROUNDS: usize = 4;

/// Changes the text of a file so that the documents with these numbers read as wanted.
///
/// New keys are put where they stand in what is wanted; `layout` says how new values are laid out, given
/// the keys that lead to them.
///
/// # Errors
///
/// Returns an error if the file has faults or cannot be made to read so.
pub fn edit_documents(
    text: &str,
    targets: &BTreeMap<usize, Value>,
    layout: &dyn Fn(&[&str]) -> ValueLayout,
) -> Result<String, EditError> {
    // A byte-order mark is not a character of the first line.
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        return edit_documents(rest, targets, layout).map(|it| format!("\u{feff}{it}"));
    }
    let before = documents(text).ok_or(EditError::Unreadable)?;
    let one_by_one = |text: String, numbers: &[usize]| {
        numbers.iter().try_fold(text, |text, number| {
            let target = targets.get(number).ok_or(EditError::Unreadable)?;
            edit_document(&text, *number, target, layout)
        })
    };
    let all: Vec<usize> = targets.keys().copied().collect();
    if before.len() < 2 {
        return one_by_one(text.to_owned(), &all);
    }
    // Each on its own where it can be, for an edit reads all of its text several times.
    let mut changes = Vec::new();
    let mut others = Vec::new();
    for (number, target) in targets {
        let node = before.get(*number).ok_or(EditError::Unreadable)?;
        match edited_apart(text, node, target, layout) {
            Some(change) => changes.push(change),
            None => others.push(*number),
        }
    }
    let is_done = |text: &String| {
        let wanted = before.iter().enumerate().map(|(number, node)| {
            targets.get(&number).map_or_else(|| Cow::Owned(node.to_value()), Cow::Borrowed)
        });
        documents(text).is_some_and(|found| {
            found.len() == before.len()
                && found.iter().zip(wanted).all(|(node, value)| same(&node.to_value(), &value))
        })
    };
    let applied = apply(text, changes);
    // It cannot be read, and to find out by which document takes as many readings as there are.
    applied.as_deref().map_or(Ok(()), check_size)?;
    let done = applied.and_then(|it| one_by_one(it, &others).ok());
    match done.filter(is_done) {
        Some(done) => Ok(done),
        None => one_by_one(text.to_owned(), &all),
    }
}

/// Changes a document as if its lines were a file; none if they are not one document.
fn edited_apart(
    text: &str,
    node: &Node,
    target: &Value,
    layout: &dyn Fn(&[&str]) -> ValueLayout,
) -> Option<TextChange> {
    let (from, to) = lines_of(text, node);
    let lines = text.get(from..to)?;
    if documents(lines)?.len() != 1 {
        return None;
    }
    let with = edit_document(lines, 0, target, layout).ok()?;
    Some(TextChange { from, to, with })
}

/// Returns where the lines of a document begin, with the marker above it, and where they end.
fn lines_of(text: &str, node: &Node) -> (usize, usize) {
    let from = marker_before(text, node.span.start.offset as usize).unwrap_or(0);
    let to = marker_after(text, node.span.end.offset as usize).map_or(text.len(), |it| it.0);
    (from, to)
}

/// How many anchors are tried, each alone, whose aliases are written out.
const SINGLE_ALIASES: usize = 8;

/// Changes one document of a text without a byte-order mark, where all of it is read each time.
fn edit_document(
    text: &str,
    document: usize,
    target: &Value,
    layout: &dyn Fn(&[&str]) -> ValueLayout,
) -> Result<String, EditError> {
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
    let node = before.get(document).ok_or(EditError::Unreadable)?;
    // Those of one anchor first: the others go on to refer to theirs.
    let all = aliases(text, node);
    let names: BTreeSet<&str> = all.iter().filter_map(|it| text.get(it.from..it.to)).collect();
    let of_one = names.iter().take(SINGLE_ALIASES).map(|name| {
        let is_it = |it: &&TextChange| text.get(it.from..it.to) == Some(*name);
        all.iter().filter(is_it).cloned().collect::<Vec<_>>()
    });
    for expanded in of_one.chain([all.clone()]).filter(|it| !it.is_empty()) {
        if let Some(done) = apply(text, expanded).and_then(rounds) {
            return Ok(done);
        }
    }
    let whole = TextChange {
        from: line_start(text, node.span.start.offset as usize),
        to: node.span.end.offset as usize,
        with: write(target, layout).trim_end().to_owned(),
    };
    let written = apply(text, vec![whole]).ok_or(EditError::Unwritable)?;
    check_size(&written)?;
    if is_done(&written) { Ok(written) } else { Err(EditError::Unwritable) }
}

fn check_size(text: &str) -> Result<(), EditError> {
    let bytes = text.len();
    if bytes as u64 > MOST_BYTES { Err(EditError::TooLarge(bytes)) } else { Ok(()) }
}

/// Takes documents out of a file; what stands above the first, such as a comment on the whole file,
/// stays.
///
/// # Errors
///
/// Returns an error if the file has faults or a document cannot be told from its neighbours.
pub fn remove_documents(text: &str, numbers: &BTreeSet<usize>) -> Result<String, EditError> {
    let before = documents(text).ok_or(EditError::Unreadable)?;
    // Those at the top go together, up to and with the marker of the first that stays.
    let leading = numbers.iter().enumerate().take_while(|(at, number)| at == *number).count();
    let top = leading.checked_sub(1).and_then(|last| Some((before.first()?, before.get(last)?)));
    let mut changes = Vec::new();
    if let Some((first, last)) = top {
        let from = line_start(text, first.span.start.offset as usize);
        let to = marker_after(text, last.span.end.offset as usize).map_or(text.len(), |it| it.1);
        changes.push(TextChange { from, to, with: String::new() });
    }
    for number in numbers.iter().skip(leading) {
        let node = before.get(*number).ok_or(EditError::Unreadable)?;
        let start = node.span.start.offset as usize;
        let next_marker = marker_after(text, node.span.end.offset as usize);
        let (from, to) = match marker_before(text, start) {
            // It goes with the marker above it, up to the next one.
            Some(marker) => (marker, next_marker.map_or(text.len(), |it| it.0)),
            None => (line_start(text, start), next_marker.map_or(text.len(), |it| it.1)),
        };
        changes.push(TextChange { from, to, with: String::new() });
    }
    let kept: Vec<&Node> = before
        .iter()
        .enumerate()
        .filter_map(|(number, node)| (!numbers.contains(&number)).then_some(node))
        .collect();
    let is_done = |text: &String| {
        documents(text).is_some_and(|found| {
            found.len() == kept.len()
                && found.iter().zip(&kept).all(|(a, b)| a.to_value() == b.to_value())
        })
    };
    // Where a neighbour is empty, stands on the line of its marker, or has directives: their content goes, and markers stay.
    let contents = |with_end: bool| {
        let removed = numbers.iter().filter_map(|it| before.get(*it));
        removed.map(|node| content_of(text, node, with_end)).collect()
    };
    let ways = [changes, contents(true), contents(false), with_directives(text, numbers, &before)];
    let mut done = ways.into_iter().filter_map(|it| apply(text, it)).filter(is_done);
    done.next().ok_or(EditError::Unwritable)
}

/// Returns the changes that take documents away with their markers and the directives above these.
fn with_directives(text: &str, numbers: &BTreeSet<usize>, before: &[Node]) -> Vec<TextChange> {
    let removed = numbers.iter().filter_map(|it| before.get(*it));
    let change = |node: &Node| {
        let (mut from, to) = lines_of(text, node);
        while from > 0 {
            let above = line_start(text, from - 1);
            if !text.get(above..).unwrap_or_default().starts_with('%') {
                break;
            }
            from = above;
        }
        TextChange { from, to, with: String::new() }
    };
    removed.map(change).collect()
}

/// Returns the change that takes away what a document has in it; with the line `...` below, if it ends so.
fn content_of(text: &str, node: &Node, with_end: bool) -> TextChange {
    let (start, end) = (node.span.start.offset as usize, node.span.end.offset as usize);
    let line = line_start(text, start);
    let is_marked = is_marker(text.get(line..).unwrap_or_default());
    let from = if is_marked { start } else { line };
    // What ends where a line begins has no more of it.
    let mut to = if end == line_start(text, end) { end } else { next_line(text, end) };
    if is_marked && to > end {
        to = end;
    }
    let below = text.get(to..).unwrap_or_default();
    if with_end && below.lines().next().is_some_and(|it| it.trim_end() == "...") {
        to = next_line(text, to);
    }
    TextChange { from, to, with: String::new() }
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

#[cfg(test)]
mod tests;
