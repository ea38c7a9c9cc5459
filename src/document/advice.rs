//! What is probably wrong where a text stops being YAML.
//!
//! The parser says where it could not go on. People look for what they wrote, so the text around
//! that place is compared with the usual mistakes. A guess only changes the words and the place
//! of a fault that is there anyway.

use super::text::escaped_unit;
use super::token::{self, line_end, line_start};
use super::write::quote;

/// A fault of the syntax in words that help.
#[derive(Debug)]
pub(super) struct SyntaxAdvice {
    /// Where it is, in bytes.
    pub(super) at: (usize, usize),
    pub(super) message: String,
    pub(super) help: String,
    pub(super) related: Option<((usize, usize), &'static str)>,
}

impl SyntaxAdvice {
    fn new(at: (usize, usize), message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: help.into(), related: None }
    }

    fn with_related(self, at: (usize, usize), message: &'static str) -> Self {
        Self { related: Some((at, message)), ..self }
    }
}

/// Returns what is probably wrong at the byte where the parser stopped.
pub(super) fn advise(text: &str, at: usize) -> Option<SyntaxAdvice> {
    let at = at.min(text.len());
    let before = || last_line(text, at);
    conflict(text, at)
        .or_else(|| in_quotes(text, at))
        .or_else(|| tab(text, at))
        .or_else(|| hard_space(text, line_start(text, at)))
        .or_else(|| behind_quotes(text, at))
        .or_else(|| reserved(text, at))
        .or_else(|| directive(text, before()?))
        .or_else(|| bracket(text, at))
        .or_else(|| colon(text, at))
        .or_else(|| hard_space(text, before()?))
        .or_else(|| no_blank(text, before()?))
        .or_else(|| indentation(text, at))
        .or_else(|| is_first(text, at).then(|| no_key(text, before()?))?)
}

fn line(text: &str, start: usize) -> &str {
    text.get(start..line_end(text, start)).unwrap_or_default()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank_or_comment(line: &str) -> bool {
    let content = line.trim();
    content.is_empty() || content.starts_with('#')
}

/// Returns where the last line with content before the line of a place begins.
fn last_line(text: &str, at: usize) -> Option<usize> {
    lines_above(text, at).next()
}

/// Returns where the lines with content above the line of a place begin, the nearest first.
fn lines_above(text: &str, at: usize) -> impl Iterator<Item = usize> {
    let starts = std::iter::successors(Some(line_start(text, at)), move |start| {
        start.checked_sub(1).map(|end| line_start(text, end))
    });
    starts.skip(1).filter(move |start| !is_blank_or_comment(line(text, *start)))
}

/// The marks that git writes into a file which it could not merge. They stop the parser in their own line or below.
fn conflict(text: &str, at: usize) -> Option<SyntaxAdvice> {
    let next = (line_end(text, at) + 1).min(text.len());
    let above = text.get(..line_end(text, next))?;
    let marked = |text: &str, mark: &str| match text.starts_with(mark) {
        true => Some(0),
        false => text.find(&format!("\n{mark}")).map(|it| it + 1),
    };
    let whole = marked(above, "<<<<<<< ")
        .filter(|start| text.get(*start..).is_some_and(|it| marked(it, ">>>>>>> ").is_some()));
    // One of the lines may be left.
    let is_mark = |start: &usize| {
        let line = line(text, *start).trim_end();
        ["<<<<<<< ", "||||||| ", ">>>>>>> "].iter().any(|it| line.starts_with(it))
            || line == "======="
    };
    let left = || std::iter::once(line_start(text, at)).chain(last_line(text, at)).find(is_mark);
    let start = whole.or_else(left)?;
    let message = "git could not merge this part of the file: both versions stand here";
    // With `merge.conflictStyle=diff3` the text before both versions stands there, too.
    let base = if marked(text, "|||||||").is_some() { "`|||||||`, " } else { "" };
    let help = format!(
        "keep what is right of both, remove the lines that start with `<<<<<<<`, {base}`=======` and `>>>>>>>`, and `git add` the file"
    );
    Some(SyntaxAdvice::new((start, line_end(text, start)), message, help))
}

/// A string in quotes that opens here: an escape that is none, or no end.
fn in_quotes(text: &str, at: usize) -> Option<SyntaxAdvice> {
    let sign = *text.as_bytes().get(at)?;
    if !matches!(sign, b'"' | b'\'') {
        return None;
    }
    if sign == b'"'
        && let Some(advice) = escape(text, at)
    {
        return Some(advice);
    }
    let is_closed = token::quoted(text, at).is_some_and(|end| end <= line_end(text, at));
    if is_closed {
        return None;
    }
    let (sign, inside) = if sign == b'"' { ('"', "\\\"") } else { ('\'', "''") };
    let help = format!("put a `{sign}` at its end; inside of it, `{sign}` is written `{inside}`");
    Some(SyntaxAdvice::new(
        (at, at + 1),
        format!("the string that `{sign}` opens here is not closed"),
        help,
    ))
}

/// The first escape in double quotes that means nothing.
fn escape(text: &str, open: usize) -> Option<SyntaxAdvice> {
    let mut at = open + 1;
    while let Some(character) = text.get(at..).and_then(|it| it.chars().next()) {
        if character == '"' {
            return None;
        }
        if character != '\\' {
            at += character.len_utf8();
            continue;
        }
        let rest = text.get(at..)?;
        let sign = rest.chars().nth(1)?;
        let digits = match sign {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let shown: String = rest.chars().take(2 + digits).collect();
        let span = (at, at + shown.len());
        if !"0abt\tnvfre \"/\\N_LPxuU\n\r".contains(sign) {
            let help = "write a backslash as `\\\\`, or put the string in single quotes";
            return Some(SyntaxAdvice::new(span, format!("`{shown}` is not an escape"), help));
        }
        if let Some(unit) = escaped_unit(rest).filter(|it| (0xd800..0xe000).contains(it)) {
            let next = rest.get(6..).and_then(escaped_unit);
            let is_low = |it: u32| (0xdc00..0xe000).contains(&it);
            if unit >= 0xdc00 || !next.is_some_and(is_low) {
                let help = "write both halves, as in `\\ud83d\\ude00`, or the character itself";
                return Some(SyntaxAdvice::new(
                    span,
                    format!("`{shown}` is half of a character"),
                    help,
                ));
            }
            at += 12;
            continue;
        }
        let is_hex = shown.chars().skip(2).all(|it| it.is_ascii_hexdigit());
        if digits > 0 && (!is_hex || shown.chars().count() < 2 + digits) {
            let help = "write a backslash as `\\\\`, or put the string in single quotes";
            let message = format!("`\\{sign}` needs {digits} hexadecimal digits");
            return Some(SyntaxAdvice::new((at, at + 2), message, help));
        }
        at += shown.len();
    }
    None
}

/// A tab among the blanks before a line, or before the next one.
fn tab(text: &str, at: usize) -> Option<SyntaxAdvice> {
    let next = (line_end(text, at) + 1).min(text.len());
    [line_start(text, at), line_start(text, next)].into_iter().find_map(|start| {
        let line = line(text, start);
        let margin = line.get(..line.len() - line.trim_start().len())?;
        let tab = start + margin.find('\t').filter(|_| !line.trim().is_empty())?;
        let help = "use spaces: YAML allows no tabs there";
        Some(SyntaxAdvice::new((tab, tab + 1), "a tab indents this line", help))
    })
}

/// A blank that is not the one of the keyboard, where one would make a key.
fn hard_space(text: &str, start: usize) -> Option<SyntaxAdvice> {
    let line = line(text, start);
    let is_hard = |it: char| it.is_whitespace() && !it.is_ascii();
    let (at, found) = line.char_indices().find(|(_, it)| is_hard(*it))?;
    let before = line.get(..at).unwrap_or_default();
    if !(before.trim().is_empty() || before.ends_with([':', '-'])) {
        return None;
    }
    let at = start + at;
    let message =
        format!("the blank here is U+{:04X}, which YAML takes for a letter", u32::from(found));
    let help = "write a space in its place; such blanks come with text copied from web pages";
    Some(SyntaxAdvice::new((at, at + found.len_utf8()), message, help))
}

/// Text behind a string in quotes.
fn behind_quotes(text: &str, at: usize) -> Option<SyntaxAdvice> {
    let before = text.get(line_start(text, at)..at)?.trim_end();
    let rest = text.get(at..line_end(text, at))?.trim_end();
    let sign = before.chars().last().filter(|it| matches!(it, '"' | '\''))?;
    let is_next = rest.is_empty() || rest.starts_with([',', ']', '}', ':', '#', '"', '\'']);
    if is_next {
        return None;
    }
    let help = if sign == '\'' {
        "inside of single quotes `'` is written `''`; or put the whole value in double quotes"
    } else {
        "inside of double quotes `\"` is written `\\\"`; or put the whole value in quotes"
    };
    let message = format!("the string ends at the `{sign}` before this text");
    Some(SyntaxAdvice::new((at, at + rest.len()), message, help))
}

/// A value that starts with a sign to which YAML gives a meaning.
fn reserved(text: &str, at: usize) -> Option<SyntaxAdvice> {
    let rest = text.get(at..line_end(text, at))?;
    let sign = rest.chars().next()?;
    let value = value_at(rest);
    let span = (at, at + value.len().max(1));
    let quoted = format!("put it in quotes: {}", quote(value));
    let advice = match sign {
        '%' if value.starts_with("%{") => {
            let help = format!(
                "`%{{…}}` is Hiera's and stays text here; put it in quotes: {}",
                quote(value)
            );
            SyntaxAdvice::new(span, format!("a value cannot start with `{sign}`"), help)
        }
        '%' | '@' | '`' => {
            SyntaxAdvice::new(span, format!("a value cannot start with `{sign}`"), quoted)
        }
        '*' => SyntaxAdvice::new(
            span,
            "`*` refers to a value marked with `&`, and there is none of this name",
            quoted,
        ),
        '&' => SyntaxAdvice::new(
            span,
            "`&` marks a value for later use, and a name must follow",
            quoted,
        ),
        '|' | '>' if value.len() > 1 => {
            let help = format!("start the text on the next line, or {quoted}");
            SyntaxAdvice::new(
                span,
                format!("`{sign}` introduces lines of text, which start below"),
                help,
            )
        }
        '-' if value.starts_with("- ") && !is_first(text, at) => {
            let help = format!("write `{value}` on the next line, or the list in brackets");
            SyntaxAdvice::new(span, "a list starts on the line below its key", help)
        }
        '?' if value.starts_with("? ") && !is_first(text, at) => {
            SyntaxAdvice::new(span, "a value cannot start with `? `", quoted)
        }
        _ => return None,
    };
    Some(advice)
}

/// A line that starts with `%` before the document.
fn directive(text: &str, start: usize) -> Option<SyntaxAdvice> {
    let line = line(text, start).trim_end();
    let message = "a line that starts with `%` is a directive of YAML and no content";
    let help = "put what starts with `%` in quotes, or leave the sign out";
    line.starts_with('%').then(|| SyntaxAdvice::new((start, start + line.len()), message, help))
}

/// Returns whether nothing stands before a place in its line.
fn is_first(text: &str, at: usize) -> bool {
    text.get(line_start(text, at)..at).is_some_and(|it| it.trim().is_empty())
}

/// Returns a value up to the end of its line, its comment, or the list or mapping that it is in.
fn value_at(rest: &str) -> &str {
    let end = rest.find(" #").unwrap_or(rest.len());
    let value = rest.get(..end).unwrap_or_default().trim_end();
    let opens = value.starts_with("%{");
    let end = if opens { None } else { value.find([',', ']', '}']) };
    end.and_then(|it| value.get(..it)).unwrap_or(value)
}

/// A bracket that is not closed, or closed by another.
fn bracket(text: &str, at: usize) -> Option<SyntaxAdvice> {
    let open = *open_brackets(text, 0, at).last()?;
    let sign = char::from(*text.as_bytes().get(open)?);
    let close = if sign == '[' { ']' } else { '}' };
    let found = text.get(at..).and_then(|it| it.chars().next());
    let is_closed = open_brackets(text, open, text.len()).is_empty();
    let opens = (open, open + 1);
    match found {
        Some(found) if matches!(found, ']' | '}') && found != close => {
            let message = format!("expected `,` or `{close}`, found `{found}`");
            let help = format!("close the `{sign}` with `{close}` first");
            Some(
                SyntaxAdvice::new((at, at + 1), message, help).with_related(opens, "it opens here"),
            )
        }
        Some(found) if is_closed => {
            let message = format!("expected `,` or `{close}`, found `{found}`");
            let help = "put a `,` between two elements, and text with signs in quotes";
            let span = (at, at + found.len_utf8());
            Some(
                SyntaxAdvice::new(span, message, help)
                    .with_related(opens, "the brackets open here"),
            )
        }
        _ => {
            let help = format!("put a `{close}` at its end");
            Some(SyntaxAdvice::new(
                opens,
                format!("the `{sign}` that opens here is not closed"),
                help,
            ))
        }
    }
}

/// Returns the brackets that open between two places and are not closed there.
fn open_brackets(text: &str, from: usize, to: usize) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut open = Vec::new();
    let mut at = from;
    // Whether a value could start here.
    let mut starts = true;
    while at < to {
        let Some(byte) = bytes.get(at).copied() else { break };
        match byte {
            b'#' if at == 0 || bytes.get(at - 1).is_some_and(u8::is_ascii_whitespace) => {
                at = line_end(text, at);
                continue;
            }
            b'"' | b'\'' if starts => {
                at = token::quoted(text, at).unwrap_or(to);
                starts = false;
                continue;
            }
            b'|' | b'>' if starts && open.is_empty() => {
                at = behind_lines(text, at);
                continue;
            }
            b'[' | b'{' if starts || !open.is_empty() => {
                open.push(at);
                starts = true;
            }
            b']' | b'}' => {
                open.pop();
                starts = false;
            }
            b',' if !open.is_empty() => starts = true,
            b':' | b'-' => starts = bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace),
            b'\n' => starts = true,
            byte if byte.is_ascii_whitespace() => {}
            _ => starts = false,
        }
        at += 1;
    }
    open
}

/// Returns the place behind a text of several lines: all that are indented deeper.
fn behind_lines(text: &str, at: usize) -> usize {
    let margin = indent(line(text, line_start(text, at)));
    let mut end = line_end(text, at);
    while end < text.len() {
        let next = end + 1;
        let line = line(text, next);
        if !line.trim().is_empty() && indent(line) <= margin {
            break;
        }
        end = line_end(text, next).max(next);
    }
    end
}

/// A second colon in a value, or a key below a value.
fn colon(text: &str, at: usize) -> Option<SyntaxAdvice> {
    if text.as_bytes().get(at) != Some(&b':') {
        return None;
    }
    let start = line_start(text, at);
    let before = text.get(start..at)?;
    if let Some(mark) = before.find(": ") {
        let value = start + mark + 2;
        let value = value + indent(text.get(value..)?);
        let rest = text.get(value..line_end(text, at))?;
        let rest = rest.get(..rest.find(" #").unwrap_or(rest.len()))?.trim_end();
        let help = format!("put it in quotes: {}", quote(rest));
        let message = "a value with a colon and a blank in it must stand in quotes";
        return Some(SyntaxAdvice::new((value, value + rest.len()), message, help));
    }
    let above = last_line(text, at)?;
    if let Some(advice) = no_blank(text, above) {
        return Some(advice);
    }
    let key = start + indent(before);
    if line(text, above).trim_start().starts_with("- ") {
        let message = "this is a key, and what is above it is an element of a list";
        let help = "write all as keys, without `- `, or all as elements, with `- `";
        let over = above + indent(line(text, above));
        return Some(
            SyntaxAdvice::new((key, at), message, help).with_related((over, over + 1), "the list"),
        );
    }
    let name = text.get(key..at)?.trim_end();
    let over = line(text, above);
    let over_at = above + indent(over);
    let over_end = over_at + over.trim().find(": ").unwrap_or(over.trim().len());
    let message = format!("the key `{name}` is indented below a line that has a value already");
    let help = format!(
        "indent it as the line above ({}), or put the keys below on lines of their own",
        blanks(indent(over))
    );
    Some(
        SyntaxAdvice::new((key, at), message, help)
            .with_related((over_at, over_end), "this has a value"),
    )
}

/// A colon without a blank behind it.
fn no_blank(text: &str, start: usize) -> Option<SyntaxAdvice> {
    let line = line(text, start);
    let content = line.trim().trim_start_matches("- ");
    let from = start + line.find(content)?;
    let (key, value) = content.split_once(':')?;
    let is_word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    let is_key = !key.is_empty() && key.chars().all(is_word);
    if !is_key || value.is_empty() || value.starts_with([' ', ':', '/']) || value.contains(": ") {
        return None;
    }
    let message = format!("`{key}:` has no blank behind its colon, so it is text and not a key");
    let help = format!("write `{key}: {value}`");
    Some(SyntaxAdvice::new((from, from + content.len()), message, help))
}

/// A line that is indented as none of the mappings and lists around it.
fn indentation(text: &str, at: usize) -> Option<SyntaxAdvice> {
    let start = line_start(text, at);
    let own = line(text, start);
    let margin = indent(own);
    if is_blank_or_comment(own) || at != start + margin {
        return None;
    }
    // The lines above that are indented less and less lead to it.
    let (mut least, mut inner, mut outer) = (usize::MAX, None, None);
    for above in lines_above(text, at) {
        let it = line(text, above);
        let dashes = it.trim_start().len() - it.trim_start().trim_start_matches("- ").len();
        for column in [indent(it) + dashes, indent(it)] {
            if column == margin {
                return None;
            }
            if column < margin {
                outer = outer.or(Some((above, column)));
            } else if column < least {
                least = column;
                inner = Some((above, column));
            }
        }
        if outer.is_some() {
            break;
        }
    }
    let (inner, column) = inner?;
    let end = at + own.trim().split(':').next().unwrap_or_default().len();
    let advice = match outer {
        Some((outer, around)) => {
            let (name, place) = key_of(text, outer);
            let message = format!(
                "this line is indented by {}, what is above it in `{name}` by {column}",
                blanks(margin)
            );
            let help = format!(
                "indent it by {} to be in `{name}`, or by {} to stand beside it",
                blanks(column),
                blanks(around)
            );
            SyntaxAdvice::new((at, end), message, help)
                .with_related(place, "the mapping or list around it")
        }
        None => {
            let message = format!(
                "this line is indented by {}, the keys above it by {column}",
                blanks(margin)
            );
            let help = format!("indent it by {}, or none of the keys", blanks(column));
            SyntaxAdvice::new((at, end), message, help)
                .with_related(key_of(text, inner).1, "the keys begin here")
        }
    };
    Some(advice)
}

/// Returns the key that a line begins with, and where it stands.
fn key_of(text: &str, start: usize) -> (String, (usize, usize)) {
    let whole = line(text, start);
    let content = whole.trim_start().trim_start_matches("- ");
    let key = content.split(':').next().unwrap_or_default();
    let from = start + whole.len() - content.len();
    (key.to_owned(), (from, from + key.len()))
}

fn blanks(count: usize) -> String {
    match count {
        0 => "no blanks".to_owned(),
        1 => "1 blank".to_owned(),
        many => format!("{many} blanks"),
    }
}

/// A line among keys that is none.
fn no_key(text: &str, start: usize) -> Option<SyntaxAdvice> {
    let line = line(text, start);
    let content = line.trim();
    let from = start + indent(line);
    let is_key = content.contains(": ") || content.ends_with([':', ',', ']', '}', '"', '\'']);
    if is_key || content.starts_with("- ") {
        return None;
    }
    let help = match content.split_once(" = ").or_else(|| content.split_once(" => ")) {
        Some((key, value)) => format!("write `{key}: {value}`"),
        None if content.starts_with('-') => "documents are parted by a line `---`".to_owned(),
        None => "write `key: value`".to_owned(),
    };
    let message = "this line is neither a key nor part of a value";
    Some(SyntaxAdvice::new((from, from + content.len()), message, help))
}
