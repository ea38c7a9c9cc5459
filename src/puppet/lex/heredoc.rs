//! Heredocs: `@("END"/nt)` here, the text below the line.

use super::lexer::Lexer;
use super::string::starts_variable;
use super::token::Sort;
use crate::puppet::CodeFault;

/// How many characters the mark of a heredoc has at most.
const MARK: usize = 1_024;

impl Lexer<'_> {
    /// Takes the mark of a heredoc and finds its text; or a mere `@`, if it is none.
    ///
    /// The text is nothing if it depends on an expression or has escapes.
    pub(super) fn heredoc(&mut self, start: usize) -> Result<Sort<'static>, CodeFault> {
        let none = Sort::Mark('@');
        let near = self.rest().char_indices().take(MARK).map_while(|(at, it)| match it {
            ')' => Some(Some(at)),
            '\n' => None,
            _ => Some(None),
        });
        let Some(mark) = near.flatten().next().and_then(|end| self.rest().get(..end)) else {
            return Ok(none);
        };
        let inside = mark.trim_start_matches('(').trim();
        let (name, escapes) = inside.split_once('/').unwrap_or((inside, ""));
        let name = name.split_once(':').map_or(name, |(name, _)| name).trim();
        let quoted = name.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        let tag = quoted.unwrap_or(name).trim();
        if tag.is_empty() {
            return Ok(none);
        }
        self.at += mark.len() + 1;
        let (line, from) = match self.heredocs.pending {
            Some((line, end)) => (line, end),
            None => {
                let line = self.rest().find('\n').map(|it| self.at + it + 1);
                let Some(line) = line else { return Err(self.open(start, tag)) };
                (line, line)
            }
        };
        let mut at = from;
        let mut lines = Vec::new();
        for text in self.text.get(from..).unwrap_or_default().split_inclusive('\n') {
            at += text.len();
            if let Some((margin, trimmed)) = end_mark(text, tag) {
                self.heredocs.pending = Some((line, at));
                let content = content(&lines, margin, trimmed);
                let variable = |(_, rest): (&str, &str)| {
                    rest.starts_with('{') || rest.starts_with(starts_variable)
                };
                let expression = quoted.is_some()
                    && content.match_indices('$').any(|(at, _)| {
                        variable(content.split_at_checked(at + 1).unwrap_or_default())
                    });
                return Ok(Sort::Text((!expression && escapes.is_empty()).then_some(content)));
            }
            lines.push(text);
        }
        Err(self.open(start, tag))
    }

    fn open(&self, start: usize, tag: &str) -> CodeFault {
        self.fault(start, format!("the heredoc `{tag}` has no end"))
    }
}

/// Returns the margin that the last line of a heredoc takes away, and whether it takes the last line
/// break away; nothing if it is not the last line.
///
/// As in Puppet, a line ends the heredoc that ends with the tag, whatever stands before it.
fn end_mark<'l>(line: &'l str, tag: &str) -> Option<(&'l str, bool)> {
    const BLANKS: [char; 2] = [' ', '\t'];
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line).trim_end_matches(BLANKS);
    let before = line.strip_suffix(tag)?.trim_end_matches(BLANKS);
    let (before, trimmed) = match before.strip_suffix('-') {
        Some(before) => (before.trim_end_matches(BLANKS), true),
        None => (before, false),
    };
    let margin = before
        .strip_suffix('|')
        .map(|before| before.get(before.trim_end_matches(BLANKS).len()..).unwrap_or_default());
    Some((margin.unwrap_or_default(), trimmed))
}

fn content(lines: &[&str], margin: &str, trimmed: bool) -> String {
    // A line with text in the margin stays as it is.
    let mut text: String =
        lines.iter().map(|line| line.strip_prefix(margin).unwrap_or(line)).collect();
    if trimmed && text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}
