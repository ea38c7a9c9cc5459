//! Comments that silence warnings.

use super::Span;
use super::place::PositionIndex;

/// A comment `# clade: ignore <kind>`, which silences a warning on the line below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignore {
    /// The line on which warnings are silenced.
    pub line: u32,
    /// The names of the kinds, as written.
    pub kinds: Vec<String>,
    /// Where the comment stands.
    pub span: Span,
}

const MARK: &str = "clade: ignore ";

/// Returns whether a character is a blank to YAML: other blanks of Unicode are letters there.
fn is_blank(it: char) -> bool {
    matches!(it, ' ' | '\t' | '\r' | '\n')
}

/// Returns whether a line is a comment that silences a warning.
pub(super) fn is_ignore(line: &str) -> bool {
    let comment = line.trim_matches(is_blank).strip_prefix('#');
    comment.is_some_and(|it| it.trim_start_matches(is_blank).starts_with(MARK))
}

/// Returns the comment that begins here, up to the end of its line, if it may have been meant as a value, such as
/// `#ops`: no blank follows its `#`.
pub(super) fn as_value(written: &str) -> Option<&str> {
    let is_text = |it: char| !it.is_whitespace() && it != '#';
    let is_meant = written.strip_prefix('#').is_some_and(|it| it.starts_with(is_text));
    // YAML ends a line at a carriage return, too.
    let comment = written.split(['\n', '\r']).next().unwrap_or_default();
    is_meant.then(|| comment.trim_end())
}

/// Returns whether a text may have such a comment.
pub(super) fn may_have_ignores(text: &str) -> bool {
    text.contains(MARK)
}

/// Finds the comments in a text; `scalars` are the stretches of bytes in which a `#` does not start a comment,
/// in order.
///
/// Comments may be stacked: the next line that is neither blank nor a comment is meant.
pub(super) fn find(text: &str, scalars: &[(u32, u32)], index: &PositionIndex) -> Vec<Ignore> {
    let mut found = Vec::new();
    let mut waiting: Vec<(Vec<String>, Span)> = Vec::new();
    let mut character = 0_u32;
    let mut offset = 0_usize;
    for (number, line) in (1_u32..).zip(text.split_inclusive('\n')) {
        let indent = line.len() - line.trim_start_matches(is_blank).len();
        let start = u32::try_from(offset + indent).unwrap_or(u32::MAX);
        let behind = scalars.partition_point(|(from, _)| *from <= start);
        let before = behind.checked_sub(1).and_then(|it| scalars.get(it));
        let in_scalar = before.is_some_and(|(_, to)| start < *to);
        let content = line.trim_matches(is_blank);
        let length =
            u32::try_from(line.trim_end_matches(is_blank).chars().count()).unwrap_or(u32::MAX);
        match content.strip_prefix('#') {
            Some(comment) if !in_scalar => {
                if let Some(kinds) = comment.trim_start_matches(is_blank).strip_prefix(MARK) {
                    let kinds = kinds.split([',', ' ', '\t']).filter(|kind| !kind.is_empty());
                    let span = Span {
                        start: index.of_character(character),
                        end: index.of_character(character + length),
                    };
                    waiting.push((kinds.map(str::to_owned).collect(), span));
                }
            }
            _ if content.is_empty() => {}
            _ => {
                let ignores = waiting.drain(..);
                found.extend(ignores.map(|(kinds, span)| Ignore { line: number, kinds, span }));
            }
        }
        offset += line.len();
        character += u32::try_from(line.chars().count()).unwrap_or_default();
    }
    found
}
