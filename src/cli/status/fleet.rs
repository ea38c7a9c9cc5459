//! The nodes of a daemon, counted.

use anyhow::Result;

use crate::cli::client::Document;
use crate::client::Client;
use crate::http::types::NodePage;
use crate::model::CommitId;

/// How many nodes are named of those that need attention.
const NAMED: usize = 3;

/// The nodes of a daemon, counted.
#[derive(Debug)]
pub(super) struct FleetCounts {
    /// How many there are.
    pub(super) total: u64,
    /// How many of them the active commit answered last.
    pub(super) current: u64,
    /// What needs attention.
    pub(super) groups: Vec<NamedNodes>,
}

/// Nodes that have something in common.
#[derive(Debug)]
pub(super) struct NamedNodes {
    pub(super) label: &'static str,
    /// The condition, as `clade nodes` takes it.
    pub(super) condition: String,
    pub(super) total: u64,
    /// The first of them.
    pub(super) names: Vec<String>,
}

impl FleetCounts {
    /// Asks for the counts; `silent_for` is how long a silent node was not seen.
    pub(super) fn ask(daemon: &Client, active: Option<CommitId>, silent_for: &str) -> Result<Self> {
        let page = |query: String| -> Result<NodePage> {
            let reply = daemon.get_json(&format!("/controller/nodes?limit={NAMED}{query}"))?;
            Ok(Document::of(reply, daemon)?.read)
        };
        let total = page(String::new())?.total;
        let current =
            active.map_or(Ok(0), |it| page(format!("&commit={it}")).map(|page| page.total))?;
        let mut groups = Vec::new();
        for (label, flag, parameter, value) in [
            ("conflict", "state", "state", "conflict"),
            ("error", "state", "state", "error"),
            ("silent", "silent-for", "silent_for", silent_for),
        ] {
            let NodePage { total, nodes, .. } = page(format!("&{parameter}={value}"))?;
            if total > 0 {
                groups.push(NamedNodes {
                    label,
                    condition: format!("--{flag} {value}"),
                    total,
                    names: nodes.into_iter().map(|it| it.name).collect(),
                });
            }
        }
        Ok(Self { total, current, groups })
    }
}
