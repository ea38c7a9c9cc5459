//! What differs between two classifications of one node.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::StateComparison;
use super::nodes::{Difference, GroupName, ProblemChange, ValueChange, ValueKind};
use super::trouble::Trouble;
use super::version::Result;
use crate::classification::{ClassSources, Explanation, Final, Outcome, SourcedValue};
use crate::model::{ClassName, GroupId, Key, same};

/// Returns what differs between the two classifications of a node, in the order in which people
/// are shown it.
pub(super) fn differences(
    comparison: &StateComparison<'_>,
    old: &Result<'_>,
    new: &Result<'_>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let troubles = [Trouble::of(old), Trouble::of(new)];
    if let (Ok(old), Ok(new)) = (old, new) {
        compare_groups(comparison, old, new, &mut found);
    }
    let [before, after] = &troubles;
    if before.error() != after.error() {
        let owned = |it: &Trouble| it.error().map(str::to_owned);
        found.push(Difference::Error(ProblemChange { old: owned(before), new: owned(after) }));
    }
    // What stands in for an answer that failed is unknown, so a conflict is not said to be gone.
    if before.conflict() != after.conflict() && after.error().is_none() {
        found.push(Difference::Conflict(Trouble::conflict_change(before, after)));
    }
    if let (Ok(old), Ok(new)) = (old, new)
        && let (Outcome::Classified(before), Outcome::Classified(after)) =
            (&old.outcome, &new.outcome)
    {
        compare_values(before, after, &mut found);
    }
    found
}

fn compare_groups(
    comparison: &StateComparison<'_>,
    old: &Explanation<'_>,
    new: &Explanation<'_>,
    found: &mut Vec<Difference>,
) {
    let members = |explanation: &Explanation<'_>| -> BTreeMap<GroupId, GroupName> {
        let hierarchy = &explanation.estate.hierarchy;
        let name = |it: &crate::classification::Match<'_>| {
            let group = hierarchy.group(it.group);
            let name = GroupName { name: group.name.to_string(), id: group.id };
            (comparison.identity(group.id), name)
        };
        explanation.matches.iter().map(name).collect()
    };
    let (before, mut entered) = (members(old), members(new));
    let mut left = Vec::new();
    for (id, name) in before {
        match entered.remove(&id) {
            Some(to) if to != name => found.push(Difference::Renamed { from: name, to }),
            Some(_) => {}
            None => left.push(name),
        }
    }
    found.extend(entered.into_values().map(Difference::Entered));
    found.extend(left.into_iter().map(Difference::Left));
}

fn compare_values(old: &Final<'_>, new: &Final<'_>, found: &mut Vec<Difference>) {
    if old.environment != new.environment {
        let (old, new) = (old.environment.to_string(), new.environment.to_string());
        found.push(Difference::Environment { old, new });
    }
    let only_in = |a: &Final<'_>, b: &Final<'_>| -> Vec<String> {
        let classes = a.classes.keys().filter(|it| !b.classes.contains_key(*it));
        classes.map(ToString::to_string).collect()
    };
    found.extend(only_in(new, old).into_iter().map(Difference::ClassAdded));
    found.extend(only_in(old, new).into_iter().map(Difference::ClassRemoved));
    for (kind, before, after) in [
        (ValueKind::Parameter, &old.classes, &new.classes),
        (ValueKind::ConfigData, &old.config_data, &new.config_data),
    ] {
        let classes: BTreeSet<&ClassName> = before.keys().chain(after.keys()).copied().collect();
        let none = BTreeMap::new();
        for class in classes {
            let (a, b) = (parameters(before, class), parameters(after, class));
            let class = Some(class.as_str());
            compare_tables(kind, class, a.unwrap_or(&none), b.unwrap_or(&none), found);
        }
    }
    compare_tables(ValueKind::Variable, None, &old.variables, &new.variables, found);
}

fn parameters<'f, 'e>(
    classes: &'f BTreeMap<&'e ClassName, ClassSources<'e>>,
    class: &ClassName,
) -> Option<&'f BTreeMap<&'e Key, SourcedValue<'e>>> {
    classes.get(class).map(|it| &it.parameters)
}

fn compare_tables<K: Ord + ToString>(
    kind: ValueKind,
    class: Option<&str>,
    old: &BTreeMap<&K, SourcedValue<'_>>,
    new: &BTreeMap<&K, SourcedValue<'_>>,
    found: &mut Vec<Difference>,
) {
    let names: BTreeSet<&K> = old.keys().chain(new.keys()).copied().collect();
    for name in names {
        let (before, after) = (old.get(name), new.get(name));
        let equal = match (before, after) {
            (Some(a), Some(b)) => same(&a.value, &b.value),
            (a, b) => a.is_none() && b.is_none(),
        };
        if !equal {
            found.push(Difference::Value(ValueChange {
                kind,
                class: class.map(str::to_owned),
                name: name.to_string(),
                old: before.map(|it| it.value.as_ref().clone()),
                new: after.map(|it| it.value.as_ref().clone()),
            }));
        }
    }
}

/// The differences between two states that are left between the first of them and a mixture of
/// both.
pub(super) struct Left {
    groups: BTreeMap<GroupId, GroupName>,
    trouble: Trouble,
    /// What differs between the values of the first state and the mixture; none if there are no
    /// values to compare.
    values: Option<Vec<Difference>>,
}

impl Left {
    /// Compares the first state with a mixture, whose groups stand under their identities.
    pub(super) fn of(
        base: &Result<'_>,
        mixture: &Result<'_>,
        name: impl Fn(GroupId) -> GroupName,
    ) -> Self {
        let groups = mixture.as_ref().map(|explanation| {
            let id = |it: &crate::classification::Match<'_>| {
                explanation.estate.hierarchy.group(it.group).id
            };
            explanation.matches.iter().map(id).map(|id| (id, name(id))).collect()
        });
        let values = match (base, mixture) {
            (Ok(base), Ok(mixture)) => match (&base.outcome, &mixture.outcome) {
                (Outcome::Classified(old), Outcome::Classified(new)) => {
                    let mut found = Vec::new();
                    compare_values(old, new, &mut found);
                    Some(found)
                }
                _ => None,
            },
            _ => None,
        };
        Self { groups: groups.unwrap_or_default(), trouble: Trouble::of(mixture), values }
    }

    /// Returns whether the mixture has taken a difference back.
    pub(super) fn is_back(
        &self,
        difference: &Difference,
        base: &Trouble,
        identity: impl Fn(GroupId) -> GroupId,
    ) -> bool {
        let known = self.trouble.error().is_none();
        match difference {
            Difference::Entered(group) => known && !self.groups.contains_key(&identity(group.id)),
            Difference::Left(group) => known && self.groups.contains_key(&identity(group.id)),
            Difference::Renamed { from, .. } => {
                known && self.groups.get(&identity(from.id)) == Some(from)
            }
            Difference::Error(_) => self.trouble.error() == base.error(),
            Difference::Conflict(_) => known && self.trouble.conflict() == base.conflict(),
            value => self
                .values
                .as_ref()
                .is_some_and(|left| !left.iter().any(|it| it.is_about_the_same(value))),
        }
    }
}

impl Difference {
    /// Returns whether two differences are about the same key of an answer.
    fn is_about_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Environment { .. }, Self::Environment { .. }) => true,
            (
                Self::ClassAdded(a) | Self::ClassRemoved(a),
                Self::ClassAdded(b) | Self::ClassRemoved(b),
            ) => a == b,
            (Self::Value(a), Self::Value(b)) => {
                (a.kind, &a.class, &a.name) == (b.kind, &b.class, &b.name)
            }
            _ => false,
        }
    }
}
