//! Pairs of groups that conflict, joined by cause.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::evidence::{Evidence, Rank};
use super::setting::Setting;
use super::subject::{PairKey, Subject, differences};
use crate::classification::{Outcome, classify};
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{Node, same};

/// Two groups that conflict on a node that can exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The group whose value is set further down in the repository's order: below the other
    /// value, or behind it.
    pub group: GroupIndex,
    /// The other.
    pub other: GroupIndex,
    /// What known nodes say for it.
    pub rank: Rank,
    pub(super) subject: Subject,
    pub(super) witness: Arc<Node>,
}

/// Pairs of groups that conflict for one reason: groups that set something differently, or a value
/// that some groups override and others inherit.
#[derive(Clone, Debug)]
pub struct Alarm<'e> {
    /// What they differ in; single pairs may differ in more.
    pub settings: Vec<Setting<'e>>,
    /// The pairs, what known nodes show first.
    pub pairs: Vec<Pair>,
    /// Whether there may be more pairs: the search of each cause has a limit.
    pub is_cut: bool,
}

/// A pair with what was seen on its node.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap<'e> {
    /// What they differ in.
    pub settings: Vec<Differing<'e>>,
    /// A node that both match, and that gets the conflict.
    pub witness: Arc<Node>,
}

/// A setting in which two groups differ, and who sets it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Differing<'e> {
    /// The setting.
    pub setting: Setting<'e>,
    /// The group that sets the value of the pair's group: itself, or an ancestor.
    pub by: GroupIndex,
    /// The group that sets the value of the other.
    pub other_by: GroupIndex,
}

impl<'e> Alarm<'e> {
    /// Classifies the node of a pair and returns what is seen; none if it is not a conflict
    /// between the two.
    pub fn overlap(&self, estate: &'e Estate, pair: &Pair) -> Option<Overlap<'e>> {
        let explanation = classify(estate, &pair.witness).ok()?;
        let Outcome::Conflict(conflicts) = &explanation.outcome else { return None };
        let mut settings: Vec<Differing<'e>> = differing(&estate.hierarchy, pair)
            .into_iter()
            .filter(|it| differences(conflicts, it.setting, pair.group, pair.other))
            .collect();
        settings.sort_by_key(|it| !self.settings.contains(&it.setting));
        let seen = !settings.is_empty();
        seen.then(|| Overlap { settings, witness: Arc::clone(&pair.witness) })
    }
}

/// Returns what the two groups of a pair differ in, whatever the node.
fn differing<'e>(hierarchy: &'e Hierarchy, pair: &Pair) -> Vec<Differing<'e>> {
    let differing = |setting, by, other_by| Differing { setting, by, other_by };
    if pair.subject == Subject::Environment {
        return vec![differing(Setting::Environment, pair.group, pair.other)];
    }
    let (mine, theirs) = (hierarchy.inherited(pair.group), hierarchy.inherited(pair.other));
    let mut found = Vec::new();
    for (class, it) in &mine.classes {
        for (name, mine) in &it.parameters {
            let theirs = theirs.classes.get(class).and_then(|it| it.parameters.get(name));
            if let Some(theirs) = theirs.filter(|it| !same(it.value, mine.value)) {
                found.push(differing(Setting::Parameter(class, name), mine.source, theirs.source));
            }
        }
    }
    for (name, mine) in &mine.variables {
        if let Some(theirs) = theirs.variables.get(name).filter(|it| !same(it.value, mine.value)) {
            found.push(differing(Setting::Variable(name), mine.source, theirs.source));
        }
    }
    for (class, it) in &mine.config_data {
        for (key, mine) in &it.parameters {
            let theirs = theirs.config_data.get(class).and_then(|it| it.parameters.get(key));
            if let Some(theirs) = theirs.filter(|it| !same(it.value, mine.value)) {
                found.push(differing(Setting::ConfigData(class, key), mine.source, theirs.source));
            }
        }
    }
    found
}

/// Two groups of a cause: the one with the value that is set further down, and the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) group: GroupIndex,
    pub(super) other: GroupIndex,
}

/// The pairs that conflict for one reason.
#[derive(Debug)]
pub(super) struct AlarmReason<'e> {
    pub(super) settings: Vec<Setting<'e>>,
    pub(super) subject: Subject,
    pub(super) members: Vec<Member>,
    pub(super) is_cut: bool,
}

impl AlarmReason<'_> {
    fn key(&self, member: Member) -> PairKey {
        let Member { group, other } = member;
        (group.min(other), group.max(other), self.subject)
    }
}

/// Makes alarms of reasons: every pair is in one, that with the most pairs.
pub(super) fn join<'e>(
    mut reasons: Vec<AlarmReason<'e>>,
    witnesses: &HashMap<PairKey, Arc<Node>>,
    evidence: &Evidence,
) -> Vec<Alarm<'e>> {
    reasons.sort_by_key(|it| std::cmp::Reverse(it.members.len()));
    let mut assigned: HashSet<PairKey> = HashSet::new();
    let mut alarms = Vec::new();
    for reason in reasons {
        let mut pairs: Vec<Pair> = reason
            .members
            .iter()
            .filter(|it| assigned.insert(reason.key(**it)))
            .filter_map(|member| {
                let Member { group, other } = *member;
                let subject = reason.subject;
                let witness = Arc::clone(witnesses.get(&reason.key(*member))?);
                Some(Pair {
                    group,
                    other,
                    rank: evidence.rank(group, other, subject),
                    subject,
                    witness,
                })
            })
            .collect();
        pairs.sort_by_key(|it| (it.rank, it.group, it.other));
        if !pairs.is_empty() {
            alarms.push(Alarm { settings: reason.settings, pairs, is_cut: reason.is_cut });
        }
    }
    alarms.sort_by_key(|it| it.pairs.first().map(|it| (it.rank, it.group, it.other)));
    alarms
}
