//! Check-ins: which nodes asked, and what they met.
#![expect(clippy::disallowed_methods, reason = "a part of a list is sent in time")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{FromRef, State};
use axum::http::header;
use axum::response::Response;
use serde_json::{Map, Value};

use super::blocking::{Panicked, STORE, run_blocking};
use super::compute::{COMPLETED_LISTS, LISTS};
use super::error::{ApiError, sentence};
use super::explanation_limit::check_explanation;
use super::list_completion::{ListCompletion, complete_alone};
use super::node_lookup::FactsPolicy;
use super::openapi::errors::{NotFound, PageErrors, PathErrors, StoreErrors};
use super::openapi::parameters::{FactsSwitch, Page};
use super::original_uri::OriginalUri;
use super::path_parameter::PathParameter;
use super::privacy::PrivacyPolicy;
use super::query::Parameters;
use super::server::MemoryReservation;
use super::streamed::{Chunk, stream};
use super::types::{self, CheckInEntry, ErrorKind};
use crate::classification::{self, Match, Outcome, WithheldFacts};
use crate::facts::RowRoom;
use crate::model::{CERTNAME, Node};
use crate::reconcile::Controller;
use crate::snapshot::Snapshot;
use crate::store::{CheckIn, CheckIns, ListedCheckIn, StoreError, StoreFault, Stored, after};

/// The largest page of a list that is made without being asked for a limit.
const PAGE: usize = 1000;

/// How many bytes of a list are sent together.
const CHUNK: usize = 256 << 10;

/// How long one chunk may take: another list waits for it.
const CHUNK_TIME: Duration = Duration::from_secs(15);

/// Reads the check-ins, and shows what their nodes get now.
#[derive(Clone, Debug)]
pub(super) struct CheckInReader {
    check_ins: CheckIns,
    controller: Arc<Controller>,
    privacy: PrivacyPolicy,
    facts: FactsPolicy,
}

impl<S> FromRef<S> for CheckInReader
where
    CheckIns: FromRef<S>,
    Arc<Controller>: FromRef<S>,
    PrivacyPolicy: FromRef<S>,
    FactsPolicy: FromRef<S>,
{
    fn from_ref(state: &S) -> Self {
        Self {
            check_ins: CheckIns::from_ref(state),
            controller: Arc::from_ref(state),
            privacy: PrivacyPolicy::from_ref(state),
            facts: FactsPolicy::from_ref(state),
        }
    }
}

/// Lists the nodes that have checked in.
#[utoipa::path(
    get, path = "/v1/nodes", operation_id = "list_check_ins", tag = "Check-ins",
    params(Page, FactsSwitch),
    responses(
        (status = 200, body = [types::CheckIn]),
        PageErrors,
        StoreErrors,
    ),
)]
pub(super) async fn list(
    State(reader): State<CheckInReader>,
    parameters: Parameters,
) -> Result<Response, ApiError> {
    let offset = parameters.number("offset")?.unwrap_or(0);
    let limit = parameters.number("limit")?.unwrap_or(PAGE);
    let facts = if parameters.is_on("facts") { WithFacts::Yes } else { WithFacts::No };
    let check_ins = reader.check_ins.clone();
    let first = STORE.run(move || check_ins.name_at(offset)).await?;
    let mut list = NodeList {
        completion: ListCompletion::new(reader.facts.clone()),
        reader,
        from: first,
        rows: VecDeque::new(),
        room: Box::new(MemoryReservation::for_lists()),
        left: limit,
        facts,
        progress: Progress::Start,
    };
    let lane = if list.reader.facts.completes() { &COMPLETED_LISTS } else { &LISTS };
    stream(lane, CHUNK, move || list.next_chunk()).await
}

/// Whether facts are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WithFacts {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Start,
    Within,
}

/// A list of nodes that is being written.
struct NodeList {
    reader: CheckInReader,
    /// The first name that was not read yet.
    from: Option<String>,
    /// Those that were read and are not written yet.
    rows: VecDeque<ListedCheckIn>,
    completion: ListCompletion,
    /// The room of a large row, until the row is written.
    room: Box<dyn RowRoom + Send>,
    left: usize,
    facts: WithFacts,
    progress: Progress,
}

impl NodeList {
    /// Returns the next node.
    fn next(&mut self) -> Result<Option<ListedCheckIn>, StoreError> {
        if self.left == 0 {
            return Ok(None);
        }
        loop {
            if let Some(listed) = self.rows.pop_front() {
                self.from = Some(after(&listed.name));
                self.left -= 1;
                return Ok(Some(listed));
            }
            let Some(name) = self.from.take() else { return Ok(None) };
            self.room.release();
            self.rows = self.reader.check_ins.some_from(&name, &*self.room)?.collect();
        }
    }

    /// Writes some nodes. Blocking.
    fn next_chunk(&mut self) -> Result<Chunk, StoreError> {
        let chunk = self.write();
        // The client may take its time with what is written.
        self.room.release();
        chunk
    }

    fn write(&mut self) -> Result<Chunk, StoreError> {
        let mut text = Vec::new();
        if self.progress == Progress::Start {
            text.push(b'[');
        }
        let began = Instant::now();
        while text.len() < CHUNK && began.elapsed() < CHUNK_TIME {
            let Some(listed) = self.next()? else {
                text.push(b']');
                return Ok(Chunk::Last(text));
            };
            if self.progress == Progress::Within {
                text.push(b',');
            }
            self.progress = Progress::Within;
            let value = match listed.check_in {
                Ok(mut check_in) => {
                    let following = self.rows.iter().filter_map(|it| it.check_in.as_ref().ok());
                    // No more than are listed.
                    let following = following.map(|it| &it.node).take(self.left);
                    let unknown = self.completion.complete(&mut check_in.node, following).err();
                    self.reader.show(check_in, unknown, self.facts)
                }
                Err(error) => unreadable(&listed.name, &error),
            };
            // A value is always written, and a vector takes all.
            serde_json::to_writer(&mut text, &value).ok();
        }
        Ok(Chunk::More(text))
    }
}

/// Writes a check-in that cannot be read, among others that can.
fn unreadable(name: &str, error: &StoreError) -> types::CheckIn {
    tracing::warn!(%error, "a check-in cannot be read; the list names the node only");
    let message = format!("{}.", sentence(&error.to_string()));
    let error = ApiError::new(ErrorKind::StorageFailed, message, Value::Null);
    types::CheckIn {
        name: name.to_owned(),
        check_ins: Vec::new(),
        transaction_uuid: None,
        fact: None,
        trusted: None,
        error: Some(error.into()),
    }
}

/// Shows the check-ins of a node.
#[utoipa::path(
    get, path = "/v1/nodes/{name}", operation_id = "check_in", tag = "Check-ins",
    params(("name" = String, Path), FactsSwitch),
    responses(
        (status = 200, body = types::CheckIn),
        PathErrors,
        NotFound,
        StoreErrors,
    ),
)]
pub(super) async fn one(
    State(reader): State<CheckInReader>,
    uri: OriginalUri,
    parameters: Parameters,
    PathParameter(name): PathParameter,
) -> Result<Json<types::CheckIn>, ApiError> {
    let facts = if parameters.is_on("facts") { WithFacts::Yes } else { WithFacts::No };
    let room = MemoryReservation::for_rows();
    let find = move || {
        let Stored { check_in, lost } = reader.check_ins.get_within(&name, &room)?;
        match (check_in, lost) {
            (None, Some(error)) => Err(error),
            (check_in, _) => Ok(check_in.map(|it| (reader, it, room))),
        }
    };
    let found = STORE.run(find).await?;
    let Some((reader, mut check_in, room)) = found else { return Err(ApiError::not_found(&uri)) };
    let show = move || {
        let unknown = complete_alone(&reader.facts, &mut check_in.node, &room).err();
        // What the node has proved may be known from elsewhere.
        match reader.check_ins.lost(&check_in) {
            Some(error) => Err(error.into()),
            None => Ok(Json(reader.show(check_in, unknown, facts))),
        }
    };
    // Those who read the store must not wait for what another source knows.
    let shown = run_blocking(show).await;
    shown.map_err(|Panicked| ApiError::internal("The check-in could not be read."))?
}

/// Returns a check-in that says all that was known of its node.
pub(super) fn complete(
    check_ins: &CheckIns,
    ListedCheckIn { check_in, .. }: ListedCheckIn,
) -> Result<CheckIn, StoreError> {
    let check_in = check_in?;
    check_ins.lost(&check_in).map_or(Ok(check_in), Err)
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        // It is the request that is wrong: sent again, it gets the same answer.
        if error.fault == StoreFault::Name {
            return Self::schema_violation(Value::Null, "NodeName", error.to_string().into());
        }
        let is_busy = error.fault == StoreFault::Busy;
        let kind = if is_busy { ErrorKind::Busy } else { ErrorKind::StorageFailed };
        let message = format!("{}.", sentence(&error.to_string()));
        let answer = Self::new(kind, message, Value::Null);
        // A value that the database does not take is refused each time.
        if error.fault == StoreFault::Value {
            return answer;
        }
        answer.with_header(header::RETRY_AFTER, "5")
    }
}

impl CheckInReader {
    /// Returns what a snapshot gives a node, and the groups that match or why they are not shown: not the whole document,
    /// which has the facts a second time.
    fn classify(
        &self,
        snapshot: &Snapshot,
        node: &Node,
    ) -> Option<(Option<Value>, Result<Value, ApiError>)> {
        let mut explained = snapshot.classify(node, WithheldFacts::Mark).ok()?;
        let rules = explained.matches.iter().map(Match::rule);
        let matches = check_explanation(rules, node).map(|()| {
            let mut matches = classification::match_explanations(&explained);
            self.privacy.mask_explanation(&mut matches);
            matches
        });
        // A fact may have been stored before it was masked.
        if let Outcome::Classified(result) = &mut explained.outcome {
            let shown = self.privacy.masks().node(node);
            result.show_facts_of(&snapshot.estate, &shown).ok()?;
        }
        Some((classification::final_classification(&explained), matches))
    }

    /// Writes a check-in, of whose node the facts may be unknown; which groups match is found out by what answers now.
    fn show(
        &self,
        check_in: CheckIn,
        unknown: Option<types::Error>,
        facts: WithFacts,
    ) -> types::CheckIn {
        let lost: Option<ApiError> = self.check_ins.lost(&check_in).map(Into::into);
        let (has_facts, has_trusted) = (unknown.is_none(), lost.is_none());
        let unknown = unknown.or_else(|| lost.map(Into::into));
        // Without what is unknown, an explanation would name the wrong groups.
        let snapshot = self.controller.snapshot().ok().filter(|_| unknown.is_none());
        let CheckIn { time, transaction_uuid, commit, node } = check_in;
        let has_certname = node.trusted.contains_key(CERTNAME);
        // As `/enc` classifies it; it is shown as it is kept.
        let node = node.with_certname();
        let parts = snapshot.and_then(|it| self.classify(&it, &node));
        let (classification, matches) = parts.unwrap_or_else(|| (None, Ok(Map::new().into())));
        let (explanation, error) = match matches {
            Ok(explanation) => (explanation, unknown),
            Err(error) => (Map::new().into(), Some(error.into())),
        };
        let mut node = self.privacy.shown(node);
        if !has_certname {
            node.trusted.shift_remove(CERTNAME);
        }
        let entry = CheckInEntry {
            time,
            // A node in conflict has no classification.
            classification,
            explanation,
            error,
            transaction_uuid: transaction_uuid.clone(),
            commit,
        };
        let shows = facts == WithFacts::Yes;
        let fact = (shows && has_facts).then_some(node.fact);
        let trusted = (shows && has_trusted).then_some(node.trusted);
        types::CheckIn {
            name: node.name,
            check_ins: vec![entry],
            transaction_uuid,
            fact,
            trusted,
            error: None,
        }
    }
}
