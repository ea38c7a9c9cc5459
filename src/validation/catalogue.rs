//! Environments and their class catalogues as written.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::individual::{first_of_each, single, stem};
use super::shape::Shape;
use crate::diagnostic::{Diagnostic, Kind, Place, closest};
use crate::document::{Content, Node, Span};
use crate::hierarchy::Catalogue;
use crate::model::{AGENT_SPECIFIED, ClassName, EnvironmentName, Key, Table, Value};
use crate::puppet::{Aliases, DataType};

/// An environment and its catalogue, as written.
#[derive(Clone, Debug)]
pub(super) struct EnvironmentFile {
    name: EnvironmentName,
    place: Place,
    /// None where the file says no more than that the environment exists.
    catalogue: Option<Catalogue>,
    types: Arc<Types>,
}

impl EnvironmentFile {
    pub(super) fn is_catalogue(&self) -> bool {
        self.catalogue.is_some()
    }
}

/// The types of the parameters of an environment's classes, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Types {
    /// Class -> parameter -> type.
    pub(super) parameters: BTreeMap<ClassName, Table<Key, DataType>>,
    /// What type aliases stand for.
    pub(super) aliases: Aliases,
}

/// The keys of an environment's file.
pub(super) const KEYS: &[&str] = &["name", "classes", "type_aliases"];

/// Reads the one document of an environment's file.
pub(super) fn read(documents: &[Node], shape: &mut Shape) -> Option<EnvironmentFile> {
    // An empty file says no more than that the environment exists, as one without classes does.
    let nothing = Node { content: Content::Mapping(Vec::new()), span: Span::START };
    let document = single(documents, shape).unwrap_or(&nothing);
    shape.mapping(document, "an environment", KEYS)?;
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
    if name.is_agent_specified() {
        let span = document.get("name").map_or(document.span, |node| node.span);
        shape.add(Kind::SuspiciousValue, span, AGENT_SPECIFIED).help =
            Some("give the file the name of an environment, or remove it".to_owned());
    }
    let mut known = Vec::new();
    let mut types = Types::default();
    if let Some(classes) = document.get("classes") {
        for entry in shape.free_mapping(classes, "`classes`") {
            let (parameters, of_class) = read_class(&entry.value, shape);
            match entry.key.parse::<ClassName>() {
                Ok(name) => {
                    if !of_class.is_empty() {
                        types.parameters.insert(name.clone(), of_class);
                    }
                    known.push((name, parameters));
                }
                Err(error) => {
                    shape.add(Kind::SchemaViolation, entry.key_span, error.to_string());
                }
            }
        }
    }
    if let Some(aliases) = document.get("type_aliases") {
        for entry in shape.free_mapping(aliases, "`type_aliases`") {
            if let Some(data_type) = shape.parsed(&entry.value, "a type") {
                types.aliases.insert(entry.key.clone(), data_type);
            }
        }
    }
    let catalogue =
        document.get("classes").map(|_| Catalogue { classes: known.into_iter().collect() });
    let span = document.get("name").map_or(document.span, |node| node.span);
    Some(EnvironmentFile { name, place: shape.place(span), catalogue, types: Arc::new(types) })
}

fn read_class(node: &Node, shape: &mut Shape) -> (Table<Key, Value>, Table<Key, DataType>) {
    if node.is_null() || shape.mapping(node, "a class", &["parameters", "types"]).is_none() {
        return (Table::default(), Table::default());
    }
    let parameters: Table<Key, Value> = node
        .get("parameters")
        .map(|it| shape.values(it.clone(), "`parameters`"))
        .unwrap_or_default();
    let mut types = Vec::new();
    for entry in node.get("types").map(|it| shape.free_mapping(it, "`types`")).unwrap_or_default() {
        let Some(data_type) = shape.parsed::<DataType>(&entry.value, "a type") else { continue };
        match parameters.keys().find(|it| it.as_str() == entry.key) {
            Some(parameter) => types.push((parameter.clone(), data_type)),
            None => {
                let message = format!("`{}` has a type, but is not in `parameters`", entry.key);
                let similar = closest(&entry.key, parameters.keys().map(Key::as_str));
                shape.add(Kind::SchemaViolation, entry.key_span, message).help =
                    Some(similar.map_or_else(
                        || "write the parameter with its default, or null".to_owned(),
                        |similar| format!("did you mean `{similar}`?"),
                    ));
            }
        }
    }
    (parameters, types.into_iter().collect())
}

/// What is known of each environment that has a catalogue.
#[derive(Debug, Default)]
pub(super) struct Catalogues {
    /// The file of each environment that has one.
    pub(super) files: Arc<BTreeMap<EnvironmentName, Arc<str>>>,
    pub(super) classes: Arc<BTreeMap<EnvironmentName, Catalogue>>,
    pub(super) types: Arc<OfEnvironments>,
}

/// The types of parameters in each environment.
pub(super) type OfEnvironments = BTreeMap<EnvironmentName, Arc<Types>>;

/// Joins the catalogues of all files.
pub(super) fn join(files: &[&EnvironmentFile], diagnostics: &mut Vec<Diagnostic>) -> Catalogues {
    let of_each = first_of_each(
        files,
        |file| (&file.name, &file.place),
        |name| format!("the environment `{name}` has a second file"),
        diagnostics,
    );
    let (mut files, mut classes, mut types) =
        <(BTreeMap<_, _>, BTreeMap<_, _>, BTreeMap<_, _>)>::default();
    for (name, file) in of_each {
        files.insert(name.clone(), Arc::clone(&file.place.file));
        let Some(catalogue) = &file.catalogue else { continue };
        classes.insert(name.clone(), catalogue.clone());
        types.insert(name.clone(), Arc::clone(&file.types));
    }
    Catalogues { files: Arc::new(files), classes: Arc::new(classes), types: Arc::new(types) }
}
