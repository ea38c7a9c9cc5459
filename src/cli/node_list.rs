//! `clade nodes`: the nodes that a daemon knows, or those of facts files.

mod classified;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::Exit;
use super::client::{AnswerFormat, Document};
use super::nodes::NodesArgs;
use super::output::Output;
use super::page::{Cell, Page, RED, YELLOW};
use super::repository::{BUDGET_OF_DAEMON, BudgetArgs};
use super::why::resolve;
use crate::age::age;
use crate::answer::NodeState;
use crate::client::{Client, JsonReply, read_pages};
use crate::config::parse_duration;
use crate::diagnostic::{closest, visible_up_to};
use crate::http::types::{NodePage, NodeSummary, StoredGroup};
use crate::model::{CommitId, EnvironmentName};

/// How long one page may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// How many nodes a page has.
const PAGE: usize = 1000;

/// What there is to do where a daemon knows no node.
const NONE_YET: &str = "no node has checked in yet: a node checks in when Puppet Server runs `clade enc` for it, or when its facts are sent to \
    `/v1/classified/nodes/NAME`; where senders authenticate, theirs needs the role `check-in`";

/// How many characters of a commit's id are shown.
const SHORT: usize = 12;

/// The longest text of a cell.
const LONGEST: usize = 60;

/// List the nodes that a daemon knows: what each got last, from which commit, and when it was seen
///
/// With --facts or --puppetdb, the nodes are those, and each is listed with what a repository gives it now. A node
/// is listed if it meets every condition that is given.
///
/// Without --server, --facts and --puppetdb, the daemon is that of `CLADE_SERVER`, or else `http://127.0.0.1:4433`.
#[derive(Debug, Args)]
pub(super) struct NodesCommand {
    /// Only nodes with this text in their certname
    #[arg(long, value_name = "TEXT")]
    q: Option<String>,
    /// Only nodes in this group: its id or its name
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Only nodes that get this class
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Only nodes that get this environment
    #[arg(long, value_name = "ENVIRONMENT")]
    environment: Option<String>,
    /// Only nodes that this commit answered last: any revision of the repository in the working directory; outside a repository the daemon resolves it
    #[arg(long, value_name = "REV")]
    commit: Option<String>,
    /// Only nodes whose last classification came to this
    #[arg(long, value_name = "STATE", value_parser = ["classified", "conflict", "error"])]
    state: Option<String>,
    /// Only nodes that were not seen for so long, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = check_duration)]
    silent_for: Option<String>,
    #[command(flatten)]
    nodes: NodesArgs,
    /// With --facts or --puppetdb, the directory of the group repository [default: .]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// With --facts or --puppetdb, read this git revision instead of the working tree
    #[arg(long, value_name = "REV")]
    rev: Option<String>,
    #[command(flatten)]
    budget: BudgetArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: AnswerFormat,
}

/// Checks a duration, which the daemon reads.
fn check_duration(text: &str) -> Result<String, String> {
    parse_duration(text).map(|_| text.to_owned())
}

impl NodesCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let Some(daemon) = self.nodes.daemon_by_default(TIMEOUT, output)? else {
            return self.classify(output);
        };
        if self.budget.is_given() {
            bail!("{BUDGET_OF_DAEMON}");
        }
        if self.repo.is_some() || self.rev.is_some() {
            bail!(
                "a daemon lists what it answered itself: with --repo or --rev, name the nodes with --facts DIR"
            );
        }
        self.ask(&daemon, output)
    }

    /// Lists the nodes of a daemon.
    fn ask(&self, daemon: &Client, output: &mut Output) -> Result<Exit> {
        let commit = self.commit.as_deref().map(|it| resolve(it, output)).transpose()?;
        let conditions = [
            ("q", self.q.as_deref()),
            ("group", self.group.as_deref()),
            ("class", self.class.as_deref()),
            ("environment", self.environment.as_deref()),
            ("commit", commit.as_deref()),
            ("state", self.state.as_deref()),
            ("silent_for", self.silent_for.as_deref()),
        ];
        let given = conditions.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let query: Vec<String> =
            given.map(|(name, value)| format!("&{name}={}", encode(value))).collect();
        let query = query.concat();
        let nodes = Pages { daemon, query: &query }.read()?;
        match self.format {
            AnswerFormat::Json => {
                let document = json!({"total": nodes.total, "nodes": nodes.sent});
                output.data(&format!("{document:#}\n"))?;
            }
            AnswerFormat::Human if nodes.read.is_empty() => {
                output.note(&self.explain_empty(daemon));
            }
            AnswerFormat::Human => {
                let rows: Vec<NodeLine> = nodes.read.into_iter().map(NodeLine::from).collect();
                output.data(&write(&rows, Timestamp::now(), output.page()))?;
            }
        }
        Ok(Exit::Fine)
    }
}

impl NodesCommand {
    /// Says why a list is empty, as far as the daemon tells.
    fn explain_empty(&self, daemon: &Client) -> String {
        let all = daemon.get_json("/controller/nodes?limit=1").map_err(anyhow::Error::from);
        let all = all.and_then(|reply| Document::<NodePage>::of(reply, daemon));
        if all.is_ok_and(|it| it.read.total == 0) {
            return NONE_YET.to_owned();
        }
        let unknown = self.unknown_name(daemon);
        let unknown = unknown.map(|it| format!(": {it}")).unwrap_or_default();
        format!("the daemon knows no node that meets the conditions{unknown}")
    }

    /// Says which group or class of the conditions the commit that answers lacks, and which was meant.
    fn unknown_name(&self, daemon: &Client) -> Option<String> {
        if self.group.is_none() && self.class.is_none() {
            return None;
        }
        let groups = daemon.get_json("/v1/groups").and_then(JsonReply::document).ok()?;
        let groups = groups.as_array()?;
        let texts = |key: &'static str| groups.iter().filter_map(move |it| it.get(key)?.as_str());
        if let Some(wanted) = &self.group
            && !texts("name").chain(texts("id")).any(|it| it == wanted)
        {
            return Some(format!("there is no group `{wanted}`{}", meant(wanted, texts("name"))));
        }
        let wanted = self.class.as_deref()?;
        let classes = groups.iter().filter_map(|it| it.get("classes")?.as_object());
        let classes = classes.flat_map(|it| it.keys().map(String::as_str));
        let is_known = classes.clone().any(|it| it == wanted);
        (!is_known).then(|| format!("no group has the class `{wanted}`{}", meant(wanted, classes)))
    }
}

/// Says which of some names may be meant.
fn meant<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    closest(wanted, names).map(|it| format!("; did you mean `{it}`?")).unwrap_or_default()
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// All nodes of a list.
#[derive(Default)]
struct AllNodes {
    total: u64,
    /// As the daemon sent them, which may say more than this program can read.
    sent: Vec<Value>,
    read: Vec<NodeSummary>,
}

/// A list of nodes, page by page.
struct Pages<'p> {
    daemon: &'p Client,
    query: &'p str,
}

impl Pages<'_> {
    fn read(&self) -> Result<AllNodes> {
        let mut all = AllNodes::default();
        let mut total = 0;
        let mut page = |offset: usize, take: &mut dyn FnMut(&str, (NodeSummary, Value))| {
            let path = format!("/controller/nodes?limit={PAGE}&offset={offset}{}", self.query);
            let page: Document<NodePage> = Document::of(self.daemon.get_json(&path)?, self.daemon)?;
            let sent = page.sent.get("nodes").and_then(Value::as_array).cloned();
            let sent = sent.context("expected a list of nodes")?;
            total = page.read.total;
            let size = page.read.nodes.len();
            for (node, sent) in page.read.nodes.into_iter().zip(sent) {
                let name = node.name.clone();
                take(&name, (node, sent));
            }
            anyhow::Ok(size)
        };
        read_pages(PAGE, &mut page, &mut |(node, sent)| {
            all.read.push(node);
            all.sent.push(sent);
        })?;
        Ok(AllNodes { total, ..all })
    }
}

/// A node as it is listed.
struct NodeLine {
    name: String,
    state: Option<NodeState>,
    /// None where the source of the nodes does not say.
    last_seen: Option<Timestamp>,
    commit: Option<CommitId>,
    since: Option<Timestamp>,
    environment: Option<EnvironmentName>,
    groups: Vec<StoredGroup>,
}

impl NodeLine {
    /// Writes it as a daemon does, with null for what is not known here.
    fn to_value(&self) -> Value {
        json!({
            "name": self.name,
            "last_seen": self.last_seen,
            "commit": self.commit,
            "environment": self.environment,
            "groups": self.groups,
            "state": self.state,
            "since": self.since,
        })
    }
}

impl From<NodeSummary> for NodeLine {
    fn from(node: NodeSummary) -> Self {
        let NodeSummary { name, last_seen, commit, environment, groups, state, since } = node;
        Self { name, state, last_seen: Some(last_seen), commit, since, environment, groups }
    }
}

fn write(nodes: &[NodeLine], now: Timestamp, page: Page) -> String {
    let head = ["NODE", "STATE", "SEEN", "COMMIT", "SINCE", "ENVIRONMENT", "GROUPS"];
    let missing = || "-".to_owned();
    let rows = nodes.iter().map(|it| {
        let commit = it.commit.map(|commit| commit.to_string().chars().take(SHORT).collect());
        let groups: Vec<&str> = it.groups.iter().map(|group| group.name.as_str()).collect();
        let age_of = |time: Option<Timestamp>| time.map_or_else(missing, |it| age(it, now));
        [
            visible_up_to(&it.name, LONGEST).into(),
            it.state.map_or_else(|| missing().into(), state_cell),
            age_of(it.last_seen).into(),
            commit.unwrap_or_else(missing).into(),
            age_of(it.since).into(),
            it.environment.as_ref().map_or_else(missing, ToString::to_string).into(),
            visible_up_to(&groups.join(", "), LONGEST).into(),
        ]
    });
    page.table(head, &rows.collect::<Vec<_>>())
}

fn state_cell(state: NodeState) -> Cell {
    match state {
        NodeState::Classified => state.to_string().into(),
        NodeState::Conflict => Cell::painted(state.to_string(), YELLOW),
        NodeState::Error => Cell::painted(state.to_string(), RED),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{NodeLine, Page, write};
    use crate::diagnostic::Colour;
    use crate::http::types::NodePage;

    #[test]
    fn nodes_are_a_table_with_ages() {
        let group = json!({"id": "36241e24-ecd8-4143-9145-932efae5ffb1", "name": "Web\u{1b}[31m"});
        let page: NodePage = serde_json::from_value(json!({"total": 3, "nodes": [
            {"name": "db1.example.com", "last_seen": "2026-11-22T09:00:00Z",
             "commit": "d7e3cef5f336fdea8a2ee9e52a99a9d236d0d86f", "environment": null, "groups": [group, group],
             "state": "conflict", "since": "2026-11-20T09:00:00Z"},
            {"name": "new1.example.com", "last_seen": "2026-11-22T12:00:00Z", "commit": null,
             "environment": null, "groups": [], "state": null, "since": null},
            {"name": "web1.example.com", "last_seen": "2026-11-22T11:59:00Z",
             "commit": "d7e3cef5f336fdea8a2ee9e52a99a9d236d0d86f", "environment": "production",
             "groups": [group], "state": "classified", "since": "2026-11-22T11:00:00Z", "later": 1},
        ]})).unwrap();
        let now = "2026-11-22T12:00:00Z".parse().unwrap();
        let wide = Page { width: None, colour: Colour::Plain };
        let rows: Vec<NodeLine> = page.nodes.into_iter().map(NodeLine::from).collect();
        insta::assert_snapshot!(write(&rows, now, wide), @r"
        NODE              STATE       SEEN      COMMIT        SINCE       ENVIRONMENT  GROUPS
        db1.example.com   conflict    3 h ago   d7e3cef5f336  2 d ago     -            Web�[31m, Web�[31m
        new1.example.com  -           just now  -             -           -
        web1.example.com  classified  60 s ago  d7e3cef5f336  60 min ago  production   Web�[31m
        ");
    }
}
