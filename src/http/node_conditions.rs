//! The conditions of a list of nodes, as a query writes them.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;

use super::error::ApiError;
use super::node_counts::time_before;
use super::query::Parameters;
use crate::model::GroupId;
use crate::reconcile::{Controller, LookupError};
use crate::snapshot::Snapshot;
use crate::store::{NodeCursor, NodeFilter, NodeOrder, check_node_name};

/// A group as a query names it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NamedGroup {
    /// The group with an id; without one, all groups that have its text for a name.
    Id(GroupId, String),
    /// All groups of the live commit with this name, one an environment.
    Name(String),
}

/// Conditions of which some depend on the live commit or on the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeConditions {
    filter: NodeFilter,
    group: Option<NamedGroup>,
    /// A revision that is not a full id.
    revision: Option<String>,
}

impl NodeConditions {
    /// Reads the conditions of a query.
    pub(super) fn read(parameters: &Parameters, now: Timestamp) -> Result<Self, ApiError> {
        let text = |name: &str| parameters.get(name).filter(|it| !it.is_empty());
        let silent_since = text("silent_for").map(|it| time_before(it, now)).transpose()?;
        // Nodes can have answers of commits that the repository does not have any more.
        let named = parameters.once("commit")?.filter(|it| !it.is_empty());
        let commit = named.and_then(|it| it.parse().ok());
        let revision = named.filter(|_| commit.is_none()).map(str::to_owned);
        let order = word(text("sort"), "NodeOrder")?.unwrap_or_default();
        let filter = NodeFilter {
            name_part: text("q").map(name_part).transpose()?,
            groups: None,
            class: word(text("class"), "ClassName")?,
            environment: word(text("environment"), "EnvironmentName")?,
            commit,
            state: word(text("state"), "NodeState")?,
            silent_since,
            order,
            after: text("after").map(|it| place(it, order)).transpose()?,
        };
        let group = text("group").map(|it| match it.parse() {
            Ok(id) => NamedGroup::Id(id, it.to_owned()),
            Err(_) => NamedGroup::Name(it.to_owned()),
        });
        Ok(Self { filter, group, revision })
    }

    /// Returns whether the repository has to be read for them.
    pub(super) fn needs_repository(&self) -> bool {
        self.revision.is_some()
    }

    /// Finds the groups and the commit that the conditions name. Blocking if the repository is read.
    pub(super) fn resolve(self, controller: &Controller) -> Result<NodeFilter, LookupError> {
        let groups = match self.group {
            None => None,
            Some(NamedGroup::Id(id, text)) => {
                // Nodes may have answers of commits with a group that is gone. A name may read as an id.
                let live = controller.snapshot().ok();
                let other = live.filter(|it| it.estate.hierarchy.find(id).is_none());
                let mut groups = other.map_or_else(BTreeSet::new, |it| named(&it, &text));
                groups.insert(id);
                Some(groups)
            }
            Some(NamedGroup::Name(name)) => Some(named(&*controller.snapshot()?, &name)),
        };
        let commit = match self.revision {
            Some(revision) => Some(controller.resolve(&revision)?),
            None => self.filter.commit,
        };
        Ok(NodeFilter { groups, commit, ..self.filter })
    }
}

/// Returns the groups with a name, one an environment.
fn named(snapshot: &Snapshot, name: &str) -> BTreeSet<GroupId> {
    let named = snapshot.estate.hierarchy.groups().filter(|it| it.name.as_str() == name);
    named.map(|it| it.id).collect()
}

/// Reads a part of a certname.
fn name_part(text: &str) -> Result<String, ApiError> {
    check_node_name(text).map_err(|error| {
        let shown: String = text.chars().take(64).collect();
        ApiError::schema_violation(shown.into(), "NamePart", error.to_string().into())
    })?;
    Ok(text.to_owned())
}

/// Reads a place in a list.
fn place(text: &str, order: NodeOrder) -> Result<NodeCursor, ApiError> {
    NodeCursor::parse(text, order.key).map_err(|error| {
        let shown: String = text.chars().take(64).collect();
        ApiError::schema_violation(shown.into(), "NodeCursor", error.to_string().into())
    })
}

/// Reads a word of the query.
fn word<T: FromStr<Err: Display>>(text: Option<&str>, schema: &str) -> Result<Option<T>, ApiError> {
    let read = |text: &str| {
        let wrong = |error: T::Err| {
            ApiError::schema_violation(text.into(), schema, error.to_string().into())
        };
        text.parse().map_err(wrong)
    };
    text.map(read).transpose()
}
