//! How the comparisons of rules come out in tests.
//!
//! Rules of many groups look at the same path of the same nodes. So the tests are counted by the value there, and
//! each comparison is evaluated once for each value.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::cli::test::reach::{TestRuns, comparisons, deciding_ancestor};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Comparison, Condition, Node, Path};
use crate::rule::{Actual, actual, holds};

/// How many tests see a comparison hold, and how many see it fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OutcomeCounts {
    pub(super) held: usize,
    pub(super) failed: usize,
}

/// A comparison, and its group and number.
type NumberedComparison<'h> = (GroupIndex, usize, &'h Comparison);

/// Counts the outcomes of each comparison of each rule, by group and the number of the comparison. A rule is
/// evaluated only for nodes that match the ancestors; for others it decides nothing.
pub(super) fn count(
    runs: &TestRuns<'_>,
    hierarchy: &Hierarchy,
) -> HashMap<(GroupIndex, usize), OutcomeCounts> {
    let mut by_path: HashMap<(Option<GroupIndex>, &Path), Vec<NumberedComparison<'_>>> =
        HashMap::new();
    // Every node matches the rule of the root group.
    for group in hierarchy.indexes().filter(|it| *it != hierarchy.root()) {
        let Some(rule) = hierarchy.group(group).rule.as_deref() else { continue };
        let deciding = deciding_ancestor(hierarchy, group);
        for (number, condition) in comparisons(rule).into_iter().enumerate() {
            let Condition::Test(test) = condition else { continue };
            let same = by_path.entry((deciding, &test.path)).or_default();
            same.push((group, number, &test.comparison));
        }
    }
    by_path
        .into_par_iter()
        .flat_map_iter(|((deciding, path), comparisons)| {
            let runs = runs.below(deciding);
            let values = ValueCounts::of(path, runs.iter().map(|it| &it.node));
            let counted: Vec<_> = comparisons
                .into_iter()
                .map(|(group, number, it)| ((group, number), values.outcomes(it)))
                .collect();
            counted
        })
        .collect()
}

/// How many tests have which value at a path.
#[derive(Default)]
struct ValueCounts<'r> {
    texts: HashMap<&'r str, usize>,
    all_texts: usize,
    scalars: HashMap<&'r str, usize>,
    lists: Vec<Actual<'r>>,
    missing: usize,
    objects: usize,
}

impl<'r> ValueCounts<'r> {
    fn of(path: &Path, nodes: impl Iterator<Item = &'r Node>) -> Self {
        let mut counts = Self::default();
        // A value that is not known is not counted.
        for value in nodes.filter_map(|it| actual(path, it).ok()) {
            match value {
                Actual::Text(text) => {
                    counts.all_texts += 1;
                    *counts.texts.entry(text).or_default() += 1;
                }
                Actual::Scalar(text) => *counts.scalars.entry(text).or_default() += 1,
                Actual::List(_) => counts.lists.push(value),
                Actual::Missing => counts.missing += 1,
                Actual::Object => counts.objects += 1,
            }
        }
        counts
    }

    /// Counts the outcomes of a comparison; one that cannot be decided is not counted.
    fn outcomes(&self, comparison: &Comparison) -> OutcomeCounts {
        let mut outcomes = OutcomeCounts::default();
        let mut add = |value: Actual<'_>, count: usize| match holds(comparison, value) {
            Ok(true) => outcomes.held += count,
            Ok(false) => outcomes.failed += count,
            Err(_) => {}
        };
        self.scalars.iter().for_each(|(text, count)| add(Actual::Scalar(text), *count));
        self.lists.iter().for_each(|it| add(*it, 1));
        add(Actual::Missing, self.missing);
        add(Actual::Object, self.objects);
        if let Comparison::Equals(wanted) = comparison {
            // Only the same text is equal.
            let same = self.texts.get(wanted.as_ref()).copied().unwrap_or_default();
            outcomes.held += same;
            outcomes.failed += self.all_texts - same;
        } else {
            self.texts.iter().for_each(|(text, count)| add(Actual::Text(text), *count));
        }
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rule::{evaluate, read};

    #[test]
    fn tests_are_counted_as_if_each_was_evaluated() {
        let values = [
            json!("a"),
            json!("a"),
            json!("5"),
            json!(5),
            json!(5.0),
            json!(true),
            json!(null),
            json!({"a": 1}),
            json!(["a", 5]),
            json!([]),
        ];
        let node = |value: &serde_json::Value| {
            let fact = json!({"x": value}).as_object().unwrap().clone();
            Node { fact, ..Node::named("n") }
        };
        let nodes: Vec<Node> = values.iter().map(node).collect();
        for (operator, operand) in
            [("=", "a"), ("=", "5"), ("=", "true"), ("~", "a|5"), (">=", "5"), ("<:", "5")]
        {
            let condition = read(&json!([operator, ["fact", "x"], operand])).unwrap();
            let Condition::Test(written) = &condition else { panic!("{condition}") };
            let counted =
                ValueCounts::of(&written.path, nodes.iter()).outcomes(&written.comparison);
            let held = nodes.iter().filter(|it| evaluate(&condition, it).unwrap()).count();
            let expected = OutcomeCounts { held, failed: nodes.len() - held };
            assert_eq!(counted, expected, "{condition}");
        }
    }
}
