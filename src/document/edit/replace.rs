//! One value in the place of another.

use serde_json::Value;

use super::super::write;
use super::super::{Content, Node};
use super::plan::{Plan, ValueSlot, is_alias};

impl Plan<'_> {
    /// Writes a value where another stands.
    pub(super) fn replace<'v>(
        &mut self,
        node: &Node,
        target: &'v Value,
        slot: ValueSlot,
        way: &mut Vec<&'v str>,
    ) {
        let (start, end) = (self.start_of(node), node.span.end.offset as usize);
        let brackets = matches!(self.byte(start), Some(b'[' | b'{'));
        let nested = match &node.content {
            Content::Sequence(elements) => !elements.is_empty(),
            Content::Mapping(entries) => !entries.is_empty(),
            Content::Scalar(_) => false,
        } && !is_alias(self.text, node);
        let was_block = nested && !brackets;
        let filled = match target {
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(elements) => !elements.is_empty(),
            _ => false,
        };
        let to_block = filled && if nested { was_block } else { self.is_block(target, way) };
        match slot {
            ValueSlot::Flow => self.in_place(start, end, &self.inline(node, target)),
            ValueSlot::Root => {
                let text = write(target, self.layout);
                self.change(start, end, self.with_newlines(text.trim_end()));
            }
            ValueSlot::Behind { mark, indent } if to_block => {
                self.put_block(node, target, mark, indent, was_block, way);
            }
            ValueSlot::Behind { mark, .. } if was_block => self.block_to_inline(node, target, mark),
            ValueSlot::Behind { mark, .. } if start == end => {
                let text = self.inline(node, target);
                let at = self.behind_properties(mark);
                self.change(at, at, format!(" {text}"));
            }
            ValueSlot::Behind { mark, .. }
                if target.is_null() && self.byte(mark - 1) == Some(b':') =>
            {
                self.change(mark, end, "");
            }
            ValueSlot::Behind { indent, .. } => {
                let lines = target.as_str().and_then(|it| self.lines_of_text(node, it, indent));
                let text = lines.unwrap_or_else(|| {
                    let comment = self.comment_of_header(start).unwrap_or_default();
                    self.inline(node, target) + comment
                });
                self.change(start, end, text);
            }
        }
    }

    /// Returns where a value begins: a mapping over several lines at the question mark of its first key, if that has one.
    fn start_of(&self, node: &Node) -> usize {
        let start = node.span.start.offset as usize;
        match node.entries().first() {
            Some(first) if first.key_span.start == node.span.start => self.entry_start(first),
            _ => start,
        }
    }

    /// Writes lines behind a mark.
    fn put_block<'v>(
        &mut self,
        node: &Node,
        target: &'v Value,
        mark: usize,
        indent: usize,
        was_block: bool,
        way: &[&'v str],
    ) {
        let (start, end) = (self.start_of(node), node.span.end.offset as usize);
        let here = self.line_start(start) == self.line_start(mark);
        let lines = |plan: &Self, indent: usize| {
            let lines = write::block(target, indent, way, plan.layout);
            plan.with_newlines(lines.trim_end())
        };
        if was_block {
            // It keeps its indent; a list may stand right below its key, a mapping may not.
            let column = self.column(start);
            let deeper = if column > indent { column } else { indent + 2 };
            let text = lines(self, deeper);
            if here {
                return self.change(start, end, text.trim_start());
            }
            // The comments above what was first go with it.
            let from = self.next_line(mark).min(self.line_start(start));
            return self.change(from, end, text);
        }
        if self.byte(mark - 1) == Some(b'-') {
            let text = lines(self, indent + 2);
            // The lines below stand in one column with the first, which follows the dash and one blank.
            let between = self.text.get(mark..start).unwrap_or_default();
            let is_near = start == end || between.trim().is_empty();
            let (from, blank) = if is_near { (mark, " ") } else { (start, "") };
            let to = if start == end { mark } else { end };
            return self.change(from, to, format!("{blank}{}", text.trim_start()));
        }
        let text = format!("{}{}", self.newline, lines(self, indent + 2));
        let behind = if start == end { mark } else { end };
        if (here || start == end) && self.rest_is_blank(behind) {
            // A comment stays on the line of the key.
            self.change(mark, behind, "");
            let at = self.line_end(behind);
            self.change(at, at, text);
        } else {
            self.change(mark, behind, text);
        }
    }

    /// Writes a value behind a mark and takes the lines out that were there.
    fn block_to_inline(&mut self, node: &Node, target: &Value, mark: usize) {
        let (start, end) = (self.start_of(node), node.span.end.offset as usize);
        let text = write::inline(target);
        if self.line_start(start) == self.line_start(mark) {
            return self.change(start, end, text);
        }
        if !(target.is_null() && self.byte(mark - 1) == Some(b':')) {
            let at = self.behind_properties(mark);
            self.change(at, at, format!(" {text}"));
        }
        let from = self.next_line(mark).min(self.line_start(start));
        self.change(from, self.next_line(end), "");
    }

    /// Returns where a value may stand behind a mark: behind its anchor and tag, which come first.
    fn behind_properties(&self, mark: usize) -> usize {
        let line = self.text.get(mark..self.line_end(mark)).unwrap_or_default();
        let mut at = 0;
        loop {
            let rest = line.get(at..).unwrap_or_default();
            let word = rest.trim_start();
            if !word.starts_with(['&', '!']) {
                return mark + at;
            }
            let length = word.find(char::is_whitespace).unwrap_or(word.len());
            at += rest.len() - word.len() + length;
        }
    }

    /// Returns the comment, with the blanks before it, on the line on which a text over several lines begins.
    fn comment_of_header(&self, start: usize) -> Option<&str> {
        if !matches!(self.byte(start), Some(b'|' | b'>')) {
            return None;
        }
        let header = self.text.get(start..self.line_end(start))?.trim_end();
        let comment = header.find(" #")?;
        let blanks = header.get(..comment)?.trim_end().len();
        header.get(blanks..)
    }

    fn in_place(&mut self, start: usize, end: usize, text: &str) {
        let before = start.checked_sub(1).and_then(|it| self.byte(it));
        let blank = if before == Some(b':') { " " } else { "" };
        self.change(start, end, format!("{blank}{text}"));
    }

    /// Writes a value on one line, a string with the quotes of the string that it replaces.
    fn inline(&self, node: &Node, target: &Value) -> String {
        let first = self.byte(node.span.start.offset as usize);
        match (target, first) {
            (Value::String(text), Some(b'"')) => write::quote(text),
            (Value::String(text), Some(b'\''))
                if text
                    .chars()
                    .all(|it| it == ' ' || it.is_alphanumeric() || it.is_ascii_punctuation()) =>
            {
                format!("'{}'", text.replace('\'', "''"))
            }
            _ => write::inline(target),
        }
    }
}
