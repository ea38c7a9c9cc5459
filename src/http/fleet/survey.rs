//! Examines the nodes of a fleet, a batch of them at a time.
//!
//! While one batch is decoded and examined on all processors, the next is read: two batches are in memory.

use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver};

use rayon::prelude::*;
use rayon::{Scope, ThreadPool};

use super::super::client_presence::ClientWatch;
use super::super::error::ApiError;
use super::super::node_lookup::{CompletedNode, FactsPolicy};
use super::rows::{FleetNode, FleetRow, RowBatch, UseRows};
use crate::mentioned::MentionedPaths;
use crate::model::Node;
use crate::priority;
use crate::store::StoreError;

/// The threads that examine, one for each processor: they yield to those that answer agents. None if the system
/// gives none.
static SURVEYORS: LazyLock<Option<ThreadPool>> =
    LazyLock::new(|| priority::yielding_threads("survey"));

/// Runs an operation whose parts those threads run.
fn in_place_scope<'s, T>(operation: impl FnOnce(&Scope<'s>) -> T) -> T {
    match &*SURVEYORS {
        Some(pool) => pool.in_place_scope(operation),
        None => rayon::in_place_scope(operation),
    }
}

/// What came of a row.
enum RowOutcome<T> {
    Examined(T),
    Bare(Node),
    Unreadable(StoreError),
}

/// Examines the nodes of a fleet.
pub(in crate::http) struct Surveyor<'s, T> {
    /// What is found out of a node, on any thread. The node has at least the paths, and its certname.
    pub(in crate::http) examine: &'s (dyn Fn(Node) -> T + Sync),
    /// What the examination reads of a node.
    pub(in crate::http) paths: &'s MentionedPaths,
    /// Where the facts of nodes come from that have sent none.
    pub(in crate::http) facts: &'s FactsPolicy,
    /// The client that waits. When it leaves, no more nodes are examined.
    pub(in crate::http) watch: &'s ClientWatch,
}

impl<T: Send> Surveyor<'_, T> {
    /// Examines all nodes that `read` passes on, and passes on what was found; returns why some were not
    /// examined. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the nodes, or the facts of one that has sent none, cannot be read, or the client
    /// leaves.
    pub(in crate::http) fn survey<R: FleetRow>(
        &self,
        read: impl FnOnce(UseRows<'_, R>) -> Result<(), StoreError>,
        found: &mut dyn FnMut(T),
    ) -> Result<Vec<String>, ApiError> {
        let mut unreadable = Vec::new();
        let bare = self.run(&mut unreadable, read, found)?;
        let (mut without_facts, mut not_read) = (Vec::new(), Vec::new());
        self.run(
            &mut unreadable,
            |each| {
                let mut batch = RowBatch::new(each);
                self.facts.complete_all(bare, self.watch, &mut |completed| match completed {
                    CompletedNode::Classified(node) => {
                        batch.push(Ok(FleetNode::Known(self.paths.keep(&node))));
                    }
                    CompletedNode::FactsMissing(name) => without_facts.push(name),
                    CompletedNode::Unreadable(it) => not_read.push(it.reason),
                })?;
                batch.flush();
                Ok::<_, ApiError>(())
            },
            found,
        )?;
        self.watch.check()?;
        unreadable.extend(not_read);
        unreadable.extend(without_facts.iter().map(|name| {
            format!("`{name}` has checked in without facts, which `--enc-facts required` demands")
        }));
        Ok(unreadable)
    }

    /// Examines rows while the next are read; returns the nodes that have no facts.
    fn run<R: FleetRow, E>(
        &self,
        unreadable: &mut Vec<String>,
        read: impl FnOnce(UseRows<'_, R>) -> Result<(), E>,
        found: &mut dyn FnMut(T),
    ) -> Result<Vec<Node>, E> {
        let mut bare = Vec::new();
        // An examination that panics sends nothing; the scope passes the panic on.
        let mut wait = |running: Option<Receiver<Vec<RowOutcome<T>>>>| {
            for outcome in running.and_then(|it| it.recv().ok()).unwrap_or_default() {
                match outcome {
                    RowOutcome::Examined(it) => found(it),
                    RowOutcome::Bare(node) => bare.push(node),
                    RowOutcome::Unreadable(error) => unreadable.push(error.to_string()),
                }
            }
        };
        in_place_scope(|scope| {
            let mut running = None;
            read(&mut |rows| {
                wait(running.take());
                let (done, next) = mpsc::sync_channel(1);
                scope.spawn(move |_| {
                    done.send(self.examine(rows)).ok();
                });
                running = Some(next);
            })?;
            wait(running);
            Ok(())
        })?;
        Ok(bare)
    }

    fn examine<R: FleetRow>(&self, rows: Vec<R>) -> Vec<RowOutcome<T>> {
        let examine = |row: R| match row.decode(self.paths) {
            Ok(Some(FleetNode::Known(node))) => {
                Some(RowOutcome::Examined((self.examine)(node.with_certname())))
            }
            Ok(Some(FleetNode::Bare(node))) => Some(RowOutcome::Bare(node)),
            Ok(None) => None,
            Err(error) => Some(RowOutcome::Unreadable(error)),
        };
        let examine = |row: R| if self.watch.is_gone() { None } else { examine(row) };
        rows.into_par_iter().filter_map(examine).collect()
    }
}

#[cfg(test)]
mod tests;
