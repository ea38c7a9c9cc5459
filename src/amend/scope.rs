//! Where somebody may write.

use std::collections::{BTreeMap, BTreeSet};

use super::document::rule_and_pins;
use super::refusal::Refusal;
use crate::hierarchy::Hierarchy;
use crate::model::{Group, GroupId};

/// The groups below which somebody may write, themselves included, and the keys that they may set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The groups.
    pub groups: BTreeSet<GroupId>,
    /// The keys of groups, such as `classes`; none is all. Who may set some keys alone makes,
    /// removes and moves no groups.
    pub keys: Option<BTreeSet<String>>,
}

impl Scope {
    /// Returns whether a group lies below the groups of the scope, or is one of them.
    pub(super) fn has(&self, hierarchy: &Hierarchy, group: GroupId) -> bool {
        hierarchy.find(group).is_some_and(|index| {
            hierarchy.lineage(index).any(|it| self.groups.contains(&hierarchy.group(it).id))
        })
    }

    /// Checks that a new set of groups differs from the old one only where it may.
    pub(super) fn check(&self, old: &Hierarchy, new: &[Group]) -> Result<(), Refusal> {
        let ids: BTreeMap<GroupId, &Group> = new.iter().map(|group| (group.id, group)).collect();
        for before in old.groups() {
            match ids.get(&before.id) {
                None => self.whole(old, before, before.id, "remove")?,
                Some(after) if *after != before => self.edited(old, before, after)?,
                Some(_) => {}
            }
        }
        for group in new.iter().filter(|group| old.find(group.id).is_none()) {
            // The parent may be a new group itself, which has been looked at then.
            if old.find(group.parent).is_some() || !ids.contains_key(&group.parent) {
                self.whole(old, group, group.parent, "make")?;
            }
        }
        Ok(())
    }

    fn whole(
        &self,
        old: &Hierarchy,
        group: &Group,
        place: GroupId,
        verb: &str,
    ) -> Result<(), Refusal> {
        if self.keys.is_none() && self.has(old, place) {
            return Ok(());
        }
        Err(denied(&format!("{verb} the group \"{}\" there", group.name), group.id))
    }

    fn edited(&self, old: &Hierarchy, before: &Group, after: &Group) -> Result<(), Refusal> {
        let what = |key: &str| format!("edit `{key}` of the group \"{}\"", before.name);
        let keys = changed_keys(before, after);
        let first = keys.first().copied().unwrap_or("name");
        if !self.has(old, before.id) {
            return Err(denied(&what(first), before.id));
        }
        if before.parent != after.parent && !self.has(old, after.parent) {
            return Err(denied(&format!("move the group \"{}\" there", before.name), before.id));
        }
        let Some(allowed) = &self.keys else { return Ok(()) };
        match keys.iter().find(|key| !allowed.contains(**key)) {
            // Who may set the rule may pin.
            Some(&"pinned") if allowed.contains("rule") => Ok(()),
            Some(key) => Err(denied(&what(key), before.id)),
            None => Ok(()),
        }
    }
}

fn denied(what: &str, group: GroupId) -> Refusal {
    Refusal::denied(what, group.to_string())
}

/// Returns the keys in which two forms of a group differ, as files name them.
pub(super) fn changed_keys(before: &Group, after: &Group) -> Vec<&'static str> {
    let (rule_before, pins_before) = rule_and_pins(before);
    let (rule_after, pins_after) = rule_and_pins(after);
    let differs = [
        ("name", before.name != after.name),
        ("description", before.description != after.description),
        ("parent", before.parent != after.parent),
        ("environment", before.environment != after.environment),
        ("environment_trumps", before.environment_trumps != after.environment_trumps),
        ("rule", rule_before != rule_after),
        ("pinned", pins_before != pins_after),
        ("classes", before.classes != after.classes),
        ("config_data", before.config_data != after.config_data),
        ("variables", before.variables != after.variables),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}
