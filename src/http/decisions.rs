//! What is logged of the answers to nodes.
#![expect(clippy::disallowed_methods, reason = "a decision takes time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use jiff::Timestamp;

use super::original_uri::OriginalUri;
use super::request_context::{RequestContext, RequestId};
use crate::classification::{ClassificationError, Explanation};
use crate::decision_log::{Decision, DecisionInput, DecisionLog};
use crate::hierarchy::GroupIndex;
use crate::model::Node;
use crate::snapshot::Snapshot;

/// How many bytes of the path of a request are logged.
const PATH: usize = 1024;

/// A request whose decision is logged.
#[derive(Debug)]
pub(super) struct DecisionRequest {
    log: DecisionLog,
    path: String,
    requested_by: Option<String>,
    request_id: Option<String>,
    began: Instant,
}

impl DecisionRequest {
    pub(super) fn new(log: DecisionLog, parts: &Parts) -> Self {
        let OriginalUri(uri) = OriginalUri::of(&parts.uri, &parts.extensions);
        let path = uri.path();
        let path = path.get(..path.floor_char_boundary(PATH)).unwrap_or_default().to_owned();
        let caller = RequestContext::caller(&parts.extensions);
        let id = RequestId::of(&parts.extensions);
        Self {
            log,
            path,
            requested_by: caller.and_then(|it| it.name()).map(str::to_owned),
            request_id: id.map(|it| it.as_str().to_owned()),
            began: Instant::now(),
        }
    }

    /// Returns the time since the choice of the snapshot.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Logs what was decided of facts and trusted data as they were received.
    pub(super) fn log_received(
        &self,
        snapshot: &Arc<Snapshot>,
        name: &str,
        [fact, trusted]: [&str; 2],
        groups: Result<&[GroupIndex], &ClassificationError>,
        took: Duration,
    ) {
        let input = DecisionInput::Received { fact: fact.to_owned(), trusted: trusted.to_owned() };
        self.log(snapshot, name, input, groups, took);
    }

    /// Logs what was decided of a node.
    pub(super) fn log_node(
        &self,
        snapshot: &Arc<Snapshot>,
        node: &Node,
        groups: Result<&[GroupIndex], &ClassificationError>,
        took: Duration,
    ) {
        let input = DecisionInput::Restricted(snapshot.mentioned().keep(node));
        self.log(snapshot, &node.name, input, groups, took);
    }

    /// Logs the explanation of a node.
    pub(super) fn log_explained(
        &self,
        snapshot: &Arc<Snapshot>,
        node: &Node,
        explained: &Result<Explanation<'_>, ClassificationError>,
    ) {
        match explained {
            Ok(explanation) => {
                let groups: Vec<GroupIndex> =
                    explanation.matches.iter().map(|it| it.group).collect();
                self.log_node(snapshot, node, Ok(&groups), self.elapsed());
            }
            Err(error) => self.log_node(snapshot, node, Err(error), self.elapsed()),
        }
    }

    fn log(
        &self,
        snapshot: &Arc<Snapshot>,
        name: &str,
        input: DecisionInput,
        groups: Result<&[GroupIndex], &ClassificationError>,
        took: Duration,
    ) {
        self.log.record(Decision {
            time: Timestamp::now(),
            path: self.path.clone(),
            requested_by: self.requested_by.clone(),
            request_id: self.request_id.clone(),
            name: name.to_owned(),
            snapshot: Arc::clone(snapshot),
            input,
            groups: groups.map(<[GroupIndex]>::to_vec).map_err(Clone::clone),
            took,
        });
    }
}
