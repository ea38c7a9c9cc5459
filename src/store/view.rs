//! What the store shows of nodes and of the changes of their answers.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::cursor::NodeCursor;
use super::node_order::NodeOrder;
use crate::answer::{AnswerRecord, ChangeCause, DefiningGroup, NodeState};
use crate::model::{ClassName, CommitId, EnvironmentName, GroupId, Node, Value};

/// Which nodes to list, in which order: those that meet every condition that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFilter {
    /// A part of the name, in any case.
    pub name_part: Option<String>,
    /// The node matches one of these groups; no node matches one of none.
    pub groups: Option<BTreeSet<GroupId>>,
    /// The node gets the class.
    pub class: Option<ClassName>,
    /// The node gets the environment.
    pub environment: Option<EnvironmentName>,
    /// The commit answered the node last.
    pub commit: Option<CommitId>,
    /// What came of the last classification.
    pub state: Option<NodeState>,
    /// The node was seen before this time, and not since.
    pub silent_since: Option<Timestamp>,
    /// The order of the list.
    pub order: NodeOrder,
    /// A place in it: the nodes behind are listed, and all are counted.
    pub after: Option<NodeCursor>,
}

/// Which part of a list to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRange {
    /// How many nodes stand before it; without a meaning behind a place of the list.
    pub offset: usize,
    /// How many nodes it has at most.
    pub limit: usize,
}

/// A page of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePage {
    /// How many nodes meet the conditions.
    pub total: u64,
    /// Those of the page, in the order of the list.
    pub nodes: Vec<NodeSummary>,
    /// The place behind them, if there are more.
    pub next: Option<NodeCursor>,
}

/// A node in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSummary {
    /// The certname.
    pub name: String,
    /// When it was seen last.
    pub last_seen: Timestamp,
    /// The commit that answered it last; none if it only submitted facts.
    pub commit: Option<CommitId>,
    /// Its last answer, if it ever got one.
    pub answer: Option<AnswerSummary>,
}

/// An answer in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerSummary {
    /// What came of the classification.
    pub state: NodeState,
    /// The environment; none unless the node is classified.
    pub environment: Option<EnvironmentName>,
    /// The groups that match, by id.
    pub groups: Vec<DefiningGroup>,
    /// When the node first got this answer without another one since.
    pub since: Timestamp,
}

/// All that is known of a node but its history.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredNode {
    /// Its name, and its newest facts and trusted data.
    pub node: Node,
    /// When it was seen last.
    pub last_seen: Timestamp,
    /// Which run of the agent that was for.
    pub transaction_uuid: Option<String>,
    /// The commit that answered it last; none if it only submitted facts.
    pub commit: Option<CommitId>,
    /// Its last answer, and when it first got that without another one since.
    pub answer: Option<(AnswerRecord, Timestamp)>,
}

/// A change of a node's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredChange {
    /// When the node first got the answer.
    pub time: Timestamp,
    /// The commit that gave it.
    pub commit: CommitId,
    /// The commit that answered the node before; none at the first answer.
    pub commit_before: Option<CommitId>,
    /// What changed the answer.
    pub cause: ChangeCause,
    /// The facts that the rules of either commit mention, and that changed.
    pub facts: Vec<FactChange>,
    /// The answer before; none at the first one, and where it is not kept any more.
    pub before: Option<AnswerRecord>,
    /// The answer.
    pub after: AnswerRecord,
}

/// A fact, or trusted data, that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct FactChange {
    /// Its path as rules write it, such as `fact.os.family`.
    pub path: String,
    /// The value before; none if there was none.
    pub before: Option<Value>,
    /// The value afterwards; none if there is none.
    pub after: Option<Value>,
}
