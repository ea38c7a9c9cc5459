//! How many nodes there are of each kind.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::NodeState;
use crate::model::{CommitId, GroupId};
use crate::store;

/// How many nodes there are, by what they got last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CountedNodes {
    /// All.
    pub total: u64,
    /// Nodes that are classified.
    pub classified: u64,
    /// Nodes whose groups differ.
    pub conflict: u64,
    /// Nodes of which it could not be found out which groups match.
    pub error: u64,
    /// Nodes that only submitted facts.
    pub unanswered: u64,
    /// Nodes that were not seen for as long as the request says.
    pub silent: u64,
    /// By the commit that answered last, most nodes first.
    pub commits: Vec<CommitNodes>,
    /// How many nodes got another answer through each commit, in the time that the request says, most first.
    pub moved: Vec<CommitNodes>,
}

/// How many nodes a commit has to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommitNodes {
    /// The commit.
    pub commit: CommitId,
    /// How many nodes.
    pub nodes: u64,
}

/// How many nodes have a group in their last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupMembers {
    /// The group.
    pub id: GroupId,
    /// How many nodes.
    pub nodes: u64,
}

impl From<store::StoredNodeCounts> for CountedNodes {
    fn from(counts: store::StoredNodeCounts) -> Self {
        let of = |state| counts.states.get(&state).copied().unwrap_or_default();
        let [classified, conflict, error] =
            [NodeState::Classified, NodeState::Conflict, NodeState::Error].map(of);
        let most_first = |counted: &std::collections::BTreeMap<CommitId, u64>| {
            let mut list: Vec<CommitNodes> =
                counted.iter().map(|(&commit, &nodes)| CommitNodes { commit, nodes }).collect();
            list.sort_by_key(|it| std::cmp::Reverse(it.nodes));
            list
        };
        Self {
            total: counts.total,
            classified,
            conflict,
            error,
            unanswered: counts.total.saturating_sub(classified + conflict + error),
            silent: counts.silent,
            commits: most_first(&counts.commits),
            moved: most_first(&counts.moved),
        }
    }
}
