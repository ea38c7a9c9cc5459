//! Completes the nodes of a list that have checked in without facts, as `/enc` does for one of them.

use std::collections::HashMap;
use std::iter::once;
use std::ops::ControlFlow;

use serde_json::Value;

use super::client_presence::ClientPresence;
use super::error::ApiError;
use super::node_lookup::{
    CompletedNode, FactsPolicy, UnreadableNode, cannot_be_asked, has_stored_facts,
};
use super::types::{Error, ErrorKind};
use crate::facts::RowRoom;
use crate::model::{Node, map_memory};

/// For how many nodes `PuppetDB` is asked at once at most.
const TOGETHER: usize = 64;

/// For how many at first, before it is known how large they are.
const AT_FIRST: usize = 8;

/// How many bytes of memory the nodes take together, by an estimate, that wait until they are listed; the last of them may
/// take more.
const BYTES: usize = 8 << 20;

/// Completes nodes in the order of a list.
#[derive(Debug)]
pub(super) struct ListCompletion {
    facts: FactsPolicy,
    presence: ClientPresence,
    /// What `PuppetDB` says of the nodes that come next.
    known: HashMap<String, Result<Node, Error>>,
    /// For how many nodes it is asked next.
    together: usize,
    /// Why it is not asked again.
    unreachable: Option<Error>,
}

impl ListCompletion {
    pub(super) fn new(facts: FactsPolicy) -> Self {
        let presence = ClientPresence::default();
        let (known, together) = (HashMap::new(), AT_FIRST);
        Self { facts, presence, known, together, unreachable: None }
    }

    /// Completes a node as it is classified, with those that follow it in the list. Blocking.
    ///
    /// # Errors
    ///
    /// Returns why it is not known what the node has.
    pub(super) fn complete<'n>(
        &mut self,
        node: &mut Node,
        following: impl Iterator<Item = &'n Node>,
    ) -> Result<(), Error> {
        if has_stored_facts(node) || !self.facts.completes() {
            return Ok(());
        }
        // One file is in memory at a time.
        if let Some(completed) = self.facts.complete_by_file(node)? {
            let (_, completed) = explained(completed);
            *node = completed?;
            return Ok(());
        }
        if !self.known.contains_key(&node.name) {
            let following = following.filter(|it| !has_stored_facts(it)).take(self.together - 1);
            self.find(once(node.clone()).chain(following.cloned()).collect());
        }
        // The others were larger than there is room for.
        if !self.known.contains_key(&node.name) {
            self.find(vec![node.clone()]);
        }
        *node = self.known.remove(&node.name).unwrap_or_else(|| Err(not_completed()))?;
        Ok(())
    }

    /// Finds the first of some nodes, and others if there is room.
    fn find(&mut self, nodes: Vec<Node>) {
        // What is left of others is out of order, and must not gather.
        self.known.clear();
        if let Some(error) = &self.unreachable {
            return self.known.extend(nodes.into_iter().map(|it| (it.name, Err(error.clone()))));
        }
        let names: Vec<String> = nodes.iter().map(|it| it.name.clone()).collect();
        let (known, mut bytes) = (&mut self.known, 0);
        let mut keep = |completed| {
            let (name, completed) = match completed {
                CompletedNode::Classified(node) => {
                    bytes += map_memory(&node.fact) + map_memory(&node.trusted);
                    (node.name.clone(), Ok(node))
                }
                other => explained(other),
            };
            known.insert(name, completed);
            if bytes > BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let watch = self.presence.watch();
        let found = self.facts.complete_by_puppetdb(nodes, &watch, &mut keep);
        // What comes next is about as large.
        let each = bytes / self.known.len().max(1);
        self.together = (BYTES / 2 / each.max(1)).clamp(1, TOGETHER);
        if let Err(error) = found {
            let error = Error::from(error);
            for name in names {
                self.known.entry(name).or_insert_with(|| Err(error.clone()));
            }
            self.unreachable = Some(error);
        }
    }
}

/// Completes one node, as [`ListCompletion`] does those of a list. Blocking.
///
/// # Errors
///
/// Returns why it is not known what the node has.
pub(super) fn complete_alone(
    facts: &FactsPolicy,
    node: &mut Node,
    room: &dyn RowRoom,
) -> Result<(), Error> {
    if has_stored_facts(node) || !facts.completes() {
        return Ok(());
    }
    let (_, completed) = explained(facts.complete(node.clone(), room)?);
    *node = completed?;
    Ok(())
}

/// Returns the name of a node and what it has, or why that is not known.
fn explained(completed: CompletedNode) -> (String, Result<Node, Error>) {
    match completed {
        CompletedNode::Classified(node) => (node.name.clone(), Ok(node)),
        CompletedNode::FactsMissing(name) => {
            let error = without_facts(&name);
            (name, Err(error))
        }
        CompletedNode::Unreadable(UnreadableNode { name, reason }) => {
            (name, Err(cannot_be_asked(&reason).into()))
        }
    }
}

/// Says that the facts of a node were not even asked for.
fn not_completed() -> Error {
    ApiError::internal("The facts could not be read.").into()
}

/// Says that a node has no classification because its facts are required.
fn without_facts(name: &str) -> Error {
    let message = format!(
        "The node `{name}` has checked in without facts, which `--enc-facts required` demands."
    );
    ApiError::new(ErrorKind::NotFound, message, Value::from(name)).into()
}
