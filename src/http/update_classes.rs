//! Class catalogues brought up to date from a Puppet Server, and when they last were.
#![expect(clippy::disallowed_methods, reason = "a pull of classes takes time")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use super::access::Caller;
use super::blocking::{Panicked, run_blocking};
use super::error::ApiError;
use super::openapi::errors::{EnvironmentErrors, PullErrors, SnapshotErrors};
use super::openapi::parameters::{OneEnvironment, SnapshotParameters};
use super::openapi::responses::WriteResponses;
use super::original_uri::OriginalUri;
use super::query::Parameters;
use super::snapshot_context::SnapshotContext;
use super::types::{ErrorKind, LastClassUpdate, UnexpectedResponse};
use super::writes::environment_of;
use super::writing::Writing;
use crate::changeset::{NewCatalogue, Operation, check_may_update_classes, etag_of};
use crate::model::EnvironmentName;
use crate::puppet::Published;
use crate::puppet_server::{ClassList, ClassListError, PuppetServer};
use crate::reconcile::{Controller, Trigger};

/// Brings class catalogues up to date from a Puppet Server.
#[derive(Clone, Debug)]
pub struct ClassUpdater(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: PuppetServer,
    /// How long all environments may take together.
    timeout: Duration,
    /// Held during a pull: the server may read all of its code for each answer.
    busy: Arc<tokio::sync::Mutex<()>>,
    /// When catalogues were last found or brought up to date.
    last: Mutex<Option<Timestamp>>,
}

impl ClassUpdater {
    /// Returns one that asks a Puppet Server; all environments together take no longer than `timeout`.
    pub fn new(server: PuppetServer, timeout: Duration) -> Self {
        let (busy, last) = (Arc::default(), Mutex::default());
        Self(Arc::new(Inner { server, timeout, busy, last }))
    }

    fn last(&self) -> Option<Timestamp> {
        *self.0.last.lock()
    }

    fn note_update(&self) {
        *self.0.last.lock() = Some(Timestamp::now());
    }

    /// Asks for the classes of an environment, or of all that are known here; returns those that may
    /// have changed. Blocking.
    fn pull(
        &self,
        controller: &Controller,
        named: Option<EnvironmentName>,
        uri: &OriginalUri,
    ) -> Result<BTreeMap<EnvironmentName, NewCatalogue>, ApiError> {
        let snapshot = controller.snapshot()?;
        let is_for_all = named.is_none();
        let wanted = match named {
            Some(name) => vec![name],
            None => snapshot.estate.environment_names().into_iter().cloned().collect(),
        };
        let began = Instant::now();
        let mut catalogues = BTreeMap::new();
        let (mut is_known, mut absent) = (false, None);
        for name in wanted {
            let left = self.0.timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                let message = format!("there is no answer within {:?}", self.0.timeout);
                return Err(failed(&name, ClassListError::Unreachable(message)));
            }
            let file = snapshot.estate.environments.get(&name);
            let text = file.and_then(|file| controller.text(snapshot.commit, file));
            let known = text.as_deref().and_then(etag_of);
            match self.0.server.classes(&name, known, left) {
                Ok(ClassList::Unchanged) => is_known = true,
                Ok(ClassList::Published(published, etag)) => {
                    is_known = true;
                    let catalogue = catalogue(&self.0.server, &name, published, etag)
                        .map_err(|error| failed(&name, error))?;
                    catalogues.insert(name, catalogue);
                }
                Err(error) if error.is_unknown_environment() && !is_for_all => {
                    return Err(ApiError::not_known(why(&name, &error), uri));
                }
                // Groups may name an environment whose code is gone.
                Err(error) if error.is_unknown_environment() => {
                    absent.get_or_insert((name, error));
                }
                Err(error) => return Err(failed(&name, error)),
            }
        }
        // A server that has none of them is none of theirs.
        absent
            .filter(|_| !is_known)
            .map_or(Ok(catalogues), |(name, error)| Err(failed(&name, error)))
    }
}

/// How many characters of an answer that is of no use are shown.
const SHOWN: usize = 2_000;

/// Returns the catalogue of the classes that a server lists, if it lists all of them.
fn catalogue(
    server: &PuppetServer,
    environment: &EnvironmentName,
    Published { classes, broken }: Published,
    etag: Option<String>,
) -> Result<NewCatalogue, ClassListError> {
    if let Some((path, reason)) = broken.first() {
        let message = format!(
            "the server could not read {} of its files, so classes could be missing: {path}: {reason}",
            broken.len()
        );
        let url = server.classes_url(environment);
        return Err(ClassListError::Unexpected { message, url, status: 200, body: String::new() });
    }
    let (catalogue, left_out) = NewCatalogue::of(classes, etag);
    for reason in left_out {
        tracing::warn!(%environment, reason, "the Puppet Server lists a class with an invalid name");
    }
    Ok(catalogue)
}

fn why(environment: &EnvironmentName, error: &ClassListError) -> String {
    format!("The classes of {environment} cannot be fetched: {error}.")
}

fn failed(environment: &EnvironmentName, error: ClassListError) -> ApiError {
    let message = why(environment, &error);
    tracing::warn!(%environment, %error, "classes cannot be pulled");
    match error {
        ClassListError::Unreachable(_) => {
            ApiError::new(ErrorKind::PuppetServerUnreachable, message, Value::Null)
                .with_header(header::RETRY_AFTER, "5")
        }
        ClassListError::Unexpected { url, status, body, .. } => {
            let body: String = body.chars().take(SHOWN).collect();
            let details = UnexpectedResponse { url, status, body };
            ApiError::new(ErrorKind::UnexpectedResponse, message, details)
        }
    }
}

/// Pulls classes from the Puppet Server of `--puppet-server` and commits what changed; without one, has the repository fetched. Needs `write` without `groups` and `keys`.
#[utoipa::path(
    post, path = "/v1/update-classes", operation_id = "update_classes", tag = "Classes and environments",
    params(OneEnvironment),
    responses(
        (status = 201, description = "The catalogues are as the Puppet Server says; without `--puppet-server`, the repository will be fetched"),
        EnvironmentErrors,
        WriteResponses,
        PullErrors,
    ),
)]
pub(super) async fn update(
    State(server): State<Option<ClassUpdater>>,
    State(controller): State<Arc<Controller>>,
    parameters: Parameters,
    caller: Caller,
    uri: OriginalUri,
    writing: Result<Writing, Response>,
) -> Result<Response, ApiError> {
    // Catalogues belong to no group, and to fetch the repository is an operator's matter.
    check_may_update_classes(&caller.write_grants())?;
    let Some(server) = server else {
        controller.request_fetch(Trigger::Manual);
        return Ok(StatusCode::CREATED.into_response());
    };
    let writing = match writing {
        Ok(writing) => writing,
        Err(refused) => return Ok(refused),
    };
    let named = parameters.get("environment").map(environment_of).transpose()?;
    let busy = Arc::clone(&server.0.busy).lock_owned().await;
    // A client that goes away leaves the question, which goes on keeping others from asking.
    let pull = {
        let (server, controller) = (server.clone(), Arc::clone(&controller));
        move || (server.pull(&controller, named, &uri), busy)
    };
    let done = run_blocking(pull).await;
    let (pulled, _busy) =
        done.map_err(|Panicked| ApiError::internal("The classes were not pulled."))?;
    let catalogues = pulled?;
    // To do it again does no harm, so a request is never taken for the repetition of another: what
    // that one wrote may have been undone since.
    let once = Value::from(fastrand::u64(..));
    let response = writing.perform(once, |_| Operation::UpdateClasses { catalogues }).await?;
    // A proposal is not an update yet.
    if response.status() == StatusCode::CREATED {
        server.note_update();
    }
    Ok(response)
}

/// Says when classes were updated last.
///
/// The later of two times: that of the last request to this daemon to update classes that found them or brought them up to date, and that of the last commit, up to the one that answers, that made or edited a class catalogue. Null if there is neither, or the history is not known yet.
#[utoipa::path(
    get, path = "/v1/last-class-update", operation_id = "last_class_update", tag = "Classes and environments",
    params(SnapshotParameters),
    responses(
        (status = 200, body = LastClassUpdate),
        SnapshotErrors,
    ),
)]
pub(super) async fn last(
    State(server): State<Option<ClassUpdater>>,
    State(controller): State<Arc<Controller>>,
    context: SnapshotContext,
) -> Response {
    let commit = context.snapshot.commit;
    let is_active = controller.snapshot().is_ok_and(|it| it.commit == commit);
    let here = server.as_ref().filter(|_| is_active).and_then(ClassUpdater::last);
    let committed = controller.edit_history(commit).and_then(|it| it.last_catalogue());
    context.json(Ok(LastClassUpdate { last_update: here.max(committed) }))
}
