//! Schemas and what they refer to in one document, for editors.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonschema::Draft;
use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value};

use super::graph::{Graph, SchemaNode, SchemaPart};
use super::library::Library;
use super::location::PATH;
use super::source::{ReadSource, SchemaRequest};
use crate::diagnostic::Diagnostic;

/// Schemas as the definitions of one document; their references lead to each other.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaBundle {
    /// Each file by a name that stands for its path.
    pub definitions: Map<String, Value>,
    /// The newest draft among them, at least draft 7.
    pub draft: &'static str,
    names: BTreeMap<Arc<str>, String>,
}

/// What only has a meaning where a schema stands by itself.
const OF_RESOURCE: &[&str] = &["$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];

impl SchemaBundle {
    /// Puts the schemas that settings name together.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with them.
    pub fn new(
        requests: &[&SchemaRequest],
        read: &ReadSource<'_>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut library = Library::load(requests, read);
        let mut diagnostics = std::mem::take(&mut library.diagnostics);
        let Ok(registry) = library.registry() else { return Err(diagnostics) };
        let graph = Graph::new(&library, &registry);
        diagnostics.extend(graph.diagnostics.iter().cloned());
        if !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        let names: BTreeMap<Arc<str>, String> = library
            .files
            .iter()
            .map(|it| (Arc::clone(&it.path), it.path.replace('/', ":")))
            .collect();
        let name = |file: usize| {
            let path = library.files.get(file).map(|it| &it.path);
            path.and_then(|it| names.get(it)).map_or("", String::as_str)
        };
        let mut values: Vec<Value> = library.files.iter().map(|it| it.value.clone()).collect();
        for node in &graph.members {
            let Some(schema) = values.get_mut(node.at.file).and_then(|it| find(it, &node.at))
            else {
                continue;
            };
            rewrite(schema, node, &graph, &name);
        }
        let newest = library.files.iter().map(|it| rank(Draft::default().detect(&it.value))).max();
        let definitions = values.into_iter().enumerate();
        let definitions = definitions.map(|(file, value)| (name(file).to_owned(), value)).collect();
        Ok(Self { definitions, draft: newest.unwrap_or_default().uri(), names })
    }

    /// Returns the schema of a file.
    pub fn definition(&self, path: &str) -> Option<&Value> {
        self.definitions.get(self.names.get(path)?)
    }

    /// Returns a reference to the schema of a file.
    pub fn reference(&self, path: &str) -> Option<String> {
        Some(reference(self.names.get(path)?, ""))
    }
}

/// Returns a reference to a part of a definition.
pub fn reference(name: &str, pointer: &str) -> String {
    format!("#/definitions/{name}{}", utf8_percent_encode(pointer, PATH))
}

fn find<'v>(value: &'v mut Value, at: &SchemaPart) -> Option<&'v mut Map<String, Value>> {
    value.pointer_mut(&at.pointer)?.as_object_mut()
}

/// Leads the references of a schema to the definitions, and takes away its own names.
fn rewrite<'n>(
    schema: &mut Map<String, Value>,
    node: &SchemaNode<'_>,
    graph: &Graph<'_>,
    name: &dyn Fn(usize) -> &'n str,
) {
    for keyword in OF_RESOURCE {
        schema.shift_remove(*keyword);
    }
    for (keyword, target) in &node.references {
        let Some(target) = graph.members.get(*target) else { continue };
        schema.shift_remove(*keyword);
        // Where a reference depends on the way to it, the bundle has the way from the beginning.
        let to = reference(name(target.at.file), &target.at.pointer);
        schema.entry("$ref").or_insert(to.into());
    }
}

/// The drafts from which a document of several may be.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum CommonDraft {
    #[default]
    Seven,
    Of2019,
    Of2020,
}

fn rank(draft: Draft) -> CommonDraft {
    match draft {
        Draft::Draft201909 => CommonDraft::Of2019,
        Draft::Draft202012 | Draft::Unknown => CommonDraft::Of2020,
        _ => CommonDraft::Seven,
    }
}

impl CommonDraft {
    fn uri(self) -> &'static str {
        match self {
            Self::Seven => "http://json-schema.org/draft-07/schema#",
            Self::Of2019 => "https://json-schema.org/draft/2019-09/schema",
            Self::Of2020 => "https://json-schema.org/draft/2020-12/schema",
        }
    }
}

/// Writes lists of which each element has a schema of its own as the newest draft does.
pub fn to_prefix_items(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(to_prefix_items);
            if fields.get("items").is_some_and(Value::is_array) {
                let first = fields.shift_remove("items").unwrap_or_default();
                let rest = fields.shift_remove("additionalItems");
                fields.insert("prefixItems".to_owned(), first);
                fields.extend(rest.map(|it| ("items".to_owned(), it)));
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(to_prefix_items),
        _ => {}
    }
}
