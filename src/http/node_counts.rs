//! How many nodes there are of each kind.

use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};

use super::blocking::STORE;
use super::error::ApiError;
use super::openapi::errors::{NodeConditionErrors, StoreErrors};
use super::openapi::parameters::{CountedTimes, MatchedTime};
use super::query::Parameters;
use super::types::{CountedNodes, GroupMembers};
use crate::config::parse_duration;
use crate::store::CheckIns;

/// How long a node was not seen that counts as silent, unless the request says so: four runs of an agent.
const SILENT_FOR: &str = "2h";

/// How far back changes are counted, unless the request says so.
const MOVED_WITHIN: &str = "7d";

/// Counts the nodes by what they got last.
#[utoipa::path(
    get, path = "/controller/node-counts", operation_id = "node_counts", tag = "Controller",
    params(CountedTimes),
    responses(
        (status = 200, body = CountedNodes),
        NodeConditionErrors,
        StoreErrors,
    ),
)]
pub(super) async fn nodes(
    State(check_ins): State<CheckIns>,
    parameters: Parameters,
) -> Result<Json<CountedNodes>, ApiError> {
    let now = Timestamp::now();
    let silent_since = time_before(parameters.get("silent_for").unwrap_or(SILENT_FOR), now)?;
    let moved_since = time_before(parameters.get("moved_within").unwrap_or(MOVED_WITHIN), now)?;
    let counts = STORE.run(move || check_ins.counts(silent_since, moved_since)).await?;
    Ok(Json(counts.into()))
}

/// Counts, for each group, the nodes whose last answer has it; groups without any are left out, unless the request asks for those that were matched lately.
#[utoipa::path(
    get, path = "/controller/group-members", operation_id = "group_members", tag = "Controller",
    params(MatchedTime),
    responses(
        (status = 200, body = [GroupMembers]),
        NodeConditionErrors,
        StoreErrors,
    ),
)]
pub(super) async fn groups(
    State(check_ins): State<CheckIns>,
    parameters: Parameters,
) -> Result<Json<Vec<GroupMembers>>, ApiError> {
    let within = parameters.get("matched_within");
    let since = within.map(|it| time_before(it, Timestamp::now())).transpose()?;
    let members = STORE.run(move || check_ins.members(since)).await?;
    Ok(Json(members.into_iter().map(|(id, nodes)| GroupMembers { id, nodes }).collect()))
}

/// Returns the time that was so long ago.
pub(super) fn time_before(text: &str, now: Timestamp) -> Result<Timestamp, ApiError> {
    let wrong = |error: String| ApiError::schema_violation(text.into(), "Duration", error.into());
    let duration = parse_duration(text).map_err(wrong)?;
    let before = SignedDuration::try_from(duration).ok().and_then(|it| now.checked_sub(it).ok());
    Ok(before.unwrap_or(Timestamp::MIN))
}
