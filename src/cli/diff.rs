//! `clade diff`: which nodes a change moves.

mod human;
mod markdown;
mod range;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::Exit;
use super::nodes::NodesArgs;
use super::output::{DataFormat, Output};
use super::repository::{BudgetArgs, Loaded, RepositoryArgs};
use crate::diagnostic::{Place, Severity};
use crate::impact::{Comparison, Files, Impact, Side, Survey};
use crate::model::Node;
use range::{Named, Range};

/// Show which nodes a change of groups moves, and why: what each gets before and after
#[derive(Debug, Args)]
pub(super) struct Diff {
    /// The revision before the change, or both: `BASE..HEAD`, or `BASE...HEAD` to compare with where the two diverged
    base: String,
    /// The revision after it [default: the files as they are]
    head: Option<String>,
    /// The directory of the group repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    nodes: NodesArgs,
    /// How the difference is written
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    /// Exit with 1 if a node gets something else
    #[arg(long)]
    exit_code: bool,
    /// Exit as if every facts file had been read; those that cannot be are still named
    #[arg(long)]
    ignore_bad_facts: bool,
}

/// How a difference is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// A comment for a pull request
    Markdown,
    /// One JSON object
    Json,
    /// The same object as YAML
    Yaml,
}

/// One of the two states, with what it is called.
struct State {
    name: String,
    loaded: Loaded,
    node_origins: BTreeMap<String, Place>,
}

impl State {
    fn load(directory: PathBuf, named: Named, budget: BudgetArgs) -> Result<Self> {
        let Named { name, revision } = named;
        let loaded = RepositoryArgs { directory, rev: revision, budget }.load()?;
        let errors = loaded.checked.diagnostics.iter().filter(|it| it.severity == Severity::Error);
        if let (None, Some(first)) = (&loaded.checked.estate, errors.clone().next()) {
            let start = first.place.span.start;
            let more = match errors.count() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            return Err(anyhow!(
                "`{name}` is not valid, so no node can be classified there: {}:{}:{}: {}{more}; see `clade validate`",
                first.place.file,
                start.line,
                start.column,
                first.message
            ));
        }
        let node_origins = loaded.checked.node_origins();
        Ok(Self { name, loaded, node_origins })
    }

    fn side(&self) -> Result<Side<'_>> {
        let checked = &self.loaded.checked;
        let estate = checked.estate.as_ref().context("the repository is not valid")?;
        Ok(Side { estate, origins: &checked.origins, node_origins: &self.node_origins })
    }

    fn to_value(&self) -> Value {
        let commit = self.loaded.commit.map(|it| it.to_string());
        json!({"revision": self.name, "commit": commit})
    }
}

/// Everything that there is to say.
struct Said<'a> {
    base: &'a State,
    head: &'a State,
    impact: &'a Impact,
    unreadable: &'a [String],
}

impl Diff {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let range = Range::parse(&self.base, self.head.as_deref())?;
        let [base, head] = range.states(&self.repo)?;
        let base = State::load(self.repo.clone(), base, self.budget.clone())?;
        let head = State::load(self.repo.clone(), head, self.budget.clone())?;
        let comparison = Comparison::new(base.side()?, head.side()?);
        let mut survey = Survey::default();
        let mut compare_all = |nodes: &[Node]| {
            let compare = |node: &Node| (node.name.clone(), comparison.node(node));
            survey.extend(nodes.par_iter().map(compare).collect::<Vec<_>>());
        };
        let read = self.nodes.read(&mut compare_all, output)?;
        for bad in &read.unreadable {
            output.note(&format!("warning: {bad}"));
        }
        let (groups, node_files) = (comparison.groups(), comparison.node_files());
        let mut impact = Impact::gather(groups.to_vec(), node_files.to_vec(), survey);
        let text = |state: &State, path: &str| state.loaded.text(path).map(<[u8]>::to_vec);
        impact.locate(
            &Files { side: base.side()?, read: &|path| text(&base, path) },
            &Files { side: head.side()?, read: &|path| text(&head, path) },
        );
        let said = Said { base: &base, head: &head, impact: &impact, unreadable: &read.unreadable };
        let text = match self.format {
            Format::Human => human::write(&said, output.colour()),
            Format::Markdown => markdown::write(&said),
            Format::Json => DataFormat::Json.write(&to_value(&said)),
            Format::Yaml => DataFormat::Yaml.write(&to_value(&said)),
        };
        output.data(&text)?;
        if !read.unreadable.is_empty() && !self.ignore_bad_facts {
            output.note(&format!(
                "error: {} facts files could not be read; --ignore-bad-facts goes on without them",
                read.unreadable.len()
            ));
            return Ok(Exit::Failed);
        }
        let found = self.exit_code && impact.changed() > 0;
        Ok(if found { Exit::Findings } else { Exit::Fine })
    }
}

fn to_value(said: &Said<'_>) -> Value {
    let mut value = json!({"base": said.base.to_value(), "head": said.head.to_value()});
    if let (Value::Object(all), Value::Object(impact)) = (&mut value, said.impact.to_value()) {
        all.extend(impact);
        all.insert("unreadable".to_owned(), json!(said.unreadable));
    }
    value
}

/// Returns how many of something there are: `1 node`, `2 nodes`.
fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
