//! What a known node gets, and why a group has it or not.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::GroupRef;
use crate::model::GroupId;
use crate::reconcile;

/// A value that a node gets, with the place where it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LocatedValue {
    /// Such as `classes.apache.port`, `variables.tier`, `groups.Webservers` or `environment`.
    pub key: String,
    /// The value; the name of a group; an empty object for a class.
    pub value: Value,
    /// The name of the group that defines it; null for the node's own file.
    #[schema(required)]
    pub group: Option<String>,
    /// The id of that group.
    #[schema(required)]
    pub group_id: Option<GroupId>,
    /// The file that defines it; null for what no file says.
    #[schema(required)]
    pub file: Option<String>,
    /// The line there.
    #[schema(required)]
    pub line: Option<u32>,
}

impl From<reconcile::LocatedValue> for LocatedValue {
    fn from(located: reconcile::LocatedValue) -> Self {
        let (group, group_id) = located.group.map(|it| (it.name, it.id)).unzip();
        let (file, line) = located.place.map(|(file, line)| (file.to_string(), line)).unzip();
        Self { key: located.key, value: located.value, group, group_id, file, line }
    }
}

/// Whether a node is in a group, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Membership {
    /// Whether it is; null if that depends on a rule that cannot be evaluated.
    #[schema(required)]
    pub member: Option<bool>,
    /// The rules that decide, those of the ancestors first.
    pub rules: Vec<MembershipRule>,
}

/// The rule of a group, evaluated for a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MembershipRule {
    /// The group.
    pub group: GroupRef,
    /// Whether the rule holds; null for a group without one, or if it cannot be evaluated.
    #[schema(required)]
    pub holds: Option<bool>,
    /// The rule with every term evaluated; null for a group without one.
    #[schema(required)]
    pub explanation: Option<Value>,
}

impl Membership {
    /// Decides by the rules of a group and its ancestors: one that fails is enough, and a group without a
    /// rule has no nodes itself.
    pub(in crate::http) fn of(rules: Vec<MembershipRule>) -> Self {
        let own = rules.last().is_some_and(|it| it.explanation.is_some());
        let fails = rules.iter().any(|it| it.holds == Some(false));
        let is_unknown = rules.iter().any(|it| it.explanation.is_some() && it.holds.is_none());
        let member = match (own && !fails, is_unknown) {
            (false, _) => Some(false),
            (true, true) => None,
            (true, false) => Some(true),
        };
        Self { member, rules }
    }
}
