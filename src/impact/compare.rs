//! Comparing what one node gets in two states.

use std::sync::Arc;

use super::causes::causes;
use super::comparison::{MatchResult, StateComparison};
use super::differences::differences;
use super::mixture::NodeCase;
use super::nodes::{Causes, Change, NodeChange, NodeComparison, Standing};
use super::version::{Result, STATES, StateVersion};
use crate::classification::{Outcome, WithheldFacts, conclude, conflicts};
use crate::model::Node;

impl StateComparison<'_> {
    /// Compares what a node gets. It needs no other facts than those that the rules of either state
    /// mention, and those that their mixtures put into values.
    pub fn node(&self, node: &Node) -> NodeComparison {
        let [old, new] = STATES.map(|version| self.matches(version, node));
        if !self.may_differ(node, [&old, &new]) {
            return NodeComparison { standing: [self.standing(&new); 2], change: None };
        }
        let [old, new] =
            [(StateVersion::Base, old), (StateVersion::Head, new)].map(|(version, groups)| {
                let estate = self.side(version).estate;
                conclude(estate, node, &groups?, WithheldFacts::Mark)
            });
        let standing = [standing(&old), standing(&new)];
        let differences = differences(self, &self.shown(node), &old, &new);
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

    /// Returns the standing of a node by the groups of the head that match it: values that are set for the
    /// node alone have no part in it.
    fn standing(&self, new: &MatchResult) -> Standing {
        let Ok(groups) = new else { return Standing::Error };
        self.known_standing(groups, || {
            match conflicts(self.side(StateVersion::Head).estate, groups).is_empty() {
                true => Standing::Classified,
                false => Standing::Conflict,
            }
        })
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
