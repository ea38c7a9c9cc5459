//! Compares what the nodes of a fleet get, a batch of them at a time.
//!
//! While one batch is decoded and compared on all processors, the next is read: two batches are in memory.

use std::sync::mpsc::{self, Receiver};

use rayon::prelude::*;

use super::super::error::ApiError;
use super::super::node_lookup::FactsPolicy;
use super::rows::{FleetNode, FleetRow, RowBatch, UseRows};
use crate::impact::{NodeComparison, StateComparison, Survey};
use crate::mentioned::MentionedPaths;
use crate::model::Node;
use crate::store::StoreError;

/// What came of a row.
enum RowOutcome {
    Compared(String, NodeComparison),
    Bare(Node),
    Unreadable(StoreError),
}

/// What came of a fleet.
#[derive(Debug, Default)]
pub(super) struct Surveyed {
    pub(super) survey: Survey,
    /// Why some nodes were not compared.
    pub(super) unreadable: Vec<String>,
}

/// Compares the nodes of a fleet.
pub(super) struct Surveyor<'s> {
    pub(super) comparison: &'s StateComparison<'s>,
    /// What the rules of either state mention.
    pub(super) paths: &'s MentionedPaths,
    /// Where the facts of nodes come from that have sent none.
    pub(super) facts: &'s FactsPolicy,
}

impl Surveyor<'_> {
    /// Compares all nodes that `read` passes on. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the nodes, or the facts of one that has sent none, cannot be read.
    pub(super) fn survey<R: FleetRow>(
        &self,
        read: impl FnOnce(UseRows<'_, R>) -> Result<(), StoreError>,
    ) -> Result<Surveyed, ApiError> {
        let mut surveyed = Surveyed::default();
        let bare = self.run(&mut surveyed, read)?;
        let mut without_facts = Vec::new();
        self.run(&mut surveyed, |each| {
            let mut batch = RowBatch::new(each);
            for node in bare {
                let name = node.name.clone();
                match self.facts.complete(node)? {
                    Some(node) => batch.push(Ok(FleetNode::Known(self.paths.keep(&node)))),
                    None => without_facts.push(name),
                }
            }
            batch.flush();
            Ok::<_, ApiError>(())
        })?;
        surveyed.unreadable.extend(without_facts.iter().map(|name| {
            format!("`{name}` has checked in without facts, which `--enc-facts required` demands")
        }));
        Ok(surveyed)
    }

    /// Compares rows while the next are read; returns the nodes that have no facts.
    fn run<R: FleetRow, E>(
        &self,
        surveyed: &mut Surveyed,
        read: impl FnOnce(UseRows<'_, R>) -> Result<(), E>,
    ) -> Result<Vec<Node>, E> {
        let mut bare = Vec::new();
        // A comparison that panics sends nothing; the scope passes the panic on.
        let mut wait = |running: Option<Receiver<Vec<RowOutcome>>>| {
            for outcome in running.and_then(|it| it.recv().ok()).unwrap_or_default() {
                match outcome {
                    RowOutcome::Compared(name, compared) => {
                        surveyed.survey.extend([(name, compared)]);
                    }
                    RowOutcome::Bare(node) => bare.push(node),
                    RowOutcome::Unreadable(error) => surveyed.unreadable.push(error.to_string()),
                }
            }
        };
        rayon::in_place_scope(|scope| {
            let mut running = None;
            read(&mut |rows| {
                wait(running.take());
                let (done, next) = mpsc::sync_channel(1);
                scope.spawn(move |_| {
                    done.send(self.compare(rows)).ok();
                });
                running = Some(next);
            })?;
            wait(running);
            Ok(())
        })?;
        Ok(bare)
    }

    fn compare<R: FleetRow>(&self, rows: Vec<R>) -> Vec<RowOutcome> {
        let compare = |row: R| match row.decode(self.paths) {
            Ok(Some(FleetNode::Known(node))) => {
                let compared = self.comparison.node(&node);
                Some(RowOutcome::Compared(node.name, compared))
            }
            Ok(Some(FleetNode::Bare(node))) => Some(RowOutcome::Bare(node)),
            Ok(None) => None,
            Err(error) => Some(RowOutcome::Unreadable(error)),
        };
        rows.into_par_iter().filter_map(compare).collect()
    }
}

#[cfg(test)]
mod tests;
