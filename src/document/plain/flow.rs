//! Lists and mappings in brackets.

use super::collect::PlainReader;
use super::scalar::{Around, LineScalar};
use crate::document::Node;

/// Reads the list or mapping whose bracket is here, and goes behind it. Lines that follow must be indented by `least`.
pub(super) fn collection(reader: &mut PlainReader<'_>, least: usize) -> Option<Node> {
    match reader.cursor.byte()? {
        b'[' => sequence(reader, least),
        b'{' => mapping(reader, least),
        _ => None,
    }
}

fn sequence(reader: &mut PlainReader<'_>, least: usize) -> Option<Node> {
    let open = reader.open_sequence(reader.cursor.at)?;
    reader.cursor.at += 1;
    skip_to_part(reader, least)?;
    while reader.cursor.byte()? != b']' {
        let element = value(reader, least)?;
        reader.add_element(element);
        finish_part(reader, least, b']')?;
    }
    reader.cursor.at += 1;
    let end = reader.cursor.place(reader.cursor.at);
    Some(reader.close_sequence(&open, Some(end)))
}

fn mapping(reader: &mut PlainReader<'_>, least: usize) -> Option<Node> {
    let mut open = reader.open_mapping(reader.cursor.at)?;
    reader.cursor.at += 1;
    skip_to_part(reader, least)?;
    while reader.cursor.byte()? != b'}' {
        let scalar = LineScalar::read(&mut reader.cursor, Around::Flow)?;
        let is_plain = scalar.is_plain;
        let key = reader.key(&scalar)?;
        let is_key = reader.cursor.byte()? == b':';
        reader.cursor.at += 1;
        if !is_key || is_plain && !reader.cursor.ends_word(reader.cursor.at) {
            return None;
        }
        skip_to_part(reader, least)?;
        let value = value(reader, least)?;
        reader.add_entry(&mut open, key, value)?;
        finish_part(reader, least, b'}')?;
    }
    reader.cursor.at += 1;
    let end = reader.cursor.place(reader.cursor.at);
    Some(reader.close_mapping(&open, Some(end)))
}

fn value(reader: &mut PlainReader<'_>, least: usize) -> Option<Node> {
    match reader.cursor.byte()? {
        b'[' | b'{' => collection(reader, least),
        _ => {
            let scalar = LineScalar::read(&mut reader.cursor, Around::Flow)?;
            reader.scalar(scalar)
        }
    }
}

/// Goes behind the comma of a part, or to the bracket that closes.
fn finish_part(reader: &mut PlainReader<'_>, least: usize, closing: u8) -> Option<()> {
    skip_to_part(reader, least)?;
    match reader.cursor.byte()? {
        b',' => {
            reader.cursor.at += 1;
            skip_to_part(reader, least)
        }
        byte => (byte == closing).then_some(()),
    }
}

/// Goes to the next part, which may stand on another line.
fn skip_to_part(reader: &mut PlainReader<'_>, least: usize) -> Option<()> {
    let cursor = &mut reader.cursor;
    let behind = cursor.at;
    cursor.skip_blanks();
    match cursor.byte()? {
        b'#' if cursor.at == behind => return None,
        b'#' | b'\n' => cursor.skip_to_content(),
        _ => return Some(()),
    }
    // What begins a line may end the document.
    let ends_document = cursor.indent() == 0 && matches!(cursor.byte(), Some(b'-' | b'.' | b'%'));
    (cursor.indent() >= least && !ends_document).then_some(())
}
