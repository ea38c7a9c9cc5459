//! What is measured of the tests besides whether they pass: coverage and mutants.
#![expect(
    clippy::disallowed_methods,
    reason = "the tracefile is written where the command line says"
)]

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::coverage::{Coverage, lcov};
use super::fact_files::FactFiles;
use super::mutation::{MutationBudget, MutationOutcome, try_mutants};
use super::reach::{RepositoryPlaces, TestRuns};
use super::verdict::TestVerdict;
use crate::cli::output::Output;
use crate::cli::repository::LoadedRepository;
use crate::config::parse_duration;
use crate::hierarchy::Estate;
use crate::snapshot::Index;
use crate::validation::TestCase;

/// What is measured.
#[derive(Debug, Args)]
#[group(id = "measures", multiple = true, args = ["coverage", "lcov", "mutate"])]
pub(super) struct MeasureArgs {
    /// Show which groups, outcomes of conditions and values no test reaches; with `=lcov`, print an lcov tracefile instead
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    coverage: Option<CoverageFormat>,
    /// Write what the tests reach into this file, in the format of lcov
    #[arg(long, value_name = "FILE")]
    lcov: Option<PathBuf>,
    /// Drop or negate one condition at a time, drop one pinned node or value at a time, and show the changes that no test notices
    #[arg(long)]
    mutate: bool,
    /// The most changes that are tried; of more, a sample of all, which stays the same until groups change
    #[arg(long, value_name = "NUMBER", default_value = "10000", requires = "mutate")]
    max_mutants: NonZeroUsize,
    /// The time for trying changes; those that are left are counted
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration, requires = "mutate")]
    max_time: Duration,
}

/// How coverage is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CoverageFormat {
    /// What no test reaches, a line each
    Text,
    /// A tracefile of lcov
    Lcov,
}

/// What was measured.
pub(super) struct Measures<'e> {
    coverage: Option<(CoverageFormat, Coverage)>,
    mutation: Option<MutationOutcome<'e>>,
    directory: PathBuf,
}

impl MeasureArgs {
    /// Returns whether something is printed beside the outcome of the tests.
    pub(super) fn are_printed(&self) -> bool {
        self.coverage.is_some() || self.mutate
    }

    /// Measures what the command line asks for, and writes the tracefile.
    pub(super) fn take<'e>(
        &self,
        loaded: &LoadedRepository,
        verdicts: &[TestVerdict<'_>],
        estate: &'e Estate,
        index: &Index,
        (facts, directory): (&FactFiles, &Path),
        output: &mut Output,
    ) -> Result<Measures<'e>> {
        let directory = directory.to_owned();
        let mut measures = Measures { coverage: None, mutation: None, directory };
        if !self.are_printed() && self.lcov.is_none() {
            return Ok(measures);
        }
        let tests: Vec<&TestCase> = verdicts.iter().map(|it| it.test).collect();
        let runs = TestRuns::of(&tests, estate, index, facts);
        let places = RepositoryPlaces::of(loaded, &estate.hierarchy);
        if self.coverage.is_some() || self.lcov.is_some() {
            let coverage = Coverage::measure(&runs, estate, &places);
            if let Some(file) = &self.lcov {
                let text = measures.trace(&coverage);
                std::fs::write(file, text)
                    .with_context(|| format!("cannot write `{}`", file.display()))?;
            }
            measures.coverage = self.coverage.map(|format| (format, coverage));
        }
        if self.mutate {
            let failed = verdicts.iter().filter(|it| !it.passed()).count();
            if failed > 0 {
                let (tests, them) =
                    if failed == 1 { ("test fails", "it") } else { ("tests fail", "them") };
                output.note(&format!(
                    "error: no changes are tried while {failed} {tests}: mend {them} first"
                ));
            } else {
                let budget = MutationBudget { mutants: self.max_mutants, time: self.max_time };
                measures.mutation = Some(try_mutants(&runs, estate, &places, budget));
            }
        }
        Ok(measures)
    }
}

impl Measures<'_> {
    /// Returns whether a tracefile stands in the place of the outcome of the tests.
    pub(super) fn is_tracefile(&self) -> bool {
        matches!(self.coverage, Some((CoverageFormat::Lcov, _)))
    }

    /// Writes the tracefile.
    pub(super) fn tracefile(&self) -> String {
        self.coverage.as_ref().map(|(_, it)| self.trace(it)).unwrap_or_default()
    }

    /// Writes what was measured for people.
    pub(super) fn text(&self, prefix: &str) -> String {
        let coverage = self.coverage.as_ref().map(|(_, it)| it.text(prefix));
        let mutation = self.mutation.as_ref().map(|it| it.text(prefix));
        coverage.into_iter().chain(mutation).flat_map(|it| ["\n".to_owned(), it]).collect()
    }

    /// Adds what was measured to the outcome of the tests.
    pub(super) fn add_to(&self, document: &mut Value, prefix: &str) {
        let Value::Object(fields) = document else { return };
        if let Some((_, coverage)) = &self.coverage {
            fields.insert("coverage".to_owned(), coverage.to_value(prefix));
        }
        if let Some(mutation) = &self.mutation {
            fields.insert("mutants".to_owned(), mutation.to_value(prefix));
        }
    }

    /// Returns whether there is a change that no test notices.
    pub(super) fn has_survivors(&self) -> bool {
        self.mutation.as_ref().is_some_and(MutationOutcome::has_survivors)
    }

    fn trace(&self, coverage: &Coverage) -> String {
        let directory = self.directory.strip_prefix(Path::new(".")).unwrap_or(&self.directory);
        lcov::write(coverage, &|file| directory.join(file).display().to_string())
    }
}
