//! Answers and path sets, each kept once, by content.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sqlx::AnyConnection;

use super::super::database::Database;
use super::super::error::StoreError;
use super::super::prepared::{AnswerContent, PathSet, PreparedAnswer, PreparedNode};
use super::super::sql::{Statement, bytes, integer};
use super::super::totals::lock_totals;
use crate::answer::{AnswerDigest, NodeState};

/// How many groups and classes of answers are written in one transaction, unless one answer has more.
const ROWS: usize = 10_000;

/// The ids of the answers and path sets of a batch.
#[derive(Debug, Default)]
pub(super) struct ContentIds {
    answers: HashMap<Vec<u8>, i64>,
    path_sets: HashMap<Vec<u8>, i64>,
}

/// Returns the number that stands for a state.
pub(in crate::store) fn state_number(state: NodeState) -> i64 {
    match state {
        NodeState::Classified => 0,
        NodeState::Conflict => 1,
        NodeState::Error => 2,
    }
}

impl ContentIds {
    /// Writes the answers and path sets of a batch that are not there yet.
    pub(super) async fn save(
        connection: &mut AnyConnection,
        nodes: &[PreparedNode],
    ) -> Result<Self, sqlx::Error> {
        let answers = distinct(nodes);
        let paths: BTreeMap<&[u8], &Arc<PathSet>> =
            given(nodes).map(|it| (it.paths.digest.as_slice(), &it.paths)).collect();
        let mut contents = Self::default();
        if answers.is_empty() {
            return Ok(contents);
        }
        contents.answers = known_answers(connection, answers.keys().copied()).await?;
        for (digest, content) in answers {
            if !contents.answers.contains_key(digest) {
                let id = save_answer(connection, content).await?;
                contents.answers.insert(digest.to_vec(), id);
            }
        }
        let known = Statement::new("SELECT id, digest FROM path_sets WHERE digest IN ")
            .list(paths.keys().map(|it| it.to_vec()));
        contents.path_sets = ids(connection, known).await?;
        for (digest, paths) in paths {
            if !contents.path_sets.contains_key(digest) {
                let insert = Statement::new("INSERT INTO path_sets (digest, paths)")
                    .rows([vec![digest.to_vec().into(), paths.text.as_str().into()]])
                    .text(" RETURNING id, digest");
                contents.path_sets.extend(ids(connection, insert).await?);
            }
        }
        Ok(contents)
    }

    pub(super) fn answer(&self, content: &AnswerContent) -> Option<i64> {
        self.answers.get(content.digest.as_bytes().as_slice()).copied()
    }

    pub(super) fn path_set(&self, paths: &PathSet) -> Option<i64> {
        self.path_sets.get(&paths.digest).copied()
    }
}

impl Database {
    /// Writes the answers of a batch that are not there yet, if they are large, in transactions of their own:
    /// one operation takes no longer than it may, and what it wrote stays when the next one fails.
    pub(in crate::store) fn save_large_answers(
        &self,
        nodes: &[PreparedNode],
    ) -> Result<(), StoreError> {
        let mut answers = distinct(nodes);
        if answers.values().map(|it| it.rows()).sum::<usize>() <= ROWS {
            return Ok(());
        }
        let failed = self.connections.failed("written");
        let known = self.connections.write(async |connection| {
            known_answers(connection, answers.keys().copied()).await.map_err(&failed)
        })?;
        answers.retain(|digest, _| !known.contains_key(*digest));
        let mut missing: Vec<&Arc<AnswerContent>> = answers.into_values().collect();
        while !missing.is_empty() {
            let mut rows = 0;
            let mut fits = |it: &&Arc<AnswerContent>| {
                rows += it.rows();
                rows <= ROWS
            };
            let count = missing.iter().take_while(|it| fits(it)).count().max(1);
            let some: Vec<_> = missing.drain(..count).collect();
            self.connections.write(async |connection| {
                self.save_answers(connection, &some).await.map_err(&failed)
            })?;
        }
        Ok(())
    }

    async fn save_answers(
        &self,
        connection: &mut AnyConnection,
        answers: &[&Arc<AnswerContent>],
    ) -> Result<(), sqlx::Error> {
        lock_totals(connection, &self.connections.dialect).await?;
        // Another daemon may have been faster.
        let digests = answers.iter().map(|it| it.digest.as_bytes().as_slice());
        let known = known_answers(connection, digests).await?;
        for content in answers {
            if !known.contains_key(content.digest.as_bytes().as_slice()) {
                save_answer(connection, content).await?;
            }
        }
        Ok(())
    }
}

fn given(nodes: &[PreparedNode]) -> impl Iterator<Item = &PreparedAnswer> {
    nodes.iter().flat_map(|it| &it.check_ins).filter_map(|it| it.answer.as_ref())
}

/// Returns the answers of a batch, by digest.
fn distinct(nodes: &[PreparedNode]) -> BTreeMap<&[u8], &Arc<AnswerContent>> {
    given(nodes).map(|it| (it.content.digest.as_bytes().as_slice(), &it.content)).collect()
}

/// Returns the ids of those answers that are kept, by digest.
async fn known_answers(
    connection: &mut AnyConnection,
    digests: impl Iterator<Item = &[u8]>,
) -> Result<HashMap<Vec<u8>, i64>, sqlx::Error> {
    let known = Statement::new("SELECT id, digest FROM answers WHERE digest IN ");
    ids(connection, known.list(digests.map(<[u8]>::to_vec))).await
}

async fn ids(
    connection: &mut AnyConnection,
    statement: Statement,
) -> Result<HashMap<Vec<u8>, i64>, sqlx::Error> {
    let rows = statement.fetch(connection).await?;
    rows.iter().map(|row| Ok((bytes(row, 1)?, integer(row, 0)?))).collect()
}

async fn save_answer(
    connection: &mut AnyConnection,
    content: &AnswerContent,
) -> Result<i64, sqlx::Error> {
    let AnswerContent { digest, state, environment, groups, classes, body } = content;
    let insert = Statement::new("INSERT INTO answers (digest, state, environment, body)")
        .rows([vec![
            digest.as_bytes().to_vec().into(),
            state_number(*state).into(),
            environment.clone().into(),
            body.clone().into(),
        ]])
        .text(" RETURNING id");
    let Some(row) = insert.first(connection).await? else { return Err(sqlx::Error::RowNotFound) };
    let id = integer(&row, 0)?;
    for (into, names) in [
        ("INSERT INTO answer_groups (group_id, answer)", groups),
        ("INSERT INTO answer_classes (class, answer)", classes),
    ] {
        for some in names.chunks(1000) {
            let rows = some.iter().map(|it| vec![it.as_str().into(), id.into()]);
            let insert = Statement::new(into).rows(rows).text(" ON CONFLICT DO NOTHING");
            insert.execute(connection).await?;
        }
    }
    Ok(id)
}

/// Returns the digest of an answer that is kept.
pub(super) async fn digest_of(
    connection: &mut AnyConnection,
    answer: i64,
) -> Result<Option<AnswerDigest>, sqlx::Error> {
    let found = Statement::new("SELECT digest FROM answers WHERE id = ").value(answer);
    let Some(row) = found.first(connection).await? else { return Ok(None) };
    Ok(bytes(&row, 0)?.try_into().ok().map(AnswerDigest::from_bytes))
}
