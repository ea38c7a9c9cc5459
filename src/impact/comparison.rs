//! Two states of a repository, prepared for comparing nodes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap as FastMap;
use serde_json::Value;

use super::Side;
use super::digest::TextDigest;
use super::groups::{GroupChange, How, group_changes};
use super::mentioning_settings::MentioningSettings;
use super::node_files::{NodeFileChange, node_file_changes};
use super::nodes::{Causes, ChangeRef, Standing};
use super::shared_value::SharedValue;
use super::version::StateVersion;
use crate::classification::ClassificationError;
use crate::hierarchy::{GroupIndex, GroupKey, Hierarchy};
use crate::masking::Masks;
use crate::model::{Group, GroupId, Interpolation, Node};
use crate::rule::evaluate;
use crate::snapshot::Index;

/// The causes of the differences of nodes, by what they follow from.
#[derive(Debug, Default)]
struct KnownCauses {
    by_key: FastMap<TextDigest, Arc<[Causes]>>,
    /// About how many bytes they take.
    size: usize,
}

/// The standing in the head of nodes that match the same groups.
#[derive(Debug, Default)]
struct KnownStandings {
    by_groups: FastMap<Box<[GroupIndex]>, Standing>,
    /// About how many bytes they take.
    size: usize,
}

/// The values that differ, each once.
#[derive(Debug, Default)]
struct SharedValues {
    by_digest: FastMap<TextDigest, SharedValue>,
    /// About how many bytes they take.
    size: usize,
}

/// About how many bytes of causes are remembered; those of further sorts of nodes are found out for each node.
const CAUSES_BYTES: usize = 16 << 20;

/// About how many bytes of standings are remembered.
const STANDINGS_BYTES: usize = 4 << 20;

/// Two states, prepared for comparing nodes.
///
/// A renamed group is one group in both: its *identity* is the id that it has in the head.
#[derive(Debug)]
pub struct StateComparison<'a> {
    base: Side<'a>,
    head: Side<'a>,
    /// Finds the groups that match, of either state.
    indexes: [Index; 2],
    changes: Vec<GroupChange>,
    node_files: Vec<NodeFileChange>,
    /// Where each changed group stands among the changes, by its identity.
    by_id: HashMap<GroupId, usize>,
    /// The identity of each renamed group, by its old id, and the other way round.
    renamed: BTreeMap<GroupId, GroupId>,
    former: BTreeMap<GroupId, GroupId>,
    /// The groups to ask first in either state: a node that none of them matches gets the same.
    watched: [Vec<GroupIndex>; 2],
    /// The groups that can match in a mixture of the states though they match in neither, by
    /// identity.
    entangled: Vec<GroupId>,
    /// The changes of groups that cannot be taken back without others.
    built_upon: HashSet<usize>,
    known: Mutex<KnownCauses>,
    /// The values that differ for some node.
    shared: Mutex<SharedValues>,
    standings: Mutex<KnownStandings>,
    /// The settings in whose values groups mention facts.
    mentioning: MentioningSettings<'a>,
    /// Whether the answer is not needed any more.
    is_stopped: Arc<AtomicBool>,
    /// The facts that are not shown in values; none if all are.
    masks: Option<Masks>,
}

/// The groups of a state that match a node, parents first.
pub(super) type MatchResult = Result<Vec<GroupIndex>, ClassificationError>;

impl<'a> StateComparison<'a> {
    /// Prepares to compare two states.
    pub fn new(base: Side<'a>, head: Side<'a>) -> Self {
        let indexes = [base, head].map(|side| Index::new(&side.estate.hierarchy));
        Self::with_indexes(base, head, indexes)
    }

    /// Prepares to compare two states whose rules are compiled.
    pub fn with_indexes(base: Side<'a>, head: Side<'a>, indexes: [Index; 2]) -> Self {
        let changes = group_changes(base, head);
        let mut by_id = HashMap::new();
        let mut renamed = BTreeMap::new();
        let mut ids: Vec<GroupId> = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            by_id.insert(change.id, index);
            ids.push(change.id);
            if let How::Renamed { from, .. } = &change.how {
                ids.push(*from);
                renamed.insert(*from, change.id);
            }
        }
        let watched = [base, head].map(|side| {
            let hierarchy = &side.estate.hierarchy;
            let mut changed: Vec<GroupIndex> =
                ids.iter().filter_map(|id| hierarchy.find(*id)).collect();
            changed.sort_unstable();
            changed.dedup();
            let changed = outermost(hierarchy, &changed).into_iter();
            changed.flat_map(|index| frontier(hierarchy, index)).collect()
        });
        let former = renamed.iter().map(|(old, new)| (*new, *old)).collect();
        let node_files = node_file_changes(base, head);
        let mut comparison = Self {
            base,
            head,
            indexes,
            changes,
            node_files,
            by_id,
            renamed,
            former,
            watched,
            entangled: Vec::new(),
            built_upon: HashSet::new(),
            known: Mutex::default(),
            shared: Mutex::default(),
            standings: Mutex::default(),
            mentioning: MentioningSettings::default(),
            is_stopped: Arc::default(),
            masks: None,
        };
        comparison.mentioning = comparison.find_mentioning();
        comparison.entangled = comparison.find_entangled();
        comparison.built_upon = comparison.find_built_upon();
        comparison
    }

    /// Masks facts in the values that differ. They are compared as they are: a change from one secret to another is a
    /// change.
    #[must_use]
    pub fn masked_by(mut self, masks: Masks) -> Self {
        self.masks = Some(masks);
        self
    }

    /// Returns a node with the facts that values show.
    pub(super) fn shown<'n>(&self, node: &'n Node) -> Cow<'n, Node> {
        self.masks.as_ref().map_or(Cow::Borrowed(node), |it| it.node(node))
    }

    /// Makes the comparison of a node end early, with an answer of no use, once that becomes true.
    #[must_use]
    pub fn stopped_by(mut self, is_stopped: Arc<AtomicBool>) -> Self {
        self.is_stopped = is_stopped;
        self
    }

    /// Returns whether the answer is not needed any more.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Returns the groups that differ.
    pub fn groups(&self) -> &[GroupChange] {
        &self.changes
    }

    /// Returns the groups of a state that match a node.
    pub(super) fn matches(&self, version: StateVersion, node: &Node) -> MatchResult {
        let [base, head] = &self.indexes;
        let index = if version == StateVersion::Base { base } else { head };
        index.matching(&self.side(version).estate.hierarchy, node)
    }

    /// Returns the node files that differ.
    pub fn node_files(&self) -> &[NodeFileChange] {
        &self.node_files
    }

    pub(super) fn known_causes(&self, key: Option<&TextDigest>) -> Option<Arc<[Causes]>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.by_key.get(key?).cloned()
    }

    pub(super) fn learn(&self, key: Option<TextDigest>, causes: &Arc<[Causes]>) {
        let Some(key) = key else { return };
        // Those of many differences are the same.
        let runs = causes.chunk_by(|a, b| std::ptr::eq(a.changes(), b.changes()));
        let changes: usize = runs.filter_map(|it| Some(size_of_val(it.first()?.changes()))).sum();
        let size = changes + size_of_val(&**causes) + 2 * size_of::<TextDigest>();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.size + size <= CAUSES_BYTES {
            known.size += size;
            known.by_key.insert(key, Arc::clone(causes));
        }
    }

    /// Returns for how many sorts of nodes causes are remembered.
    #[cfg(test)]
    pub(super) fn known_sorts(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).by_key.len()
    }

    /// Returns a value to keep: the same for all nodes that get it.
    pub(super) fn share(&self, value: &Value) -> SharedValue {
        let digest = TextDigest::of(value);
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shared.by_digest.get(&digest) {
            return known.clone();
        }
        let kept = SharedValue::from(value.clone());
        shared.size += kept.size();
        shared.by_digest.insert(digest, kept.clone());
        kept
    }

    /// Returns about how many bytes the values take that differ for the nodes so far.
    pub fn size(&self) -> usize {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).size
    }

    /// Returns what is known of nodes that match the same groups of the head, or finds it out.
    pub(super) fn known_standing(
        &self,
        groups: &[GroupIndex],
        find: impl FnOnce() -> Standing,
    ) -> Standing {
        let known = || self.standings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(standing) = known().by_groups.get(groups) {
            return *standing;
        }
        let standing = find();
        let size = size_of_val(groups) + 2 * size_of::<(Box<[GroupIndex]>, Standing)>();
        let mut known = known();
        if known.size + size <= STANDINGS_BYTES {
            known.size += size;
            known.by_groups.insert(groups.into(), standing);
        }
        standing
    }

    /// Returns whether a changed group, or what is set for the node alone, has a part in either
    /// classification.
    pub(super) fn may_differ(&self, node: &Node, matches: [&MatchResult; 2]) -> bool {
        let [old, new] = &self.watched;
        self.interpolation_differs()
            || self.node_file_of(&node.name).is_some()
            || [(self.base, old), (self.head, new)].into_iter().zip(matches).any(
                |((side, watched), matches)| match matches {
                    Ok(matches) => matches.iter().any(|it| watched.binary_search(it).is_ok()),
                    // What matches beside the rule that cannot be evaluated is not known.
                    Err(_) => {
                        let hierarchy = &side.estate.hierarchy;
                        watched.iter().any(|group| may_match(hierarchy, *group, node))
                    }
                },
            )
    }

    /// Returns whether one of the states puts facts into values and the other does not.
    pub(super) fn interpolation_differs(&self) -> bool {
        self.base.estate.interpolation != self.head.estate.interpolation
    }

    /// Finds the settings in whose values groups mention facts, if either state puts facts into values.
    fn find_mentioning(&self) -> MentioningSettings<'a> {
        let sides = [self.base, self.head];
        if sides.iter().all(|it| it.estate.interpolation == Interpolation::Off) {
            return MentioningSettings::default();
        }
        let groups = sides.into_iter().flat_map(|it| it.estate.hierarchy.groups());
        let groups: Vec<(GroupId, &Group)> = groups.map(|it| (self.identity(it.id), it)).collect();
        MentioningSettings::of(&groups, self.interpolation_differs())
    }

    /// Returns the settings in whose values groups mention facts, if either state puts facts into values.
    pub(super) fn mentioning(&self) -> &MentioningSettings<'a> {
        &self.mentioning
    }

    pub(super) fn side(&self, version: StateVersion) -> Side<'a> {
        match version {
            StateVersion::Base => self.base,
            StateVersion::Head => self.head,
        }
    }

    /// Returns the identity of the group with an id of either state.
    pub(super) fn identity(&self, id: GroupId) -> GroupId {
        self.renamed.get(&id).copied().unwrap_or(id)
    }

    /// Returns a group, by its identity, as one of the states has it.
    pub(super) fn group(&self, identity: GroupId, version: StateVersion) -> Option<&'a Arc<Group>> {
        let id = match version {
            StateVersion::Base => self.former.get(&identity).copied().unwrap_or(identity),
            StateVersion::Head => identity,
        };
        let hierarchy = &self.side(version).estate.hierarchy;
        hierarchy.find(id).map(|index| hierarchy.shared_group(index))
    }

    /// Returns how a group, by its identity, differs.
    pub(super) fn change_of(&self, identity: GroupId) -> Option<usize> {
        self.by_id.get(&identity).copied()
    }

    /// Returns how the values set for a node alone differ.
    pub(super) fn node_file_of(&self, name: &str) -> Option<usize> {
        self.node_files.binary_search_by(|it| it.node.as_str().cmp(name)).ok()
    }

    /// Returns the groups that can match in a mixture though they match in neither state.
    pub(super) fn entangled(&self) -> &[GroupId] {
        &self.entangled
    }

    /// Adds a group and every group that is above it in some mixture.
    pub(super) fn ancestry(&self, identity: GroupId, found: &mut BTreeSet<GroupId>) {
        let mut open = vec![identity];
        while let Some(id) = open.pop() {
            if !found.insert(id) {
                continue;
            }
            for version in [StateVersion::Base, StateVersion::Head] {
                open.extend(self.group(id, version).map(|it| self.identity(it.parent)));
            }
        }
    }

    /// Returns whether a change leaves a valid tree when it alone is taken back.
    pub(super) fn stands_alone(&self, change: ChangeRef) -> bool {
        match change {
            ChangeRef::Group(change) => !self.built_upon.contains(&change),
            ChangeRef::NodeFile(_) | ChangeRef::Interpolation => true,
        }
    }

    /// Returns whether a change decides which nodes a group and those below it match. The parent of a
    /// group whose parent is renamed is the same.
    fn moves(&self, change: &GroupChange) -> bool {
        let keys = match &change.how {
            How::Added | How::Removed => return true,
            How::Renamed { keys, .. } | How::Modified(keys) => keys,
        };
        let parent = |version| self.group(change.id, version).map(|it| self.identity(it.parent));
        keys.contains(&GroupKey::Rule) || parent(StateVersion::Base) != parent(StateVersion::Head)
    }

    /// What a group takes from one state only, with what another takes from the other only, can
    /// let a group below both match that matches in neither state.
    fn find_entangled(&self) -> Vec<GroupId> {
        let moving: HashSet<GroupId> =
            self.changes.iter().filter(|it| self.moves(it)).map(|it| it.id).collect();
        if moving.len() < 2 {
            return Vec::new();
        }
        let mut all: BTreeSet<GroupId> = BTreeSet::new();
        for side in [self.base, self.head] {
            all.extend(side.estate.hierarchy.groups().map(|it| self.identity(it.id)));
        }
        let is_entangled = |id: &GroupId| {
            let mut ancestry = BTreeSet::new();
            self.ancestry(*id, &mut ancestry);
            ancestry.retain(|it| moving.contains(it));
            let there = |version| ancestry.iter().any(|it| self.group(*it, version).is_some());
            ancestry.len() > 1 && there(StateVersion::Base) && there(StateVersion::Head)
        };
        all.into_iter().filter(is_entangled).collect()
    }

    fn find_built_upon(&self) -> HashSet<usize> {
        let head = &self.head.estate.hierarchy;
        let entails = |change: &GroupChange| match &change.how {
            How::Added => head.find(change.id).is_some_and(|it| head.children(it).next().is_some()),
            How::Removed | How::Renamed { .. } | How::Modified(_) => {
                let Some(before) = self.group(change.id, StateVersion::Base) else { return false };
                let Some(parent) = head.find(self.identity(before.parent)) else { return true };
                // Below its own descendant a group cannot stand.
                change.id != GroupId::ROOT
                    && head
                        .find(change.id)
                        .is_some_and(|own| own == parent || head.is_ancestor(own, parent))
            }
        };
        let all = self.changes.iter().enumerate();
        all.filter(|(_, change)| entails(change)).map(|(at, _)| at).collect()
    }
}

/// Returns the groups to ask in the place of one: a group without a rule has no say itself, and its
/// descendants do not ask it.
fn frontier(hierarchy: &Hierarchy, index: GroupIndex) -> Vec<GroupIndex> {
    let mut found = Vec::new();
    // The tree may be as deep as it has groups, so this must not call itself for each level.
    let (mut next, end) = (index.number(), hierarchy.end(index).number());
    while let Some(at) = hierarchy.at(next).filter(|_| next < end) {
        let has_rule = hierarchy.group(at).rule.is_some();
        found.extend(has_rule.then_some(at));
        next = if has_rule { hierarchy.end(at).number() } else { next + 1 };
    }
    found
}

/// Drops groups below others: they match only what those match.
fn outermost(hierarchy: &Hierarchy, sorted: &[GroupIndex]) -> Vec<GroupIndex> {
    let mut kept: Vec<GroupIndex> = Vec::new();
    for index in sorted {
        if !kept.last().is_some_and(|last| hierarchy.is_ancestor(*last, *index)) {
            kept.push(*index);
        }
    }
    kept
}

/// Returns whether a node is in a group, or that is unknown.
fn may_match(hierarchy: &Hierarchy, group: GroupIndex, node: &Node) -> bool {
    hierarchy.lineage(group).all(|index| match &hierarchy.group(index).rule {
        None => true,
        Some(rule) => evaluate(rule, node).unwrap_or(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::root_group;
    use crate::model::Group;

    /// A function that called itself for each level took more stack than a thread has.
    #[test]
    fn a_chain_of_groups_without_rules_may_be_as_long_as_there_are_groups() {
        let root = root_group().unwrap();
        let id = |number| if number == 0 { GroupId::ROOT } else { GroupId::from_random(number) };
        let last = 20_000;
        let group = |number| Group {
            id: id(number),
            name: format!("group {number}").parse().unwrap(),
            parent: id(number - 1),
            rule: root.rule.clone().filter(|_| number == last),
            ..root.clone()
        };
        let hierarchy = Hierarchy::build((1..=last).map(group).collect()).unwrap();
        let first = hierarchy.find(id(1)).unwrap();
        assert_eq!(frontier(&hierarchy, first), [hierarchy.find(id(last)).unwrap()]);
    }
}
