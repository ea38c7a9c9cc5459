//! The row of a node.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::super::check_in::{Row, is_bare};
use super::super::compression::decompress;
use super::super::prepared::{PreparedAnswer, PreparedCheckIn, PreparedFacts};
use super::super::said::{KnownParts, PartTimes, SaidPart};
use super::super::sql::{
    SqlValue, Statement, bytes, integer, maybe_bytes, maybe_integer, maybe_text, text,
};
use super::super::tally::CountedAnswer;
use super::answers::ContentIds;

/// What is kept of a node beside its facts.
#[derive(Clone, Debug)]
pub(super) struct NodeRow {
    /// None until it is saved for the first time.
    pub(super) id: Option<i64>,
    pub(super) first_seen: i64,
    pub(super) last_seen: i64,
    pub(super) is_settled: bool,
    pub(super) commit: Option<Vec<u8>>,
    pub(super) answer: Option<i64>,
    pub(super) since: Option<i64>,
    /// When it was last answered.
    pub(super) answered_at: Option<i64>,
    pub(super) writer: i64,
    /// When it said what is kept of it.
    pub(super) said: PartTimes,
    checked_in_commit: Option<Vec<u8>>,
    transaction_uuid: Option<String>,
    pub(super) has_facts: bool,
    raw_bytes: i64,
    stored_bytes: i64,
    facts_hash: i64,
    /// What rules mentioned when the node was last answered, as far as that is known; facts that were submitted
    /// since then leave it as it is.
    pub(super) path_set: Option<i64>,
    pub(super) inputs: Option<Arc<Vec<u8>>>,
    /// Tells out of which facts the inputs were cut.
    inputs_hash: Option<i64>,
    /// The facts that are to be written, if they changed.
    fresh_facts: Option<Arc<PreparedFacts>>,
}

/// The columns of a row, in the order in which they are read and written.
const COLUMNS: &str = "name, first_seen, last_seen, settled, commit_id, answer, since, writer, \
     checked_in, checked_in_commit, transaction_uuid, has_facts, raw_bytes, stored_bytes, \
     facts_hash, path_set, inputs, inputs_hash, facts_at, trusted_at, answered_at";

impl NodeRow {
    /// Returns the row of a node that was first seen at a time.
    pub(super) fn new(time: i64) -> Self {
        Self {
            id: None,
            first_seen: time,
            last_seen: time,
            is_settled: false,
            commit: None,
            answer: None,
            since: None,
            answered_at: None,
            writer: 0,
            said: PartTimes::default(),
            checked_in_commit: None,
            transaction_uuid: None,
            has_facts: false,
            raw_bytes: 0,
            stored_bytes: 0,
            facts_hash: 0,
            path_set: None,
            inputs: None,
            inputs_hash: None,
            fresh_facts: None,
        }
    }

    /// Returns the facts of this batch, if there are some.
    pub(super) fn unsaved_facts(&self) -> Option<&PreparedFacts> {
        self.fresh_facts.as_deref()
    }

    /// Returns the commit and the answer under which the node is counted.
    pub(super) fn counted(&self) -> CountedAnswer {
        (self.commit.clone(), self.answer)
    }

    /// Returns how many bytes its facts take.
    pub(super) fn bytes(&self) -> i64 {
        self.stored_bytes
    }

    /// Returns what decides what a check-in leaves of it.
    pub(super) fn parts(&self) -> KnownParts {
        KnownParts {
            writer: self.writer,
            last_seen: self.last_seen,
            times: self.said,
            has_facts: self.has_facts,
            is_bare: usize::try_from(self.raw_bytes).is_ok_and(is_bare),
        }
    }

    /// Returns when the node was last answered, as far as that is known.
    pub(super) fn last_answered(&self) -> Option<i64> {
        self.answer?;
        // What is known last are not facts that the node only submitted; a version that does not note the time may have
        // written the row.
        let is_last = self.checked_in() < self.last_seen || self.checked_in_commit.is_some();
        if is_last { Some(self.last_seen) } else { self.answered_at.max(self.since) }
    }

    /// Returns when it said the last of its facts and trusted data.
    pub(super) fn checked_in(&self) -> i64 {
        self.said.latest().unwrap_or(self.first_seen)
    }

    /// Returns facts and trusted data of which a part is new; the other one is as it is known.
    pub(super) async fn completed(
        &self,
        connection: &mut AnyConnection,
        facts: &Arc<PreparedFacts>,
        said: SaidPart,
    ) -> Result<Arc<PreparedFacts>, sqlx::Error> {
        if said == SaidPart::Both {
            return Ok(Arc::clone(facts));
        }
        if let Some(known) = self.unsaved_facts() {
            return Ok(Arc::new(facts.completed(said, Some(known.text()))));
        }
        let Some(id) = self.id else { return Ok(Arc::new(facts.completed(said, None))) };
        let select = Statement::new("SELECT body FROM facts WHERE node = ").value(id);
        let body = select.first(connection).await?.map(|it| bytes(&it, 0)).transpose()?;
        let most = usize::try_from(self.raw_bytes).unwrap_or_default();
        // An empty text, as one that cannot be read, counts as left out.
        let known = body.map(|it| decompress(&it, most).unwrap_or_default());
        Ok(Arc::new(facts.completed(said, known.as_deref())))
    }

    /// Replaces what the node said last, by facts and trusted data that are as a check-in left them.
    pub(super) fn take_facts(
        &mut self,
        check_in: &PreparedCheckIn,
        facts: &Arc<PreparedFacts>,
        said: SaidPart,
    ) -> std::io::Result<()> {
        self.said.note_after(self.parts().is_bare, said, check_in.time());
        self.take_origin(check_in);
        self.replace_facts(facts)
    }

    /// Takes a part of a check-in that came before the last: the other one stays, with where it comes from.
    pub(super) fn take_late_facts(
        &mut self,
        check_in: &PreparedCheckIn,
        facts: &Arc<PreparedFacts>,
        said: SaidPart,
    ) -> std::io::Result<()> {
        self.said.note_after(self.parts().is_bare, said, check_in.time());
        if self.said.latest() == Some(check_in.time()) {
            self.take_origin(check_in);
        }
        self.replace_facts(facts)
    }

    fn take_origin(&mut self, check_in: &PreparedCheckIn) {
        let Row { origin, .. } = &*check_in.row;
        self.checked_in_commit = origin.commit.map(|it| it.as_bytes().to_vec());
        // PostgreSQL has no text with a NUL, and no agent sends one.
        self.transaction_uuid = origin.transaction_uuid.clone().map(|it| it.replace('\0', ""));
    }

    fn replace_facts(&mut self, facts: &Arc<PreparedFacts>) -> std::io::Result<()> {
        self.has_facts = facts.has_facts();
        if self.id.is_none() || self.facts_hash != facts.hash {
            let stored = facts.compressed()?.len();
            self.stored_bytes = i64::try_from(stored).unwrap_or(i64::MAX);
            self.fresh_facts = Some(Arc::clone(facts));
        }
        self.facts_hash = facts.hash;
        self.raw_bytes = facts.raw_bytes;
        Ok(())
    }

    /// Takes back the facts of an earlier state of the row.
    pub(super) fn keep_facts_of(&mut self, earlier: Self) {
        *self = Self {
            said: earlier.said,
            checked_in_commit: earlier.checked_in_commit,
            transaction_uuid: earlier.transaction_uuid,
            has_facts: earlier.has_facts,
            raw_bytes: earlier.raw_bytes,
            stored_bytes: earlier.stored_bytes,
            facts_hash: earlier.facts_hash,
            fresh_facts: None,
            ..std::mem::replace(self, Self::new(0))
        };
    }

    /// Replaces what decided the last answer.
    pub(super) fn take_inputs(
        &mut self,
        check_in: &PreparedCheckIn,
        answer: &PreparedAnswer,
        contents: &ContentIds,
    ) {
        let known = check_in.knows_facts(&answer.paths.paths).then_some(answer);
        self.inputs = known.map(|it| Arc::clone(&it.inputs));
        self.path_set = known.and_then(|it| contents.path_set(&it.paths));
        self.inputs_hash = known.map(|_| check_in.facts.hash);
    }

    /// Returns whether the facts that are kept are those of the last answer.
    pub(super) fn has_facts_of_answer(&self) -> bool {
        self.inputs_hash == Some(self.facts_hash)
    }

    /// Reads the rows of nodes, by name.
    pub(super) async fn load(
        connection: &mut AnyConnection,
        names: &[&str],
    ) -> Result<HashMap<String, Self>, sqlx::Error> {
        let select = Statement::new("SELECT ")
            .text(COLUMNS)
            .text(", id FROM nodes WHERE name IN ")
            .list(names.iter().copied());
        let rows = select.fetch(connection).await?;
        rows.iter().map(|row| Ok((text(row, 0)?, Self::read(row)?))).collect()
    }

    fn read(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: Some(integer(row, 21)?),
            first_seen: integer(row, 1)?,
            last_seen: integer(row, 2)?,
            is_settled: integer(row, 3)? != 0,
            commit: maybe_bytes(row, 4)?,
            answer: maybe_integer(row, 5)?,
            since: maybe_integer(row, 6)?,
            answered_at: maybe_integer(row, 20)?,
            writer: integer(row, 7)?,
            said: PartTimes::of_row(
                integer(row, 8)?,
                maybe_integer(row, 18)?,
                maybe_integer(row, 19)?,
            ),
            checked_in_commit: maybe_bytes(row, 9)?,
            transaction_uuid: maybe_text(row, 10)?,
            has_facts: integer(row, 11)? != 0,
            raw_bytes: integer(row, 12)?,
            stored_bytes: integer(row, 13)?,
            facts_hash: integer(row, 14)?,
            path_set: maybe_integer(row, 15)?,
            inputs: maybe_bytes(row, 16)?.map(Arc::new),
            inputs_hash: maybe_integer(row, 17)?,
            fresh_facts: None,
        })
    }

    fn values(&self, name: &str) -> Vec<SqlValue> {
        vec![
            name.into(),
            self.first_seen.into(),
            self.last_seen.into(),
            i64::from(self.is_settled).into(),
            self.commit.clone().into(),
            self.answer.into(),
            self.since.into(),
            self.writer.into(),
            self.checked_in().into(),
            self.checked_in_commit.clone().into(),
            self.transaction_uuid.clone().into(),
            i64::from(self.has_facts).into(),
            self.raw_bytes.into(),
            self.stored_bytes.into(),
            self.facts_hash.into(),
            self.path_set.into(),
            self.inputs.as_ref().map(|it| it.to_vec()).into(),
            self.inputs_hash.into(),
            self.said.facts.into(),
            self.said.trusted.into(),
            self.answered_at.into(),
        ]
    }

    /// Writes rows, and the facts among them that changed; gives new nodes their ids.
    pub(super) async fn save(
        connection: &mut AnyConnection,
        rows: &mut BTreeMap<&str, Self>,
    ) -> Result<(), sqlx::Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let upsert = Statement::new("INSERT INTO nodes (")
            .text(COLUMNS)
            .text(")")
            .rows(rows.iter().map(|(name, row)| row.values(name)))
            .text(UPSERT);
        for saved in upsert.fetch(connection).await? {
            if let Some(row) = rows.get_mut(text(&saved, 0)?.as_str()) {
                row.id = Some(integer(&saved, 1)?);
            }
        }
        Self::save_facts(connection, rows).await
    }

    /// Writes the facts that changed of the nodes that have ids.
    pub(super) async fn save_facts(
        connection: &mut AnyConnection,
        rows: &mut BTreeMap<&str, Self>,
    ) -> Result<(), sqlx::Error> {
        let fresh = rows.values().filter_map(|it| it.id.zip(it.fresh_facts.as_ref()));
        let fresh = fresh.map(|(id, it)| Ok(vec![id.into(), it.compressed()?.to_vec().into()]));
        let fresh: Vec<Vec<SqlValue>> = fresh.collect::<std::io::Result<_>>()?;
        if fresh.is_empty() {
            return Ok(());
        }
        let facts = Statement::new("INSERT INTO facts (node, body)")
            .rows(fresh)
            .text(" ON CONFLICT (node) DO UPDATE SET body = excluded.body");
        facts.execute(connection).await?;
        for row in rows.values_mut().filter(|it| it.id.is_some()) {
            row.fresh_facts = None;
        }
        Ok(())
    }
}

const UPSERT: &str = " ON CONFLICT (name) DO UPDATE SET first_seen = excluded.first_seen, \
     last_seen = excluded.last_seen, settled = excluded.settled, \
     commit_id = excluded.commit_id, answer = excluded.answer, since = excluded.since, \
     writer = excluded.writer, checked_in = excluded.checked_in, \
     checked_in_commit = excluded.checked_in_commit, \
     transaction_uuid = excluded.transaction_uuid, has_facts = excluded.has_facts, \
     raw_bytes = excluded.raw_bytes, stored_bytes = excluded.stored_bytes, \
     facts_hash = excluded.facts_hash, path_set = excluded.path_set, inputs = excluded.inputs, \
     inputs_hash = excluded.inputs_hash, facts_at = excluded.facts_at, \
     trusted_at = excluded.trusted_at, answered_at = excluded.answered_at \
     RETURNING name, id";
