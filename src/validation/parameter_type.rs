//! Values that do not have the type that their class declares.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::catalogue::Types;
use super::tree::GroupPlaces;
use crate::diagnostic::{Diagnostic, Kind, closest};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{ClassName, EnvironmentName, GroupId, Key, Value};
use crate::puppet::{Aliases, Argument, DataType, TypeFault, fault_of, has_type};

/// Checks every value that counts in a group, its own or the nearest ancestor's, against the types
/// of the group's environment.
///
/// A finding stands where the value is written, once for each environment that wants another type.
pub(super) fn check(
    hierarchy: &Hierarchy,
    types: &BTreeMap<EnvironmentName, Arc<Types>>,
    places: &BTreeMap<GroupId, GroupPlaces<'_>>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut looked_at: BTreeSet<Use<'_>> = BTreeSet::new();
    for index in hierarchy.indexes() {
        let environment = &hierarchy.group(index).environment;
        let Some(known) = types.get(environment).filter(|it| !it.parameters.is_empty()) else {
            continue;
        };
        let mut nearer: HashSet<(&ClassName, &Key)> = HashSet::new();
        for source in hierarchy.lineage(index) {
            for (class, parameters) in hierarchy.group(source).classes.as_ref() {
                let Some(of_class) = known.parameters.get(class) else { continue };
                for (parameter, value) in parameters {
                    let Some(data_type) = of_class.get(parameter) else { continue };
                    if !nearer.insert((class, parameter)) || value.is_null() {
                        continue;
                    }
                    let it = Use { source, class, parameter, environment };
                    if !looked_at.insert(it) {
                        continue;
                    }
                    if let Some(fault) = fault_of(data_type, value, &known.aliases) {
                        let found = report(&it, &fault, &known.aliases, hierarchy, places);
                        diagnostics.extend(found);
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Use<'h> {
    source: GroupIndex,
    class: &'h ClassName,
    parameter: &'h Key,
    environment: &'h EnvironmentName,
}

fn report(
    it: &Use<'_>,
    fault: &TypeFault,
    aliases: &Aliases,
    hierarchy: &Hierarchy,
    places: &BTreeMap<GroupId, GroupPlaces<'_>>,
) -> Option<Diagnostic> {
    let Use { source, class, parameter, environment } = it;
    let group = hierarchy.group(*source);
    let classes = places.get(&group.id)?.classes;
    let written = classes.iter().find(|it| it.name.as_ref() == class.as_str())?;
    let place = &written.parameters.iter().find(|it| it.name.as_ref() == parameter.as_str())?.value;
    let TypeFault { way, wanted, found } = fault;
    let message = format!(
        "`{parameter}{way}` of the class `{class}` is {}; the environment `{environment}` wants `{wanted}`",
        sort(found)
    );
    let diagnostic =
        Diagnostic::new(Kind::ParameterType, place.clone(), message).in_group(group.name.as_str());
    Some(match help(wanted, found, aliases) {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    })
}

/// Says what the value may have been meant to be.
fn help(wanted: &DataType, found: &Value, aliases: &Aliases) -> Option<String> {
    let fits = |value: &Value| has_type(wanted, value, aliases) == Some(true);
    if let Value::String(text) = found {
        let unquoted: Option<Value> =
            serde_json::from_str(text).ok().filter(|it: &Value| !it.is_string());
        if unquoted.as_ref().is_some_and(fits) {
            return Some(format!("write it without quotes: {text}"));
        }
        let mut words = Vec::new();
        enumerated(wanted, &mut words);
        if let Some(similar) = closest(text, words.iter().copied()) {
            return Some(format!("did you mean `{similar}`?"));
        }
    }
    let quoted = Value::String(found.to_string());
    if (found.is_number() || found.is_boolean()) && fits(&quoted) {
        return Some(format!("put it in quotes: {quoted}"));
    }
    if !found.is_array() && fits(&Value::Array(vec![found.clone()])) {
        return Some(format!("put it in a list: [{found}]"));
    }
    let meaning = aliases.get(&wanted.name)?;
    Some(format!("`{wanted}` is {meaning}"))
}

/// Collects the words that a type allows.
fn enumerated<'d>(data_type: &'d DataType, words: &mut Vec<&'d str>) {
    for argument in &data_type.arguments {
        match argument {
            Argument::Value(Value::String(word)) if data_type.name == "Enum" => words.push(word),
            Argument::Type(inner) if matches!(data_type.name.as_str(), "Optional" | "Variant") => {
                enumerated(inner, words);
            }
            _ => {}
        }
    }
}

/// Names a value so that it can be told from others.
fn sort(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(value) => format!("the number {value}"),
        Value::String(text) if text.chars().count() <= 40 => {
            format!("the string {}", Value::from(text.as_str()))
        }
        Value::String(_) => "a string".to_owned(),
        Value::Array(elements) if elements.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(fields) if fields.is_empty() => "an empty mapping".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}
