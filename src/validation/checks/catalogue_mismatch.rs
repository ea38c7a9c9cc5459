//! Classes that groups use in environments whose catalogues declare them differently.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{ClassName, EnvironmentName, Key, Table, Value, same};

pub(super) const CHECK: Check =
    Check { kinds: &[Kind::CatalogueMismatch], scope: FindingScope::Estate, run: Run::Once(check) };

/// Reports each class once, for the first two environments that differ.
fn check(context: &CheckContext<'_>, findings: &mut Findings<'_>) {
    let Some(severity) = context.policy.groups.catalogue_mismatches.severity() else { return };
    if context.catalogues.classes.len() < 2 {
        return;
    }
    for (class, users) in users(context) {
        let mut rest = users.iter();
        let Some((one, first)) = rest.next() else { continue };
        let found = rest.find_map(|(other, user)| {
            Some((other, *user, difference(context, class, one, other)?))
        });
        let Some((other, second, how)) = found else { continue };
        let mut places: Vec<(Place, GroupIndex)> = [*first, second]
            .into_iter()
            .filter_map(|it| Some((class_place(context, class, it)?, it)))
            .collect();
        places.sort();
        places.dedup();
        let Some((_, at)) = places.first() else { continue };
        findings.add_with(*at, severity, || {
            let message = format!(
                "the class `{class}` is used in `{one}` and `{other}`, whose catalogues differ: {how}"
            );
            report(context, &places, message, severity)
        });
    }
}

/// The environments in which a class is used, with the first group that names it for each.
type Users<'h> = BTreeMap<&'h EnvironmentName, GroupIndex>;

/// Returns the classes that are used, by environments whose catalogues have them. A group's classes
/// are used in its own environment and in those of its descendants.
fn users<'h>(context: &CheckContext<'h>) -> BTreeMap<&'h ClassName, Users<'h>> {
    let (hierarchy, catalogues) = (context.hierarchy, context.catalogues.classes.as_ref());
    let mut all: BTreeMap<&ClassName, Users<'h>> = BTreeMap::new();
    for (index, environments) in hierarchy.indexes().zip(environments(hierarchy)) {
        let classes = hierarchy.group(index).classes.as_ref();
        if classes.is_empty() {
            continue;
        }
        for environment in environments {
            let Some(catalogue) = catalogues.get(environment) else { continue };
            for class in classes.keys().filter(|it| catalogue.classes.contains_key(*it)) {
                all.entry(class).or_default().entry(environment).or_insert(index);
            }
        }
    }
    all
}

/// Returns the environments of each group and its descendants.
fn environments(hierarchy: &Hierarchy) -> Vec<BTreeSet<&EnvironmentName>> {
    let mut below: Vec<BTreeSet<&EnvironmentName>> =
        hierarchy.groups().map(|it| BTreeSet::from([&it.environment])).collect();
    // Children come after their parents, so theirs are complete when they are passed on.
    for index in hierarchy.indexes().rev() {
        let Some(parent) = hierarchy.parent(index) else { continue };
        let (before, rest) = below.split_at_mut(index.number());
        if let (Some(parent), Some(own)) = (before.get_mut(parent.number()), rest.first()) {
            parent.extend(own.iter().copied());
        }
    }
    below
}

/// Says what is different about a class in two environments, if anything is.
fn difference(
    context: &CheckContext<'_>,
    class: &ClassName,
    one: &EnvironmentName,
    other: &EnvironmentName,
) -> Option<String> {
    let parameters = |it: &EnvironmentName| -> Option<&Table<Key, Value>> {
        context.catalogues.classes.get(it)?.classes.get(class)
    };
    if [one, other].into_iter().any(|it| context.catalogues.lacks_parameters(it, class)) {
        return None;
    }
    let (in_one, in_other) = (parameters(one)?, parameters(other)?);
    let only = |these: &Table<Key, Value>, those: &Table<Key, Value>, name| {
        let key = these.keys().find(|it| !those.contains_key(*it))?;
        Some(format!("only `{name}` has the parameter `{key}`"))
    };
    only(in_one, in_other, one).or_else(|| only(in_other, in_one, other)).or_else(|| {
        in_one.iter().find_map(|(key, default)| {
            if in_other.get(key).is_some_and(|it| !same(it, default)) {
                return Some(format!("`{key}` has another default"));
            }
            let of = |it: &EnvironmentName| {
                context.catalogues.types.get(it)?.parameters.get(class)?.get(key)
            };
            let (a, b) = (of(one)?, of(other)?);
            (a != b).then(|| format!("`{key}` is `{a}` in `{one}` and `{b}` in `{other}`"))
        })
    })
}

/// Reports a class at the first of its places.
fn report(
    context: &CheckContext<'_>,
    places: &[(Place, GroupIndex)],
    message: String,
    severity: Severity,
) -> Option<Diagnostic> {
    let name = |index: GroupIndex| context.hierarchy.group(index).name.as_str();
    let ((place, at), others) = places.split_first()?;
    let mut found = Diagnostic::new(Kind::CatalogueMismatch, place.clone(), message)
        .in_group(name(*at))
        .with_help(
            "bring the environments to one version of the module, or set the class per environment",
        );
    found.severity = severity;
    for (place, other) in others {
        let message = format!("`{}` names it for the other environment", name(*other));
        found = found.with_related(place.clone(), message);
    }
    Some(found)
}

fn class_place(context: &CheckContext<'_>, class: &ClassName, index: GroupIndex) -> Option<Place> {
    context.places.of(context.hierarchy.group(index).id)?.class_place(class)
}
