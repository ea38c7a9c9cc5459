//! A place in a list of nodes: behind a node, whichever nodes have come, gone or moved since.

use std::fmt;

use sqlx::any::AnyRow;

use super::batch::state_number;
use super::node_name::check_node_name;
use super::node_order::{NodeOrder, NodeSortKey, SortDirection};
use super::sql::{Statement, integer, maybe_integer, maybe_text, text};
use crate::answer::NodeState;
use crate::model::EnvironmentName;

/// What stands between the two parts of a place as text; no value has one.
const SEPARATOR: char = ':';

/// The place behind a node: what the list is sorted by, as it was for the node, and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCursor {
    value: Option<SortedValue>,
    name: String,
}

/// What a list is sorted by, of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SortedValue {
    /// A time in microseconds, or the number of a state.
    Number(i64),
    Word(String),
}

/// A text is not a place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the `next` of a page of the same order")]
pub struct UnknownNodeCursor;

impl NodeCursor {
    /// Reads a place in a list of this order, as it was written.
    ///
    /// # Errors
    ///
    /// Returns an error for a text that is not one.
    pub fn parse(text: &str, key: NodeSortKey) -> Result<Self, UnknownNodeCursor> {
        let (value, name) = text.split_once(SEPARATOR).ok_or(UnknownNodeCursor)?;
        // It is bound in a statement, and a failure of PostgreSQL at a text closes the store.
        check_node_name(name).map_err(|_| UnknownNodeCursor)?;
        let number = || value.parse::<i64>().map_err(|_| UnknownNodeCursor);
        let is_state = |it: &i64| NodeState::ALL.iter().any(|state| state_number(*state) == *it);
        let value = match (key, value) {
            (NodeSortKey::LastSeen, "") => return Err(UnknownNodeCursor),
            (_, "") => None,
            (NodeSortKey::Certname, _) => return Err(UnknownNodeCursor),
            (NodeSortKey::Environment, word) => {
                let name: EnvironmentName = word.parse().map_err(|_| UnknownNodeCursor)?;
                Some(SortedValue::Word(name.into()))
            }
            (NodeSortKey::State, _) => {
                let state = number().ok().filter(is_state).ok_or(UnknownNodeCursor)?;
                Some(SortedValue::Number(state))
            }
            (NodeSortKey::LastSeen | NodeSortKey::Since, _) => Some(SortedValue::Number(number()?)),
        };
        Ok(Self { value, name: name.to_owned() })
    }

    /// Returns the place behind a row of a list: name, time of the last contact, two others, time of the answer, and the
    /// environment if the list is sorted by it. `state` is the number of the row's state.
    pub(super) fn behind(
        row: &AnyRow,
        key: NodeSortKey,
        state: Option<i64>,
    ) -> Result<Self, sqlx::Error> {
        let value = match key {
            NodeSortKey::Certname => None,
            NodeSortKey::LastSeen => Some(SortedValue::Number(integer(row, 1)?)),
            NodeSortKey::Since => maybe_integer(row, 4)?.map(SortedValue::Number),
            NodeSortKey::State => state.map(SortedValue::Number),
            NodeSortKey::Environment => maybe_text(row, 5)?.map(SortedValue::Word),
        };
        Ok(Self { value, name: text(row, 0)? })
    }

    /// Returns the number of the state of the node, in a list by state; none for a node without an answer.
    pub(super) fn state(&self) -> Option<i64> {
        match self.value {
            Some(SortedValue::Number(number)) => Some(number),
            Some(SortedValue::Word(_)) | None => None,
        }
    }

    /// Goes on with the condition that a node stands behind this place; in a list by state, among those of its state.
    pub(super) fn condition(&self, statement: Statement, order: NodeOrder) -> Statement {
        let name = self.name.as_str();
        let Some([from, beyond, missing]) = comparisons(order) else {
            return match (order.key, order.direction) {
                (NodeSortKey::Certname, SortDirection::Descending) => statement.text("n.name < "),
                _ => statement.text("n.name > "),
            }
            .value(name);
        };
        let with_value = |statement: Statement| match &self.value {
            Some(SortedValue::Word(word)) => statement.value(word.as_str()),
            Some(SortedValue::Number(number)) => statement.value(*number),
            None => statement,
        };
        if self.value.is_none() {
            return statement.text(missing).text(" AND n.name > ").value(name);
        }
        let statement = with_value(statement.text("(").text(missing).text(" OR (").text(from));
        let statement = with_value(statement.text(" AND (").text(beyond));
        statement.text(" OR n.name > ").value(name).text(")))")
    }
}

/// Returns how a value of an order is compared with another: at it or behind it, behind it, and missing, which is behind
/// all; none where the name alone counts.
fn comparisons(order: NodeOrder) -> Option<[&'static str; 3]> {
    Some(match (order.key, order.direction) {
        (NodeSortKey::Certname | NodeSortKey::State, _) => return None,
        (NodeSortKey::LastSeen, SortDirection::Ascending) => {
            ["n.last_seen >= ", "n.last_seen > ", "n.last_seen IS NULL"]
        }
        (NodeSortKey::LastSeen, SortDirection::Descending) => {
            ["n.last_seen <= ", "n.last_seen < ", "n.last_seen IS NULL"]
        }
        (NodeSortKey::Since, SortDirection::Ascending) => {
            ["n.since >= ", "n.since > ", "n.since IS NULL"]
        }
        (NodeSortKey::Since, SortDirection::Descending) => {
            ["n.since <= ", "n.since < ", "n.since IS NULL"]
        }
        (NodeSortKey::Environment, SortDirection::Ascending) => [
            "a.environment COLLATE \"C\" >= ",
            "a.environment COLLATE \"C\" > ",
            "a.environment IS NULL",
        ],
        (NodeSortKey::Environment, SortDirection::Descending) => [
            "a.environment COLLATE \"C\" <= ",
            "a.environment COLLATE \"C\" < ",
            "a.environment IS NULL",
        ],
    })
}

impl fmt::Display for NodeCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => {}
            Some(SortedValue::Number(number)) => write!(formatter, "{number}")?,
            Some(SortedValue::Word(word)) => formatter.write_str(word)?,
        }
        write!(formatter, "{SEPARATOR}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let longest = format!(":{}", "a".repeat(1024));
        let too_long = format!("{longest}a");
        let rows = [
            (":a", NodeSortKey::Certname, true),
            ("5:a", NodeSortKey::Certname, false),
            ("5:a:b", NodeSortKey::LastSeen, true),
            (":a", NodeSortKey::LastSeen, false),
            ("x:a", NodeSortKey::LastSeen, false),
            ("-5:a", NodeSortKey::Since, true),
            (":a", NodeSortKey::Since, true),
            ("2:a", NodeSortKey::State, true),
            (":a", NodeSortKey::State, true),
            ("3:a", NodeSortKey::State, false),
            ("-1:a", NodeSortKey::State, false),
            (":a\0", NodeSortKey::Certname, false),
            (&longest, NodeSortKey::Certname, true),
            (&too_long, NodeSortKey::Certname, false),
            ("a\0:a", NodeSortKey::Environment, false),
            ("a b:a", NodeSortKey::Environment, false),
            ("agent-specified:a", NodeSortKey::Environment, true),
            ("production:a", NodeSortKey::Environment, true),
            (":a", NodeSortKey::Environment, true),
            ("a", NodeSortKey::Environment, false),
            ("", NodeSortKey::Certname, false),
        ];
        each_row(rows, |(text, key, is_read)| {
            let read = NodeCursor::parse(text, key).ok().map(|it| it.to_string());
            assert_eq!(read.as_deref(), is_read.then_some(text), "{text} {key:?}");
        });
    }
}
