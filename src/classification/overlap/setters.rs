//! Which groups set what.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::{Budget, Setting, are_apart};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Comparison, Condition, EnvironmentName, Path, Segment, Test, same};

/// A group that sets something, and one that brings it to nodes: the same, or the nearest below
/// that has a rule, where the group itself has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Carrier {
    pub(super) setter: GroupIndex,
    pub(super) leaf: GroupIndex,
}

pub(super) struct Setters<'e> {
    pub(super) carriers: Vec<Carrier>,
    by_setting: HashMap<Setting<'e>, Vec<(Carrier, &'e Value)>>,
    by_carrier: BTreeMap<Carrier, Vec<(Setting<'e>, &'e Value)>>,
    /// Texts that values must equal for a node to be in a group.
    equal: BTreeMap<GroupIndex, BTreeMap<Vec<Segment>, &'e str>>,
}

impl<'e> Setters<'e> {
    pub(super) fn of(hierarchy: &'e Hierarchy) -> Self {
        let mut setters = Self {
            carriers: Vec::new(),
            by_setting: HashMap::new(),
            by_carrier: BTreeMap::new(),
            equal: BTreeMap::new(),
        };
        for setter in hierarchy.indexes().skip(1) {
            let group = hierarchy.group(setter);
            let parameters = group.classes.iter().flat_map(|(class, parameters)| {
                parameters.iter().map(move |(name, it)| (Setting::Parameter(class, name), it))
            });
            let data = group.config_data.iter().flat_map(|(class, keys)| {
                keys.iter().map(move |(key, it)| (Setting::ConfigData(class, key), it))
            });
            let variables = group.variables.iter().map(|(name, it)| (Setting::Variable(name), it));
            // Null removes a value, and who has none conflicts with nobody.
            let set: Vec<(Setting<'e>, &'e Value)> =
                parameters.chain(data).chain(variables).filter(|(_, it)| !it.is_null()).collect();
            for leaf in carriers(hierarchy, setter) {
                let carrier = Carrier { setter, leaf };
                setters.equal.entry(leaf).or_insert_with(|| equal(hierarchy, leaf));
                if set.is_empty() {
                    continue;
                }
                setters.carriers.push(carrier);
                for (setting, value) in &set {
                    setters.by_setting.entry(*setting).or_default().push((carrier, value));
                }
                setters.by_carrier.insert(carrier, set.clone());
            }
        }
        setters
    }

    /// Returns the carriers before this one that set something differently, with what that is;
    /// those that demand other texts are left out.
    pub(super) fn partners(
        &self,
        hierarchy: &Hierarchy,
        carrier: Carrier,
        budget: &mut Budget,
    ) -> BTreeMap<Carrier, BTreeSet<Setting<'e>>> {
        let mut partners: BTreeMap<Carrier, BTreeSet<Setting<'e>>> = BTreeMap::new();
        for (setting, value) in self.by_carrier.get(&carrier).into_iter().flatten() {
            let others = self.by_setting.get(setting).into_iter().flatten();
            for (other, theirs) in others.take_while(|(it, _)| it.setter < carrier.setter) {
                if !Budget::take(&mut budget.compared, 1) {
                    return partners;
                }
                if are_apart(hierarchy, other.setter, carrier.setter)
                    && are_apart(hierarchy, other.leaf, carrier.leaf)
                    && !same(value, theirs)
                    && self.may_meet(carrier.leaf, other.leaf)
                {
                    partners.entry(*other).or_default().insert(*setting);
                }
            }
        }
        partners
    }

    /// Returns the groups whose environment is not that of most, each with those of another that
    /// it could meet: where one of two trumps, there is no conflict.
    pub(super) fn environments(
        &self,
        hierarchy: &'e Hierarchy,
        budget: &mut Budget,
    ) -> Vec<(Carrier, Vec<Carrier>)> {
        let mut by_environment: BTreeMap<(bool, &EnvironmentName), Vec<GroupIndex>> =
            BTreeMap::new();
        for index in hierarchy.indexes().skip(1) {
            let group = hierarchy.group(index);
            if group.rule.is_some() {
                let key = (group.environment_trumps, &group.environment);
                by_environment.entry(key).or_default().push(index);
            }
        }
        let mut found = Vec::new();
        for trumps in [false, true] {
            let mut all: Vec<&Vec<GroupIndex>> = by_environment
                .iter()
                .filter(|(key, _)| key.0 == trumps)
                .map(|(_, it)| it)
                .collect();
            all.sort_by_key(|it| it.len());
            for (at, few) in all.iter().enumerate() {
                for group in *few {
                    let larger = all.iter().skip(at + 1).flat_map(|it| it.iter());
                    let partners: Vec<Carrier> = larger
                        .take_while(|_| Budget::take(&mut budget.compared, 1))
                        .filter(|it| {
                            are_apart(hierarchy, **it, *group) && self.may_meet(**it, *group)
                        })
                        .map(|it| Carrier { setter: *it, leaf: *it })
                        .collect();
                    found.push((Carrier { setter: *group, leaf: *group }, partners));
                }
            }
        }
        found
    }

    /// Returns whether no value would have to equal two texts: most pairs end here.
    fn may_meet(&self, one: GroupIndex, other: GroupIndex) -> bool {
        let (Some(one), Some(other)) = (self.equal.get(&one), self.equal.get(&other)) else {
            return true;
        };
        one.iter().all(|(way, text)| other.get(way).is_none_or(|it| it == text))
    }
}

/// Returns the groups that bring the values of a group to nodes.
fn carriers(hierarchy: &Hierarchy, setter: GroupIndex) -> Vec<GroupIndex> {
    if hierarchy.group(setter).rule.is_some() {
        return vec![setter];
    }
    hierarchy.children(setter).flat_map(|child| carriers(hierarchy, child)).collect()
}

fn equal(hierarchy: &Hierarchy, leaf: GroupIndex) -> BTreeMap<Vec<Segment>, &str> {
    let mut equal = BTreeMap::new();
    for group in hierarchy.lineage(leaf) {
        if let Some(rule) = hierarchy.group(group).rule.as_deref() {
            collect(rule, &mut equal);
        }
    }
    equal
}

fn collect<'e>(condition: &'e Condition, equal: &mut BTreeMap<Vec<Segment>, &'e str>) {
    match condition {
        Condition::And(terms) => terms.iter().for_each(|it| collect(it, equal)),
        Condition::Test(Test {
            path: Path::Segments(way),
            comparison: Comparison::Equals(text),
        }) => {
            equal.insert(way.to_vec(), text);
        }
        _ => {}
    }
}
