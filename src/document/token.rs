//! Where values begin and end: the parser's stretches take in anchors, blanks and comments, and
//! leave out what introduces a text of several lines.

use saphyr_parser::ScalarStyle;

/// Returns the bytes of a scalar proper: no anchor, no blanks or comment behind it, and a text of
/// several lines with its `|` or `>`.
pub(super) fn scalar(
    text: &str,
    style: ScalarStyle,
    absent: bool,
    (start, end): (usize, usize),
) -> (usize, usize) {
    match style {
        ScalarStyle::Plain => {
            let inside = after_properties(text, start).min(end);
            // An absent value has no token: what the parser names then is what follows.
            if absent { (inside, inside) } else { (inside, end) }
        }
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
            let start = after_properties(text, start);
            (start, quoted(text, start).unwrap_or(end))
        }
        ScalarStyle::Literal | ScalarStyle::Folded => block(text, start, end),
    }
}

/// Returns whether the text of a block scalar, which begins with its `|` or `>`, has a line break more than YAML gives it: its last
/// line ends with the file, where the parser takes a line break for granted.
pub(super) fn is_cut_off(file: &str, text: &str, (start, end): (usize, usize)) -> bool {
    if end < file.len() || file.ends_with(['\n', '\r']) {
        return false;
    }
    let scalar = file.get(start..).unwrap_or_default().replace("\r\n", "\n");
    let is_blank = |line: &&str| line.len() == indentation(line);
    let first = scalar.split(['\n', '\r']).skip(1).find(|it| !is_blank(it)).map_or(0, indentation);
    let own = text.split('\n').find(|it| !is_blank(it)).map_or(0, indentation);
    let margin = first.saturating_sub(own);
    let content = text.trim_end_matches('\n');
    let last = content.rsplit('\n').next().unwrap_or_default();
    // Blanks beyond the indentation are content.
    let ends_with_blanks = !last.is_empty() && is_blank(&last);
    let is_content =
        |line: &str| !is_blank(&line) || (ends_with_blanks && line.len() >= margin + last.len());
    let behind = scalar.rsplit(['\n', '\r']).take_while(|it| !is_content(it)).count();
    // The line break behind the header is none of the text.
    let breaks = behind.saturating_sub(usize::from(content.is_empty()));
    text.len() - content.len() > breaks
}

/// Returns by how many blanks a line is indented.
fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns the first byte of a list or mapping, behind its anchor.
pub(super) fn collection(text: &str, start: usize) -> usize {
    match text.as_bytes().get(start) {
        Some(b'&' | b'!') => after_properties(text, start),
        _ => start,
    }
}

/// Returns the place of the first dash of a list, from the end of its key.
pub(super) fn first_dash(text: &str, key_end: usize) -> Option<usize> {
    let colon = skip(text, key_end, |_| false);
    let at = skip(text, colon + 1, |_| false);
    let at = after_properties(text, at);
    let bytes = text.as_bytes();
    (bytes.get(colon) == Some(&b':') && bytes.get(at) == Some(&b'-')).then_some(at)
}

/// Returns the place behind the bracket that closes a list or mapping; `from` is a place behind
/// its last part.
pub(super) fn closing_bracket(text: &str, from: usize) -> Option<usize> {
    let at = skip(text, from, |it| matches!(it, b',' | b':' | b'?'));
    matches!(text.as_bytes().get(at), Some(b']' | b'}')).then_some(at + 1)
}

/// Returns the place behind blanks, line breaks, comments, and the bytes that are `also` skipped.
pub(super) fn skip(text: &str, from: usize, also: fn(u8) -> bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        let before = at.checked_sub(1).and_then(|it| bytes.get(it));
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'#' if before.is_none_or(|it| it.is_ascii_whitespace() || also(*it)) => {
                at = line_end(text, at);
            }
            other if also(*other) => at += 1,
            _ => break,
        }
    }
    at
}

/// Returns where the line of a place ends, before its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.find('\n').map_or(text.len(), |it| at + it);
    if text.as_bytes().get(end.wrapping_sub(1)) == Some(&b'\r') && end > at { end - 1 } else { end }
}

/// Skips anchors and tags, with what stands between them and the value.
fn after_properties(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(b'&' | b'!') = bytes.get(at) {
        let token = text.get(at..).unwrap_or_default();
        let length = token.find(|it: char| it.is_ascii_whitespace()).unwrap_or(token.len());
        let behind = at + length;
        let next = skip(text, behind, |_| false);
        // An anchor at the end of a line may be that of a null. The end of the line is only looked for behind the
        // last value: a line can be the whole file.
        if bytes.get(next).is_none() && line_end(text, behind) < next {
            return behind;
        }
        at = next;
    }
    at
}

/// Returns the place behind a quoted string.
pub(super) fn quoted(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = *bytes.get(start).filter(|it| matches!(it, b'"' | b'\''))?;
    let mut at = start + 1;
    loop {
        let byte = *bytes.get(at)?;
        match byte {
            b'\\' if quote == b'"' => at += 2,
            b'\'' if quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') => at += 2,
            _ if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Returns the stretch of a text of several lines from its indicator to its last line with text.
fn block(text: &str, start: usize, end: usize) -> (usize, usize) {
    let inside = after_properties(text, start);
    let content_end = |from: usize, least: usize| {
        let content = text.get(from..end.max(from)).unwrap_or_default();
        let length = content.trim_end().len();
        if length == 0 { least } else { from + length }
    };
    if inside > start && matches!(text.as_bytes().get(inside), Some(b'|' | b'>')) {
        return (inside, content_end(inside, inside + 1));
    }
    let line_start = text.get(..start).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let mut before = text.get(..line_start).unwrap_or_default();
    while let Some(rest) = before.strip_suffix('\n') {
        let from = rest.rfind('\n').map_or(0, |it| it + 1);
        let line = rest.get(from..).unwrap_or_default();
        if !line.trim().is_empty() {
            return match header(line) {
                Some((at, behind)) => (from + at, content_end(start, from + behind)),
                None => (start, content_end(start, start)),
            };
        }
        before = rest.get(..from).unwrap_or_default();
    }
    (start, content_end(start, start))
}

/// Finds the indicator that introduces a text of several lines, and the place behind it.
fn header(line: &str) -> Option<(usize, usize)> {
    line.match_indices(['|', '>']).find_map(|(at, _)| {
        let before = line.get(..at)?;
        let rest = line.get(at + 1..)?;
        let indicators = rest.len()
            - rest
                .trim_start_matches(|it: char| it.is_ascii_digit() || matches!(it, '+' | '-'))
                .len();
        let tail = rest.get(indicators..)?;
        let ends = tail.trim().is_empty()
            || (tail.starts_with([' ', '\t']) && tail.trim_start().starts_with('#'));
        let begins = before.is_empty() || before.ends_with([' ', '\t']);
        (begins && ends).then_some((at, at + 1 + indicators))
    })
}

/// Returns where the line of a place begins.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1)
}
