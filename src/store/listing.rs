//! Lists of nodes, and what is known of one.

use std::collections::HashMap;

use jiff::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::batch::state_number;
use super::compression::unpack;
use super::database::Database;
use super::error::StoreError;
use super::sql::{Statement, bytes, integer, maybe_bytes, maybe_integer, text};
use super::transition::read_commit;
use super::view::{AnswerSummary, NodeFilter, NodePage, NodeRange, NodeSummary};
use crate::answer::AnswerRecord;

/// How many bytes of JSON an answer may have to be read.
pub(super) const ANSWER: usize = 64 << 20;

/// Answers by their ids.
pub(super) type Answers = HashMap<i64, AnswerRecord>;

impl Database {
    /// Returns the nodes of a part of a list, by name, and how many the whole list has.
    pub(super) fn nodes(
        &self,
        filter: &NodeFilter,
        range: NodeRange,
    ) -> Result<NodePage, StoreError> {
        self.connections.read_together(async |connection| {
            let all = conditions(Statement::new("SELECT COUNT(*) FROM nodes n"), filter);
            let total = all.first(connection).await?;
            let total = total.as_ref().map_or(Ok(0), |it| integer(it, 0))?;
            let columns = "SELECT n.name, n.last_seen, n.commit_id, n.answer, n.since FROM nodes n";
            let number = |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
            let page = conditions(Statement::new(columns), filter)
                .text(" ORDER BY n.name LIMIT ")
                .value(number(range.limit))
                .text(" OFFSET ")
                .value(number(range.offset));
            let rows = page.fetch(connection).await?;
            let mut ids = Vec::new();
            for row in &rows {
                ids.extend(maybe_integer(row, 3)?);
            }
            let answers = answers(connection, ids).await?;
            let nodes = rows.iter().map(|row| summary(row, &answers)).collect::<Result<_, _>>()?;
            Ok(NodePage { total: u64::try_from(total).unwrap_or_default(), nodes })
        })
    }

    /// Returns when a node was seen last, its commit, and its answer.
    pub(super) fn state(&self, name: &str) -> Result<Option<KnownState>, StoreError> {
        self.connections.read_together(async |connection| {
            let columns =
                "SELECT name, last_seen, commit_id, answer, since FROM nodes WHERE name = ";
            let found = Statement::new(columns).value(name).first(connection).await?;
            let Some(row) = found else { return Ok(None) };
            let id = maybe_integer(&row, 3)?;
            let mut known = answers(connection, id.into_iter().collect()).await?;
            let answer = id.and_then(|it| known.remove(&it));
            let since = maybe_integer(&row, 4)?.map(time).transpose()?;
            Ok(Some(KnownState {
                last_seen: time(integer(&row, 1)?)?,
                commit: maybe_bytes(&row, 2)?,
                answer: answer.zip(since),
            }))
        })
    }
}

/// What is known of a node beside its facts.
#[derive(Debug)]
pub(super) struct KnownState {
    pub(super) last_seen: Timestamp,
    pub(super) commit: Option<Vec<u8>>,
    pub(super) answer: Option<(AnswerRecord, Timestamp)>,
}

fn conditions(mut statement: Statement, filter: &NodeFilter) -> Statement {
    let NodeFilter { name_part, groups, class, environment, commit, state, silent_since } = filter;
    let mut word = " WHERE ";
    let mut and = |statement: Statement| statement.text(std::mem::replace(&mut word, " AND "));
    if let Some(part) = name_part {
        let pattern = format!("%{}%", escaped(&part.to_lowercase()));
        statement = and(statement).text("LOWER(n.name) LIKE ").value(pattern.as_str());
        statement = statement.text(" ESCAPE '!'");
    }
    if let Some(groups) = groups {
        statement = and(statement).text("n.answer IN (SELECT answer FROM answer_groups WHERE ");
        statement = match groups.is_empty() {
            // An empty list is not SQL everywhere.
            true => statement.text("1 = 0)"),
            false => {
                let ids =
                    groups.iter().map(|it| super::sql::SqlValue::from(it.to_string().as_str()));
                statement.text("group_id IN ").list(ids).text(")")
            }
        };
    }
    if let Some(class) = class {
        statement =
            and(statement).text("n.answer IN (SELECT answer FROM answer_classes WHERE class = ");
        statement = statement.value(class.as_str()).text(")");
    }
    if let Some(environment) = environment {
        statement = and(statement).text("n.answer IN (SELECT id FROM answers WHERE environment = ");
        statement = statement.value(environment.as_str()).text(")");
    }
    if let Some(commit) = commit {
        statement = and(statement).text("n.commit_id = ").value(commit.as_bytes().to_vec());
    }
    if let Some(state) = state {
        statement = and(statement).text("n.answer IN (SELECT id FROM answers WHERE state = ");
        statement = statement.value(state_number(*state)).text(")");
    }
    if let Some(time) = silent_since {
        statement = and(statement).text("n.last_seen < ").value(time.as_microsecond());
    }
    statement
}

/// Escapes what has a meaning in a pattern.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '!' | '%' | '_') {
            escaped.push('!');
        }
        // No name has one, and PostgreSQL has no text with one.
        if character != '\0' {
            escaped.push(character);
        }
    }
    escaped
}

/// Reads answers by their ids. One that cannot be read is left out.
pub(super) async fn answers(
    connection: &mut AnyConnection,
    mut ids: Vec<i64>,
) -> Result<Answers, sqlx::Error> {
    ids.sort_unstable();
    ids.dedup();
    let mut found = Answers::new();
    for some in ids.chunks(500) {
        let bodies = Statement::new("SELECT id, body FROM answers WHERE id IN ");
        for row in bodies.list(some.iter().copied()).fetch(connection).await? {
            let text = unpack(&bytes(&row, 1)?, ANSWER).map_err(|it| damaged(&it))?;
            let record = AnswerRecord::from_bytes(&text).map_err(|it| damaged(&it))?;
            found.insert(integer(&row, 0)?, record);
        }
    }
    Ok(found)
}

fn damaged(error: &dyn std::error::Error) -> sqlx::Error {
    sqlx::Error::Protocol(format!("an answer is damaged: {error}"))
}

fn summary(row: &AnyRow, answers: &Answers) -> Result<NodeSummary, sqlx::Error> {
    let answer = maybe_integer(row, 3)?.and_then(|it| answers.get(&it));
    let since = maybe_integer(row, 4)?.map(time).transpose()?;
    let answer = answer.zip(since).map(|(record, since)| AnswerSummary {
        state: record.state(),
        environment: record.environment(),
        groups: record.groups().into_iter().cloned().collect(),
        since,
    });
    Ok(NodeSummary {
        name: text(row, 0)?,
        last_seen: time(integer(row, 1)?)?,
        commit: maybe_bytes(row, 2)?.as_deref().and_then(read_commit),
        answer,
    })
}

/// Reads a time in microseconds since 1970.
pub(super) fn time(micros: i64) -> Result<Timestamp, sqlx::Error> {
    Timestamp::from_microsecond(micros).map_err(|error| sqlx::Error::Decode(error.into()))
}
