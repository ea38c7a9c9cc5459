//! Which values of one name are equal for a node: what taking back changes does to its values follows from that, and not
//! from the values themselves.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde::Serialize;
use serde_json::Value;

use super::family::FamilyMember;
use super::mentioning_settings::{MentioningSettings, Mentions};
use super::version::STATES;
use crate::classification::{EXPANDED_BYTES, Expander, Setting, WithheldFacts, has_dollar};
use crate::model::{Individual, Interpolation, Map, Node, ValueNumbers, same};

/// The values that a node could get, as far as it matters which they are: equal for nodes of one sort.
#[derive(Serialize)]
pub(super) struct Equalities<'a> {
    /// What is set for the node alone, in both states alike. It counts whatever groups set, so it differs only where one
    /// state puts facts into it: then whether that makes another value.
    own: Vec<(Setting<'a>, bool)>,
    /// Of each setting with several values, of which one mentions facts: the values that groups set, as numbers that are
    /// equal for equal values.
    contested: Vec<(Setting<'a>, Vec<NumberedValue>)>,
}

/// The value that a group sets in one state.
#[derive(Serialize)]
struct NumberedValue {
    /// The place of the group and the state.
    place: usize,
    expanded: Option<usize>,
    written: Option<usize>,
}

/// Where the values of a node come from.
pub(super) struct ValueOrigins<'s, 'a> {
    pub(super) members: &'s [FamilyMember<'a>],
    pub(super) mentioning: &'s MentioningSettings<'a>,
    /// What is set for the node alone, in both states alike.
    pub(super) own: Option<&'a Individual>,
    pub(super) node: &'s Node,
    pub(super) interpolations: [Interpolation; 2],
}

impl<'a> ValueOrigins<'_, 'a> {
    /// Returns which values are equal; `None` if facts may not fit into all values, so that an answer could fail.
    pub(super) fn equalities(&self) -> Option<Equalities<'a>> {
        let [expands, keeps] =
            [Interpolation::On, Interpolation::Off].map(|it| self.interpolations.contains(&it));
        if expands && !self.surely_fits() && !self.fits() {
            return None;
        }
        let mut expander = self.expander();
        let mut own = Vec::new();
        for (setting, value) in self.own.into_iter().flat_map(Setting::of_individual) {
            let is_expanded = match expands && keeps && setting.takes_facts() {
                true => expander.value(value).ok()?.is_some_and(|it| !same(&it, value)),
                false => false,
            };
            own.push((setting, is_expanded));
        }
        let mut contested = Vec::new();
        for (setting, values) in self.contested() {
            contested.push((setting, numbered(&values, &mut expander, expands, keeps)?));
        }
        Some(Equalities { own, contested })
    }

    /// Returns the values of each setting that has several, with the places of the groups and states that set them.
    fn contested(&self) -> BTreeMap<Setting<'a>, Vec<(usize, &'a Value)>> {
        let mut contested: BTreeMap<Setting<'a>, Vec<(usize, &'a Value)>> = BTreeMap::new();
        for (at, member) in self.members.iter().enumerate() {
            for setting in self.mentioning.contested(member.id) {
                if self.own.is_some_and(|it| setting.value_in_individual(it).is_some()) {
                    continue;
                }
                for (state, version) in STATES.into_iter().enumerate() {
                    let group = member.version(version).map(|it| it.group);
                    if let Some(value) = group.and_then(|it| setting.value_in_group(it)) {
                        contested.entry(setting).or_default().push((2 * at + state, value));
                    }
                }
            }
        }
        contested
    }

    fn expander(&self) -> Expander<'_> {
        Expander::new(self.node, WithheldFacts::Mark)
    }

    /// Returns whether all values together are short enough for one answer, however often each fact stands in them.
    fn surely_fits(&self) -> bool {
        let of_groups = self.members.iter().map(|it| self.mentioning.mentions(it.id));
        let own = self.own.map(Mentions::of_individual).unwrap_or_default();
        let all = of_groups.fold(own, |all, it| Mentions {
            bytes: all.bytes.saturating_add(it.bytes),
            facts: all.facts.saturating_add(it.facts),
        });
        // A list or an object is printed with more signs than its JSON has.
        let length = |map: &Map<String, Value>| {
            map.values().map(|it| 4 * it.to_string().len()).max().unwrap_or_default()
        };
        let longest = length(&self.node.fact).max(length(&self.node.trusted));
        all.facts.saturating_mul(longest).saturating_add(all.bytes) < EXPANDED_BYTES
    }

    /// Returns whether all values together are short enough for one answer: then those are that are in one.
    fn fits(&self) -> bool {
        let mut expander = self.expander();
        let versions = self.members.iter().flat_map(|it| STATES.map(|version| it.version(version)));
        let groups = versions.flatten().flat_map(|it| Setting::of_group(it.group));
        let own = self.own.into_iter().flat_map(Setting::of_individual);
        // The same value of the same name is in an answer once.
        let mut known: HashMap<Setting<'_>, ValueNumbers<'_>> = HashMap::new();
        for (setting, value) in groups.chain(own).filter(|(it, _)| it.takes_facts()) {
            if has_dollar(value) {
                let known = known.entry(setting).or_default();
                let count = known.count();
                if known.number(value) == count && expander.value(value).is_err() {
                    return false;
                }
            }
        }
        true
    }
}

/// Numbers the values of one setting; `None` if facts do not fit into them.
fn numbered(
    values: &[(usize, &Value)],
    expander: &mut Expander<'_>,
    expands: bool,
    keeps: bool,
) -> Option<Vec<NumberedValue>> {
    // What is written alike is expanded once.
    let mut alike = ValueNumbers::default();
    let mut different: Vec<&Value> = Vec::new();
    let places: Vec<(usize, usize)> = values
        .iter()
        .map(|(place, value)| {
            let number = alike.number(value);
            different.extend((number == different.len()).then_some(*value));
            (*place, number)
        })
        .collect();
    let mut expanded: Vec<Option<Value>> = Vec::with_capacity(different.len());
    for value in &different {
        expanded.push(if expands { expander.value(value).ok()? } else { None });
    }
    let mut numbers = ValueNumbers::default();
    let of_expanded =
        expanded.iter().zip(&different).map(|(it, written)| it.as_ref().unwrap_or(written));
    let of_expanded: Vec<usize> = of_expanded.map(|it| numbers.number(it)).collect();
    let of_written: Vec<usize> = different.iter().map(|it| numbers.number(it)).collect();
    let number = |(place, at): (usize, usize)| NumberedValue {
        place,
        expanded: of_expanded.get(at).copied(),
        // Where one state puts facts into values and the other does not, a node gets one of both.
        written: of_written.get(at).copied().filter(|_| keeps),
    };
    Some(places.into_iter().map(number).collect())
}
