//! Putting the facts of a node into strings.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::print::{TextSink, print};
use super::reference::FactReference;
use super::resolve::ReferencedValue;
use super::template::{Piece, Template};
use crate::model::{MASKED, Node};

/// How many bytes the expanded strings of one answer may have together.
pub const EXPANDED_BYTES: usize = 8 << 20;

/// What becomes of a value with a fact that was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithheldFacts {
    /// There is no answer: what a node gets must be what its facts make of it.
    Refuse,
    /// [`MASKED`] stands in its place, in what people are shown and in what is kept.
    Mark,
}

/// Facts could not be put into a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpansionFault {
    /// The node is known by stored facts, and one that the value mentions was not stored.
    #[error(
        "`{path}` is not stored, because of a mask or `--store-facts`; it is known while the node itself asks"
    )]
    Withheld {
        /// The fact, as people write it.
        path: Arc<str>,
    },
    /// The strings are too long.
    #[error(
        "with facts in them, the values of the answer have over {EXPANDED_BYTES} bytes, the most that they may have"
    )]
    TooLong,
}

/// The facts of a node, as they are put into strings.
pub trait FactSource: fmt::Debug {
    /// Returns what a reference becomes, if that is known without the node.
    fn text(&self, reference: &FactReference) -> Option<&str>;

    /// Returns the node with all that strings mention.
    fn node(&self) -> &Node;
}

impl FactSource for Node {
    fn text(&self, _reference: &FactReference) -> Option<&str> {
        None
    }

    fn node(&self) -> &Node {
        self
    }
}

/// Puts the facts of one node into the strings of one answer.
#[derive(Debug)]
pub struct Expander<'n> {
    facts: &'n dyn FactSource,
    withheld: WithheldFacts,
    /// How many bytes there is room for.
    left: usize,
}

impl<'n> Expander<'n> {
    /// Begins an answer.
    pub fn new(facts: &'n dyn FactSource, withheld: WithheldFacts) -> Self {
        Self { facts, withheld, left: EXPANDED_BYTES }
    }

    /// Returns a value with facts in its strings; `None` if no string has a `$`, so that it stays as it is.
    ///
    /// # Errors
    ///
    /// Returns an error if a fact is not known, or if there is no room for it.
    pub fn value(&mut self, written: &Value) -> Result<Option<Value>, ExpansionFault> {
        if has_dollar(written) { self.expanded(written).map(Some) } else { Ok(None) }
    }

    fn expanded(&mut self, written: &Value) -> Result<Value, ExpansionFault> {
        Ok(match written {
            Value::String(text) => match Template::parse(text) {
                Some(template) => Value::String(self.text(&template)?),
                None => written.clone(),
            },
            Value::Array(elements) => {
                elements.iter().map(|it| self.expanded(it)).collect::<Result<_, _>>()?
            }
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, it)| Ok((key.clone(), self.expanded(it)?)));
                Value::Object(fields.collect::<Result<_, _>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => written.clone(),
        })
    }

    /// Returns the text that a template makes.
    ///
    /// # Errors
    ///
    /// Returns an error if a fact is not known, or if there is no room for it.
    pub fn text(&mut self, template: &Template) -> Result<String, ExpansionFault> {
        let mut text = BoundedText { text: String::new(), left: &mut self.left };
        for piece in &template.pieces {
            let reference = match piece {
                Piece::Text(piece) => {
                    text.push(piece)?;
                    continue;
                }
                Piece::Reference(reference) => reference,
            };
            if let Some(known) = self.facts.text(reference) {
                text.push(known)?;
                continue;
            }
            match (reference.resolve(self.facts.node()), self.withheld) {
                (ReferencedValue::Withheld, WithheldFacts::Mark) => text.push(MASKED)?,
                (ReferencedValue::Withheld, WithheldFacts::Refuse) => {
                    let path = reference.path().to_string().into();
                    return Err(ExpansionFault::Withheld { path });
                }
                (found, _) => print(&found, &mut text)?,
            }
        }
        Ok(text.text)
    }
}

/// Returns whether a string in a value has a `$`.
pub fn has_dollar(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('$'),
        Value::Array(elements) => elements.iter().any(has_dollar),
        Value::Object(fields) => fields.values().any(has_dollar),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A text, and how much longer the texts of its answer may become.
struct BoundedText<'l> {
    text: String,
    left: &'l mut usize,
}

impl TextSink for BoundedText<'_> {
    type Full = ExpansionFault;

    fn push(&mut self, text: &str) -> Result<(), ExpansionFault> {
        *self.left = self.left.checked_sub(text.len()).ok_or(ExpansionFault::TooLong)?;
        self.text.push_str(text);
        Ok(())
    }
}
