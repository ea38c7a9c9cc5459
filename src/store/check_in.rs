//! One check-in, and how it is written.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::error::StoreError;
use super::row_text::RowText;
use super::said::{KnownParts, SaidCheckIn, SaidPart};
use crate::classification::ClassificationError;
use crate::hierarchy::GroupIndex;
use crate::masking::CommitForm;
use crate::mentioned::MentionedPaths;
use crate::model::{CommitId, LEFT_OUT, Map, Node, Value, texts_as_sent};
use crate::snapshot::Snapshot;

/// The latest classification request of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckIn {
    /// When.
    pub time: Timestamp,
    /// Which run of the agent it was for, as the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_uuid: Option<String>,
    /// The commit that answered; none if the node only submitted facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The node as it was received.
    pub node: Node,
}

/// A check-in to note, of a node that is still in use.
#[derive(Clone, Debug)]
pub struct Noted<'n> {
    /// When.
    pub time: Timestamp,
    /// Which run of the agent it was for.
    pub transaction_uuid: Option<String>,
    /// Which commit answered.
    pub commit: Option<CommitId>,
    /// What it was answered; none if the node only submitted facts.
    pub answered: Option<Answered>,
    /// The node as it was received.
    pub node: &'n Node,
    /// Which facts decided what it was answered.
    pub facts: NotedFacts,
    /// What of the node is new.
    pub said: SaidPart,
}

/// Which facts decided an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotedFacts {
    /// Those of the node as it is noted.
    OfNode,
    /// Others, which are not noted: something else keeps them.
    Elsewhere,
}

impl<'n> From<&'n CheckIn> for Noted<'n> {
    fn from(check_in: &'n CheckIn) -> Self {
        let CheckIn { time, transaction_uuid, commit, node } = check_in;
        let transaction_uuid = transaction_uuid.clone();
        Self {
            time: *time,
            transaction_uuid,
            commit: *commit,
            answered: None,
            node,
            facts: NotedFacts::OfNode,
            said: SaidPart::Both,
        }
    }
}

/// One of many check-ins.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedCheckIn {
    /// The certname.
    pub name: String,
    /// The check-in, or why this one cannot be read.
    pub check_in: Result<CheckIn, StoreError>,
}

/// What is known of a check-in beside its facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckInOrigin {
    pub(super) time: Timestamp,
    pub(super) transaction_uuid: Option<String>,
    pub(super) commit: Option<CommitId>,
}

/// The JSON text of a row.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FactsBody {
    #[serde(default)]
    pub(super) fact: Map<String, Value>,
    #[serde(default)]
    pub(super) trusted: Map<String, Value>,
}

impl CheckIn {
    /// Puts the check-in of a row together.
    pub(super) fn of_row(name: &str, origin: &CheckInOrigin, body: FactsBody) -> Self {
        let CheckInOrigin { time, transaction_uuid, commit } = origin.clone();
        let FactsBody { fact, trusted } = body;
        Self { time, transaction_uuid, commit, node: Node { name: name.to_owned(), fact, trusted } }
    }
}

/// What the store knows of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its latest check-in.
    pub check_in: Option<CheckIn>,
    /// Why that may be less than what was known of the node: a damaged file is put aside, and the
    /// check-in is missing, or it has no facts or no trusted data.
    pub lost: Option<StoreError>,
}

impl Stored {
    /// Returns the check-in.
    ///
    /// # Errors
    ///
    /// Returns an error if more may have been known of the node.
    pub fn whole(self) -> Result<Option<CheckIn>, StoreError> {
        self.lost.map_or(Ok(self.check_in), Err)
    }
}

/// What a request was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The snapshot that answered.
    pub snapshot: Arc<Snapshot>,
    /// The groups that matched, parents first, or why they are not known.
    pub groups: Result<Box<[GroupIndex]>, ClassificationError>,
    /// Which certname it was answered by.
    pub certname: Certname,
}

/// Which certname an answer read of trusted data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certname {
    /// The one that was sent, or none.
    AsSent,
    /// The one that was sent, or else the name of the node.
    Completed,
}

impl Certname {
    /// Returns a node as it was answered.
    pub(super) fn answered_node(self, node: Node) -> Node {
        match self {
            Self::AsSent => node,
            Self::Completed => node.with_certname(),
        }
    }
}

impl Answered {
    /// Returns whether the groups and the snapshot alone say what the node with a name got.
    pub(super) fn is_decided_for(&self, name: &str) -> bool {
        self.groups.as_ref().is_ok_and(|it| self.snapshot.is_decided_by(it, name))
    }

    /// Returns whether two requests of one node were answered the same for the same reasons.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let same_groups = match (&self.groups, &other.groups) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        };
        same_groups
            && self.snapshot.commit == other.snapshot.commit
            && self.certname == other.certname
    }
}

/// A check-in with facts and trusted data as the JSON text that they came as.
#[derive(Clone, Debug)]
pub struct Received<'r> {
    /// When.
    pub time: Timestamp,
    /// Which run of the agent it was for.
    pub transaction_uuid: Option<&'r str>,
    /// Which commit answered.
    pub commit: Option<CommitId>,
    /// What it was answered; none if the node only submitted facts.
    pub answered: Option<Answered>,
    /// The certname.
    pub name: &'r str,
    /// The facts: the text of an object.
    pub fact: &'r str,
    /// The trusted data: the text of an object.
    pub trusted: &'r str,
    /// What of the node is new.
    pub said: SaidPart,
    /// What of them is stored; all if there is none.
    pub form: Option<CommitForm>,
}

impl Received<'_> {
    /// Returns whether it has facts.
    pub fn has_facts(&self) -> bool {
        has_keys(self.fact)
    }

    /// Returns how many bytes of it wait to be written.
    pub(super) fn bytes(&self) -> usize {
        self.fact.len() + self.trusted.len() + FACT.len() + TRUSTED.len() + 1
    }
}

/// What stands before the facts and before the trusted data of a row.
const FACT: &str = "{\"fact\":";
const TRUSTED: &str = ",\"trusted\":";

/// A check-in as it is kept.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Facts and trusted data, in JSON.
    pub(super) body: RowText,
    /// Where the facts end in it.
    facts_end: usize,
    pub(super) origin: CheckInOrigin,
    pub(super) facts: FactsPresence,
    pub(super) said: SaidPart,
    pub(super) answered: Option<Answered>,
}

/// A check-in as it was received: what must not be stored is still in it, and nothing reads that.
#[derive(Clone, Debug)]
pub(super) struct QueuedRow {
    row: Arc<Row>,
    form: QueuedForm,
    /// The digest of what its answer depends on, once it was asked for.
    mentioned: OnceLock<Option<[u8; 32]>>,
}

/// In which form the facts of a check-in wait.
#[derive(Clone, Debug)]
enum QueuedForm {
    /// As they are stored.
    Stored,
    /// As they were sent, with what is to be stored of them; none is all.
    Sent(Option<CommitForm>),
}

/// Whether a check-in has facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactsPresence {
    /// At least one.
    Some,
    /// None: it does not take the place of a check-in that has some.
    None,
    /// None, and those that decided its answer came from elsewhere.
    Elsewhere,
}

impl FactsPresence {
    fn of(source: NotedFacts, is_empty: impl FnOnce() -> bool) -> Self {
        match source {
            NotedFacts::Elsewhere => Self::Elsewhere,
            NotedFacts::OfNode if is_empty() => Self::None,
            NotedFacts::OfNode => Self::Some,
        }
    }
}

impl Row {
    /// Returns the row of a check-in.
    pub(super) fn of(noted: &Noted<'_>) -> Option<Self> {
        let Noted { time, transaction_uuid, commit, answered, node, facts, said } = noted;
        let facts = FactsPresence::of(*facts, || node.fact.is_empty());
        let mut body = FACT.as_bytes().to_vec();
        serde_json::to_writer(&mut body, &node.fact).ok()?;
        let facts_end = body.len();
        body.extend_from_slice(TRUSTED.as_bytes());
        serde_json::to_writer(&mut body, &node.trusted).ok()?;
        body.push(b'}');
        let origin = origin(*time, transaction_uuid.clone(), *commit);
        let (said, answered) = (*said, answered.clone());
        Some(Self { body: body.into(), facts_end, origin, facts, said, answered })
    }

    /// Returns the same check-in with other facts and trusted data, the texts of objects.
    fn with_texts(&self, fact: &str, trusted: &str) -> Self {
        let (body, facts_end) = body_of(fact, trusted);
        let Self { origin, facts, said, answered, .. } = self;
        let (origin, answered) = (origin.clone(), answered.clone());
        Self { body, facts_end, origin, facts: *facts, said: *said, answered }
    }

    /// Returns the same check-in, of which a part is new: the other one is as it is known, in the text of another row.
    pub(super) fn completed(&self, said: SaidPart, known: Option<&[u8]>) -> Self {
        let known = known.map(RowParts::of).unwrap_or_default();
        let (fact, trusted) = self.texts();
        let mut row = match said {
            SaidPart::Both => return self.clone(),
            SaidPart::Facts => self.with_texts(fact, known.trusted()),
            // Facts that decided its answer are not written in another way: a digest says whether they still are known.
            SaidPart::Trusted if is_same_json(fact, known.fact()) => self.clone(),
            SaidPart::Trusted => self.with_texts(known.fact(), trusted),
        };
        row.facts = FactsPresence::of(NotedFacts::OfNode, || !has_keys(row.texts().0));
        row
    }

    /// Returns whether it says neither facts nor trusted data.
    pub(super) fn is_bare(&self) -> bool {
        is_bare(self.body.len())
    }

    /// Returns what decides what it leaves of what is known, after it has waited for so many microseconds.
    pub(super) fn says(&self, waited: i64) -> SaidCheckIn {
        SaidCheckIn {
            said: self.said,
            time: self.origin.time.as_microsecond(),
            waited,
            has_facts: self.facts == FactsPresence::Some,
            is_bare: self.is_bare(),
        }
    }

    /// Returns what is known of its node after it.
    pub(super) fn known_after(self: Arc<Self>, known: Option<KnownRow>) -> KnownRow {
        match (self.said, known) {
            // A request without facts does not hide facts that are known, nor a bare one trusted data.
            (SaidPart::Both, Some(known))
                if self.facts != FactsPresence::Some
                    && (known.has_facts() || (self.is_bare() && !known.is_bare())) =>
            {
                known
            }
            (SaidPart::Facts, Some(known))
                if self.facts != FactsPresence::Some && known.has_facts() =>
            {
                known
            }
            (SaidPart::Both, _) => KnownRow::Fresh(self),
            (_, known) => {
                let known = known.as_ref().map(KnownRow::body);
                KnownRow::Fresh(Arc::new(self.completed(self.said, known)))
            }
        }
    }

    /// Returns the facts and the trusted data, in JSON.
    pub(super) fn texts(&self) -> (&str, &str) {
        let text = str::from_utf8(&self.body).unwrap_or_default();
        let fact = text.get(FACT.len()..self.facts_end);
        let trusted = text.get(self.facts_end + TRUSTED.len()..text.len().saturating_sub(1));
        (fact.unwrap_or("{}"), trusted.unwrap_or("{}"))
    }

    /// Returns the node with what some paths mention of its facts and trusted data, and with the certname that it
    /// was answered by.
    ///
    /// # Errors
    ///
    /// Returns an error if they are not two objects.
    pub(super) fn mentioned(
        &self,
        name: &str,
        paths: &MentionedPaths,
    ) -> Result<Node, serde_json::Error> {
        let (fact, trusted) = self.texts();
        let (fact, trusted) = paths.keep_text(fact, trusted)?;
        let node = Node { name: name.to_owned(), fact, trusted };
        let certname = self.answered.as_ref().map_or(Certname::AsSent, |it| it.certname);
        Ok(certname.answered_node(node))
    }
}

/// What is known of a node.
#[derive(Debug)]
pub(super) enum KnownRow {
    /// What is stored.
    Stored {
        origin: CheckInOrigin,
        /// Facts and trusted data, in JSON.
        body: Vec<u8>,
        parts: KnownParts,
    },
    /// What waits to be stored.
    Fresh(Arc<Row>),
}

impl KnownRow {
    pub(super) fn origin(&self) -> &CheckInOrigin {
        match self {
            Self::Stored { origin, .. } => origin,
            Self::Fresh(row) => &row.origin,
        }
    }

    /// Returns facts and trusted data, in JSON.
    pub(super) fn body(&self) -> &[u8] {
        match self {
            Self::Stored { body, .. } => body,
            Self::Fresh(row) => &row.body,
        }
    }

    /// Returns what is known after a check-in that has waited for so many microseconds, where several daemons write:
    /// another one may already have written what came later.
    pub(super) fn after(self, row: Arc<Row>, waited: i64, writer: i64) -> Self {
        let says = row.says(waited);
        let Self::Stored { origin, body, mut parts } = self else {
            return row.known_after(Some(self));
        };
        if !parts.overtook(&says, writer) {
            return row.known_after(Some(Self::Stored { origin, body, parts }));
        }
        let Some(part) = parts.latest_part(&says) else {
            return Self::Stored { origin, body, parts };
        };
        let completed = row.completed(part, Some(&body));
        parts.times.note_after(parts.is_bare, part, says.time);
        parts.has_facts = completed.facts == FactsPresence::Some;
        parts.is_bare = completed.is_bare();
        let is_last = parts.times.latest() == Some(says.time);
        let origin = if is_last { row.origin.clone() } else { origin };
        Self::Stored { origin, body: completed.body.to_vec(), parts }
    }

    fn is_bare(&self) -> bool {
        is_bare(self.body().len())
    }

    fn has_facts(&self) -> bool {
        match self {
            Self::Stored { body, .. } => has_keys(RowParts::of(body).fact()),
            Self::Fresh(row) => row.facts == FactsPresence::Some,
        }
    }
}

/// The parts of the text of a row.
#[derive(Debug, Default, Deserialize)]
struct RowParts<'t> {
    #[serde(default, borrow)]
    fact: Option<&'t RawValue>,
    #[serde(default, borrow)]
    trusted: Option<&'t RawValue>,
    #[serde(skip)]
    is_damaged: bool,
}

impl<'t> RowParts<'t> {
    /// Takes a row apart. What cannot be read is not stored any more, which is another thing than nothing.
    fn of(body: &'t [u8]) -> Self {
        serde_json::from_slice(body).unwrap_or(Self { is_damaged: true, ..Self::default() })
    }

    fn text(&self, part: Option<&'t RawValue>) -> &'t str {
        part.map_or(if self.is_damaged { LEFT_OUT } else { "{}" }, RawValue::get)
    }

    fn fact(&self) -> &'t str {
        self.text(self.fact)
    }

    fn trusted(&self) -> &'t str {
        self.text(self.trusted)
    }
}

/// Returns whether a text of so many bytes has neither facts nor trusted data.
pub(super) fn is_bare(bytes: usize) -> bool {
    bytes <= FACT.len() + "{}".len() + TRUSTED.len() + "{}}".len()
}

/// Returns whether the text of an object has a key.
pub(crate) fn has_keys(object: &str) -> bool {
    // An object without a string has none.
    object.contains('"')
}

/// Returns whether two texts are the same JSON.
fn is_same_json(one: &str, other: &str) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    one == other || read(one).is_some_and(|it| Some(it) == read(other))
}

impl From<Row> for QueuedRow {
    fn from(row: Row) -> Self {
        Self { row: Arc::new(row), form: QueuedForm::Stored, mentioned: OnceLock::new() }
    }
}

impl From<Received<'_>> for QueuedRow {
    fn from(received: Received<'_>) -> Self {
        let facts = FactsPresence::of(NotedFacts::OfNode, || !received.has_facts());
        let Received {
            time, transaction_uuid, commit, answered, fact, trusted, said, form, ..
        } = received;
        // Written in one way, so that the length says whether there is something.
        let [fact, trusted] = [fact, trusted].map(|it| if has_keys(it) { it } else { "{}" });
        let (body, facts_end) = body_of(fact, trusted);
        let origin = origin(time, transaction_uuid.map(str::to_owned), commit);
        let row = Arc::new(Row { body, facts_end, origin, facts, said, answered });
        Self { row, form: QueuedForm::Sent(form), mentioned: OnceLock::new() }
    }
}

impl QueuedRow {
    /// Returns how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.row.body.len()
    }

    /// Returns where it comes from.
    pub(super) fn origin(&self) -> &CheckInOrigin {
        &self.row.origin
    }

    /// Returns whether it has facts.
    pub(super) fn facts(&self) -> FactsPresence {
        self.row.facts
    }

    /// Returns what of the node it says.
    pub(super) fn said(&self) -> SaidPart {
        self.row.said
    }

    /// Returns whether one of the same node and part that came before says more.
    pub(super) fn says_less_than(&self, earlier: &Self) -> bool {
        let has_facts = |it: &Self| it.facts() == FactsPresence::Some;
        let is_barer = self.row.is_bare() && !earlier.row.is_bare();
        match self.said() {
            SaidPart::Trusted => false,
            SaidPart::Facts => has_facts(earlier) && !has_facts(self),
            SaidPart::Both => !has_facts(self) && (has_facts(earlier) || is_barer),
        }
    }

    /// Returns whether nothing that was known before it counts.
    pub(super) fn is_whole(&self) -> bool {
        self.said() == SaidPart::Both && self.facts() == FactsPresence::Some
    }

    /// Returns whether another of the node with a name has the same facts and trusted data that its answer depends on.
    pub(super) fn mentions_as(&self, other: &Self, name: &str) -> bool {
        self.mentioned(name).is_some_and(|it| other.mentioned(name) == Some(it))
    }

    /// Returns a digest of the facts and trusted data of the node with a name that its answer depends on; none if they are
    /// not known. It is found out once.
    pub(super) fn mentioned(&self, name: &str) -> Option<[u8; 32]> {
        *self.mentioned.get_or_init(|| {
            let Node { fact, trusted, .. } =
                self.row.mentioned(name, self.answered()?.snapshot.mentioned()).ok()?;
            let text = serde_json::to_vec(&FactsBody { fact, trusted }).ok()?;
            Some(Sha256::digest(text).into())
        })
    }

    /// Returns what it was answered.
    pub(super) fn answered(&self) -> Option<&Answered> {
        self.row.answered.as_ref()
    }

    /// Returns it as it may be stored and read. Masking takes longer than classifying, so it is not done
    /// before that.
    pub(super) fn stored(&self) -> Arc<Row> {
        let QueuedForm::Sent(form) = &self.form else { return Arc::clone(&self.row) };
        let (fact, trusted) = self.row.texts();
        let [fact, trusted] = texts_as_sent(fact, trusted);
        let stored = match form {
            Some(form) => form.texts(&fact, &trusted),
            None => [Cow::Borrowed(&*fact), Cow::Borrowed(&*trusted)],
        };
        let is_same = |text: &Cow<'_, str>| matches!(text, Cow::Borrowed(_));
        if is_same(&fact) && is_same(&trusted) && stored.iter().all(is_same) {
            return Arc::clone(&self.row);
        }
        let [fact, trusted] = stored;
        Arc::new(self.row.with_texts(&fact, &trusted))
    }
}

/// Returns the text of a row, and where the facts end in it.
fn body_of(fact: &str, trusted: &str) -> (RowText, usize) {
    (RowText::of(&[FACT, fact, TRUSTED, trusted, "}"]), FACT.len() + fact.len())
}

fn origin(
    time: Timestamp,
    transaction_uuid: Option<String>,
    commit: Option<CommitId>,
) -> CheckInOrigin {
    // As exact as the store: what waits is the same as what is read later.
    let time = Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time);
    CheckInOrigin { time, transaction_uuid, commit }
}
