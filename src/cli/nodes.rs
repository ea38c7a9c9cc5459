//! The nodes of a fleet: facts files, PuppetDB, or a daemon's check-ins.
//!
//! They are read and used in batches, so that a fleet of any size takes the memory of one.

mod pages;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rayon::prelude::*;
use serde_json::Value;

use super::client::Identity;
use super::output::Output;
use crate::facts::{read_facts, read_file, with_certname};
use crate::model::{Map, Node};

pub(super) use pages::{found_in_puppetdb, of_puppetdb};

/// How many nodes are used together.
const BATCH: usize = 512;

/// How long one page of nodes may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where nodes come from.
#[derive(Debug, Args)]
#[group(multiple = false, id = "nodes", args = ["facts", "puppetdb", "server"])]
pub(super) struct NodesArgs {
    /// A directory of facts files, `<certname>.json` or `.yaml`, in any form that `clade classify --facts` reads; trusted data may stand beside them in `<certname>.trusted.json` or `.yaml`
    #[arg(long, value_name = "DIR")]
    facts: Option<PathBuf>,
    /// The nodes of a PuppetDB, by its inventory
    #[arg(long, value_name = "URL")]
    puppetdb: Option<String>,
    /// The nodes that have checked in with a daemon: a URL, or the path of its unix socket [default: `CLADE_SERVER`, without --facts and --puppetdb]
    // clap would take the variable for a flag, which contradicts --facts.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    identity: Identity,
}

/// How reading went.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) nodes: usize,
    /// What could not be read, and why.
    pub(super) unreadable: Vec<String>,
}

/// Uses a batch of nodes.
pub(super) type Use<'u> = &'u mut dyn FnMut(&[Node]);

impl NodesArgs {
    /// Reads all nodes.
    pub(super) fn read(&self, each: Use<'_>, output: &mut Output) -> Result<Read> {
        if let Some(directory) = &self.facts {
            return from_directory(directory, each);
        }
        let (service, page): (_, pages::Page) = if let Some(url) = &self.puppetdb {
            (self.identity.at(url, PATIENCE)?, pages::inventory)
        } else {
            let named = self.server.clone().or_else(server_of_environment);
            let Some(named) = named else {
                bail!(
                    "no nodes to compare: pass --facts DIR, --puppetdb URL or --server URL, or set `CLADE_SERVER`"
                )
            };
            // As everywhere, of several daemons the first.
            let first = named.split(',').next().unwrap_or_default();
            (self.identity.named(first, PATIENCE, output)?, pages::check_ins)
        };
        let mut batch = pages::Batch::new(each);
        let mut unreadable = Vec::new();
        let listed =
            pages::read(
                &|offset, take| page(&service, offset, take),
                &mut |listed| match listed {
                    Ok((node, weight)) => batch.push(node, weight),
                    Err(error) => unreadable.push(error),
                },
            )?;
        batch.flush();
        Ok(Read { nodes: listed - unreadable.len(), unreadable })
    }
}

/// Returns the daemon that the environment names.
fn server_of_environment() -> Option<String> {
    std::env::var("CLADE_SERVER").ok().filter(|it| !it.is_empty())
}

/// Reads the facts files of a directory.
pub(super) fn from_directory(directory: &Path, each: Use<'_>) -> Result<Read> {
    let what = || format!("cannot read the facts in `{}`", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(what)? {
        let path = entry.with_context(what)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_facts = [".json", ".yaml", ".yml"].iter().any(|it| name.ends_with(it));
        if is_facts && !name.starts_with('.') && !name.contains(".trusted.") {
            files.push(path);
        }
    }
    if files.is_empty() {
        bail!(
            "there are no facts files in `{}`: `<certname>.json` or `.yaml`",
            directory.display()
        );
    }
    files.sort();
    let mut read = Read::default();
    let mut progress = Progress::new(files.len());
    for batch in files.chunks(BATCH) {
        let found: Vec<Result<Node, String>> = batch.par_iter().map(|it| facts_file(it)).collect();
        let mut nodes = Vec::with_capacity(found.len());
        for node in found {
            match node {
                Ok(node) => nodes.push(node),
                Err(error) => read.unreadable.push(error),
            }
        }
        read.nodes += nodes.len();
        each(&nodes);
        progress.advance(batch.len());
    }
    progress.end();
    Ok(read)
}

/// Reads a facts file and the trusted data beside it.
fn facts_file(path: &Path) -> Result<Node, String> {
    let fail =
        |error: &dyn std::fmt::Display| format!("`{}` cannot be read: {error}", path.display());
    let bytes = read_file(path).map_err(|error| fail(&error))?;
    let read = read_facts(&bytes).map_err(|error| fail(&error))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let trusted = ["json", "yaml", "yml"]
        .iter()
        .map(|extension| path.with_file_name(format!("{stem}.trusted.{extension}")))
        .find(|it| it.exists());
    let trusted = match trusted {
        None => read.trusted,
        Some(path) => Some(trusted_file(&path)?),
    };
    let name = read.name.unwrap_or(stem);
    let trusted = with_certname(trusted, &name);
    Ok(Node { name, fact: read.fact, trusted })
}

fn trusted_file(path: &Path) -> Result<Map<String, Value>, String> {
    let fail =
        |error: &dyn std::fmt::Display| format!("`{}` cannot be read: {error}", path.display());
    let bytes = read_file(path).map_err(|error| fail(&error))?;
    let read = read_facts(&bytes).map_err(|error| fail(&error))?;
    Ok(read.trusted.unwrap_or(read.fact))
}

/// A bar on a terminal; nothing elsewhere.
struct Progress {
    total: usize,
    done: usize,
    began: Instant,
    shown: bool,
}

impl Progress {
    fn new(total: usize) -> Self {
        let shown = total > BATCH && std::io::stderr().is_terminal();
        Self { total, done: 0, began: Instant::now(), shown }
    }

    fn advance(&mut self, nodes: usize) {
        self.done += nodes;
        if !self.shown {
            return;
        }
        let width = 30;
        let filled = width * self.done / self.total.max(1);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(width - filled));
        let elapsed = self.began.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
        let left = elapsed * (self.total - self.done) as f64 / self.done.max(1) as f64;
        // Nobody can be told that stderr is gone.
        write!(std::io::stderr(), "\r{bar} {}/{} nodes, {left:.0} s left ", self.done, self.total)
            .ok();
    }

    fn end(&self) {
        if self.shown {
            write!(std::io::stderr(), "\r\u{1b}[K").ok();
        }
    }
}
