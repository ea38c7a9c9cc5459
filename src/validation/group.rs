//! Node groups as written.

use std::sync::Arc;

use super::certname;
use super::dollar::{self, DollarValue};
use super::file_reader::FileReader;
use super::group_keys::{KEYS, familiar, meant_names, says_name};
use super::group_spans::{
    GroupPart, GroupSpans, ValuePlace, class_places, config_data_places, variable_places,
};
use super::partial_group::{GroupParts, PartialGroup, ReadRule};
use super::rule;
use crate::diagnostic::Kind;
use crate::document::{Entry, Limits, Node, Span, bounded};
use crate::hierarchy::root_group;
use crate::model::{BudgetItem, EnvironmentName, Group, GroupId, GroupName, shared_text};
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
    /// A group with errors that is checked as far as it could be read.
    Partial(Box<PartialGroup>),
    /// A group with errors, without a name.
    Nameless {
        /// The id, as far as it could be read.
        id: Option<GroupId>,
        /// The texts that may be meant as its name or id.
        meant_names: Box<[String]>,
    },
}

impl GroupFile {
    /// Returns the group, with the root group as its parent; `None` if it has errors other than faults of its YAML.
    pub fn group(&self) -> Option<&Group> {
        match &self.content {
            GroupContent::Valid(group) => Some(group),
            GroupContent::Partial(partial) => partial.as_read.as_ref(),
            GroupContent::Nameless { .. } => None,
        }
    }

    /// Returns whether the group has no errors.
    pub(super) fn is_valid(&self) -> bool {
        matches!(self.content, GroupContent::Valid(_))
    }

    /// Returns the group to be checked, also one with errors. Where the id or the environment of that is not known, it
    /// has one that no other group has.
    pub(super) fn checked_group(&self) -> Option<&Group> {
        match &self.content {
            GroupContent::Valid(group) => Some(group),
            GroupContent::Partial(partial) => Some(&partial.group),
            GroupContent::Nameless { .. } => None,
        }
    }

    /// Returns the group as far as it could be read, if it has errors.
    pub(super) fn partial(&self) -> Option<&PartialGroup> {
        match &self.content {
            GroupContent::Partial(partial) => Some(partial),
            GroupContent::Valid(_) | GroupContent::Nameless { .. } => None,
        }
    }

    /// Returns the environment, as far as it could be read.
    pub(super) fn environment(&self) -> Option<&EnvironmentName> {
        let is_known = self.partial().is_none_or(|it| it.has_environment);
        self.checked_group().filter(|_| is_known).map(|it| &it.environment)
    }

    /// Returns the name, as far as it could be read.
    pub fn name(&self) -> Option<&GroupName> {
        self.checked_group().map(|it| &it.name)
    }

    /// Returns the texts that may be meant as its name or id, too.
    pub(super) fn meant_names(&self) -> &[String] {
        match &self.content {
            GroupContent::Valid(_) => &[],
            GroupContent::Partial(partial) => &partial.meant_names,
            GroupContent::Nameless { meant_names, .. } => meant_names,
        }
    }

    /// Returns the id that is written or follows from the name.
    pub fn id(&self) -> Option<GroupId> {
        match &self.content {
            GroupContent::Valid(group) => Some(group.id),
            GroupContent::Partial(partial) => partial.id,
            GroupContent::Nameless { id, .. } => *id,
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

fn read_group(document: &mut Node, reader: &mut FileReader) -> Option<GroupFile> {
    let errors_before = reader.errors;
    reader.lost_keys.clear();
    reader.faulty_keys.clear();
    if reader.document(document, "a group", KEYS, &familiar).is_none() {
        return unread_group(document, reader);
    }
    let name = read_name(document, reader);
    let environment: Option<EnvironmentName> = match document.get("environment") {
        Some(node) => reader.parsed(node, "`environment`"),
        None => "production".parse().ok(),
    };
    let id = group_id(document, name.as_ref(), environment.as_ref(), reader);
    let is_root = id == Some(GroupId::ROOT);
    let errors_before_pins = reader.errors;
    let pins = read_pins(document, is_root, reader);
    // Pins of the root group are a fault that leaves its rule and its parent to be checked.
    let pin_errors = if is_root { reader.errors - errors_before_pins } else { 0 };
    let rule = read_rule(document, is_root, pins.as_deref(), reader);
    let trumps = document.get("environment_trumps");
    let trumps = trumps.and_then(|node| reader.boolean(node, "`environment_trumps`"));
    let description = read_description(document, reader);
    let dollars = dollar::find(document, reader)?;
    let (classes, in_classes) =
        take_values(document, "classes", class_places, FileReader::node_classes, reader);
    let (config_data, in_config_data) =
        take_values(document, "config_data", config_data_places, FileReader::config_data, reader);
    let (variables, in_variables) =
        take_values(document, "variables", variable_places, FileReader::variables, reader);
    let parent = read_parent(document, reader);
    let is_valid = reader.errors == errors_before + pin_errors;
    let parts = GroupParts {
        name,
        id,
        environment,
        trumps,
        description,
        rule,
        classes,
        variables,
        config_data,
    };
    let content = content(parts, is_valid, document, reader);
    let values = [in_classes, in_variables, in_config_data];
    let values = values.iter().flatten().map(ValuePlace::span);
    Some(GroupFile {
        file: Arc::clone(&reader.file),
        spans: spans(document, &content, parent.as_ref(), values),
        content,
        parent,
        dollars: dollars.into(),
    })
}

/// Returns a group of which nothing could be read but what may be meant as its name.
fn unread_group(document: &Node, reader: &FileReader) -> Option<GroupFile> {
    let meant_names = meant_names(document, &[], reader);
    let has_names = !meant_names.is_empty();
    let content = GroupContent::Nameless { id: None, meant_names };
    has_names.then(|| GroupFile {
        file: Arc::clone(&reader.file),
        spans: spans(document, &content, None, std::iter::empty()),
        content,
        parent: None,
        dollars: Box::default(),
    })
}

/// Takes a part with values out of a group. Returns what is read of it, and where it is written.
fn take_values<T: Default>(
    document: &mut Node,
    key: &'static str,
    places: fn(&[Entry]) -> Vec<ValuePlace>,
    read: fn(&mut FileReader, Node) -> T,
    reader: &mut FileReader,
) -> (T, Vec<ValuePlace>) {
    let levels = if key == "variables" { 1 } else { 2 };
    let has_doubts = !reader.doubts.is_empty();
    let is_lost = has_doubts && document.entry(key).is_some_and(|it| reader.lacks_keys(it, levels));
    let is_touched = has_doubts && document.get(key).is_some_and(|it| reader.doubts.touch(it.span));
    let (mismatches_before, errors_before) = (reader.mismatches, reader.errors);
    let Some(node) = document.take(key) else { return Default::default() };
    let mut places = places(node.entries());
    // What one part refuses may be a name in another one, where an alias repeats it.
    reader.refused.clear();
    let read = read(reader, node);
    if is_lost || reader.mismatches > mismatches_before {
        reader.lost_keys.push(key);
    }
    if is_touched || reader.errors > errors_before {
        reader.faulty_keys.push(key);
    }
    if !reader.refused.is_empty() {
        places.retain(|it| it.is_in_table(&reader.refused));
    }
    (read, places)
}

/// Returns what a group says.
fn content(
    parts: GroupParts,
    is_valid: bool,
    document: &Node,
    reader: &FileReader,
) -> GroupContent {
    let (id, has_name) = (parts.id, parts.name.is_some());
    let has_faults = reader.faults.touch(document.span);
    let kept = (!is_valid || has_faults).then(|| parts.clone());
    let group = parts.into_group().filter(|_| is_valid);
    let (kept, group) = match (kept, group) {
        (None, Some(group)) => return GroupContent::Valid(group),
        (kept, group) => (kept, group),
    };
    let read: Vec<&str> =
        [has_name.then_some("name"), id.map(|_| "id")].into_iter().flatten().collect();
    let meant_names = meant_names(document, &read, reader);
    match kept.and_then(|it| it.into_partial(document, reader)) {
        Some(it) => {
            GroupContent::Partial(Box::new(PartialGroup { as_read: group, meant_names, ..it }))
        }
        None => GroupContent::Nameless { id, meant_names },
    }
}

/// Returns where the parts of a group are written. What one without a name sets cannot be looked up.
fn spans(
    document: &Node,
    content: &GroupContent,
    parent: Option<&ParentName>,
    values: impl Iterator<Item = Span>,
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
    let (id, has_pins) = match content {
        GroupContent::Valid(group) => (group.id, true),
        GroupContent::Partial(partial) => {
            let has_pins = partial.group.rule.is_some() && !partial.is_unknown("pinned");
            (partial.group.id, has_pins || partial.as_read.is_some())
        }
        GroupContent::Nameless { .. } => {
            return GroupSpans::new(place, part, &[], std::iter::empty());
        }
    };
    // The pins of the root group are a fault and no part of its rule.
    let has_pins = has_pins && id != GroupId::ROOT;
    let pins = if has_pins { pin_spans(document) } else { Vec::new() };
    GroupSpans::new(place, part, &pins, values)
}

fn read_description(document: &Node, reader: &mut FileReader) -> Option<Arc<str>> {
    let node = document.get("description").filter(|node| !node.is_null())?;
    reader.text(node, "`description`").map(Arc::from)
}

fn read_name(document: &Node, reader: &mut FileReader) -> Option<GroupName> {
    if let Some(node) = document.get("name") {
        return reader.parsed(node, "`name`");
    }
    if reader.merges(document, "name") {
        return None;
    }
    if !document.entries().iter().take(KEYS.len()).any(says_name) {
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

/// Returns the id that is written or follows from the name.
fn group_id(
    document: &Node,
    name: Option<&GroupName>,
    environment: Option<&EnvironmentName>,
    reader: &mut FileReader,
) -> Option<GroupId> {
    match document.get("id") {
        Some(node) => read_id(node, reader),
        None => Some(implied_id(document, name?, environment?)),
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

/// Reads the rule and joins it with the pinned nodes.
fn read_rule(
    document: &Node,
    is_root: bool,
    pinned: Option<&[Arc<str>]>,
    reader: &mut FileReader,
) -> ReadRule {
    let rule = match document.get("rule").filter(|node| !node.is_null()) {
        Some(node) => rule::read(node, reader).map(Some),
        None if is_root => root_group().map(|root| root.rule.as_deref().cloned()),
        None => Some(None),
    };
    let Some(rule) = rule else { return ReadRule::Unreadable };
    let Some(pinned) = pinned else { return ReadRule::WithoutPins(rule) };
    if reader.charge(BudgetItem::RuleTerms, pinned.len() as u64).is_none() {
        return ReadRule::Unreadable;
    }
    let joined = with_pins(rule, pinned);
    if joined.as_ref().is_some_and(|it| array_levels(it) > RULE_LEVELS) {
        let span = document.get("rule").map_or(document.span, |it| it.span);
        let message = format!("the array form of the rule is nested over {RULE_LEVELS} deep");
        let help = "nest fewer conditions: the API and `clade export` show it so, with pinned nodes as a condition around it, \
                    and what they show could not be read again";
        reader.add(Kind::InvalidRule, span, message).help = Some(help.to_owned());
        return ReadRule::Unreadable;
    }
    ReadRule::Whole(joined)
}

fn read_parent(document: &Node, reader: &mut FileReader) -> Option<ParentName> {
    let is_doubtful = reader.is_doubtful(document, "parent");
    let node = document.get("parent").filter(|node| !node.is_null() && !is_doubtful)?;
    let text = reader.text(node, "`parent`")?;
    Some(text.parse().map_or_else(|_| ParentName::Name(shared_text(text)), ParentName::Id))
}
