//! Comparing a document with what it shall be, and collecting the changes.

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::super::{Content, Entry, Node, ValueLayout};
use super::align::{AlignStep, align};
use super::change::TextChange;
use super::line_index::LineIndex;
use super::same::same;

/// Where a value stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueSlot {
    /// It is the document.
    Root,
    /// Behind a key or the dash of a list: the place behind `:` or `-`, and the column of what
    /// stands before it.
    Behind { mark: usize, indent: usize },
    /// In a list or mapping in brackets.
    Flow,
}

/// The changes that make a document another.
pub(super) struct Plan<'t> {
    pub(super) text: &'t str,
    pub(super) layout: &'t dyn Fn(&[&str]) -> ValueLayout,
    /// The line break of the file.
    pub(super) newline: &'static str,
    pub(super) lines: LineIndex,
    pub(super) changes: Vec<TextChange>,
}

/// Returns whether a value stands elsewhere in the file.
pub(super) fn is_alias(text: &str, node: &Node) -> bool {
    let (start, end) = (node.span.start.offset as usize, node.span.end.offset as usize);
    let token = text.get(start..end).unwrap_or_default();
    token.starts_with('*') && !token.contains([' ', '\n', ':'])
}

impl<'t> Plan<'t> {
    pub(super) fn of(text: &'t str, layout: &'t dyn Fn(&[&str]) -> ValueLayout) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { text, layout, newline, lines: LineIndex::of(text), changes: Vec::new() }
    }

    /// Returns the changes after which a document should read as wanted.
    pub(super) fn changes(mut self, node: &Node, target: &Value) -> Vec<TextChange> {
        self.value(node, target, ValueSlot::Root, &mut Vec::new());
        self.changes
    }

    pub(super) fn change(&mut self, from: usize, to: usize, with: impl Into<String>) {
        self.changes.push(TextChange { from, to, with: with.into() });
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    pub(super) fn line_start(&self, at: usize) -> usize {
        self.lines.start(at)
    }

    /// Returns where the next line begins, or the end of the text.
    pub(super) fn next_line(&self, at: usize) -> usize {
        self.lines.next(at).unwrap_or(self.text.len())
    }

    /// Returns where the line of a place ends, before its line break.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let Some(end) = self.lines.next(at).map(|it| it - 1) else { return self.text.len() };
        if end > at && self.byte(end - 1) == Some(b'\r') { end - 1 } else { end }
    }

    /// Returns whether what stands between a place and the end of its line is blank or a comment.
    pub(super) fn rest_is_blank(&self, at: usize) -> bool {
        let rest = self.text.get(at..).unwrap_or_default();
        let content = rest.trim_start_matches(|it: char| it != '\n' && it.is_whitespace());
        match content.as_bytes().first() {
            None | Some(b'\n') => true,
            Some(b'#') => content.len() < rest.len(),
            Some(_) => false,
        }
    }

    /// Returns how many characters stand before a place in its line.
    pub(super) fn column(&self, at: usize) -> usize {
        self.text.get(self.line_start(at)..at).unwrap_or_default().chars().count()
    }

    pub(super) fn value<'v>(
        &mut self,
        node: &Node,
        target: &'v Value,
        slot: ValueSlot,
        way: &mut Vec<&'v str>,
    ) {
        if same(&node.to_value(), target) {
            return;
        }
        let before = self.changes.len();
        let done = !is_alias(self.text, node)
            && match (&node.content, target) {
                (Content::Mapping(entries), Value::Object(fields))
                    if entries.iter().any(|it| fields.contains_key(&it.key)) =>
                {
                    self.mapping(node, entries, fields, slot, way).is_some()
                }
                (Content::Sequence(elements), Value::Array(wanted))
                    if !elements.is_empty() && !wanted.is_empty() =>
                {
                    self.sequence(node, elements, wanted, slot, way).is_some()
                }
                _ => false,
            };
        if !done {
            // What was begun and did not work out is taken back.
            self.changes.truncate(before);
            self.replace(node, target, slot, way);
        }
    }

    fn mapping<'v>(
        &mut self,
        node: &Node,
        entries: &[Entry],
        fields: &'v serde_json::Map<String, Value>,
        slot: ValueSlot,
        way: &mut Vec<&'v str>,
    ) -> Option<()> {
        let mut steps: Vec<AlignStep> = Vec::new();
        let names: Vec<&'v String> = fields.keys().collect();
        let numbers: HashMap<&str, usize> =
            names.iter().enumerate().map(|(number, key)| (key.as_str(), number)).collect();
        let known: HashSet<&str> = entries.iter().map(|entry| entry.key.as_ref()).collect();
        let is_new = |it: &usize| names.get(*it).is_some_and(|key| !known.contains(key.as_str()));
        // What is new stands behind the key that it follows in what is wanted.
        steps.extend((0..names.len()).take_while(is_new).map(|new| AlignStep::Insert { new }));
        for (old, entry) in entries.iter().enumerate() {
            match numbers.get(&*entry.key).copied() {
                None => steps.push(AlignStep::Remove { old }),
                Some(new) => {
                    steps.push(AlignStep::Keep { old, new });
                    let following = (new + 1..names.len()).take_while(is_new);
                    steps.extend(following.map(|new| AlignStep::Insert { new }));
                }
            }
        }
        let start = node.span.start.offset as usize;
        match (self.byte(start), slot) {
            (Some(b'{'), _) => self.flow_mapping(node, entries, fields, &steps, way),
            (_, ValueSlot::Flow) => None,
            _ => self.block_mapping(entries, fields, (&steps, slot), way),
        }
    }

    fn sequence<'v>(
        &mut self,
        node: &Node,
        elements: &[Node],
        wanted: &'v [Value],
        slot: ValueSlot,
        way: &mut Vec<&'v str>,
    ) -> Option<()> {
        let old: Vec<Value> = elements.iter().map(Node::to_value).collect();
        let steps = align(&old, wanted);
        let start = node.span.start.offset as usize;
        match (self.byte(start), slot) {
            (Some(b'['), _) => self.flow_sequence(node, elements, wanted, &steps, way),
            (_, ValueSlot::Flow) => None,
            _ => self.block_sequence(node, elements, wanted, (&steps, slot), way),
        }
    }
}
