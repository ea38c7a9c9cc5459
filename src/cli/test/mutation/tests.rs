use std::path::Path;
use std::sync::Arc;

use super::super::fact_files::FactFiles;
use super::super::verdict::node_of;
use super::*;
use crate::classification::classify;
use crate::cli::repository::{BudgetArgs, RepositoryArgs};
use crate::model::Node;
use crate::snapshot::Index;

/// Every mutant of the example estate, judged by the tests that it can concern, is judged as all tests do
/// when they classify their nodes in an estate that is built with it.
#[test]
fn mutants_are_judged_as_if_their_repository_were_tested() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet");
    let repository =
        RepositoryArgs { directory: Some(directory), rev: None, budget: BudgetArgs::default() };
    let loaded = repository.load().unwrap();
    let estate = loaded.checked.estate.as_ref().unwrap();
    let index = Index::new(&estate.hierarchy);
    let facts = FactFiles::of(&repository, &loaded).unwrap();
    let tests = loaded.checked.tests();
    let runs = TestRuns::of(&tests, estate, &index, &facts);
    // The nodes of the runs have only the facts that groups mention.
    let nodes: Vec<_> = tests.iter().map(|it| (it, node_of(it, &facts).unwrap())).collect();
    assert_eq!(runs.all().len(), tests.len());
    let sizes = |node: &Node| node.fact.len() + node.trusted.len();
    let (kept, all): (usize, usize) = (
        runs.all().iter().map(|it| sizes(&it.node)).sum(),
        nodes.iter().map(|(_, it)| sizes(it)).sum(),
    );
    assert!(kept < all, "{kept} of {all}");
    let places = RepositoryPlaces::of(&loaded, &estate.hierarchy);
    let mut counts = [0, 0];
    for mutant in mutants::of(&estate.hierarchy, &places) {
        let group = estate.hierarchy.group(mutant.group);
        let changed = match &mutant.part {
            MutatedPart::Value(value) => value.dropped_from(group),
            MutatedPart::Rule(change) => {
                let rule = group.rule.as_deref().map(|it| Arc::new(change.applied_to(it)));
                Group { rule, ..group.clone() }
            }
        };
        assert_ne!(&changed, group, "{mutant:?}");
        let all = estate.hierarchy.groups();
        let all = all.map(|it| if it.id == group.id { changed.clone() } else { it.clone() });
        let hierarchy = Hierarchy::build(all.collect()).unwrap();
        let other = Estate { hierarchy, ..estate.clone() };
        let expected = nodes.iter().any(|(test, node)| {
            classify(&other, node)
                .map_or(true, |it| !judge(test, &it, &GroupNames::default()).is_empty())
        });
        let verdict = GroupTrial::of(mutant.group, &runs, estate).verdict(&mutant);
        assert_eq!(matches!(verdict, MutantVerdict::Noticed), expected, "{mutant:?}");
        counts[usize::from(expected)] += 1;
    }
    assert!(counts[0] > 10 && counts[1] > 50, "{counts:?}");
}
