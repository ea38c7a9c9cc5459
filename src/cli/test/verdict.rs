//! What is not as a test expects, and why.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use super::super::tree::draw::{conflict_lines, shorten, sources};
use super::super::tree::group::Membership;
use super::actual_values::ActualValues;
use super::fact_files::FactFiles;
use super::group_names::GroupNames;
use crate::classification::{
    ClassSources, Explanation, Final, Outcome, SourcedValue, WithheldFacts, conflict_summary,
};
use crate::diagnostic::closest;
use crate::facts::with_trusted_data;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{ClassName, Classes, GroupId, Map, Node, same};
use crate::snapshot::{Index, classify};
use crate::validation::{Expectation, TestCase};

/// The outcome of a test.
pub(super) struct TestVerdict<'t> {
    pub(super) test: &'t TestCase,
    pub(super) mismatches: Vec<Mismatch>,
    /// The command that explains the node, if it takes no more than a file.
    pub(super) see: Option<String>,
    /// What comes out, if it is not as expected.
    pub(super) actual: Option<ActualValues>,
}

/// Something that is not as expected.
pub(super) struct Mismatch {
    pub(super) message: String,
    /// What makes it so.
    pub(super) because: Vec<String>,
    /// The group that is expected and does not exist.
    pub(super) unknown_group: Option<String>,
}

impl TestVerdict<'_> {
    pub(super) fn passed(&self) -> bool {
        self.mismatches.is_empty()
    }
}

impl Mismatch {
    fn new(message: String, because: impl IntoIterator<Item = String>) -> Self {
        Self { message, because: because.into_iter().collect(), unknown_group: None }
    }
}

/// Runs a test.
pub(super) fn run<'t>(
    test: &'t TestCase,
    estate: &Estate,
    index: &Index,
    names: &GroupNames<'_>,
    facts: &FactFiles,
) -> TestVerdict<'t> {
    let node = match node_of(test, facts) {
        Ok(node) => node,
        Err(error) => {
            let mismatches = vec![Mismatch::new(format!("{error:#}"), [])];
            return TestVerdict { test, mismatches, see: None, actual: None };
        }
    };
    let see = facts.explaining(test);
    let (mut mismatches, actual) = compare(test, estate, index, names, &node);
    if let (Some(mismatch), Some(help)) = (mismatches.first_mut(), nested_help(&test.facts)) {
        mismatch.because.push(help);
    }
    TestVerdict { test, mismatches, see, actual }
}

/// Says how a fact is written whose name is most likely the path of one inside of another, as rules write it.
fn nested_help(facts: &Map<String, Value>) -> Option<String> {
    let (name, value, outer, inner) = facts.iter().find_map(|(name, value)| {
        let (outer, inner) = name.split_once('.')?;
        (!facts.contains_key(outer)).then_some((name, value, outer, inner))
    })?;
    let inner = inner.replace('.', ": {");
    let ends = "}".repeat(name.matches('.').count());
    let value = shorten(&value.to_string());
    Some(format!(
        "the test gives a fact with the name `{name}`, and a rule reads `{outer}` first: nest it, as in `facts: {{{outer}: {{{inner}: {value}{ends}}}`"
    ))
}

/// Makes the node that a test is about.
pub(super) fn node_of(test: &TestCase, facts: &FactFiles) -> Result<Node> {
    let (mut fact, mut sent) = (test.facts.clone(), None);
    if let Some(read) = facts.read(test)? {
        (fact, sent) = (read.fact, read.trusted);
    }
    let node = Node { name: test.node.clone(), fact, ..Node::default() };
    Ok(with_trusted_data(node, test.trusted.clone(), sent))
}

fn compare(
    test: &TestCase,
    estate: &Estate,
    index: &Index,
    names: &GroupNames<'_>,
    node: &Node,
) -> (Vec<Mismatch>, Option<ActualValues>) {
    let hierarchy = &estate.hierarchy;
    let explanation = match classify(estate, index, node, WithheldFacts::Refuse) {
        Ok(explanation) => explanation,
        Err(error) => {
            let index = hierarchy.find(error.group);
            let why = index.and_then(|index| Membership::of(hierarchy, index, node).because());
            return (vec![Mismatch::new(error.to_string(), why)], None);
        }
    };
    let mismatches = judge(test, &explanation, names);
    let actual = (!mismatches.is_empty()).then(|| ActualValues::of(&explanation));
    (mismatches, actual)
}

/// Compares a classification with what a test expects. The names say of a group whether it exists, which decides
/// about no more than the words.
pub(super) fn judge(
    test: &TestCase,
    explanation: &Explanation<'_>,
    names: &GroupNames<'_>,
) -> Vec<Mismatch> {
    let hierarchy = &explanation.estate.hierarchy;
    let mut mismatches = Vec::new();
    compare_groups(&test.expect, explanation, names, &mut mismatches);
    match &explanation.outcome {
        Outcome::Conflict(conflicts) if test.expect.conflict != Some(true) => {
            let message = conflict_summary(hierarchy, conflicts);
            mismatches.push(Mismatch::new(message, conflict_lines(hierarchy, conflicts)));
        }
        Outcome::Conflict(_) => {}
        Outcome::Classified(_) if test.expect.conflict == Some(true) => {
            let leaves = explanation.leaves.iter().map(|it| hierarchy.group(*it).name.as_str());
            let leaves: Vec<String> = leaves.map(|it| format!("`{it}`")).collect();
            let because = format!("the leaf groups agree: {}", leaves.join(", "));
            mismatches
                .push(Mismatch::new("expected a conflict, there is none".to_owned(), [because]));
        }
        Outcome::Classified(result) => {
            ValueComparison { hierarchy, mismatches: &mut mismatches }
                .compare(&test.expect, result);
        }
    }
    if test.expect.is_empty() {
        let message = "`expect` says nothing that could fail".to_owned();
        let because = "`clade test --update` writes what comes out now".to_owned();
        mismatches.push(Mismatch::new(message, [because]));
    }
    mismatches
}

fn compare_groups(
    expect: &Expectation,
    explanation: &Explanation<'_>,
    names: &GroupNames<'_>,
    mismatches: &mut Vec<Mismatch>,
) {
    let Some(expected) = &expect.groups else { return };
    let hierarchy = &explanation.estate.hierarchy;
    let mut found: BTreeMap<&str, Vec<GroupIndex>> = BTreeMap::new();
    for index in explanation.matches.iter().map(|it| it.group) {
        let group = hierarchy.group(index);
        if group.id != GroupId::ROOT {
            found.entry(group.name.as_str()).or_default().push(index);
        }
    }
    let why = |index| Membership::of(hierarchy, index, explanation.node);
    for missing in expected.iter().filter(|it| !found.contains_key(it.as_str())) {
        let groups = names.find(missing);
        if groups.is_empty() {
            let message = format!("expected the group `{missing}`, which does not exist");
            let unknown_group = Some(missing.clone());
            mismatches.push(Mismatch { unknown_group, ..Mismatch::new(message, []) });
            continue;
        }
        if groups.iter().all(|it| hierarchy.group(*it).id == GroupId::ROOT) {
            let message = format!(
                "expected the group `{missing}`, the root group, which matches every node and is not counted: leave it out"
            );
            mismatches.push(Mismatch::new(message, []));
            continue;
        }
        let because = groups.iter().filter_map(|it| why(*it).because());
        let message = format!("expected the group `{missing}`, which does not match");
        mismatches.push(Mismatch::new(message, because));
    }
    let mut surplus = found.into_iter().filter(|(it, _)| !expected.contains(*it));
    for (surplus, groups) in surplus.by_ref().take(SURPLUS_GROUPS) {
        let because = groups.into_iter().filter_map(|it| why(it).evidence());
        let message = format!("the group `{surplus}` matches, which is not expected");
        mismatches.push(Mismatch::new(message, because));
    }
    let more = surplus.count();
    if more > 0 {
        let matching = if more == 1 { "group matches" } else { "groups match" };
        let message = format!("{more} more {matching}, which is not expected");
        mismatches.push(Mismatch::new(message, []));
    }
}

/// How many groups are shown that a node is in and should not be: where one rule is too wide, all tests fail so.
const SURPLUS_GROUPS: usize = 50;

/// Compares the values of a classification with those expected.
struct ValueComparison<'a> {
    hierarchy: &'a Hierarchy,
    mismatches: &'a mut Vec<Mismatch>,
}

impl ValueComparison<'_> {
    fn compare(&mut self, expect: &Expectation, result: &Final<'_>) {
        if let Some(expected) = &expect.environment
            && expected != result.environment
        {
            let message =
                format!("expected the environment `{expected}`, it is `{}`", result.environment);
            let from = sources(self.hierarchy, &result.environment_sources);
            let from = (!from.is_empty()).then(|| format!("from {from}"));
            self.mismatches.push(Mismatch::new(message, from));
        }
        self.classes("class", &expect.classes, &result.classes);
        self.classes("config data", &expect.config_data, &result.config_data);
        for (name, expected) in &expect.variables {
            let found = result.variables.get(name);
            self.value(&format!("the variable `{name}`"), expected, found);
        }
    }

    fn classes(
        &mut self,
        what: &str,
        expected: &Classes,
        found: &BTreeMap<&ClassName, ClassSources<'_>>,
    ) {
        for (class, parameters) in expected {
            let Some(it) = found.get(class) else {
                let names = found.keys().map(|it| it.as_str());
                let similar = closest(class.as_str(), names).map(|it| format!("there is `{it}`"));
                let message = format!("expected the {what} `{class}`, which is missing");
                self.mismatches.push(Mismatch::new(message, similar));
                continue;
            };
            for (parameter, expected) in parameters {
                let name = format!("`{parameter}` of the {what} `{class}`");
                self.value(&name, expected, it.parameters.get(parameter));
            }
        }
    }

    fn value(&mut self, what: &str, expected: &Value, found: Option<&SourcedValue<'_>>) {
        let wanted = shorten(&expected.to_string());
        match found {
            None if expected.is_null() => {}
            None => {
                let message = format!("expected {what} to be {wanted}, it is missing");
                self.mismatches.push(Mismatch::new(message, []));
            }
            Some(found) if same(expected, &found.value) => {}
            Some(found) => {
                let value = shorten(&found.value.to_string());
                let message = format!("expected {what} to be {wanted}, it is {value}");
                let from = format!("from {}", sources(self.hierarchy, &found.sources));
                self.mismatches.push(Mismatch::new(message, [from]));
            }
        }
    }
}
