//! Reading groups.

use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use serde_json::{Value, json};

use super::answer::{Answering, Parameters};
use super::body::read_json;
use super::error::ApiError;
use crate::hierarchy::{
    GroupIndex, Hierarchy, group_to_value, inherited_group_to_value, inherited_rule,
};
use crate::model::{Condition, GroupId};
use crate::rule::{self, QueryFormat, to_query};

/// Returns the group that a part of the URL names.
pub(super) fn find(hierarchy: &Hierarchy, id: &str) -> Result<GroupIndex, ApiError> {
    let parsed: GroupId = id.parse().map_err(|_| ApiError::malformed_uuid(id))?;
    hierarchy.find(parsed).ok_or_else(|| ApiError::not_found(&format!("/v1/groups/{id}")))
}

pub(super) async fn list(answering: Answering, parameters: Parameters) -> Response {
    let hierarchy = &answering.snapshot.estate.hierarchy;
    let inherited = parameters.is_on("inherited");
    let mut indexes: Vec<GroupIndex> = hierarchy.indexes().collect();
    indexes.sort_by_key(|index| hierarchy.group(*index).id);
    let groups = indexes.into_iter().map(|index| {
        if inherited {
            inherited_group_to_value(hierarchy, index)
        } else {
            group_to_value(hierarchy.group(index))
        }
    });
    let page = parameters.page(groups.collect()).map(Value::from);
    answering.json(page)
}

pub(super) async fn one(
    answering: Answering,
    parameters: Parameters,
    Path(id): Path<String>,
) -> Response {
    let hierarchy = &answering.snapshot.estate.hierarchy;
    let group = find(hierarchy, &id).map(|index| {
        if parameters.is_on("inherited") {
            inherited_group_to_value(hierarchy, index)
        } else {
            group_to_value(hierarchy.group(index))
        }
    });
    answering.json(group)
}

pub(super) async fn children(
    answering: Answering,
    parameters: Parameters,
    Path(id): Path<String>,
) -> Response {
    let hierarchy = &answering.snapshot.estate.hierarchy;
    let tree = find(hierarchy, &id).and_then(|index| {
        let depth = parameters.number("depth")?.unwrap_or(usize::MAX);
        Ok(Value::from(vec![nested(hierarchy, index, depth)]))
    });
    answering.json(tree)
}

/// Writes a group with its children, as deep as wanted.
///
/// Parents stand before their children, so from the end each group finds its children written.
fn nested(hierarchy: &Hierarchy, top: GroupIndex, depth: usize) -> Value {
    let level = |index| hierarchy.lineage(index).take_while(|it| *it != top).count();
    let mut written: std::collections::BTreeMap<GroupIndex, Value> =
        std::collections::BTreeMap::new();
    let inside = hierarchy.indexes().filter(|index| *index >= top && *index < hierarchy.end(top));
    for index in inside.rev() {
        let at = level(index);
        if at > depth {
            continue;
        }
        let mut group = group_to_value(hierarchy.group(index));
        let children: Vec<GroupIndex> = hierarchy.children(index).collect();
        if let Value::Object(fields) = &mut group {
            fields.insert("immediate_child_count".to_owned(), children.len().into());
            let children = children.into_iter().filter_map(|child| written.remove(&child));
            fields.insert("children".to_owned(), children.collect());
        }
        written.insert(index, group);
    }
    written.remove(&top).unwrap_or_default()
}

pub(super) async fn rules(answering: Answering, Path(id): Path<String>) -> Response {
    let hierarchy = &answering.snapshot.estate.hierarchy;
    let answer = find(hierarchy, &id).map(|index| {
        let inherited = inherited_rule(hierarchy, index);
        let query = |format| translated(inherited.as_ref(), format);
        json!({
            "rule": hierarchy.group(index).rule.as_deref().map(rule::to_value),
            "rule_with_inherited": inherited.as_ref().map(rule::to_value),
            "translated": {
                "nodes_query_format": query(QueryFormat::Nodes),
                "inventory_query_format": query(QueryFormat::Inventory),
            },
        })
    });
    answering.json(answer)
}

/// A rule that cannot be translated is shown all the same; its query is null.
fn translated(rule: Option<&Condition>, format: QueryFormat) -> Value {
    rule.and_then(|rule| to_query(rule, format).ok().flatten()).unwrap_or_default()
}

pub(super) async fn translate(parameters: Parameters, body: Body) -> Result<Response, ApiError> {
    use axum::response::IntoResponse as _;

    let format = match parameters.get("format") {
        None | Some("nodes") => QueryFormat::Nodes,
        Some("inventory") => QueryFormat::Inventory,
        Some(other) => {
            let error = Value::from("the format must be nodes or inventory");
            return Err(ApiError::schema_violation(&other.into(), "Format", &error));
        }
    };
    let body = read_json(body).await?.unwrap_or_default();
    let condition = rule::read(&body).map_err(|faults| {
        let messages: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
        ApiError::schema_violation(&body, "Rule", &messages.join("; ").into())
    })?;
    match to_query(&condition, format) {
        Ok(query) => {
            // A rule that every node meets is a query all the same.
            let query = query.unwrap_or_else(|| json!(["~", "certname", ".*"]));
            Ok(axum::Json(json!({ "query": query })).into_response())
        }
        Err(error) => {
            let message = error.to_string();
            Err(ApiError::unprocessable("untranslatable-rule", message, error.condition))
        }
    }
}
