//! Values with the places they were read from.

use serde_json::{Map, Value};

use super::Span;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where the value stands.
    pub span: Span,
    /// The value.
    pub content: Content,
}

/// A value whose parts have places.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Null, a boolean, a number or a string.
    Scalar(Value),
    /// A list.
    Sequence(Vec<Node>),
    /// A mapping; no key stands twice.
    Mapping(Vec<Entry>),
}

/// A key of a mapping with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Returns the value without places.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::Sequence(elements) => elements.iter().map(Self::to_value).collect(),
            Content::Mapping(entries) => {
                let fields = entries.iter().map(|it| (it.key.clone(), it.value.to_value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// Returns the value without places, in no more memory than it needs: it may be kept for long. Lists are made within
    /// the memory of this one.
    pub fn into_value(self) -> Value {
        let fitted = |mut text: String| {
            text.shrink_to_fit();
            text
        };
        match self.content {
            Content::Scalar(Value::String(text)) => Value::String(fitted(text)),
            Content::Scalar(value) => value,
            Content::Sequence(elements) => {
                Value::Array(elements.into_iter().map(Self::into_value).collect())
            }
            Content::Mapping(entries) => {
                let fields = entries.into_iter().map(|it| (fitted(it.key), it.value.into_value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// Takes the value of a mapping's key out; null with the same place stays.
    pub fn take(&mut self, key: &str) -> Option<Self> {
        let Content::Mapping(entries) = &mut self.content else { return None };
        let value = &mut entries.iter_mut().find(|entry| entry.key == key)?.value;
        let null = Content::Scalar(Value::Null);
        Some(Self { span: value.span, content: std::mem::replace(&mut value.content, null) })
    }

    /// Returns the entries of a mapping; none for any other value.
    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the elements of a list; none for any other value.
    pub fn elements(&self) -> &[Self] {
        match &self.content {
            Content::Sequence(elements) => elements,
            _ => &[],
        }
    }

    /// Returns the elements of a list; none for any other value.
    pub fn elements_mut(&mut self) -> &mut [Self] {
        match &mut self.content {
            Content::Sequence(elements) => elements,
            _ => &mut [],
        }
    }

    /// Returns the entry of a mapping with this key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Returns the value of a mapping's key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns where the document of a group or node is named: at its `name`, or as a whole.
    pub fn name_span(&self) -> Span {
        self.get("name").map_or(self.span, |name| name.span)
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(value) => value.as_str(),
            _ => None,
        }
    }

    /// Returns a scalar as a text; `None` for null and any other value.
    pub fn scalar_text(&self) -> Option<String> {
        match &self.content {
            Content::Scalar(Value::String(text)) => Some(text.clone()),
            Content::Scalar(value) if !value.is_null() => Some(value.to_string()),
            _ => None,
        }
    }

    /// Returns whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(Value::Null))
    }

    /// Returns the sort of value for a message: `a string`, `a list`, ….
    pub fn type_name(&self) -> &'static str {
        match &self.content {
            Content::Scalar(Value::Null) => "null",
            Content::Scalar(Value::Bool(_)) => "a boolean",
            Content::Scalar(Value::Number(_)) => "a number",
            Content::Scalar(_) => "a string",
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a mapping",
        }
    }

    /// Returns how many values there are, this one counted.
    pub fn count(&self) -> usize {
        let inside: usize = match &self.content {
            Content::Scalar(_) => 0,
            Content::Sequence(elements) => elements.iter().map(Self::count).sum(),
            Content::Mapping(entries) => entries.iter().map(|it| it.value.count()).sum(),
        };
        inside + 1
    }

    /// Returns how many bytes of text there are, keys included.
    pub(super) fn text_bytes(&self) -> usize {
        match &self.content {
            Content::Scalar(Value::String(text)) => text.len(),
            Content::Scalar(_) => 0,
            Content::Sequence(elements) => elements.iter().map(Self::text_bytes).sum(),
            Content::Mapping(entries) => {
                entries.iter().map(|it| it.key.len() + it.value.text_bytes()).sum()
            }
        }
    }

    /// Returns how many levels of lists and mappings there are.
    pub(super) fn depth(&self) -> usize {
        match &self.content {
            Content::Scalar(_) => 0,
            Content::Sequence(elements) => {
                elements.iter().map(Self::depth).max().unwrap_or_default() + 1
            }
            Content::Mapping(entries) => {
                entries.iter().map(|it| it.value.depth()).max().unwrap_or_default() + 1
            }
        }
    }
}
