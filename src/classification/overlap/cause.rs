//! Which groups give nodes which values.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde_json::Value;
use smallvec::SmallVec;

use super::Setting;
use super::subject::Subject;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{EnvironmentName, ValueNumbers};

/// Settings that the same groups set alike and differently.
#[derive(Debug)]
pub(super) struct ConflictCause<'e> {
    pub(super) settings: Vec<Setting<'e>>,
    /// The groups that set them, parents first.
    pub(super) definers: Vec<Definer>,
    pub(super) subject: Subject,
}

/// A group that sets a value.
#[derive(Debug)]
pub(super) struct Definer {
    pub(super) group: GroupIndex,
    /// Groups with the same value have the same number; none where null removes the value.
    pub(super) value: Option<usize>,
    /// The groups that can match nodes and have this value from here.
    pub(super) bearers: Vec<GroupIndex>,
}

/// A group that sets a value, and which, by number.
type Definition = (GroupIndex, Option<usize>);

/// Returns everything of which there are different values, what has the fewest pairs first.
pub(super) fn causes<'e>(hierarchy: &'e Hierarchy) -> Vec<ConflictCause<'e>> {
    let mut definitions: HashMap<Setting<'_>, SmallVec<[(GroupIndex, &Value); 1]>> = HashMap::new();
    for index in hierarchy.indexes() {
        let group = hierarchy.group(index);
        for (setting, value) in Setting::of_group(group) {
            definitions.entry(setting).or_default().push((index, value));
        }
    }
    // Most are set by one group alone: only the others are brought into an order.
    let mut several: Vec<_> = definitions.into_iter().filter(|(_, it)| it.len() > 1).collect();
    several.sort_unstable_by_key(|(setting, _)| *setting);
    let mut alike: BTreeMap<Vec<Definition>, Vec<Setting<'_>>> = BTreeMap::new();
    for (setting, values) in several {
        let numbered = numbered(&values);
        if numbered.iter().any(|(_, number)| *number == Some(1)) {
            alike.entry(numbered).or_default().push(setting);
        }
    }
    let mut causes: Vec<ConflictCause<'e>> = alike
        .into_iter()
        .map(|(definitions, settings)| ConflictCause {
            settings,
            definers: definers(hierarchy, &definitions),
            subject: Subject::Values,
        })
        .collect();
    causes.extend([false, true].map(|trumps| environments(hierarchy, trumps)));
    let pairs = |cause: ConflictCause<'e>| (cause.pairs(), cause);
    let mut causes: Vec<_> = causes.into_iter().map(pairs).filter(|(it, _)| *it > 0).collect();
    causes.sort_by_key(|(pairs, _)| *pairs);
    causes.into_iter().map(|(_, cause)| cause).collect()
}

impl ConflictCause<'_> {
    /// Returns how many pairs of groups have different values.
    fn pairs(&self) -> usize {
        let mut of_values: HashMap<usize, usize> = HashMap::new();
        for definer in &self.definers {
            if let Some(value) = definer.value {
                *of_values.entry(value).or_default() += definer.bearers.len();
            }
        }
        let all: usize = of_values.values().sum();
        all.saturating_mul(all) - of_values.values().map(|it| it * it).sum::<usize>()
    }
}

/// Numbers different values from 0; null has no number.
fn numbered<'v>(values: &[(GroupIndex, &'v Value)]) -> Vec<Definition> {
    let mut numbers = ValueNumbers::default();
    let number = |&(group, value): &(GroupIndex, &'v Value)| {
        (group, (!value.is_null()).then(|| numbers.number(value)))
    };
    values.iter().map(number).collect()
}

/// Finds who has the values of whom.
fn definers(hierarchy: &Hierarchy, definitions: &[Definition]) -> Vec<Definer> {
    let bears =
        |index: &GroupIndex| *index != hierarchy.root() && hierarchy.group(*index).rule.is_some();
    let mut definers = Vec::with_capacity(definitions.len());
    for (at, (group, value)) in definitions.iter().enumerate() {
        let end = hierarchy.end(*group);
        let mut bearers = Vec::new();
        let mut from = *group;
        let mut rest = definitions.get(at + 1..).unwrap_or_default();
        while let Some((next, _)) = rest.first().filter(|(it, _)| *it < end) {
            bearers.extend(GroupIndex::between(from, *next).filter(bears));
            from = hierarchy.end(*next);
            // What is below another definer has its value. A chain of definers is not walked through from each.
            let below = rest.partition_point(|(it, _)| *it < from);
            rest = rest.get(below..).unwrap_or_default();
        }
        bearers.extend(GroupIndex::between(from, end).filter(bears));
        definers.push(Definer { group: *group, value: *value, bearers });
    }
    definers
}

/// Returns the environments of the groups that trump, or of those that do not.
fn environments(hierarchy: &Hierarchy, trumps: bool) -> ConflictCause<'_> {
    let mut numbers: BTreeMap<&EnvironmentName, usize> = BTreeMap::new();
    let mut definers = Vec::new();
    for index in hierarchy.indexes().skip(1) {
        let group = hierarchy.group(index);
        if group.rule.is_some() && group.environment_trumps == trumps {
            let count = numbers.len();
            let number = *numbers.entry(&group.environment).or_insert(count);
            definers.push(Definer { group: index, value: Some(number), bearers: vec![index] });
        }
    }
    ConflictCause { settings: vec![Setting::Environment], definers, subject: Subject::Environment }
}
