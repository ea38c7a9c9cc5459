//! Check-ins on their way into the database: all that can be computed before the transaction.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::check_in::{Answered, Row};
use super::compression::{compress, pack};
use super::error::{StoreError, StoreFault};
use super::queue::{Fresh, Keeping, QueuedNode};
use crate::answer::{AnswerDigest, AnswerRecord, NodeState};
use crate::hierarchy::GroupIndex;
use crate::mentioned::MentionedPaths;
use crate::model::CommitId;
use crate::snapshot::Snapshot;

/// How many answers are remembered by the groups that give them.
const ANSWERS: usize = 2048;

/// How many snapshots are remembered: the one that answers, and the one before.
const SNAPSHOTS: usize = 2;

/// The check-ins of one node, in the order in which they came.
#[derive(Debug)]
pub(super) struct PreparedNode {
    pub(super) name: String,
    pub(super) check_ins: Vec<PreparedCheckIn>,
}

/// A check-in that is ready to be written.
#[derive(Debug)]
pub(super) struct PreparedCheckIn {
    pub(super) row: Arc<Row>,
    pub(super) keeping: Keeping,
    /// When it was first answered so, in microseconds since 1970.
    pub(super) answered_at: i64,
    pub(super) facts: Arc<PreparedFacts>,
    pub(super) answer: Option<PreparedAnswer>,
}

/// Facts and trusted data that are ready to be written.
#[derive(Debug)]
pub(super) struct PreparedFacts {
    /// Tells facts apart, to write only those that changed.
    pub(super) hash: i64,
    pub(super) raw_bytes: i64,
    pub(super) body: Vec<u8>,
}

/// What a node was answered, and the facts that decided it.
#[derive(Clone, Debug)]
pub(super) struct PreparedAnswer {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) content: Arc<AnswerContent>,
    /// The facts and trusted data that the rules of the snapshot mention, in JSON.
    pub(super) inputs: Vec<u8>,
    pub(super) paths: Arc<PathSet>,
}

/// An answer that is ready to be written.
#[derive(Debug)]
pub(super) struct AnswerContent {
    pub(super) digest: AnswerDigest,
    pub(super) state: NodeState,
    pub(super) environment: Option<String>,
    pub(super) groups: Vec<String>,
    pub(super) classes: Vec<String>,
    pub(super) body: Vec<u8>,
}

/// The paths that the rules of a snapshot mention, as they are written.
#[derive(Debug)]
pub(super) struct PathSet {
    pub(super) paths: Arc<MentionedPaths>,
    pub(super) text: String,
    pub(super) digest: Vec<u8>,
}

/// Tells the daemons apart that write to one database.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriterId(i64);

impl Default for WriterId {
    fn default() -> Self {
        Self(fastrand::i64(1..))
    }
}

impl WriterId {
    pub(super) fn number(self) -> i64 {
        self.0
    }
}

/// Prepares check-ins, and remembers what many of them have in common.
#[derive(Debug, Default)]
pub(super) struct Preparation {
    pub(super) writer: WriterId,
    answers: HashMap<(CommitId, Box<[GroupIndex]>), Arc<AnswerContent>>,
    recent: VecDeque<(Arc<Snapshot>, Arc<PathSet>)>,
}

impl PreparedFacts {
    fn new(text: &[u8]) -> Result<Self, StoreError> {
        let body = compress(text).map_err(|error| no_zstd(&error))?;
        let raw_bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
        Ok(Self { hash: hash(text), raw_bytes, body })
    }

    /// Returns how many bytes are kept.
    pub(super) fn stored_bytes(&self) -> i64 {
        i64::try_from(self.body.len()).unwrap_or(i64::MAX)
    }
}

fn no_zstd(error: &std::io::Error) -> StoreError {
    StoreError::new(StoreFault::Io, "written", format!("zstd failed: {error}"))
}

fn hash(text: &[u8]) -> i64 {
    let digest = Sha256::digest(text);
    let first = digest.first_chunk::<8>().copied().unwrap_or_default();
    i64::from_be_bytes(first)
}

impl PathSet {
    fn new(snapshot: &Snapshot) -> Self {
        let paths = Arc::clone(snapshot.mentioned());
        let text = paths.to_string();
        let digest = Sha256::digest(&text).to_vec();
        Self { paths, text, digest }
    }
}

impl AnswerContent {
    fn new(record: &AnswerRecord) -> Result<Self, StoreError> {
        Ok(Self {
            digest: record.digest(),
            state: record.state(),
            environment: record.environment().map(|it| it.to_string()),
            groups: record.group_ids().map(|it| it.to_string()).collect(),
            classes: record.classes().map(ToString::to_string).collect(),
            body: pack(&record.to_bytes()).map_err(|error| no_zstd(&error))?,
        })
    }
}

impl Preparation {
    /// Prepares the check-ins of a node.
    ///
    /// # Errors
    ///
    /// Returns an error if its facts cannot be compressed.
    pub(super) fn node(
        &mut self,
        name: &str,
        queued: &QueuedNode,
    ) -> Result<PreparedNode, StoreError> {
        let check_ins = queued.iter().map(|it| self.check_in(name, &it.fresh));
        Ok(PreparedNode { name: name.to_owned(), check_ins: check_ins.collect::<Result<_, _>>()? })
    }

    /// Prepares a check-in.
    ///
    /// # Errors
    ///
    /// Returns an error if its facts cannot be compressed.
    pub(super) fn check_in(
        &mut self,
        name: &str,
        fresh: &Fresh,
    ) -> Result<PreparedCheckIn, StoreError> {
        let Fresh { row, keeping, answered_at } = fresh;
        let answer = row.answered.as_ref().map(|it| self.answer(name, row, it)).transpose()?;
        let facts = Arc::new(PreparedFacts::new(&row.body)?);
        let (keeping, answered_at) = (*keeping, *answered_at);
        Ok(PreparedCheckIn { row: Arc::clone(row), keeping, answered_at, facts, answer })
    }

    fn answer(
        &mut self,
        name: &str,
        row: &Row,
        answered: &Answered,
    ) -> Result<PreparedAnswer, StoreError> {
        let Answered { snapshot, groups } = answered;
        let paths = self.paths(snapshot);
        let content = match groups {
            Ok(groups) if !snapshot.estate.individuals.contains_key(name) => {
                let key = (snapshot.commit, groups.clone());
                if let Some(known) = self.answers.get(&key) {
                    Arc::clone(known)
                } else {
                    let record = AnswerRecord::of_groups(&snapshot.estate, name, Ok(groups));
                    let content = Arc::new(AnswerContent::new(&record)?);
                    if self.answers.len() >= ANSWERS {
                        self.answers.clear();
                    }
                    self.answers.insert(key, Arc::clone(&content));
                    content
                }
            }
            groups => {
                let groups = groups.as_deref();
                Arc::new(AnswerContent::new(&AnswerRecord::of_groups(
                    &snapshot.estate,
                    name,
                    groups,
                ))?)
            }
        };
        let inputs = inputs(row, &paths.paths);
        Ok(PreparedAnswer { snapshot: Arc::clone(snapshot), content, inputs, paths })
    }

    fn paths(&mut self, snapshot: &Arc<Snapshot>) -> Arc<PathSet> {
        let known = self.recent.iter().find(|(it, _)| it.commit == snapshot.commit);
        if let Some((_, paths)) = known {
            return Arc::clone(paths);
        }
        let paths = Arc::new(PathSet::new(snapshot));
        self.recent.push_back((Arc::clone(snapshot), Arc::clone(&paths)));
        if self.recent.len() > SNAPSHOTS {
            self.recent.pop_front();
        }
        paths
    }

    /// Returns a snapshot that has answered not long ago.
    pub(super) fn snapshot(&self, commit: CommitId) -> Option<&Arc<Snapshot>> {
        self.recent.iter().map(|(snapshot, _)| snapshot).find(|it| it.commit == commit)
    }
}

/// Returns the facts and trusted data of a check-in that rules mention, in JSON.
fn inputs(row: &Row, paths: &MentionedPaths) -> Vec<u8> {
    let (fact, trusted) = row.texts();
    match paths.keep_text(fact, trusted) {
        Ok((fact, trusted)) => json!({"fact": fact, "trusted": trusted}).to_string().into_bytes(),
        Err(_) => row.body.clone(),
    }
}
