//! A request for a page: who asks, which commit it is about, and where links lead.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::{Console, PageError, bare_layout, failed};
use super::entrance::Entrance;
use super::gone_pins::GonePins;
use super::layout::{Links, PageFrame, Point, Section, SessionState, escaped, own_path};
use super::page;
use super::session::{ForeignForm, FormOwner};
use super::state as s;
use super::stored::{FromStore, stored};
use crate::http::types::{BlamedCommit, Condition, ErrorKind, Status};
use crate::http::{Asker, VisitorRights, name_commit};
use crate::model::CommitId;
use crate::snapshot::Snapshot;

/// A request for a page by a visitor who may read.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) console: Arc<Console>,
    asker: Asker,
    identity: VisitorRights,
    uri: Uri,
    headers: HeaderMap,
    request_id: String,
    owner: FormOwner,
    session: SessionState,
    parameters: BTreeMap<String, String>,
    links: Links,
    here: String,
    point: Option<Point>,
    /// The commit that answers, since the first answer from one: another may become live while the page is made.
    answering: OnceLock<CommitId>,
    pub(super) status: Status,
    pub(super) now: Timestamp,
}

impl FromRequestParts<Arc<Console>> for Visit {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        console: &Arc<Console>,
    ) -> Result<Self, Response> {
        let entrance = Entrance::of(parts, console);
        let identity = match console.api.identify(&entrance.asker, &parts.method) {
            // Signing in may help.
            Err(error) if error.is_unauthenticated() && parts.method == Method::GET => {
                return Err(entrance.refuse(error));
            }
            Ok(identity) if identity.reads => identity,
            Ok(_) | Err(_) => {
                // The route says what is missing.
                let asked = console.api.get::<Value>(&entrance.asker, "/controller/status").await;
                return Err(match asked {
                    Err(error) => entrance.refuse(error),
                    Ok(_) => entrance.fail(PageError::NotFound(String::new())),
                });
            }
        };
        let status = console.api.get(&entrance.asker, "/controller/status").await;
        let status: Status = status.map_err(|error| entrance.refuse(error))?;
        let path = own_path(&entrance.path);
        let mut visit = Self {
            console: Arc::clone(console),
            asker: entrance.asker.clone(),
            identity,
            uri: entrance.uri.clone(),
            headers: entrance.headers.clone(),
            request_id: entrance.request_id.clone(),
            owner: entrance.owner.clone(),
            session: entrance.session,
            links: Links {
                forge: console.forge_pages().await,
                directory: status.repository.path.clone(),
                ..console.links()
            },
            here: format!("{}{}", console.base_path.as_str(), path),
            parameters: entrance.parameters.clone(),
            point: None,
            answering: OnceLock::new(),
            status,
            now: entrance.now,
        };
        match visit.find_point(path).await {
            Ok(()) => Ok(visit),
            Err(trouble) => Err(visit.fail(trouble)),
        }
    }
}

/// Returns the path of a route about a commit.
fn at(path: &str, commit: CommitId) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}commit={commit}")
}

impl Visit {
    /// Finds the commit that `commit` or `at` means.
    async fn find_point(&mut self, path: &str) -> Result<(), PageError> {
        let asked = ["commit", "at"].map(|it| (it, self.parameter(it).to_owned()));
        let asked: Vec<String> = asked
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name}={}", escaped(value)))
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        let point = asked.join("&");
        let (_, commit) = self
            .console
            .api
            .get_with_commit::<Value>(&self.asker, &format!("/v1/groups?limit=0&{point}"))
            .await?;
        let Some(commit) = commit else { return Ok(()) };
        let rest: Vec<String> = self
            .parameters
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "commit" | "at"))
            .map(|(name, value)| format!("{}={}", escaped(name), escaped(value)))
            .collect();
        let separator = if rest.is_empty() { "" } else { "?" };
        let now = format!("{}{path}{separator}{}", self.links.base, rest.join("&"));
        let asked = if self.parameter("at").is_empty() {
            self.parameter("commit").to_owned()
        } else {
            self.parameter("at").to_owned()
        };
        self.links.point = point;
        self.point = Some(Point { asked, commit, now });
        Ok(())
    }

    /// Returns a parameter of the query, empty if it is not there.
    pub(super) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map(|it| it.trim()).unwrap_or_default()
    }

    /// Returns the page of a list, from 0.
    pub(super) fn offset(&self) -> usize {
        self.parameter("offset").parse().unwrap_or(0)
    }

    /// Returns the commit that the page is about: another point of history, or the live one.
    pub(super) fn commit(&self) -> Option<CommitId> {
        let live = || self.status.active.as_ref().map(|it| it.commit);
        self.point.as_ref().map(|it| it.commit).or(self.answering.get().copied()).or_else(live)
    }

    /// Notes which commit answers, and returns the one that answered first: a page is made from one.
    fn answering(&self, commit: CommitId) -> CommitId {
        *self.answering.get_or_init(|| commit)
    }

    /// Returns whether the page is about another point of history.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.point.is_some()
    }

    pub(super) fn links(&self) -> &Links {
        &self.links
    }

    /// Asks a route of the API.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, PageError> {
        Ok(self.console.api.get(&self.asker, path).await?)
    }

    /// Asks a route of the API for what the store says of nodes.
    pub(super) async fn get_stored<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<FromStore<T>, PageError> {
        stored(self.get(path).await)
    }

    /// Asks a route of the API about the commit that the page is about.
    pub(super) async fn get_at<T: DeserializeOwned>(&self, path: &str) -> Result<T, PageError> {
        let ask = async |path: &str| self.console.api.get_with_commit(&self.asker, path).await;
        let (answer, commit) = match &self.point {
            None => ask(path).await?,
            Some(point) => ask(&at(path, point.commit)).await?,
        };
        match commit.map(|it| (it, self.answering(it))) {
            Some((commit, first)) if commit != first => Ok(ask(&at(path, first)).await?.0),
            _ => Ok(answer),
        }
    }

    /// Asks a route of the API for a text about the commit that the page is about.
    pub(super) async fn text_at(&self, path: &str) -> Result<String, PageError> {
        let path = match self.chosen() {
            Some(commit) => at(path, commit),
            None => path.to_owned(),
        };
        let (text, commit) = self.console.api.get_text(&self.asker, &path).await?;
        if let Some(commit) = commit {
            self.answering(commit);
        }
        Ok(text)
    }

    /// Returns the commit that every answer for the page has to be from; none before the first.
    fn chosen(&self) -> Option<CommitId> {
        self.point.as_ref().map(|it| it.commit).or(self.answering.get().copied())
    }

    /// Returns the snapshot that the page is about.
    pub(super) async fn snapshot(&self) -> Result<Arc<Snapshot>, PageError> {
        let snapshot = self.console.api.snapshot(self.chosen()).await?;
        self.answering(snapshot.commit);
        Ok(snapshot)
    }

    /// Returns the snapshot that the page is about; none as long as no commit answers.
    pub(super) async fn answering_snapshot(&self) -> Result<Option<Arc<Snapshot>>, PageError> {
        match self.snapshot().await {
            Err(PageError::Api(it)) if it.error.kind == ErrorKind::NoSnapshot.as_str() => Ok(None),
            snapshot => snapshot.map(Some),
        }
    }

    /// Returns the commit that was live at a time.
    pub(super) async fn commit_at(&self, time: &str) -> Result<Option<CommitId>, PageError> {
        let route = format!("/v1/groups?limit=0&at={}", escaped(time));
        let found = self.console.api.get_with_commit::<Value>(&self.asker, &route).await?;
        Ok(found.1)
    }

    /// Returns the pins to nodes that have not checked in.
    pub(super) async fn gone_pins(&self, snapshot: &Snapshot) -> Result<Arc<GonePins>, PageError> {
        Ok(self.console.pins.gone(&self.console.api, snapshot).await?)
    }

    /// Returns the text of a file of a commit, if it has one.
    pub(super) async fn file(
        &self,
        commit: CommitId,
        path: &str,
    ) -> Result<Option<String>, PageError> {
        Ok(self.console.api.text(commit, path.to_owned()).await?)
    }

    /// Returns the newest commits up to one that changed a file.
    pub(super) async fn file_changes(
        &self,
        commit: CommitId,
        file: &str,
        most: usize,
    ) -> Result<Vec<BlamedCommit>, PageError> {
        Ok(self.console.api.file_changes(commit, file.to_owned(), most).await?)
    }

    /// Returns the frame of a page.
    pub(super) fn layout(&self, section: Section) -> PageFrame {
        let mut layout = bare_layout(&self.console, self.now);
        layout.section = section;
        layout.links = self.links.clone();
        layout.here.clone_from(&self.here);
        layout.commit = self.commit();
        layout.live = self.status.active.as_ref().map(|it| it.commit);
        layout.point.clone_from(&self.point);
        layout.user.clone_from(&self.identity.name);
        layout.operates = self.identity.operates;
        layout.session = self.session;
        layout.form_token = self.console.sessions.form_token(&self.owner);
        layout.version.clone_from(&self.status.version);
        self.parameter("q").clone_into(&mut layout.search);
        layout
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Checks that a form is from a page that this visitor got.
    pub(super) fn check_form(&self, sent: &str) -> Result<(), ForeignForm> {
        self.console.sessions.check_form(&self.uri, &self.headers, &self.owner, sent)
    }

    /// Sends a document to a route, with the rights of the visitor.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, PageError> {
        Ok(self.console.api.post(&self.asker, path, body).await?)
    }

    /// Returns a response that tells of each change of the status; none if there are too many.
    pub(super) fn follow_status(&self) -> Option<Response> {
        let (sessions, session) = (Arc::clone(&self.console.sessions), self.owner.session.clone());
        let is_open = move || session.as_ref().is_none_or(|it| sessions.is_open(it));
        self.console.api.follow_status(&self.asker, is_open)
    }

    /// Writes a page, or the error in its place.
    pub(super) fn show<T: Template>(&self, page: Result<T, PageError>) -> Response {
        match page {
            Ok(page) => self.show_as(StatusCode::OK, &page),
            Err(trouble) => self.fail(trouble),
        }
    }

    /// Writes a page with a status.
    pub(super) fn show_as<T: Template>(&self, status: StatusCode, page: &T) -> Response {
        let mut response = page::write(status, page, &self.headers);
        if let Some(commit) = self.answering.get() {
            name_commit(&mut response, *commit);
        }
        response
    }

    fn fail(&self, trouble: PageError) -> Response {
        let layout = self.layout(Section::Other);
        let conditions = match trouble.status().is_server_error() {
            true => self.bad_conditions(),
            false => Vec::new(),
        };
        failed(layout, trouble, conditions, self.request_id.clone(), &self.headers)
    }

    /// Returns the conditions that say what is wrong with the daemon.
    pub(super) fn bad_conditions(&self) -> Vec<Condition> {
        self.status.conditions.iter().filter(|it| s::is_bad(it)).cloned().collect()
    }
}
