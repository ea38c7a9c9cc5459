//! Validating a group without storing it.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::answer::Answering;
use super::body::read_json;
use super::error::ApiError;
use crate::diagnostic::Severity;
use crate::hierarchy::{Estate, GroupIndex, group_to_value};
use crate::model::{Group, GroupId};
use crate::validation::{FileKind, ParentName, SourceContent, SourceFile, read_file};

/// What clients send back of what they read.
const READ_ONLY: &[&str] = &["last_edited", "serial_number", "deleted"];

pub(super) async fn group(answering: Answering, body: Body) -> Result<Response, ApiError> {
    let body = read_json(body).await?.unwrap_or_default();
    let group = read(&body)?;
    let estate = &answering.snapshot.estate;
    match check(&group, estate) {
        Ok(()) => Ok(answering.respond(Json(group_to_value(&group)))),
        Err(error) => Ok(answering.respond(error.into_response())),
    }
}

/// Reads a group as the API has it, by the same reader as files.
fn read(body: &Value) -> Result<Group, ApiError> {
    let violation = |error: String| ApiError::schema_violation(body, "Group", &error.into());
    let Value::Object(fields) = body else {
        return Err(violation("(not (map? the-body))".to_owned()));
    };
    let missing: Vec<&str> = ["name", "parent", "classes"]
        .into_iter()
        .filter(|key| !fields.contains_key(*key))
        .collect();
    if !missing.is_empty() {
        let keys: Vec<String> =
            missing.iter().map(|key| format!("[:{key} missing-required-key]")).collect();
        return Err(violation(format!("({})", keys.join(" "))));
    }
    let mut fields = fields.clone();
    fields.retain(|key, _| !READ_ONLY.contains(&key.as_str()));
    let bytes: Arc<[u8]> = Value::Object(fields).to_string().into_bytes().into();
    let file = SourceFile { path: "the body".into(), content: SourceContent::Bytes(bytes) };
    let reading = read_file(&file, FileKind::Groups);
    let errors: Vec<&str> = reading
        .diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .map(|it| it.message.as_str())
        .collect();
    let found = reading.groups().first();
    match found.and_then(|file| Some((file.group.clone()?, file.parent.clone()?.0))) {
        Some((group, ParentName::Id(parent))) => Ok(Group { parent, ..group }),
        Some((_, ParentName::Name(name))) => Err(ApiError::new(
            axum::http::StatusCode::BAD_REQUEST,
            "malformed-uuid",
            "The group's parent id is not a valid UUID.",
            name.as_ref(),
        )),
        None => Err(violation(errors.join("; "))),
    }
}

/// Checks a group against those of the snapshot.
fn check(group: &Group, estate: &Estate) -> Result<(), ApiError> {
    let hierarchy = &estate.hierarchy;
    let Some(parent) = hierarchy.find(group.parent) else {
        let message = format!("The parent group {} does not exist.", group.parent);
        return Err(ApiError::unprocessable("missing-parent", message, group_to_value(group)));
    };
    if let Some(index) = hierarchy.find(group.id)
        && (index == parent || hierarchy.is_ancestor(index, parent))
        && group.id != GroupId::ROOT
    {
        return Err(cycle(group, estate, index, parent));
    }
    let twin = hierarchy.groups().find(|it| {
        it.id != group.id && it.name == group.name && it.environment == group.environment
    });
    if twin.is_some() {
        let message = format!(
            "Could not complete the request because it violates a group uniqueness constraint. \
             A group with name = {}, environment_name = {} already exists.",
            group.name, group.environment
        );
        let details = json!({
            "conflict": {"name": group.name, "environment_name": group.environment},
            "constraintName": "groups_name_environment_name_idx",
        });
        return Err(ApiError::unprocessable("uniqueness-violation", message, details));
    }
    missing_referents(group, estate, parent)
}

fn cycle(group: &Group, estate: &Estate, index: GroupIndex, parent: GroupIndex) -> ApiError {
    let hierarchy = &estate.hierarchy;
    let way = hierarchy.lineage(parent).take_while(|it| *it != index);
    let between: Vec<&Group> = way.map(|it| hierarchy.group(it)).collect();
    let mut names = vec![group.name.to_string()];
    names.extend(between.iter().map(|it| it.name.to_string()));
    names.push(group.name.to_string());
    let message = format!(
        "Detected group inheritance cycle: {}. See the `details` key for the full groups of the cycle.",
        names.join(" -> ")
    );
    let groups: Vec<Value> = std::iter::once(group).chain(between).map(group_to_value).collect();
    ApiError::unprocessable("inheritance-cycle", message, groups.into())
}

/// Checks the classes that a group sets or would inherit.
fn missing_referents(group: &Group, estate: &Estate, parent: GroupIndex) -> Result<(), ApiError> {
    let Some(catalogue) = estate.catalogues.get(&group.environment) else { return Ok(()) };
    let ancestors = estate.hierarchy.lineage(parent).map(|it| estate.hierarchy.group(it));
    let mut missing: Vec<Value> = Vec::new();
    for definer in std::iter::once(group).chain(ancestors) {
        let entry = |kind: &str, missing: Value| {
            json!({
                "kind": kind,
                "missing": missing,
                "environment": group.environment,
                "group": group.name,
                "defined_by": definer.name,
            })
        };
        for (class, parameters) in definer.classes.as_ref() {
            match catalogue.classes.get(class) {
                None => missing.push(entry("missing-class", json!(class))),
                Some(known) => missing.extend(
                    parameters
                        .keys()
                        .filter(|key| !known.contains_key(*key))
                        .map(|key| entry("missing-parameter", json!([class, key]))),
                ),
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = missing.iter().map(|it| it["missing"].to_string()).collect();
    let message = format!(
        "The group being edited or created makes reference to the following missing classes or parameters: {}. \
         See the `details` key for all of them.",
        names.join(", ")
    );
    Err(ApiError::unprocessable("missing-referents", message, missing.into()))
}
