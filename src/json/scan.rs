//! JSON as it stands: where its parts end, and whether they are well formed.
//!
//! What goes through a body most of the time is here, and keeps the place in a register: each
//! function takes the place where it begins, and returns the one behind; `None` declines.

use super::marks::{SpecialBytes, others_than_blanks, others_than_digits};

/// How deep values may lie in each other; what is deeper is read in full.
pub(super) const DEPTH: u32 = 60;

/// A string: the place of the quote that ends it, and whether nothing is escaped.
pub(super) struct Quoted {
    pub(super) end: usize,
    pub(super) is_plain: bool,
}

/// Skips blanks.
#[inline]
pub(super) fn blanks(bytes: &[u8], at: usize) -> usize {
    // Programs mostly write none, or one behind a comma and a colon.
    match bytes.get(at) {
        Some(b' ') if matches!(bytes.get(at + 1), Some(b'!'..)) => at + 1,
        Some(0..=b' ') => some_blanks(bytes, at),
        _ => at,
    }
}

#[inline(never)]
fn some_blanks(bytes: &[u8], mut at: usize) -> usize {
    // Mostly a line's end and the blanks that the next begins with.
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let others = others_than_blanks(*chunk);
        if others != 0 {
            return at + others.trailing_zeros() as usize;
        }
        at += chunk.len();
    }
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Takes a string whose first quote is at a place.
#[inline(always)]
pub(super) fn string(bytes: &[u8], at: usize, special: &mut SpecialBytes) -> Option<Quoted> {
    if *bytes.get(at)? != b'"' {
        return None;
    }
    let (mut end, mut is_plain) = (at + 1, true);
    loop {
        end = special.find(bytes, end);
        match *bytes.get(end)? {
            b'"' => return Some(Quoted { end, is_plain }),
            b'\\' => {
                end = escape(bytes, end)?;
                is_plain = false;
            }
            // A control character.
            _ => return None,
        }
    }
}

/// Takes what is escaped. Halves of a pair of surrogates are declined.
#[cold]
fn escape(bytes: &[u8], at: usize) -> Option<usize> {
    match *bytes.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
        b'u' => {
            let digits = bytes.get(at + 2..at + 6)?;
            let is_surrogate =
                matches!(digits, [b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..]);
            (!is_surrogate && digits.iter().all(u8::is_ascii_hexdigit)).then_some(at + 6)
        }
        _ => None,
    }
}

/// Takes a key with its colon and the blanks behind; returns where the key ends, and the place of
/// the value. Keys that are escaped, or have a meaning to the JSON library, are declined.
#[inline(always)]
pub(super) fn key(bytes: &[u8], at: usize, special: &mut SpecialBytes) -> Option<(usize, usize)> {
    let Quoted { end, is_plain } = string(bytes, at, special)?;
    if !is_plain || bytes.get(at + 1) == Some(&b'$') {
        return None;
    }
    if let Some([b':', b'!'..=0xff]) = bytes.get(end + 1..end + 3) {
        return Some((end, end + 2));
    }
    if let Some([b':', b' ', b'!'..=0xff]) = bytes.get(end + 1..end + 4) {
        return Some((end, end + 3));
    }
    let colon = blanks(bytes, end + 1);
    (*bytes.get(colon)? == b':').then(|| (end, blanks(bytes, colon + 1)))
}

/// Takes digits, of which there must be one.
#[inline(always)]
fn digits(bytes: &[u8], mut at: usize) -> Option<usize> {
    let start = at;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let others = others_than_digits(*chunk);
        if others != 0 {
            at += others.trailing_zeros() as usize;
            return (at > start).then_some(at);
        }
        at += chunk.len();
    }
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > start).then_some(at)
}

fn number(bytes: &[u8], mut at: usize) -> Option<usize> {
    if *bytes.get(at)? == b'-' {
        at += 1;
    }
    at = match *bytes.get(at)? {
        b'0' => at + 1,
        _ => digits(bytes, at)?,
    };
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    // Nothing but these may follow; `01` is not a number.
    matches!(bytes.get(at), None | Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
        .then_some(at)
}

#[inline]
pub(super) fn word(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    let end = at + word.len();
    (bytes.get(at..end)? == word).then_some(end)
}

/// Skips a value that no rule reads, at the given depth.
pub(super) fn value(
    bytes: &[u8],
    at: usize,
    depth: u32,
    special: &mut SpecialBytes,
) -> Option<usize> {
    // For this time in registers.
    let mut special_here = *special;
    let end = skip(bytes, at, depth, &mut special_here)?;
    *special = special_here;
    Some(end)
}

#[inline(always)]
fn skip(bytes: &[u8], mut at: usize, depth: u32, special: &mut SpecialBytes) -> Option<usize> {
    // What is open, the innermost in the lowest bit: an object, or a list. One more bit marks
    // the end; there is room, since depth is limited.
    let deepest = 1_u64 << (DEPTH - depth.min(DEPTH));
    let mut open = 1_u64;
    let mut is_entry = false;
    loop {
        if is_entry {
            at = key(bytes, at, special)?.1;
        }
        match *bytes.get(at)? {
            b'"' => {
                at = string(bytes, at, special)?.end + 1;
                // What mostly follows; it needs no look at what is open.
                if open != 1 && bytes.get(at..at + 2) == Some(b",\"") {
                    at += 1;
                    is_entry = open & 1 == 1;
                    continue;
                }
            }
            bracket @ (b'{' | b'[') => {
                if open >= deepest {
                    return None;
                }
                is_entry = bracket == b'{';
                at = blanks(bytes, at + 1);
                if *bytes.get(at)? != if is_entry { b'}' } else { b']' } {
                    open = open << 1 | u64::from(is_entry);
                    continue;
                }
                at += 1;
            }
            b't' => at = word(bytes, at, b"true")?,
            b'f' => at = word(bytes, at, b"false")?,
            b'n' => at = word(bytes, at, b"null")?,
            _ => at = number(bytes, at)?,
        }
        // Behind a value.
        loop {
            if open == 1 {
                return Some(at);
            }
            at = blanks(bytes, at);
            is_entry = open & 1 == 1;
            match *bytes.get(at)? {
                b',' => {
                    at = blanks(bytes, at + 1);
                    break;
                }
                b'}' if is_entry => at += 1,
                b']' if !is_entry => at += 1,
                _ => return None,
            }
            open >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;
    use serde_json::Value;

    /// Returns whether a text is one value and nothing else.
    fn is_value(text: &[u8]) -> bool {
        value(text, 0, 0, &mut SpecialBytes::first(text)) == Some(text.len())
    }

    /// Texts with a string at a place in which something stands that may end it, and what may follow.
    fn each_text_with_a_string(mut check: impl FnMut(usize, &str)) {
        // Strings begin and end in each part of a block and at its ends.
        for start in [0, 1, 15, 16, 40, 62, 63, 64, 127, 200] {
            for length in 0..=130 {
                // In a string of this length, at its begin, in it and at its end.
                for at in [0, length / 2, length] {
                    for special in ["\"", "\\n", "\\u0041", "\u{1f}", " ", "\u{7f}", "é", "\\x"] {
                        let mut inside = "x".repeat(length);
                        inside.insert_str(at, special);
                        // Behind the end there may be anything, or nothing.
                        for behind in ["", ",\"", "\u{1f}\"\\\"xxxxxxxxxxxxxxxxxx"] {
                            check(start, &format!("{}\"{inside}\"{behind}", " ".repeat(start)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn strings_end_where_they_end() {
        each_text_with_a_string(|start, text| {
            let mut read = serde_json::Deserializer::from_str(text).into_iter::<Value>();
            let expected = read.next().and_then(Result::ok).map(|_| read.byte_offset());
            let special = &mut SpecialBytes::first(text.as_bytes());
            let end = string(text.as_bytes(), start, special).map(|it| it.end + 1);
            assert_eq!(end, expected, "{text:?}");
        });
    }

    #[test]
    fn numbers_end_where_they_end() {
        for length in 0..40 {
            let digits = "7".repeat(length);
            for number in [
                digits.clone(),
                format!("-{digits}"),
                format!("{digits}.5"),
                format!("0.{digits}"),
                format!("1.{digits}e1"),
                format!("1E-{digits}"),
                format!("{digits}x"),
                format!("{digits}/"),
                format!("{digits}:"),
                format!("{digits}\u{b2}"),
            ] {
                for text in [format!("[{number}]"), format!("[{number} ,{number},1234567890]")] {
                    // Nothing is made of the numbers: one that is too great is one.
                    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
                    assert_eq!(is_value(text.as_bytes()), is_json, "{text}");
                }
            }
        }
    }

    #[test]
    fn blanks_stand_where_they_may() {
        for length in 0..40 {
            for last in [" ", "\n", "\r", "\t", "\u{b}", "\u{c}", "\0", "\u{85}", "\u{a0}"] {
                let blanks = " ".repeat(length) + last;
                for text in [
                    format!("[{blanks}1{blanks},{blanks}2{blanks}]"),
                    format!("{{{blanks}\"a\"{blanks}:{blanks}\"b\"{blanks}}}"),
                    format!("{{\"a\":{blanks}1,{blanks}\"b\":{blanks}[{blanks}]}}"),
                ] {
                    let is_json = serde_json::from_str::<Value>(&text).is_ok();
                    assert_eq!(is_value(text.as_bytes()), is_json, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn an_invalid_value_is_declined() {
        let rows = [
            "0",
            "-0",
            "10",
            "1.5",
            "-1.5e10",
            "1E+2",
            "1e-2",
            "true",
            "false",
            "null",
            "[]",
            "{}",
            "[1,[2],{\"a\":[]}]",
            "{\"a\" : {\"b\":null} , \"c\":\"\"}",
            "[ ]",
            "{ }",
        ];
        each_row(rows, |text| {
            assert!(is_value(text.as_bytes()) && serde_json::from_str::<Value>(text).is_ok());
        });
        let rows = [
            "",
            "-",
            "01",
            "1.",
            ".5",
            "1e",
            "+1",
            "tru",
            "nulL",
            "[",
            "]",
            "[1,]",
            "[,1]",
            "{1:2}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "[1}",
            "{\"a\":1]",
            "[1 2]",
            "\"a",
            "'a'",
            "1x",
        ];
        each_row(rows, |text| {
            assert!(!is_value(text.as_bytes()), "{text}");
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        });
        // Keys that the JSON library may read differently are left to it.
        for text in
            ["{\"\\u0061\":1}", "{\"$serde_json::private::Number\":\"1\"}", "\"\\ud83d\\ude00\""]
        {
            assert!(!is_value(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_deep_is_declined() {
        for (before, levels, fits) in [(0, 60, true), (0, 61, false), (59, 1, true), (60, 1, false)]
        {
            for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
                let text = format!("{}1{}", open.repeat(levels), close.repeat(levels));
                let end =
                    value(text.as_bytes(), 0, before, &mut SpecialBytes::first(text.as_bytes()));
                assert_eq!(end, fits.then_some(text.len()), "{before} {levels}");
            }
            let empty = format!("{}[]{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
            assert_eq!(
                value(empty.as_bytes(), 0, before, &mut SpecialBytes::first(empty.as_bytes()))
                    .is_some(),
                fits
            );
        }
    }
}
