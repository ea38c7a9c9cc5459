//! One file with a schema.

use std::sync::Arc;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::{self, Contents, FaultKind, Limits, Node, Position, Span};

/// A file with a schema: what it says, and where.
#[derive(Clone, Debug)]
pub(super) struct SchemaFile {
    pub(super) path: Arc<str>,
    pub(super) node: Node,
    pub(super) value: Value,
}

impl SchemaFile {
    /// Reads a file: JSON if its name says so, else YAML.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with it.
    pub(super) fn read(path: &Arc<str>, bytes: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        let is_json = path.ends_with(".json");
        let contents = document::read(bytes, &Limits::DEFAULT);
        let json = if is_json { Some(parse(path, bytes)?) } else { None };
        let Contents { documents, faults, .. } = contents;
        // Only YAML has scalars that are ambiguous.
        let counts = |kind: FaultKind| !(is_json && kind == FaultKind::AmbiguousScalar);
        let found: Vec<Diagnostic> = faults
            .into_iter()
            .filter(|it| counts(it.kind))
            .map(|fault| {
                let found = invalid(path, fault.span, fault.message);
                Diagnostic { help: fault.help, ..found }
            })
            .collect();
        if !found.is_empty() {
            return Err(found);
        }
        let mut documents = documents.into_iter().filter(|it| !it.is_null());
        let (first, second) = (documents.next(), documents.next());
        let Some(node) = first else {
            let message = "the file has no schema: it is empty";
            return Err(vec![invalid(path, Span::START, message)]);
        };
        if let Some(second) = second {
            let message = "the file has a second document, one is allowed";
            return Err(vec![invalid(path, second.span, message)]);
        }
        let value = json.unwrap_or_else(|| node.to_value());
        if !value.is_object() && !value.is_boolean() {
            let message =
                format!("a schema: expected a mapping or a boolean, found {}", node.type_name());
            return Err(vec![invalid(path, node.span, message)]);
        }
        Ok(Self { path: Arc::clone(path), node, value })
    }

    /// Returns the place of a part of the file.
    pub(super) fn place(&self, span: Span) -> Place {
        Place { file: Arc::clone(&self.path), span }
    }
}

/// Says that a schema is none.
pub(super) fn invalid(path: &Arc<str>, span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Kind::InvalidSchema, Place { file: Arc::clone(path), span }, message)
}

fn parse(path: &Arc<str>, bytes: &[u8]) -> Result<Value, Vec<Diagnostic>> {
    let limit = Limits::DEFAULT.file_bytes;
    if bytes.len() as u64 > limit {
        let message = format!("the file has {} bytes, {limit} are allowed", bytes.len());
        return Err(vec![invalid(path, Span::START, message)]);
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let at = position(bytes, error.line(), error.column());
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or(&text);
        vec![invalid(path, Span { start: at, end: at }, format!("the file is not JSON: {what}"))]
    })
}

/// Returns the place of a byte of a line, both from 1.
fn position(bytes: &[u8], line: usize, column: usize) -> Position {
    let mut lines = bytes.split_inclusive(|it| *it == b'\n');
    let before: usize = lines.by_ref().take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    let inside = lines.next().unwrap_or_default();
    let inside = inside.get(..column.saturating_sub(1)).unwrap_or(inside);
    let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
    Position {
        offset: number(before + inside.len()),
        line: number(line.max(1)),
        column: number(String::from_utf8_lossy(inside).chars().count() + 1),
    }
}
