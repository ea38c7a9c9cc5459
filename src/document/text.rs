//! Bytes to text.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::place::PositionIndex;
use super::{Fault, FaultKind, Limits, Position, Span};

/// The text of a file, ready to be parsed.
pub struct Text<'b> {
    /// What the parser is given.
    pub(super) parsed: Cow<'b, str>,
    /// What stands in the file.
    pub(super) original: &'b str,
    pub(super) index: PositionIndex,
    /// Where the pairs of escapes begin in `original` that are one escape in `parsed`.
    pub(super) pairs: Vec<usize>,
}

impl Text<'_> {
    /// Returns the place in the file of each pair of escapes that may stand for one character, with
    /// that character.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, char)> {
        let skipped = self.index.skipped_bytes() as usize;
        self.pairs.iter().filter_map(move |at| {
            let character = surrogate_pair(self.original.get(*at..)?)?;
            Some((at + skipped, char::from_u32(character)?))
        })
    }
}

impl std::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Text").field(&self.original).finish()
    }
}

/// The text of a file as it stands there.
#[derive(Clone, Copy)]
pub(super) struct DecodedText<'b> {
    /// The byte-order mark before the text, if there is one.
    pub(super) skipped: &'b str,
    /// The text.
    pub(super) original: &'b str,
}

impl<'b> DecodedText<'b> {
    /// Prepares the text for the parser.
    pub(super) fn prepared(self) -> Text<'b> {
        let Self { skipped, original } = self;
        let JoinedText { parsed, shifts, pairs } = join_surrogates(original);
        Text { parsed, original, index: PositionIndex::new(original, skipped, shifts), pairs }
    }
}

/// Turns the bytes of a file into text, ready to be parsed.
///
/// # Errors
///
/// Returns a fault for a file that is too large, not UTF-8, or has control characters.
pub fn read_text<'b>(bytes: &'b [u8], limits: &Limits) -> Result<Text<'b>, Fault> {
    decode(bytes, limits).map(DecodedText::prepared)
}

/// Turns the bytes of a file into text.
///
/// # Errors
///
/// Returns a fault for a file that is too large, not UTF-8, or has control characters.
pub(super) fn decode<'b>(bytes: &'b [u8], limits: &Limits) -> Result<DecodedText<'b>, Fault> {
    if bytes.len() as u64 > limits.file_bytes {
        return Err(too_large(bytes.len() as u64, limits));
    }
    let all = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let before = std::str::from_utf8(valid).unwrap_or_default();
            let span = at_end_of(before);
            let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
            let message = format!("the file is not UTF-8: found the byte 0x{byte:02x}");
            return Err(
                Fault::new(FaultKind::Malformed, span, message).with_help("save the file in UTF-8")
            );
        }
    };
    let original = all.strip_prefix('\u{feff}').unwrap_or(all);
    let skipped = all.get(..all.len() - original.len()).unwrap_or_default();
    let control = |it: u8| it < b' ' && !matches!(it, b'\t' | b'\n' | b'\r');
    // Asked of all first, many at once: nearly no file has one.
    if original.bytes().fold(false, |any, it| any | control(it))
        && let Some((at, byte)) = original.bytes().enumerate().find(|(_, it)| control(*it))
    {
        let span = at_end_of(original.get(..at).unwrap_or_default());
        let message = format!("the file has the control character U+{byte:04X}");
        return Err(Fault::new(FaultKind::Malformed, span, message)
            .with_help("write it as an escape in a double-quoted string"));
    }
    Ok(DecodedText { skipped, original })
}

/// Returns the fault of a file that is larger than the limit.
pub(super) fn too_large(size: u64, limits: &Limits) -> Fault {
    let message = format!("the file has {size} bytes, {} are allowed", limits.file_bytes);
    Fault::new(FaultKind::TooLarge, Span::START, message).with_help("split it into several files")
}

/// Returns the place behind a text.
fn at_end_of(before: &str) -> Span {
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
    let start =
        Position { offset: number(before.len()), line: number(line), column: number(column) };
    Span { start, end: start }
}

/// How many characters a pair of escapes has: `\ud83d\ude00`.
const PAIR: usize = 12;

/// A text in which each pair of escapes is one.
struct JoinedText<'t> {
    parsed: Cow<'t, str>,
    /// For each pair the place behind what replaces it, and how many characters are left out so far.
    shifts: Vec<(u32, u32)>,
    /// Where each pair began.
    pairs: Vec<usize>,
}

/// Writes the pairs of `\u` escapes by which JSON writes a character beyond U+FFFF as one escape
/// that YAML has.
///
/// Outside of double quotes the same characters stand for themselves: [`written_out`] puts them
/// back when the parser says what they are part of.
fn join_surrogates(text: &str) -> JoinedText<'_> {
    let mut joined =
        JoinedText { parsed: Cow::Borrowed(text), shifts: Vec::new(), pairs: Vec::new() };
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return joined;
    }
    let mut parsed = String::with_capacity(text.len());
    let (mut written, mut left_out) = (0_u32, 0_u32);
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) {
        let next = rest.find('\\').unwrap_or(rest.len());
        let plain = rest.get(..next).unwrap_or_default();
        parsed.push_str(plain);
        written += u32::try_from(plain.chars().count()).unwrap_or_default();
        at += next;
        let Some(escape) = text.get(at..).filter(|it| !it.is_empty()) else { break };
        if let Some(code) = surrogate_pair(escape) {
            let _infallible = write!(parsed, "\\U{code:08x}");
            written += 10;
            left_out += 2;
            joined.shifts.push((written, left_out));
            joined.pairs.push(at);
            at += PAIR;
        } else {
            // A backslash takes the next character with it: another one does not escape.
            let taken: String = escape.chars().take(2).collect();
            written += u32::try_from(taken.chars().count()).unwrap_or_default();
            at += taken.len();
            parsed.push_str(&taken);
        }
    }
    joined.parsed = Cow::Owned(parsed);
    joined
}

/// Returns a scalar that is not in double quotes with the pairs of escapes that its text has in the
/// file; `None` if there are none. `stretch` is its place in the original text.
pub(super) fn written_out(text: &Text<'_>, read: &str, stretch: (usize, usize)) -> Option<String> {
    let (from, to) = stretch;
    let first = text.pairs.partition_point(|it| *it < from);
    text.pairs.get(first).filter(|it| **it < to)?;
    let written = text.original.get(from..to)?;
    // The backslashes of the file, but for the second of a pair, are those of the text that was
    // read. What stands before the text, such as an anchor, may have more.
    let mut marks = Vec::new();
    let mut behind = 0;
    for (at, _) in written.match_indices('\\') {
        if at >= behind {
            let is_pair = text.pairs.binary_search(&(from + at)).is_ok();
            let pair = written.get(at..at + PAIR).filter(|_| is_pair);
            behind = at + pair.map_or(1, str::len);
            marks.push(pair);
        }
    }
    let places: Vec<usize> = read.match_indices('\\').map(|(at, _)| at).collect();
    let marks = marks.get(marks.len().checked_sub(places.len())?..)?;
    let mut restored = String::with_capacity(read.len());
    let mut at = 0;
    for (place, mark) in places.into_iter().zip(marks) {
        let Some(pair) = mark else { continue };
        restored.push_str(read.get(at..place)?);
        restored.push_str(pair);
        at = place + 10;
    }
    restored.push_str(read.get(at..)?);
    Some(restored)
}

/// Returns the code point of the pair of escapes that the text starts with.
fn surrogate_pair(text: &str) -> Option<u32> {
    let (high, low) = (escaped_unit(text)?, escaped_unit(text.get(6..)?)?);
    let is_pair = (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low);
    is_pair.then(|| 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
}

/// Returns the number of the escape `\uXXXX` that the text starts with.
pub(super) fn escaped_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}
