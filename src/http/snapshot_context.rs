//! Which snapshot answers a request, and the headers that say so.

use std::ops::Deref;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;

use super::access::Caller;
use super::blocking::REPOSITORY;
use super::decisions::DecisionRequest;
use super::error::ApiError;
use super::query::Parameters;
use super::request_context::RequestContext;
use crate::classification::{ClassificationError, Version};
use crate::decision_log::DecisionLog;
use crate::hierarchy::GroupIndex;
use crate::model::CommitId;
use crate::reconcile::{Controller, FollowedSnapshot, Freshness, LiveGuard, LookupError};
use crate::snapshot::{AnsweredNode, LiveSnapshot, NoDocument, Snapshot};
use crate::store::{Answered, Certname};
use crate::telemetry::Metrics;

const COMMIT: HeaderName = HeaderName::from_static("x-clade-commit");
const STALE: HeaderName = HeaderName::from_static("x-clade-stale");

/// What a response says of the snapshot that answers.
pub(super) const ABOUT_SNAPSHOT: [HeaderName; 2] = [COMMIT, STALE];

/// The snapshot of a request: taken once, and used to the end.
#[derive(Debug)]
pub(super) struct SnapshotContext {
    pub(super) snapshot: AnsweringSnapshot,
    pub(super) metrics: Arc<Metrics>,
    /// Who chose the snapshot.
    choice: SnapshotChoice,
    /// How many seconds ago the branch was seen, if that is too long.
    stale: Option<u64>,
    /// Logs what the snapshot decides, if decisions are logged.
    pub(super) decisions: Option<DecisionRequest>,
}

/// A snapshot that answers, with its responses if it is live.
#[derive(Debug)]
pub(super) enum AnsweringSnapshot {
    Live(LiveGuard),
    Other(Arc<Snapshot>),
}

impl AnsweringSnapshot {
    fn live(&self) -> Option<&LiveSnapshot> {
        match self {
            Self::Live(live) => Some(live),
            Self::Other(_) => None,
        }
    }
}

impl Deref for AnsweringSnapshot {
    type Target = Arc<Snapshot>;

    fn deref(&self) -> &Arc<Snapshot> {
        match self {
            Self::Live(live) => live.snapshot(),
            Self::Other(snapshot) => snapshot,
        }
    }
}

impl<S> FromRequestParts<S> for SnapshotContext
where
    S: Send + Sync + AsRef<Arc<Controller>> + AsRef<Option<DecisionLog>>,
    Arc<Metrics>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let parameters = Parameters::from_request_parts(parts, state).await?;
        let controller: &Arc<Controller> = state.as_ref();
        let (choice, snapshot) = match Named::read(&parameters, &parts.headers)? {
            None => (SnapshotChoice::Controller, AnsweringSnapshot::Live(controller.live()?)),
            Some(named) => {
                let asker = CommitAsker::of(parts);
                // Boxed, since few requests name a commit, and the futures of all would have room for it.
                let found = Box::pin(named.find(Arc::clone(controller), asker)).await?;
                let (choice, snapshot) = found;
                // Most clients that name a commit name the live one.
                let live = controller.live().ok();
                let live = live.filter(|it| Arc::ptr_eq(it.snapshot(), &snapshot));
                (choice, live.map_or(AnsweringSnapshot::Other(snapshot), AnsweringSnapshot::Live))
            }
        };
        let stale = match controller.freshness() {
            Freshness::Stale(age, _) => Some(age.as_secs()),
            Freshness::Fresh => None,
        };
        let decisions: &Option<DecisionLog> = state.as_ref();
        let decisions = decisions.clone().map(|log| DecisionRequest::new(log, parts));
        let metrics = Arc::from_ref(state);
        Ok(Self { snapshot, metrics, choice, stale, decisions })
    }
}

/// The groups that match a node, parents first, or why they are not known.
pub(super) type MatchedGroups = Result<Vec<GroupIndex>, ClassificationError>;

/// Who chose the snapshot of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnapshotChoice {
    /// The controller of this daemon or of another replica: it is followed, or was live, and the node gets what it says.
    Controller,
    /// Another replica, by a commit that this one never followed: the node gets what it says, and what that was is not known
    /// here.
    Elsewhere,
    /// The client, which asks what another commit would say.
    Client,
}

/// The commit that a request names in place of the live one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    /// The commit of an earlier answer, from here or from another replica.
    Answered(CommitId),
    /// A revision: a branch, a tag, or part of an id.
    Revision(String),
    /// The commit that was live at a time.
    Time(Timestamp),
}

impl Named {
    fn read(parameters: &Parameters, headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        Ok(match (parameters.once("commit")?, parameters.time("at")?) {
            (None, None) => named_by_header(headers)?.map(Self::Answered),
            (Some(_), Some(_)) => {
                let message = "Either `commit` or `at` can be given, not both.";
                return Err(ApiError::malformed_head(message));
            }
            (Some(revision), None) => Some(Self::Revision(revision.to_owned())),
            (None, Some(time)) => Some(Self::Time(time)),
        })
    }

    async fn find(
        self,
        controller: Arc<Controller>,
        asker: CommitAsker,
    ) -> Result<(SnapshotChoice, Arc<Snapshot>), ApiError> {
        if !asker.reads && !matches!(self, Self::Answered(_)) {
            return Err(asker.denied());
        }
        let find = move || match self {
            Self::Answered(commit) => {
                // Nodes run with what it says: it must be no older than what is live may be.
                controller.check_fresh()?;
                let found = controller.followed_snapshot(commit).map_err(|error| {
                    let error = ApiError::from(error);
                    if asker.reads { error } else { error.without_groups() }
                })?;
                match found {
                    FollowedSnapshot::Found(snapshot) => Ok((SnapshotChoice::Controller, snapshot)),
                    _ if asker.reads => {
                        let found = controller.snapshot_from_elsewhere(commit)?;
                        Ok((SnapshotChoice::Elsewhere, found))
                    }
                    FollowedSnapshot::Ahead => Err(LookupError::NotHereYet(commit).into()),
                    FollowedSnapshot::Beside => Err(asker.denied()),
                }
            }
            Self::Revision(revision) => by_client(match revision.parse() {
                // What another replica answered from may be on its way to this one.
                Ok(commit) if controller.follows_a_remote() => {
                    controller.snapshot_from_elsewhere(commit)
                }
                _ => controller.snapshot_at(&revision),
            }),
            Self::Time(time) => by_client(controller.snapshot_then(time)),
        };
        REPOSITORY.run(find).await
    }
}

fn by_client(
    found: Result<Arc<Snapshot>, LookupError>,
) -> Result<(SnapshotChoice, Arc<Snapshot>), ApiError> {
    Ok((SnapshotChoice::Client, found?))
}

/// Who asks for another commit than the live one: only callers who may read choose among all of the repository.
struct CommitAsker {
    caller: Caller,
    reads: bool,
}

impl CommitAsker {
    fn of(parts: &Parts) -> Self {
        let context = RequestContext::of(&parts.extensions);
        let caller = context.and_then(|it| it.caller.clone()).unwrap_or_default();
        let reads = caller.may_read_beside(context.and_then(|it| it.required));
        Self { caller, reads }
    }

    fn denied(&self) -> ApiError {
        ApiError::other_commit_denied(self.caller.name().unwrap_or_default())
    }
}

fn named_by_header(headers: &HeaderMap) -> Result<Option<CommitId>, ApiError> {
    let mut named = headers.get_all(COMMIT).iter();
    match (named.next(), named.next()) {
        (Some(_), Some(_)) => {
            Err(ApiError::malformed_head("The header X-Clade-Commit is given twice."))
        }
        (named, _) => named.map(read_commit).transpose(),
    }
}

/// Reads the commit that an earlier answer named, here or elsewhere.
fn read_commit(named: &HeaderValue) -> Result<CommitId, ApiError> {
    named.to_str().ok().and_then(|it| it.parse().ok()).ok_or_else(|| {
        let message = "The header X-Clade-Commit is not the full id of a commit.";
        ApiError::malformed_head(message)
    })
}

impl SnapshotContext {
    /// Returns whether the node itself gets the answer: of a question about another commit that a client chose, neither the
    /// answer nor the facts are kept, which are those of that question.
    pub(super) fn is_of_node(&self) -> bool {
        self.choice != SnapshotChoice::Client
    }

    /// Returns what a check-in keeps of the answer; nothing of one by a commit that was not followed.
    pub(super) fn answered(&self, groups: &MatchedGroups, certname: Certname) -> Option<Answered> {
        let groups = match groups {
            Ok(groups) => Ok(groups.as_slice().into()),
            Err(error) => Err(error.clone()),
        };
        let answered = Answered { snapshot: Arc::clone(&self.snapshot), groups, certname };
        (self.choice == SnapshotChoice::Controller).then_some(answered)
    }

    /// Writes the classified document of a node that some groups match, parents first.
    pub(super) fn classified(
        &self,
        node: &AnsweredNode<'_>,
        groups: &[GroupIndex],
        version: Version,
    ) -> Result<Vec<u8>, NoDocument<'_>> {
        match self.snapshot.live() {
            Some(live) => live.classified(node, groups, version),
            None => self.snapshot.classified(node, groups, version),
        }
    }

    /// Makes an answer that names the commit.
    pub(super) fn respond(&self, answer: impl IntoResponse) -> Response {
        self.name_in(answer.into_response())
    }

    /// Makes an answer of a text that names the commit.
    pub(super) fn respond_with(
        &self,
        content_type: HeaderValue,
        text: impl Into<Body>,
    ) -> Response {
        let mut response = Response::new(text.into());
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        self.name_in(response)
    }

    fn name_in(&self, mut response: Response) -> Response {
        name_commit(&mut response, self.snapshot.commit);
        if let Some(seconds) = self.stale {
            response.headers_mut().insert(STALE, seconds.into());
        }
        response
    }

    /// Has an error that follows from the snapshot name the commit.
    pub(super) fn named(&self, error: ApiError) -> ApiError {
        let named = error.with_header(COMMIT, &self.snapshot.commit.to_string());
        match self.stale {
            Some(seconds) => named.with_header(STALE, &seconds.to_string()),
            None => named,
        }
    }

    /// Answers with JSON, or with an error; both name the commit.
    pub(super) fn json<T: Serialize>(&self, answer: Result<T, ApiError>) -> Response {
        match answer {
            Ok(value) => self.respond(Json(value)),
            Err(error) => self.respond(error),
        }
    }
}

/// Names the commit that answered.
pub(crate) fn name_commit(response: &mut Response, commit: CommitId) {
    if let Ok(commit) = HeaderValue::from_bytes(&commit.to_hex()) {
        response.headers_mut().insert(COMMIT, commit);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::Request;

    use super::*;
    use crate::http::fixture::Fixture;
    use crate::http::router::RouteSet;
    use crate::model::Node;

    async fn context(fixture: &Fixture, request: Request<Body>) -> SnapshotContext {
        let (mut parts, _) = request.into_parts();
        RequestContext::of_mut(&mut parts.extensions).caller = Some(Caller::unlimited());
        SnapshotContext::from_request_parts(&mut parts, &fixture.state).await.unwrap()
    }

    fn get(uri: &str) -> Request<Body> {
        through_socket(Request::get(uri).body(Body::empty()).unwrap())
    }

    fn through_socket(mut request: Request<Body>) -> Request<Body> {
        RequestContext::of_mut(request.extensions_mut()).peer.is_local = true;
        request
    }

    /// Returns requests that name the live commit.
    fn naming(path: &str, live: CommitId) -> Vec<Request<Body>> {
        let now = Timestamp::now();
        let header = Request::get(path).header("X-Clade-Commit", live.to_string());
        let header = through_socket(header.body(Body::empty()).unwrap());
        let queries = [format!("commit={live}"), "commit=HEAD".to_owned(), format!("at={now}")];
        let mut requests = Vec::from(queries.map(|it| get(&format!("{path}?{it}"))));
        requests.push(header);
        requests
    }

    #[tokio::test]
    async fn a_request_that_names_the_live_commit_shares_its_responses() {
        let fixture = Fixture::new(RouteSet::Whole);
        let [before, live] = fixture.commits;
        let plain = context(&fixture, get("/")).await.snapshot;
        for request in naming("/", live) {
            let shown = format!("{request:?}");
            let named = context(&fixture, request).await;
            assert!(std::ptr::eq(named.snapshot.live().unwrap(), plain.live().unwrap()), "{shown}");
        }
        let other = context(&fixture, get(&format!("/?commit={before}"))).await;
        assert_eq!((other.snapshot.commit, other.snapshot.live().is_none()), (before, true));
    }

    #[tokio::test]
    async fn cached_responses_are_the_same_bytes() {
        let fixture = Fixture::new(RouteSet::Whole);
        let live = fixture.commits[1];
        let context = context(&fixture, get("/")).await;
        let (snapshot, node) = (&context.snapshot, Node::named("n".to_owned()));
        let groups =
            snapshot.index().matches(&snapshot.estate.hierarchy, &snapshot.index().resolve(&node));
        let made = snapshot.classified(&(&node).into(), &groups.unwrap(), Version::V1).unwrap();
        let path = "/v1/classified/nodes/n";
        for request in [get(path), get(path)].into_iter().chain(naming(path, live)) {
            let answer = fixture.answer(request).await;
            assert_eq!(answer.headers()[COMMIT], live.to_string());
            assert_eq!(to_bytes(answer.into_body(), 1 << 20).await.unwrap(), made);
        }
    }
}
