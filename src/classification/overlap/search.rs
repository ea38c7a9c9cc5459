//! The search through all pairs of groups that have different values.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::alarm::{AlarmReason, Member, join};
use super::cause::{ConflictCause, Definer, causes};
use super::evidence::Evidence;
use super::limits::SearchLimits;
use super::meeting::{Meeting, Meetings};
use super::outcome::{Acknowledged, Overlaps};
use super::partners::Partners;
use super::subject::{PairKey, Subject};
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::Node;
use crate::rule::Solver;

pub(super) fn search<'e>(
    estate: &'e Estate,
    evidence: &Evidence,
    acknowledged: Acknowledged<'_>,
    solver: Solver,
    limits: SearchLimits,
) -> Overlaps<'e> {
    let hierarchy = &estate.hierarchy;
    let causes = causes(hierarchy);
    let mut finder = Finder {
        hierarchy,
        evidence,
        meetings: Meetings::new(estate, solver, limits.steps),
        limits,
        visited: 0,
        settled: [Settled::new(hierarchy.len()), Settled::new(hierarchy.len())],
        found: HashMap::new(),
        ended_at: None,
        undecided: 0,
    };
    let acknowledges = |cause: &ConflictCause<'_>, definer: &Definer| {
        cause.settings.iter().any(|it| acknowledged(definer.group, *it))
    };
    for cause in &causes {
        finder.acknowledge(cause, &|definer| acknowledges(cause, definer));
    }
    let mut reasons = Vec::new();
    for cause in &causes {
        reasons.extend(finder.reasons(cause));
        if finder.ended_at.is_some() {
            break;
        }
    }
    let alarms = join(reasons, &finder.found, evidence);
    let steps = finder.steps();
    Overlaps { alarms, ended_at: finder.ended_at, undecided: finder.undecided, steps }
}

struct Finder<'e, 'k> {
    hierarchy: &'e Hierarchy,
    evidence: &'k Evidence,
    meetings: Meetings<'e>,
    limits: SearchLimits,
    /// How many pairs were visited.
    visited: u64,
    /// The pairs that are not asked about again, by subject: they do not conflict, it cannot be known,
    /// or their conflict is acknowledged.
    settled: [Settled; 2],
    found: HashMap<PairKey, Arc<Node>>,
    ended_at: Option<GroupIndex>,
    undecided: usize,
}

impl<'e> Finder<'e, '_> {
    /// Settles the pairs whose conflict is acknowledged where the one of two values is set that is
    /// further down.
    fn acknowledge(
        &mut self,
        cause: &ConflictCause<'e>,
        is_acknowledged: &dyn Fn(&Definer) -> bool,
    ) {
        let is_settling = |it: &Definer| it.value.is_some() && is_acknowledged(it);
        if !cause.definers.iter().any(is_settling) {
            return;
        }
        let mut partners = Partners::new(self.hierarchy, &cause.definers);
        for (at, definer) in cause.definers.iter().enumerate() {
            let others = partners.of(at, definer).iter();
            if !is_settling(definer) {
                continue;
            }
            let others = others.filter_map(|it| cause.definers.get(*it));
            for other in others.filter(|it| it.value != definer.value) {
                for group in &definer.bearers {
                    for partner in &other.bearers {
                        self.visited += 1;
                        self.settled(cause.subject).acknowledge(*group, *partner);
                    }
                }
            }
        }
    }

    fn steps(&self) -> u64 {
        self.visited + self.meetings.steps()
    }

    fn settled(&mut self, subject: Subject) -> &mut Settled {
        let [values, environments] = &mut self.settled;
        match subject {
            Subject::Values => values,
            Subject::Environment => environments,
        }
    }

    /// Finds the pairs that conflict, by the group above that sets the value which they override;
    /// there is none for values that are set beside each other.
    fn reasons(&mut self, cause: &ConflictCause<'e>) -> Vec<AlarmReason<'e>> {
        let mut reasons: BTreeMap<Option<GroupIndex>, AlarmReason<'e>> = BTreeMap::new();
        let mut partners = Partners::new(self.hierarchy, &cause.definers);
        for (at, definer) in cause.definers.iter().enumerate() {
            let others = partners.of(at, definer).iter();
            for other in others.filter_map(|it| cause.definers.get(*it)) {
                self.visited += 1;
                if definer.value.is_none() || other.value.is_none() || definer.value == other.value
                {
                    continue;
                }
                let above = self.hierarchy.is_ancestor(other.group, definer.group);
                let above = above.then_some(other.group);
                let reason = reasons.entry(above).or_insert_with(|| AlarmReason {
                    settings: cause.settings.clone(),
                    subject: cause.subject,
                    members: Vec::new(),
                    is_cut: false,
                });
                self.pairs(definer, other, reason);
                if self.ended_at.is_some() {
                    return reasons.into_values().collect();
                }
            }
        }
        reasons.into_values().collect()
    }

    /// Finds the pairs that conflict for the values of two groups.
    fn pairs(&mut self, definer: &Definer, other: &Definer, reason: &mut AlarmReason<'e>) {
        let mut count = 0;
        for group in &definer.bearers {
            for partner in &other.bearers {
                if !are_apart(self.hierarchy, *group, *partner) {
                    self.visited += 1;
                    continue;
                }
                if count == self.limits.pairs_of_values
                    || reason.members.len() >= self.limits.pairs_of_cause
                {
                    reason.is_cut = true;
                    return;
                }
                if self.steps() >= self.limits.steps || self.found.len() >= self.limits.pairs {
                    self.ended_at = Some(definer.group);
                    return;
                }
                if self.conflict(*group, *partner, reason.subject) {
                    reason.members.push(Member { group: *group, other: *partner });
                    count += 1;
                }
            }
        }
    }

    /// Returns whether two groups can conflict.
    fn conflict(&mut self, group: GroupIndex, other: GroupIndex, subject: Subject) -> bool {
        self.visited += 1;
        if self.settled(subject).contains(group, other) {
            return false;
        }
        let key = (group.min(other), group.max(other), subject);
        if self.found.contains_key(&key) {
            return true;
        }
        let met = match self.evidence.node(group, other, subject) {
            Some(node) => Meeting::On(Arc::clone(node)),
            None => self.meetings.find(key.0, key.1, subject),
        };
        match met {
            Meeting::On(node) => {
                self.found.insert(key, node);
                return true;
            }
            Meeting::Never => {}
            Meeting::Undecided => self.undecided += 1,
        }
        self.settled(subject).insert(group, other);
        false
    }
}

/// Returns whether neither of two groups is above the other, nor the same.
fn are_apart(hierarchy: &Hierarchy, one: GroupIndex, other: GroupIndex) -> bool {
    one != other && !hierarchy.is_ancestor(one, other) && !hierarchy.is_ancestor(other, one)
}

/// Of how many groups it is remembered which pairs do not conflict.
const REMEMBERED: usize = 16_384;

/// How many acknowledged pairs of other groups are kept.
const ACKNOWLEDGED: usize = 1_000_000;

/// A set of pairs.
struct Settled {
    /// A bit for each two of the first groups.
    bits: Vec<u64>,
    /// Acknowledged pairs with other groups: asked about once more, such a pair would be reported.
    acknowledged: HashSet<(GroupIndex, GroupIndex)>,
}

impl Settled {
    fn new(groups: usize) -> Self {
        let groups = groups.min(REMEMBERED);
        let bits = vec![0; (groups * groups.saturating_sub(1) / 2).div_ceil(64)];
        Self { bits, acknowledged: HashSet::new() }
    }

    fn bit(one: GroupIndex, other: GroupIndex) -> (usize, u64) {
        let (low, high) = (one.min(other).number(), one.max(other).number());
        let bit = high * high.saturating_sub(1) / 2 + low;
        (bit / 64, 1 << (bit % 64))
    }

    fn contains(&self, one: GroupIndex, other: GroupIndex) -> bool {
        let (word, bit) = Self::bit(one, other);
        match self.bits.get(word) {
            Some(word) => word & bit != 0,
            None => self.acknowledged.contains(&(one.min(other), one.max(other))),
        }
    }

    /// Notes that a pair does not conflict, if there is room.
    fn insert(&mut self, one: GroupIndex, other: GroupIndex) {
        let (word, bit) = Self::bit(one, other);
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
    }

    /// Notes that the conflict of a pair is acknowledged.
    fn acknowledge(&mut self, one: GroupIndex, other: GroupIndex) {
        self.insert(one, other);
        let is_remembered = Self::bit(one, other).0 < self.bits.len();
        if !is_remembered && self.acknowledged.len() < ACKNOWLEDGED {
            self.acknowledged.insert((one.min(other), one.max(other)));
        }
    }
}
