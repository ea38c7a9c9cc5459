//! The nodes in a group.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::blocking::{Panicked, STORE, run_yielding};
use super::check_ins::complete;
use super::client_presence::{ClientPresence, ClientWatch};
use super::error::ApiError;
use super::groups::find;
use super::node_lookup::{
    CompletedNode, FactsPolicy, cannot_be_asked, for_each, has_stored_facts, has_trusted,
    list_named,
};
use super::openapi::errors::{EvaluationErrors, FactsErrors, PageErrors, SnapshotErrors};
use super::openapi::parameters::{Page, SnapshotParameters};
use super::openapi::responses::GroupInPathErrors;
use super::original_uri::OriginalUri;
use super::path_parameter::PathParameter;
use super::query::Parameters;
use super::server::MemoryReservation;
use super::snapshot_context::SnapshotContext;
use super::types::GroupNodes;
use crate::classification::is_member;
use crate::facts::{NamedNode, NodeSource, RowRoom};
use crate::hierarchy::{GroupIndex, inherited_rule};
use crate::model::{GroupId, Node, is_left_out};
use crate::rule::{QueryFormat, to_covering_query};
use crate::snapshot::Snapshot;
use crate::store::{CheckIn, CheckIns};

/// Names the nodes in a group: of those that have checked in and, with `--puppetdb`, of those it knows.
#[utoipa::path(
    get, path = "/v1/groups/{id}/nodes", operation_id = "group_nodes", tag = "Groups",
    params(("id" = GroupId, Path), SnapshotParameters, Page),
    responses(
        (status = 200, body = GroupNodes),
        GroupInPathErrors,
        PageErrors,
        EvaluationErrors,
        FactsErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn list(
    State(check_ins): State<CheckIns>,
    State(facts): State<FactsPolicy>,
    context: SnapshotContext,
    parameters: Parameters,
    uri: OriginalUri,
    PathParameter(id): PathParameter,
) -> Result<Response, ApiError> {
    let found = find(&context.snapshot.estate.hierarchy, &id, &uri);
    let index = found.map_err(|error| context.named(error))?;
    let snapshot = Arc::clone(&context.snapshot);
    let permit = STORE.admit().await?;
    let presence = ClientPresence::default();
    let watch = presence.watch();
    let search = move || {
        let _permit = permit;
        GroupSearch::new(&check_ins, &facts, &snapshot, index, &watch).nodes()
    };
    // A search of a large fleet takes seconds.
    let names = run_yielding(search).await;
    let names = names.map_err(|Panicked| ApiError::internal("The nodes could not be read."))?;
    let nodes = names.and_then(|names| parameters.page(names.into_iter().collect()));
    Ok(context.json(nodes.map(|nodes| GroupNodes { nodes })))
}

/// Finds the nodes of a group. Facts come from the check-in, else from the sources of `/enc`.
struct GroupSearch<'a> {
    check_ins: &'a CheckIns,
    facts: &'a FactsPolicy,
    snapshot: &'a Snapshot,
    group: GroupIndex,
    watch: &'a ClientWatch,
    members: BTreeSet<String>,
    /// The nodes whose facts were found, in the group or not.
    settled: HashSet<String>,
}

impl<'a> GroupSearch<'a> {
    fn new(
        check_ins: &'a CheckIns,
        facts: &'a FactsPolicy,
        snapshot: &'a Snapshot,
        group: GroupIndex,
        watch: &'a ClientWatch,
    ) -> Self {
        let (members, settled) = (BTreeSet::new(), HashSet::new());
        Self { check_ins, facts, snapshot, group, watch, members, settled }
    }

    /// Returns the names, unless the client leaves. Blocking.
    fn nodes(mut self) -> Result<BTreeSet<String>, ApiError> {
        let room = MemoryReservation::for_lists();
        let bare = self.add_check_ins(&room)?;
        let unknown = self.add_files(bare)?;
        let unknown = self.members_by_name(unknown)?;
        match self.facts.puppetdb.as_deref() {
            Some(puppetdb) => self.add_puppetdb(puppetdb, unknown, &room)?,
            None => self.members.extend(unknown),
        }
        Ok(self.members)
    }

    /// Returns the name of a node, and whether it is in the group: with its certname, as `/enc` classifies it.
    fn member(&self, node: Node) -> Result<(String, bool), ApiError> {
        let node = node.with_certname();
        let is_member = is_member(&self.snapshot.estate.hierarchy, self.group, &node)?;
        Ok((node.name, is_member))
    }

    /// Returns the nodes that are in the group by their names alone.
    fn members_by_name(&self, unknown: Vec<Node>) -> Result<Vec<String>, ApiError> {
        // A name alone is classified only where facts are optional, as in `/enc`.
        if self.facts.required {
            return Ok(Vec::new());
        }
        let mut members = Vec::new();
        for node in unknown {
            if let (name, true) = self.member(node)? {
                members.push(name);
            }
        }
        Ok(members)
    }

    /// Adds a node whose facts are known, if it is in the group.
    fn add(&mut self, node: Node) -> Result<(), ApiError> {
        let (name, is_member) = self.member(node)?;
        if is_member {
            self.members.insert(name.clone());
        }
        self.settled.insert(name);
        Ok(())
    }

    /// Adds nodes that have checked in with facts, and returns those without.
    fn add_check_ins(&mut self, room: &dyn RowRoom) -> Result<Vec<Node>, ApiError> {
        // The error of the first node of which it is not known whether it is in the group.
        let mut lost: Option<ApiError> = None;
        let mut bare = Vec::new();
        let check_ins = self.check_ins;
        check_ins.for_each(room, |listed| {
            if lost.is_some() {
                return;
            }
            if let Err(error) = self.watch.check() {
                lost = Some(error);
                return;
            }
            match complete(check_ins, listed) {
                Ok(CheckIn { node, .. }) if !has_stored_facts(&node) => bare.push(node),
                Ok(CheckIn { node, .. }) => lost = self.add(node).err(),
                Err(error) => lost = Some(error.into()),
            }
        })?;
        lost.map_or(Ok(bare), Err)
    }

    /// Adds nodes whose facts files have, and returns the others.
    fn add_files(&mut self, bare: Vec<Node>) -> Result<Vec<Node>, ApiError> {
        // Without its facts it is not known whether a node is in the group of which some were left out, and its name alone
        // never is enough. What a node has proved may have it in groups that a query of the inventory does not find.
        let is_apart = |it: &Node| is_left_out(&it.fact) || has_trusted(it);
        let (apart, bare): (Vec<Node>, Vec<Node>) = bare.into_iter().partition(is_apart);
        let mut lost = None;
        let facts = self.facts;
        facts.complete_all(apart, self.watch, &mut |completed| match completed {
            _ if lost.is_some() => {}
            CompletedNode::Classified(node) => lost = self.add(node).err(),
            CompletedNode::FactsMissing(_) => {}
            CompletedNode::Unreadable(it) => lost = Some(cannot_be_asked(&it.reason)),
        })?;
        let mut unknown = Vec::new();
        for node in bare {
            match self.facts.complete_by_file(&node)? {
                Some(CompletedNode::Classified(node)) => self.add(node)?,
                Some(_) => {}
                None => unknown.push(node),
            }
        }
        lost.map_or(Ok(unknown), Err)
    }

    /// Adds nodes whose facts `PuppetDB` knows, and of the others those that match by their names alone.
    fn add_puppetdb(
        &mut self,
        puppetdb: &dyn NodeSource,
        unknown: Vec<String>,
        room: &dyn RowRoom,
    ) -> Result<(), ApiError> {
        let query = inherited_rule(&self.snapshot.estate.hierarchy, self.group)
            .and_then(|rule| to_covering_query(&rule, QueryFormat::Inventory));
        let mut lost = None;
        let required = self.facts.required;
        for_each(puppetdb, query.as_ref(), self.watch, &mut |node| {
            let Some(node) = classified(node, required) else { return };
            if lost.is_none() && !self.settled.contains(&node.name) {
                match self.member(node) {
                    Ok((name, true)) => {
                        self.members.insert(name);
                    }
                    Ok((_, false)) => {}
                    Err(error) => lost = Some(error),
                }
            }
        })?;
        if let Some(error) = lost.take() {
            return Err(error);
        }
        let names: Vec<String> =
            unknown.into_iter().filter(|it| !self.members.contains(it)).collect();
        let mut with_facts = HashSet::new();
        list_named(puppetdb, &names, room, self.watch, &mut |NamedNode { name, node }| {
            match node {
                Ok(node) if node.fact.is_empty() => {}
                Ok(_) => {
                    with_facts.insert(name);
                }
                Err(reason) => lost = lost.take().or_else(|| Some(cannot_be_asked(&reason))),
            }
            ControlFlow::Continue(())
        })?;
        if let Some(error) = lost {
            return Err(error);
        }
        self.members.extend(names.into_iter().filter(|it| !with_facts.contains(it)));
        Ok(())
    }
}

/// Returns a node of the inventory as `/enc` classifies it: without facts there by its name alone, unless they are
/// required.
fn classified(node: Node, required: bool) -> Option<Node> {
    match node.fact.is_empty() {
        false => Some(node),
        true => (!required).then(|| Node::named(node.name)),
    }
}
