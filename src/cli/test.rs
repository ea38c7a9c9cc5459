//! `clade test`

mod actual_values;
mod coverage;
mod fact_files;
mod group_names;
mod group_value;
mod measures;
mod mutation;
mod reach;
mod render;
mod suggestions;
mod update;
mod verdict;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use rayon::prelude::*;

use super::Exit;
use super::output::{DataFormat, Output};
use super::repository::{LoadedRepository, RepositoryArgs};
use crate::diagnostic::{Diagnostic, Kind, visible};
use crate::hierarchy::Estate;
use crate::snapshot::Index;
use crate::validation::Layout;
use fact_files::FactFiles;
use group_names::GroupNames;
use measures::MeasureArgs;
use verdict::TestVerdict;

/// Run the classification tests of a group repository
#[derive(Debug, Args)]
pub(super) struct TestCommand {
    #[command(flatten)]
    repository: RepositoryArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: TestFormat,
    #[command(flatten)]
    measures: MeasureArgs,
    /// Write the actual values into the tests that fail, and into those that expect nothing, after
    /// showing the differences; comments and layout stay
    #[arg(long, conflicts_with_all = ["rev", "measures"])]
    update: bool,
}

/// The output format.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TestFormat {
    /// For people
    Human,
    /// The Test Anything Protocol, version 14
    Tap,
    /// JUnit XML
    Junit,
    /// One JSON object
    Json,
}

impl TestCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        if matches!(self.format, TestFormat::Tap | TestFormat::Junit) && self.measures.are_printed()
        {
            bail!(
                "`--coverage` and `--mutate` are written with `--format human` or `json`; `--lcov FILE` goes with every format"
            );
        }
        let loaded = self.repository.load()?;
        let prefix = loaded.prefix();
        let Some(estate) = &loaded.checked.estate else {
            return Err(self.repository.invalid(&loaded));
        };
        let layout = loaded.checked.layout();
        let unread = self.repository.unread_tests(layout)?;
        let unfollowed = loaded.checked.diagnostics.iter().filter(|it| is_unfollowed(it, layout));
        let unread: Vec<&Diagnostic> = unread.iter().chain(unfollowed.map(Arc::as_ref)).collect();
        let index = Index::new(&estate.hierarchy);
        let facts = FactFiles::of(&self.repository, &loaded)?;
        let verdicts = run_all(&loaded, estate, &index, &facts);
        let directory = self.repository.directory();
        let measures =
            self.measures.take(&loaded, &verdicts, estate, &index, (&facts, directory), output)?;
        let text = match self.format {
            _ if measures.is_tracefile() => {
                output.note(&render::summary(&verdicts));
                measures.tracefile()
            }
            TestFormat::Human => {
                render::human(&verdicts, &prefix, output.colour()) + &measures.text(&prefix)
            }
            TestFormat::Tap => render::tap(&verdicts, &prefix),
            TestFormat::Junit => render::junit(&verdicts, &prefix),
            TestFormat::Json => {
                let mut document = render::to_value(&verdicts, &prefix);
                measures.add_to(&mut document, &prefix);
                DataFormat::Json.write(&document)
            }
        };
        output.data(&text)?;
        for found in &unread {
            let help = found.help.as_deref().unwrap_or_default();
            output.note(&format!("{prefix}{}: {}: {help}", found.place.file, found.message));
        }
        if verdicts.is_empty() {
            let directory = &loaded.checked.layout().tests;
            output.note(&format!(
                "no tests found: tests are below `{prefix}{directory}/`, in files that end in `.yaml` or `.yml`"
            ));
        }
        if self.update {
            return update(&verdicts, &loaded, output);
        }
        // A test that is not run has not passed.
        let passed = unread.is_empty() && verdicts.iter().all(TestVerdict::passed);
        let fine = passed && !measures.has_survivors();
        Ok(if fine { Exit::Fine } else { Exit::Findings })
    }
}

/// Returns whether a diagnostic says of the directory of tests, or of something in it, that it is a link or submodule.
fn is_unfollowed(found: &Diagnostic, layout: &Layout) -> bool {
    let path = Path::new(found.place.file.as_ref());
    found.kind == Kind::NotAFile && path.starts_with(&layout.tests)
}

/// Runs every test.
fn run_all<'l>(
    loaded: &'l LoadedRepository,
    estate: &Estate,
    index: &Index,
    facts: &FactFiles,
) -> Vec<TestVerdict<'l>> {
    let names = GroupNames::of(&estate.hierarchy);
    let tests = loaded.checked.tests().into_par_iter();
    let mut verdicts: Vec<TestVerdict<'_>> =
        tests.map(|test| verdict::run(test, estate, index, &names, facts)).collect();
    suggestions::suggest(&mut verdicts, &estate.hierarchy);
    verdicts
}

/// Rewrites the expectations; a test that could not be run is still a finding.
fn update(
    verdicts: &[TestVerdict<'_>],
    loaded: &LoadedRepository,
    output: &mut Output,
) -> Result<Exit> {
    let written = update::write(verdicts, loaded)?;
    for (file, count) in &written {
        let tests = if *count == 1 { "test" } else { "tests" };
        output.note(&format!("{}: wrote what {count} {tests} came to", visible(file)));
    }
    if written.is_empty() {
        output.note("there is nothing to write");
    }
    let known = |it: &TestVerdict<'_>| it.passed() || it.actual.is_some();
    Ok(if verdicts.iter().all(known) { Exit::Fine } else { Exit::Findings })
}
