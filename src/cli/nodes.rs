//! The nodes of a fleet: facts files, PuppetDB, or a daemon's check-ins.
//!
//! They are read and used in batches, so that a fleet of any size takes the memory of one.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rayon::prelude::*;
use serde_json::Value;

use super::client::{Daemon, Identity, Said};
use crate::facts::{read_facts, read_file, with_certname};
use crate::model::{Map, Node};

/// How many nodes are used together.
const BATCH: usize = 512;

/// How long one page of nodes may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where nodes come from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false, id = "nodes", args = ["facts", "puppetdb", "server"])]
pub(super) struct NodesArgs {
    /// A directory of facts files, `<certname>.json` or `.yaml`, in any form that `clade classify --facts` reads; trusted data may stand beside them in `<certname>.trusted.json` or `.yaml`
    #[arg(long, value_name = "DIR")]
    facts: Option<PathBuf>,
    /// The nodes of a PuppetDB, by its inventory
    #[arg(long, value_name = "URL")]
    puppetdb: Option<String>,
    /// The nodes that have checked in with a daemon
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
    pub(super) fn read(&self, each: Use<'_>) -> Result<Read> {
        if let Some(directory) = &self.facts {
            return from_directory(directory, each);
        }
        let (url, page): (_, Page) = match (&self.puppetdb, &self.server) {
            (Some(url), _) => (url, inventory),
            (None, Some(url)) => (url, check_ins),
            (None, None) => bail!("one of --facts, --puppetdb and --server is needed"),
        };
        let service = self.identity.at(url, PATIENCE)?;
        let (mut read, mut offset) = (Read::default(), 0);
        loop {
            let listed = page(&|path: &str| service.get(path), offset)?;
            let size = listed.len();
            offset += size;
            let mut nodes = Vec::with_capacity(size);
            for node in listed {
                match node {
                    Ok(node) => nodes.push(node),
                    Err(error) => read.unreadable.push(error),
                }
            }
            read.nodes += nodes.len();
            each(&nodes);
            if size < BATCH {
                return Ok(read);
            }
        }
    }
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

/// Reads a page of nodes that begins after some.
type Page = fn(&dyn Fn(&str) -> Result<Said>, usize) -> Result<Vec<Listed>>;

/// A node of a list, or why it cannot be read.
type Listed = Result<Node, String>;

/// Reads a page of the check-ins of a daemon.
fn check_ins(get: &dyn Fn(&str) -> Result<Said>, offset: usize) -> Result<Vec<Listed>> {
    let path = format!("/v1/nodes?facts=true&limit={BATCH}&offset={offset}");
    let document = get(&path)?.document()?;
    let errors: Vec<Option<String>> =
        document.as_array().into_iter().flatten().map(error_of).collect();
    let nodes = list(document, "name", "fact")?;
    Ok(nodes.into_iter().zip(errors).map(|(node, error)| error.map_or(Ok(node), Err)).collect())
}

/// Returns why the daemon cannot read a node of its list.
fn error_of(entry: &Value) -> Option<String> {
    let message = entry.get("error")?.get("msg")?.as_str()?;
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    Some(format!("the daemon cannot read the node `{name}`: {message}"))
}

/// Reads a page of the inventory of a PuppetDB.
fn inventory(get: &dyn Fn(&str) -> Result<Said>, offset: usize) -> Result<Vec<Listed>> {
    // `[{"field": "certname", "order": "asc"}]`, so that pages do not overlap.
    let order = "%5B%7B%22field%22%3A%22certname%22%2C%22order%22%3A%22asc%22%7D%5D";
    let path = format!("/pdb/query/v4/inventory?order_by={order}&limit={BATCH}&offset={offset}");
    Ok(list(get(&path)?.document()?, "certname", "facts")?.into_iter().map(Ok).collect())
}

/// Asks a `PuppetDB` for one node.
pub(super) fn of_puppetdb(service: &Daemon, certname: &str) -> Result<Option<Node>> {
    let query = serde_json::json!(["=", "certname", certname]).to_string();
    let query = utf8_percent_encode(&query, NON_ALPHANUMERIC);
    let said = service.get(&format!("/pdb/query/v4/inventory?query={query}"))?;
    Ok(list(said.document()?, "certname", "facts")?.pop())
}

/// Asks a `PuppetDB` for the nodes that a query of its inventory finds, or for all.
pub(super) fn found_in_puppetdb(
    service: &Daemon,
    query: Option<&Value>,
    each: &mut dyn FnMut(Node),
) -> Result<()> {
    let mut offset = 0;
    loop {
        let mut page = serde_json::json!({
            "order_by": [{"field": "certname", "order": "asc"}], "limit": BATCH, "offset": offset,
        });
        if let (Some(query), Value::Object(fields)) = (query, &mut page) {
            fields.insert("query".to_owned(), query.clone());
        }
        // A query can be longer than a URL may be.
        let said = service.ask("/pdb/query/v4/inventory", &page.to_string())?;
        let nodes = list(said.document()?, "certname", "facts")?;
        let size = nodes.len();
        nodes.into_iter().for_each(&mut *each);
        if size < BATCH {
            return Ok(());
        }
        offset += size;
    }
}

fn list(document: Value, name: &str, facts: &str) -> Result<Vec<Node>> {
    let Value::Array(entries) = document else {
        return Err(anyhow!("the answer is no list of nodes"));
    };
    entries
        .into_iter()
        .map(|mut entry| {
            let certname = entry.get(name).and_then(Value::as_str).map(str::to_owned);
            let certname = certname.with_context(|| format!("a node has no `{name}`"))?;
            let mut object = |key: &str| match entry.get_mut(key).map(Value::take) {
                Some(Value::Object(object)) => object,
                _ => Map::new(),
            };
            let mut fact = object(facts);
            // An agent can send a fact of this name; what is trusted stands beside the facts.
            fact.remove("trusted");
            let trusted = with_certname(Some(object("trusted")), &certname);
            Ok(Node { name: certname, fact, trusted })
        })
        .collect()
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
