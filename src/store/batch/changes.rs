//! The changes of answers in a batch.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sqlx::AnyConnection;

use super::super::check_in::Certname;
use super::super::compression::decompress;
use super::super::prepared::{Preparation, PreparedAnswer, PreparedCheckIn};
use super::super::sql::{SqlValue, Statement, bytes, integer, text};
use super::super::transition::{AnswerBefore, explain, read_commit};
use super::answers::digest_of;
use super::node_row::NodeRow;
use crate::answer::{AnswerDigest, ChangeCause, GivenAnswer};
use crate::mentioned::MentionedPaths;

/// A change that is to be written.
#[derive(Debug)]
pub(super) struct FreshChange {
    pub(super) time: i64,
    pub(super) commit_before: Option<Vec<u8>>,
    pub(super) commit_after: Vec<u8>,
    pub(super) answer_before: Option<i64>,
    pub(super) answer_after: i64,
    pub(super) cause: ChangeCause,
    pub(super) facts: Option<Vec<u8>>,
}

impl FreshChange {
    /// Returns the row of a change of a node.
    pub(super) fn values(self, node: i64) -> Vec<SqlValue> {
        vec![
            SqlValue::from(node),
            self.time.into(),
            self.commit_before.into(),
            self.commit_after.into(),
            self.answer_before.into(),
            self.answer_after.into(),
            cause_number(self.cause).into(),
            self.facts.into(),
        ]
    }
}

/// Returns the number that stands for a cause.
pub(in crate::store) fn cause_number(cause: ChangeCause) -> i64 {
    match cause {
        ChangeCause::First => 0,
        ChangeCause::Commit => 1,
        ChangeCause::Facts => 2,
        ChangeCause::Both => 3,
    }
}

/// Finds the causes of changes; remembers what it reads for that.
#[derive(Debug)]
pub(super) struct CauseFinder<'p> {
    preparation: &'p Preparation,
    digests: HashMap<i64, Option<AnswerDigest>>,
    path_sets: HashMap<i64, Option<MentionedPaths>>,
}

impl<'p> CauseFinder<'p> {
    pub(super) fn new(preparation: &'p Preparation) -> Self {
        Self { preparation, digests: HashMap::new(), path_sets: HashMap::new() }
    }

    /// Returns the change from what is known of a node to an answer at a time.
    pub(super) async fn change(
        &mut self,
        connection: &mut AnyConnection,
        name: &str,
        row: &NodeRow,
        check_in: &PreparedCheckIn,
        answer: &PreparedAnswer,
        (answer_after, time): (i64, i64),
    ) -> Result<FreshChange, sqlx::Error> {
        let before = self.before(connection, row, answer).await?;
        let (cause, facts) = explain(name, before.as_ref(), check_in, answer, self.preparation);
        Ok(FreshChange {
            time,
            commit_before: row.commit.clone(),
            commit_after: answer.snapshot.commit.as_bytes().to_vec(),
            answer_before: row.answer,
            answer_after,
            cause,
            facts,
        })
    }

    async fn before(
        &mut self,
        connection: &mut AnyConnection,
        row: &NodeRow,
        answer: &PreparedAnswer,
    ) -> Result<Option<AnswerBefore>, sqlx::Error> {
        let Some(id) = row.answer else { return Ok(None) };
        let digest = match self.digests.get(&id) {
            Some(known) => *known,
            None => {
                let digest = digest_of(connection, id).await?;
                self.digests.insert(id, digest);
                digest
            }
        };
        let commit = row.commit.as_deref().and_then(read_commit);
        let (Some(digest), Some(commit)) = (digest, commit) else { return Ok(None) };
        let has_all = match row.path_set {
            Some(set) => self.covers(connection, set, answer).await?,
            None => false,
        };
        let (facts, certname) = match &row.inputs {
            // They have the certname that was answered.
            Some(inputs) if has_all => (Some(Arc::clone(inputs)), Certname::AsSent),
            // They are as they were sent: one client asks the same way each time.
            _ if row.has_facts_of_answer() => {
                (whole_facts(connection, row).await?.map(Arc::new), answer.certname)
            }
            // What was submitted since then decided nothing.
            _ => (None, Certname::AsSent),
        };
        Ok(Some(AnswerBefore { given: GivenAnswer { digest, commit }, facts, certname }))
    }

    /// Returns whether inputs that were cut for a set of paths have all that the rules of a snapshot mention.
    async fn covers(
        &mut self,
        connection: &mut AnyConnection,
        set: i64,
        answer: &PreparedAnswer,
    ) -> Result<bool, sqlx::Error> {
        let known = match self.path_sets.entry(set) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let found = Statement::new("SELECT paths FROM path_sets WHERE id = ").value(set);
                let found = found.first(connection).await?;
                let paths = found.as_ref().map(|it| text(it, 0)).transpose()?;
                unknown.insert(paths.and_then(|it| it.parse().ok()))
            }
        };
        Ok(known.as_ref().is_some_and(|it| it.covers(&answer.paths.paths)))
    }
}

/// Returns the facts and trusted data that are kept of a node.
async fn whole_facts(
    connection: &mut AnyConnection,
    row: &NodeRow,
) -> Result<Option<Vec<u8>>, sqlx::Error> {
    if let Some(fresh) = row.unsaved_facts() {
        return Ok(Some(fresh.text().to_vec()));
    }
    let Some(id) = row.id else { return Ok(None) };
    let found = Statement::new(
        "SELECT f.body, n.raw_bytes FROM facts f JOIN nodes n ON n.id = f.node WHERE f.node = ",
    );
    let Some(found) = found.value(id).first(connection).await? else { return Ok(None) };
    let raw = usize::try_from(integer(&found, 1)?).unwrap_or_default();
    Ok(decompress(&bytes(&found, 0)?, raw).ok())
}

/// Writes the changes of nodes that are saved.
pub(super) async fn save(
    connection: &mut AnyConnection,
    rows: &BTreeMap<&str, NodeRow>,
    changes: Vec<(&str, FreshChange)>,
) -> Result<(), sqlx::Error> {
    let values =
        changes.into_iter().filter_map(|(name, change)| Some(change.values(rows.get(name)?.id?)));
    insert(connection, values.collect()).await
}

/// Inserts rows of changes.
pub(super) async fn insert(
    connection: &mut AnyConnection,
    values: Vec<Vec<SqlValue>>,
) -> Result<(), sqlx::Error> {
    for some in values.chunks(1000) {
        let insert = Statement::new(
            "INSERT INTO changes (node, time, commit_before, commit_after, answer_before, \
             answer_after, cause, facts)",
        );
        insert.rows(some.to_vec()).execute(connection).await?;
    }
    Ok(())
}
