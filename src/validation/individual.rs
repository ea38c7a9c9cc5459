//! Individual classifications as written.

use std::collections::BTreeMap;

use super::certname;
use super::dollar::{self, DollarValue};
use super::file_reader::FileReader;
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::Node;
use crate::model::Individual;

/// The individual classification of a node, as written.
#[derive(Clone, Debug)]
pub(super) struct NodeFile {
    name: String,
    place: Place,
    individual: Individual,
    /// The values that have a `$`.
    pub(super) dollars: Vec<DollarValue>,
}

impl NodeFile {
    /// Returns the node, and where its values are written.
    pub(super) fn origin(&self) -> (&str, &Place) {
        (&self.name, &self.place)
    }

    /// Returns the values of the node.
    pub(super) fn individual(&self) -> &Individual {
        &self.individual
    }
}

/// The keys of a node's file.
pub(super) const KEYS: &[&str] = &["name", "classes", "variables", "config_data"];

/// Reads the one document of a node's file.
///
/// The values are taken out of the document: a copy of them would take as much memory again.
pub(super) fn read(documents: &mut [Node], reader: &mut FileReader) -> Option<NodeFile> {
    let document = single(documents, reader)?;
    reader.document(document, "a node", KEYS, &|_| None)?;
    let name = match document.get("name") {
        Some(node) => reader.text(node, "`name`").map(ToOwned::to_owned),
        None => Some(stem(&reader.file).to_owned()),
    };
    let span = document.get("name").map_or(document.span, |node| node.span);
    if let Some(name) = &name {
        certname::check(name, certname::CertnameRole::Node, span, reader);
    }
    let dollars = dollar::find(document, reader)?;
    let classes = document.take("classes").map(|node| reader.node_classes(node));
    let config_data = document.take("config_data").map(|node| reader.config_data(node));
    let individual = Individual {
        classes: classes.unwrap_or_default(),
        variables: document
            .take("variables")
            .map(|node| reader.variables(node))
            .unwrap_or_default(),
        config_data: config_data.unwrap_or_default(),
    };
    Some(NodeFile { name: name?, place: reader.place(span), individual, dollars })
}

/// Returns the document of a file that must have one at the most.
pub(super) fn single<'n>(
    documents: &'n mut [Node],
    reader: &mut FileReader,
) -> Option<&'n mut Node> {
    let mut documents = documents.iter_mut().filter(|document| !document.is_null());
    let first = documents.next()?;
    if let Some(second) = documents.next() {
        let message = "the file has a second document, one is allowed";
        reader.add(Kind::SchemaViolation, second.span, message);
    }
    Some(first)
}

/// Returns the name of a file without directory and extension.
pub(super) fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.strip_suffix(".yaml").or_else(|| file.strip_suffix(".yml")).unwrap_or(file)
}

/// Joins the individual classifications of all files.
pub(super) fn join(
    files: &[&NodeFile],
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<String, Individual> {
    let of_each = first_of_each(
        files,
        |file| (&file.name, &file.place),
        |name| format!("the node `{name}` has a second file"),
        diagnostics,
    );
    of_each.into_iter().map(|(name, file)| (name.clone(), file.individual.clone())).collect()
}

/// Returns the first file of each name, having complained of the others.
pub(super) fn first_of_each<'f, F, N: Ord>(
    files: &[&'f F],
    what: impl Fn(&'f F) -> (&'f N, &'f Place),
    message: impl Fn(&N) -> String,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<&'f N, &'f F> {
    let mut first: BTreeMap<&N, &F> = BTreeMap::new();
    for file in files {
        let (name, place) = what(file);
        if let Some(before) = first.get(name) {
            diagnostics.push(
                Diagnostic::new(Kind::UniquenessViolation, place.clone(), message(name))
                    .with_help("put both together into one")
                    .with_related(what(before).1.clone(), "first described here"),
            );
        } else {
            first.insert(name, file);
        }
    }
    first
}
