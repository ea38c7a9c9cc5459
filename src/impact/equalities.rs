//! Which values of one name are equal for a node: what taking back changes does to its values follows from that, and not
//! from the values themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::family::FamilyMember;
use super::version::STATES;
use crate::classification::{Expander, Setting, WithheldFacts, has_dollar};
use crate::model::{
    ClassName, Group, GroupId, Individual, Interpolation, Key, Node, ValueNumbers, VariableName,
};

/// The settings in whose values groups mention facts, in either state, by the identity of the group. Most groups mention
/// none.
#[derive(Debug, Default)]
pub(super) struct MentioningSettings<'a>(BTreeMap<GroupId, BTreeSet<Setting<'a>>>);

impl<'a> MentioningSettings<'a> {
    /// Returns those of a group.
    fn of(&self, identity: GroupId) -> impl Iterator<Item = Setting<'a>> {
        self.0.get(&identity).into_iter().flatten().copied()
    }
}

impl<'a> FromIterator<(GroupId, &'a Group)> for MentioningSettings<'a> {
    fn from_iter<I: IntoIterator<Item = (GroupId, &'a Group)>>(groups: I) -> Self {
        let mut all: BTreeMap<GroupId, BTreeSet<Setting<'a>>> = BTreeMap::new();
        for (identity, group) in groups {
            let mentioning = Setting::of_group(group).filter(|(_, value)| has_dollar(value));
            for (setting, _) in mentioning {
                all.entry(identity).or_default().insert(setting);
            }
        }
        Self(all)
    }
}

/// Of one setting, which of the values that a node could get are equal: equal values have one number, and what sets none
/// has no number.
#[derive(Serialize)]
pub(super) struct Equality<'a> {
    setting: SettingName<'a>,
    numbers: Vec<Option<usize>>,
}

#[derive(Serialize)]
enum SettingName<'a> {
    Environment,
    Parameter(&'a ClassName, &'a Key),
    Variable(&'a VariableName),
    ConfigData(&'a ClassName, &'a Key),
}

impl<'a> From<Setting<'a>> for SettingName<'a> {
    fn from(setting: Setting<'a>) -> Self {
        match setting {
            Setting::Environment => Self::Environment,
            Setting::Parameter(class, name) => Self::Parameter(class, name),
            Setting::Variable(name) => Self::Variable(name),
            Setting::ConfigData(class, key) => Self::ConfigData(class, key),
        }
    }
}

/// Returns the equalities of each setting whose values depend on the node: groups mention facts in it, or the node has a
/// value of its own, which is the same in both states.
///
/// Returns `None` if facts cannot be put into all values.
pub(super) fn equalities<'a>(
    members: &[FamilyMember<'a>],
    mentioning: &MentioningSettings<'a>,
    individual: Option<&'a Individual>,
    node: &Node,
    interpolations: [Interpolation; 2],
) -> Option<Vec<Equality<'a>>> {
    let of_groups = members.iter().flat_map(|it| mentioning.of(it.id));
    let own = individual.into_iter().flat_map(Setting::of_individual).map(|(setting, _)| setting);
    let settings: BTreeSet<Setting<'a>> = of_groups.chain(own).collect();
    let [expands, keeps] =
        [Interpolation::On, Interpolation::Off].map(|it| interpolations.contains(&it));
    let mut expander = Expander::new(node, WithheldFacts::Mark);
    let mut equalities = Vec::with_capacity(settings.len());
    for setting in settings {
        let versions = members.iter().flat_map(|it| STATES.map(|version| it.version(version)));
        let of_groups = versions.map(|it| it.and_then(|it| setting.value_in_group(it.group)));
        let written: Vec<Option<&Value>> =
            of_groups.chain([individual.and_then(|it| setting.value_in_individual(it))]).collect();
        let mut expanded: Vec<Option<Value>> = Vec::with_capacity(written.len());
        for value in &written {
            expanded.push(match value {
                Some(value) if expands && setting.takes_facts() => expander.value(value).ok()?,
                _ => None,
            });
        }
        let mut numbers = ValueNumbers::default();
        let values =
            expanded.iter().zip(&written).map(|(expanded, written)| expanded.as_ref().or(*written));
        // Where one state puts facts into values and the other does not, a node gets one of both.
        let values = values.chain(written.iter().copied().filter(|_| keeps));
        let numbers = values.map(|it| it.map(|it| numbers.number(it))).collect();
        equalities.push(Equality { setting: setting.into(), numbers });
    }
    Some(equalities)
}
