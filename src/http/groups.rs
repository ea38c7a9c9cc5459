//! Reading groups.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use super::body::{RULE_VALUES, read, to_json_within};
use super::compute::{GROUP, TOOLS};
use super::error::ApiError;
use super::json_list::JsonList;
use super::json_tree::JsonTree;
use super::openapi::errors::{
    BodyErrors, DepthErrors, PageErrors, SnapshotErrors, TranslationErrors,
};
use super::openapi::parameters::{Depth, Format, Inherited, Page, SnapshotParameters};
use super::openapi::responses::GroupInPathErrors;
use super::original_uri::OriginalUri;
use super::path_parameter::PathParameter;
use super::query::Parameters;
use super::snapshot_context::SnapshotContext;
use super::streamed::stream;
use super::types::{ErrorKind, Group, GroupRules, GroupTree, Query, TranslatedRule};
use crate::changeset::first_problems;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy, View, inherited_rule};
use crate::history::{Edit, History};
use crate::model::{Condition, GroupId};
use crate::reconcile::Controller;
use crate::rule::{self, QueryFormat, RuleFaultKind, to_whole_query};
use crate::validation::RULE_BYTES;

/// Returns the group that a part of the URL names.
pub(super) fn find(
    hierarchy: &Hierarchy,
    id: &str,
    uri: &OriginalUri,
) -> Result<GroupIndex, ApiError> {
    let parsed: GroupId = id.parse().map_err(|_| ApiError::malformed_uuid(id))?;
    hierarchy.find(parsed).ok_or_else(|| ApiError::not_found(uri))
}

/// Returns a group with when it was edited last, and how often, as far as that is known.
pub(super) fn show(estate: &Estate, index: GroupIndex, view: View, edit: Option<Edit>) -> Group {
    Group::shown(estate, index, view).edited(edit)
}

/// The groups of the commit that answers, with when each was edited.
struct EditedGroups<'a> {
    estate: &'a Estate,
    history: Option<Arc<History>>,
}

impl<'a> EditedGroups<'a> {
    fn of(controller: &Controller, context: &'a SnapshotContext) -> Self {
        let history = controller.edit_history(context.snapshot.commit);
        Self { estate: &context.snapshot.estate, history }
    }

    fn group(&self, index: GroupIndex, view: View) -> Group {
        let id = self.estate.hierarchy.group(index).id;
        let edit = self.history.as_ref().and_then(|history| history.edit(id));
        show(self.estate, index, view, edit)
    }
}

fn view(parameters: &Parameters) -> View {
    if parameters.is_on("inherited") { View::Inherited } else { View::Own }
}

/// Returns what an answer weighs that is about all groups.
fn weight(context: &SnapshotContext) -> usize {
    context.snapshot.estate.hierarchy.len() * GROUP
}

/// Lists the groups.
#[utoipa::path(
    get, path = "/v1/groups", operation_id = "list_groups", tag = "Groups",
    params(SnapshotParameters, Page, Inherited),
    responses(
        (status = 200, body = [Group]),
        PageErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn list(
    State(controller): State<Arc<Controller>>,
    context: SnapshotContext,
    parameters: Parameters,
) -> Result<Response, ApiError> {
    let hierarchy = &context.snapshot.estate.hierarchy;
    let mut indexes: Vec<GroupIndex> = hierarchy.indexes().collect();
    indexes.sort_by_key(|index| hierarchy.group(*index).id);
    let view = view(&parameters);
    let indexes = match parameters.page(indexes) {
        Ok(indexes) => indexes,
        Err(error) => return Ok(context.json(Err::<(), _>(error))),
    };
    let weight = indexes.len() * GROUP;
    match view {
        View::Own => {
            let write = move || {
                let edited = EditedGroups::of(&controller, &context);
                let groups = indexes.into_iter().map(|index| edited.group(index, view));
                context.json(Ok(groups.collect::<Vec<_>>()))
            };
            TOOLS.run(weight, write).await
        }
        // What groups inherit grows with the square of their number: it is never there as a whole.
        View::Inherited => {
            let snapshot = Arc::clone(&context.snapshot);
            let history = controller.edit_history(snapshot.commit);
            let write = move |index: GroupIndex| {
                let id = snapshot.estate.hierarchy.group(index).id;
                let edit = history.as_ref().and_then(|history| history.edit(id));
                show(&snapshot.estate, index, view, edit)
            };
            let mut list = JsonList::new(indexes.into_iter(), write);
            let write = move || Ok::<_, Infallible>(list.next_chunk());
            Ok(context.respond(stream(&TOOLS, weight, write).await?))
        }
    }
}

/// Shows a group.
#[utoipa::path(
    get, path = "/v1/groups/{id}", operation_id = "group", tag = "Groups",
    params(("id" = GroupId, Path), SnapshotParameters, Inherited),
    responses(
        (status = 200, body = Group),
        GroupInPathErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn one(
    State(controller): State<Arc<Controller>>,
    context: SnapshotContext,
    parameters: Parameters,
    uri: OriginalUri,
    PathParameter(id): PathParameter,
) -> Result<Response, ApiError> {
    let view = view(&parameters);
    // Without what it inherits a group is as small as its document.
    let weight = if view == View::Inherited { weight(&context) } else { 0 };
    let write = move || {
        let hierarchy = &context.snapshot.estate.hierarchy;
        let edited = EditedGroups::of(&controller, &context);
        context.json(find(hierarchy, &id, &uri).map(|index| edited.group(index, view)))
    };
    TOOLS.run(weight, write).await
}

/// Shows what is below a group, as a tree.
#[utoipa::path(
    get, path = "/v1/group-children/{id}", operation_id = "group_children", tag = "Groups",
    params(("id" = GroupId, Path), SnapshotParameters, Depth),
    responses(
        (status = 200, body = [GroupTree]),
        GroupInPathErrors,
        DepthErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn children(
    State(controller): State<Arc<Controller>>,
    context: SnapshotContext,
    parameters: Parameters,
    uri: OriginalUri,
    PathParameter(id): PathParameter,
) -> Result<Response, ApiError> {
    let asked = find(&context.snapshot.estate.hierarchy, &id, &uri)
        .and_then(|top| Ok((top, parameters.count("depth")?.unwrap_or(usize::MAX))));
    let (top, depth) = match asked {
        Ok(asked) => asked,
        Err(error) => return Ok(context.json(Err::<(), _>(error))),
    };
    let snapshot = Arc::clone(&context.snapshot);
    let history = controller.edit_history(snapshot.commit);
    let mut tree = JsonTree::new(&snapshot.estate.hierarchy, top, depth);
    let write = move || {
        let estate = &snapshot.estate;
        let chunk = tree.next_chunk(&estate.hierarchy, |index| {
            let id = estate.hierarchy.group(index).id;
            let edit = history.as_ref().and_then(|history| history.edit(id));
            let immediate_child_count = estate.hierarchy.children(index).count();
            let group = show(estate, index, View::Own, edit);
            GroupTree { group, immediate_child_count, children: Vec::new() }
        });
        Ok::<_, Infallible>(chunk)
    };
    Ok(context.respond(stream(&TOOLS, weight(&context), write).await?))
}

/// Shows a group's rules, also as PuppetDB queries.
#[utoipa::path(
    get, path = "/v1/groups/{id}/rules", operation_id = "group_rules", tag = "Groups",
    params(("id" = GroupId, Path), SnapshotParameters),
    responses(
        (status = 200, body = GroupRules),
        GroupInPathErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn rules(
    context: SnapshotContext,
    uri: OriginalUri,
    PathParameter(id): PathParameter,
) -> Result<Response, ApiError> {
    let weight = weight(&context);
    let write = move || {
        let hierarchy = &context.snapshot.estate.hierarchy;
        let answer = find(hierarchy, &id, &uri).map(|index| {
            let inherited = inherited_rule(hierarchy, index);
            let own = hierarchy.group(index).rule.as_deref();
            // A group without a rule of its own has no nodes, whatever it inherits.
            let query = |format| translated(own.and(inherited.as_ref()), format);
            GroupRules {
                rule: own.map(rule::to_value),
                rule_with_inherited: inherited.as_ref().map(rule::to_value),
                translated: TranslatedRule {
                    nodes_query_format: query(QueryFormat::Nodes),
                    inventory_query_format: query(QueryFormat::Inventory),
                },
            }
        });
        context.json(answer)
    };
    TOOLS.run(weight, write).await
}

/// A rule that cannot be translated is shown all the same; its query is null.
fn translated(rule: Option<&Condition>, format: QueryFormat) -> Value {
    rule.and_then(|rule| to_whole_query(rule, format).ok()).unwrap_or_default()
}

/// Translates a rule into a PuppetDB query.
#[utoipa::path(
    post, path = "/v1/rules/translate", operation_id = "translate_rule", tag = "Groups",
    params(Format),
    request_body = Condition,
    responses(
        (status = 200, body = Query),
        BodyErrors,
        TranslationErrors,
    ),
)]
pub(super) async fn translate(parameters: Parameters, body: Body) -> Result<Response, ApiError> {
    let format = match parameters.get("format") {
        None | Some("nodes") => QueryFormat::Nodes,
        Some("inventory") => QueryFormat::Inventory,
        Some(other) => {
            let error = Value::from("the format must be nodes or inventory");
            return Err(ApiError::schema_violation(other.into(), "Format", error));
        }
    };
    let bytes = read(body).await?;
    let weight = bytes.as_ref().map_or(0, Bytes::len);
    let translate = move || {
        let body = bytes.map(|it| to_json_within(&it, RULE_VALUES)).transpose()?;
        query_of(&body.unwrap_or_default(), format)
    };
    TOOLS.run_apart(weight, translate).await?
}

/// Translates the rule of a body. A string is one value of JSON, whatever it says: its bytes and its comparisons are
/// bounded like the values of a list.
fn query_of(body: &Value, format: QueryFormat) -> Result<Response, ApiError> {
    if body.as_str().is_some_and(|it| it.len() > RULE_BYTES) {
        return Err(ApiError::rule_too_large(RULE_BYTES, "bytes"));
    }
    let condition = rule::read_within(body, RULE_VALUES).map_err(|faults| {
        if faults.iter().any(|it| it.kind == RuleFaultKind::Size) {
            return ApiError::rule_too_large(RULE_VALUES, "comparisons");
        }
        let error = first_problems(faults.iter().map(|it| &it.message), "; ");
        ApiError::schema_violation(body.clone(), "Rule", error.into())
    })?;
    match to_whole_query(&condition, format) {
        Ok(query) => Ok(axum::Json(Query { query }).into_response()),
        Err(error) => {
            let message = error.to_string();
            Err(ApiError::new(ErrorKind::UntranslatableRule, message, error.condition))
        }
    }
}
