//! The first page: is my change live, and is the estate well?

use askama::Template;
use axum::response::Response;

use super::context::PageError;
use super::layout::{PageFrame, Section};
use super::markup::{self as m, Markup};
use super::session::Transport;
use super::state as s;
use super::stored::{FromStore, count};
use super::trends::TrendGraphs;
use super::visit::Visit;
use crate::http::AddressRoutes;
use crate::http::types::{
    Commit, CommitNodes, Condition, ConditionStatus, CountedNodes, Finding, Status, Trends,
};
use crate::model::CommitId;

/// How many commits the page shows.
const COMMITS: usize = 8;

/// The page.
#[derive(Debug, Template)]
#[template(path = "home.html")]
struct HomePage {
    layout: PageFrame,
    status: Status,
    verdict: Verdict,
    counts: FromStore<CountedNodes>,
    by_commit: Vec<CommitShare>,
    changes: Vec<RecentCommit>,
    /// Scheme, host and base path, as the visitor wrote them.
    address: String,
    graphs: Option<TrendGraphs>,
    routes: AddressRoutes,
}

/// Whether the newest commit answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It does.
    Live,
    /// It is not valid.
    Rejected,
    /// An operator pinned another.
    Pinned,
    /// It waits, for the builder, the remote or an operator.
    Waiting,
    /// No commit answers.
    Nothing,
}

impl Verdict {
    fn of(status: &Status) -> Self {
        let Some(active) = &status.active else { return Self::Nothing };
        let is_newest = status.observed.is_none_or(|it| it.commit == active.commit);
        match (&status.last_failed, status.pinned) {
            (_, Some(_)) => Self::Pinned,
            _ if is_newest => Self::Live,
            (Some(_), None) => Self::Rejected,
            (None, None) => Self::Waiting,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Live => "good",
            Self::Pinned | Self::Waiting => "warn",
            Self::Rejected | Self::Nothing => "bad",
        }
    }

    fn headline(self) -> &'static str {
        match self {
            Self::Live => "The newest commit answers",
            Self::Rejected => "The newest commit is rejected; the one before still answers",
            Self::Pinned => "An operator pinned a commit",
            Self::Waiting => "A newer commit waits",
            Self::Nothing => "No commit answers yet",
        }
    }
}

/// The nodes that a commit answered last.
#[derive(Clone, Copy, Debug)]
struct CommitShare {
    commit: CommitId,
    nodes: u64,
    /// Of a hundred.
    percent: u64,
    is_live: bool,
}

/// A commit with how many nodes it moved.
#[derive(Debug)]
struct RecentCommit {
    commit: Commit,
    moved: Option<u64>,
}

/// Shows the page.
pub(super) async fn show(visit: Visit) -> Response {
    let page = page(&visit).await;
    visit.show(page)
}

async fn page(visit: &Visit) -> Result<HomePage, PageError> {
    let commits = format!("/controller/commits?limit={COMMITS}");
    let (counts, trends, commits) = tokio::try_join!(
        visit.get_stored::<CountedNodes>("/controller/node-counts"),
        visit.get_stored::<Trends>("/controller/trends"),
        visit.get::<Vec<Commit>>(&commits),
    )?;
    let live = visit.status.active.as_ref().map(|it| it.commit);
    let known = counts.as_ref().ok();
    let moved = |commit: CommitId| {
        let found = known?.moved.iter().find(|it| it.commit == commit);
        Some(found.map(|it| it.nodes).unwrap_or_default())
    };
    Ok(HomePage {
        layout: visit.layout(Section::Home),
        address: address(visit),
        status: visit.status.clone(),
        verdict: Verdict::of(&visit.status),
        by_commit: known.map(|it| shares(it, live)).unwrap_or_default(),
        changes: commits
            .into_iter()
            .map(|commit| RecentCommit { moved: moved(commit.commit), commit })
            .collect(),
        graphs: known
            .zip(trends.ok())
            .map(|(counts, trends)| TrendGraphs::of(trends, visit.now, &counts.commits)),
        counts,
        routes: visit.console.api.address_routes(),
    })
}

/// Returns the nodes that the first commits answered last.
fn shares(counts: &CountedNodes, live: Option<CommitId>) -> Vec<CommitShare> {
    let share = |it: &CommitNodes| CommitShare {
        commit: it.commit,
        nodes: it.nodes,
        percent: it.nodes.saturating_mul(100).checked_div(counts.total).unwrap_or_default(),
        is_live: live == Some(it.commit),
    };
    counts.commits.iter().take(COMMITS).map(share).collect()
}

/// Returns the address that the visitor uses.
fn address(visit: &Visit) -> String {
    let header = |name: &str| visit.headers().get(name).and_then(|it| it.to_str().ok());
    let scheme = match Transport::of(visit.headers(), visit.console.transport) {
        Transport::Tls => "https",
        Transport::Plain => "http",
    };
    let base = &visit.links().base;
    format!("{scheme}://{}{base}", header("host").unwrap_or("127.0.0.1:4433"))
}

impl HomePage {
    /// Returns a command that lets a first node check in.
    fn example(&self) -> Markup {
        const NODE: &str = r#"{"fact": {"os": {"family": "Debian"}}, "trusted": {"extensions": {"pp_role": "web"}}}"#;
        let address = &self.address;
        m::verbatim(format!("curl {address}/v1/classified/nodes/web1.example.com --data '{NODE}'"))
    }

    fn first_finding(&self) -> Option<&Finding> {
        let failed = self.status.last_failed.as_ref()?;
        let errors = || failed.diagnostics.iter().find(|it| it.severity == "error");
        errors().or_else(|| failed.diagnostics.first())
    }

    fn more_findings(&self) -> usize {
        let failed = self.status.last_failed.as_ref();
        failed.map_or(0, |it| it.diagnostics.len().saturating_sub(1))
    }

    /// Describes the store.
    fn store(&self) -> String {
        let Some(store) = &self.status.store else { return String::new() };
        match (store.nodes, store.bytes) {
            (Some(nodes), Some(bytes)) => {
                format!("{}, {} nodes, {} bytes", store.kind, m::count(nodes), m::count(bytes))
            }
            _ => store.kind.clone(),
        }
    }

    /// Returns the conditions with how good each is.
    fn conditions(&self) -> Vec<(&Condition, &'static str)> {
        self.status.conditions.iter().map(|it| (it, s::condition(it))).collect()
    }
}
