//! Bytes to text.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::place::Index;
use super::{Fault, FaultKind, Limits, Position, Span};

/// The text of a file, ready to be parsed.
pub struct Text<'b> {
    /// What the parser is given.
    pub(super) parsed: Cow<'b, str>,
    /// What stands in the file.
    pub(super) original: &'b str,
    pub(super) index: Index,
}

impl std::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Text").field(&self.original).finish()
    }
}

/// Turns the bytes of a file into text.
///
/// # Errors
///
/// Returns a fault for a file that is too large, not UTF-8, or has control characters.
pub fn read_text<'b>(bytes: &'b [u8], limits: &Limits) -> Result<Text<'b>, Fault> {
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
            let message = format!("the file is not UTF-8: here is the byte 0x{byte:02x}");
            return Err(
                Fault::new(FaultKind::Malformed, span, message).with_help("save the file in UTF-8")
            );
        }
    };
    let original = all.strip_prefix('\u{feff}').unwrap_or(all);
    let skipped = all.get(..all.len() - original.len()).unwrap_or_default();
    let control = |it: u8| it < b' ' && !matches!(it, b'\t' | b'\n' | b'\r');
    if let Some((at, byte)) = original.bytes().enumerate().find(|(_, it)| control(*it)) {
        let span = at_end_of(original.get(..at).unwrap_or_default());
        let message = format!("the file has the control character U+{byte:04X}");
        return Err(Fault::new(FaultKind::Malformed, span, message)
            .with_help("write it as an escape in a double-quoted string"));
    }
    let (parsed, shifts) = join_surrogates(original);
    Ok(Text { parsed, original, index: Index::new(original, skipped, shifts) })
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

/// Writes the pairs of `\u` escapes by which JSON writes a character beyond U+FFFF as one escape
/// that YAML has; returns for each the place behind it and how many characters are left out so far.
///
/// Only a text that is JSON as a whole is changed: elsewhere the same characters may stand for
/// themselves.
fn join_surrogates(text: &str) -> (Cow<'_, str>, Vec<(u32, u32)>) {
    let starts_like_json = text.trim_start().starts_with(['{', '[', '"']);
    let has_surrogates = || text.contains("\\ud") || text.contains("\\uD");
    if !starts_like_json || !has_surrogates() || serde_json::from_str::<IgnoredAny>(text).is_err() {
        return (Cow::Borrowed(text), Vec::new());
    }
    let mut joined = String::with_capacity(text.len());
    let mut shifts = Vec::new();
    let (mut written, mut left_out) = (0_u32, 0_u32);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (taken, replacement) = match (character, surrogate_pair(rest)) {
            ('\\', Some(code)) => (12, format!("\\U{code:08x}")),
            ('\\', None) => {
                let pair: String = rest.chars().take(2).collect();
                (pair.len(), pair)
            }
            _ => (character.len_utf8(), character.to_string()),
        };
        joined.push_str(&replacement);
        written += u32::try_from(replacement.chars().count()).unwrap_or_default();
        if taken == 12 {
            left_out += 2;
            shifts.push((written, left_out));
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    (Cow::Owned(joined), shifts)
}

/// Returns the character of the pair of escapes that the text starts with.
fn surrogate_pair(text: &str) -> Option<u32> {
    let unit = |at: usize| -> Option<u32> {
        let escape = text.get(at..at + 6)?;
        u32::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()
    };
    let (high, low) = (unit(0)?, unit(6)?);
    let is_pair = (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low);
    is_pair.then(|| 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
}
