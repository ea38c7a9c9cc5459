//! Asks the routes of this daemon without a connection, on behalf of a request for a page.
//!
//! The pages of the console show what the routes answer, so they ask the routes themselves: with the headers and
//! the connection of the request that they answer, through the same check of roles and hosts.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use serde::de::DeserializeOwned;

use super::access::{Caller, LoginWays, PeerIdentity, Requirement, Role, UnknownTokens, has_token};
use super::blocking::{REPOSITORY, STORE};
use super::dispatch::Dispatcher;
use super::error::ApiError;
use super::request_context::{Peer, RequestContext};
use super::server::{MemoryReservation, RequestHandler as _};
use super::state::Services;
use super::types::{BlamedCommit, Error, ErrorKind, Status};
use crate::forge::ForgePages;
use crate::model::CommitId;
use crate::snapshot::Snapshot;
use crate::store::FleetVersion;

/// The most bytes of an answer that a page shows.
const LARGEST: usize = 64 << 20;

/// The headers that decide who asks, and from where.
const PASSED_ON: [HeaderName; 7] = [
    header::HOST,
    header::ORIGIN,
    header::AUTHORIZATION,
    HeaderName::from_static("x-authentication"),
    HeaderName::from_static("sec-fetch-site"),
    HeaderName::from_static("sec-fetch-mode"),
    HeaderName::from_static("sec-fetch-dest"),
];

/// The routes of this daemon.
#[derive(Clone, Debug)]
pub struct InProcessApi {
    routes: Dispatcher,
    services: Arc<Services>,
    address: AddressRoutes,
    /// The first segments of all paths.
    segments: Arc<BTreeSet<String>>,
}

/// Who asks: what a request for a page says of its caller.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    headers: HeaderMap,
    peer: Option<Peer>,
}

/// What may be done by who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitorRights {
    /// The name of the token, user or certificate; none for anonymous callers.
    pub name: Option<String>,
    /// Whether the pages may be read.
    pub reads: bool,
    /// Whether actions may be taken, at this address.
    pub operates: bool,
}

/// Which routes an address has beside its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressRoutes {
    /// All.
    #[default]
    All,
    /// No actions of operators: those are at the address of `--admin-listen`.
    WithoutActions,
    /// The address of `--admin-listen`, without the classifier API.
    WithoutClassifier,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct InProcessAnswer {
    /// The commit that it names.
    pub commit: Option<CommitId>,
    /// The body.
    pub body: Bytes,
}

/// An error in place of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct InProcessError {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub error: Box<Error>,
}

impl From<ApiError> for InProcessError {
    fn from(error: ApiError) -> Self {
        Self { status: error.status(), error: Box::new(error.into()) }
    }
}

impl InProcessError {
    fn internal(message: &str) -> Self {
        ApiError::internal(message).into()
    }

    /// Returns whether the caller has to log in.
    pub fn is_unauthenticated(&self) -> bool {
        self.error.kind() == Some(ErrorKind::UserUnauthenticated)
    }
}

impl Asker {
    fn identity(&self) -> PeerIdentity<'_> {
        self.peer.as_ref().map(Peer::identity).unwrap_or_default()
    }

    /// Returns whether the request brings a token.
    pub fn has_token(&self) -> bool {
        has_token(&self.headers)
    }

    /// Uses a token, that of a session.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(token) {
            self.headers.insert("x-authentication", value);
        }
        self
    }
}

impl InProcessApi {
    pub(super) fn new(
        routes: Dispatcher,
        services: Arc<Services>,
        address: AddressRoutes,
        paths: &[String],
    ) -> Self {
        let segments = paths.iter().filter_map(|it| first_segment(it)).map(str::to_owned);
        Self { routes, services, address, segments: Arc::new(segments.collect()) }
    }

    /// Returns whether a path is below one of the API: its errors are JSON for browsers, too.
    pub fn is_below_api(&self, path: &str) -> bool {
        first_segment(path).is_some_and(|it| self.segments.contains(it))
    }

    /// Returns which routes the address has beside its pages.
    pub fn address_routes(&self) -> AddressRoutes {
        self.address
    }

    /// Returns whether callers can log in with a token.
    pub fn takes_tokens(&self) -> bool {
        self.services.access.takes_tokens()
    }

    /// Returns whether a token is known.
    pub fn knows_token(&self, token: &str) -> bool {
        self.services.access.knows_token(token.as_bytes())
    }

    /// Returns the ways in which a caller can authenticate.
    pub fn login_ways(&self, asker: &Asker) -> LoginWays {
        self.services.access.login_ways(&asker.headers, asker.identity())
    }

    /// Says what a caller may do.
    ///
    /// # Errors
    ///
    /// Returns 401 for an unknown token, and 403 for a foreign host or a page of another site.
    pub fn identify(
        &self,
        asker: &Asker,
        method: &Method,
    ) -> Result<VisitorRights, InProcessError> {
        let caller = self.caller(asker, method)?;
        let may = |role| Requirement::Role(role).check(&caller, None).is_ok();
        Ok(VisitorRights {
            name: caller.name().map(str::to_owned),
            reads: may(Role::Read),
            operates: self.address != AddressRoutes::WithoutActions && may(Role::Operate),
        })
    }

    fn caller(&self, asker: &Asker, method: &Method) -> Result<Caller, ApiError> {
        if asker.peer.as_ref().is_some_and(|it| it.is_local) {
            return Ok(Caller::unlimited());
        }
        let mut request = Request::new(());
        *request.method_mut() = method.clone();
        request.headers_mut().clone_from(&asker.headers);
        self.services.access.identify(&request, asker.identity(), UnknownTokens::Refused)
    }

    /// Reads who sent a request.
    pub fn asker(&self, parts: &Parts) -> Asker {
        let mut headers = HeaderMap::new();
        for name in PASSED_ON.iter().chain(self.services.access.proxy_header()) {
            for value in parts.headers.get_all(name) {
                headers.append(name.clone(), value.clone());
            }
        }
        Asker { headers, peer: RequestContext::of(&parts.extensions).map(|it| it.peer.clone()) }
    }

    /// Returns a text that is different for each of those who are known without a token: by a certificate or by a proxy.
    ///
    /// # Errors
    ///
    /// Returns 401 for a header of a trusted proxy that does not name one user.
    pub fn known_sender(&self, asker: &Asker) -> Result<Option<String>, InProcessError> {
        Ok(self.services.access.known_sender(&asker.headers, asker.identity())?)
    }

    /// Returns the snapshot of a commit, or the live one, to draw its groups.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none.
    pub async fn snapshot(
        &self,
        commit: Option<CommitId>,
    ) -> Result<Arc<Snapshot>, InProcessError> {
        let controller = Arc::clone(&self.services.controller);
        let live = controller.snapshot().map_err(ApiError::from)?;
        match commit.filter(|it| *it != live.commit) {
            None => Ok(live),
            Some(commit) => {
                let find = move || controller.snapshot_at(&commit.to_string());
                Ok(REPOSITORY.run(find).await?)
            }
        }
    }

    /// Returns which nodes have checked in, as one value.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub async fn fleet_version(&self) -> Result<FleetVersion, InProcessError> {
        let check_ins = self.services.check_ins.clone();
        Ok(STORE.run(move || check_ins.fleet_version()).await?)
    }

    /// Returns those of some names that no node has that checked in, and which nodes had.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub async fn unknown_nodes(
        &self,
        names: Vec<Arc<str>>,
    ) -> Result<(BTreeSet<String>, FleetVersion), InProcessError> {
        let check_ins = self.services.check_ins.clone();
        Ok(STORE.run(move || check_ins.unknown(&names)).await?)
    }

    /// Returns the text of a file at a commit, if it has one.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository is busy.
    pub async fn text(
        &self,
        commit: CommitId,
        path: String,
    ) -> Result<Option<String>, InProcessError> {
        let controller = Arc::clone(&self.services.controller);
        let read = move || Ok::<_, ApiError>(controller.text(commit, &path));
        Ok(REPOSITORY.run(read).await?)
    }

    /// Returns the newest commits up to one that changed a file: at most so many.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository is busy or cannot be read.
    pub async fn file_changes(
        &self,
        commit: CommitId,
        path: String,
        most: usize,
    ) -> Result<Vec<BlamedCommit>, InProcessError> {
        let controller = Arc::clone(&self.services.controller);
        let read = move || controller.file_changes(commit, &path, most);
        let changes = REPOSITORY.run(read).await?;
        Ok(changes.into_iter().map(BlamedCommit::from).collect())
    }

    /// Returns the pages of the repository on its forge, if it has some that are known.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository is busy or cannot be opened.
    pub async fn forge_pages(&self) -> Result<Option<ForgePages>, InProcessError> {
        let controller = Arc::clone(&self.services.controller);
        Ok(REPOSITORY.run(move || controller.forge_pages()).await?)
    }

    /// Returns a response that tells of each change of the status, for as long as a caller may read and its session is
    /// open; none if there are too many such responses.
    pub fn follow_status(
        &self,
        asker: &Asker,
        is_open: impl Fn() -> bool + Send + 'static,
    ) -> Option<Response> {
        let (own, asker) = (self.clone(), asker.clone());
        let read = move || {
            let may_read = is_open() && own.identify(&asker, &Method::GET).is_ok_and(|it| it.reads);
            may_read.then(|| Status::from(own.services.controller.status()).into())
        };
        self.services.live.listen(read)
    }

    /// Asks a route for a text, and for the commit that answers.
    ///
    /// # Errors
    ///
    /// Returns the error of the route.
    pub async fn get_text(
        &self,
        asker: &Asker,
        path: &str,
    ) -> Result<(String, Option<CommitId>), InProcessError> {
        let answer = self.send(asker, Method::GET, path, Bytes::new()).await?;
        Ok((String::from_utf8_lossy(&answer.body).into_owned(), answer.commit))
    }

    /// Asks a route for a document.
    ///
    /// # Errors
    ///
    /// Returns the error of the route.
    pub async fn get<T: DeserializeOwned>(
        &self,
        asker: &Asker,
        path: &str,
    ) -> Result<T, InProcessError> {
        Ok(self.get_with_commit(asker, path).await?.0)
    }

    /// Asks a route for a document, and for the commit that answers.
    ///
    /// # Errors
    ///
    /// Returns the error of the route.
    pub async fn get_with_commit<T: DeserializeOwned>(
        &self,
        asker: &Asker,
        path: &str,
    ) -> Result<(T, Option<CommitId>), InProcessError> {
        let answer = self.send(asker, Method::GET, path, Bytes::new()).await?;
        Ok((read(&answer.body)?, answer.commit))
    }

    /// Sends a document to a route.
    ///
    /// # Errors
    ///
    /// Returns the error of the route.
    pub async fn post<T: DeserializeOwned>(
        &self,
        asker: &Asker,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<T, InProcessError> {
        let answer = self.send(asker, Method::POST, path, body.to_string().into()).await?;
        read(&answer.body)
    }

    /// Asks a route.
    ///
    /// # Errors
    ///
    /// Returns the error of the route.
    pub async fn send(
        &self,
        asker: &Asker,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<InProcessAnswer, InProcessError> {
        let request = Request::builder().method(method).uri(path).body(Body::from(body));
        let Ok(mut request) = request else {
            return Err(InProcessError::internal("The address of a route cannot be written."));
        };
        request.headers_mut().clone_from(&asker.headers);
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some(peer) = &asker.peer {
            RequestContext::of_mut(request.extensions_mut()).peer = peer.clone();
        }
        let handled = self.routes.handle(request);
        let response = MemoryReservation::within_request().scope(handled).await;
        let (parts, body) = response.into_parts();
        let Ok(body) = to_bytes(body, LARGEST).await else {
            return Err(InProcessError::internal("The answer is too large for a page."));
        };
        if parts.status.is_success() {
            let commit = parts.headers.get("x-clade-commit");
            let commit = commit.and_then(|it| it.to_str().ok()?.parse().ok());
            return Ok(InProcessAnswer { commit, body });
        }
        Err(InProcessError { status: parts.status, error: Box::new(read(&body)?) })
    }
}

fn first_segment(path: &str) -> Option<&str> {
    path.split('/').nth(1).filter(|it| !it.is_empty())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, InProcessError> {
    serde_json::from_slice(body)
        .map_err(|_| InProcessError::internal("An answer of the daemon cannot be read."))
}
