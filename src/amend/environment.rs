//! Environments that exist though no group names them and nobody knows their classes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Ground;
use super::operation::Operation;
use super::refusal::{Refusal, Status};
use super::scope::Scope;
use crate::document::{Layout, write};
use crate::model::EnvironmentName;

type Files = BTreeMap<String, Option<String>>;

/// Returns the files that change so that an environment exists, or does no longer.
pub(super) fn changes(
    ground: &Ground<'_>,
    operation: &Operation,
    scope: Option<&Scope>,
) -> Result<Files, Refusal> {
    let files = match operation {
        Operation::MakeEnvironment { name } => make(ground, name),
        Operation::RemoveEnvironment { name } => remove(ground, name)?,
        _ => Files::new(),
    };
    // Environments stand below no group.
    if scope.is_some() && !files.is_empty() {
        let message = "Sorry, but you don't have permission to make or remove environments.";
        return Err(Refusal::new(Status::Forbidden, "permission-denied", message, Value::Null));
    }
    Ok(files)
}

fn make(ground: &Ground<'_>, name: &EnvironmentName) -> Files {
    if ground.estate.environment_names().contains(name) {
        return Files::new();
    }
    let directory = &ground.layout.environments;
    // A file of this name may be empty, or that of another environment.
    let stems = std::iter::once(name.to_string()).chain((2..).map(|it| format!("{name}-{it}")));
    let mut paths = stems.map(|stem| format!("{directory}/{stem}.yaml"));
    let path = paths.find(|path| (ground.read)(path).is_none());
    let text = write(&json!({"name": name}), &|_| Layout::Block);
    path.map(|path| (path, Some(text))).into_iter().collect()
}

fn remove(ground: &Ground<'_>, name: &EnvironmentName) -> Result<Files, Refusal> {
    let estate = ground.estate;
    let in_use = |message: String, groups: Vec<Value>| {
        let details = json!({"environment": name, "groups": groups});
        Err(Refusal::unprocessable("environment-in-use", message, details))
    };
    let groups: Vec<Value> = estate
        .hierarchy
        .groups()
        .filter(|group| group.environment == *name)
        .map(|group| json!({"id": group.id, "name": group.name}))
        .collect();
    if !groups.is_empty() {
        let message = format!(
            "The environment {name} cannot be removed because it is that of {} groups.",
            groups.len()
        );
        return in_use(message, groups);
    }
    let Some(file) = estate.environments.get(name) else {
        return Err(Refusal::not_found(format!("/v1/environments/{name}")));
    };
    if estate.catalogues.contains_key(name) {
        let message = format!(
            "The environment {name} has a class catalogue: remove the file {file} by a commit."
        );
        return in_use(message, groups);
    }
    Ok([(file.to_string(), None)].into())
}
