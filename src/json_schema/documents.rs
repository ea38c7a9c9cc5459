//! The files of schemas, to say what they ask for, and where.

use std::collections::BTreeMap;

use jsonschema::ValidationError;
use serde_json::Value;

use super::file::SchemaFile;
use super::graph::SchemaPart;
use crate::diagnostic::Place;
use crate::document::{Content, Node, Span};

/// The files of schemas, to say what they ask for, and where.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) files: Vec<SchemaFile>,
    /// The URI of every resource, and where it begins.
    pub(super) resources: BTreeMap<String, SchemaPart>,
}

/// Stands for a file that is not there.
static NOTHING: Node = Node { span: Span::START, content: Content::Scalar(Value::Null) };

impl Documents {
    /// Returns what a file says.
    pub(super) fn node(&self, file: usize) -> &Node {
        self.files.get(file).map_or(&NOTHING, |it| &it.node)
    }

    /// Returns where a part of a file stands.
    pub(super) fn place(&self, at: &SchemaPart) -> Option<Place> {
        at.place(&self.files)
    }

    /// Returns the keyword that made an error.
    pub(super) fn location(&self, error: &ValidationError<'_>, root: usize) -> SchemaPart {
        let path = error.schema_path().as_str();
        let of_resource = error.absolute_keyword_location().and_then(|uri| {
            let (base, _) = uri.as_str().split_once('#').unwrap_or((uri.as_str(), ""));
            self.resources.get(base)
        });
        match of_resource {
            Some(at) => SchemaPart { file: at.file, pointer: format!("{}{path}", at.pointer) },
            None => SchemaPart { file: root, pointer: path.to_owned() },
        }
    }
}
