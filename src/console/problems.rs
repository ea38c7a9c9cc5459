//! What is wrong in the estate: one list.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;

use super::context::PageError;
use super::gone_pins::{GonePins, LISTED};
use super::group_link::GroupLink;
use super::groups::{Members, members};
use super::layout::{PageFrame, Section};
use super::markup as m;
use super::state as s;
use super::stored::{FromStore, stored};
use super::visit::Visit;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::http::types::{Commit, Condition, CountedNodes, Finding, NodePage, NodeSummary};
use crate::model::CommitId;
use crate::snapshot::Snapshot;

#[derive(Debug, Template)]
#[template(path = "problems.html")]
struct ProblemsPage {
    layout: PageFrame,
    conditions: Vec<Condition>,
    nodes: FromStore<NodeProblems>,
    findings: Vec<Finding>,
    findings_total: usize,
    live: Option<CommitId>,
}

/// What is wrong by what the store says of nodes.
#[derive(Debug)]
struct NodeProblems {
    conflicts: NodePage,
    errors: NodePage,
    silent: NodePage,
    silent_groups: Vec<GroupLink>,
    silent_groups_total: usize,
    gone: Arc<GonePins>,
}

/// Shows the page.
pub(super) async fn show(visit: Visit) -> Response {
    let page = page(&visit).await;
    visit.show(page)
}

async fn page(visit: &Visit) -> Result<ProblemsPage, PageError> {
    let snapshot = visit.answering_snapshot().await?;
    let nodes = stored(node_problems(visit, snapshot.as_deref()).await)?;
    let commit: Option<Commit> = match visit.commit() {
        Some(commit) => Some(visit.get(&format!("/controller/commits/{commit}")).await?),
        None => None,
    };
    let findings = commit.map(|it| it.diagnostics).unwrap_or_default();
    Ok(ProblemsPage {
        layout: visit.layout(Section::Problems),
        conditions: visit.bad_conditions(),
        nodes,
        findings_total: findings.len(),
        findings: findings.into_iter().take(LISTED).collect(),
        live: visit.commit(),
    })
}

/// Asks the store what is wrong with nodes, and which groups and pins have none; without a snapshot there are no groups.
async fn node_problems(
    visit: &Visit,
    snapshot: Option<&Snapshot>,
) -> Result<NodeProblems, PageError> {
    let nodes = async |condition: &str| -> Result<NodePage, PageError> {
        visit.get(&format!("/controller/nodes?{condition}&limit={LISTED}")).await
    };
    let (counts, members, conflicts, errors, silent) = tokio::try_join!(
        visit.get::<CountedNodes>("/controller/node-counts"),
        members(visit, "?matched_within=90d"),
        nodes("state=conflict"),
        nodes("state=error"),
        nodes("silent_for=2h"),
    )?;
    // Without check-ins nothing is known of the use of groups.
    let known = snapshot.filter(|_| counts.total > 0);
    let unused = known.map(|it| unused(&it.estate.hierarchy, &members)).unwrap_or_default();
    let gone = match snapshot {
        Some(snapshot) => visit.gone_pins(snapshot).await?,
        None => Arc::default(),
    };
    Ok(NodeProblems {
        conflicts,
        errors,
        silent,
        silent_groups_total: unused.len(),
        silent_groups: unused.into_iter().take(LISTED).collect(),
        gone,
    })
}

/// Returns the groups with a rule that no node was matched by lately.
fn unused(hierarchy: &Hierarchy, members: &Members) -> Vec<GroupLink> {
    let is_unused = |index: &GroupIndex| {
        let group = hierarchy.group(*index);
        group.rule.is_some() && !members.contains_key(&group.id)
    };
    let unused = hierarchy.indexes().filter(is_unused);
    unused.map(|index| GroupLink::to(hierarchy.group(index))).collect()
}

impl ProblemsPage {
    fn is_well(&self) -> bool {
        let Ok(nodes) = &self.nodes else { return false };
        self.conditions.is_empty() && nodes.is_empty() && self.findings_total == 0
    }
}

impl NodeProblems {
    fn is_empty(&self) -> bool {
        [&self.conflicts, &self.errors, &self.silent].iter().all(|it| it.total == 0)
            && self.silent_groups_total == 0
            && self.gone.total == 0
    }

    /// Returns the lists of nodes, each with what it is about and where the whole of it is.
    fn lists(&self) -> [(&'static str, &'static str, &'static str, &NodePage); 3] {
        [
            ("conflicts", "Nodes in conflict", "/nodes?state=conflict", &self.conflicts),
            ("errors", "Nodes in error", "/nodes?state=error", &self.errors),
            ("silent", "Nodes silent for 2 hours", "/nodes?silent_for=2h", &self.silent),
        ]
    }
}

/// Returns the rest of a list that is not shown.
fn rest(page: &NodePage) -> u64 {
    page.total.saturating_sub(page.nodes.len() as u64)
}

/// Returns the nodes of a list.
fn shown(page: &NodePage) -> &[NodeSummary] {
    &page.nodes
}
