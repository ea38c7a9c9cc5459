//! The schemas of one commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jsonschema::{Registry, Validator};
use serde_json::Value;

use super::compile::{compile, faults, pattern_faults};
use super::cost::{self, SchemaCosts};
use super::documents::Documents;
use super::graph::{Graph, SchemaPart};
use super::library::Library;
use super::schema::Schema;
use super::source::{ReadSource, SchemaRequest, SchemaSource};
use crate::diagnostic::Diagnostic;
use crate::document::Node;

/// The schemas that the settings of a commit name.
#[derive(Debug, Default)]
pub struct SchemaSet {
    schemas: BTreeMap<Arc<str>, Arc<Schema>>,
    paths: BTreeSet<Arc<str>>,
    /// What is wrong with them.
    pub diagnostics: Vec<Diagnostic>,
}

impl SchemaSet {
    /// Reads and compiles the schemas that settings name, and those that they refer to.
    pub fn load(requests: &[&SchemaRequest], read: &ReadSource<'_>) -> Self {
        if requests.is_empty() {
            return Self::default();
        }
        let mut library = Library::load(requests, read);
        let mut diagnostics = std::mem::take(&mut library.diagnostics);
        let paths = library.paths.keys().chain(&library.probed).cloned().collect();
        diagnostics.extend(faults(&library.files));
        let (validators, resources) = match library.registry() {
            Ok(registry) => compile_all(requests, &library, &registry, &mut diagnostics),
            Err(error) => {
                // The files are checked one by one before.
                let at = SchemaPart::default();
                diagnostics.extend(at.invalid(&library.files, error.to_string()));
                (Vec::new(), BTreeMap::new())
            }
        };
        let mut files = library.files;
        for file in &mut files {
            // From here on only the places of it are asked for.
            file.value = Value::Null;
        }
        let most_missing = files.iter().map(|it| longest_required(&it.node)).max().unwrap_or(1);
        let documents = Arc::new(Documents { files, resources });
        let schemas = validators.into_iter().map(|(path, root, costs, validator)| {
            let documents = Arc::clone(&documents);
            let schema = Schema { validator, root, costs, most_missing, documents };
            (path, Arc::new(schema))
        });
        let schemas = schemas.collect();
        diagnostics.sort_by(|a, b| (&a.place, &a.message).cmp(&(&b.place, &b.message)));
        diagnostics.dedup();
        Self { schemas, paths, diagnostics }
    }

    /// Returns the files that schemas are in, as they are found.
    pub fn sources(
        requests: &[&SchemaRequest],
        read: &ReadSource<'_>,
    ) -> Vec<(Arc<str>, SchemaSource)> {
        if requests.is_empty() { Vec::new() } else { Library::load(requests, read).sources }
    }

    /// Returns the schema of a file; `None` for one that cannot be used.
    pub fn get(&self, path: &str) -> Option<&Arc<Schema>> {
        self.schemas.get(path)
    }

    /// Returns the paths of all files that schemas are in, or should be.
    pub fn paths(&self) -> &BTreeSet<Arc<str>> {
        &self.paths
    }
}

/// A validator, with path and number of its file, and what it costs.
type Compiled = (Arc<str>, usize, SchemaCosts, Validator);

/// Follows and compiles schemas, and says where they cannot be used.
fn compile_all(
    requests: &[&SchemaRequest],
    library: &Library,
    registry: &Registry<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Compiled>, BTreeMap<String, SchemaPart>) {
    let graph = Graph::new(library, registry);
    let order = cost::order(&graph);
    diagnostics.extend(graph.diagnostics.iter().cloned());
    diagnostics.extend(cost::circles(&graph, &order, &library.files));
    diagnostics.extend(pattern_faults(&graph, &library.files));
    let mut compiled = Vec::new();
    // What is not sound must not be compiled: it may not end.
    let sound = if diagnostics.is_empty() { requests } else { &[] };
    let mut done = BTreeSet::new();
    for request in sound.iter().filter(|it| done.insert(&it.path)) {
        let Some(number) = library.number(&request.path) else { continue };
        let Some(file) = library.files.get(number) else { continue };
        let root = graph.find(&file.value);
        let Some(costs) = root.and_then(|it| cost::costs(&graph, &order, it)) else {
            diagnostics.push(cost::too_costly(file));
            continue;
        };
        match compile(&library.files, number, registry) {
            Ok(validator) => {
                compiled.push((Arc::clone(&request.path), number, costs, validator));
            }
            Err(found) => diagnostics.extend(found),
        }
    }
    // Warnings, which do not keep a schema from being used.
    diagnostics.extend(graph.warnings);
    (compiled, graph.resources)
}

/// Returns how many keys a schema may find missing at one look: each is a violation of its own.
fn longest_required(node: &Node) -> u64 {
    let own = match node.get("required").map(|it| it.elements().len()) {
        Some(count) => u64::try_from(count).unwrap_or(u64::MAX).max(1),
        None => 1,
    };
    let entries = node.entries().iter().map(|it| &it.value);
    entries.chain(node.elements()).map(longest_required).fold(own, u64::max)
}
