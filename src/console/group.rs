//! One group: its rule, its values, its nodes.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use jiff::Timestamp;
use serde_json::Value;

use super::context::PageError;
use super::layout::{PageFrame, Section, escaped};
use super::markup::{self as m, Markup};
use super::pager::Pager;
use super::rule_text as r;
use super::state as s;
use super::stored::FromStore;
use super::visit::Visit;
use crate::diagnostic::Place;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::http::types::{BlamedCommit, Group, GroupRules, NodePage, Values};
use crate::model::{self, GroupId};
use crate::snapshot::Snapshot;

/// How many nodes a page has.
const PAGE: usize = 50;

/// How many changes of the file the page lists.
const CHANGES: usize = 10;

/// How many values the page lists.
const VALUES: usize = 2000;

/// How many children the page lists.
const CHILDREN: usize = 100;

#[derive(Debug, Template)]
#[template(path = "group.html")]
struct GroupView {
    layout: PageFrame,
    group: Group,
    rules: GroupRules,
    lineage: Vec<(GroupId, String)>,
    children: Vec<(GroupId, String)>,
    more_children: usize,
    values: Vec<ShownGroupValue>,
    place: Option<Place>,
    nodes: FromStore<GroupNodes>,
    /// The commits that changed the file of the group, newest first.
    history: Vec<BlamedCommit>,
}

/// Nodes whose last answer has the group.
#[derive(Debug)]
struct GroupNodes {
    page: NodePage,
    pager: Pager,
}

/// A value of a group, its own or inherited.
#[derive(Debug)]
struct ShownGroupValue {
    key: String,
    value: Value,
    /// The group that defines it, if it is inherited.
    from: Option<(GroupId, String)>,
}

/// Shows the page.
pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> Response {
    let page = page(&visit, &id).await;
    visit.show(page)
}

async fn page(visit: &Visit, id: &str) -> Result<GroupView, PageError> {
    let route = format!("/v1/groups/{}", escaped(id));
    let group: Group = visit.get_at(&route).await?;
    let inherited: Group = visit.get_at(&format!("{route}?inherited=true")).await?;
    let rules: GroupRules = visit.get_at(&format!("{route}/rules")).await?;
    let offset = visit.offset();
    let nodes = format!("/controller/nodes?group={}&limit={PAGE}&offset={offset}", group.id);
    let nodes: FromStore<NodePage> = visit.get_stored(&nodes).await?;
    let address = visit.links().group(&group.id);
    let nodes = nodes.map(|page| GroupNodes {
        pager: Pager::new(page.total, (offset, page.nodes.len(), PAGE), &address),
        page,
    });
    let snapshot = visit.snapshot().await?;
    let hierarchy = &snapshot.estate.hierarchy;
    let index = hierarchy.find(group.id).unwrap_or_else(|| hierarchy.root());
    let named = |index: GroupIndex| {
        let group = hierarchy.group(index);
        (group.id, group.name.to_string())
    };
    let mut lineage: Vec<_> = hierarchy.lineage(index).skip(1).map(named).collect();
    lineage.reverse();
    let all = hierarchy.children(index).count();
    let place = place(&snapshot, group.id);
    let history = match &place {
        Some(place) => visit.file_changes(snapshot.commit, &place.file, CHANGES).await?,
        None => Vec::new(),
    };
    Ok(GroupView {
        layout: visit.layout(Section::Groups),
        values: values(hierarchy, index, &inherited),
        place,
        history,
        children: hierarchy.children(index).take(CHILDREN).map(named).collect(),
        more_children: all.saturating_sub(CHILDREN),
        lineage,
        group,
        rules,
        nodes,
    })
}

/// Returns where a group is written, if a file has it.
fn place(snapshot: &Snapshot, id: GroupId) -> Option<Place> {
    snapshot.origins.get(&id).cloned()
}

/// Returns what a group gives, with the ancestor that defines what it inherits.
fn values(hierarchy: &Hierarchy, index: GroupIndex, inherited: &Group) -> Vec<ShownGroupValue> {
    let mut values = Vec::new();
    let from = |defines: &dyn Fn(&model::Group) -> bool| {
        let mut lineage = hierarchy.lineage(index);
        let definer = lineage.find(|it| defines(hierarchy.group(*it)))?;
        let group = hierarchy.group(definer);
        (definer != index).then(|| (group.id, group.name.to_string()))
    };
    for (class, parameters) in &inherited.classes {
        let of_class = from(&|group| group.classes.iter().any(|(it, _)| it.as_str() == class));
        values.push(ShownGroupValue {
            key: format!("classes.{class}"),
            value: Value::Object(serde_json::Map::new()),
            from: of_class,
        });
        for (parameter, value) in parameters {
            let defines = |group: &model::Group| {
                let mut classes = group.classes.iter();
                classes.any(|(it, of_it)| {
                    it.as_str() == class && of_it.iter().any(|(key, _)| key.as_str() == parameter)
                })
            };
            let key = format!("classes.{class}.{parameter}");
            values.push(ShownGroupValue { key, value: value.clone(), from: from(&defines) });
        }
    }
    for (name, value) in &inherited.variables {
        let defines =
            |group: &model::Group| group.variables.iter().any(|(key, _)| key.as_str() == name);
        let key = format!("variables.{name}");
        values.push(ShownGroupValue { key, value: value.clone(), from: from(&defines) });
    }
    config_data(&mut values, &inherited.config_data, &from);
    values
}

/// Returns the ancestor that is the first to define something, unless that is the group itself.
type FindDefiner<'f> = dyn Fn(&dyn Fn(&model::Group) -> bool) -> Option<(GroupId, String)> + 'f;

/// Adds the data for Hiera.
fn config_data(values: &mut Vec<ShownGroupValue>, data: &Values, from: &FindDefiner<'_>) {
    for (class, keys) in data {
        for (key, value) in keys {
            let defines = |group: &model::Group| {
                let mut classes = group.config_data.iter();
                classes.any(|(it, of_it)| {
                    it.as_str() == class && of_it.iter().any(|(name, _)| name.as_str() == key)
                })
            };
            let path = format!("config_data.{class}.{key}");
            values.push(ShownGroupValue { key: path, value: value.clone(), from: from(&defines) });
        }
    }
}

impl ShownGroupValue {
    /// Returns whether the row is about a class itself: names of classes have no dots.
    fn is_class(&self) -> bool {
        self.key.strip_prefix("classes.").is_some_and(|it| !it.contains('.'))
    }

    /// Returns whether the row is about a parameter of a class.
    fn is_inner(&self) -> bool {
        self.key.starts_with("classes.") && !self.is_class()
    }
}

impl GroupView {
    fn written_in(&self) -> Option<Markup> {
        let place = self.place.as_ref()?;
        Some(self.layout.place(&place.file, Some(place.span.start.line), None))
    }

    fn edited(&self) -> Option<Timestamp> {
        self.group.last_edited.as_deref()?.parse().ok()
    }

    fn json_address(&self) -> Option<String> {
        self.layout.links.to_classifier(&format!("/v1/groups/{}", self.group.id))
    }

    /// Returns where all values are, with those that the group inherits.
    fn values_address(&self) -> Option<String> {
        let path = format!("/v1/groups/{}?inherited=true", self.group.id);
        self.layout.links.to_classifier(&path)
    }

    fn query_address(&self) -> Option<String> {
        let rule = self.rules.rule_with_inherited.as_ref()?;
        let rule = r::console(rule).unwrap_or_else(|| r::array(rule));
        Some(self.layout.links.plain(&format!("/query?rule={}", escaped(&rule))))
    }
}
