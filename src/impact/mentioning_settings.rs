//! The settings in whose values groups mention facts: what comes out of them follows from the node.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use serde_json::Value;

use crate::classification::{Setting, has_dollar};
use crate::model::{Group, GroupId, Individual, same};

/// What groups mention of facts, in either state, by the identity of the group. Most groups mention none.
#[derive(Debug, Default)]
pub(super) struct MentioningSettings<'a>(BTreeMap<GroupId, OfGroup<'a>>);

#[derive(Debug, Default)]
struct OfGroup<'a> {
    /// Those of its settings that have several values, of which one mentions facts.
    contested: BTreeSet<Setting<'a>>,
    mentions: Mentions,
}

/// How much mentions facts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mentions {
    /// How many bytes the texts have.
    pub(super) bytes: usize,
    /// How many facts they mention at the most.
    pub(super) facts: usize,
}

impl<'a> MentioningSettings<'a> {
    /// Reads the groups of both states, by identity. Where one state puts facts into values and the other does not, each
    /// value that mentions a fact stands against itself.
    pub(super) fn of(groups: &[(GroupId, &'a Group)], interpolation_differs: bool) -> Self {
        // Whether there are several values, by what has one that mentions facts.
        let mut mentioning: HashMap<Setting<'a>, (Option<&'a Value>, bool)> = HashMap::new();
        for (_, group) in groups {
            for (setting, _) in Setting::of_group(group).filter(mentions_facts) {
                mentioning.entry(setting).or_insert((None, interpolation_differs));
            }
        }
        if mentioning.is_empty() {
            return Self::default();
        }
        for (_, group) in groups {
            for (setting, value) in Setting::of_group(group) {
                if let Some((first, is_contested)) = mentioning.get_mut(&setting) {
                    let first = *first.get_or_insert(value);
                    *is_contested = *is_contested || !same(first, value);
                }
            }
        }
        let mut all: BTreeMap<GroupId, OfGroup<'a>> = BTreeMap::new();
        for (identity, group) in groups {
            for (setting, value) in Setting::of_group(group) {
                let Some((_, is_contested)) = mentioning.get(&setting) else { continue };
                let of_group = all.entry(*identity).or_default();
                of_group.contested.extend(is_contested.then_some(setting));
                of_group.mentions.add(value);
            }
        }
        Self(all)
    }

    /// Returns the settings of a group that have several values, of which one mentions facts.
    pub(super) fn contested(&self, identity: GroupId) -> impl Iterator<Item = Setting<'a>> {
        self.0.get(&identity).into_iter().flat_map(|it| it.contested.iter().copied())
    }

    /// Returns how much a group mentions in both states together.
    pub(super) fn mentions(&self, identity: GroupId) -> Mentions {
        self.0.get(&identity).map(|it| it.mentions).unwrap_or_default()
    }
}

impl Mentions {
    /// Returns how much is mentioned in what is set for one node alone.
    pub(super) fn of_individual(own: &Individual) -> Self {
        let mut mentions = Self::default();
        for (_, value) in Setting::of_individual(own).filter(mentions_facts) {
            mentions.add(value);
        }
        mentions
    }

    fn add(&mut self, value: &Value) {
        let text = value.to_string();
        self.bytes = self.bytes.saturating_add(text.len());
        self.facts += text.bytes().filter(|it| *it == b'$').count();
    }
}

fn mentions_facts((setting, value): &(Setting<'_>, &Value)) -> bool {
    setting.takes_facts() && has_dollar(value)
}
