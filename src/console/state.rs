//! States in one word, with the class that gives them their colour.

use std::borrow::Borrow;

use super::markup::{self as m, Markup};
use crate::answer::NodeState;
use crate::http::types::{BlamedCommit, CommitState, Condition, ConditionStatus};

/// Returns how good a condition is: `Ready` is good while it is true, all others are bad news.
pub(super) fn condition(condition: &Condition) -> &'static str {
    let is_positive = matches!(condition.kind.as_str(), "Ready" | "SourceVerified");
    match (is_positive, condition.status) {
        (true, ConditionStatus::True) | (false, ConditionStatus::False) => "good",
        (true, _) => "bad",
        (false, _) => "warn",
    }
}

/// Returns whether a condition says that something is wrong.
pub(super) fn is_bad(it: &Condition) -> bool {
    condition(it) != "good" && it.kind != "Reconciling"
}

/// Returns the word and the class of what became of a commit.
pub(super) fn commit(state: &CommitState) -> (&'static str, &'static str) {
    match state {
        CommitState::Live { .. } => ("live", "good"),
        CommitState::Replaced { .. } => ("replaced", "plain"),
        CommitState::Rejected { .. } => ("rejected", "bad"),
        CommitState::Superseded { .. } => ("superseded", "plain"),
        CommitState::Pending { .. } => ("pending", "warn"),
        CommitState::Held { .. } => ("held", "warn"),
        CommitState::Older => ("older", "plain"),
        CommitState::Elsewhere => ("elsewhere", "plain"),
        CommitState::Unknown => ("unknown", "plain"),
    }
}

/// Draws the pull request that a commit came from, if one is known.
pub(super) fn pull_request(commit: &BlamedCommit) -> Markup {
    let Some(pull_request) = &commit.pull_request else { return Markup::default() };
    let number = m::text(format!("#{}", pull_request.number));
    match &pull_request.url {
        Some(url) => m::link_away(url, &number),
        None => number,
    }
}

/// Draws what came of the last classification of a node.
pub(super) fn node(state: impl Borrow<Option<NodeState>>) -> Markup {
    let (word, class) = match state.borrow() {
        Some(NodeState::Classified) => ("classified", "good"),
        Some(NodeState::Conflict) => ("conflict", "bad"),
        Some(NodeState::Error) => ("error", "bad"),
        None => ("facts only", "plain"),
    };
    Markup::of_parts(format!("<span class=\"badge {class}\">{word}</span>"))
}
