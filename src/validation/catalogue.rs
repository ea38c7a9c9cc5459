//! Class catalogues as written.

use std::collections::BTreeMap;

use super::individual::{first_of_each, single, stem};
use super::shape::Shape;
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::Node;
use crate::hierarchy::Catalogue;
use crate::model::{ClassName, EnvironmentName, Key, Table, Value};

/// The catalogue of an environment, as written.
#[derive(Clone, Debug)]
pub(super) struct EnvironmentFile {
    name: EnvironmentName,
    place: Place,
    catalogue: Catalogue,
}

/// Reads the one document of an environment's file.
pub(super) fn read(documents: &[Node], shape: &mut Shape) -> Option<EnvironmentFile> {
    let document = single(documents, shape)?;
    shape.mapping(document, "an environment", &["name", "classes"])?;
    let name: EnvironmentName = match document.get("name") {
        Some(node) => shape.parsed(node, "`name`")?,
        None => match stem(&shape.file).parse() {
            Ok(name) => name,
            Err(error) => {
                shape.add(Kind::SchemaViolation, document.span, format!("{error}")).help =
                    Some("rename the file, or write a `name`".to_owned());
                return None;
            }
        },
    };
    let mut known = Vec::new();
    if let Some(classes) = document.get("classes") {
        for entry in shape.free_mapping(classes, "`classes`") {
            let parameters = read_class(&entry.value, shape);
            match entry.key.parse::<ClassName>() {
                Ok(name) => {
                    known.push((name, parameters));
                }
                Err(error) => {
                    shape.add(Kind::SchemaViolation, entry.key_span, error.to_string());
                }
            }
        }
    }
    let catalogue = Catalogue { classes: known.into_iter().collect() };
    let span = document.get("name").map_or(document.span, |node| node.span);
    Some(EnvironmentFile { name, place: shape.place(span), catalogue })
}

fn read_class(node: &Node, shape: &mut Shape) -> Table<Key, Value> {
    if node.is_null() || shape.mapping(node, "a class", &["parameters"]).is_none() {
        return Table::default();
    }
    node.get("parameters").map(|it| shape.values(it, "`parameters`")).unwrap_or_default()
}

/// Joins the catalogues of all files.
pub(super) fn join(
    files: &[&EnvironmentFile],
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<EnvironmentName, Catalogue> {
    let of_each = first_of_each(
        files,
        |file| (&file.name, &file.place),
        |name| format!("the environment `{name}` has a second file"),
        diagnostics,
    );
    of_each.into_iter().map(|(name, file)| (name.clone(), file.catalogue.clone())).collect()
}
