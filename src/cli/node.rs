//! The node that a command is about.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, anyhow, bail};
use clap::Args;

use super::output::Output;
use super::repository::refuse_documents;
use super::shell::word_of_shell;
use crate::diagnostic::{closest_within, visible};
use crate::facts::{FactsError, NodeFacts, read_facts, read_file, with_trusted_data};
use crate::model::{Map, Node, Value};

/// Where facts and trusted data come from.
#[derive(Clone, Debug, Args)]
pub(super) struct NodeArgs {
    /// The node's facts: a request body, a plain hash, the output of `facter` or `puppet facts`, or
    /// a file of Puppet Server's cache; JSON or YAML
    #[arg(long, value_name = "FILE")]
    pub(super) facts: Option<PathBuf>,
    /// The node's trusted data, JSON or YAML; without them only what the certname says is trusted
    #[arg(long, value_name = "FILE")]
    pub(super) trusted: Option<PathBuf>,
}

impl NodeArgs {
    /// Returns whether the command line gives facts or trusted data.
    pub(super) fn is_given(&self) -> bool {
        self.facts.is_some() || self.trusted.is_some()
    }

    /// Says that rules which read facts find none, if the command line gives none and there are such rules.
    pub(super) fn note_absence(&self, reads_facts: bool, output: &mut Output) {
        if self.facts.is_none() && reads_facts {
            output
                .note("note: no facts are given (`--facts FILE`): rules that read facts find none");
        }
    }

    /// Writes the arguments that name the facts and trusted data for a shell, each after a space.
    pub(super) fn words(&self) -> String {
        let files = [("--facts", &self.facts), ("--trusted", &self.trusted)];
        let words = files.into_iter().filter_map(|(flag, path)| {
            Some(format!(" {flag} {}", word_of_shell(&path.as_ref()?.to_string_lossy())))
        });
        words.collect()
    }

    /// Makes the node of this name.
    pub(super) fn node(&self, name: &str, output: &mut Output) -> Result<Node> {
        if name.is_empty() {
            bail!("the name of the node is empty: give its certname");
        }
        let facts = match &self.facts {
            Some(path) => {
                let directory = path.parent().unwrap_or(Path::new("."));
                refuse_documents(directory, std::slice::from_ref(path))?;
                facts_file(path)?
            }
            None => NodeFacts::default(),
        };
        if let (Some(path), true, None) = (&self.facts, facts.drops_trusted, &self.trusted) {
            output.note(&format!(
                "note: the fact `trusted` in `{}` is dropped, since agents can make it up: pass trusted data with `--trusted FILE`{}",
                path.display(),
                if facts.trusted.is_some() { "" } else { ", or beside `fact` in a request body" }
            ));
        }
        let given = self.trusted.as_deref().map(trusted_file).transpose()?;
        note_misspelt(self.facts.as_deref(), facts.unknown_keys.iter(), &BODY, output);
        for (path, trusted) in [(&self.trusted, &given), (&self.facts, &facts.trusted)] {
            let keys = trusted.iter().flat_map(Map::keys);
            note_misspelt(path.as_deref(), keys, &TRUSTED, output);
        }
        let node = Node { name: name.to_owned(), fact: facts.fact, ..Node::default() };
        Ok(with_trusted_data(node, given, facts.trusted))
    }
}

/// The keys of a request body.
const BODY: [&str; 3] = ["fact", "facts", "trusted"];

/// The keys of trusted data.
const TRUSTED: [&str; 6] =
    ["authenticated", "certname", "hostname", "domain", "extensions", "external"];

/// How many keys are compared with known ones.
const COMPARED_KEYS: usize = 16;

/// Says which keys of a file are most likely misspelt, so that no rule reads what they have.
fn note_misspelt<'k>(
    path: Option<&Path>,
    keys: impl Iterator<Item = &'k String>,
    known: &[&str],
    output: &mut Output,
) {
    let Some(path) = path else { return };
    for key in keys.filter(|it| !known.contains(&it.as_str())).take(COMPARED_KEYS) {
        if let Some(meant) = closest_within(key, 2, known.iter().copied()) {
            output.note(&format!(
                "note: `{}` has an unknown key `{}`: did you mean `{meant}`?",
                path.display(),
                visible(key)
            ));
        }
    }
}

/// Reads a file of facts.
pub(super) fn facts_file(path: &Path) -> Result<NodeFacts> {
    if path.is_dir() {
        bail!("`{}` is a directory: name the file with the facts of this node", path.display());
    }
    read_as("facts", path)
}

/// Reads what a file has of a node; an error says where it is.
fn read_as(what: &str, path: &Path) -> Result<NodeFacts> {
    let context = || format!("cannot read the {what} in `{}`", path.display());
    let bytes = read_file(path).with_context(context)?;
    read_facts(&bytes).map_err(|error| match error {
        FactsError::Syntax { line, column, message } => {
            anyhow!("{}:{line}:{column}: cannot read the {what}: {message}", path.display())
        }
        other => Error::new(other).context(context()),
    })
}

fn trusted_file(path: &Path) -> Result<Map<String, Value>> {
    let mut read = read_as("trusted data", path)?;
    if let Some(trusted) = read.trusted {
        return Ok(trusted);
    }
    if read.fact.is_empty() {
        bail!("`{}` has no trusted data", path.display());
    }
    // A whole request body has them inside; a file of their own is the object itself.
    match read.fact.shift_remove("trusted") {
        Some(Value::Object(trusted)) => Ok(trusted),
        _ => Ok(read.fact),
    }
}
