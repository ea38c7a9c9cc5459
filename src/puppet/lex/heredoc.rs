//! Heredocs: `@("END"/nt)` here, the text below the line.

use super::lexer::Lexer;
use super::string::starts_variable;
use super::token::Sort;
use crate::puppet::CodeFault;

impl Lexer<'_> {
    /// Takes the mark of a heredoc and finds its text; or a mere `@`, if it is none.
    ///
    /// The text is nothing if it depends on an expression or has escapes.
    pub(super) fn heredoc(&mut self, start: usize) -> Result<Sort<'static>, CodeFault> {
        let none = Sort::Mark('@');
        let Some((mark, _)) = self.rest().split_once(')') else { return Ok(none) };
        if mark.contains('\n') {
            return Ok(none);
        }
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

/// Returns the margin that the last line of a heredoc asks for, and whether it takes the last line
/// break away; nothing if it is not the last line.
fn end_mark(line: &str, tag: &str) -> Option<(Option<usize>, bool)> {
    let blanks = line.len() - line.trim_start().len();
    let mut rest = line.trim();
    let margin = rest.strip_prefix('|').map(|it| {
        rest = it.trim_start();
        blanks
    });
    let trimmed = rest.strip_prefix('-').map(|it| rest = it.trim_start()).is_some();
    (rest == tag).then_some((margin, trimmed))
}

fn content(lines: &[&str], margin: Option<usize>, trimmed: bool) -> String {
    let without = |line: &&str| {
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        let cut = margin.unwrap_or_default().min(blanks);
        line.get(cut..).unwrap_or_default().to_owned()
    };
    let mut text: String = lines.iter().map(without).collect();
    if trimmed && text.ends_with('\n') {
        text.pop();
    }
    text
}
