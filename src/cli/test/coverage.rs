//! Which groups, conditions and values of a repository its tests reach.

pub(super) mod lcov;
mod outcomes;
mod report;

use std::collections::HashMap;

use rayon::prelude::*;

use super::group_value::GroupValue;
use super::reach::{RepositoryPlaces, TestRun, TestRuns, comparisons, values_of};
use crate::classification::{WithheldFacts, conclude};
use crate::diagnostic::Place;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::Condition;
use outcomes::OutcomeCounts;

/// How many tests reach each part of the groups.
pub(super) struct Coverage {
    /// The groups that are written and can match or set something, by place.
    groups: Vec<CoveredGroup>,
}

/// How many tests reach a group.
struct CoveredGroup {
    name: String,
    place: Place,
    /// How many tests have their node in it; none for a group without a rule, which matches no node.
    tests: Option<usize>,
    conditions: Vec<CoveredCondition>,
    values: Vec<CoveredValue>,
}

/// How many tests see a comparison come out which way.
struct CoveredCondition {
    text: String,
    place: Place,
    held: usize,
    failed: usize,
}

/// How many tests get a value.
struct CoveredValue {
    text: String,
    place: Place,
    tests: usize,
}

/// How much of something is reached.
#[derive(Clone, Copy, Default)]
struct Share {
    reached: usize,
    total: usize,
}

impl Share {
    fn of(hits: impl Iterator<Item = usize>) -> Self {
        let mut share = Self::default();
        for hits in hits {
            share.total += 1;
            share.reached += usize::from(hits > 0);
        }
        share
    }
}

impl Coverage {
    /// Measures what tests reach.
    pub(super) fn measure(
        runs: &TestRuns<'_>,
        estate: &Estate,
        places: &RepositoryPlaces<'_>,
    ) -> Self {
        let hierarchy = &estate.hierarchy;
        let values = count_values(runs.all(), estate);
        let outcomes = outcomes::count(runs, hierarchy);
        let indexes: Vec<GroupIndex> = hierarchy.indexes().collect();
        let mut groups: Vec<CoveredGroup> = indexes
            .into_par_iter()
            .filter_map(|index| {
                let group = hierarchy.group(index);
                let written = places.values(hierarchy, index);
                let written = GroupValue::of(group).filter_map(|(it, _)| {
                    let tests = values.get(&(index, it)).copied().unwrap_or_default();
                    let place = it.place(written.as_ref()?)?;
                    Some(CoveredValue { text: it.describe(), place, tests })
                });
                // Every node matches the rule of the root group.
                let can_match = index != hierarchy.root() && group.rule.is_some();
                Some(CoveredGroup {
                    name: group.name.to_string(),
                    place: places.group(hierarchy, index)?,
                    tests: can_match.then(|| runs.count_in(index)),
                    conditions: conditions(index, &outcomes, hierarchy, places),
                    values: written.collect(),
                })
            })
            .collect();
        groups.sort_by(|a, b| a.place.cmp(&b.place));
        Self { groups }
    }

    fn of_groups(&self) -> Share {
        Share::of(self.groups.iter().filter_map(|it| it.tests))
    }

    /// Returns how many outcomes of comparisons tests see: each has two.
    fn of_outcomes(&self) -> Share {
        let conditions = self.groups.iter().flat_map(|it| &it.conditions);
        Share::of(conditions.flat_map(|it| [it.held, it.failed]))
    }

    fn of_values(&self) -> Share {
        Share::of(self.groups.iter().flat_map(|it| &it.values).map(|it| it.tests))
    }
}

/// Returns the comparisons of a group's rule with how many tests see them hold and fail.
fn conditions(
    index: GroupIndex,
    outcomes: &HashMap<(GroupIndex, usize), OutcomeCounts>,
    hierarchy: &Hierarchy,
    places: &RepositoryPlaces<'_>,
) -> Vec<CoveredCondition> {
    let Some(rule) = hierarchy.group(index).rule.as_deref() else { return Vec::new() };
    let of_condition = |(number, (condition, place)): (usize, (&Condition, Place))| {
        let OutcomeCounts { held, failed } = *outcomes.get(&(index, number))?;
        Some(CoveredCondition { text: condition.to_string(), place, held, failed })
    };
    let written = places.comparisons(hierarchy, index);
    comparisons(rule).into_iter().zip(written).enumerate().filter_map(of_condition).collect()
}

/// Counts the tests that get each value of a group.
fn count_values<'e>(
    runs: &'e [TestRun<'_>],
    estate: &'e Estate,
) -> HashMap<(GroupIndex, GroupValue<'e>), usize> {
    let count = |mut counts: HashMap<_, usize>, run: &'e TestRun<'_>| {
        let explanation = conclude(estate, &run.node, &run.groups, WithheldFacts::Refuse);
        for value in explanation.map(|it| values_of(&it)).unwrap_or_default() {
            *counts.entry(value).or_default() += 1;
        }
        counts
    };
    let add = |mut counts: HashMap<_, usize>, others: HashMap<_, usize>| {
        for (value, tests) in others {
            *counts.entry(value).or_default() += tests;
        }
        counts
    };
    // Each thread counts for itself: the values of one test at a time are in memory.
    runs.par_iter().with_min_len(32).fold(HashMap::new, count).reduce(HashMap::new, add)
}
