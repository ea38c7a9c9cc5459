//! One line of the log.

use std::time::Duration;

use hashbrown::HashMap;
use jiff::Timestamp;
use serde::Serialize;

use super::decision::Decision;
use super::input::ShownInput;
use crate::answer::AnswerRecord;
use crate::classification::ClassificationError;
use crate::hierarchy::GroupIndex;
use crate::masking::Masks;
use crate::model::{CommitId, Node};
use crate::snapshot::Snapshot;

/// How many bytes a line may have with its input.
const LINE: usize = 64 << 10;

/// How many answers of one commit are remembered.
const ANSWERS: usize = 4096;

/// What every line says of the daemon.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DaemonLabels {
    app: &'static str,
    version: &'static str,
    /// Another one after every start.
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
}

impl DaemonLabels {
    pub(super) fn new(host: Option<String>) -> Self {
        Self { app: "clade", version: env!("CARGO_PKG_VERSION"), id: random_id(), host }
    }
}

/// One line, with the field names of Open Policy Agent.
#[derive(Debug, Serialize)]
struct DecisionEvent<'e> {
    labels: &'e DaemonLabels,
    decision_id: String,
    bundles: Bundles,
    path: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'e ShownInput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'e DecisionError>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    erased: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    masked: &'e [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_by: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'e str>,
    timestamp: Timestamp,
    metrics: DecisionMetrics,
}

/// Which commit decided.
#[derive(Debug, Serialize)]
struct Bundles {
    clade: Bundle,
}

#[derive(Debug, Serialize)]
struct Bundle {
    revision: CommitId,
}

/// Why a node got no values.
#[derive(Clone, Debug, Serialize)]
struct DecisionError {
    /// The kind of the error of the API.
    code: &'static str,
    message: String,
}

#[derive(Debug, Serialize)]
struct DecisionMetrics {
    timer_server_handler_ns: u64,
}

/// What a decision came to.
#[derive(Clone, Debug)]
enum Concluded {
    /// The digest of the answer.
    Answer(String),
    Error(DecisionError),
}

/// Writes lines.
#[derive(Debug)]
pub(super) struct EventWriter {
    labels: DaemonLabels,
    masks: Masks,
    /// What groups of the commit come to, without what is set for a node alone.
    answers: HashMap<Vec<GroupIndex>, Concluded>,
    commit: Option<CommitId>,
}

impl EventWriter {
    pub(super) fn new(labels: DaemonLabels, masks: Masks) -> Self {
        Self { labels, masks, answers: HashMap::new(), commit: None }
    }

    /// Adds the line of a decision.
    pub(super) fn write(&mut self, decision: Decision, lines: &mut Vec<u8>) {
        let Decision { time, path, requested_by, request_id, name, snapshot, input, groups, took } =
            decision;
        let input = ShownInput::new(name, input, snapshot.mentioned(), &self.masks);
        let concluded = self.conclude(&snapshot, &input, groups.as_deref());
        let (result, error) = match &concluded {
            Concluded::Answer(digest) => (Some(digest.as_str()), None),
            Concluded::Error(error) => (None, Some(error)),
        };
        let mut event = DecisionEvent {
            labels: &self.labels,
            decision_id: random_id(),
            bundles: Bundles { clade: Bundle { revision: snapshot.commit } },
            path: &path,
            input: Some(&input),
            result,
            error,
            erased: Vec::new(),
            masked: &input.masked,
            requested_by: requested_by.as_deref(),
            request_id: request_id.as_deref(),
            timestamp: time,
            metrics: DecisionMetrics { timer_server_handler_ns: nanoseconds(took) },
        };
        let start = lines.len();
        // A line is always written, and a vector takes all.
        serde_json::to_writer(&mut *lines, &event).ok();
        if lines.len() - start > LINE {
            lines.truncate(start);
            event.input = None;
            event.masked = &[];
            event.erased = vec!["/input"];
            serde_json::to_writer(&mut *lines, &event).ok();
        }
        lines.push(b'\n');
    }

    /// Returns what the groups of a decision come to, for a node with the facts that are shown.
    fn conclude(
        &mut self,
        snapshot: &Snapshot,
        input: &ShownInput,
        groups: Result<&[GroupIndex], &ClassificationError>,
    ) -> Concluded {
        let estate = &snapshot.estate;
        let conclude =
            |node: &Node| Concluded::from(&AnswerRecord::of_groups(estate, node, groups));
        let Ok(groups) = groups else { return conclude(&Node::named(&input.name)) };
        if !snapshot.is_decided_by(groups, &input.name) {
            return conclude(&input.node());
        }
        if self.commit != Some(snapshot.commit) || self.answers.len() > ANSWERS {
            self.answers.clear();
            self.commit = Some(snapshot.commit);
        }
        if let Some(known) = self.answers.get(groups) {
            return known.clone();
        }
        let concluded = conclude(&Node::named(&input.name));
        self.answers.insert(groups.to_vec(), concluded.clone());
        concluded
    }
}

impl From<&AnswerRecord> for Concluded {
    fn from(record: &AnswerRecord) -> Self {
        let (code, message) = match record {
            AnswerRecord::Classified(_) => return Self::Answer(record.digest().to_string()),
            AnswerRecord::Conflict(conflict) => ("classification-conflict", &conflict.summary),
            AnswerRecord::Error(failure) => ("rule-evaluation-error", &failure.message),
        };
        Self::Error(DecisionError { code, message: message.clone() })
    }
}

fn nanoseconds(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

fn random_id() -> String {
    uuid::Builder::from_random_bytes(fastrand::u128(..).to_be_bytes()).into_uuid().to_string()
}
