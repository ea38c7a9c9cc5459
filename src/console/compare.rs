//! What changes for nodes between two points of history.

use askama::Template;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::context::{PageError, redirect};
use super::layout::{PageFrame, Section, escaped};
use super::markup::{self as m, Markup};
use super::visit::Visit;
use crate::http::types::DiffSide;
use crate::model::CommitId;

/// How many groups, and how many files of nodes, are listed that differ.
const CAUSES: usize = 200;

/// How many changes of nodes are shown.
const CHANGES: usize = 100;

/// How many nodes of a change are listed.
const NODES: usize = 500;

/// How many nodes are listed that were not compared.
const UNREADABLE: usize = 50;

#[derive(Debug, Template)]
#[template(path = "compare.html")]
struct ComparePage {
    layout: PageFrame,
    comparison: ComparedCommits,
}

/// What the route answers, as far as the page shows it.
#[derive(Debug, Deserialize)]
struct ComparedCommits {
    base: DiffSide,
    head: DiffSide,
    summary: Summary,
    groups: Vec<CauseShown>,
    node_files: Vec<CauseShown>,
    changes: Vec<Moved>,
    unreadable: Vec<String>,
}

/// How many nodes change.
#[derive(Debug, Deserialize)]
struct Summary {
    nodes: u64,
    changed: u64,
    conflicts_appearing: u64,
    conflicts_disappearing: u64,
    errors_appearing: u64,
    errors_disappearing: u64,
}

/// A change of a group, or of the file of a node.
#[derive(Debug, Deserialize)]
struct CauseShown {
    change: String,
    name: Option<String>,
    id: Option<String>,
    node: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    #[serde(default)]
    parts: Vec<String>,
}

/// Nodes that change alike.
#[derive(Debug, Deserialize)]
struct Moved {
    count: usize,
    nodes: Vec<String>,
    groups: MovedGroups,
    environment: Option<Two>,
    conflict: Option<Two>,
    error: Option<Two>,
    classes: MovedClasses,
    parameters: Vec<MovedValue>,
    variables: Vec<MovedValue>,
    config_data: Vec<MovedValue>,
    causes: Vec<CauseShown>,
}

#[derive(Debug, Deserialize)]
struct MovedGroups {
    entered: Vec<ComparedGroup>,
    left: Vec<ComparedGroup>,
    renamed: Vec<RenamedGroup>,
}

#[derive(Debug, Deserialize)]
struct ComparedGroup {
    name: String,
}

#[derive(Debug, Deserialize)]
struct RenamedGroup {
    from: ComparedGroup,
    to: ComparedGroup,
}

#[derive(Debug, Deserialize)]
struct MovedClasses {
    added: Vec<String>,
    removed: Vec<String>,
}

/// A value before and afterwards.
#[derive(Debug, Deserialize)]
struct Two {
    old: Option<Value>,
    new: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct MovedValue {
    class: Option<String>,
    #[serde(alias = "parameter", alias = "key")]
    name: String,
    old: Option<Value>,
    new: Option<Value>,
}

/// One line of what changes.
#[derive(Debug)]
struct Line {
    sign: &'static str,
    what: String,
    old: Option<Value>,
    new: Option<Value>,
}

/// Shows the page of a range such as `HEAD~1...HEAD`.
pub(super) async fn show(visit: Visit, Path(range): Path<String>) -> Response {
    let page = page(&visit, &range).await;
    visit.show(page)
}

async fn page(visit: &Visit, range: &str) -> Result<ComparePage, PageError> {
    let Some((base, head)) = range.split_once("...") else {
        let message = format!("`{range}` does not name two revisions, such as `HEAD~1...HEAD`.");
        return Err(PageError::NotFound(message));
    };
    let (base, head) = (revision(visit, base).await?, revision(visit, head).await?);
    let route = format!("/controller/diff/{}/{}", escaped(&base), escaped(&head));
    let comparison: ComparedCommits = visit.get(&route).await?;
    let mut layout = visit.layout(Section::Commits);
    layout.commit = comparison.head.commit;
    Ok(ComparePage { layout, comparison })
}

/// Returns a revision; a time stands for the commit that was live then.
async fn revision(visit: &Visit, text: &str) -> Result<String, PageError> {
    if text.parse::<Timestamp>().is_err() {
        return Ok(text.to_owned());
    }
    let commit = visit.commit_at(text).await?;
    commit.map(|it| it.to_string()).ok_or_else(|| {
        PageError::NotFound(format!("It is not known which commit was live at {text}."))
    })
}

/// Leads from the form to the page.
pub(super) async fn open(visit: Visit) -> Response {
    let (base, head) = (visit.parameter("base"), visit.parameter("head"));
    if base.is_empty() || head.is_empty() {
        return redirect(&visit.links().plain("/commits")).into_response();
    }
    redirect(&visit.links().plain(&format!("/compare/{}...{}", escaped(base), escaped(head))))
}

impl ComparePage {
    /// Returns the commit that has what a change is about: the base has what the change removes.
    fn commit_of(&self, cause: &CauseShown) -> Option<&CommitId> {
        let Self { comparison: ComparedCommits { base, head, .. }, .. } = self;
        if cause.change == "removed" { base.commit.as_ref() } else { head.commit.as_ref() }
    }

    /// Returns the address of the group that a change is about, if it is about one.
    fn group_address(&self, cause: &CauseShown) -> Option<String> {
        Some(self.layout.group_at(cause.id.as_ref()?, self.commit_of(cause)?))
    }

    /// Returns the address of a node whose file differs: one that was compared, and so has a page.
    fn node_address(&self, node: &str) -> Option<String> {
        let is_moved = |it: &Moved| it.nodes.iter().any(|name| name == node);
        let has_page = self.comparison.changes.iter().any(is_moved);
        has_page.then(|| self.layout.links.node(node))
    }

    /// Draws the place of a change.
    fn cause_place(&self, cause: &CauseShown, file: &str) -> Markup {
        self.layout.place_at(self.commit_of(cause), file, cause.line, None)
    }

    /// Returns how many groups and files of nodes differ that are not listed.
    fn more_causes(&self) -> usize {
        let rest = |causes: &[CauseShown]| causes.len().saturating_sub(CAUSES);
        rest(&self.comparison.groups) + rest(&self.comparison.node_files)
    }

    /// Returns how many changes are not shown.
    fn more_changes(&self) -> usize {
        self.comparison.changes.len().saturating_sub(CHANGES)
    }

    /// Returns how many nodes were not compared, beside those that are listed.
    fn more_unreadable(&self) -> usize {
        self.comparison.unreadable.len().saturating_sub(UNREADABLE)
    }

    /// Returns the address of the whole comparison.
    fn json_address(&self) -> String {
        let ComparedCommits { base, head, .. } = &self.comparison;
        let name = |side: &DiffSide| match &side.commit {
            Some(commit) => commit.to_string(),
            None => escaped(&side.revision),
        };
        self.layout.links.plain(&format!("/controller/diff/{}/{}", name(base), name(head)))
    }

    /// Returns how many of a hundred nodes change; one at least, if any does.
    fn percent(&self) -> u64 {
        let Summary { nodes, changed, .. } = self.comparison.summary;
        let percent = changed.saturating_mul(100).checked_div(nodes).unwrap_or_default();
        if changed > 0 { percent.max(1) } else { 0 }
    }
}

impl Moved {
    /// Returns how many of the nodes are not listed.
    fn more_nodes(&self) -> usize {
        self.count.saturating_sub(self.nodes.len().min(NODES))
    }

    fn lines(&self) -> Vec<Line> {
        let plain = |sign, what| Line { sign, what, old: None, new: None };
        let mut lines = Vec::new();
        lines.extend(self.groups.entered.iter().map(|it| plain("+", format!("group {}", it.name))));
        lines.extend(self.groups.left.iter().map(|it| plain("-", format!("group {}", it.name))));
        let renamed = |it: &RenamedGroup| {
            plain("~", format!("group {} is called {}", it.from.name, it.to.name))
        };
        lines.extend(self.groups.renamed.iter().map(renamed));
        for (what, two) in [
            ("environment", &self.environment),
            ("conflict", &self.conflict),
            ("error", &self.error),
        ] {
            if let Some(Two { old, new }) = two {
                let (old, new) = (old.clone(), new.clone());
                lines.push(Line { sign: "~", what: what.to_owned(), old, new });
            }
        }
        lines.extend(self.classes.added.iter().map(|it| plain("+", format!("class {it}"))));
        lines.extend(self.classes.removed.iter().map(|it| plain("-", format!("class {it}"))));
        for (kind, values) in [
            ("parameter", &self.parameters),
            ("variable", &self.variables),
            ("config data", &self.config_data),
        ] {
            lines.extend(values.iter().map(|it| it.line(kind)));
        }
        lines
    }
}

impl MovedValue {
    fn line(&self, kind: &str) -> Line {
        let what = match &self.class {
            Some(class) => format!("{kind} {class}.{}", self.name),
            None => format!("{kind} {}", self.name),
        };
        Line { sign: "~", what, old: self.old.clone(), new: self.new.clone() }
    }
}
