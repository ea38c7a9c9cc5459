//! `clade test`

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use rayon::prelude::*;
use serde_json::Value;

use super::Exit;
use super::node::facts_file;
use super::output::Output;
use super::repository::RepositoryArgs;
use crate::classification::{ClassSources, Explanation, Final, Outcome, SourcedValue};
use crate::facts::with_certname;
use crate::hierarchy::Estate;
use crate::model::{ClassName, Classes, GroupId, Node, same};
use crate::snapshot::{Index, classify};
use crate::validation::{Expectation, TestCase};

/// Run the classification tests of a group repository
#[derive(Debug, Args)]
pub(super) struct Test {
    #[command(flatten)]
    repository: RepositoryArgs,
}

impl Test {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let loaded = self.repository.load()?;
        if loaded.checked.estate.is_none() {
            bail!("the repository is not valid; see `clade validate`");
        }
        let tests = loaded.checked.tests.clone();
        let Some(estate) = loaded.checked.estate else { return Ok(Exit::Failed) };
        let (mut passed, mut failed) = (0_usize, 0_usize);
        let mut text = String::new();
        let index = Index::new(&estate.hierarchy);
        let outcomes: Vec<Vec<String>> = tests
            .par_iter()
            .map(|test| run_test(test, &estate, &index, &self.repository.directory))
            .collect::<Result<_>>()?;
        for (test, faults) in tests.iter().zip(outcomes) {
            let verdict = if faults.is_empty() { "ok" } else { "FAILED" };
            let _infallible = writeln!(text, "test {} ... {verdict}", test.name);
            if faults.is_empty() {
                passed += 1;
                continue;
            }
            failed += 1;
            let start = test.place.span.start;
            let _infallible =
                writeln!(text, "  at {}:{}:{}", test.place.file, start.line, start.column);
            for fault in faults {
                let _infallible = writeln!(text, "  {fault}");
            }
            let _infallible = writeln!(text, "  see: clade explain {}", test.node);
        }
        let _infallible = writeln!(text, "\n{passed} passed, {failed} failed");
        output.data(&text)?;
        Ok(if failed == 0 { Exit::Fine } else { Exit::Findings })
    }
}

/// Runs a test and returns what is not as expected.
fn run_test(
    test: &TestCase,
    estate: &Estate,
    index: &Index,
    directory: &Path,
) -> Result<Vec<String>> {
    let (mut fact, mut trusted) = (test.facts.clone(), test.trusted.clone());
    if let Some((file, place)) = &test.facts_file {
        let from = place.file.rsplit_once('/').map_or("", |(directory, _)| directory);
        let read = facts_file(&directory.join(from).join(file.as_ref()))?;
        fact = read.fact;
        trusted = trusted.or(read.trusted);
    }
    let node = Node { name: test.node.clone(), fact, trusted: with_certname(trusted, &test.node) };
    let explanation = classify(estate, index, &node)?;
    let mut faults = Vec::new();
    compare_groups(&test.expect, &explanation, &mut faults);
    match &explanation.outcome {
        Outcome::Conflict(conflicts) if !test.expect.conflict => {
            faults.push(crate::classification::conflict_message(&estate.hierarchy, conflicts));
        }
        Outcome::Conflict(_) => {}
        Outcome::Classified(_) if test.expect.conflict => {
            faults.push("expected a conflict, there is none".to_owned());
        }
        Outcome::Classified(result) => compare_values(&test.expect, result, &mut faults),
    }
    Ok(faults)
}

fn compare_groups(expect: &Expectation, explanation: &Explanation<'_>, faults: &mut Vec<String>) {
    let Some(expected) = &expect.groups else { return };
    let hierarchy = &explanation.estate.hierarchy;
    let found: BTreeSet<String> = explanation
        .matches
        .iter()
        .map(|it| hierarchy.group(it.group))
        .filter(|group| group.id != GroupId::ROOT)
        .map(|group| group.name.to_string())
        .collect();
    for missing in expected.difference(&found) {
        faults.push(format!("expected the group `{missing}`, which does not match"));
    }
    for surplus in found.difference(expected) {
        faults.push(format!("the group `{surplus}` matches, which is not expected"));
    }
}

fn compare_values(expect: &Expectation, result: &Final<'_>, faults: &mut Vec<String>) {
    if let Some(expected) = &expect.environment
        && expected != result.environment
    {
        faults
            .push(format!("expected the environment `{expected}`, it is `{}`", result.environment));
    }
    compare_classes("class", &expect.classes, &result.classes, faults);
    compare_classes("config data", &expect.config_data, &result.config_data, faults);
    for (name, expected) in &expect.variables {
        let found = result.variables.get(name);
        compare(&format!("the variable `{name}`"), expected, found, faults);
    }
}

fn compare_classes(
    what: &str,
    expected: &Classes,
    found: &std::collections::BTreeMap<&ClassName, ClassSources<'_>>,
    faults: &mut Vec<String>,
) {
    for (class, parameters) in expected {
        let Some(found) = found.get(class) else {
            faults.push(format!("expected the {what} `{class}`, which is not there"));
            continue;
        };
        for (parameter, expected) in parameters {
            let name = format!("`{parameter}` of the {what} `{class}`");
            compare(&name, expected, found.parameters.get(parameter), faults);
        }
    }
}

fn compare(
    what: &str,
    expected: &Value,
    found: Option<&SourcedValue<'_>>,
    faults: &mut Vec<String>,
) {
    match found {
        None if expected.is_null() => {}
        None => faults.push(format!("expected {what} to be {expected}, it is not there")),
        Some(found) if same(expected, found.value) => {}
        Some(found) => {
            faults.push(format!("expected {what} to be {expected}, it is {}", found.value));
        }
    }
}
