//! Findings about groups that can match one node and set a value differently.

use serde_json::{Map, Value};

use super::group::GroupFile;
use super::layout::Strictness;
use super::places::Places;
use crate::classification::{Overlap, Setting, overlaps};
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::document::bounded;
use crate::hierarchy::{Estate, GroupIndex};
use crate::model::{Node, Path, Segment};

/// How much of a witness is shown.
const SHOWN: usize = 4;

/// Looks for groups that can conflict.
pub(super) fn check(
    estate: &Estate,
    places: &Places<'_>,
    strictness: Strictness,
) -> Vec<Diagnostic> {
    let severity = match strictness {
        Strictness::Off => return Vec::new(),
        Strictness::Warn => Severity::Warning,
        Strictness::Error => Severity::Error,
    };
    let report = |it: &Overlap<'_>| {
        let mut found = report(it, estate, places)?;
        found.severity = severity;
        Some(found)
    };
    let found = overlaps(estate);
    let mut all: Vec<Diagnostic> = found.pairs.iter().filter_map(report).collect();
    all.extend(found.ended_at.and_then(|it| unfinished(it, estate, places)));
    all
}

/// Says that groups were not all compared, so that nobody takes silence for an answer.
pub(super) fn unfinished(
    ended_at: GroupIndex,
    estate: &Estate,
    places: &Places<'_>,
) -> Option<Diagnostic> {
    let mut at = estate.hierarchy.lineage(ended_at);
    let written = at.find_map(|it| places.of(estate.hierarchy.group(it).id))?;
    let message = "there are more groups that set the same differently than can be compared: the search for conflicts ended at this group";
    let mut found = Diagnostic::new(Kind::PotentialConflict, written.place.clone(), message)
        .with_help(
            "run `clade validate --facts` with the facts of real nodes, which looks at all groups",
        );
    found.group = written.name.as_ref().map(|it| bounded(it.to_string()));
    found.severity = Severity::Warning;
    Some(found)
}

fn report(overlap: &Overlap<'_>, estate: &Estate, places: &Places<'_>) -> Option<Diagnostic> {
    let group = estate.hierarchy.group(overlap.group);
    let other = estate.hierarchy.group(overlap.other);
    let settings: Vec<String> =
        overlap.settings.iter().map(|it| format!("`{}`", name(*it))).collect();
    let first = overlap.settings.first()?;
    let place = |index: GroupIndex| {
        let written = places.of(estate.hierarchy.group(index).id)?;
        Some(parameter_place(written, *first).unwrap_or(&written.place).clone())
    };
    let message = format!(
        "`{}` and `{}` can match the same node and set {} differently, e.g. {}",
        group.name,
        other.name,
        settings.join(", "),
        describe(&overlap.witness)
    );
    let found = Diagnostic::new(Kind::PotentialConflict, place(overlap.group)?, message)
        .in_group(group.name.as_str())
        .with_help(
            "make one an ancestor of the other, let their rules exclude each other, or set it in one of them",
        );
    Some(match place(overlap.other) {
        Some(place) => found.with_related(place, format!("`{}` sets it here", other.name)),
        None => found,
    })
}

fn parameter_place<'g>(written: &'g GroupFile, setting: Setting<'_>) -> Option<&'g Place> {
    let Setting::Parameter(class, name) = setting else { return None };
    let class = written.classes.iter().find(|it| it.name.as_ref() == class.as_str())?;
    let parameter = class.parameters.iter().find(|it| it.name.as_ref() == name.as_str())?;
    Some(&parameter.place)
}

fn name(setting: Setting<'_>) -> String {
    match setting {
        Setting::Environment => "environment".to_owned(),
        Setting::Parameter(class, name) => format!("{class}::{name}"),
        Setting::Variable(name) => format!("${name}"),
        Setting::ConfigData(class, key) => format!("{class}::{key} (config data)"),
    }
}

/// Says what a node has that matters.
fn describe(node: &Node) -> String {
    let mut parts = Vec::new();
    if node.name != Node::EXAMPLE {
        parts.push(format!("name = {}", Value::from(node.name.as_str())));
    }
    for (root, map) in [("fact", &node.fact), ("trusted", &node.trusted)] {
        flatten(&mut vec![Segment::Key(root.into())], map, &mut parts);
    }
    let more = parts.len().saturating_sub(SHOWN);
    parts.truncate(SHOWN);
    let mut said = parts.join(", ");
    if more > 0 {
        said = format!("{said} and {more} more");
    }
    if said.is_empty() { "any node".to_owned() } else { said }
}

fn flatten(way: &mut Vec<Segment>, map: &Map<String, Value>, parts: &mut Vec<String>) {
    for (key, value) in map {
        way.push(Segment::Key(key.as_str().into()));
        visit(way, value, parts);
        way.pop();
    }
}

fn visit(way: &mut Vec<Segment>, value: &Value, parts: &mut Vec<String>) {
    let is_certname = matches!(way.as_slice(), [Segment::Key(root), Segment::Key(field)]
        if root.as_ref() == "trusted" && field.as_ref() == "certname");
    match value {
        Value::Null => {}
        Value::Object(map) => flatten(way, map, parts),
        Value::Array(elements) if elements.iter().any(Value::is_object) => {
            for (index, element) in (0..).zip(elements) {
                way.push(Segment::Index(index));
                visit(way, element, parts);
                way.pop();
            }
        }
        _ if is_certname => {}
        value => parts.push(format!("{} = {value}", Path::Segments(way.as_slice().into()))),
    }
}
