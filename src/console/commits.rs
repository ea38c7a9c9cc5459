//! The commits that are known, and one of them with its findings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;

use super::context::{PageError, redirect};
use super::layout::{PageFrame, Section, escaped};
use super::markup::{self as m, Markup};
use super::state as s;
use super::stored::{FromStore, count};
use super::visit::Visit;
use crate::http::types::{Commit, CommitNodes, CommitState, CountedNodes, Finding};
use crate::model::CommitId;

/// How many commits a page of the list has.
const PAGE: usize = 100;

/// How many findings a page shows.
const FINDINGS: usize = 200;

/// How many files a page reads to show lines of them.
const FILES: usize = 20;

#[derive(Debug, Template)]
#[template(path = "commits.html")]
struct CommitsPage {
    layout: PageFrame,
    commits: Vec<ListedCommit>,
    /// The address of the part before, if this is not the first.
    newer: Option<String>,
    older: Option<String>,
}

/// A commit of the list.
#[derive(Debug)]
struct ListedCommit {
    commit: Commit,
    moved: Option<u64>,
}

/// Shows the list, or leads to the commit that the form names.
pub(super) async fn list(visit: Visit) -> Response {
    match visit.parameter("revision") {
        "" => {}
        asked => return redirect(&visit.links().plain(&format!("/commits/{}", escaped(asked)))),
    }
    let page = list_page(&visit).await;
    visit.show(page)
}

async fn list_page(visit: &Visit) -> Result<CommitsPage, PageError> {
    let offset = visit.offset();
    // One more says whether there are older ones.
    let route = format!("/controller/commits?limit={}&offset={offset}", PAGE + 1);
    let commits: Vec<Commit> = visit.get(&route).await?;
    let counts: FromStore<CountedNodes> = visit.get_stored("/controller/node-counts").await?;
    let at = |offset: usize| visit.links().to(&format!("/commits?offset={offset}"));
    let older = (commits.len() > PAGE).then(|| at(offset + PAGE));
    let newer = (offset > 0).then(|| at(offset.saturating_sub(PAGE)));
    let commits = commits.into_iter().take(PAGE);
    let moved = |commit| counts.as_ref().ok().map(|it| nodes(&it.moved, commit));
    let commits = commits.map(|it| ListedCommit { moved: moved(it.commit), commit: it }).collect();
    Ok(CommitsPage { layout: visit.layout(Section::Commits), commits, newer, older })
}

/// Returns how many nodes a commit has in a list.
fn nodes(counted: &[CommitNodes], commit: CommitId) -> u64 {
    counted.iter().find(|it| it.commit == commit).map(|it| it.nodes).unwrap_or_default()
}

#[derive(Debug, Template)]
#[template(path = "commit.html")]
struct CommitView {
    layout: PageFrame,
    commit: Commit,
    findings: Vec<ShownFinding>,
    more_findings: usize,
    nodes: FromStore<CommitCounts>,
    /// The commit that answered before, or the live one: what to compare with.
    base: Option<CommitId>,
    asked: String,
}

/// How many nodes a commit answered last, and how many it moved.
#[derive(Debug)]
struct CommitCounts {
    answered: u64,
    moved: u64,
}

/// A finding with the lines that it is about.
#[derive(Debug)]
struct ShownFinding {
    finding: Finding,
    source: Option<Markup>,
}

/// Shows one commit.
pub(super) async fn show(visit: Visit, Path(revision): Path<String>) -> Response {
    let page = commit_page(&visit, revision).await;
    visit.show(page)
}

async fn commit_page(visit: &Visit, revision: String) -> Result<CommitView, PageError> {
    let commit: Commit = visit.get(&format!("/controller/commits/{}", escaped(&revision))).await?;
    let counts: FromStore<CountedNodes> = visit.get_stored("/controller/node-counts").await?;
    let all = commit.diagnostics.len();
    let findings = with_sources(visit, &commit).await?;
    let live = visit.status.active.as_ref().map(|it| it.commit);
    let mut layout = visit.layout(Section::Commits);
    layout.commit = Some(commit.commit);
    Ok(CommitView {
        layout,
        more_findings: all.saturating_sub(findings.len()),
        findings,
        nodes: counts.map(|it| CommitCounts {
            answered: nodes(&it.commits, commit.commit),
            moved: nodes(&it.moved, commit.commit),
        }),
        base: live.filter(|it| *it != commit.commit),
        asked: revision,
        commit,
    })
}

/// Adds to findings the lines that they are about; errors stand first.
async fn with_sources(visit: &Visit, commit: &Commit) -> Result<Vec<ShownFinding>, PageError> {
    let mut findings: Vec<&Finding> = commit.diagnostics.iter().collect();
    findings.sort_by_key(|it| it.severity != "error");
    let mut texts: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut shown = Vec::new();
    for finding in findings.into_iter().take(FINDINGS) {
        let mut source = None;
        if let (Some(file), Some(line)) = (&finding.file, finding.line) {
            if !texts.contains_key(file) && texts.len() < FILES {
                let text = visit.file(commit.commit, file).await?;
                texts.insert(file.clone(), text);
            }
            let end = finding.end_line.unwrap_or(line);
            source = texts.get(file).and_then(Option::as_deref).map(|it| excerpt(it, line, end));
        }
        shown.push(ShownFinding { finding: finding.clone(), source });
    }
    Ok(shown)
}

/// Draws the lines around a place, those of the place marked.
fn excerpt(text: &str, first: u32, last: u32) -> Markup {
    /// How many lines stand before and after the place, and how many of it are shown.
    const AROUND: u32 = 2;
    const LONGEST: u32 = 12;
    let (from, to) = (first.saturating_sub(AROUND), last.min(first + LONGEST) + AROUND);
    let mut markup = String::new();
    for (number, line) in (1_u32..).zip(text.lines()).skip_while(|it| it.0 < from) {
        if number > to {
            break;
        }
        let class = if (first..=last).contains(&number) { " class=\"hit\"" } else { "" };
        let _ = writeln!(
            markup,
            "<span{class}><span class=\"lineno\">{number}</span>{}</span>",
            m::line(line)
        );
    }
    Markup::of_parts(markup)
}

impl CommitView {
    fn is_live(&self) -> bool {
        matches!(self.commit.state, CommitState::Live { .. })
    }

    fn groups(&self) -> Option<String> {
        self.commit.groups.map(|it| m::counted(it, "group"))
    }

    fn count_of(&self, severity: &str) -> usize {
        self.commit.diagnostics.iter().filter(|it| it.severity == severity).count()
    }

    /// Returns what became of the commit, with ages in place of times.
    fn became(&self) -> Markup {
        let now = &self.layout.now;
        let link = |commit: &CommitId| {
            format!(
                "<a class=\"id\" href=\"{}\">{}</a>",
                self.layout.links.commit(commit),
                m::short(commit)
            )
        };
        let words = match &self.commit.state {
            CommitState::Live { since } => format!("live, it answers since {}", m::ago(since, now)),
            CommitState::Replaced { since, until, by } => {
                let (since, until) = (m::ago(since, now), m::ago(until, now));
                format!("live from {since} to {until}, then replaced by {}", link(by))
            }
            CommitState::Rejected { since, .. } => {
                let reason = self.commit.message.rsplit_once(": ").map(|(_, it)| it);
                format!("rejected {}: {}", m::ago(since, now), m::line(reason.unwrap_or_default()))
            }
            CommitState::Superseded { since, by } => {
                let since = m::ago(since, now);
                format!(
                    "superseded {since} by {}: the branch went on before it was built",
                    link(by)
                )
            }
            CommitState::Pending { since: Some(since) } => {
                format!("fetched {}, being built", m::ago(since, now))
            }
            _ => return m::text(&self.commit.message),
        };
        Markup::of_parts(words)
    }

    /// Returns the address of the whole console as it was at this commit.
    fn then_address(&self) -> String {
        self.layout.links.plain(&format!("/groups?commit={}", self.commit.commit))
    }

    fn json_address(&self) -> String {
        self.layout.links.plain(&format!("/controller/commits/{}", self.commit.commit))
    }
}
