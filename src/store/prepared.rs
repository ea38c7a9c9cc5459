//! Check-ins on their way into the database: all that can be computed before the transaction.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use sha2::{Digest as _, Sha256};

use super::check_in::{Answered, Certname, FactsBody, FactsPresence, Row};
use super::compression::{compress, pack};
use super::error::{StoreError, StoreFault};
use super::queue::{Fresh, Keeping, QueuedNode};
use super::said::{SaidCheckIn, SaidPart};
use crate::answer::{AnswerDigest, AnswerRecord, NodeState};
use crate::hierarchy::GroupIndex;
use crate::mentioned::MentionedPaths;
use crate::model::{CommitId, Node};
use crate::snapshot::Snapshot;

/// How many bytes of answers of a snapshot are remembered, by the groups that give them; and how many answers.
const ANSWER_BYTES: usize = 8 << 20;
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
    pub(super) inputs: Arc<Vec<u8>>,
    pub(super) paths: Arc<PathSet>,
    pub(super) certname: Certname,
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
    recent: VecDeque<RecentSnapshot>,
    written: WrittenFacts,
}

/// A snapshot that answered not long ago, and what check-ins have in common that it answered.
#[derive(Debug)]
struct RecentSnapshot {
    snapshot: Arc<Snapshot>,
    paths: Arc<PathSet>,
    answers: RememberedAnswers,
}

impl PreparedCheckIn {
    /// Returns when it came, in microseconds since 1970.
    pub(super) fn time(&self) -> i64 {
        self.row.origin.time.as_microsecond()
    }

    /// Returns what decides what it leaves of what is known.
    pub(super) fn says(&self) -> SaidCheckIn {
        self.row.says(self.waited)
    }

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

    /// Returns those of a check-in of which a part is new; the other one is as it is known.
    pub(super) fn completed(&self, said: SaidPart, known: Option<&[u8]>) -> Self {
        Self::new(&Arc::new(self.row.completed(said, known)))
    }

    /// Returns whether there are facts.
    pub(super) fn has_facts(&self) -> bool {
        self.row.facts == FactsPresence::Some
    }

    /// Returns whether there are neither facts nor trusted data.
    pub(super) fn is_bare(&self) -> bool {
        self.row.is_bare()
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
    by_groups: HashMap<Box<[GroupIndex]>, Arc<AnswerContent>>,
    bytes: usize,
}

impl RememberedAnswers {
    fn insert(&mut self, groups: Box<[GroupIndex]>, content: &Arc<AnswerContent>) {
        let bytes = content.bytes() + size_of_val(&*groups);
        if self.by_groups.len() >= ANSWERS || self.bytes + bytes > ANSWER_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.by_groups.insert(groups, Arc::clone(content));
    }
}

impl RecentSnapshot {
    /// Returns the answer that some groups give in another snapshot, if they gave the same in this one: most commits
    /// leave most answers as they are.
    fn answer_in(&self, other: &Snapshot, groups: &[GroupIndex]) -> Option<&Arc<AnswerContent>> {
        self.answers.by_groups.get(&other.alike_in(&self.snapshot, groups)?)
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
        let Fresh { row, keeping, answered_at, .. } = fresh;
        let waited = fresh.waited();
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
        let Answered { snapshot, groups, certname } = answered;
        let paths = self.paths(snapshot);
        let mentioned = row.mentioned(name, &paths.paths);
        let content = match groups {
            Ok(groups) if snapshot.is_decided_by(groups, name) => {
                self.content(name, snapshot, groups)?
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
        let (snapshot, inputs) = (Arc::clone(snapshot), Arc::new(inputs));
        Ok(PreparedAnswer { snapshot, content, inputs, paths, certname: *certname })
    }

    /// Returns the answer that follows from some groups, for a node of which nothing else decides.
    fn content(
        &mut self,
        name: &str,
        snapshot: &Snapshot,
        groups: &[GroupIndex],
    ) -> Result<Arc<AnswerContent>, StoreError> {
        let known = self.recent(snapshot.commit).and_then(|it| it.answers.by_groups.get(groups));
        if let Some(known) = known {
            return Ok(Arc::clone(known));
        }
        let mut others = self.recent.iter().filter(|it| it.snapshot.commit != snapshot.commit);
        let content = match others.find_map(|it| it.answer_in(snapshot, groups)) {
            Some(known) => Arc::clone(known),
            None => {
                let node = Node::named(name);
                let record = AnswerRecord::of_groups(&snapshot.estate, &node, Ok(groups));
                Arc::new(AnswerContent::new(&record)?)
            }
        };
        let recent = self.recent.iter_mut().find(|it| it.snapshot.commit == snapshot.commit);
        if let Some(recent) = recent {
            recent.answers.insert(groups.into(), &content);
        }
        Ok(content)
    }

    fn paths(&mut self, snapshot: &Arc<Snapshot>) -> Arc<PathSet> {
        if let Some(known) = self.recent(snapshot.commit) {
            return Arc::clone(&known.paths);
        }
        let paths = Arc::new(PathSet::new(snapshot));
        self.recent.push_back(RecentSnapshot {
            snapshot: Arc::clone(snapshot),
            paths: Arc::clone(&paths),
            answers: RememberedAnswers::default(),
        });
        if self.recent.len() > SNAPSHOTS {
            self.recent.pop_front();
        }
        paths
    }

    fn recent(&self, commit: CommitId) -> Option<&RecentSnapshot> {
        self.recent.iter().find(|it| it.snapshot.commit == commit)
    }

    /// Returns a snapshot that has answered not long ago.
    pub(super) fn snapshot(&self, commit: CommitId) -> Option<&Arc<Snapshot>> {
        self.recent(commit).map(|it| &it.snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::{Estate, Hierarchy, root_group};
    use crate::model::{Group, Interpolation};

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
        let root = Hierarchy::build(vec![root_group().unwrap()]).unwrap().root();
        let mut answers = RememberedAnswers::default();
        for number in 0..100 {
            let groups: Box<[GroupIndex]> = vec![root; number].into();
            answers.insert(groups.clone(), &content);
            assert!(answers.by_groups.contains_key(&groups), "the newest");
            let held: usize = answers.by_groups.values().map(|it| it.bytes()).sum();
            assert!(held <= ANSWER_BYTES, "{held}");
        }
        assert!(answers.by_groups.len() > 1);
    }
    #[test]
    fn an_answer_that_a_commit_leaves_as_it_is_is_made_once() {
        let mut group = root_group().unwrap();
        group.id = "00000000-0000-4000-8000-000000000001".parse().unwrap();
        group.name = "g".parse().unwrap();
        let snapshot = |digit: u8, group: Group, interpolation| {
            let estate = Estate {
                hierarchy: Hierarchy::build(vec![root_group().unwrap(), group]).unwrap(),
                individuals: Arc::default(),
                environments: Arc::default(),
                catalogues: Arc::default(),
                interpolation,
            };
            let commit = CommitId::from_bytes([digit; 20]);
            Arc::new(Snapshot::new(commit, estate, Arc::default(), Vec::new()))
        };
        let described = Group { description: Some("d".into()), ..group.clone() };
        let renamed = Group { name: "other".parse().unwrap(), ..group.clone() };
        let mut preparation = Preparation::default();
        let mut answers = |snapshot: &Arc<Snapshot>| {
            preparation.paths(snapshot);
            let all: Vec<GroupIndex> = snapshot.estate.hierarchy.indexes().collect();
            [&all[..], &all[..1], &[]].map(|it| preparation.content("n", snapshot, it).unwrap())
        };
        let same =
            |one: &[_; 3], other: &[_; 3]| [0, 1, 2].map(|it| Arc::ptr_eq(&one[it], &other[it]));
        let first = answers(&snapshot(1, group.clone(), Interpolation::Off));
        assert_eq!(first[0].groups.len(), 2);
        let second = answers(&snapshot(2, described, Interpolation::Off));
        assert_eq!(same(&first, &second), [true; 3]);
        let third = answers(&snapshot(3, renamed.clone(), Interpolation::Off));
        assert_eq!(same(&second, &third), [false, true, true]);
        let fourth = answers(&snapshot(4, renamed, Interpolation::On));
        assert_eq!(same(&third, &fourth), [false; 3]);
    }
}
