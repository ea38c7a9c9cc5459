//! Has a write made, and answers when it is in effect or waits for review.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::access::{Access, Caller, Role};
use super::environments::refusal;
use super::error::ApiError;
use super::groups::{find, show};
use super::original_uri::OriginalUri;
use super::path_parameter::PathParameter;
use super::query::Parameters;
use super::server::{FlushCallback, MemoryReservation};
use super::snapshot_context::name_commit;
use super::types::{Environment, Proposed, ProposedBranch};
use crate::changeset::{Operation, RejectionKind, WriteOutcome};
use crate::hierarchy::View;
use crate::history::Edit;
use crate::model::{GroupId, hex};
use crate::reconcile::{Controller, RightsCheck, WriteError, WriteRequest, Writer, Written};
use crate::snapshot::Snapshot;

/// The parameters that choose the snapshot of a read.
const SNAPSHOT_PARAMETERS: [&str; 2] = ["commit", "at"];

/// How many writes wait at most; each may hold a large body, and its client may be gone.
const WAITING: usize = 256;

static WAITING_WRITES: Semaphore = Semaphore::const_new(WAITING);

fn waiting() -> Result<SemaphorePermit<'static>, ApiError> {
    WAITING_WRITES.try_acquire().map_err(|_| ApiError::busy())
}

/// A request that writes, where that is allowed.
#[derive(Debug)]
pub(super) struct Writing {
    writer: Arc<Writer>,
    access: Arc<Access>,
    caller: Caller,
    line: String,
    place: Place,
}

/// Where a request was sent.
#[derive(Debug)]
struct Place {
    uri: OriginalUri,
    /// What the path has before that of the group: a base path and `/classifier-api`, or nothing.
    prefix: String,
}

impl<S> FromRequestParts<S> for Writing
where
    S: Send + Sync,
    Option<Arc<Writer>>: FromRef<S>,
    Arc<Controller>: FromRef<S>,
    Arc<Access>: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let id = PathParameter::from_request_parts(parts, state).await.ok();
        let Ok(caller) = Caller::from_request_parts(parts, state).await;
        let Some(writer) = Option::<Arc<Writer>>::from_ref(state) else {
            let (controller, id) = (Arc::from_ref(state), id.as_ref().map(|it| it.0.as_str()));
            return Err(refusal(&controller, &caller, id));
        };
        check_snapshot(parts, state).await.map_err(ApiError::into_response)?;
        let uri = OriginalUri::of(&parts.uri, &parts.extensions);
        let (path, below_base) = (uri.0.path(), parts.uri.path());
        let base = path.strip_suffix(below_base).unwrap_or_default();
        let api = if below_base.starts_with("/classifier-api/") { "/classifier-api" } else { "" };
        let (prefix, line) = (format!("{base}{api}"), format!("{} {path}", parts.method));
        let access = Arc::from_ref(state);
        Ok(Self { writer, access, caller, line, place: Place { uri, prefix } })
    }
}

/// Refuses a write to another commit than that of the branch. The header is for reads: clients may send it always.
async fn check_snapshot<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<(), ApiError> {
    let parameters = Parameters::from_request_parts(parts, state).await?;
    match SNAPSHOT_PARAMETERS.into_iter().find(|it| parameters.get(it).is_some()) {
        None => Ok(()),
        Some(name) => Err(ApiError::malformed_head(format!(
            "Writes are made to the branch: leave out the parameter `{name}`."
        ))),
    }
}

impl Writing {
    /// Has a write made and answers when it is in effect.
    pub(super) async fn perform(
        self,
        body: Value,
        operation: impl FnOnce(Value) -> Operation,
    ) -> Result<Response, ApiError> {
        let grants = self.caller.write_grants();
        let reads = self.caller.may_read_beside(None);
        // A caller of the same name with other rights does not get what the first one wrote.
        let identity = serde_json::to_string(&(&grants, &self.line, &body));
        let identity =
            identity.map_err(|_| ApiError::internal("The request could not be identified."))?;
        let fingerprint = hex(&Sha256::digest(identity));
        let operation = operation(body);
        let (access, caller) = (self.access, self.caller);
        let rights = RightsCheck::new(move || access.still_gives(&caller, Role::Write));
        let request = WriteRequest { operation, grants, rights, line: self.line, fingerprint };
        let (sender, receiver) = tokio::sync::oneshot::channel();
        // A client that has gone gets no answer; its write stands.
        let (waiting, memory) = (waiting()?, MemoryReservation::of_request());
        self.writer.submit(request, move |done| {
            drop((waiting, memory));
            drop(sender.send(done));
        });
        let done =
            receiver.await.map_err(|_| ApiError::internal("The write could not be completed."))?;
        let done = done.map_err(|error| match error {
            WriteError::Rejected(rejection) if rejection.kind == RejectionKind::NotFound => {
                ApiError::not_found(&self.place.uri)
            }
            error if reads => error.into(),
            error => ApiError::from(error).without_groups(),
        })?;
        Ok(match done {
            Written::Active { snapshot, answer, edit, changed, receipt } => {
                let status = if changed { StatusCode::CREATED } else { StatusCode::OK };
                let mut response = respond(&self.place, &snapshot, answer, edit, status);
                if let Some(receipt) = receipt {
                    response
                        .extensions_mut()
                        .insert(FlushCallback::new(move || receipt.note_sent()));
                }
                response
            }
            Written::Proposed { branch, commit, url } => {
                let proposed = Proposed::from(ProposedBranch { branch, commit, url });
                (StatusCode::ACCEPTED, Json(proposed)).into_response()
            }
        })
    }
}

/// Writes the answer to a write that is in effect.
fn respond(
    place: &Place,
    snapshot: &Snapshot,
    answer: WriteOutcome,
    edit: Option<Edit>,
    status: StatusCode,
) -> Response {
    // A write that is known to have arrived may be followed by one that removed the group.
    let group = |id: GroupId| {
        let index = find(&snapshot.estate.hierarchy, &id.to_string(), &place.uri)?;
        Ok::<_, ApiError>(Json(show(&snapshot.estate, index, View::Own, edit)))
    };
    let mut response = match answer {
        WriteOutcome::Created(id) => {
            // Clients cut the id out of a path; an absolute URL would break them.
            let location = format!("{}/v1/groups/{id}", place.prefix);
            (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
        }
        WriteOutcome::Put(id) => group(id).map(|it| (status, it)).into_response(),
        WriteOutcome::Edited(id) => group(id).into_response(),
        WriteOutcome::Environment(name) => (status, Json(Environment::named(name))).into_response(),
        WriteOutcome::Done => StatusCode::NO_CONTENT.into_response(),
        WriteOutcome::Unpinned(nodes) => Json(nodes).into_response(),
        // Clients insist, whether anything changed or not.
        WriteOutcome::Updated => StatusCode::CREATED.into_response(),
    };
    name_commit(&mut response, snapshot.commit);
    response
}
