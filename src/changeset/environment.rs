//! The files of environments: whether one exists, and its class catalogue.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::catalogue::{NewCatalogue, WrittenBy, says_the_same};
use super::context::WriteContext;
use super::operation::Operation;
use super::rejection::{Rejection, RejectionKind};
use super::scope::{Scope, WriteGrant, first_allowing};
use super::taken_paths::TakenPaths;
use crate::document::{ValueLayout, write};
use crate::model::EnvironmentName;
use crate::wording::counted;

type FileTexts = BTreeMap<String, Option<String>>;

/// What changes about environments.
#[derive(Debug, Default)]
pub(super) struct EnvironmentChanges {
    pub(super) files: FileTexts,
    /// The environments that the files are of.
    pub(super) names: Vec<EnvironmentName>,
}

impl EnvironmentChanges {
    /// Checks that a scope allows to change files of environments. To make one that exists changes none.
    pub(super) fn check(&self, scope: &Scope) -> Result<(), Rejection> {
        if self.files.is_empty() { Ok(()) } else { scope.check_environments() }
    }
}

/// Returns the files that change so that an environment exists, or does no longer, or so that its
/// catalogue is up to date.
pub(super) fn changes(
    context: &WriteContext<'_>,
    operation: &Operation,
) -> Result<EnvironmentChanges, Rejection> {
    let (files, name) = match operation {
        Operation::MakeEnvironment { name } => (make(context, name)?, name),
        Operation::RemoveEnvironment { name } => (remove(context, name)?, name),
        Operation::UpdateClasses { catalogues } => return update(context, catalogues),
        _ => return Ok(EnvironmentChanges::default()),
    };
    Ok(EnvironmentChanges { files, names: vec![name.clone()] })
}

/// Checks that one of the grants is for everything, since a class catalogue belongs to an environment and
/// not to a group.
///
/// # Errors
///
/// Returns a rejection if every grant is limited to groups or keys.
pub fn check_may_update_classes(grants: &[WriteGrant]) -> Result<(), Rejection> {
    first_allowing(grants, Scope::check_catalogues).map(|_| ())
}

fn update(
    context: &WriteContext<'_>,
    catalogues: &BTreeMap<EnvironmentName, NewCatalogue>,
) -> Result<EnvironmentChanges, Rejection> {
    let mut changes = EnvironmentChanges::default();
    let mut taken = TakenPaths::new(context.names);
    for (name, catalogue) in catalogues {
        let path = match context.estate.environments.get(name) {
            Some(known) => known.to_string(),
            None => free_path(context, &taken, name)?,
        };
        taken.note_written(&path);
        let text = catalogue.text(&path, name, WrittenBy::Daemon).map_err(|fault| {
            let message = format!("The classes of {name} cannot be written down: {fault}.");
            Rejection::new(RejectionKind::InvalidCommit, message, Value::Array(Vec::new()))
        })?;
        if (context.read)(&path).is_none_or(|old| !says_the_same(&old, &text)) {
            changes.files.insert(path, Some(text));
            changes.names.push(name.clone());
        }
    }
    Ok(changes)
}

/// Returns where the file of a new environment goes.
fn free_path(
    context: &WriteContext<'_>,
    taken: &TakenPaths<'_>,
    name: &EnvironmentName,
) -> Result<String, Rejection> {
    let directory = &*context.layout.environments;
    taken.check_directory(directory)?;
    let free = paths_of(directory, name).find(|path| !taken.is_taken(path));
    // There is no last number.
    free.ok_or_else(Rejection::not_found)
}

/// Returns where the file of a new environment may go, the best first: a file of its name may be empty, or that of another one.
pub fn paths_of(directory: &str, name: &EnvironmentName) -> impl Iterator<Item = String> {
    let stems =
        std::iter::once(name.to_string()).chain((2..).map(move |it| format!("{name}-{it}")));
    stems.map(move |stem| format!("{directory}/{stem}.yaml"))
}

fn make(context: &WriteContext<'_>, name: &EnvironmentName) -> Result<FileTexts, Rejection> {
    if context.estate.environment_names().contains(name) {
        return Ok(FileTexts::new());
    }
    let text = write(&json!({"name": name}), &|_| ValueLayout::Block);
    let path = free_path(context, &TakenPaths::new(context.names), name)?;
    Ok([(path, Some(text))].into())
}

fn remove(context: &WriteContext<'_>, name: &EnvironmentName) -> Result<FileTexts, Rejection> {
    let estate = context.estate;
    let in_use = |message: String, groups: Vec<Value>| {
        let details = json!({"environment": name, "groups": groups});
        Err(Rejection::new(RejectionKind::EnvironmentInUse, message, details))
    };
    let groups: Vec<Value> = estate
        .hierarchy
        .groups()
        .filter(|group| group.environment == *name)
        .map(|group| json!({"id": group.id, "name": group.name}))
        .collect();
    if !groups.is_empty() {
        let message = format!(
            "The environment {name} cannot be removed because it is that of {}.",
            counted(groups.len(), "group")
        );
        return in_use(message, groups);
    }
    let Some(file) = estate.environments.get(name) else {
        return Err(Rejection::not_found());
    };
    if estate.catalogues.contains_key(name) {
        let message = format!(
            "The environment {name} has a class catalogue: remove the file {file} by a commit."
        );
        return in_use(message, groups);
    }
    Ok([(file.to_string(), None)].into())
}
