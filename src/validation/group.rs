//! Node groups as written.

use std::sync::Arc;

use super::certname;
use super::dollar::{self, DollarValue};
use super::file_reader::FileReader;
use super::rule;
use crate::diagnostic::{Kind, Place, closest};
use crate::document::{Entry, Node, Span, bounded};
use crate::hierarchy::root_group;
use crate::model::{BudgetItem, Condition, EnvironmentName, Group, GroupId, GroupName};
use crate::rule::with_pins;

/// A group as written: valid by itself, but for its parent.
#[derive(Clone, Debug)]
pub struct GroupFile {
    /// Where the group is written: its name, or the document.
    pub place: Place,
    /// The group, with the root group as its parent; `None` if it has errors.
    pub group: Option<Group>,
    /// The name, as far as it could be read.
    pub name: Option<GroupName>,
    /// The id that is written or follows from the name.
    pub id: Option<GroupId>,
    /// Where the id is written.
    pub id_place: Option<Place>,
    /// Where the environment is written.
    pub environment: Option<Place>,
    /// The parent as written, and where.
    pub parent: Option<(ParentName, Place)>,
    /// Where the rule is written.
    pub rule: Option<Place>,
    /// The nodes that are pinned, and where.
    pub pinned: Box<[(Arc<str>, Place)]>,
    /// Where the values are written.
    pub values: ValuePlaces,
    /// The values that have a `$`.
    pub(super) dollars: Vec<DollarValue>,
}

/// Where the values of a group are written.
#[derive(Clone, Debug)]
pub struct ValuePlaces {
    /// Each class, and each of its parameters.
    pub classes: Vec<ClassPlace>,
    /// Each variable.
    pub variables: Vec<ParameterPlace>,
    /// Each class with config data, and each of its keys.
    pub config_data: Vec<ClassPlace>,
}

impl ValuePlaces {
    fn of(document: &Node, reader: &FileReader) -> Self {
        Self {
            classes: class_places(document, "classes", reader),
            variables: parameter_places(document.get("variables"), reader),
            config_data: class_places(document, "config_data", reader),
        }
    }

    /// Returns where a class is written.
    pub fn class(&self, class: &str) -> Option<&ClassPlace> {
        self.classes.iter().find(|it| it.name.as_ref() == class)
    }

    /// Returns where a parameter of a class is written.
    pub fn parameter(&self, class: &str, parameter: &str) -> Option<&ParameterPlace> {
        named(&self.class(class)?.parameters, parameter)
    }

    /// Returns where a variable is written.
    pub fn variable(&self, variable: &str) -> Option<&ParameterPlace> {
        named(&self.variables, variable)
    }

    /// Returns where a key of the config data of a class is written.
    pub fn config_data_key(&self, class: &str, key: &str) -> Option<&ParameterPlace> {
        let class = self.config_data.iter().find(|it| it.name.as_ref() == class)?;
        named(&class.parameters, key)
    }
}

fn named<'p>(places: &'p [ParameterPlace], name: &str) -> Option<&'p ParameterPlace> {
    places.iter().find(|it| it.name.as_ref() == name)
}

/// Where a class is written.
#[derive(Clone, Debug)]
pub struct ClassPlace {
    /// The class as written.
    pub name: Arc<str>,
    /// Its place.
    pub place: Place,
    /// Its parameters.
    pub parameters: Vec<ParameterPlace>,
}

/// Where a parameter is written.
#[derive(Clone, Debug)]
pub struct ParameterPlace {
    /// The parameter as written.
    pub name: Arc<str>,
    /// Its place.
    pub place: Place,
    /// The place of its value.
    pub value: Place,
}

/// How a group names its parent.
#[derive(Clone, Debug, PartialEq)]
pub enum ParentName {
    /// By id.
    Id(GroupId),
    /// By name.
    Name(Arc<str>),
}

const KEYS: &[&str] = &[
    "name",
    "id",
    "parent",
    "environment",
    "environment_trumps",
    "description",
    "rule",
    "pinned",
    "classes",
    "variables",
    "config_data",
];

/// Reads the groups of a file, one a document.
///
/// The values are taken out of the documents: a copy of them would take as much memory again.
pub(super) fn read(documents: &mut [Node], reader: &mut FileReader) -> Box<[GroupFile]> {
    // Most files have one group: room for more would be most of what is kept of them.
    let mut groups = Vec::with_capacity(documents.iter().filter(|it| !it.is_null()).count());
    let read = documents.iter_mut().filter(|document| !document.is_null()).map_while(|document| {
        reader.charge(BudgetItem::Groups, 1)?;
        let name = document.get("name").and_then(Node::as_str);
        reader.group = name.map(|it| bounded(it.to_owned()));
        let group = read_group(document, reader);
        reader.group = None;
        Some(group)
    });
    groups.extend(read.flatten());
    groups.into()
}

/// Returns what is meant by a key that Puppet Enterprise, Hiera or other classifiers have.
fn familiar(entry: &Entry) -> Option<String> {
    let meant = match entry.key.to_lowercase().replace('-', "_").as_str() {
        "parameters" | "params" | "vars" => {
            let help =
                "did you mean `variables`? parameters of a class stand in `classes`, below it";
            return Some(help.to_owned());
        }
        "deleted" | "serial_number" | "last_edited" | "user_permissions" => {
            let help = "the API of Puppet Enterprise adds it to a group; leave it out";
            return Some(help.to_owned());
        }
        "groups" => {
            return Some("a document has one group; part several by lines with `---`".to_owned());
        }
        "children" => return Some("each child names its `parent`".to_owned()),
        "match" | "matches" | "matching" | "rules" | "condition" | "conditions" => "rule",
        "nodes" | "hosts" | "pins" | "members" | "certnames" | "pinned_nodes" => "pinned",
        "hiera" | "data" | "hiera_data" => "config_data",
        "env" | "environments" => "environment",
        "trumps" | "environment_group" | "override" => "environment_trumps",
        "uuid" => "id",
        "title" | "group" | "group_name" => "name",
        "inherits" | "inherit" | "parent_id" | "parents" => "parent",
        "modules" | "roles" => "classes",
        _ => {
            let is_group = entry.value.entries().iter().any(|it| KEYS.contains(&it.key.as_str()));
            return is_group.then(|| {
                format!("write `name: {}`, and what is below it without indentation", entry.key)
            });
        }
    };
    Some(format!("did you mean `{meant}`?"))
}

fn read_group(document: &mut Node, reader: &mut FileReader) -> Option<GroupFile> {
    let errors_before = reader.errors;
    reader.mapping_or(document, "a group", KEYS, &familiar)?;
    let name = read_name(document, reader);
    let environment: Option<EnvironmentName> = match document.get("environment") {
        Some(node) => reader.parsed(node, "`environment`"),
        None => "production".parse().ok(),
    };
    let written_id = document.get("id").map(|node| read_id(node, reader));
    let id = match (&written_id, &name, &environment) {
        (Some(id), _, _) => *id,
        (None, Some(name), Some(environment)) => Some(implied_id(document, name, environment)),
        _ => None,
    };
    let is_root = id == Some(GroupId::ROOT);
    let pins = read_pins(document, is_root, reader);
    let rule = read_rule(document, is_root, pins.as_deref(), reader);
    let trumps = document.get("environment_trumps");
    let trumps = trumps.and_then(|node| reader.boolean(node, "`environment_trumps`"));
    let description = read_description(document, reader);
    let values = ValuePlaces::of(document, reader);
    let dollars = dollar::find(document, reader);
    let classes = document.take("classes").map(|node| reader.classes(node, "`classes`"));
    let config_data = document.take("config_data").map(|node| reader.config_data(node));
    let variables =
        document.take("variables").map(|node| reader.variables(node)).unwrap_or_default();
    let parent = read_parent(document, reader);
    let pinned = pin_places(document, pins, reader);
    let place = |key: &str| document.get(key).map(|node| reader.place(node.span));
    let valid = reader.errors == errors_before;
    let group = match (id, name.clone(), environment, rule) {
        (Some(id), Some(name), Some(environment), Some(rule)) if valid => Some(Group {
            id,
            name,
            parent: GroupId::ROOT,
            environment,
            environment_trumps: trumps.unwrap_or(false),
            description,
            rule: rule.map(Arc::new),
            classes: Arc::new(classes.unwrap_or_default()),
            variables: Arc::new(variables),
            config_data: Arc::new(config_data.unwrap_or_default()),
        }),
        _ => None,
    };
    Some(GroupFile {
        place: reader.place(document.get("name").map_or(document.span, |node| node.span)),
        group,
        name,
        id,
        id_place: place("id"),
        environment: place("environment"),
        parent,
        rule: place("rule"),
        pinned,
        values,
        dollars,
    })
}

fn read_description(document: &Node, reader: &mut FileReader) -> Option<Arc<str>> {
    let node = document.get("description").filter(|node| !node.is_null())?;
    reader.text(node, "`description`").map(Arc::from)
}

fn read_name(document: &Node, reader: &mut FileReader) -> Option<GroupName> {
    if let Some(node) = document.get("name") {
        return reader.parsed(node, "`name`");
    }
    // A misspelt `name` has been said to be one.
    let is_misspelt = |key: &str| closest(key, KEYS.iter().copied()) == Some("name");
    if !document.entries().iter().take(KEYS.len()).any(|entry| is_misspelt(&entry.key)) {
        let start = document.span.start;
        reader.add(Kind::SchemaViolation, Span { start, end: start }, "a group needs a `name`");
    }
    None
}

fn read_id(node: &Node, reader: &mut FileReader) -> Option<GroupId> {
    let text = reader.text(node, "`id`")?;
    match text.parse() {
        Ok(id) => Some(id),
        Err(error) => {
            let help = "leave `id` out: it then follows from environment and name";
            reader.add(Kind::MalformedUuid, node.span, format!("{error}")).help =
                Some(help.to_owned());
            None
        }
    }
}

/// Returns the id of a group that has none written. `All Nodes` at the top is the root group.
fn implied_id(document: &Node, name: &GroupName, environment: &EnvironmentName) -> GroupId {
    let is_root = |root: Group| root.name == *name && root.environment == *environment;
    if document.get("parent").is_none() && root_group().is_some_and(is_root) {
        return GroupId::ROOT;
    }
    GroupId::of_name(environment, name)
}

/// Reads the names of pinned nodes; `None` if something is wrong with them.
fn read_pins(document: &Node, is_root: bool, reader: &mut FileReader) -> Option<Vec<Arc<str>>> {
    match document.get("pinned").filter(|node| !node.is_null()) {
        Some(node) if is_root => {
            let message = "nodes cannot be pinned to the root group, every node is in it";
            reader.add(Kind::RootGroup, node.span, message);
            None
        }
        Some(node) => {
            for pin in node.elements() {
                if let Some(name) = pin.as_str() {
                    certname::check(name, certname::CertnameRole::Pin, pin.span, reader);
                }
            }
            reader.texts(node, "`pinned`")
        }
        None => Some(Vec::new()),
    }
}

/// Returns the pinned nodes and where each is written. Their names are those of the rule, kept once.
fn pin_places(
    document: &Node,
    names: Option<Vec<Arc<str>>>,
    reader: &FileReader,
) -> Box<[(Arc<str>, Place)]> {
    let elements = document.get("pinned").map(Node::elements).unwrap_or_default();
    let places = elements.iter().map(|it| reader.place(it.span));
    match names {
        Some(names) => names.into_iter().zip(places).collect(),
        None => {
            let names = elements.iter().map(|it| it.as_str().map(Arc::from));
            names.zip(places).filter_map(|(name, place)| Some((name?, place))).collect()
        }
    }
}

/// Reads the rule and joins it with the pinned nodes; the inner `None` is a group that has neither.
#[expect(clippy::option_option, reason = "a rule that is absent is not one that cannot be read")]
fn read_rule(
    document: &Node,
    is_root: bool,
    pinned: Option<&[Arc<str>]>,
    reader: &mut FileReader,
) -> Option<Option<Condition>> {
    let rule = match document.get("rule").filter(|node| !node.is_null()) {
        Some(node) => rule::read(node, reader).map(Some),
        None if is_root => root_group().map(|root| root.rule.as_deref().cloned()),
        None => Some(None),
    };
    let pinned = pinned?;
    reader.charge(BudgetItem::RuleTerms, pinned.len() as u64)?;
    Some(with_pins(rule?, pinned))
}

fn read_parent(document: &Node, reader: &mut FileReader) -> Option<(ParentName, Place)> {
    let node = document.get("parent").filter(|node| !node.is_null())?;
    let text = reader.text(node, "`parent`")?;
    let parent = text.parse().map_or_else(|_| ParentName::Name(text.into()), ParentName::Id);
    Some((parent, reader.place(node.span)))
}

fn class_places(document: &Node, key: &str, reader: &FileReader) -> Vec<ClassPlace> {
    let entries = document.get(key).map(Node::entries).unwrap_or_default();
    let class = |entry: &Entry| ClassPlace {
        name: entry.key.strip_prefix("::").unwrap_or(&entry.key).into(),
        place: reader.place(entry.key_span),
        parameters: parameter_places(Some(&entry.value), reader),
    };
    entries.iter().map(class).collect()
}

fn parameter_places(mapping: Option<&Node>, reader: &FileReader) -> Vec<ParameterPlace> {
    let entries = mapping.map(Node::entries).unwrap_or_default();
    let parameter = |entry: &Entry| ParameterPlace {
        name: entry.key.as_str().into(),
        place: reader.place(entry.key_span),
        value: reader.place(entry.value.span),
    };
    entries.iter().map(parameter).collect()
}
