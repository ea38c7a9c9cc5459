//! What differs between two classifications of one node.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashSet;
use serde_json::Value;

use super::comparison::StateComparison;
use super::nodes::{Difference, GroupName, ProblemChange, ValueChange, ValueKind};
use super::trouble::Trouble;
use super::version::Result;
use crate::classification::{ClassSources, Explanation, Final, Outcome, SourcedValue};
use crate::model::{ClassName, Group, GroupId, Key, Node, VariableName, same};

/// Returns what differs between the two classifications of a node, in the order in which people
/// are shown it. The values that are shown have the facts of `shown` in them.
pub(super) fn differences(
    comparison: &StateComparison<'_>,
    shown: &Node,
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
    if let (Some(before), Some(after)) = (classified(old), classified(new)) {
        compare_values(before, after, &mut |differing| {
            found.push(differing.between([before, after], comparison, shown));
        });
    }
    found
}

impl<'f> DifferingKey<'f, '_> {
    fn key(&self) -> DifferenceKey<'f> {
        match self {
            Self::Environment => DifferenceKey::Environment,
            Self::ClassAdded(class) | Self::ClassRemoved(class) => DifferenceKey::Class(class),
            Self::Value { kind, class, name, .. } => DifferenceKey::Value(*kind, *class, name),
        }
    }

    /// Returns the difference between two classifications.
    fn between(
        &self,
        [before, after]: [&Final<'_>; 2],
        comparison: &StateComparison<'_>,
        shown: &Node,
    ) -> Difference {
        match self {
            Self::Environment => {
                let [old, new] = [before, after].map(|it| it.environment.to_string());
                Difference::Environment { old, new }
            }
            Self::ClassAdded(class) => Difference::ClassAdded((*class).to_owned()),
            Self::ClassRemoved(class) => Difference::ClassRemoved((*class).to_owned()),
            Self::Value { kind, class, name, values } => {
                let [old, new] =
                    values.map(|it| it.map(|it| comparison.share(&it.with_facts_of(shown))));
                let (class, name) = (class.map(str::to_owned), (*name).to_owned());
                Difference::Value(ValueChange { kind: *kind, class, name, old, new })
            }
        }
    }
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

/// One thing that two classifications give otherwise.
enum DifferingKey<'f, 'e> {
    Environment,
    ClassAdded(&'f str),
    ClassRemoved(&'f str),
    Value {
        kind: ValueKind,
        class: Option<&'f str>,
        name: &'f str,
        values: [FoundValue<'f, 'e>; 2],
    },
}

/// A value of a table, if it has it.
type FoundValue<'f, 'e> = Option<&'f SourcedValue<'e>>;

/// What a difference is about: a key of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DifferenceKey<'f> {
    Environment,
    Class(&'f str),
    Value(ValueKind, Option<&'f str>, &'f str),
}

fn compare_values<'f, 'e>(
    old: &'f Final<'e>,
    new: &'f Final<'e>,
    found: &mut dyn FnMut(DifferingKey<'f, 'e>),
) {
    if old.environment != new.environment {
        found(DifferingKey::Environment);
    }
    let only_in = |a: &'f Final<'e>, b: &'f Final<'e>| {
        let classes = a.classes.keys().filter(|it| !b.classes.contains_key(*it));
        classes.map(|it| it.as_str())
    };
    only_in(new, old).for_each(|class| found(DifferingKey::ClassAdded(class)));
    only_in(old, new).for_each(|class| found(DifferingKey::ClassRemoved(class)));
    for (kind, before, after) in [
        (ValueKind::Parameter, &old.classes, &new.classes),
        (ValueKind::ConfigData, &old.config_data, &new.config_data),
    ] {
        let classes: BTreeSet<&ClassName> = before.keys().chain(after.keys()).copied().collect();
        for class in classes {
            let (a, b) = (parameters(before, class), parameters(after, class));
            compare_tables(a, b, &mut |name: &'f Key, values| {
                let (class, name) = (Some(class.as_str()), name.as_str());
                found(DifferingKey::Value { kind, class, name, values });
            });
        }
    }
    let (a, b) = (Some(&old.variables), Some(&new.variables));
    compare_tables(a, b, &mut |name: &'f VariableName, values| {
        let (kind, name) = (ValueKind::Variable, name.as_str());
        found(DifferingKey::Value { kind, class: None, name, values });
    });
}

fn parameters<'f, 'e>(
    classes: &'f BTreeMap<&'e ClassName, ClassSources<'e>>,
    class: &ClassName,
) -> Option<&'f BTreeMap<&'e Key, SourcedValue<'e>>> {
    classes.get(class).map(|it| &it.parameters)
}

fn compare_tables<'f, 'e, K: Ord>(
    old: Option<&'f BTreeMap<&'e K, SourcedValue<'e>>>,
    new: Option<&'f BTreeMap<&'e K, SourcedValue<'e>>>,
    found: &mut dyn FnMut(&'f K, [FoundValue<'f, 'e>; 2]),
) {
    let names = [old, new].into_iter().flatten().flat_map(BTreeMap::keys);
    let names: BTreeSet<&K> = names.copied().collect();
    for name in names {
        let value = |table: Option<&'f BTreeMap<&'e K, SourcedValue<'e>>>| {
            table.and_then(|it| it.get(name))
        };
        let (before, after) = (value(old), value(new));
        let equal = match (before, after) {
            // The states share most groups.
            (Some(a), Some(b)) => is_shared(a, b) || same(&a.value, &b.value),
            (a, b) => a.is_none() && b.is_none(),
        };
        if !equal {
            found(name, [before, after]);
        }
    }
}

/// Returns whether two values are one.
fn is_shared(a: &SourcedValue<'_>, b: &SourcedValue<'_>) -> bool {
    let (a, b): (&Value, &Value) = (&a.value, &b.value);
    std::ptr::eq(a, b)
}

/// The differences between two states that are left between the first of them and a mixture of
/// both.
pub(super) struct Left<'x> {
    /// The groups that match in the mixture, by identity.
    groups: HashSet<GroupId>,
    trouble: Cow<'x, Trouble>,
    /// The keys whose values differ between the first state and the mixture; none if there are no
    /// values to compare.
    keys: Option<HashSet<DifferenceKey<'x>>>,
}

impl<'x> Left<'x> {
    /// Compares the first state with a mixture, whose groups stand under their identities.
    pub(super) fn of(base: &'x Result<'x>, mixture: &'x Result<'x>) -> Self {
        let mut keys = None;
        if let (Some(old), Some(new)) = (classified(base), classified(mixture)) {
            let keys = keys.insert(HashSet::new());
            compare_values(old, new, &mut |differing| {
                keys.insert(differing.key());
            });
        }
        let groups = matching(mixture).map(|it| it.id).collect();
        Self { groups, trouble: Cow::Owned(Trouble::of(mixture)), keys }
    }

    /// What is left where all changes are taken back: nothing.
    pub(super) fn nothing(
        base: &'x Result<'x>,
        trouble: &'x Trouble,
        identity: impl Fn(GroupId) -> GroupId,
    ) -> Self {
        let groups = matching(base).map(|it| identity(it.id)).collect();
        let keys = classified(base).map(|_| HashSet::new());
        Self { groups, trouble: Cow::Borrowed(trouble), keys }
    }

    /// Returns whether the mixture has taken a difference back.
    pub(super) fn is_back(
        &self,
        difference: &Difference,
        base: &Trouble,
        identity: impl Fn(GroupId) -> GroupId,
        name: impl Fn(GroupId) -> GroupName,
    ) -> bool {
        let known = self.trouble.error().is_none();
        let key = match difference {
            Difference::Entered(group) => {
                return known && !self.groups.contains(&identity(group.id));
            }
            Difference::Left(group) => return known && self.groups.contains(&identity(group.id)),
            Difference::Renamed { from, .. } => {
                let id = identity(from.id);
                return known && self.groups.contains(&id) && name(id) == *from;
            }
            Difference::Error(_) => return self.trouble.error() == base.error(),
            Difference::Conflict(_) => return known && self.trouble.conflict() == base.conflict(),
            Difference::Environment { .. } => DifferenceKey::Environment,
            Difference::ClassAdded(class) | Difference::ClassRemoved(class) => {
                DifferenceKey::Class(class)
            }
            Difference::Value(it) => {
                DifferenceKey::Value(it.kind, it.class.as_deref(), it.name.as_str())
            }
        };
        self.keys.as_ref().is_some_and(|it| !it.contains(&key))
    }
}

/// Returns the groups that match.
fn matching<'x>(result: &'x Result<'_>) -> impl Iterator<Item = &'x Group> {
    let explanation = result.as_ref().ok();
    let groups = explanation
        .map(|it| it.matches.iter().map(|matching| it.estate.hierarchy.group(matching.group)));
    groups.into_iter().flatten()
}

/// Returns the values that a node gets, if it gets any.
fn classified<'x, 'e>(result: &'x Result<'e>) -> Option<&'x Final<'e>> {
    match &result.as_ref().ok()?.outcome {
        Outcome::Classified(all) => Some(all),
        Outcome::Conflict(_) => None,
    }
}
