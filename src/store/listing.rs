//! Lists of nodes, and what is known of one.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::batch::state_number;
use super::compression::unpack;
use super::cursor::NodeCursor;
use super::database::Database;
use super::error::StoreError;
use super::node_order::{NodeOrder, NodeSortKey, SortDirection};
use super::sql::{Dialect, SqlValue, Statement, bytes, integer, maybe_bytes, maybe_integer, text};
use super::transition::read_commit;
use super::view::{AnswerSummary, NodeFilter, NodePage, NodeRange, NodeSummary};
use crate::answer::{AnswerOutline, AnswerRecord, NodeState, UnreadableAnswer};
use crate::model::GroupId;

/// How many bytes of JSON an answer may have to be read.
pub(super) const ANSWER: usize = 64 << 20;

/// How many bytes of answers are read at a time, as they are kept.
const TOGETHER: usize = 1 << 20;

impl Database {
    /// Returns the nodes of a part of a list, in its order, and how many the whole list has.
    pub(super) fn nodes(
        &self,
        filter: &NodeFilter,
        range: NodeRange,
    ) -> Result<NodePage, StoreError> {
        self.connections.read_together(async |connection| {
            let silent = silent_nodes(connection, filter).await?;
            let list = StoredList { filter, silent, dialect: &self.connections.dialect };
            let parts = ListPart::of(filter.order);
            let mut counts = Vec::with_capacity(parts.len());
            for part in parts {
                counts.push(part.count(connection, &list).await?);
            }
            let (rows, next) = list.rows(connection, &counts, range).await?;
            let mut ids = Vec::new();
            for row in &rows {
                ids.extend(maybe_integer(row, 3)?);
            }
            let answers = answers(connection, ids, AnswerOutline::from_bytes).await?;
            let nodes = rows.iter().map(|row| summary(row, &answers)).collect::<Result<_, _>>()?;
            let total = counts.iter().sum::<i64>();
            Ok(NodePage { total: u64::try_from(total).unwrap_or_default(), nodes, next })
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
            let ids = id.into_iter().collect();
            let mut known = answers(connection, ids, AnswerRecord::from_bytes).await?;
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

/// The nodes that meet a filter, and how they are found.
struct StoredList<'f> {
    filter: &'f NodeFilter,
    silent: SilentNodes,
    dialect: &'f Dialect,
}

/// A part of a list: one that is sorted by state has a part for each state, each in the order of the names, so that
/// no list of a whole fleet is sorted for one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListPart {
    /// All nodes.
    Whole,
    Classified,
    Conflict,
    Error,
    /// Those without an answer.
    Unanswered,
}

impl ListPart {
    /// Returns the parts of a list in its order.
    fn of(order: NodeOrder) -> &'static [Self] {
        match (order.key, order.direction) {
            (NodeSortKey::State, SortDirection::Ascending) => {
                &[Self::Classified, Self::Conflict, Self::Error, Self::Unanswered]
            }
            (NodeSortKey::State, SortDirection::Descending) => {
                &[Self::Error, Self::Conflict, Self::Classified, Self::Unanswered]
            }
            _ => &[Self::Whole],
        }
    }

    /// Returns the condition that the nodes of the part meet.
    fn condition(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            // The numbers of states. What is not in a list of others is found in the order of the names.
            Self::Classified => {
                Some("n.answer NOT IN (SELECT id FROM answers WHERE state IN (1, 2))")
            }
            Self::Conflict => Some("n.answer IN (SELECT id FROM answers WHERE state = 1)"),
            Self::Error => Some("n.answer IN (SELECT id FROM answers WHERE state = 2)"),
            Self::Unanswered => Some("n.answer IS NULL"),
        }
    }

    /// Returns the number of the state of its nodes; none if they have none, or different ones.
    fn state(self) -> Option<i64> {
        match self {
            Self::Whole | Self::Unanswered => None,
            Self::Classified => Some(state_number(NodeState::Classified)),
            Self::Conflict => Some(state_number(NodeState::Conflict)),
            Self::Error => Some(state_number(NodeState::Error)),
        }
    }

    /// Counts the nodes of the part that meet the conditions of a filter.
    async fn count(
        self,
        connection: &mut AnyConnection,
        list: &StoredList<'_>,
    ) -> Result<i64, sqlx::Error> {
        let all = Statement::new("SELECT COUNT(*) FROM nodes n");
        let count = list.conditions(all, self, None).first(connection).await?;
        count.as_ref().map_or(Ok(0), |it| integer(it, 0))
    }

    /// Reads some of the nodes, in the order of the list, behind a place or so many others.
    async fn page(
        self,
        connection: &mut AnyConnection,
        list: &StoredList<'_>,
        after: Option<&NodeCursor>,
        (offset, limit): (i64, i64),
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        // Whole rows are long: those of the page are read after it is known which these are.
        let (terms, from) = (terms(list.filter.order), tables(list.filter.order.key));
        let page = Statement::new("SELECT n.name, n.last_seen, n.commit_id, n.answer, n.since");
        let page = page.text(match list.filter.order.key {
            NodeSortKey::Environment => ", a.environment",
            _ => "",
        });
        let page = page.text(from).text(" WHERE n.id IN (SELECT n.id").text(from);
        list.conditions(page, self, after)
            .text(" ORDER BY ")
            .text(terms)
            .text("n.name LIMIT ")
            .value(limit)
            .text(" OFFSET ")
            .value(offset)
            .text(") ORDER BY ")
            .text(terms)
            .text("n.name")
            .fetch(connection)
            .await
    }
}

/// Returns where nodes are read, with the answers where the list is sorted by those.
fn tables(key: NodeSortKey) -> &'static str {
    match key {
        NodeSortKey::Certname | NodeSortKey::LastSeen | NodeSortKey::Since | NodeSortKey::State => {
            " FROM nodes n"
        }
        NodeSortKey::Environment => " FROM nodes n LEFT JOIN answers a ON a.id = n.answer",
    }
}

/// Returns what stands before the name in an order. Databases differ in where they put what is null.
fn terms(order: NodeOrder) -> &'static str {
    match (order.key, order.direction) {
        // Nodes of one state stand by name.
        (NodeSortKey::Certname, SortDirection::Ascending) | (NodeSortKey::State, _) => "",
        (NodeSortKey::Certname, SortDirection::Descending) => "n.name DESC, ",
        (NodeSortKey::LastSeen, SortDirection::Ascending) => "n.last_seen, ",
        (NodeSortKey::LastSeen, SortDirection::Descending) => "n.last_seen DESC, ",
        (NodeSortKey::Since, SortDirection::Ascending) => "n.since IS NULL, n.since, ",
        (NodeSortKey::Since, SortDirection::Descending) => "n.since IS NULL, n.since DESC, ",
        (NodeSortKey::Environment, SortDirection::Ascending) => {
            "a.environment IS NULL, a.environment COLLATE \"C\", "
        }
        (NodeSortKey::Environment, SortDirection::Descending) => {
            "a.environment IS NULL, a.environment COLLATE \"C\" DESC, "
        }
    }
}

/// How the nodes are found that were not seen since a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SilentNodes {
    /// They are few: by when they were seen.
    Few,
    /// Many: among all, in the order of the list, until there are enough for a page.
    Many,
}

/// How many silent nodes are few.
const FEW: i64 = 2000;

/// Finds out how many nodes were not seen since the time of a filter.
async fn silent_nodes(
    connection: &mut AnyConnection,
    filter: &NodeFilter,
) -> Result<SilentNodes, sqlx::Error> {
    let Some(time) = filter.silent_since else { return Ok(SilentNodes::Many) };
    let some = Statement::new(
        "SELECT COUNT(*) FROM (SELECT 1 FROM nodes WHERE settled IN (0, 1) AND last_seen < ",
    );
    let some = some.value(time.as_microsecond()).text(" LIMIT ").value(FEW).text(") AS few");
    let row = some.first(connection).await?;
    let count = row.as_ref().map_or(Ok(0), |it| integer(it, 0))?;
    Ok(if count < FEW { SilentNodes::Few } else { SilentNodes::Many })
}

impl StoredList<'_> {
    /// Reads the rows of a part of the list, of whose parts the counts are known, and the place behind them if there are
    /// more.
    async fn rows(
        &self,
        connection: &mut AnyConnection,
        counts: &[i64],
        range: NodeRange,
    ) -> Result<(Vec<AnyRow>, Option<NodeCursor>), sqlx::Error> {
        let (parts, after) = (ListPart::of(self.filter.order), self.filter.after.as_ref());
        let number = |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
        // One more than is asked for: whether there is another page.
        let mut left = number(range.limit).saturating_add(1);
        let mut skipped = after.map_or(number(range.offset), |_| 0);
        let start = after.and_then(|it| parts.iter().position(|part| part.state() == it.state()));
        let start = start.filter(|_| self.filter.order.key == NodeSortKey::State).unwrap_or(0);
        let mut rows = Vec::new();
        for (place, (part, count)) in parts.iter().zip(counts).enumerate().skip(start) {
            if skipped < *count && left > 0 {
                let after = after.filter(|_| place == start);
                let found = part.page(connection, self, after, (skipped, left)).await?;
                left -= number(found.len());
                rows.extend(found.into_iter().map(|row| (part, row)));
            }
            skipped = (skipped - count).max(0);
        }
        let has_more = rows.len() > range.limit;
        rows.truncate(range.limit);
        let last = rows.last().filter(|_| has_more);
        let behind = |(part, row): &(&ListPart, AnyRow)| {
            NodeCursor::behind(row, self.filter.order.key, part.state())
        };
        let next = last.map(behind).transpose()?;
        Ok((rows.into_iter().map(|(_, row)| row).collect(), next))
    }

    /// Goes on with the conditions of a part of the list, behind a place.
    fn conditions(
        &self,
        mut statement: Statement,
        part: ListPart,
        after: Option<&NodeCursor>,
    ) -> Statement {
        let NodeFilter {
            name_part, groups, class, environment, commit, state, silent_since, ..
        } = self.filter;
        let mut word = " WHERE ";
        let mut and = |statement: Statement| statement.text(std::mem::replace(&mut word, " AND "));
        if let Some(condition) = part.condition() {
            statement = and(statement).text(condition);
        }
        if let Some(name) = name_part {
            let pattern = format!("%{}%", escaped(&name.to_ascii_lowercase()));
            statement = and(statement).text(match self.dialect {
                // It takes no notice of the case of ASCII letters, and a function for each row took three times as long.
                Dialect::Sqlite => "n.name LIKE ",
                Dialect::Postgres => "LOWER(n.name) LIKE ",
            });
            statement = statement.value(pattern.as_str());
            statement = statement.text(" ESCAPE '!'");
        }
        if let Some(groups) = groups {
            statement = of_groups(and(statement), groups);
        }
        if let Some(class) = class {
            statement = and(statement)
                .text("n.answer IN (SELECT answer FROM answer_classes WHERE class = ");
            statement = statement.value(class.as_str()).text(")");
        }
        if let Some(environment) = environment {
            statement =
                and(statement).text("n.answer IN (SELECT id FROM answers WHERE environment = ");
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
            statement = and(statement);
            if self.silent == SilentNodes::Few {
                // Both values of the column say nothing, and let the index that begins with it be searched.
                statement = statement.text("n.settled IN (0, 1) AND ");
            }
            statement = statement.text("n.last_seen < ").value(time.as_microsecond());
        }
        match after {
            Some(after) => after.condition(and(statement), self.filter.order),
            None => statement,
        }
    }
}

/// Goes on with the condition that a node matches one of some groups.
fn of_groups(statement: Statement, groups: &BTreeSet<GroupId>) -> Statement {
    let statement = statement.text("n.answer IN (SELECT answer FROM answer_groups WHERE ");
    match groups.is_empty() {
        // An empty list is not SQL everywhere.
        true => statement.text("1 = 0)"),
        false => {
            let ids = groups.iter().map(|it| SqlValue::from(it.to_string().as_str()));
            statement.text("group_id IN ").list(ids).text(")")
        }
    }
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

/// Reads answers by their ids, each with a function. One that cannot be read is left out: the nodes that got
/// it are shown without it.
pub(super) async fn answers<T>(
    connection: &mut AnyConnection,
    mut ids: Vec<i64>,
    read: impl Fn(&[u8]) -> Result<T, UnreadableAnswer>,
) -> Result<HashMap<i64, T>, sqlx::Error> {
    ids.sort_unstable();
    ids.dedup();
    let mut found = HashMap::with_capacity(ids.len());
    for some in ids.chunks(500) {
        for together in answer_sizes(connection, some).await?.chunk_by(|one, next| one.0 == next.0)
        {
            let bodies = Statement::new("SELECT id, body FROM answers WHERE id IN ");
            let bodies = bodies.list(together.iter().map(|(_, id)| *id));
            for row in bodies.fetch(connection).await? {
                let id = integer(&row, 0)?;
                match read_answer(&bytes(&row, 1)?, &read) {
                    Ok(answer) => {
                        found.insert(id, answer);
                    }
                    Err(error) => {
                        tracing::warn!(
                            answer = id,
                            error,
                            "an answer in the store cannot be read; it is left out"
                        );
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Returns the answers among some that are kept, each behind the number of the part in which it is read.
async fn answer_sizes(
    connection: &mut AnyConnection,
    ids: &[i64],
) -> Result<Vec<(usize, i64)>, sqlx::Error> {
    let sizes = "SELECT id, CAST(LENGTH(body) AS BIGINT) FROM answers WHERE id IN ";
    let sizes = Statement::new(sizes).list(ids.iter().copied());
    let (mut part, mut taken, mut parts) = (0, 0, Vec::with_capacity(ids.len()));
    for row in sizes.fetch(connection).await? {
        let size = usize::try_from(integer(&row, 1)?).unwrap_or_default();
        if taken > 0 && taken + size > TOGETHER {
            (part, taken) = (part + 1, 0);
        }
        taken += size;
        parts.push((part, integer(&row, 0)?));
    }
    Ok(parts)
}

fn read_answer<T>(
    packed: &[u8],
    read: impl Fn(&[u8]) -> Result<T, UnreadableAnswer>,
) -> Result<T, String> {
    let text = unpack(packed, ANSWER).map_err(|error| error.to_string())?;
    read(&text).map_err(|error| error.to_string())
}

fn summary(
    row: &AnyRow,
    answers: &HashMap<i64, AnswerOutline>,
) -> Result<NodeSummary, sqlx::Error> {
    let answer = maybe_integer(row, 3)?.and_then(|it| answers.get(&it)).cloned();
    let since = maybe_integer(row, 4)?.map(time).transpose()?;
    let answer = answer.zip(since).map(|(outline, since)| {
        let AnswerOutline { state, environment, groups } = outline;
        AnswerSummary { state, environment, groups, since }
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
