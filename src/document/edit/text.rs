//! Texts of several lines behind `|` or `>`.

use serde_json::Value;

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
        let head = self.text.get(start + 1..self.line_end(start))?;
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
        let inside = self.text.get(self.line_end(start)..end).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use crate::table::each_row;
    use proptest::prelude::*;

    use super::super::tests::{edited, value_of};
    use super::*;

    #[test]
    fn a_text_of_several_lines_stays_one() {
        let (first, second) = (["word"; 16].join(" "), ["word"; 14].join(" "));
        let long = format!("{first} {second}");
        let rows = [
            ("a: |\n  x\n  y\nb: 1\n", "x\nz\n", "a: |\n  x\n  z\nb: 1\n"),
            (
                "a: |  # why\n    x\n\n    y\n\nb: 1\n",
                "1\n  2\n\n3",
                "a: |-  # why\n    1\n      2\n\n    3\n\nb: 1\n",
            ),
            ("a: |-\n  x\n  y\nb: 1", "\nx: # no\n--- y\n", "a: |\n\n  x: # no\n  --- y\nb: 1"),
            ("b: 1\na: |-\n  x\n  y", "x\nz\n", "b: 1\na: |\n  x\n  z\n"),
            ("a: |2\n   x\n  y\nb: 1\n", "x\ny\n", "a: |\n   x\n   y\nb: 1\n"),
            ("b: 1\r\na: |\r\n  x\r\n  y\r\n", "x\nz\n", "b: 1\r\na: |\r\n  x\r\n  z\r\n"),
            (
                "a: >\n  x\n  y\n\n  z\nb: 1\n",
                "x\ny y\n\nz\n",
                "a: >\n  x\n\n  y y\n\n\n  z\nb: 1\n",
            ),
            ("a: >\n  x\n  y\nb: 1\n", "x\n  y\n", "a: |\n  x\n    y\nb: 1\n"),
            ("a: >-\n  x\n  y\nb: 1\n", &long, &format!("a: >-\n  {first}\n  {second}\nb: 1\n")),
            // What has one line, or cannot stand there, is quoted.
            ("a: |\n  x\n  y\nb: 1\n", "z", "a: z\nb: 1\n"),
            ("a: |\n  x\n  y\nb: 1\n", " x\ny\n", "a: \" x\\ny\\n\"\nb: 1\n"),
            ("a: |\n  x\n  y\nb: 1\n", "x\ny\n\n", "a: \"x\\ny\\n\\n\"\nb: 1\n"),
            ("a: |\n  x\n  y\nb: 1\n", "x\r\ny\n", "a: \"x\\r\\ny\\n\"\nb: 1\n"),
            ("a: |+\n  x\n\n\nb: 1\n", "x\n", "a: |\n  x\n\n\nb: 1\n"),
        ];
        each_row(rows, |(text, value, expected)| {
            assert_eq!(edited(text, |it| it["a"] = value.into()), expected, "{text}");
        });
        let list = "- |\n  x\n  y\n- b\n";
        let below = edited(&format!("l:\n{list}"), |it| it["l"][0] = "x\nz\n".into());
        assert_eq!(below, "l:\n- |\n  x\n  z\n- b\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

        #[test]
        fn a_text_behind_a_sign_becomes_any_other_and_nothing_else_changes(
            old in "[ab]( ?[ab#])*(\n{1,2}[ab -]*[ab])*\n?",
            text in "[ab #:>|\t\n-]{0,60}",
            folds in any::<bool>(),
            margin in 1_usize..5,
        ) {
            let start = |sign: &str| {
                let lines: Vec<String> = old.trim_end().split('\n').map(|it| format!("{}{it}", " ".repeat(margin))).collect();
                format!("# note 0\nm:\n  a: {sign}  # note 1\n  {}\n  b: 1 # note 2\n", lines.join("\n  "))
            };
            let before = start(if folds { ">" } else { "|" });
            let after = edited(&before, |it| it["m"]["a"] = text.clone().into());
            prop_assert_eq!(&value_of(&after)["m"]["a"], &Value::from(text.clone()), "{}", after);
            prop_assert!(after.starts_with("# note 0\nm:\n  a: "), "{}\n{}", before, after);
            prop_assert!(after.ends_with("\n  b: 1 # note 2\n"), "{}\n{}", before, after);
            let back = edited(&after, |it| it["m"]["a"] = value_of(&before)["m"]["a"].clone());
            prop_assert_eq!(value_of(&back), value_of(&before), "{}\n{}", after, back);
        }
    }
}
