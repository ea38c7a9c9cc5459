//! Check-ins on their way into the database: all that can be computed before the transaction.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use sha2::{Digest as _, Sha256};

use super::check_in::{Answered, FactsBody, FactsPresence, Row};
use super::compression::{compress, pack};
use super::error::{StoreError, StoreFault};
use super::queue::{Fresh, Keeping, QueuedNode};
use crate::answer::{AnswerDigest, AnswerRecord, NodeState};
use crate::hierarchy::GroupIndex;
use crate::mentioned::MentionedPaths;
use crate::model::{CommitId, Node};
use crate::snapshot::Snapshot;

/// How many bytes of answers are remembered, by the groups that give them; and how many answers.
const ANSWER_BYTES: usize = 16 << 20;
const ANSWERS: usize = 2048;

/// Of how many nodes the hash of the facts is remembered: 2 to 4 MiB.
const WRITTEN: usize = 100_000;

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
    /// For how long it waited in the queue, in microseconds.
    pub(super) waited: i64,
    pub(super) facts: Arc<PreparedFacts>,
    pub(super) answer: Option<PreparedAnswer>,
}

/// Facts and trusted data that are ready to be written.
#[derive(Debug)]
pub(super) struct PreparedFacts {
    /// Tells facts apart, to write only those that changed.
    pub(super) hash: i64,
    pub(super) raw_bytes: i64,
    row: Arc<Row>,
    compressed: OnceLock<Vec<u8>>,
}

/// What a node was answered, and the facts that decided it.
#[derive(Clone, Debug)]
pub(super) struct PreparedAnswer {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) content: Arc<AnswerContent>,
    /// The facts and trusted data that rules and values of the snapshot mention, in JSON.
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

/// The paths that rules and values of a snapshot mention, as they are written.
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
    answers: RememberedAnswers,
    recent: VecDeque<(Arc<Snapshot>, Arc<PathSet>)>,
    written: WrittenFacts,
}

impl PreparedCheckIn {
    /// Returns whether it has the facts that decided its answer.
    pub(super) fn knows_facts(&self, paths: &MentionedPaths) -> bool {
        self.row.facts != FactsPresence::Elsewhere || paths.fact_paths().is_empty()
    }
}

impl PreparedFacts {
    fn new(row: &Arc<Row>) -> Self {
        let raw_bytes = i64::try_from(row.body.len()).unwrap_or(i64::MAX);
        let row = Arc::clone(row);
        Self { hash: hash(&row.body), raw_bytes, row, compressed: OnceLock::new() }
    }

    /// Returns them as JSON.
    pub(super) fn text(&self) -> &[u8] {
        &self.row.body
    }

    #[cfg(test)]
    pub(super) fn is_compressed(&self) -> bool {
        self.compressed.get().is_some()
    }

    /// Returns them as they are kept.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be compressed.
    pub(super) fn compressed(&self) -> std::io::Result<&[u8]> {
        if self.compressed.get().is_none() {
            self.compressed.set(compress(&self.row.body)?).ok();
        }
        Ok(self.compressed.get().map(Vec::as_slice).unwrap_or_default())
    }
}

/// The hashes of the facts that were written last, by hashed name: agents repeat themselves, and what is
/// stored already need not be compressed.
#[derive(Debug, Default)]
struct WrittenFacts(HashMap<u64, i64>);

impl WrittenFacts {
    /// Notes the facts of a node; returns whether they are those that were noted before.
    fn note(&mut self, name: &str, facts: &PreparedFacts) -> bool {
        if self.0.len() >= WRITTEN {
            self.0.clear();
        }
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        self.0.insert(hasher.finish(), facts.hash) == Some(facts.hash)
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

    /// Returns how many rows it takes, to be found by what it has.
    pub(super) fn rows(&self) -> usize {
        self.groups.len() + self.classes.len()
    }

    /// Returns about how many bytes of memory it takes.
    fn bytes(&self) -> usize {
        let names = self.groups.iter().chain(&self.classes);
        self.body.len() + names.map(|it| it.len() + size_of::<String>()).sum::<usize>()
    }
}

/// Answers, by the groups that give them.
#[derive(Debug, Default)]
struct RememberedAnswers {
    by_groups: HashMap<(CommitId, Box<[GroupIndex]>), Arc<AnswerContent>>,
    bytes: usize,
}

impl RememberedAnswers {
    fn insert(&mut self, key: (CommitId, Box<[GroupIndex]>), content: &Arc<AnswerContent>) {
        let bytes = content.bytes() + size_of_val(&*key.1);
        if self.by_groups.len() >= ANSWERS || self.bytes + bytes > ANSWER_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.by_groups.insert(key, Arc::clone(content));
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
        let check_ins = queued.check_ins.iter().map(|it| self.check_in(name, &it.fresh));
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
        let Fresh { row, keeping, answered_at, queued } = fresh;
        let waited = i64::try_from(queued.elapsed().as_micros()).unwrap_or(i64::MAX);
        let row = row.stored();
        let answer = row.answered.as_ref().map(|it| self.answer(name, &row, it)).transpose()?;
        let facts = Arc::new(PreparedFacts::new(&row));
        if !self.written.note(name, &facts) {
            // Others cannot write during the transaction, so this is done before it.
            facts.compressed().map_err(|error| no_zstd(&error))?;
        }
        let (keeping, answered_at) = (*keeping, *answered_at);
        Ok(PreparedCheckIn { row, keeping, answered_at, waited, facts, answer })
    }

    fn answer(
        &mut self,
        name: &str,
        row: &Row,
        answered: &Answered,
    ) -> Result<PreparedAnswer, StoreError> {
        let Answered { snapshot, groups } = answered;
        let paths = self.paths(snapshot);
        let mentioned = row.mentioned(name, &paths.paths);
        let content = match groups {
            Ok(groups) if snapshot.is_decided_by(groups, name) => {
                let key = (snapshot.commit, groups.clone());
                if let Some(known) = self.answers.by_groups.get(&key) {
                    Arc::clone(known)
                } else {
                    let record =
                        AnswerRecord::of_groups(&snapshot.estate, &Node::named(name), Ok(groups));
                    let content = Arc::new(AnswerContent::new(&record)?);
                    self.answers.insert(key, &content);
                    content
                }
            }
            groups => {
                let unknown = Node::named(name);
                // What is stored are two objects.
                let node = mentioned.as_ref().unwrap_or(&unknown);
                let record = AnswerRecord::of_groups(&snapshot.estate, node, groups.as_deref());
                Arc::new(AnswerContent::new(&record)?)
            }
        };
        let inputs = mentioned
            .and_then(|Node { fact, trusted, .. }| serde_json::to_vec(&FactsBody { fact, trusted }))
            .unwrap_or_else(|_| row.body.to_vec());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_remembered_take_a_bounded_number_of_bytes() {
        let content = Arc::new(AnswerContent {
            digest: AnswerDigest::from_bytes([0; 32]),
            state: NodeState::Classified,
            environment: None,
            groups: Vec::new(),
            classes: (0..10_000).map(|it| format!("class::{it}")).collect(),
            body: vec![0; 100_000],
        });
        let mut answers = RememberedAnswers::default();
        for number in 0..100 {
            let commit = CommitId::from_bytes([number; 20]);
            answers.insert((commit, Box::default()), &content);
            assert!(answers.by_groups.contains_key(&(commit, Box::default())), "the newest");
            let held: usize = answers.by_groups.values().map(|it| it.bytes()).sum();
            assert!(held <= ANSWER_BYTES, "{held}");
        }
        assert!(answers.by_groups.len() > 1);
    }
}
