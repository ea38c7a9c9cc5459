//! Sources of nodes with their facts.

use std::fmt;
use std::ops::ControlFlow;

use jiff::Timestamp;

use super::read::without_trusted;
use crate::model::{Map, Node, Value};

/// A source of nodes with their facts, such as a directory of files or `PuppetDB`.
pub trait NodeSource: fmt::Debug + Send + Sync {
    /// Returns what is known of one node, if it is known and there is room for it. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot be read: that is not the same as a node that it does not
    /// know.
    fn node(&self, certname: &str, room: &dyn RowRoom) -> Result<Option<Node>, NodeSourceError>;

    /// Passes on at least the nodes that a query for the inventory selects; all of them without a query.
    /// Returns how many it has read, all of them unless `each` stops it. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot be read.
    fn list(
        &self,
        query: Option<&Value>,
        each: &mut dyn FnMut(Listed) -> ControlFlow<()>,
    ) -> Result<usize, NodeSourceError>;

    /// Passes on what is known of some nodes, in any order, each if there is room for it, until `each` stops it. One that
    /// cannot be read keeps no other from being passed on. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot be read.
    fn list_named(
        &self,
        names: &[String],
        room: &dyn RowRoom,
        each: &mut dyn FnMut(NamedNode) -> ControlFlow<()>,
    ) -> Result<(), NodeSourceError> {
        for name in names {
            let named = |node| NamedNode { name: name.clone(), node: Ok(node) };
            let found = self.node(name, room)?.map(named);
            let flow = found.map_or(ControlFlow::Continue(()), &mut *each);
            room.release();
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// What a source has of a node whose name it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedNode {
    /// The name.
    pub name: String,
    /// The node, or why it cannot be read.
    pub node: Result<Node, String>,
}

/// A node of a list, or why it cannot be read.
pub type Listed = Result<ListedNode, String>;

/// A node of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedNode {
    /// The node.
    pub node: Node,
    /// The bytes of memory that it takes, by an estimate.
    pub memory: usize,
    /// When the source saw it last, if it says so.
    pub seen: Option<Timestamp>,
}

impl ListedNode {
    /// Returns the node of a list with its facts and, beside them, its trusted data: what the list says of them, and not
    /// even the certname if it says nothing.
    pub fn node(name: String, fact: Map<String, Value>, trusted: Map<String, Value>) -> Node {
        Node { name, fact: without_trusted(fact), trusted }
    }
}

/// A source of nodes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeSourceError {
    /// Its files cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// Its service does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// Its service gives an answer that cannot be used; another one may be of use.
    #[error("{0}")]
    Unusable(String),
    /// There was no memory for what it has of a node.
    #[error("there is no memory for it now")]
    NoRoom,
}

/// The memory for nodes that are read: each of these waits until there is enough, and is false if there
/// is not. Blocking.
pub trait RowRoom {
    /// Waits for what a row of so many bytes may take, if that is much.
    fn admits_bytes(&self, bytes: usize) -> bool;

    /// Waits for what this row takes, unless the room for it is there already. Returns at once for a
    /// large row.
    fn admits_row(&self, row: &[u8]) -> bool;

    /// Waits for what this document takes, JSON or YAML, as [`Self::admits_row`] does for JSON.
    fn admits_document(&self, text: &[u8]) -> bool {
        self.admits_row(text)
    }

    /// Frees the memory of all admitted rows: the caller has dropped what it read.
    fn release(&self);
}

/// No limit, for readers of one row at a time.
#[derive(Clone, Copy, Debug)]
pub struct Unlimited;

impl RowRoom for Unlimited {
    fn admits_bytes(&self, _: usize) -> bool {
        true
    }

    fn admits_row(&self, _: &[u8]) -> bool {
        true
    }

    fn release(&self) {}
}
