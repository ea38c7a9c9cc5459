//! The nodes of a fleet: facts files, PuppetDB, or a daemon's check-ins.
//!
//! They are read and used in batches, so that a fleet of any size takes the memory of one.

mod batch;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;

use super::client::{DEFAULT_SERVER, IdentityArgs, server_of_environment};
use super::output::Output;
use super::progress::ProgressBar;
use super::repository::refuse_documents;
use crate::client::{Client, NodeEntry, PAGE_NODES, read_page, read_pages};
use crate::facts::{
    DirectoryListing, FactsDirectory, Listed, ListedNode, NodeSource as _, WantedFacts, list_files,
};
use crate::http::types::CheckIn;
use crate::mentioned::MentionedPaths;
use crate::model::Node;
use crate::puppetdb::PuppetDb;
use batch::NodeBatch;
use batch::UseBatch;

/// How long one page of nodes may take.
const PAGE_TIMEOUT: Duration = Duration::from_mins(1);

/// The source of nodes.
#[derive(Debug, Args)]
#[group(multiple = false, id = "nodes", args = ["facts", "puppetdb", "server"])]
pub(super) struct NodesArgs {
    /// A directory of facts files, `<certname>.json` or `.yaml`, in any form that `clade classify --facts` reads; trusted data beside them in `<certname>.trusted.json` or `.yaml`
    #[arg(long, value_name = "DIR")]
    facts: Option<PathBuf>,
    /// The PuppetDB whose inventory lists the nodes
    #[arg(long, value_name = "URL")]
    puppetdb: Option<String>,
    /// The daemon whose check-ins are the nodes: a URL, or the path of its unix socket [default: `CLADE_SERVER`, without --facts and --puppetdb; `validate` uses it only if a policy needs nodes]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// How many nodes were read.
#[derive(Debug, Default)]
pub(super) struct ReadNodes {
    pub(super) nodes: usize,
    /// What could not be read, and why.
    pub(super) unreadable: Vec<String>,
}

impl NodesArgs {
    /// Returns the daemon whose check-ins are the nodes, if they are.
    pub(super) fn daemon(&self, timeout: Duration, output: &mut Output) -> Result<Option<Client>> {
        if self.facts.is_some() || self.puppetdb.is_some() {
            return Ok(None);
        }
        let servers = self.server.clone().or_else(server_of_environment);
        servers.map(|it| self.identity.client_of_first(&it, timeout, output)).transpose()
    }

    /// Returns whether the nodes are the check-ins of a daemon.
    pub(super) fn names_daemon(&self) -> bool {
        let is_of_another = self.facts.is_some() || self.puppetdb.is_some();
        !is_of_another && (self.server.is_some() || server_of_environment().is_some())
    }

    /// Returns the daemon whose check-ins are the nodes, unless they are of another source: without any, that
    /// of this host.
    pub(super) fn daemon_by_default(
        &self,
        timeout: Duration,
        output: &mut Output,
    ) -> Result<Option<Client>> {
        let daemon = self.daemon(timeout, output)?;
        if daemon.is_some() || self.facts.is_some() || self.puppetdb.is_some() {
            return Ok(daemon);
        }
        self.identity.client_of_first(DEFAULT_SERVER, timeout, output).map(Some)
    }

    /// Returns whether the command line names a source.
    pub(super) fn is_given(&self) -> bool {
        self.facts.is_some() || self.puppetdb.is_some() || self.server.is_some()
    }

    /// Reads all nodes, with at least those of their facts that are mentioned.
    pub(super) fn read(
        &self,
        mentioned: &MentionedPaths,
        each: UseBatch<'_>,
        output: &mut Output,
    ) -> Result<ReadNodes> {
        self.read_noting(mentioned, &mut |_, _| {}, each, output)
    }

    /// Reads all nodes, with at least those of their facts that are mentioned, and notes when each was seen last,
    /// before it is used.
    pub(super) fn read_noting(
        &self,
        mentioned: &MentionedPaths,
        note: NoteSeen<'_>,
        each: UseBatch<'_>,
        output: &mut Output,
    ) -> Result<ReadNodes> {
        if let Some(directory) = &self.facts {
            let listing = FactsDirectory::new(directory.clone()).listing()?;
            refuse_documents(directory, &listing.files)?;
            warn_of_trusted_data(&listing, output);
            return from_files(&listing.files, mentioned, note, each);
        }
        if let Some(url) = &self.puppetdb {
            let puppetdb = PuppetDb::new(url, &self.identity.identity())?;
            return in_batches(note, each, &mut |take| {
                let each = &mut |listed| {
                    take(listed);
                    ControlFlow::Continue(())
                };
                Ok(puppetdb.list(None, each)?)
            });
        }
        let Some(daemon) = self.daemon(PAGE_TIMEOUT, output)? else {
            bail!(
                "no nodes: pass --facts DIR, --puppetdb URL or --server URL, or set `CLADE_SERVER`"
            )
        };
        in_batches(note, each, &mut |take| check_ins(&daemon, take))
    }
}

/// Notes the name of a node, and when it was seen last, if the source knows.
pub(super) type NoteSeen<'n> = &'n mut dyn FnMut(&str, Option<Timestamp>);

/// Warns of files that no node gets.
fn warn_of_trusted_data(listing: &DirectoryListing, output: &mut Output) {
    let mut lone = listing.trusted_without_facts.iter();
    let Some((path, certname)) = lone.next() else { return };
    let more = match lone.len() {
        0 => String::new(),
        1 => "; so is 1 other file".to_owned(),
        more => format!("; so are {more} other files"),
    };
    output.note(&format!(
        "warning: `{}` is left out: it has the trusted data of `{certname}`, which has no facts file here{more}",
        path.display()
    ));
}

/// Reads facts files.
fn from_files(
    files: &[PathBuf],
    mentioned: &MentionedPaths,
    note: NoteSeen<'_>,
    each: UseBatch<'_>,
) -> Result<ReadNodes> {
    let keep = |fact: &str, trusted: &str| mentioned.keep_text(fact, trusted).ok().map(<_>::into);
    let mut progress = ProgressBar::new(files.len(), "nodes");
    let read = in_batches(note, each, &mut |take| {
        Ok(list_files(files, WantedFacts::Some(&keep), &mut |listed| {
            take(listed);
            progress.advance();
            ControlFlow::Continue(())
        }))
    });
    progress.end();
    read
}

/// Reads the check-ins of a daemon.
fn check_ins(daemon: &Client, take: &mut dyn FnMut(Listed)) -> Result<usize> {
    let mut page = |offset: usize, take: &mut dyn FnMut(&str, Listed)| {
        let path = format!("/v1/nodes?facts=true&limit={PAGE_NODES}&offset={offset}");
        Ok(read_page::<CheckIn>(daemon, &path, None, &|_| true, take)?)
    };
    read_pages(PAGE_NODES, &mut page, take)
}

impl NodeEntry for CheckIn {
    fn name(&self) -> &str {
        &self.name
    }

    fn into_node(self) -> Result<Node, String> {
        if let Some(error) = self.error {
            return Err(format!("the daemon cannot read the node `{}`: {}", self.name, error.msg));
        }
        let is_whole = self.fact.is_some() && self.trusted.is_some();
        match self.check_ins.into_iter().next().and_then(|it| it.error) {
            // Without what is missing it could seem to be another node than it is.
            Some(error) if !is_whole => Err(format!(
                "the daemon does not know what the node `{}` has: {}",
                self.name, error.msg
            )),
            _ => Ok(ListedNode::node(
                self.name,
                self.fact.unwrap_or_default(),
                self.trusted.unwrap_or_default(),
            )),
        }
    }

    fn seen(&self) -> Option<Timestamp> {
        self.check_ins.first().map(|it| it.time)
    }
}

/// Passes on the nodes of a list, and returns how many it has.
type ListNodes<'l> = &'l mut dyn FnMut(&mut dyn FnMut(Listed)) -> Result<usize>;

/// Uses the nodes of a list in batches.
fn in_batches(note: NoteSeen<'_>, each: UseBatch<'_>, list: ListNodes<'_>) -> Result<ReadNodes> {
    let mut batch = NodeBatch::new(each);
    let mut unreadable = Vec::new();
    let listed = list(&mut |listed| match listed {
        Ok(ListedNode { node, memory, seen }) => {
            note(&node.name, seen);
            batch.push(node.with_certname(), memory);
        }
        Err(error) => unreadable.push(error),
    })?;
    batch.flush();
    Ok(ReadNodes { nodes: listed - unreadable.len(), unreadable })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Returns the text of an object.
    fn object(depth: u32) -> BoxedStrategy<String> {
        let keys = ["fact", "facts", "trusted", "certname", "name", "values", "a"];
        let key = prop_oneof![
            60 => proptest::sample::select(keys.to_vec()),
            // Such a key has the whole file read.
            1 => Just("\\u0061"),
        ];
        let leaf = ["1", "1.50", "null", "true", "\"x\"", "\"web2\"", "{}", "[]"];
        let weights = [3, 1, 5, 1, 3, 3, 1, 1];
        let leaf: Vec<_> = weights.into_iter().zip(leaf.map(Just)).collect();
        let leaf = proptest::strategy::Union::new_weighted(leaf).prop_map(str::to_owned);
        let value = match depth {
            0 => leaf.boxed(),
            _ => prop_oneof![
                2 => leaf,
                3 => object(depth - 1),
                1 => object(depth - 1).prop_map(|it| format!("[{it}, 1]")),
            ]
            .boxed(),
        };
        let entry = (key, value);
        proptest::collection::vec(entry, 0..5)
            .prop_map(|entries| {
                let entries: Vec<String> =
                    entries.into_iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
                format!("{{{}}}", entries.join(", "))
            })
            .boxed()
    }

    /// Returns the text of a file, often a request body.
    fn text() -> impl Strategy<Value = String> {
        let body = (object(2), object(1))
            .prop_map(|(fact, trusted)| format!("{{\"fact\": {fact}, \"trusted\": {trusted}}}"));
        prop_oneof![object(3), body]
    }

    fn mentioned() -> impl Strategy<Value = MentionedPaths> {
        let segment = || {
            prop_oneof![
                5 => proptest::sample::select(vec!["fact", "trusted", "certname", "name", "values", "a"])
                    .prop_map(Value::from),
                1 => (0..2).prop_map(Value::from),
            ]
        };
        let first = proptest::sample::select(vec!["fact", "trusted"]);
        let second = proptest::sample::select(vec!["trusted", "certname", "values", "a", "name"]);
        let rest = proptest::collection::vec(segment(), 0..3);
        let path = (first, second, rest, any::<bool>()).prop_map(|(first, second, rest, whole)| {
            let path = [first.into(), second.into()].into_iter().chain(rest);
            Value::Array(path.chain(whole.then_some(Value::Bool(true))).collect())
        });
        proptest::collection::vec(path, 0..5)
            .prop_map(|paths| Value::Array(paths).to_string().parse().unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn of_facts_files_everything_is_read_that_is_mentioned(
            text in text(),
            mentioned in mentioned(),
        ) {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("web1.json"), &text).unwrap();
            let mut whole = Vec::new();
            FactsDirectory::new(directory.path().to_owned())
                .list(None, &mut |listed| {
                    whole.push(listed);
                    ControlFlow::Continue(())
                })
                .unwrap();
            let mut kept = Vec::new();
            let files = FactsDirectory::new(directory.path().to_owned()).files().unwrap();
            let read = from_files(&files, &mentioned, &mut |_, _| {}, &mut |nodes| {
                kept.extend_from_slice(nodes);
            })
            .unwrap();
            match &whole[0] {
                Err(error) => prop_assert_eq!(&read.unreadable, std::slice::from_ref(error), "{}", text),
                Ok(ListedNode { node, .. }) => {
                    prop_assert_eq!(&kept[0].name, &node.name, "{}", text);
                    prop_assert_eq!(mentioned.keep(&kept[0]), mentioned.keep(node), "{}", text);
                }
            }
        }
    }
}
