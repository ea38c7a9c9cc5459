//! What the nodes of classification tests show.

use super::file_list::FileList;
use super::reading::FileParts;
use crate::classification::Evidence;
use crate::hierarchy::Estate;
use crate::model::Node;

/// How many nodes of classification tests are classified to see what they show.
const KNOWN_NODES: usize = 1_000;

/// Returns what the nodes of classification tests show.
pub(super) fn of_tests(estate: &Estate, readings: &FileList) -> Evidence {
    let mut evidence = Evidence::default();
    let tests = readings.iter().flat_map(|it| match &it.parts {
        FileParts::Tests(tests) => tests.as_slice(),
        _ => &[],
    });
    for test in tests.filter(|it| it.facts_file.is_none()).take(KNOWN_NODES) {
        let mut node = Node::named(test.node.as_str());
        node.fact.clone_from(&test.facts);
        node.trusted = test.trusted.clone().unwrap_or_default();
        node.trusted.entry("certname").or_insert_with(|| test.node.as_str().into());
        evidence.add(estate, &node);
    }
    evidence
}
