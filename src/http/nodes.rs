//! The nodes that the store knows: what they got, and how that changed.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;

use super::access::{Caller, Role};
use super::blocking::{REPOSITORY, STORE};
use super::check_in_recorder::CheckInRecorder;
use super::error::ApiError;
use super::node_conditions::NodeConditions;
use super::openapi::errors::{
    HistoryErrors, NodeConditionErrors, PageErrors, PathErrors, StoreErrors, TimeErrors,
    UnknownStoredNode,
};
use super::openapi::parameters::{HistoryPage, NodeConditions as Conditions, NodePageParameters};
use super::original_uri::OriginalUri;
use super::path_parameter::PathParameter;
use super::privacy::PrivacyPolicy;
use super::query::Parameters;
use super::server::{AnswerRoom, MemoryReservation};
use super::types::{NodePage, StoredChange, StoredNode};
use crate::reconcile::Controller;
use crate::store::{self, CheckIns, NodeRange, StoreError};

/// The most bytes of the changes of one answer.
const HISTORY_BYTES: usize = 8 << 20;

/// The most values of them: each takes more memory than its text.
const HISTORY_VALUES: usize = 100_000;

/// From how many bytes on memory is reserved, and changes are read one at a time.
const LARGE_BYTES: usize = 1 << 20;

/// From how many values on.
const LARGE_VALUES: usize = 10_000;

/// How many nodes or changes a page has unless the request says how many.
const PAGE: usize = 100;

/// How many nodes or changes a page has at most.
const LARGEST_PAGE: usize = 1000;

/// How many changes are read at a time: each comes with two whole answers.
const CHANGES: usize = 20;

/// Lists the nodes that meet all conditions, by name or in another order.
#[utoipa::path(
    get, path = "/controller/nodes", operation_id = "list_nodes", tag = "Controller",
    params(Conditions, NodePageParameters),
    responses(
        (status = 200, body = NodePage),
        PageErrors,
        NodeConditionErrors,
        StoreErrors,
    ),
)]
pub(super) async fn list(
    State(controller): State<Arc<Controller>>,
    State(check_ins): State<CheckIns>,
    parameters: Parameters,
) -> Result<Json<NodePage>, ApiError> {
    let range = NodeRange {
        offset: parameters.number("offset")?.unwrap_or(0),
        limit: page_of(&parameters)?,
    };
    let conditions = NodeConditions::read(&parameters, Timestamp::now())?;
    let filter = if conditions.needs_repository() {
        REPOSITORY.run(move || conditions.resolve(&controller)).await?
    } else {
        conditions.resolve(&controller)?
    };
    let page = STORE.run(move || check_ins.nodes(&filter, range)).await?;
    Ok(Json(page.into()))
}

fn page_of(parameters: &Parameters) -> Result<usize, ApiError> {
    Ok(parameters.number("limit")?.unwrap_or(PAGE).min(LARGEST_PAGE))
}

/// Shows a node: its newest facts, and what it got last.
#[utoipa::path(
    get, path = "/controller/nodes/{name}", operation_id = "stored_node", tag = "Controller",
    params(("name" = String, Path)),
    responses(
        (status = 200, body = StoredNode),
        PathErrors,
        UnknownStoredNode,
        StoreErrors,
    ),
)]
pub(super) async fn one(
    State(check_ins): State<CheckIns>,
    State(privacy): State<PrivacyPolicy>,
    uri: OriginalUri,
    PathParameter(name): PathParameter,
) -> Result<Json<StoredNode>, ApiError> {
    let memory = MemoryReservation::for_rows();
    let wanted = name.clone();
    let found = STORE.run(move || check_ins.node(&wanted, &memory)).await?;
    let found = found.ok_or_else(|| ApiError::unknown_node(&name, &uri))?;
    Ok(Json(store::StoredNode { node: privacy.shown(found.node), ..found }.into()))
}

/// Lists how a node's answer changed, newest first.
#[utoipa::path(
    get, path = "/controller/nodes/{name}/history", operation_id = "node_history", tag = "Controller",
    params(("name" = String, Path), HistoryPage),
    responses(
        (status = 200, body = [StoredChange]),
        UnknownStoredNode,
        HistoryErrors,
        PageErrors,
        TimeErrors,
        StoreErrors,
    ),
)]
pub(super) async fn history(
    State(controller): State<Arc<Controller>>,
    State(check_ins): State<CheckIns>,
    State(privacy): State<PrivacyPolicy>,
    uri: OriginalUri,
    parameters: Parameters,
    PathParameter(name): PathParameter,
) -> Result<Json<Vec<StoredChange>>, ApiError> {
    let limit = page_of(&parameters)?;
    let before = parameters.time("before")?;
    let wanted = name.clone();
    let room = MemoryReservation::for_answer();
    let read = move || {
        let changes = changes(&check_ins, &privacy, &wanted, (limit, before), &room)?;
        Ok::<_, ApiError>((changes, room))
    };
    let (changes, room) = STORE.run(read).await?;
    let mut changes = changes.ok_or_else(|| ApiError::unknown_node(&name, &uri))?;
    let commits: BTreeSet<_> = changes.iter().map(|it| it.commit.id).collect();
    let describe = move || {
        let infos = controller.commit_infos(&commits);
        for change in &mut changes {
            change.describe(&infos);
        }
        drop(room);
        Ok::<_, ApiError>(Json(changes))
    };
    REPOSITORY.run(describe).await
}

/// Reads changes, newest first; none if the node is not known. Blocking.
///
/// How large a change is shows when it is read: the first part has one, and the next ones more where those were small.
/// Where they are large, memory is reserved for as much as one answer may have.
fn changes(
    check_ins: &CheckIns,
    privacy: &PrivacyPolicy,
    name: &str,
    (limit, mut before): (usize, Option<Timestamp>),
    room: &AnswerRoom,
) -> Result<Option<Vec<StoredChange>>, ApiError> {
    let mut found = Vec::new();
    let (mut at_once, mut total) = (1, JsonSize::default());
    while found.len() < limit {
        let wanted = at_once.min(limit - found.len());
        let some = check_ins.history(name, wanted, before)?;
        // A row that cannot be read is left out, so that only an empty part is the last one.
        let Some(last) = some.last() else { break };
        before = Some(last.time);
        let first_new = found.len();
        found.extend(some.into_iter().map(|mut change| {
            change.facts = change.facts.into_iter().map(|it| privacy.shown_change(it)).collect();
            StoredChange::of(change)
        }));
        let new = found.get(first_new..).unwrap_or_default();
        let size = JsonSize::of(&new);
        let was_small = !total.is_large();
        total = JsonSize { bytes: total.bytes + size.bytes, values: total.values + size.values };
        // One alone comes however large it is: what is before it could not be asked for otherwise.
        if found.len() > 1 && (total.bytes > HISTORY_BYTES || total.values > HISTORY_VALUES) {
            return Err(ApiError::history_too_large(HISTORY_BYTES));
        }
        // At once for all: requests that waited for more while they keep some would wait for each other.
        let most = (HISTORY_BYTES.max(total.bytes), HISTORY_VALUES.max(total.values));
        if was_small && total.is_large() && !room.admits(most.0, most.1) {
            return Err(ApiError::busy());
        }
        at_once = if size.is_large() { 1 } else { CHANGES.min(2 * at_once) };
    }
    if found.is_empty() && check_ins.node(name, &MemoryReservation::for_rows())?.is_none() {
        return Ok(None);
    }
    Ok(Some(found))
}

/// How large a value is as JSON.
#[derive(Clone, Copy, Debug, Default)]
struct JsonSize {
    bytes: usize,
    /// About how many values: the commas in strings count as well.
    values: usize,
}

impl JsonSize {
    fn is_large(self) -> bool {
        self.bytes > LARGE_BYTES || self.values > LARGE_VALUES
    }

    fn of(value: &impl Serialize) -> Self {
        let mut size = Self::default();
        // To count does not fail.
        serde_json::to_writer(&mut size, value).ok();
        size
    }
}

impl io::Write for JsonSize {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        self.values += memchr::memchr_iter(b',', bytes).count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Forgets a node: its facts, what it got, and its history.
#[utoipa::path(
    delete, path = "/controller/nodes/{name}", operation_id = "forget_node", tag = "Controller",
    params(("name" = String, Path)),
    responses(
        (status = 204, description = "The node is forgotten until it checks in again"),
        PathErrors,
        UnknownStoredNode,
        StoreErrors,
    ),
)]
pub(super) async fn forget(
    State(controller): State<Arc<Controller>>,
    State(recorder): State<CheckInRecorder>,
    caller: Caller,
    uri: OriginalUri,
    PathParameter(name): PathParameter,
) -> Result<StatusCode, ApiError> {
    let wanted = name.clone();
    let forget = move || {
        let was_known = recorder.forget(&wanted)?;
        if was_known {
            controller.note_forgotten(wanted.clone(), caller.actor(Role::Operate));
        }
        recorder.remains(&wanted).map_or(Ok::<_, StoreError>(was_known), Err)
    };
    // It waits for no clients.
    let was_known = STORE.run_at_once(forget).await?;
    was_known.then_some(StatusCode::NO_CONTENT).ok_or_else(|| ApiError::unknown_node(&name, &uri))
}
