//! Completes the nodes of a list that have checked in without facts, as `/enc` does for one of them.

use std::collections::HashMap;
use std::iter::once;
use std::ops::ControlFlow;

use serde_json::Value;

use super::client_presence::ClientPresence;
use super::error::ApiError;
use super::node_lookup::{CompletedNode, FactsPolicy, has_stored_facts};
use super::types::{Error, ErrorKind};
use crate::model::{Node, map_memory};

/// For how many nodes `PuppetDB` is asked at once.
const TOGETHER: usize = 64;

/// How many bytes of memory the nodes take together, by an estimate, that wait until they are listed; the last of them may
/// take more.
const BYTES: usize = 8 << 20;

/// Completes nodes in the order of a list.
#[derive(Debug)]
pub(super) struct ListCompletion {
    facts: FactsPolicy,
    presence: ClientPresence,
    /// What is known of the nodes that come next.
    known: HashMap<String, Result<Node, Error>>,
    /// Why `PuppetDB` is not asked again.
    unreachable: Option<Error>,
}

impl ListCompletion {
    pub(super) fn new(facts: FactsPolicy) -> Self {
        let presence = ClientPresence::default();
        Self { facts, presence, known: HashMap::new(), unreachable: None }
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
        if !self.known.contains_key(&node.name) {
            // What is left of others is out of order, and must not gather.
            self.known.clear();
            let following = following.filter(|it| !has_stored_facts(it)).take(TOGETHER - 1);
            self.find(once(node.clone()).chain(following.cloned()).collect());
        }
        // The others were larger than there is room for.
        if !self.known.contains_key(&node.name) {
            self.known.clear();
            self.find(vec![node.clone()]);
        }
        *node = self.known.remove(&node.name).unwrap_or_else(|| Err(not_completed()))?;
        Ok(())
    }

    /// Finds the first of some nodes, and others if there is room.
    fn find(&mut self, nodes: Vec<Node>) {
        let mut unknown = Vec::new();
        for node in nodes {
            match self.facts.complete_by_file(&node) {
                Ok(None) => unknown.push(node),
                found => {
                    let found = found.map_err(Error::from);
                    self.known.extend(found.transpose().map(|it| (node.name, it)));
                }
            }
        }
        if let Some(error) = &self.unreachable {
            let failed = unknown.into_iter().map(|it| (it.name, Err(error.clone())));
            return self.known.extend(failed);
        }
        let names: Vec<String> = unknown.iter().map(|it| it.name.clone()).collect();
        let (known, mut bytes) = (&mut self.known, 0);
        let mut keep = |completed| {
            let (name, completed) = match completed {
                CompletedNode::Classified(node) => {
                    bytes += map_memory(&node.fact) + map_memory(&node.trusted);
                    (node.name.clone(), Ok(node))
                }
                CompletedNode::FactsMissing(name) => {
                    let error = without_facts(&name);
                    (name, Err(error))
                }
            };
            known.insert(name, completed);
            if bytes > BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let watch = self.presence.watch();
        if let Err(error) = self.facts.complete_some(unknown.into_iter(), &watch, &mut keep) {
            let error = Error::from(error);
            for name in names {
                self.known.entry(name).or_insert_with(|| Err(error.clone()));
            }
            self.unreachable = Some(error);
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
