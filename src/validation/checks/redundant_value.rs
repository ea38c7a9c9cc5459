//! Values that are equal to what a group inherits.

use super::super::group::GroupFile;
use super::lineage::{ancestors, is_too_deep};
use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::hierarchy::GroupIndex;
use crate::model::{ClassName, Classes, Group, Key, Value, VariableName, same};

pub(super) const CHECK: Check = Check {
    kinds: &[Kind::RedundantValue],
    scope: FindingScope::Ancestors,
    run: Run::EachGroup(check),
};

/// Compares each value of a group with that of its nearest ancestor that sets it.
fn check(context: &CheckContext<'_>, index: GroupIndex, findings: &mut Findings<'_>) {
    let Some(severity) = context.policy.groups.redundant_values.severity() else { return };
    let group = context.hierarchy.group(index);
    if context.hierarchy.parent(index).is_none() {
        return;
    }
    let settings = classes_alone(group)
        .chain(parameters(&group.classes, OwnSetting::Parameter))
        .chain(group.variables.iter().map(|(name, value)| (OwnSetting::Variable(name), value)))
        .chain(parameters(&group.config_data, OwnSetting::ConfigData));
    for (setting, value) in settings {
        if let Some(inherited) = inherited(context, index, setting, value) {
            findings
                .add_with(index, severity, || report(context, index, setting, inherited, severity));
        }
    }
}

/// Something that a group sets.
#[derive(Clone, Copy)]
enum OwnSetting<'h> {
    /// A class without parameters.
    Class(&'h ClassName),
    Parameter(&'h ClassName, &'h Key),
    Variable(&'h VariableName),
    ConfigData(&'h ClassName, &'h Key),
}

/// What makes a value redundant.
#[derive(Clone, Copy)]
enum Redundancy {
    /// An ancestor sets the same.
    Same(GroupIndex),
    /// An ancestor has removed it already.
    Removed(GroupIndex),
    /// There is nothing to remove.
    Nothing,
}

/// Returns the classes that a group names without setting a parameter.
fn classes_alone(group: &Group) -> impl Iterator<Item = (OwnSetting<'_>, &Value)> {
    let bare = group.classes.iter().filter(|(_, parameters)| parameters.is_empty());
    bare.map(|(class, _)| (OwnSetting::Class(class), &NAMED))
}

fn parameters<'h>(
    classes: &'h Classes,
    setting: fn(&'h ClassName, &'h Key) -> OwnSetting<'h>,
) -> impl Iterator<Item = (OwnSetting<'h>, &'h Value)> {
    classes.iter().flat_map(move |(class, parameters)| {
        parameters.iter().map(move |(key, value)| (setting(class, key), value))
    })
}

/// What stands for the value of a class that a group names.
static NAMED: Value = Value::Bool(true);

/// Returns the value that a group sets.
fn own<'h>(group: &'h Group, setting: OwnSetting<'_>) -> Option<&'h Value> {
    match setting {
        OwnSetting::Class(class) => group.classes.get(class).map(|_| &NAMED),
        OwnSetting::Parameter(class, key) => group.classes.get(class)?.get(key),
        OwnSetting::Variable(name) => group.variables.get(name),
        OwnSetting::ConfigData(class, key) => group.config_data.get(class)?.get(key),
    }
}

fn inherited(
    context: &CheckContext<'_>,
    index: GroupIndex,
    setting: OwnSetting<'_>,
    value: &Value,
) -> Option<Redundancy> {
    let hierarchy = context.hierarchy;
    let nearest =
        ancestors(hierarchy, index).find_map(|it| Some((it, own(hierarchy.group(it), setting)?)));
    if !context.incomplete.know_values(hierarchy, index, nearest.map(|(by, _)| by)) {
        return None;
    }
    match (value, nearest) {
        (Value::Null, Some((by, Value::Null))) => Some(Redundancy::Removed(by)),
        (Value::Null, None) if !is_too_deep(hierarchy, index) => Some(Redundancy::Nothing),
        (value, Some((by, other))) if same(value, other) => Some(Redundancy::Same(by)),
        _ => None,
    }
}

fn report(
    context: &CheckContext<'_>,
    index: GroupIndex,
    setting: OwnSetting<'_>,
    inherited: Redundancy,
    severity: Severity,
) -> Option<Diagnostic> {
    let group = context.hierarchy.group(index);
    let place = place(context.places.of(group.id)?, setting)?;
    let what = match setting {
        OwnSetting::Class(class) => format!("the class `{class}`"),
        OwnSetting::Parameter(class, key) => format!("`{key}` of the class `{class}`"),
        OwnSetting::Variable(name) => format!("the variable `{name}`"),
        OwnSetting::ConfigData(class, key) => format!("`{key}` of the config data of `{class}`"),
    };
    let name = |by: GroupIndex| &context.hierarchy.group(by).name;
    let (message, by) = match (inherited, setting) {
        (Redundancy::Same(by), OwnSetting::Class(_)) => {
            (format!("{what} is inherited from `{}`", name(by)), Some((by, "names it here")))
        }
        (Redundancy::Same(by), _) => (
            format!("{what} is inherited from `{}` with the same value", name(by)),
            Some((by, "sets it here")),
        ),
        (Redundancy::Removed(by), _) => {
            (format!("{what} is removed by `{}` already", name(by)), Some((by, "removes it here")))
        }
        (Redundancy::Nothing, _) => {
            (format!("{what} is null, which removes nothing: no ancestor sets it"), None)
        }
    };
    let mut found = Diagnostic::new(Kind::RedundantValue, place, message)
        .in_group(group.name.as_str())
        .with_help("leave it out: what the group sets stays the same");
    found.severity = severity;
    let related = by.and_then(|(by, verb)| {
        let ancestor = context.hierarchy.group(by);
        let place = self::place(context.places.of(ancestor.id)?, setting)?;
        Some((place, format!("`{}` {verb}", ancestor.name)))
    });
    Some(match related {
        Some((place, message)) => found.with_related(place, message),
        None => found,
    })
}

fn place(written: &GroupFile, setting: OwnSetting<'_>) -> Option<Place> {
    match setting {
        OwnSetting::Class(class) => written.class_place(class),
        OwnSetting::Parameter(class, key) => written.parameter_place(class, key),
        OwnSetting::Variable(name) => written.variable_place(name),
        OwnSetting::ConfigData(class, key) => written.config_data_place(class, key),
    }
}
