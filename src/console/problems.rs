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
use super::visit::Visit;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::http::types::{Commit, Condition, CountedNodes, Finding, NodePage, NodeSummary};
use crate::model::CommitId;

#[derive(Debug, Template)]
#[template(path = "problems.html")]
struct ProblemsPage {
    layout: PageFrame,
    conditions: Vec<Condition>,
    conflicts: NodePage,
    errors: NodePage,
    silent: NodePage,
    silent_groups: Vec<GroupLink>,
    silent_groups_total: usize,
    gone: Arc<GonePins>,
    findings: Vec<Finding>,
    findings_total: usize,
    live: Option<CommitId>,
}

/// Shows the page.
pub(super) async fn show(visit: Visit) -> Response {
    let page = page(&visit).await;
    visit.show(page)
}

async fn page(visit: &Visit) -> Result<ProblemsPage, PageError> {
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
    // Without check-ins nothing is known of the use of groups, and without a snapshot there are no groups.
    let snapshot = visit.answering_snapshot().await?;
    let known = snapshot.as_ref().filter(|_| counts.total > 0);
    let unused = known.map(|it| unused(&it.estate.hierarchy, &members)).unwrap_or_default();
    let gone = match &snapshot {
        Some(snapshot) => visit.gone_pins(snapshot).await?,
        None => Arc::default(),
    };
    let commit: Option<Commit> = match visit.commit() {
        Some(commit) => Some(visit.get(&format!("/controller/commits/{commit}")).await?),
        None => None,
    };
    let findings = commit.map(|it| it.diagnostics).unwrap_or_default();
    let bad = |it: &&Condition| s::condition(it) != "good" && it.kind != "Reconciling";
    Ok(ProblemsPage {
        layout: visit.layout(Section::Problems),
        conditions: visit.status.conditions.iter().filter(bad).cloned().collect(),
        conflicts,
        errors,
        silent,
        silent_groups_total: unused.len(),
        silent_groups: unused.into_iter().take(LISTED).collect(),
        gone,
        findings_total: findings.len(),
        findings: findings.into_iter().take(LISTED).collect(),
        live: visit.commit(),
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
        self.conditions.is_empty()
            && [&self.conflicts, &self.errors, &self.silent].iter().all(|it| it.total == 0)
            && self.silent_groups_total == 0
            && self.gone.total == 0
            && self.findings_total == 0
    }

    /// Returns the lists of nodes, each with what it is about and where the whole of it is.
    fn node_lists(&self) -> [(&'static str, &'static str, &'static str, &NodePage); 3] {
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
