//! Check-ins that come after later ones: another daemon was faster to write what the node asked it next.

use std::sync::Arc;

use sqlx::AnyConnection;

use super::super::prepared::{PreparedAnswer, PreparedCheckIn, PreparedFacts, WriterId};
use super::super::queue::Keeping;
use super::super::said::{NO_WRITER, SaidPart};
use super::super::sql::{Dialect, Statement, integer, maybe_integer};
use super::answers::ContentIds;
use super::changes::{FreshChange, insert};
use super::node_row::NodeRow;
use crate::answer::ChangeCause;

/// Which daemon writes. Only daemons that share a database are told apart.
pub(super) fn writer(dialect: &Dialect, this: WriterId) -> i64 {
    match dialect {
        Dialect::Sqlite => NO_WRITER,
        Dialect::Postgres => this.number(),
    }
}

/// Notes what a late check-in said, with the part of it that is still the latest, if there is one.
pub(super) fn see(
    row: &mut NodeRow,
    check_in: &PreparedCheckIn,
    latest: Option<(SaidPart, &Arc<PreparedFacts>)>,
) -> std::io::Result<()> {
    row.is_settled |= check_in.keeping == Keeping::Promised;
    latest.map_or(Ok(()), |(said, facts)| row.take_late_facts(check_in, facts, said))
}

/// What a late check-in was answered, and when.
struct LateAnswer<'a> {
    node: i64,
    time: i64,
    id: i64,
    commit: &'a [u8],
}

/// Puts a late answer into the history of a node, between those that are kept.
pub(super) async fn merge(
    connection: &mut AnyConnection,
    row: &mut NodeRow,
    check_in: &PreparedCheckIn,
    contents: &ContentIds,
) -> Result<(), sqlx::Error> {
    let Some(PreparedAnswer { content, snapshot, .. }) = &check_in.answer else { return Ok(()) };
    let (Some(id), Some(node)) = (contents.answer(content), row.id) else { return Ok(()) };
    let late =
        LateAnswer { node, time: check_in.answered_at, id, commit: snapshot.commit.as_bytes() };
    let before =
        neighbour(connection, " AND time <= ", late.time, " ORDER BY time DESC LIMIT 1", node)
            .await?;
    let after =
        neighbour(connection, " AND time > ", late.time, " ORDER BY time LIMIT 1", node).await?;
    late.place(connection, row, before, after).await
}

/// A change that is kept.
#[derive(Clone, Copy, Debug)]
struct KeptChange {
    time: i64,
    before: Option<i64>,
    after: i64,
}

async fn neighbour(
    connection: &mut AnyConnection,
    side: &'static str,
    time: i64,
    order: &'static str,
    node: i64,
) -> Result<Option<KeptChange>, sqlx::Error> {
    let found =
        Statement::new("SELECT time, answer_before, answer_after FROM changes WHERE node = ")
            .value(node)
            .text(side)
            .value(time)
            .text(order);
    let Some(found) = found.first(connection).await? else { return Ok(None) };
    let (time, after) = (integer(&found, 0)?, integer(&found, 2)?);
    Ok(Some(KeptChange { time, before: maybe_integer(&found, 1)?, after }))
}

impl LateAnswer<'_> {
    async fn place(
        &self,
        connection: &mut AnyConnection,
        row: &mut NodeRow,
        before: Option<KeptChange>,
        after: Option<KeptChange>,
    ) -> Result<(), sqlx::Error> {
        let given = match (before, after) {
            (Some(before), _) => Some(before.after),
            (None, Some(after)) => after.before,
            // Its changes are so old that they are forgotten.
            (None, None) => row.answer,
        };
        // Two changes of a node are not at the same time.
        let time = before.map_or(self.time, |it| self.time.max(it.time.saturating_add(1)));
        let end = after.map_or_else(|| row.last_answered().unwrap_or(row.last_seen), |it| it.time);
        if given == Some(self.id) || time >= end {
            return Ok(());
        }
        match after {
            Some(after) if after.after == self.id => {
                self.begin_earlier(connection, row, after, given, time).await
            }
            Some(after) => {
                self.insert(connection, row, given, time).await?;
                self.go_on(connection, after).await
            }
            None => {
                self.insert(connection, row, given, time).await?;
                let Some(answer) = row.answer else { return Ok(()) };
                row.since = Some(end);
                let back = FreshChange {
                    time: end,
                    commit_before: Some(self.commit.to_vec()),
                    commit_after: row.commit.clone().unwrap_or_default(),
                    answer_before: Some(self.id),
                    answer_after: answer,
                    cause: cause(row.commit.as_deref(), self.commit),
                    facts: None,
                };
                insert(connection, vec![back.values(self.node)]).await
            }
        }
    }

    /// The next change was to this answer, which was given before already.
    async fn begin_earlier(
        &self,
        connection: &mut AnyConnection,
        row: &mut NodeRow,
        next: KeptChange,
        given: Option<i64>,
        time: i64,
    ) -> Result<(), sqlx::Error> {
        let gone = Statement::new("DELETE FROM changes WHERE node = ").value(self.node);
        gone.text(" AND time = ").value(next.time).execute(connection).await?;
        self.insert(connection, row, given, time).await?;
        if row.since == Some(next.time) {
            row.since = Some(time);
        }
        Ok(())
    }

    /// Inserts the change to this answer.
    async fn insert(
        &self,
        connection: &mut AnyConnection,
        row: &NodeRow,
        given: Option<i64>,
        time: i64,
    ) -> Result<(), sqlx::Error> {
        let known = Statement::new("SELECT commit_after FROM changes WHERE node = ")
            .value(self.node)
            .text(" AND time < ")
            .value(time)
            .text(" ORDER BY time DESC LIMIT 1");
        let known = known.first(connection).await?;
        let before = known.as_ref().map(|it| super::super::sql::maybe_bytes(it, 0)).transpose()?;
        let commit_before = before.flatten().or_else(|| given.and(row.commit.clone()));
        let cause = match given {
            None => ChangeCause::First,
            Some(_) => cause(commit_before.as_deref(), self.commit),
        };
        let change = FreshChange {
            time,
            commit_before: commit_before.filter(|_| given.is_some()),
            commit_after: self.commit.to_vec(),
            answer_before: given,
            answer_after: self.id,
            cause,
            facts: None,
        };
        insert(connection, vec![change.values(self.node)]).await
    }

    /// The next change comes after this answer.
    async fn go_on(
        &self,
        connection: &mut AnyConnection,
        next: KeptChange,
    ) -> Result<(), sqlx::Error> {
        let changed = Statement::new("UPDATE changes SET answer_before = ").value(self.id);
        let changed = changed.text(", commit_before = ").value(self.commit.to_vec());
        let changed = changed.text(", facts = NULL, cause = CASE WHEN commit_after = ");
        let changed = changed.value(self.commit.to_vec()).text(" THEN ");
        let changed = changed.value(super::cause_number(ChangeCause::Facts)).text(" ELSE ");
        let changed =
            changed.value(super::cause_number(ChangeCause::Both)).text(" END WHERE node = ");
        let changed = changed.value(self.node).text(" AND time = ").value(next.time);
        changed.execute(connection).await.map(drop)
    }
}

/// Returns the cause of a change whose facts before are not known any more.
fn cause(before: Option<&[u8]>, after: &[u8]) -> ChangeCause {
    if before == Some(after) { ChangeCause::Facts } else { ChangeCause::Both }
}
