//! Node groups as written.

use std::sync::Arc;

use super::certname;
use super::dollar::{self, DollarValue};
use super::file_reader::FileReader;
use super::group_spans::{GroupPart, GroupSpans, value_spans};
use super::rule;
use crate::diagnostic::{Kind, closest};
use crate::document::{Entry, Limits, Node, Span, bounded};
use crate::hierarchy::root_group;
use crate::model::{
    BudgetItem, Condition, EnvironmentName, Group, GroupId, GroupName, shared_classes, shared_text,
    shared_variables,
};
use crate::rule::{array_levels, with_pins};

/// A group as written: valid by itself, but for its parent.
#[derive(Clone, Debug)]
pub struct GroupFile {
    pub(super) file: Arc<str>,
    pub(super) spans: GroupSpans,
    content: GroupContent,
    /// The parent as written.
    pub parent: Option<ParentName>,
    /// The values that have a `$`.
    pub(super) dollars: Box<[DollarValue]>,
}

/// What a group says.
#[derive(Clone, Debug)]
enum GroupContent {
    /// The group, with the root group as its parent.
    Valid(Group),
    /// A group with errors: its name and id, as far as they could be read.
    Invalid { name: Option<GroupName>, id: Option<GroupId> },
}

impl GroupFile {
    /// Returns the group, with the root group as its parent; `None` if it has errors.
    pub fn group(&self) -> Option<&Group> {
        match &self.content {
            GroupContent::Valid(group) => Some(group),
            GroupContent::Invalid { .. } => None,
        }
    }

    /// Returns the name, as far as it could be read.
    pub fn name(&self) -> Option<&GroupName> {
        match &self.content {
            GroupContent::Valid(group) => Some(&group.name),
            GroupContent::Invalid { name, .. } => name.as_ref(),
        }
    }

    /// Returns the id that is written or follows from the name.
    pub fn id(&self) -> Option<GroupId> {
        match &self.content {
            GroupContent::Valid(group) => Some(group.id),
            GroupContent::Invalid { id, .. } => *id,
        }
    }
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
    reader.document(document, "a group", KEYS, &familiar)?;
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
    let errors_before_pins = reader.errors;
    let pins = read_pins(document, is_root, reader);
    // Pins of the root group are a fault that leaves its rule and its parent to be checked.
    let pin_errors = if is_root { reader.errors - errors_before_pins } else { 0 };
    let rule = read_rule(document, is_root, pins.as_deref(), reader);
    let trumps = document.get("environment_trumps");
    let trumps = trumps.and_then(|node| reader.boolean(node, "`environment_trumps`"));
    let description = read_description(document, reader);
    let values = value_spans(document);
    let dollars = dollar::find(document, reader)?;
    let classes = document.take("classes").map(|node| reader.node_classes(node));
    let config_data = document.take("config_data").map(|node| reader.config_data(node));
    let variables =
        document.take("variables").map(|node| reader.variables(node)).unwrap_or_default();
    let parent = read_parent(document, reader);
    let valid = reader.errors == errors_before + pin_errors;
    let content = match (id, name, environment, rule) {
        (Some(id), Some(name), Some(environment), Some(rule)) if valid => {
            GroupContent::Valid(Group {
                id,
                name,
                parent: GroupId::ROOT,
                environment,
                environment_trumps: trumps.unwrap_or(false),
                description,
                rule: rule.map(Arc::new),
                classes: shared_classes(classes.unwrap_or_default()),
                variables: shared_variables(variables),
                config_data: shared_classes(config_data.unwrap_or_default()),
            })
        }
        (id, name, ..) => GroupContent::Invalid { name, id },
    };
    Some(GroupFile {
        file: Arc::clone(&reader.file),
        spans: spans(document, &content, parent.as_ref(), &values),
        content,
        parent,
        dollars: dollars.into(),
    })
}

/// Returns where the parts of a group are written. What one with errors sets cannot be looked up.
fn spans(
    document: &Node,
    content: &GroupContent,
    parent: Option<&ParentName>,
    values: &[Span],
) -> GroupSpans {
    let part = |part: GroupPart| {
        let key = match part {
            GroupPart::Id => "id",
            GroupPart::Environment => "environment",
            GroupPart::Parent => parent.map(|_| "parent")?,
            GroupPart::Rule => "rule",
        };
        document.get(key).map(|node| node.span)
    };
    let place = document.name_span();
    match content {
        // Its pins are a fault and no part of its rule.
        GroupContent::Valid(Group { id: GroupId::ROOT, .. }) => {
            GroupSpans::new(place, part, &[], values)
        }
        GroupContent::Valid(_) => GroupSpans::new(place, part, &pin_spans(document), values),
        GroupContent::Invalid { .. } => GroupSpans::new(place, part, &[], &[]),
    }
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
            Some(Vec::new())
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

/// Returns where the pinned nodes are written.
fn pin_spans(document: &Node) -> Vec<Span> {
    document
        .get("pinned")
        .map(Node::elements)
        .unwrap_or_default()
        .iter()
        .map(|it| it.span)
        .collect()
}

/// How many levels of lists the array form of a rule may have: a group is a mapping around it.
const RULE_LEVELS: usize = Limits::DEFAULT.depth - 1;

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
    let joined = with_pins(rule?, pinned);
    if joined.as_ref().is_some_and(|it| array_levels(it) > RULE_LEVELS) {
        let span = document.get("rule").map_or(document.span, |it| it.span);
        let message = format!("the array form of the rule is nested over {RULE_LEVELS} deep");
        let help = "nest fewer conditions: the API and `clade export` show it so, with pinned nodes as a condition around it, \
                    and what they show could not be read again";
        reader.add(Kind::InvalidRule, span, message).help = Some(help.to_owned());
        return None;
    }
    Some(joined)
}

fn read_parent(document: &Node, reader: &mut FileReader) -> Option<ParentName> {
    let node = document.get("parent").filter(|node| !node.is_null())?;
    let text = reader.text(node, "`parent`")?;
    Some(text.parse().map_or_else(|_| ParentName::Name(shared_text(text)), ParentName::Id))
}
