//! The canonical form of a file: order of keys, indents, blanks; comments and values stay.
//!
//! Each step is taken only if the file reads as before and each comment belongs to what it did, so
//! no text is strange enough to be damaged.

use std::collections::BTreeMap;

use serde_json::Value;

use super::belonging::{Belonging, Home, is_block};
use super::edit::EditError;
use super::token::line_start;
use super::write::inline;
use super::{Content, Entry, FaultKind, Limits, Node, Span, read, read_text, token};

/// One step towards the canonical form; none where the text cannot be read.
type FormatStep<'s> = &'s dyn Fn(&str) -> Option<String>;

/// How often the steps are repeated until nothing changes.
const ROUNDS: usize = 4;

/// Returns the canonical form of a text; `order` is that of the keys of its documents.
///
/// # Errors
///
/// Returns an error if the text has faults but for values that YAML readers do not agree on.
pub fn format(text: &str, order: &[&str]) -> Result<String, EditError> {
    let (mut best, wanted) = with_line_feeds(text).ok_or(EditError::Unreadable)?;
    let keeps = |it: &String| Meaning::of(it).is_some_and(|found| found == wanted);
    for _ in 0..ROUNDS {
        let before = best.clone();
        let steps: [FormatStep<'_>; 5] =
            [&reindent, &|text| reorder(text, order), &respace, &unescape, &tidy];
        for step in steps {
            best = step(&best).filter(keeps).unwrap_or(best);
        }
        if best == before {
            break;
        }
    }
    Ok(best)
}

/// Returns the text without a byte-order mark and with a line feed at the end of each line, and its meaning; `None` if
/// the text has faults.
///
/// YAML takes a carriage return for a line break, alone and before a line feed. What a comment belongs to is only found
/// in lines that end with a line feed, so only the values are compared with those of the text as it was.
fn with_line_feeds(text: &str) -> Option<(String, Meaning)> {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !bare.contains('\r') {
        return Some((bare.to_owned(), Meaning::of(bare)?));
    }
    let values = values_of(&documents(bare)?);
    let plain = bare.replace("\r\n", "\n").replace('\r', "\n");
    match Meaning::of(&plain).filter(|it| it.values == values) {
        Some(meaning) => Some((plain, meaning)),
        None => Some((text.to_owned(), Meaning::of(text)?)),
    }
}

/// What must not change: the values, and what each comment belongs to.
#[derive(PartialEq)]
struct Meaning {
    values: Vec<Value>,
    comments: BTreeMap<String, Vec<String>>,
}

impl Meaning {
    fn of(text: &str) -> Option<Self> {
        // A byte-order mark is not a character of the first line.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let documents = documents(text)?;
        let comments = Belonging::of(text, &documents).summary();
        let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
        Some(Self {
            values: values_of(&documents),
            comments: comments.into_iter().map(|(home, texts)| (home, owned(texts))).collect(),
        })
    }
}

fn values_of(documents: &[Node]) -> Vec<Value> {
    documents.iter().map(Node::to_value).collect()
}

/// Reads documents. Values that YAML readers do not agree on are as they are written, and stay so: the settings may have
/// some.
fn documents(text: &str) -> Option<Vec<Node>> {
    let contents = read(text.as_bytes(), &Limits::DEFAULT);
    let is_readable = contents.faults.iter().all(|it| it.kind == FaultKind::AmbiguousScalar);
    is_readable.then_some(contents.documents)
}

/// Returns the number of a node's first and last line, from 0.
fn lines_of(node: &Node) -> (usize, usize) {
    (node.span.start.line as usize - 1, (node.span.end.line as usize).saturating_sub(1))
}

/// Puts the keys of each document in order, each with its comments.
fn reorder(text: &str, order: &[&str]) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut sorted = lines.clone();
    let rank = |entry: &Entry| order.iter().position(|it| *it == entry.key).unwrap_or(order.len());
    let documents = documents(text)?;
    let belonging = Belonging::of(text, &documents);
    for (number, document) in documents.iter().enumerate() {
        let entries = document.entries();
        if !is_block(text, document) || entries.is_sorted_by_key(rank) {
            continue;
        }
        let (mut begins, mut ends) = (Vec::new(), Vec::new());
        for entry in entries {
            begins.push(entry.key_span.start.line as usize - 1);
            ends.push(entry.value.span.end.max(entry.key_span.end).line as usize);
        }
        for own in &belonging.own {
            let (item, is_above) = match own.home {
                Home::Above(item) => (item, true),
                Home::Within(item) | Home::Ends(item) => (item, false),
                Home::Top(_) | Home::End(_) => continue,
            };
            match belonging.top(item) {
                Some((document, top)) if document == number => {
                    let begin = begins.get_mut(top)?;
                    if is_above && own.line < *begin {
                        *begin = own.line;
                    }
                    let end = ends.get_mut(top)?;
                    *end = (*end).max(own.line + 1);
                }
                _ => {}
            }
        }
        let mut chunks: Vec<(usize, Vec<&str>)> = Vec::new();
        let from = *begins.first()?;
        for (at, entry) in entries.iter().enumerate() {
            // A blank line between two keys goes with the second.
            let begin = at.checked_sub(1).and_then(|it| ends.get(it).copied()).unwrap_or(from);
            chunks.push((rank(entry), lines.get(begin..*ends.get(at)?)?.to_vec()));
        }
        chunks.sort_by_key(|(rank, _)| *rank);
        let mut joined: Vec<&str> = chunks.into_iter().flat_map(|(_, lines)| lines).collect();
        let blank = joined.iter().take_while(|it| it.trim().is_empty()).count();
        joined.drain(..blank);
        joined.extend(std::iter::repeat_n("\n", blank));
        for (at, line) in joined.into_iter().enumerate() {
            *sorted.get_mut(from + at)? = line;
        }
    }
    // The last line of the file may have lacked its line break.
    let whole: Vec<String> = sorted
        .iter()
        .map(|it| if it.ends_with('\n') { (*it).to_owned() } else { format!("{it}\n") })
        .collect();
    Some(whole.concat())
}

/// Gives what stands inside of a key two blanks more than the key, and a comment the column of what
/// it belongs to.
fn reindent(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut shifts = vec![0_isize; lines.len()];
    let documents = documents(text)?;
    for document in documents.iter().filter(|it| is_block(text, it)) {
        shift(text, document, 0, &mut shifts);
    }
    let belonging = Belonging::of(text, &documents);
    let column = |item: usize| {
        let item = belonging.items.get(item)?;
        item.column.checked_add_signed(*shifts.get(item.line)?)
    };
    let mut margins: Vec<Option<usize>> = vec![None; lines.len()];
    for own in &belonging.own {
        *margins.get_mut(own.line)? = match own.home {
            Home::Top(_) | Home::End(_) => Some(0),
            Home::Above(item) => Some(column(item)?),
            Home::Ends(item) => Some(column(item)? + 2),
            Home::Within(_) => None,
        };
    }
    let moved = lines.iter().zip(shifts).zip(margins).map(|((line, shift), margin)| {
        let content = line.trim_start_matches(' ');
        let shifted = (line.len() - content.len()).saturating_add_signed(shift);
        match margin {
            // A tab may stand before a comment.
            Some(margin) => " ".repeat(margin) + line.trim_start(),
            // Blanks may be those of a text of several lines.
            None if line.trim_end_matches(['\r', '\n']).is_empty() => (*line).to_owned(),
            None => " ".repeat(shifted) + content,
        }
    });
    Some(moved.collect())
}

fn column(text: &str, at: usize) -> usize {
    at - line_start(text, at)
}

/// Notes by how much the lines of a list or mapping are to be moved so that it begins in a column.
fn shift(text: &str, node: &Node, wanted: usize, shifts: &mut [isize]) {
    let now = column(text, node.span.start.offset as usize);
    let (first, last) = lines_of(node);
    let by = wanted.cast_signed() - now.cast_signed();
    for line in shifts.iter_mut().take(last + 1).skip(first) {
        *line = by;
    }
    let inside = |value: &Node, key_line: usize, key_column: usize, shifts: &mut [isize]| {
        if !is_block(text, value) {
            return;
        }
        let own = column(text, value.span.start.offset as usize);
        let (value_line, _) = lines_of(value);
        let column = if value_line > key_line { wanted + 2 } else { wanted + own - key_column };
        shift(text, value, column, shifts);
    };
    match &node.content {
        Content::Mapping(entries) => {
            for entry in entries {
                inside(&entry.value, entry.key_span.start.line as usize - 1, now, shifts);
            }
        }
        Content::Sequence(elements) => {
            let mut from = node.span.start.offset as usize;
            let mut line = first;
            for element in elements {
                let dash = token::skip(text, from, |_| false);
                line += text.get(from..dash).map_or(0, |it| it.matches('\n').count());
                inside(element, line, now, shifts);
                let end = (element.span.end.offset as usize).max(dash + 1);
                line += text.get(dash..end).map_or(0, |it| it.matches('\n').count());
                from = end;
            }
        }
        Content::Scalar(_) => {}
    }
}

/// Writes the two escapes by which JSON writes a character beyond U+FFFF as that character: most YAML
/// readers refuse them.
fn unescape(text: &str) -> Option<String> {
    let read = read_text(text.as_bytes(), &Limits::DEFAULT).ok()?;
    let mut written = String::with_capacity(text.len());
    let mut at = 0;
    let documents = documents(text)?;
    let mut quoted = Vec::new();
    for document in &documents {
        double_quoted(text, document, &mut quoted);
    }
    quoted.sort_unstable();
    for (pair, character) in read.pairs() {
        let before = quoted.partition_point(|(start, _)| *start <= pair).checked_sub(1);
        if before.and_then(|it| quoted.get(it)).is_some_and(|(_, end)| pair < *end) {
            written.push_str(text.get(at..pair)?);
            written.push(character);
            at = pair + 12;
        }
    }
    written.push_str(text.get(at..)?);
    Some(written)
}

/// Collects the stretches of strings in double quotes.
fn double_quoted(text: &str, node: &Node, found: &mut Vec<(usize, usize)>) {
    let mut note = |span: Span| {
        let (start, end) = (span.start.offset as usize, span.end.offset as usize);
        if text.as_bytes().get(start) == Some(&b'"') {
            found.push((start, end));
        }
    };
    match &node.content {
        Content::Scalar(_) => note(node.span),
        Content::Sequence(_) => {}
        Content::Mapping(entries) => entries.iter().for_each(|it| note(it.key_span)),
    }
    node.elements().iter().for_each(|it| double_quoted(text, it, found));
    node.entries().iter().for_each(|it| double_quoted(text, &it.value, found));
}

/// Puts one blank between a key and its value, and writes lists and mappings in brackets in one
/// way.
fn respace(text: &str) -> Option<String> {
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    for document in documents(text)? {
        spaces(text, &document, &mut changes);
    }
    let mut spaced = String::new();
    let mut at = 0;
    for (from, to, with) in changes {
        spaced.push_str(text.get(at..from)?);
        spaced.push_str(&with);
        at = to;
    }
    spaced.push_str(text.get(at..)?);
    Some(spaced)
}

fn spaces(text: &str, node: &Node, changes: &mut Vec<(usize, usize, String)>) {
    let (start, end) = (node.span.start.offset as usize, node.span.end.offset as usize);
    let token = text.get(start..end).unwrap_or_default();
    if token.starts_with(['[', '{']) {
        // What has comments, anchors or several lines has a layout that its author chose.
        if !token.contains(['\n', '#', '&', '*']) {
            changes.push((start, end, inline(&node.to_value())));
        }
        return;
    }
    if token.starts_with('*') {
        return;
    }
    for element in node.elements() {
        spaces(text, element, changes);
    }
    for entry in node.entries() {
        let key = entry.key_span.end.offset as usize;
        let value = entry.value.span.start.offset as usize;
        let between = text.get(key..value).unwrap_or_default();
        if entry.value.span.start < entry.value.span.end && between.trim() == ":" {
            let same_line = !between.contains('\n');
            if same_line {
                changes.push((key, value, ": ".to_owned()));
            }
        }
        spaces(text, &entry.value, changes);
    }
}

/// Takes out blanks at the ends of lines, and blank lines that follow each other.
fn tidy(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut kept = vec![false; lines.len()];
    for document in documents(text)? {
        keep_texts(&document, &mut kept);
    }
    let mut tidied: Vec<&str> = Vec::new();
    for (line, kept) in lines.iter().zip(kept) {
        let line = if kept { line } else { line.trim_end() };
        let blank = line.is_empty() && !kept;
        if !blank || tidied.last().is_some_and(|it| !it.is_empty()) {
            tidied.push(line);
        }
    }
    Some(format!("{}\n", tidied.join("\n").trim_end_matches('\n')))
}

/// Marks the lines of texts of several lines, in which every blank counts.
fn keep_texts(node: &Node, kept: &mut [bool]) {
    if let Content::Scalar(_) = node.content {
        let (first, last) = lines_of(node);
        for line in kept.iter_mut().take(last + 1).skip(first + 1) {
            *line = true;
        }
    }
    node.elements().iter().for_each(|it| keep_texts(it, kept));
    node.entries().iter().for_each(|it| keep_texts(&it.value, kept));
}

#[cfg(test)]
mod tests;
