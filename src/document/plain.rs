//! A fast reader for files that are written plainly, as nearly all are.
//!
//! It reads block mappings and lists, values in brackets, and scalars of one line in one pass, without the parser's
//! events. What is not certain it declines: then [`build`](super::build) reads the file. What it reads is what that
//! reads, with the same places, and without a fault.

mod block;
mod collect;
#[cfg(any(test, feature = "fuzzing"))]
mod comparison;
mod cursor;
mod flow;
mod scalar;

use memchr::{memchr_iter, memchr2};

use super::comment;
use super::place::PositionIndex;
use super::text::DecodedText;
use super::{Content, Contents, Limits, Node};
use collect::PlainReader;
#[cfg(feature = "fuzzing")]
pub use comparison::fuzz_plain;
use cursor::LineCursor;

/// Reads a file that is written plainly, and returns how many keys and values it has; `None` if it is not.
pub(super) fn read(text: DecodedText<'_>, limits: &Limits) -> Option<(Contents, usize)> {
    let original = text.original;
    let is_ascii = original.is_ascii();
    if !is_ascii && original.contains('\u{feff}') || has_other_syntax(original.as_bytes()) {
        return None;
    }
    let cursor = LineCursor::new(original, is_ascii, text.skipped.len());
    let mut reader = PlainReader::new(cursor, limits.depth);
    let documents = documents(&mut reader)?;
    let ignores = match reader.cursor.has_comment_lines && comment::may_have_ignores(original) {
        true => {
            let index = PositionIndex::new(original, text.skipped, Vec::new());
            comment::find(original, &[], &index)
        }
        false => Vec::new(),
    };
    let in_place_of_values = std::mem::take(&mut reader.in_place_of_values);
    let contents = Contents { documents, ignores, in_place_of_values, ..Contents::default() };
    Some((contents, reader.values))
}

/// Returns whether a text has tabs, carriage returns, or escapes that may be half a character.
fn has_other_syntax(bytes: &[u8]) -> bool {
    memchr2(b'\t', b'\r', bytes).is_some()
        || memchr_iter(b'\\', bytes).any(|at| bytes.get(at + 1) == Some(&b'u'))
}

/// Reads the only document; there is none in a file of comments.
fn documents(reader: &mut PlainReader<'_>) -> Option<Vec<Node>> {
    reader.cursor.skip_to_content();
    let rest = reader.cursor.text.get(reader.cursor.at..)?;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    if rest.starts_with("---\n") && reader.cursor.indent() == 0 {
        reader.cursor.at += 3;
        reader.cursor.skip_to_content();
    }
    let root = block::value(reader, 0)?;
    let is_whole = reader.cursor.byte().is_none();
    (is_whole && !matches!(root.content, Content::Scalar(_))).then(|| vec![root])
}

#[cfg(test)]
mod tests;
