//! The groups of one state that are not in the other, to find those again that were renamed.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::hierarchy::{GroupKey, group_to_value};
use crate::model::{Group, fingerprint};

/// Groups that are gone, by what a new one that stands for one of them has in common with it.
pub(super) struct GoneGroups<'g> {
    groups: Vec<&'g Group>,
    left: BTreeSet<usize>,
    of_name: HashMap<&'g str, BTreeSet<usize>>,
    /// By the digest of what they say: groups that say the same have one.
    of_digest: HashMap<u64, BTreeSet<usize>>,
}

impl<'g> GoneGroups<'g> {
    pub(super) fn of(groups: impl Iterator<Item = &'g Group>) -> Self {
        let groups: Vec<&Group> = groups.collect();
        let mut of_name: HashMap<&str, BTreeSet<usize>> = HashMap::new();
        let mut of_digest: HashMap<u64, BTreeSet<usize>> = HashMap::new();
        for (at, group) in groups.iter().enumerate() {
            of_name.entry(group.name.as_str()).or_default().insert(at);
            of_digest.entry(digest(group)).or_default().insert(at);
        }
        Self { left: (0..groups.len()).collect(), groups, of_name, of_digest }
    }

    /// Takes the group that a new one was: one of the same name elsewhere, or else one that says the same under another
    /// name. Its parent may have been renamed as well.
    pub(super) fn take_former(&mut self, new: &Group) -> Option<&'g Group> {
        // Two groups that say nothing are no more the same than any other two.
        let says_something = || new.rule.is_some() || !new.classes.is_empty();
        let of_name = self.of_name.get(new.name.as_str()).and_then(BTreeSet::first).copied();
        let former = of_name.or_else(|| {
            let alike = self.of_digest.get(&digest(new)).filter(|_| says_something())?;
            let says_the_same = |at: &&usize| {
                let differs = |old: &Group| {
                    old.rule != new.rule || SAID.iter().any(|it| it.differs(old, new))
                };
                self.groups.get(**at).is_some_and(|old| !differs(old))
            };
            alike.iter().find(says_the_same).copied()
        })?;
        let group = *self.groups.get(former)?;
        self.left.remove(&former);
        for places in
            [self.of_name.get_mut(group.name.as_str()), self.of_digest.get_mut(&digest(group))]
        {
            places.map(|it| it.remove(&former));
        }
        Some(group)
    }

    /// Returns those that no new group was found for, in order.
    pub(super) fn left(&self) -> impl Iterator<Item = &'g Group> {
        self.left.iter().filter_map(|at| self.groups.get(*at).copied())
    }
}

/// What a group says beside its rule, wherever it stands and whatever it is called.
const SAID: [GroupKey; 4] =
    [GroupKey::EnvironmentTrumps, GroupKey::Classes, GroupKey::Variables, GroupKey::ConfigData];

/// Returns a number that is the same for groups that say the same.
fn digest(group: &Group) -> u64 {
    let mut fields = group_to_value(group);
    if let Some(fields) = fields.as_object_mut() {
        let said = ["rule", "environment_trumps", "classes", "variables", "config_data"];
        fields.retain(|key, _| said.contains(&&**key));
    }
    fingerprint(&fields)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::hierarchy::root_group;
    use crate::model::GroupId;
    use crate::rule;

    /// Looks at each group that is gone.
    fn former(gone: &[&Group], new: &Group) -> Option<usize> {
        let says_the_same = |old: &&Group| {
            old.rule == new.rule
                && old.environment_trumps == new.environment_trumps
                && old.classes == new.classes
                && old.variables == new.variables
                && old.config_data == new.config_data
        };
        let same_name = gone.iter().position(|old| old.name == new.name);
        let says_something = new.rule.is_some() || !new.classes.is_empty();
        same_name.or_else(|| gone.iter().position(says_the_same).filter(|_| says_something))
    }

    fn random(chance: &mut fastrand::Rng, number: usize) -> Group {
        let mut group = root_group().unwrap();
        group.id = format!("00000000-0000-4000-9000-{number:012}").parse::<GroupId>().unwrap();
        group.name = format!("g{}", chance.u8(..6)).parse().unwrap();
        let rules = [json!(["=", "name", "n"]), json!(["=", ["fact", "a"], "1"])];
        let rule = chance.usize(..3);
        group.rule = rules.get(rule).map(|it| rule::read(it).unwrap().into());
        group.environment_trumps = chance.u8(..4) == 0;
        // Two spellings of one object are equal.
        let values = [json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), json!(1), json!(1.0)];
        let values = (0..chance.usize(..2)).map(|_| values[chance.usize(..4)].clone());
        let variables = values.map(|it| ("v".parse().unwrap(), it));
        group.variables = Arc::new(variables.collect());
        let classes =
            (0..chance.usize(..2)).map(|_| ("c".parse().unwrap(), [].into_iter().collect()));
        group.classes = Arc::new(classes.collect());
        group
    }

    #[test]
    fn the_group_that_a_new_one_was_is_found_as_by_looking_at_each() {
        let mut chance = fastrand::Rng::with_seed(29);
        let (mut found, mut by_name) = (0, 0);
        for _ in 0..2_000 {
            let groups: Vec<Group> =
                (0..chance.usize(1..12)).map(|it| random(&mut chance, it)).collect();
            let mut all: Vec<&Group> = groups.iter().collect();
            let mut gone = GoneGroups::of(groups.iter());
            for number in 100..chance.usize(101..112) {
                let new = random(&mut chance, number);
                let expected = former(&all, &new).map(|at| all.remove(at));
                let taken = gone.take_former(&new);
                assert_eq!(taken.map(|it| it.id), expected.map(|it| it.id));
                found += usize::from(taken.is_some());
                by_name += usize::from(taken.is_some_and(|it| it.name == new.name));
            }
            assert!(gone.left().map(|it| it.id).eq(all.iter().map(|it| it.id)));
        }
        assert!(by_name > 1_000 && found > by_name + 300, "{found} {by_name}");
    }
}
