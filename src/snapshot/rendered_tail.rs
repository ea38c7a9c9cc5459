//! A written answer with holes for the facts of a node.

use std::sync::Arc;

use serde_json::Value;

use crate::classification::{Expander, FactSource, Template, WithheldFacts};

/// A string in a text, into which facts are put.
#[derive(Clone, Debug)]
pub(super) struct Hole {
    /// Where the string stands as it is written, with its quotes.
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) template: Arc<Template>,
}

/// What stands behind the name in an answer: the same for all nodes that the same groups match, but for the holes.
#[derive(Clone, Debug, Default)]
pub(super) struct RenderedTail {
    pub(super) text: Vec<u8>,
    /// In order.
    pub(super) holes: Vec<Hole>,
}

impl Hole {
    /// Returns about how many bytes it takes with what is read of its string.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.template.memory()
    }
}

impl RenderedTail {
    /// Returns about how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        self.text.len() + size_of_val(self.holes.as_slice())
    }

    /// Adds a text with its holes.
    pub(super) fn push(&mut self, text: &str, holes: &[Hole]) {
        let from = number(self.text.len());
        self.holes.extend(holes.iter().map(|hole| Hole {
            start: from.saturating_add(hole.start),
            end: from.saturating_add(hole.end),
            template: Arc::clone(&hole.template),
        }));
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Writes the tail for a node; `None` if a fact is not known, or if there is no room for it.
    pub(super) fn write(&self, answer: &mut Vec<u8>, facts: &dyn FactSource) -> Option<()> {
        if self.holes.is_empty() {
            answer.extend_from_slice(&self.text);
            return Some(());
        }
        let mut expander = Expander::new(facts, WithheldFacts::Refuse);
        let mut behind = 0;
        for hole in &self.holes {
            answer.extend_from_slice(self.text.get(behind..hole.start as usize)?);
            let text = expander.text(&hole.template).ok()?;
            serde_json::to_writer(&mut *answer, &text).ok()?;
            behind = hole.end as usize;
        }
        answer.extend_from_slice(self.text.get(behind..)?);
        Some(())
    }
}

/// Writes a value, and notes the strings into which facts are put.
pub(super) fn write_with_holes(text: &mut String, value: &Value, holes: &mut Vec<Hole>) {
    match value {
        Value::String(string) => {
            let start = number(text.len());
            text.push_str(&value.to_string());
            if let Some(template) = Template::parse(string) {
                holes.push(Hole { start, end: number(text.len()), template: Arc::new(template) });
            }
        }
        Value::Array(elements) => {
            text.push('[');
            for (at, element) in elements.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                write_with_holes(text, element, holes);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (at, (key, field)) in fields.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_with_holes(text, field, holes);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
    }
}

pub(super) fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
