//! A mapping that is being read: its keys, and what is wrong with them.

use std::collections::HashMap;

use serde_json::Value;

use crate::document::write::quote;
use crate::document::{Content, Entry, Fault, FaultKind, Node, Position, Span};

/// Up to so many keys are compared one by one with the next; only then are they noted in `seen`.
const FEW: usize = 16;

/// A mapping that is being read.
pub(super) struct Mapping {
    /// The place of its first entry among those of all mappings that are open.
    pub(super) first: usize,
    /// The key whose value comes next, with its text if it has one.
    pub(super) key: Option<(Option<String>, Span)>,
    /// The end of the last key or value that has no entry.
    dropped_end: Option<Position>,
    seen: HashMap<String, Span>,
}

impl Mapping {
    /// Begins a mapping whose entries follow those of the mappings around it.
    pub(super) fn beginning_at(first: usize) -> Self {
        Self { first, key: None, dropped_end: None, seen: HashMap::new() }
    }

    /// Adds the value of the key that was read last, to the entries of all mappings that are open. A key without a text
    /// has no entry: what is wrong with it is said, and nothing else can be said of it.
    ///
    /// # Errors
    ///
    /// Returns a fault if the mapping has the key already; the first value stays.
    pub(super) fn add(&mut self, value: Node, all: &mut Vec<Entry>) -> Result<(), Fault> {
        let Some((key, key_span)) = self.key.take() else { return Ok(()) };
        let end = value.span.end.max(key_span.end);
        let Some(key) = key else {
            self.dropped_end = Some(end);
            return Ok(());
        };
        let entries = all.get(self.first..).unwrap_or_default();
        let first = match entries.len() < FEW {
            true => entries.iter().find(|it| it.key == key).map(|it| it.key_span),
            false => self.seen.get(&key).copied(),
        };
        if let Some(first) = first {
            self.dropped_end = Some(end);
            let message = format!("key `{key}` is set twice");
            let mut fault = Fault::new(FaultKind::DuplicateKey, key_span, message)
                .with_help("keep one of the two");
            fault.related.push((first, "first set here"));
            fault.second = value.scalar_text().map(Into::into);
            return Err(fault);
        }
        all.push(Entry { key, key_span, value });
        let entries = all.get(self.first..).unwrap_or_default();
        if entries.len() >= FEW {
            let fresh = if self.seen.is_empty() { 0 } else { entries.len() - 1 };
            let fresh = entries.iter().skip(fresh);
            self.seen.extend(fresh.map(|it| (it.key.clone(), it.key_span)));
        }
        Ok(())
    }

    /// Returns the end of the last key or value, also of one that has no entry.
    pub(super) fn end(&self, last: Option<&Entry>) -> Option<Position> {
        last.map(|it| it.value.span.end.max(it.key_span.end)).max(self.dropped_end)
    }
}

/// Whether a value is a plain scalar, which has no quotes.
#[derive(Clone, Copy)]
pub(super) enum Plain<'t> {
    No,
    /// It is, and a string.
    Text,
    /// It is, and not a string; with how it is written.
    Other(&'t str),
}

/// Returns the text of a key, also of one that must not be one, and what is wrong with it; a list or a mapping has no
/// text. `written` returns the file from the byte before the key on.
pub(super) fn key_text<'t>(
    node: Node,
    plain: Plain<'_>,
    written: impl FnOnce() -> Option<&'t str>,
) -> (Option<String>, Option<Fault>) {
    let found = node.type_name();
    match node.content {
        Content::Scalar(Value::String(text)) => {
            let is_merge = text == "<<" && matches!(plain, Plain::Text);
            let fault = is_merge.then(|| {
                Fault::refused(node.span, "merge keys are not allowed")
                    .with_help("write the keys out")
            });
            (Some(text), fault)
        }
        Content::Scalar(_) => {
            let text = if let Plain::Other(text) = plain { text } else { "" };
            let message = format!("the key `{text}` is {found}, a key must be a string");
            let help = format!("put it in quotes: {}", quote(text));
            (Some(text.to_owned()), Some(Fault::refused(node.span, message).with_help(help)))
        }
        Content::Sequence(_) | Content::Mapping(_) => {
            let message = format!("a key is {found}, it must be a string");
            let fault = Fault::malformed(node.span, message);
            let fault = match written().and_then(template) {
                Some(help) => fault.with_help(help),
                None => fault,
            };
            (None, Some(fault))
        }
    }
}

/// Returns what to do about a template such as `{{ x }}`, which reads as a mapping in a mapping.
fn template(written: &str) -> Option<String> {
    let line = written.lines().next().filter(|it| it.starts_with("{{"))?;
    let template = quote(line.get(..line.find("}}")? + 2)?);
    Some(format!("templates are not filled in; to keep it as text, put it in quotes: {template}"))
}
