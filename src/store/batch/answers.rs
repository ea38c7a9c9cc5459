//! Answers and path sets, each kept once, by content.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sqlx::AnyConnection;

use super::super::prepared::{AnswerContent, PathSet, PreparedNode};
use super::super::sql::{Statement, bytes, integer};
use crate::answer::{AnswerDigest, NodeState};

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
        let given =
            || nodes.iter().flat_map(|it| &it.check_ins).filter_map(|it| it.answer.as_ref());
        let answers: BTreeMap<&[u8], &Arc<AnswerContent>> =
            given().map(|it| (it.content.digest.as_bytes().as_slice(), &it.content)).collect();
        let paths: BTreeMap<&[u8], &Arc<PathSet>> =
            given().map(|it| (it.paths.digest.as_slice(), &it.paths)).collect();
        let mut contents = Self::default();
        if answers.is_empty() {
            return Ok(contents);
        }
        let known = Statement::new("SELECT id, digest FROM answers WHERE digest IN ")
            .list(answers.keys().map(|it| it.to_vec()));
        contents.answers = ids(connection, known).await?;
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
