//! One node: what it gets, why, and since when.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

use super::context::PageError;
use super::layout::{PageFrame, Section, escaped};
use super::markup as m;
use super::rule_text as r;
use super::state as s;
use super::visit::Visit;
use crate::answer::NodeState;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::http::types::{
    AnswerChange, BlamedValue, Difference, Explanation, LocatedValue, Membership, StoredChange,
    StoredNode,
};
use crate::model::{CommitId, GroupId};

/// How many changes the page shows.
const CHANGES: usize = 10;

/// How many values of a change the page shows.
const VALUES: usize = 500;

/// Facts that are longer than this are on their own page.
const INLINE: usize = 48 << 10;

#[derive(Debug, Template)]
#[template(path = "node.html")]
struct NodeView {
    layout: PageFrame,
    name: String,
    stored: Option<StoredNode>,
    groups: Vec<MatchedGroup>,
    values: Vec<ValueRow>,
    /// Why there are no values, or no commits beside them.
    without_values: Option<String>,
    is_blamed: bool,
    conflicts: Vec<Conflict>,
    changes: Vec<StoredChange>,
    /// How many were asked for.
    shown_changes: usize,
    enc: Option<String>,
    facts: Option<String>,
    trusted: String,
    why: Option<Why>,
    asked: String,
    /// Why the commit does not explain what the node gets, which takes facts.
    unexplained: Option<String>,
    /// Whether the page names the commit that it is of.
    is_elsewhere: bool,
}

/// A group that matches, with the reason.
#[derive(Debug)]
struct MatchedGroup {
    id: GroupId,
    name: String,
    depth: usize,
    is_leaf: bool,
    explanation: Value,
}

/// A value with its place, and its origin where that was asked for.
#[derive(Debug)]
struct ValueRow {
    value: LocatedValue,
    blamed: Option<BlamedValue>,
}

/// A value that groups give differently.
#[derive(Debug)]
struct Conflict {
    key: String,
    sides: Vec<Difference>,
}

/// Why a group has the node, or does not.
#[derive(Debug)]
struct Why {
    group: String,
    membership: Membership,
}

impl Why {
    fn verdict(&self) -> &'static str {
        match self.membership.member {
            Some(true) => "The node is in the group",
            Some(false) => "The node is not in the group",
            None => "It cannot be told whether the node is in the group",
        }
    }

    /// Returns whether the group has no rule of its own, so that no node is in it.
    fn lacks_rule(&self) -> bool {
        self.membership.rules.last().is_some_and(|it| it.explanation.is_none())
    }
}

/// Shows the page.
pub(super) async fn show(visit: Visit, Path(name): Path<String>) -> Response {
    let page = page(&visit, name).await;
    visit.show(page)
}

async fn page(visit: &Visit, name: String) -> Result<NodeView, PageError> {
    let route = format!("/controller/nodes/{}", escaped(&name));
    let stored: Result<StoredNode, PageError> = visit.get(&route).await;
    let explanation: Result<Explanation, PageError> =
        visit.get_at(&format!("/v1/classified/nodes/{}/explanation", escaped(&name))).await;
    let (stored, explanation) = match (stored, explanation) {
        // A node that a file or PuppetDB knows has no check-in: then the explanation says what is wrong.
        (Err(absent), Err(trouble)) if absent.status() == StatusCode::NOT_FOUND => {
            return Err(trouble);
        }
        (Err(trouble), Err(_)) => return Err(trouble),
        (stored, explanation) => (stored.ok(), explanation),
    };
    let is_blamed = !visit.parameter("blame").is_empty();
    let (values, without_values) = values(visit, &route, is_blamed).await;
    let asked = visit.parameter("group").to_owned();
    let (fact, trusted) = match (&explanation, &stored) {
        (Ok(explanation), _) => {
            let node = &explanation.node_as_received;
            (Value::from(node.fact.clone()), Value::from(node.trusted.clone()))
        }
        (Err(_), Some(stored)) => {
            (Value::from(stored.facts.clone()), Value::from(stored.trusted.clone()))
        }
        (Err(_), None) => (Value::Null, Value::Null),
    };
    let facts = format!("{fact:#}");
    // The history of a node that is not stored is empty.
    let (changes, shown_changes) = match &stored {
        Some(_) => changes(visit, &format!("{route}/history?"), CHANGES).await?,
        None => (Vec::new(), CHANGES),
    };
    Ok(NodeView {
        layout: visit.layout(Section::Nodes),
        why: if asked.is_empty() { None } else { Some(why(visit, &route, &asked).await?) },
        groups: match &explanation {
            Ok(explanation) => groups(visit, explanation).await?,
            Err(_) => Vec::new(),
        },
        conflicts: explanation.as_ref().map(conflicts).unwrap_or_default(),
        changes,
        unexplained: explanation.err().map(PageError::message),
        is_elsewhere: visit.is_elsewhere(),
        enc: visit.text_at(&format!("{route}/enc")).await.ok(),
        facts: (facts.len() <= INLINE).then_some(facts),
        trusted: format!("{trusted:#}"),
        stored,
        values,
        without_values,
        shown_changes,
        is_blamed,
        asked,
        name,
    })
}

/// Asks for so many changes by a route that a limit ends, or for as many of them as one answer can have; returns how many
/// were asked for.
async fn changes(
    visit: &Visit,
    route: &str,
    most: usize,
) -> Result<(Vec<StoredChange>, usize), PageError> {
    let mut limit = most;
    loop {
        match visit.get(&format!("{route}limit={limit}")).await {
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE && limit > 1 => {
                limit /= 2;
            }
            answer => return Ok((answer?, limit)),
        }
    }
}

/// Asks for the values that the node gets; there are none in a conflict or an error, which says why. Where only the
/// commits that they came from are missing, it says why, too.
async fn values(visit: &Visit, route: &str, is_blamed: bool) -> (Vec<ValueRow>, Option<String>) {
    let located: Result<Vec<LocatedValue>, PageError> =
        visit.get_at(&format!("{route}/values")).await;
    let blame: Result<Vec<BlamedValue>, PageError> = match is_blamed {
        true => visit.get_at(&format!("{route}/blame")).await,
        false => Ok(Vec::new()),
    };
    let (blamed, without_blame) = match blame {
        Ok(blamed) => (blamed, None),
        Err(trouble) => (Vec::new(), Some(trouble.message())),
    };
    let mut blamed: BTreeMap<String, BlamedValue> =
        blamed.into_iter().map(|it| (it.key.clone(), it)).collect();
    match located {
        Ok(values) => {
            // The groups stand by themselves, with their reasons.
            let values = values.into_iter().filter(|it| !it.key.starts_with("groups."));
            let row = |value: LocatedValue| ValueRow { blamed: blamed.remove(&value.key), value };
            (values.map(row).collect(), without_blame)
        }
        Err(trouble) => (Vec::new(), Some(trouble.message())),
    }
}

/// Returns the groups that match as a tree is drawn, each below the next group above it that matches.
async fn groups(visit: &Visit, explanation: &Explanation) -> Result<Vec<MatchedGroup>, PageError> {
    let snapshot = visit.snapshot().await?;
    let hierarchy = &snapshot.estate.hierarchy;
    let matched = &explanation.match_explanations;
    let indexes = matched.keys().filter_map(|it| hierarchy.find(*it));
    let drawn = in_tree_order(hierarchy, &indexes.collect());
    let row = |(index, depth): (GroupIndex, usize)| {
        let group = hierarchy.group(index);
        let decided = matched.get(&group.id)?.clone();
        Some(MatchedGroup {
            id: group.id,
            name: group.name.to_string(),
            depth,
            is_leaf: explanation.leaf_groups.contains_key(&group.id),
            explanation: decided,
        })
    };
    Ok(drawn.into_iter().filter_map(row).collect())
}

/// Returns the groups that match in the order of a tree, siblings by name and then id, and how many above each match.
///
/// Each group is visited once: the ancestors of all groups of a long chain would fill the memory.
fn in_tree_order(
    hierarchy: &Hierarchy,
    matched: &BTreeSet<GroupIndex>,
) -> Vec<(GroupIndex, usize)> {
    let mut seen = BTreeSet::new();
    let mut children: BTreeMap<GroupIndex, Vec<GroupIndex>> = BTreeMap::new();
    for index in matched {
        let mut at = *index;
        while seen.insert(at)
            && let Some(parent) = hierarchy.parent(at)
        {
            children.entry(parent).or_default().push(at);
            at = parent;
        }
    }
    let key = |index: &GroupIndex| {
        let group = hierarchy.group(*index);
        (group.name.as_str(), group.id)
    };
    let mut found = Vec::new();
    let mut open = vec![(hierarchy.root(), 0)];
    while let Some((index, depth)) = open.pop() {
        let matches = matched.contains(&index);
        if matches {
            found.push((index, depth));
        }
        let mut below = children.remove(&index).unwrap_or_default();
        below.sort_by(|one, other| key(other).cmp(&key(one)));
        open.extend(below.into_iter().map(|it| (it, depth + usize::from(matches))));
    }
    found
}

/// Returns each value that groups give differently.
fn conflicts(explanation: &Explanation) -> Vec<Conflict> {
    let Some(details) = &explanation.conflicts else { return Vec::new() };
    let mut found = Vec::new();
    let mut add = |key: String, sides: &Vec<Difference>| {
        if !sides.is_empty() {
            found.push(Conflict { key, sides: sides.clone() });
        }
    };
    add("environment".to_owned(), &details.environment);
    for (name, sides) in &details.variables {
        add(format!("variables.{name}"), sides);
    }
    for (prefix, tables) in [("classes", &details.classes), ("config_data", &details.config_data)] {
        for (class, keys) in tables {
            for (key, sides) in keys {
                add(format!("{prefix}.{class}.{key}"), sides);
            }
        }
    }
    found
}

/// Asks why a group, named by name or id, has the node or does not.
async fn why(visit: &Visit, route: &str, asked: &str) -> Result<Why, PageError> {
    let snapshot = visit.snapshot().await?;
    let hierarchy = &snapshot.estate.hierarchy;
    let by_id = asked.parse::<GroupId>().ok().and_then(|id| hierarchy.find(id));
    let by_name = || {
        hierarchy
            .indexes()
            .find(|index| hierarchy.group(*index).name.as_str().eq_ignore_ascii_case(asked))
    };
    let Some(index) = by_id.or_else(by_name) else {
        return Err(PageError::NotFound(format!("No group is called `{asked}` at this commit.")));
    };
    let group = hierarchy.group(index);
    let membership = visit.get_at(&format!("{route}/membership?group={}", group.id)).await?;
    Ok(Why { group: group.name.to_string(), membership })
}

/// Returns the commit that has the group because of which a value changed: the one before, if the value is gone. None
/// if the repository does not have the commit any more.
fn commit_of<'c>(change: &'c StoredChange, value: &AnswerChange) -> Option<&'c CommitId> {
    match (&value.after, &change.commit_before) {
        (None, Some(before)) => Some(before),
        _ => change.commit.subject.as_ref().map(|_| &change.commit.id),
    }
}

#[derive(Debug, Template)]
#[template(path = "node_history.html")]
struct HistoryPage {
    layout: PageFrame,
    name: String,
    changes: Vec<StoredChange>,
    older: Option<String>,
    /// Where programs get this part of the history.
    json: String,
}

/// Shows the history of a node.
pub(super) async fn history(visit: Visit, Path(name): Path<String>) -> Response {
    let page = history_page(&visit, name).await;
    visit.show(page)
}

async fn history_page(visit: &Visit, name: String) -> Result<HistoryPage, PageError> {
    const PAGE: usize = 50;
    let before = visit.parameter("before");
    let mut route = format!("/controller/nodes/{}/history?", escaped(&name));
    if !before.is_empty() {
        write!(route, "before={}&", escaped(before)).ok();
    }
    let (changes, limit) = changes(visit, &route, PAGE).await?;
    let json = visit.links().plain(&format!("{route}limit={limit}"));
    let older = changes.last().filter(|_| changes.len() == limit).map(|last| {
        let path = format!("/nodes/{}/history?before={}", escaped(&name), last.time);
        visit.links().to(&path)
    });
    Ok(HistoryPage { layout: visit.layout(Section::Nodes), name, changes, older, json })
}

#[derive(Debug, Template)]
#[template(path = "node_facts.html")]
struct FactsPage {
    layout: PageFrame,
    name: String,
    facts: String,
    trusted: String,
}

/// Shows the facts of a node.
pub(super) async fn facts(visit: Visit, Path(name): Path<String>) -> Response {
    let page = facts_page(&visit, name).await;
    visit.show(page)
}

async fn facts_page(visit: &Visit, name: String) -> Result<FactsPage, PageError> {
    let stored: StoredNode = visit.get(&format!("/controller/nodes/{}", escaped(&name))).await?;
    Ok(FactsPage {
        layout: visit.layout(Section::Nodes),
        name,
        facts: format!("{:#}", Value::from(stored.facts)),
        trusted: format!("{:#}", Value::from(stored.trusted)),
    })
}

impl MatchedGroup {
    /// Returns how far the group stands to the right.
    fn indent(&self) -> usize {
        /// What fits on a phone.
        const MOST: usize = 8;
        self.depth.min(MOST)
    }
}

impl ValueRow {
    /// Returns whether the row is about a class itself: names of classes have no dots.
    fn is_class(&self) -> bool {
        self.value.key.strip_prefix("classes.").is_some_and(|it| !it.contains('.'))
    }

    /// Returns whether the row is about a parameter of a class.
    fn is_inner(&self) -> bool {
        self.value.key.starts_with("classes.") && !self.is_class()
    }
}

impl NodeView {
    /// Counts the classes, and the other values, whose keys begin like this.
    fn of_kind(&self, prefix: &str) -> (usize, usize) {
        let of_kind = self.values.iter().filter(|it| it.value.key.starts_with(prefix));
        let (classes, others): (Vec<_>, Vec<_>) = of_kind.partition(|it| it.is_class());
        (classes.len(), others.len())
    }

    /// Returns the values by kind, in the order in which people ask for them.
    fn kinds(&self) -> Vec<(&'static str, Vec<&ValueRow>)> {
        const KINDS: [(&str, &str); 4] = [
            ("environment", "Environment"),
            ("classes", "Classes with their parameters"),
            ("variables", "Variables"),
            ("config_data", "Data for Hiera"),
        ];
        let of_kind = |kind: &str| {
            let is_of_kind = |it: &&ValueRow| it.value.key.split('.').next() == Some(kind);
            self.values.iter().filter(is_of_kind).collect::<Vec<_>>()
        };
        let kinds = KINDS.into_iter().map(|(kind, title)| (title, of_kind(kind)));
        kinds.filter(|(_, rows)| !rows.is_empty()).collect()
    }

    fn state(&self) -> Option<NodeState> {
        Some(self.stored.as_ref()?.answer.as_ref()?.state)
    }

    /// Returns why the conflict in which the node is cannot be shown, if it cannot.
    fn hidden_conflicts(&self) -> Option<&str> {
        // What the node got last says nothing of another commit.
        let is_in_conflict = !self.is_elsewhere && self.state() == Some(NodeState::Conflict);
        let is_hidden = is_in_conflict && self.conflicts.is_empty();
        self.unexplained.as_deref().filter(|_| is_hidden)
    }

    fn blame_address(&self) -> String {
        self.layout.links.to(&format!("/nodes/{}?blame=on", escaped(&self.name)))
    }

    /// Returns where programs get the history that the page begins.
    fn history_address(&self) -> String {
        let (name, limit) = (escaped(&self.name), self.shown_changes);
        let path = format!("/controller/nodes/{name}/history?limit={limit}");
        self.layout.links.plain(&path)
    }

    fn json_address(&self) -> Option<String> {
        if self.unexplained.is_some() {
            return None;
        }
        let path = format!("/v1/classified/nodes/{}/explanation", escaped(&self.name));
        self.layout.links.to_classifier(&path)
    }

    /// Returns the files that define values: how many files one looks into.
    fn files(&self) -> usize {
        self.values.iter().filter_map(|it| it.value.file.as_deref()).collect::<BTreeSet<_>>().len()
    }
}

#[cfg(test)]
mod tests;
