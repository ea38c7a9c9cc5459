//! Lists and mappings over several lines.

use super::collect::PlainReader;
use super::flow;
use super::scalar::{Around, LineScalar};
use crate::document::comment;
use crate::document::{Node, Position, Span, bounded};

/// What a value follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueMark {
    /// The colon behind a key.
    Colon,
    /// The dash of an element.
    Dash,
}

/// Reads the value that begins here, and goes to what follows it on another line; a value in brackets must be indented
/// by `least` on all lines.
pub(super) fn value(reader: &mut PlainReader<'_>, least: usize) -> Option<Node> {
    let indent = reader.cursor.indent();
    match reader.cursor.byte()? {
        b'-' if reader.cursor.is_at_dash() => sequence(reader, indent, false),
        b'[' | b'{' => {
            let node = flow::collection(reader, least)?;
            finish(reader)?;
            Some(node)
        }
        // At the begin of a line it may separate documents.
        b'-' | b'.' if indent == 0 => None,
        _ => {
            let scalar = LineScalar::read(&mut reader.cursor, Around::Block)?;
            if is_at_colon(reader) {
                return mapping(reader, indent, scalar);
            }
            let node = reader.scalar(scalar)?;
            finish(reader)?;
            Some(node)
        }
    }
}

/// Ends the line of a value, and goes to what follows.
fn finish(reader: &mut PlainReader<'_>) -> Option<()> {
    reader.cursor.finish_value()?;
    reader.cursor.skip_to_content();
    Some(())
}

/// Returns whether the colon behind a key is here.
fn is_at_colon(reader: &PlainReader<'_>) -> bool {
    reader.cursor.byte() == Some(b':') && reader.cursor.ends_word(reader.cursor.at + 1)
}

fn mapping<'t>(reader: &mut PlainReader<'t>, indent: usize, first: LineScalar<'t>) -> Option<Node> {
    let mut open = reader.open_mapping(first.start)?;
    let mut scalar = first;
    loop {
        let key = reader.key(&scalar)?;
        let value = after_mark(reader, indent, ValueMark::Colon)?;
        reader.add_entry(&mut open, key, value)?;
        if !continues(reader, indent)? {
            return Some(reader.close_mapping(&open, None));
        }
        // At the begin of a line these may separate documents.
        if indent == 0 && matches!(reader.cursor.byte()?, b'-' | b'.') {
            return None;
        }
        scalar = LineScalar::read(&mut reader.cursor, Around::Block)?;
        if !is_at_colon(reader) {
            return None;
        }
    }
}

/// Reads a list; one that stands at the column of its key ends at the next key.
fn sequence(reader: &mut PlainReader<'_>, indent: usize, at_key: bool) -> Option<Node> {
    let open = reader.open_sequence(reader.cursor.at)?;
    loop {
        let element = after_mark(reader, indent, ValueMark::Dash)?;
        reader.add_element(element);
        let continues = continues(reader, indent)?;
        if !continues || at_key && !reader.cursor.is_at_dash() {
            return Some(reader.close_sequence(&open, None));
        }
        if !reader.cursor.is_at_dash() {
            return None;
        }
    }
}

/// Returns whether the next line belongs to a list or mapping; declines one that is indented more, as it may continue
/// a value.
fn continues(reader: &PlainReader<'_>, indent: usize) -> Option<bool> {
    if reader.cursor.byte().is_none() {
        return Some(false);
    }
    let found = reader.cursor.indent();
    (found <= indent).then_some(found == indent)
}

/// Reads the value of a key or element, whose mark is here; the key or dash stands at `indent`.
fn after_mark(reader: &mut PlainReader<'_>, indent: usize, mark: ValueMark) -> Option<Node> {
    reader.cursor.at += 1;
    let behind = reader.cursor.at;
    reader.cursor.skip_blanks();
    match (reader.cursor.byte(), mark) {
        (None | Some(b'\n' | b'#'), _) => {
            let place = reader.cursor.place(behind);
            below_mark(reader, indent, mark, place)
        }
        (Some(_), ValueMark::Dash) => value(reader, indent + 1),
        (Some(b'[' | b'{'), ValueMark::Colon) => {
            let node = flow::collection(reader, indent + 1)?;
            finish(reader)?;
            Some(node)
        }
        (Some(_), ValueMark::Colon) => {
            let scalar = LineScalar::read(&mut reader.cursor, Around::Block)?;
            let node = reader.scalar(scalar)?;
            finish(reader)?;
            Some(node)
        }
    }
}

/// Reads the value below a mark that ends its line, if there is one.
fn below_mark(
    reader: &mut PlainReader<'_>,
    indent: usize,
    mark: ValueMark,
    place: Position,
) -> Option<Node> {
    let comment = comment_as_value(reader);
    reader.cursor.skip_to_content();
    if reader.cursor.byte().is_some() {
        let found = reader.cursor.indent();
        if found > indent {
            return value(reader, indent + 1);
        }
        if found == indent && mark == ValueMark::Colon && reader.cursor.is_at_dash() {
            return sequence(reader, indent, true);
        }
    }
    reader.in_place_of_values.extend(comment.map(|(span, text)| (span, bounded(text.to_owned()))));
    reader.absent(place)
}

/// Returns the comment that begins here if it may have been meant as a value.
fn comment_as_value<'t>(reader: &mut PlainReader<'t>) -> Option<(Span, &'t str)> {
    if reader.cursor.byte() != Some(b'#') {
        return None;
    }
    let text = comment::as_value(reader.cursor.comment())?;
    let start = reader.cursor.at;
    Some((reader.cursor.span(start, start + text.len()), text))
}
