//! `clade query`: the nodes that a rule matches, before it is written anywhere.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::Exit;
use super::client::Document;
use super::nodes::NodesArgs;
use super::output::{DataFormat, Output};
use super::page::paint;
use crate::client::{Client, read_pages};
use crate::diagnostic::{Colour, visible_up_to};
use crate::http::types::{Finding, MatchedNode, RuleMatches, RuleQuery};
use crate::mentioned::MentionedPaths;
use crate::model::Node;
use crate::rule::{RuleSearch, SearchRange};
use crate::validation::{TYPED_RULE, TypedRule};
use crate::wording::counted;

/// How long a daemon may search its nodes.
const SEARCH_TIMEOUT: Duration = Duration::from_mins(5);

/// How many nodes a page of a daemon has.
const PAGE: usize = 10_000;

/// How many nodes of which it is not known are named.
const NAMED: usize = 20;

/// The longest line that is shown.
const LONGEST: usize = 4_000;

/// Show the nodes that a rule matches, before it is written anywhere
///
/// The nodes are those that have checked in with a daemon, those of PuppetDB, or those of a directory of facts
/// files. Without --server, --facts and --puppetdb, the daemon is that of `CLADE_SERVER`, or else
/// `http://127.0.0.1:4433`.
///
/// Exit status: 0 all nodes were searched; 1 the rule is not valid, or for some nodes it is not known whether it
/// matches; 2 the nodes cannot be read.
#[derive(Debug, Args)]
pub(super) struct QueryCommand {
    /// The rule, in either notation
    #[arg(value_name = "RULE")]
    rule: String,
    #[command(flatten)]
    nodes: NodesArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: QueryOutput,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum QueryOutput {
    /// For people: the rule in both notations, the count, the nodes
    Human,
    /// The names of the nodes alone, one a line
    Names,
    /// One JSON object, with the rule as PuppetDB queries
    Json,
}

impl QueryCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let TypedRule { condition, diagnostics } = TypedRule::read(&self.rule);
        output.findings(&self.rule, TYPED_RULE, &diagnostics);
        let Some(condition) = condition else {
            if self.format == QueryOutput::Json {
                let findings: Vec<Value> =
                    diagnostics.iter().map(|it| Finding::from(it).into()).collect();
                output.data(&DataFormat::Json.write(&json!({"diagnostics": findings})))?;
            }
            return Ok(Exit::Findings);
        };
        let matches = match self.nodes.daemon_by_default(SEARCH_TIMEOUT, output)? {
            Some(daemon) => ask(&daemon, &self.rule)?,
            None => {
                let mentioned = MentionedPaths::of_rule(&condition);
                let search = RuleSearch::new(condition);
                let mut found = search.matches(SearchRange { offset: 0, limit: usize::MAX });
                let mut search_all = |nodes: &[Node]| {
                    let searched: Vec<_> =
                        nodes.par_iter().map(|node| search.examine(node)).collect();
                    for it in searched {
                        found.add(it);
                    }
                };
                let read = self.nodes.read(&mentioned, &mut search_all, output)?;
                let read = RuleMatches::of(&search, &found, &diagnostics, read.unreadable);
                Document { sent: serde_json::to_value(&read)?, read }
            }
        };
        output.data(&match self.format {
            QueryOutput::Human => write(&matches.read, output.colour()),
            QueryOutput::Names => names(&matches.read),
            QueryOutput::Json => DataFormat::Json.write(&matches.sent),
        })?;
        Ok(report(&matches.read, output))
    }
}

/// Asks a daemon, page by page.
fn ask(daemon: &Client, rule: &str) -> Result<Document<RuleMatches>> {
    let body = serde_json::to_string(&RuleQuery { rule: rule.into() })?;
    let mut first = None;
    let mut page = |offset: usize, take: &mut dyn FnMut(&str, (MatchedNode, Value))| {
        let path = format!("/controller/query?limit={PAGE}&offset={offset}");
        let mut page: Document<RuleMatches> =
            Document::of(daemon.post_json(&path, &body)?, daemon)?;
        let sent = page.sent.get_mut("nodes").and_then(Value::as_array_mut).map(std::mem::take);
        let sent = sent.context("expected a list of nodes")?;
        let read = std::mem::take(&mut page.read.nodes);
        let size = read.len();
        first.get_or_insert(page);
        for (node, sent) in read.into_iter().zip(sent) {
            let name = node.name.clone();
            take(&name, (node, sent));
        }
        anyhow::Ok(size)
    };
    let (mut read, mut sent) = (Vec::new(), Vec::new());
    read_pages(PAGE, &mut page, &mut |(node, value)| {
        read.push(node);
        sent.push(value);
    })?;
    let mut all = first.context("expected a list of nodes")?;
    all.read.nodes = read;
    if let Some(nodes) = all.sent.get_mut("nodes") {
        *nodes = sent.into();
    }
    Ok(all)
}

fn names(matches: &RuleMatches) -> String {
    let mut text = String::new();
    for node in &matches.nodes {
        text.push_str(&visible_up_to(&node.name, LONGEST));
        text.push('\n');
    }
    text
}

fn write(matches: &RuleMatches, colour: Colour) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        // A string takes all that is written to it.
        writeln!(text, "{label:<9}  {}", visible_up_to(value, LONGEST)).ok();
    };
    if let Some(console) = &matches.console {
        line("rule", console);
    }
    line("array", &matches.rule.to_string());
    let found = format!("{} of {}", matches.total, counted(matches.searched, "node"));
    writeln!(text, "{:<9}  {}", "matches", paint(colour, "1", &found)).ok();
    if matches.undecided.total > 0 {
        let undecided = counted(matches.undecided.total, "node");
        writeln!(text, "{:<9}  {}", "undecided", paint(colour, "31", &undecided)).ok();
    }
    if !matches.nodes.is_empty() {
        text.push('\n');
        text.push_str(&names(matches));
    }
    text
}

/// Says what may keep the result from being what was meant.
fn report(matches: &RuleMatches, output: &mut Output) -> Exit {
    if matches.searched > 0 {
        for path in matches.paths.iter().filter(|it| it.nodes == 0) {
            output.note(&format!("note: no node has a value at `{}`", path.path));
        }
    }
    let undecided = &matches.undecided;
    for node in undecided.nodes.iter().take(NAMED) {
        output.note(&format!(
            "error: it is not known whether `{}` matches: {}",
            node.name, node.error
        ));
    }
    let more = undecided.total.saturating_sub(NAMED as u64);
    if more > 0 {
        output.note(&format!("error: it is not known of {more} more either"));
    }
    for bad in &matches.unreadable {
        output.note(&format!("error: {bad}"));
    }
    match (matches.unreadable.len(), undecided.total) {
        (0, 0) => Exit::Fine,
        (0, _) => Exit::Findings,
        (unread, _) => {
            let unread = counted(unread, "node");
            output.note(&format!("error: {unread} could not be read, so more may match"));
            Exit::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn matches_are_counted_and_named() {
        let matches: RuleMatches = serde_json::from_value(json!({
            "rule": ["=", ["fact", "os", "family"], "Debian"], "console": "os.family = Debian",
            "translated": {"nodes_query_format": null, "inventory_query_format": null},
            "diagnostics": [], "searched": 5, "total": 2,
            "nodes": [{"name": "db1.example.com"}, {"name": "web1\u{1b}[31m"}],
            "undecided": {"total": 1, "nodes": [{"name": "a", "error": "e"}]},
            "paths": [{"path": "os.family", "nodes": 4}], "unreadable": [], "later": 1,
        }))
        .unwrap();
        insta::assert_snapshot!(write(&matches, Colour::Plain), @r#"
        rule       os.family = Debian
        array      ["=",["fact","os","family"],"Debian"]
        matches    2 of 5 nodes
        undecided  1 node

        db1.example.com
        web1�[31m
        "#);
        assert_eq!(names(&matches), "db1.example.com\nweb1\u{fffd}[31m\n");
    }
}
