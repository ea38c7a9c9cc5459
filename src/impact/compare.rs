//! Comparing what one node gets in two states.

use std::sync::Arc;

use super::causes::causes;
use super::comparison::StateComparison;
use super::differences::differences;
use super::mixture::NodeCase;
use super::nodes::{Causes, Change, NodeChange, NodeComparison, Standing};
use super::version::{Result, StateVersion};
use crate::classification::Outcome;
use crate::model::Node;
use crate::snapshot::classify;

impl StateComparison<'_> {
    /// Compares what a node gets.
    pub fn node(&self, node: &Node) -> NodeComparison {
        let [old, new] = self.indexes();
        let new = classify(self.side(StateVersion::Head).estate, new, node);
        if !self.may_differ(node) {
            return NodeComparison { standing: [standing(&new); 2], change: None };
        }
        let old = classify(self.side(StateVersion::Base).estate, old, node);
        let standing = [standing(&old), standing(&new)];
        let differences = differences(self, &old, &new);
        if differences.is_empty() {
            return NodeComparison { standing, change: None };
        }
        let causes = match NodeCase::new(self, node, [&old, &new]) {
            Err(_) => vec![Causes::Undecided; differences.len()].into(),
            Ok(case) => {
                let key = case.key();
                self.known_causes(key.as_ref()).unwrap_or_else(|| {
                    let causes: Arc<[Causes]> = causes(self, &case, &old, &differences).into();
                    self.learn(key, &causes);
                    causes
                })
            }
        };
        let pairs = differences.into_iter().zip(causes.iter().cloned());
        let changes = pairs.map(|(what, causes)| Change { what, causes }).collect();
        NodeComparison { standing, change: Some(NodeChange { changes }) }
    }
}

fn standing(result: &Result<'_>) -> Standing {
    match result {
        Err(_) => Standing::Error,
        Ok(explanation) => match explanation.outcome {
            Outcome::Classified(_) => Standing::Classified,
            Outcome::Conflict(_) => Standing::Conflict,
        },
    }
}
