//! Whether tests notice what changes about groups.
//!
//! A mutant is the repository with one change: a condition, pinned node or value dropped, or a condition
//! negated. A test notices it if it fails. What no test notices, no test holds.

#![expect(clippy::disallowed_methods, reason = "the budget is of time")]

mod mutants;
mod report;

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::group_names::GroupNames;
use super::reach::{RepositoryPlaces, TestRun, TestRuns, deciding_ancestor};
use super::verdict::judge;
use crate::classification::{WithheldFacts, conclude, matches_within};
use crate::cli::progress::ProgressBar;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{Condition, Group};
use crate::rule::evaluate;
use mutants::{Mutant, MutatedPart};

/// How much work may be spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct MutationBudget {
    /// The most mutants that are tried; of more, some of all parts of the repository.
    pub(super) mutants: NonZeroUsize,
    /// When the last one is begun.
    pub(super) time: Duration,
}

/// What became of the mutants.
pub(super) struct MutationOutcome<'e> {
    /// How many there are.
    total: usize,
    tried: usize,
    survivors: Vec<Survivor<'e>>,
}

impl MutationOutcome<'_> {
    /// Returns whether a mutant was tried that no test noticed.
    pub(super) fn has_survivors(&self) -> bool {
        !self.survivors.is_empty()
    }
}

/// A mutant that no test notices.
struct Survivor<'e> {
    mutant: Mutant<'e>,
    group: &'e str,
    reach: Reach,
}

/// Whether tests reach what a mutant changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Reached,
    Unreached,
}

/// What the tests say of a mutant.
enum MutantVerdict {
    Noticed,
    Survived(Reach),
}

/// Tries mutants of every group against tests that pass without them.
pub(super) fn try_mutants<'e>(
    runs: &TestRuns<'_>,
    estate: &'e Estate,
    places: &RepositoryPlaces<'_>,
    budget: MutationBudget,
) -> MutationOutcome<'e> {
    let began = Instant::now();
    let all = mutants::of(&estate.hierarchy, places);
    let total = all.len();
    let chosen = mutants::sample(all, budget.mutants.get(), &estate.hierarchy);
    let by_group: Vec<&[Mutant<'e>]> = chosen.chunk_by(|a, b| a.group == b.group).collect();
    let progress = Mutex::new(ProgressBar::new(chosen.len(), "mutants"));
    let tried = AtomicUsize::new(0);
    let mut survivors: Vec<Survivor<'e>> = by_group
        .into_par_iter()
        .flat_map_iter(|mutants| {
            let mut trial = None;
            let mut survivors = Vec::new();
            for mutant in mutants {
                if began.elapsed() > budget.time {
                    break;
                }
                let trial = trial.get_or_insert_with(|| GroupTrial::of(mutant.group, runs, estate));
                tried.fetch_add(1, Ordering::Relaxed);
                if let Ok(mut progress) = progress.lock() {
                    progress.advance();
                }
                if let MutantVerdict::Survived(reach) = trial.verdict(mutant) {
                    let group = estate.hierarchy.group(mutant.group).name.as_str();
                    survivors.push(Survivor { mutant: mutant.clone(), group, reach });
                }
            }
            survivors
        })
        .collect();
    if let Ok(progress) = progress.lock() {
        progress.end();
    }
    survivors
        .sort_by(|a, b| (&a.mutant.place, &a.mutant.part).cmp(&(&b.mutant.place, &b.mutant.part)));
    MutationOutcome { total, tried: tried.into_inner(), survivors }
}

/// The tests that changes to one group can concern.
struct GroupTrial<'r, 't, 'e> {
    estate: &'e Estate,
    group: GroupIndex,
    /// The tests for whose nodes the rule decides.
    asking: Vec<&'r TestRun<'t>>,
    /// The tests whose nodes have leaves that inherit from the group.
    inheriting: Vec<&'r TestRun<'t>>,
}

impl<'r, 't, 'e> GroupTrial<'r, 't, 'e> {
    fn of(group: GroupIndex, runs: &'r TestRuns<'t>, estate: &'e Estate) -> Self {
        let asking = runs.below(deciding_ancestor(&estate.hierarchy, group));
        Self { estate, group, asking, inheriting: runs.inheriting(group) }
    }

    fn verdict(&self, mutant: &Mutant<'_>) -> MutantVerdict {
        let group = self.estate.hierarchy.group(self.group);
        let (is_noticed, reached) = match &mutant.part {
            MutatedPart::Value(value) => {
                let is_noticed = mutated(&self.estate.hierarchy, &value.dropped_from(group))
                    .is_some_and(|hierarchy| {
                        let estate = Estate { hierarchy, ..self.estate.clone() };
                        self.inheriting.iter().any(|run| notices(run, &estate, &run.groups))
                    });
                (is_noticed, !self.inheriting.is_empty())
            }
            MutatedPart::Rule(change) => {
                let rule = group.rule.as_deref().map(|rule| change.applied_to(rule));
                let is_noticed =
                    rule.is_some_and(|rule| self.asking.iter().any(|run| self.tells(run, &rule)));
                (is_noticed, !self.asking.is_empty())
            }
        };
        match (is_noticed, reached) {
            (true, _) => MutantVerdict::Noticed,
            (false, true) => MutantVerdict::Survived(Reach::Reached),
            (false, false) => MutantVerdict::Survived(Reach::Unreached),
        }
    }

    /// Returns whether a test fails with another rule of the group.
    fn tells(&self, run: &TestRun<'_>, rule: &Condition) -> bool {
        let hierarchy = &self.estate.hierarchy;
        let (was, is) = (run.has(self.group), evaluate(rule, &run.node));
        let (before, after) = (self.group, hierarchy.end(self.group));
        let mut groups: Vec<GroupIndex> =
            run.groups.iter().copied().filter(|it| *it < before || *it >= after).collect();
        match is {
            // A node that cannot be classified fails a test.
            Err(_) => return true,
            Ok(is) if is == was => return false,
            Ok(false) => {}
            Ok(true) => {
                let below = hierarchy.subtree(self.group).skip(1);
                let Ok(below) = matches_within(hierarchy, below, &run.node) else { return true };
                groups.push(self.group);
                groups.extend(below);
                groups.sort_unstable();
            }
        }
        notices(run, self.estate, &groups)
    }
}

/// Returns whether a test fails in an estate in which these groups match its node.
fn notices(run: &TestRun<'_>, estate: &Estate, groups: &[GroupIndex]) -> bool {
    // A node that cannot be classified fails a test. What the mismatches say is not shown.
    conclude(estate, &run.node, groups, WithheldFacts::Refuse)
        .map_or(true, |it| !judge(run.test, &it, &GroupNames::default()).is_empty())
}

/// Returns the tree with another group in the place of one.
fn mutated(hierarchy: &Hierarchy, group: &Group) -> Option<Hierarchy> {
    if let Some((hierarchy, _)) = hierarchy.amended([group.clone()]) {
        return Some(hierarchy);
    }
    // The rule of the root group cannot be amended.
    let all =
        hierarchy.groups().map(|it| if it.id == group.id { group.clone() } else { it.clone() });
    Hierarchy::build(all.collect()).ok()
}

#[cfg(test)]
mod tests;
