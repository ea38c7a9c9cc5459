//! Environments and their class catalogues as written.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::file_reader::FileReader;
use super::individual::{first_of_each, single, stem};
use crate::diagnostic::{Diagnostic, Kind, KnownNames, Place};
use crate::document::{Content, Node, Span};
use crate::hierarchy::Catalogue;
use crate::model::{AGENT_SPECIFIED, ClassName, EnvironmentName, Key, Table, Value};
use crate::puppet::{Aliases, DataType};

/// An environment and its catalogue, as written.
#[derive(Clone, Debug)]
pub(super) struct EnvironmentFile {
    pub(super) name: EnvironmentName,
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
///
/// The values are taken out of the document: a copy of them would take as much memory again.
pub(super) fn read(documents: &mut [Node], reader: &mut FileReader) -> Option<EnvironmentFile> {
    // An empty file says no more than that the environment exists, as one without classes does.
    let mut nothing = Node { content: Content::Mapping(Vec::new()), span: Span::START };
    let document = single(documents, reader).unwrap_or(&mut nothing);
    reader.document(document, "an environment", KEYS, &|_| None)?;
    let name = read_name(document, reader);
    if name.as_ref().is_some_and(EnvironmentName::is_agent_specified) {
        let span = document.get("name").map_or(document.span, |node| node.span);
        reader.add(Kind::SuspiciousValue, span, AGENT_SPECIFIED).help =
            Some("give the file the name of an environment, or remove it".to_owned());
    }
    let mut types = Types::default();
    let classes = document.take("classes").map(|node| read_classes(node, &mut types, reader));
    if let Some(aliases) = document.get("type_aliases") {
        for entry in reader.free_mapping(aliases, "`type_aliases`") {
            if let Some(data_type) = reader.parsed(&entry.value, "a type") {
                types.aliases.insert(entry.key.clone(), data_type);
            }
        }
    }
    let catalogue = classes.map(|classes| Catalogue { classes });
    let span = document.get("name").map_or(document.span, |node| node.span);
    Some(EnvironmentFile {
        name: name?,
        place: reader.place(span),
        catalogue,
        types: Arc::new(types),
    })
}

fn read_name(document: &Node, reader: &mut FileReader) -> Option<EnvironmentName> {
    if let Some(node) = document.get("name") {
        return reader.parsed(node, "`name`");
    }
    match stem(&reader.file).parse() {
        Ok(name) => Some(name),
        Err(error) => {
            reader.add(Kind::SchemaViolation, document.span, format!("{error}")).help =
                Some("rename the file, or write a `name`".to_owned());
            None
        }
    }
}

fn read_classes(
    node: Node,
    types: &mut Types,
    reader: &mut FileReader,
) -> Table<ClassName, Table<Key, Value>> {
    let mut classes = Vec::new();
    for entry in reader.entries(node, "`classes`") {
        let (parameters, of_class) = read_class(entry.value, reader);
        match entry.key.parse::<ClassName>() {
            Ok(name) => {
                if !of_class.is_empty() {
                    types.parameters.insert(name.clone(), of_class);
                }
                classes.push((name, parameters));
            }
            Err(error) => {
                reader.add(Kind::SchemaViolation, entry.key_span, error.to_string());
            }
        }
    }
    classes.into_iter().collect()
}

fn read_class(
    mut node: Node,
    reader: &mut FileReader,
) -> (Table<Key, Value>, Table<Key, DataType>) {
    if node.is_null() || reader.mapping(&node, "a class", &["parameters", "types"]).is_none() {
        return (Table::default(), Table::default());
    }
    let parameters: Table<Key, Value> =
        node.take("parameters").map(|it| reader.values(it, "`parameters`")).unwrap_or_default();
    let mut types = Vec::new();
    let names = LazyCell::new(|| KnownNames::new(parameters.keys().map(Key::as_str)));
    for entry in node.get("types").map(|it| reader.free_mapping(it, "`types`")).unwrap_or_default()
    {
        let Some(data_type) = reader.parsed::<DataType>(&entry.value, "a type") else { continue };
        match parameters.get_key_value(entry.key.as_str()) {
            Some((parameter, _)) => types.push((parameter.clone(), data_type)),
            None => {
                let message = format!("`{}` has a type, but is not in `parameters`", entry.key);
                let similar = names.closest(&entry.key);
                reader.add(Kind::SchemaViolation, entry.key_span, message).help =
                    Some(similar.map_or_else(
                        || "write the parameter with its default, or null".to_owned(),
                        |similar| format!("did you mean `{similar}`?"),
                    ));
            }
        }
    }
    drop(names);
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
