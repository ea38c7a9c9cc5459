//! Environments and their class catalogues as written.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::file_reader::{FileReader, has_misspelt};
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
    /// Whether the name is known; otherwise it is that of the file.
    has_name: bool,
    doubts: CatalogueDoubts,
}

/// What may be missing in a catalogue, since it could not be read.
#[derive(Clone, Debug, Default)]
pub(super) struct CatalogueDoubts {
    pub(super) lacks_classes: bool,
    /// The classes that may have other parameters.
    pub(super) of_parameters: BTreeSet<ClassName>,
}

impl EnvironmentFile {
    /// Returns the name of the environment, if it is known.
    pub(super) fn known_name(&self) -> Option<&EnvironmentName> {
        self.has_name.then_some(&self.name)
    }

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

/// The keys of a class.
const CLASS_KEYS: &[&str] = &["parameters", "types"];

/// Reads the one document of an environment's file.
///
/// The values are taken out of the document: a copy of them would take as much memory again.
pub(super) fn read(documents: &mut [Node], reader: &mut FileReader) -> Option<EnvironmentFile> {
    // An empty file says no more than that the environment exists, as one without classes does.
    let errors_before = reader.errors;
    let mut nothing = Node { content: Content::Mapping(Vec::new()), span: Span::START };
    let document = single(documents, reader);
    let is_lost = document.is_none() && !reader.faults.is_empty();
    let document = document.unwrap_or(&mut nothing);
    // Another document may have more of the classes.
    let mut doubts = CatalogueDoubts {
        lacks_classes: reader.errors > errors_before,
        ..CatalogueDoubts::default()
    };
    let is_mapping = reader.document(document, "an environment", KEYS, &|_| None).is_some();
    let name = if is_mapping { read_name(document, reader) } else { None };
    if name.as_ref().is_some_and(EnvironmentName::is_agent_specified) {
        let span = document.get("name").map_or(document.span, |node| node.span);
        reader.add(Kind::SuspiciousValue, span, AGENT_SPECIFIED).help =
            Some("give the file the name of an environment, or remove it".to_owned());
    }
    let has_name = name.is_some() && !is_lost && !is_name_doubtful(document, reader);
    let mut types = Types::default();
    let is_twice = document.entry("classes").is_some_and(|it| reader.doubts.cover(it.key_span));
    doubts.lacks_classes |= is_twice;
    let classes = document.take("classes");
    let classes = classes.map(|it| read_classes(it, (&mut types, &mut doubts), reader));
    if let Some(aliases) = document.get("type_aliases") {
        for entry in reader.free_mapping(aliases, "`type_aliases`") {
            if let Some(data_type) = reader.parsed(&entry.value, "a type") {
                types.aliases.insert(entry.key.clone(), data_type);
            }
        }
    }
    // Which environment has the classes is not known without its name.
    let catalogue = classes.filter(|_| has_name).map(|classes| Catalogue { classes });
    let name = name.or_else(|| stem(&reader.file).parse().ok())?;
    let span = document.get("name").map_or(document.span, |node| node.span);
    Some(EnvironmentFile {
        name,
        place: reader.place(span),
        catalogue,
        types: Arc::new(types),
        has_name,
        doubts,
    })
}

/// Returns whether an environment may be meant to have another name than the one that was read.
fn is_name_doubtful(document: &Node, reader: &FileReader) -> bool {
    match document.get("name") {
        Some(_) => reader.is_doubtful(document, "name"),
        None => reader.merges(document, "name") || has_misspelt(document, "name", KEYS),
    }
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
    (types, doubts): (&mut Types, &mut CatalogueDoubts),
    reader: &mut FileReader,
) -> Table<ClassName, Table<Key, Value>> {
    let mut classes = Vec::new();
    let mismatches_before = reader.mismatches;
    doubts.lacks_classes |= reader.is_lost(&node);
    let entries = reader.entries(node, "`classes`");
    doubts.lacks_classes |= reader.mismatches > mismatches_before;
    for entry in entries {
        // A merge key is refused at its place.
        if entry.key == "<<" && reader.faults.cover(entry.key_span) {
            doubts.lacks_classes = true;
            continue;
        }
        let is_twice = reader.doubts.cover(entry.key_span);
        let class = read_class(entry.value, reader);
        match entry.key.parse::<ClassName>() {
            Ok(name) => {
                if is_twice || !class.is_whole {
                    doubts.of_parameters.insert(name.clone());
                }
                if !class.types.is_empty() {
                    types.parameters.insert(name.clone(), class.types);
                }
                classes.push((name, class.parameters));
            }
            Err(error) => {
                doubts.lacks_classes = true;
                reader.add(Kind::SchemaViolation, entry.key_span, error.to_string());
            }
        }
    }
    classes.into_iter().collect()
}

/// A class of a catalogue as it was read.
#[derive(Default)]
struct ReadClass {
    parameters: Table<Key, Value>,
    types: Table<Key, DataType>,
    /// Whether all parameters could be read.
    is_whole: bool,
}

fn read_class(mut node: Node, reader: &mut FileReader) -> ReadClass {
    if node.is_null() || reader.mapping(&node, "a class", CLASS_KEYS).is_none() {
        let is_whole = node.is_null() && !reader.is_lost(&node);
        return ReadClass { is_whole, ..ReadClass::default() };
    }
    let is_known = match node.entry("parameters") {
        Some(entry) => !reader.doubts.cover(entry.key_span) && !reader.is_lost(&entry.value),
        // Another key may be meant to be it.
        None => node.entries().iter().all(|it| CLASS_KEYS.contains(&it.key.as_str())),
    };
    let errors_before = reader.errors;
    let parameters: Table<Key, Value> =
        node.take("parameters").map(|it| reader.values(it, "`parameters`")).unwrap_or_default();
    let mut is_whole = is_known && reader.errors == errors_before;
    let mut types = Vec::new();
    let names = LazyCell::new(|| KnownNames::new(parameters.keys().map(Key::as_str)));
    for entry in node.get("types").map(|it| reader.free_mapping(it, "`types`")).unwrap_or_default()
    {
        let Some(data_type) = reader.parsed::<DataType>(&entry.value, "a type") else { continue };
        match parameters.get_key_value(entry.key.as_str()) {
            Some((parameter, _)) => types.push((parameter.clone(), data_type)),
            None => {
                is_whole = false;
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
    ReadClass { parameters, types: types.into_iter().collect(), is_whole }
}

/// What is known of each environment that has a catalogue.
#[derive(Debug, Default)]
pub(super) struct Catalogues {
    /// The file of each environment that has one.
    pub(super) files: Arc<BTreeMap<EnvironmentName, Arc<str>>>,
    pub(super) classes: Arc<BTreeMap<EnvironmentName, Catalogue>>,
    pub(super) types: Arc<OfEnvironments>,
    /// What may be missing in catalogues with errors.
    pub(super) doubts: BTreeMap<EnvironmentName, CatalogueDoubts>,
    /// Whether there is a file whose environment is not known.
    pub(super) has_nameless: bool,
}

impl Catalogues {
    /// Returns whether a catalogue may lack classes that an environment has.
    pub(super) fn lacks_classes(&self, environment: &EnvironmentName) -> bool {
        self.doubts.get(environment).is_some_and(|it| it.lacks_classes)
    }

    /// Returns whether a class may have other parameters than those of the catalogue.
    pub(super) fn lacks_parameters(
        &self,
        environment: &EnvironmentName,
        class: &ClassName,
    ) -> bool {
        self.doubts.get(environment).is_some_and(|it| it.of_parameters.contains(class))
    }
}

/// The types of parameters in each environment.
pub(super) type OfEnvironments = BTreeMap<EnvironmentName, Arc<Types>>;

/// Joins the catalogues of all files.
pub(super) fn join(files: &[&EnvironmentFile], diagnostics: &mut Vec<Diagnostic>) -> Catalogues {
    let (named, nameless): (Vec<&EnvironmentFile>, Vec<&EnvironmentFile>) =
        files.iter().copied().partition(|it| it.has_name);
    let of_each = first_of_each(
        &named,
        |file| (&file.name, &file.place),
        |name| format!("the environment `{name}` has a second file"),
        diagnostics,
    );
    let (mut files, mut classes, mut types) =
        <(BTreeMap<_, _>, BTreeMap<_, _>, BTreeMap<_, _>)>::default();
    let mut doubts: BTreeMap<EnvironmentName, CatalogueDoubts> = BTreeMap::new();
    for file in named {
        let CatalogueDoubts { lacks_classes, of_parameters } = &file.doubts;
        let is_second = of_each.get(&file.name).is_some_and(|it| !std::ptr::eq(*it, file));
        if is_second || *lacks_classes || !of_parameters.is_empty() {
            let known = doubts.entry(file.name.clone()).or_default();
            known.lacks_classes |= is_second || *lacks_classes;
            let both = file.catalogue.iter().filter(|_| is_second).flat_map(|it| it.classes.keys());
            known.of_parameters.extend(of_parameters.iter().chain(both).cloned());
        }
    }
    for (name, file) in of_each {
        files.insert(name.clone(), Arc::clone(&file.place.file));
        let Some(catalogue) = &file.catalogue else { continue };
        classes.insert(name.clone(), catalogue.clone());
        types.insert(name.clone(), Arc::clone(&file.types));
    }
    let has_nameless = !nameless.is_empty();
    for file in nameless {
        files.entry(file.name.clone()).or_insert_with(|| Arc::clone(&file.place.file));
    }
    Catalogues {
        files: Arc::new(files),
        classes: Arc::new(classes),
        types: Arc::new(types),
        doubts,
        has_nameless,
    }
}
