//! Texts of several lines behind `|` or `>`.

use serde_json::Value;

use super::super::token::line_end;
use super::super::{Content, Limits, Node, read};
use super::plan::Plan;

/// How wide lines are filled behind `>`.
const WIDTH: usize = 80;

impl Plan<'_> {
    /// Writes a text in the form of the one that it replaces, if that stands behind `|` or `>` and
    /// the new one has several lines too and can be written so; `indent` is the column of its key.
    pub(super) fn lines_of_text(&self, node: &Node, text: &str, indent: usize) -> Option<String> {
        let (start, end) = (node.span.start.offset as usize, node.span.end.offset as usize);
        let folds = match (&node.content, self.byte(start)?) {
            (Content::Scalar(Value::String(_)), b'|') => false,
            (Content::Scalar(Value::String(_)), b'>') => true,
            _ => return None,
        };
        if !is_fit(text) {
            return None;
        }
        let body = text.strip_suffix('\n').unwrap_or(text);
        // Lines that are indented further are not folded, so they stand behind `|`.
        let folds = folds && !body.contains("\n ") && !body.contains("\n\t");
        let lines =
            if folds { folded(body) } else { body.split('\n').map(str::to_owned).collect() };
        if lines.len() < 2 && !text.contains('\n') {
            return None;
        }
        let sign = if folds { '>' } else { '|' };
        let chomp = if text.ends_with('\n') { "" } else { "-" };
        let head = self.text.get(start + 1..line_end(self.text, start))?;
        let comment = head.trim_start_matches(|it: char| it.is_ascii_digit() || "+-".contains(it));
        let margin = " ".repeat(self.margin_of(start, end, indent));
        let mut written = format!("{sign}{chomp}{}", comment.trim_end());
        for line in &lines {
            written.push('\n');
            if !line.is_empty() {
                written.push_str(&margin);
                written.push_str(line);
            }
        }
        // At the end of a file without a line break the text would have none either.
        let last = self.text.get(end..).is_none_or(|rest| !rest.contains('\n'));
        if last && chomp.is_empty() {
            written.push('\n');
        }
        let alone = format!("{}k: {written}\n", " ".repeat(indent));
        let is_same = read(alone.as_bytes(), &Limits::DEFAULT)
            .documents
            .first()
            .and_then(|it| it.get("k")?.as_str())
            .is_some_and(|it| it == text);
        is_same.then(|| self.with_newlines(&written))
    }

    /// Returns how far the lines of a text are indented.
    fn margin_of(&self, start: usize, end: usize, indent: usize) -> usize {
        let inside = self.text.get(line_end(self.text, start)..end).unwrap_or_default();
        let mut lines = inside.lines().filter(|line| !line.trim().is_empty());
        let margin = lines.next().map(|line| line.len() - line.trim_start_matches(' ').len());
        margin.filter(|it| *it > indent).unwrap_or(indent + 2)
    }
}

/// Returns whether every reader takes the lines of a text for what they are.
fn is_fit(text: &str) -> bool {
    let mut lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    let plain = |it: char| {
        it == '\n'
            || it == '\t'
            || !(it.is_control()
                || matches!(
                    it,
                    '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
                ))
    };
    // The first line with text tells how far all are indented, and line breaks at the end are
    // easily lost.
    let first = lines.clone().find(|line| !line.is_empty());
    first.is_some_and(|it| !it.starts_with([' ', '\t']))
        && !text.ends_with("\n\n")
        && text.chars().all(plain)
        && lines.all(|line| line.is_empty() || !line.trim().is_empty())
}

/// Returns the lines that read as a text behind `>`, where a line break stands for a blank and an empty
/// line for a line break.
fn folded(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, paragraph) in text.split('\n').enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        if !paragraph.is_empty() {
            lines.extend(filled(paragraph));
        }
    }
    lines
}

/// Breaks a line where a single blank stands between words.
fn filled(paragraph: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split(' ') {
        match lines.last_mut() {
            None => lines.push(word.to_owned()),
            Some(line)
                if !word.is_empty()
                    && !line.ends_with(' ')
                    && line.chars().count() + 1 + word.chars().count() > WIDTH =>
            {
                lines.push(word.to_owned());
            }
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
        }
    }
    lines
}
