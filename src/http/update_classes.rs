//! Class catalogues brought up to date from a Puppet Server, and when they last were.
#![expect(clippy::disallowed_methods, reason = "a pull of classes takes time")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{OriginalUri, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde_json::Value;

use super::access::Caller;
use super::answer::{Parameters, SnapshotContext};
use super::error::ApiError;
use super::types::{ErrorKind, LastClassUpdate, UnexpectedResponse};
use super::writes::{Writing, environment_of};
use crate::changeset::{NewCatalogue, Operation, check_may_update_classes, etag_of};
use crate::model::EnvironmentName;
use crate::reconcile::{Controller, Trigger};

/// What a Puppet Server says of the classes of an environment.
#[derive(Debug)]
pub enum Pulled {
    /// They are those of the version that is known.
    Unchanged,
    /// All of them.
    Classes(NewCatalogue),
}

/// The classes of an environment cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// Nobody answers, or not in time.
    #[error("{0}")]
    Unreachable(String),
    /// The answer is of no use.
    #[error("{message}")]
    Unexpected {
        /// What is wrong with it.
        message: String,
        /// What was asked for.
        url: String,
        /// The status of the answer; 404 if there is no such environment.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
}

/// What asks for the classes of an environment, off the threads that answer: given are the
/// environment, the version that is known, and how long it may take.
type Ask =
    dyn Fn(&EnvironmentName, Option<&str>, Duration) -> Result<Pulled, PullError> + Send + Sync;

/// A Puppet Server that knows the classes of environments.
#[derive(Clone)]
pub struct PuppetServer(Arc<Inner>);

struct Inner {
    ask: Box<Ask>,
    /// How long all environments may take together.
    patience: Duration,
    /// Held by who asks: the server may read all of its code for each answer.
    busy: Arc<tokio::sync::Mutex<()>>,
    /// When catalogues were last found or brought up to date.
    last: Mutex<Option<Timestamp>>,
}

impl std::fmt::Debug for PuppetServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("PuppetServer").finish_non_exhaustive()
    }
}

impl PuppetServer {
    /// Makes one of a function that asks it; all that one request asks for takes no longer than
    /// `patience`.
    pub fn new(
        patience: Duration,
        ask: impl Fn(&EnvironmentName, Option<&str>, Duration) -> Result<Pulled, PullError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let (ask, busy, last) = (Box::new(ask), Arc::default(), Mutex::default());
        Self(Arc::new(Inner { ask, patience, busy, last }))
    }

    fn last(&self) -> Option<Timestamp> {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_update(&self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Timestamp::now());
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
            let left = self.0.patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                let message = format!("there is no answer within {:?}", self.0.patience);
                return Err(failed(&name, PullError::Unreachable(message)));
            }
            let file = snapshot.estate.environments.get(&name);
            let text = file.and_then(|file| controller.text(snapshot.commit, file));
            let known = text.as_deref().and_then(etag_of);
            match (self.0.ask)(&name, known, left) {
                Ok(Pulled::Unchanged) => is_known = true,
                Ok(Pulled::Classes(catalogue)) => {
                    is_known = true;
                    catalogues.insert(name, catalogue);
                }
                Err(error @ PullError::Unexpected { status: 404, .. }) if !is_for_all => {
                    return Err(ApiError::not_known(why(&name, &error), uri));
                }
                // Groups may name an environment whose code is gone.
                Err(error @ PullError::Unexpected { status: 404, .. }) => {
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

fn why(environment: &EnvironmentName, error: &PullError) -> String {
    format!("The classes of {environment} cannot be had: {error}.")
}

fn failed(environment: &EnvironmentName, error: PullError) -> ApiError {
    let message = why(environment, &error);
    tracing::warn!(%environment, %error, "classes cannot be pulled");
    match error {
        PullError::Unreachable(_) => {
            ApiError::new(ErrorKind::PuppetServerUnreachable, message, Value::Null)
                .with_header(header::RETRY_AFTER, "5")
        }
        PullError::Unexpected { url, status, body, .. } => {
            let body: String = body.chars().take(SHOWN).collect();
            let details = UnexpectedResponse { url, status, body };
            ApiError::new(ErrorKind::UnexpectedResponse, message, details)
        }
    }
}

/// Pulls classes from the Puppet Server and commits what changed. Without one, catalogues are files
/// of the repository that others write: to update them is to look at it.
pub(super) async fn update(
    State(server): State<Option<PuppetServer>>,
    State(controller): State<Arc<Controller>>,
    parameters: Parameters,
    Extension(caller): Extension<Arc<Caller>>,
    uri: OriginalUri,
    writing: Result<Writing, Response>,
) -> Result<Response, ApiError> {
    // Catalogues belong to no group, and to fetch the repository is an operator's matter.
    check_may_update_classes(&caller.write_scopes())?;
    let Some(server) = server else {
        controller.want(Trigger::Manual);
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
    let done = tokio::task::spawn_blocking(pull).await;
    let (pulled, _busy) = done.map_err(|_| ApiError::internal("The classes were not pulled."))?;
    let catalogues = pulled?;
    // To do it again does no harm, so a request is never taken for the repetition of another: what
    // that one wrote may have been undone since.
    let once = Value::from(fastrand::u64(..));
    let response = writing.perform(once, |_| Operation::UpdateClasses { catalogues }).await?;
    // What waits for review is no update yet.
    if response.status() == StatusCode::CREATED {
        server.note_update();
    }
    Ok(response)
}

/// Says when classes were last updated: by a request here, or by a commit that changed a catalogue.
pub(super) async fn last(
    State(server): State<Option<PuppetServer>>,
    State(controller): State<Arc<Controller>>,
    context: SnapshotContext,
) -> Response {
    let commit = context.snapshot.commit;
    let is_active = controller.snapshot().is_ok_and(|it| it.commit == commit);
    let here = server.as_ref().filter(|_| is_active).and_then(PuppetServer::last);
    let committed = controller.edits(commit).and_then(|it| it.last_catalogue());
    context.json(Ok(LastClassUpdate { last_update: here.max(committed) }))
}
