//! The writes of the API, and the groups that they lead to.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashSet;
use serde_json::{Map, Value, json};

use super::body::{merge, object, read_body};
use super::catalogue::NewCatalogue;
use super::check;
use super::context::WriteContext;
use super::group_changes::GroupChanges;
use super::outcome::WriteOutcome;
use super::rejection::{Rejection, RejectionKind};
use super::scope::{Scope, WriteGrant};
use crate::hierarchy::{self, GroupIndex, GroupKey, Hierarchy, group_to_value, rule_and_pins};
use crate::model::{Condition, EnvironmentName, Group, GroupId};
use crate::rule::{parts, pin_of, split_terms, with_pins, without_names};
use crate::wording::{counted, listed};

/// How many groups are named that are in the way of a write.
const NAMED: usize = 5;

/// A write.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Make a group with this id.
    Create {
        /// The new id.
        id: GroupId,
        /// The group as sent.
        body: Value,
    },
    /// Make or replace a group.
    Put {
        /// The id of the URL.
        id: GroupId,
        /// The group as sent.
        body: Value,
    },
    /// Change some of a group.
    Edit {
        /// The group.
        id: GroupId,
        /// What to change.
        delta: Value,
    },
    /// Remove a group.
    Delete {
        /// The group.
        id: GroupId,
    },
    /// Pin nodes to a group.
    Pin {
        /// The group.
        id: GroupId,
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Unpin nodes from a group.
    Unpin {
        /// The group.
        id: GroupId,
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Unpin nodes from every group.
    UnpinFromAll {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Replace all groups.
    Import {
        /// The groups as sent.
        body: Value,
    },
    /// Have an environment exist that no group names and that has no class catalogue.
    MakeEnvironment {
        /// The environment.
        name: EnvironmentName,
    },
    /// Have such an environment exist no longer.
    RemoveEnvironment {
        /// The environment.
        name: EnvironmentName,
    },
    /// Have the class catalogues of environments say what a Puppet Server says.
    UpdateClasses {
        /// What it says of each; others stay.
        catalogues: BTreeMap<EnvironmentName, NewCatalogue>,
    },
}

impl Operation {
    /// Returns whether the client says how often the group was edited when it was read.
    pub fn says_serial(&self) -> bool {
        matches!(self, Self::Edit { delta, .. } if submitted_serial(delta).is_some())
    }
}

/// What a write leads to.
pub(super) struct Planned {
    pub(super) changes: GroupChanges,
    pub(super) answer: WriteOutcome,
}

/// Returns the groups after a write.
pub(super) fn plan(
    context: &WriteContext<'_>,
    operation: &Operation,
    grants: &[WriteGrant],
) -> Result<Planned, Rejection> {
    let estate = context.estate;
    let hierarchy = &estate.hierarchy;
    let with = |group: Group, answer: WriteOutcome| {
        check::check_group(&group, estate)?;
        Ok(Planned { changes: GroupChanges::of(hierarchy, group), answer })
    };
    match operation {
        Operation::Create { id, body } => with(created(*id, body)?, WriteOutcome::Created(*id)),
        Operation::Put { id, body } => with(put(hierarchy, *id, body)?, WriteOutcome::Put(*id)),
        Operation::Edit { id, delta } => {
            let group = edited(hierarchy, *id, delta)?;
            same_serial(context, *id, delta)?;
            with(group, WriteOutcome::Edited(*id))
        }
        Operation::Delete { id } => delete(hierarchy, *id),
        Operation::Pin { id, nodes } => {
            let group = hierarchy.group(find(hierarchy, *id)?);
            not_root(group)?;
            with(Group { rule: pinned(group, nodes), ..group.clone() }, WriteOutcome::Done)
        }
        Operation::Unpin { id, nodes } => {
            let group = hierarchy.group(find(hierarchy, *id)?);
            let nodes = nodes.iter().map(String::as_str).collect();
            let rule = unpinned(group, &nodes).map_or_else(|| group.rule.clone(), |(rule, _)| rule);
            with(Group { rule, ..group.clone() }, WriteOutcome::Done)
        }
        Operation::UnpinFromAll { nodes } => unpin_from_all(hierarchy, nodes, grants),
        Operation::Import { body } => {
            let changes = GroupChanges::between(hierarchy, check::import(body)?);
            Ok(Planned { changes, answer: WriteOutcome::Done })
        }
        Operation::MakeEnvironment { name } => {
            Ok(unchanged(WriteOutcome::Environment(name.clone())))
        }
        Operation::RemoveEnvironment { .. } => Ok(unchanged(WriteOutcome::Done)),
        Operation::UpdateClasses { .. } => Ok(unchanged(WriteOutcome::Updated)),
    }
}

/// Returns what a write changes that says what one group is to be; none for other writes, and where what it says is not a
/// group.
pub(super) fn changes_of_group(
    hierarchy: &Hierarchy,
    operation: &Operation,
) -> Option<GroupChanges> {
    let group = match operation {
        Operation::Create { id, body } => created(*id, body),
        Operation::Put { id, body } => put(hierarchy, *id, body),
        Operation::Edit { id, delta } => edited(hierarchy, *id, delta),
        _ => return None,
    };
    Some(GroupChanges::of(hierarchy, group.ok()?))
}

/// Returns what an import changes as well, which is as much work as to plan it.
pub(super) fn changes_of_groups(
    hierarchy: &Hierarchy,
    operation: &Operation,
) -> Option<GroupChanges> {
    match operation {
        Operation::Import { body } => {
            Some(GroupChanges::between(hierarchy, check::import(body).ok()?))
        }
        other => changes_of_group(hierarchy, other),
    }
}

fn created(id: GroupId, body: &Value) -> Result<Group, Rejection> {
    let is_readable = |it: &Value| {
        it.is_null() || it.as_str().is_some_and(|text| text.parse::<GroupId>().is_ok())
    };
    // A new group gets an id of its own, whatever is sent; one that cannot be read is a mistake.
    let group = match body.get("id") {
        Some(sent) if !is_readable(sent) => read_body(body.clone(), || body.clone())?,
        _ => read_without_id(body)?,
    };
    Ok(Group { id, ..group })
}

fn put(hierarchy: &Hierarchy, id: GroupId, body: &Value) -> Result<Group, Rejection> {
    same_id(id, body)?;
    let group = created(id, body)?;
    root_stays(hierarchy, &group, body)?;
    Ok(group)
}

/// Returns the plan of a write that changes no group.
fn unchanged(answer: WriteOutcome) -> Planned {
    Planned { changes: GroupChanges::default(), answer }
}

fn find(hierarchy: &Hierarchy, id: GroupId) -> Result<GroupIndex, Rejection> {
    hierarchy.find(id).ok_or_else(Rejection::not_found)
}

fn read_without_id(body: &Value) -> Result<Group, Rejection> {
    read_body(without_key(body, "id"), || without_key(body, "id"))
}

/// Returns what was submitted without one of its keys.
pub(super) fn without_key(submitted: &Value, key: &str) -> Value {
    let mut submitted = submitted.clone();
    if let Value::Object(fields) = &mut submitted {
        fields.shift_remove(key);
    }
    submitted
}

/// Refuses a body that names another group.
pub(super) fn same_id(id: GroupId, body: &Value) -> Result<(), Rejection> {
    let Some(submitted) = body.get("id").filter(|it| !it.is_null()) else { return Ok(()) };
    if submitted.as_str().and_then(|it| it.parse().ok()) == Some(id) {
        return Ok(());
    }
    let message = "The group id in the request's URI does not match the id of the submitted group.";
    let details = json!({"submitted": submitted, "fromUrl": id});
    Err(Rejection::new(RejectionKind::ConflictingIds, message, details))
}

fn submitted_serial(delta: &Value) -> Option<&Value> {
    delta.get("serial_number").filter(|it| !it.is_null())
}

/// Refuses a delta to what is not there any more: the client says how often the group was edited when
/// it was read.
fn same_serial(context: &WriteContext<'_>, id: GroupId, delta: &Value) -> Result<(), Rejection> {
    let Some(submitted) = submitted_serial(delta) else { return Ok(()) };
    if !submitted.is_u64() {
        let error = Value::from("([:serial_number (not (integer? the-value))])");
        return Err(Rejection::schema_violation(delta.clone(), "GroupDelta", error));
    }
    let current = (context.serial)(id);
    if current.is_some() && current == submitted.as_u64() {
        return Ok(());
    }
    let message = match current {
        Some(current) => format!(
            "The group was edited since it was read: its serial number is {current}, not {submitted}."
        ),
        None => {
            "The group's serial number is not known, so it cannot be the one submitted.".to_owned()
        }
    };
    let details = json!({"submitted": submitted, "current": current});
    Err(Rejection::new(RejectionKind::WriteConflict, message, details))
}

fn not_root(group: &Group) -> Result<(), Rejection> {
    if group.id == GroupId::ROOT {
        return Err(Rejection::root_rule(Value::Null));
    }
    Ok(())
}

/// Refuses to change what is fixed about the root group.
fn root_stays(hierarchy: &Hierarchy, group: &Group, submitted: &Value) -> Result<(), Rejection> {
    if group.id != GroupId::ROOT {
        return Ok(());
    }
    if group.parent != GroupId::ROOT {
        return Err(Rejection::root_parent(submitted.clone()));
    }
    let current = hierarchy.group(hierarchy.root());
    // It may be written in two ways.
    if group.rule != current.rule && !hierarchy::check(std::slice::from_ref(group)).is_empty() {
        return Err(Rejection::root_rule(submitted.clone()));
    }
    Ok(())
}

/// Returns a group after a delta.
fn edited(hierarchy: &Hierarchy, id: GroupId, delta: &Value) -> Result<Group, Rejection> {
    let current = hierarchy.group(find(hierarchy, id)?);
    let fields = object(delta, "GroupDelta")?;
    same_id(id, delta)?;
    if id == GroupId::ROOT && fields.contains_key("rule") {
        let others = fields.keys().any(|key| !matches!(key.as_str(), "rule" | "id"));
        return Err(Rejection::root_rule(if others { delta.clone() } else { Value::Null }));
    }
    let Value::Object(mut whole) = group_to_value(current) else { return Ok(current.clone()) };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("classes" | "config_data" | "variables", Value::Object(delta)) => {
                let inner = whole.entry(key.as_str()).or_insert_with(|| Map::new().into());
                let delta = if key == "variables" { Cow::Borrowed(delta) } else { by_class(delta) };
                if let Value::Object(inner) = inner {
                    merge(inner, &delta);
                }
            }
            ("classes" | "config_data" | "variables", Value::Null) => {}
            ("rule" | "description", Value::Null) => drop(whole.shift_remove(key)),
            ("name" | "environment" | "environment_trumps" | "parent", Value::Null) => {}
            ("id", _) => {}
            _ => drop(whole.insert(key.clone(), value.clone())),
        }
    }
    whole.shift_remove("id");
    // What was submitted is shown, not what it was merged into.
    let group = read_body(Value::Object(whole), || delta.clone())?;
    let group = Group { id, ..group };
    root_stays(hierarchy, &group, delta)?;
    Ok(group)
}

/// Returns a delta of classes with the names that a group has them by: without a leading `::`. One that names a class in
/// both ways stays, and is refused as a group that does.
fn by_class(delta: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    let name_of = |key: &str| key.strip_prefix("::").unwrap_or(key).to_owned();
    if !delta.keys().any(|it| it.starts_with("::")) {
        return Cow::Borrowed(delta);
    }
    let named: Map<String, Value> =
        delta.iter().map(|(key, value)| (name_of(key), value.clone())).collect();
    if named.len() == delta.len() { Cow::Owned(named) } else { Cow::Borrowed(delta) }
}

fn delete(hierarchy: &Hierarchy, id: GroupId) -> Result<Planned, Rejection> {
    let index = find(hierarchy, id)?;
    let group = hierarchy.group(index);
    if id == GroupId::ROOT {
        let message = "The root group cannot be deleted.";
        return Err(Rejection::new(RejectionKind::RootGroup, message, group_to_value(group)));
    }
    let children: Vec<&Group> = hierarchy.children(index).map(|it| hierarchy.group(it)).collect();
    if !children.is_empty() {
        let message = format!(
            "The group {} ({id}) cannot be deleted because it has {}: {}.",
            group.name,
            counted(children.len(), "child"),
            listed(children.iter().map(|it| &it.name), NAMED)
        );
        let children: Vec<Value> = children.into_iter().map(group_to_value).collect();
        let details = json!({"group": group_to_value(group), "children": children});
        return Err(Rejection::new(RejectionKind::ChildrenPresent, message, details));
    }
    Ok(Planned { changes: GroupChanges::removal(id), answer: WriteOutcome::Done })
}

type Rule = Option<Arc<Condition>>;

fn pinned(group: &Group, nodes: &[String]) -> Rule {
    let (own, mut pins) = rule_and_pins(group);
    let named = group.rule.as_deref().map(|it| split_terms(it).1).unwrap_or_default();
    let is_pinned_among_others = pins.is_empty() && !named.is_empty();
    // No node has an empty certname.
    let mut known: HashSet<&str> = named.into_iter().map(AsRef::as_ref).chain([""]).collect();
    let new = nodes.iter().filter(|it| known.insert(it)).map(|it| Arc::from(it.as_str()));
    match own {
        // Within another rule these names would be no pinned nodes any more, which can be unpinned.
        Some(Condition::Or(mut terms)) if is_pinned_among_others => {
            terms.extend(new.map(pin_of));
            Some(Arc::new(Condition::Or(terms)))
        }
        own => {
            pins.extend(new);
            with_pins(own, &pins).map(Arc::new)
        }
    }
}

/// Returns the rule without pins, and which nodes were pinned; `None` if none was.
fn unpinned<'n>(group: &Group, nodes: &HashSet<&'n str>) -> Option<(Rule, HashSet<&'n str>)> {
    let rule = group.rule.as_deref()?;
    let (_, pins) = parts(rule);
    if pins.is_empty() {
        let (left, gone) = without_names(rule, |it| nodes.contains(it))?;
        let gone = gone.into_iter().filter_map(|it| nodes.get(it.as_ref()).copied()).collect();
        return Some((left.map(Arc::new), gone));
    }
    let gone: HashSet<&str> =
        pins.into_iter().filter_map(|it| nodes.get(it.as_ref()).copied()).collect();
    if gone.is_empty() {
        return None;
    }
    let (own, mut pins) = rule_and_pins(group);
    pins.retain(|it| !gone.contains(it.as_ref()));
    Some((with_pins(own, &pins).map(Arc::new), gone))
}

/// Unpins nodes from every group where one grant allows it: the one that reaches most of the pins,
/// since grants never add up.
fn unpin_from_all(
    hierarchy: &Hierarchy,
    nodes: &[String],
    grants: &[WriteGrant],
) -> Result<Planned, Rejection> {
    let wanted = nodes.iter().map(String::as_str).collect();
    let groups = hierarchy.groups().filter_map(|before| {
        let (rule, gone) = unpinned(before, &wanted)?;
        Some(Unpinned { after: Group { rule, ..before.clone() }, gone })
    });
    let groups: Vec<Unpinned<'_>> = groups.collect();
    let within = |scope: &Scope| -> Vec<&Unpinned<'_>> {
        groups.iter().filter(|it| scope.allows(hierarchy, it.after.id, GroupKey::Pinned)).collect()
    };
    let scopes = grants.iter().map(|it| &it.scope);
    let able = scopes.filter(|scope| scope.has_key(GroupKey::Pinned));
    // `max_by_key` returns the last of equals; the first grant comes first everywhere else.
    let most = able
        .rev()
        .map(within)
        .max_by_key(|groups| groups.iter().map(|it| it.gone.len()).sum::<usize>());
    most.map(|groups| unpin(nodes, &groups))
        .ok_or_else(|| Rejection::denied("unpin nodes", Value::Null))
}

/// A group that some nodes are to be unpinned from, and which.
struct Unpinned<'n> {
    after: Group,
    gone: HashSet<&'n str>,
}

fn unpin(nodes: &[String], groups: &[&Unpinned<'_>]) -> Planned {
    let mut unpinned_from: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for Unpinned { after: group, gone } in groups {
        for node in gone {
            let entry = json!({
                "id": group.id, "name": group.name, "environment": group.environment,
            });
            unpinned_from.entry(node).or_default().push(entry);
        }
    }
    let nodes: Vec<Value> = nodes
        .iter()
        .filter_map(|node| {
            let groups = unpinned_from.remove(node.as_str())?;
            Some(json!({"name": node, "groups": groups}))
        })
        .collect();
    let written = groups.iter().map(|it| it.after.clone()).collect();
    let changes = GroupChanges { written, removed: Vec::new() };
    Planned { changes, answer: WriteOutcome::Unpinned(json!({"nodes": nodes})) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::root_group;
    use crate::rule;

    fn names(prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|it| format!("{prefix}{it}.example.com")).collect()
    }

    fn group(rule: Rule) -> Group {
        Group { rule, ..root_group().unwrap() }
    }

    #[test]
    fn what_is_pinned_can_be_unpinned_whatever_shape_the_rule_has() {
        let (a, b) = (json!(["=", ["fact", "a"], "x"]), json!(["=", ["fact", "b"], "y"]));
        let named = |name: &str| json!(["=", "name", name]);
        let both = json!(["or", a, b]);
        for (before, pinned_too) in [
            (Value::Null, json!(["or", named("n")])),
            (a.clone(), json!(["or", a, named("n")])),
            (both.clone(), json!(["or", both, named("n")])),
            (json!(["or", a, named("p")]), json!(["or", a, named("p"), named("n")])),
            (json!(["or", a, b, named("p")]), json!(["or", a, b, named("p"), named("n")])),
            (json!(["or", named("p"), a]), json!(["or", named("p"), a, named("n")])),
            (json!(["or", both, named("p")]), json!(["or", both, named("p"), named("n")])),
        ] {
            let read =
                |rule: &Value| (!rule.is_null()).then(|| Arc::new(rule::read(rule).unwrap()));
            let write = |rule: Rule| rule.map_or(Value::Null, |it| rule::to_value(&it));
            let group = group(read(&before));
            let nodes = ["", "n", "p"].map(str::to_owned);
            let nodes = if before.to_string().contains("\"p\"") { &nodes[..] } else { &nodes[..2] };
            let after = Group { rule: pinned(&group, nodes), ..group.clone() };
            assert_eq!(write(after.rule.clone()), pinned_too, "{before}");
            assert_eq!(hierarchy::changed_keys(&group, &after), [GroupKey::Pinned], "{before}");
            let (rule, gone) = unpinned(&after, &HashSet::from(["n"])).unwrap();
            assert_eq!((write(rule.clone()), gone), (before.clone(), HashSet::from(["n"])));
            let again = Group { rule, ..group.clone() };
            assert_eq!(hierarchy::changed_keys(&after, &again), [GroupKey::Pinned], "{before}");
        }
    }

    /// Each name was compared with each: a request of 3 MB took 200 s, in which no other write was made.
    #[test]
    fn many_nodes_are_pinned_and_unpinned() {
        let (old, new) = (names("old", 100_000), names("new", 245_000));
        let rule = root_group().unwrap().rule;
        let before = group(pinned(&group(rule.clone()), &old));
        let after = group(pinned(&before, &[new.clone(), old.clone(), new.clone()].concat()));
        let (own, pins) = rule_and_pins(&after);
        assert_eq!(own.map(Arc::new), rule);
        assert!(pins.iter().map(AsRef::as_ref).eq(old.iter().chain(&new).map(String::as_str)));
        let gone: HashSet<&str> = new.iter().map(String::as_str).collect();
        let (rule, found) = unpinned(&after, &gone).unwrap();
        assert_eq!((&rule, &found), (&before.rule, &gone));
        assert_eq!(unpinned(&group(rule), &gone), None);
    }

    #[test]
    fn a_group_that_a_node_is_unpinned_from_is_listed_once() {
        let root = root_group().unwrap();
        let rule = pinned(&group(None), &names("n", 2));
        let web = Group { id: GroupId::from_random(1), name: "Web".parse().unwrap(), rule, ..root };
        let hierarchy = Hierarchy::build(vec![web]).unwrap();
        let nodes = ["n1.example.com", "n1.example.com", "n2.example.com"].map(str::to_owned);
        let planned = unpin_from_all(&hierarchy, &nodes, &[WriteGrant::default()]).unwrap();
        let WriteOutcome::Unpinned(found) = planned.answer else { panic!("nodes are unpinned") };
        assert_eq!(found["nodes"].as_array().unwrap().len(), 1);
        assert_eq!(found["nodes"][0]["name"], "n1.example.com");
        assert_eq!(found["nodes"][0]["groups"].as_array().unwrap().len(), 1);
    }
}
