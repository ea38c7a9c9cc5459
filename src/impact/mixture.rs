//! Classifying one node with some changes taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::comparison::StateComparison;
use super::digest::TextDigest;
use super::equalities::ValueOrigins;
use super::family::{Family, MemberIndex, MemberVersion, Truth};
use super::nodes::{ChangeRef, GroupName};
use super::version::{Result, STATES, StateVersion};
use crate::classification::{ClassificationError, WithheldFacts, conclude};
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{ClassName, Classes, Group, GroupId, Individual, Node};
use crate::rule::evaluate;

/// A set of changes of one node, by their numbers among [`NodeCase::units`].
pub(super) type Mask = u128;

/// One node with everything that decides what it gets, whichever of the changes are taken back.
pub(super) struct NodeCase<'c, 'a> {
    comparison: &'c StateComparison<'a>,
    node: &'c Node,
    /// The groups that match in some mixture, and perhaps a few more.
    candidates: Vec<MemberIndex>,
    /// Those, and the groups above them.
    family: Family<'a>,
    /// The changes that can have a part.
    units: Vec<ChangeRef>,
    /// The change of each group of the family, as a set of one; none where it is the same in both states.
    changed: Vec<Mask>,
    individuals: [Arc<BTreeMap<String, Individual>>; 2],
}

/// Too many groups to ask for one node.
#[derive(Debug)]
pub(super) struct TooMany;

/// What is known of a group and those above it, once some changes are taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineageState {
    Unknown,
    /// It is being found out; coming back here is a cycle.
    Open,
    /// It does not hang below the root group.
    Detached,
    /// It hangs below the root group.
    Attached {
        /// Whether none of the rules is false.
        may_hold: bool,
        /// Whether a rule cannot be evaluated.
        fails: bool,
    },
}

/// What is known of what is above the root group: there is nothing.
const ABOVE_ROOT: LineageState = LineageState::Attached { may_hold: true, fails: false };

impl<'c, 'a> NodeCase<'c, 'a> {
    /// Gathers what decides.
    pub(super) fn new(
        comparison: &'c StateComparison<'a>,
        node: &'c Node,
        results: [&Result<'_>; 2],
    ) -> std::result::Result<Self, TooMany> {
        let individuals = STATES.map(|version| {
            let own = comparison.side(version).estate.individuals.get(&node.name);
            Arc::new(own.map(|it| (node.name.clone(), it.clone())).into_iter().collect())
        });
        let candidates = find_candidates(comparison, node, results)?;
        let family = Family::of(comparison, &candidates);
        let mut units: Vec<ChangeRef> = family
            .members()
            .iter()
            .filter_map(|it| comparison.change_of(it.id).map(ChangeRef::Group))
            .collect();
        units.extend(comparison.node_file_of(&node.name).map(ChangeRef::NodeFile));
        units.extend(comparison.interpolation_differs().then_some(ChangeRef::Interpolation));
        units.sort_unstable();
        units.dedup();
        let changed = |id| {
            let unit = comparison.change_of(id).map(ChangeRef::Group);
            unit.map_or(0, |it| set_of_one(&units, it))
        };
        let changed = family.members().iter().map(|it| changed(it.id)).collect();
        let candidates = candidates.iter().filter_map(|it| family.find(*it)).collect();
        let case = Self { comparison, node, candidates, family, units, changed, individuals };
        case.note_matches(results);
        Ok(case)
    }

    /// Notes what is known of the rules of the groups that match.
    fn note_matches(&self, results: [&Result<'_>; 2]) {
        for (version, result) in STATES.into_iter().zip(results) {
            let Ok(explanation) = result else { continue };
            let hierarchy = &self.comparison.side(version).estate.hierarchy;
            for matching in &explanation.matches {
                let id = self.comparison.identity(hierarchy.group(matching.group).id);
                let member = self.family.find(id).and_then(|it| self.family.members().get(it));
                let is_same = self.comparison.change_of(id).is_none();
                for of in STATES.into_iter().filter(|it| *it == version || is_same) {
                    if let Some(it) = member.and_then(|it| it.version(of)) {
                        it.note_that_it_holds();
                    }
                }
            }
        }
    }

    /// Returns the changes that can have a part.
    pub(super) fn units(&self) -> &[ChangeRef] {
        &self.units
    }

    /// Returns what all answers follow from: equal for nodes with equal causes. There is none for a node whose own values
    /// differ, since that is a cause which no other node has, and none where a rule or the values of an answer may fail.
    pub(super) fn key(&self) -> Option<TextDigest> {
        if self.comparison.node_file_of(&self.node.name).is_some() {
            return None;
        }
        let mut key = Vec::new();
        for member in self.family.members() {
            let mut code = 0;
            for version in STATES {
                let holds = match member.version(version).map(|it| it.truth(self.node)) {
                    None => 0,
                    Some(Some(Ok(false))) => 1,
                    Some(Some(Ok(true))) => 2,
                    Some(None) => 3,
                    // What fails is rare, and says which pattern it was.
                    Some(Some(Err(_))) => return None,
                };
                code = code * 4 + holds;
            }
            key.push((member.id, code));
        }
        let estates = STATES.map(|version| self.comparison.side(version).estate);
        let own = self.comparison.side(StateVersion::Head).estate.individuals.get(&self.node.name);
        let classes = |of: fn(&Individual) -> &Classes| -> Vec<&ClassName> {
            own.into_iter().flat_map(|it| of(it).keys()).collect()
        };
        let own_classes = [classes(|it| &it.classes), classes(|it| &it.config_data)];
        let origins = ValueOrigins {
            members: self.family.members(),
            mentioning: self.comparison.mentioning(),
            own,
            node: self.node,
            interpolations: estates.map(|it| it.interpolation),
        };
        let equalities = origins.equalities()?;
        Some(TextDigest::of(&(key, own_classes, equalities)))
    }

    /// Returns a group as it is once some changes are taken back, if it is there.
    fn version(&self, at: MemberIndex, reverted: Mask) -> Option<&MemberVersion<'a>> {
        let is_reverted = self.changed.get(at).is_some_and(|it| it & reverted != 0);
        let version = if is_reverted { StateVersion::Base } else { StateVersion::Head };
        self.family.members().get(at)?.version(version)
    }

    fn contains(&self, mask: Mask, change: ChangeRef) -> bool {
        set_of_one(&self.units, change) & mask != 0
    }

    /// Returns the name of a group once some changes are taken back.
    pub(super) fn name(&self, id: GroupId, reverted: Mask) -> GroupName {
        let version = self.family.find(id).and_then(|at| self.version(at, reverted));
        version.map_or_else(
            || GroupName { name: String::new(), id },
            |it| GroupName { name: it.group.name.to_string(), id: it.group.id },
        )
    }

    /// Finds out what is known of a group and those above it once some changes are taken back.
    fn lineage(&self, at: MemberIndex, reverted: Mask, known: &mut [LineageState]) -> LineageState {
        let mut open: Vec<(MemberIndex, &Truth)> = Vec::new();
        let mut next = Some(at);
        let mut found = loop {
            let Some((at, place)) = next.and_then(|at| Some((at, known.get_mut(at)?))) else {
                break ABOVE_ROOT;
            };
            match *place {
                LineageState::Unknown => {}
                // Taking back one of two moves can make a cycle: nothing reaches that from the root.
                LineageState::Open => break LineageState::Detached,
                is_known => break is_known,
            }
            let Some(version) = self.version(at, reverted) else {
                *place = LineageState::Detached;
                break LineageState::Detached;
            };
            *place = LineageState::Open;
            open.push((at, version.truth(self.node)));
            next = version.above;
        };
        for (at, truth) in open.into_iter().rev() {
            if let LineageState::Attached { may_hold, fails } = &mut found {
                *may_hold &= *truth != Some(Ok(false));
                *fails |= matches!(truth, Some(Err(_)));
            }
            if let Some(place) = known.get_mut(at) {
                *place = found;
            }
        }
        found
    }

    /// Returns the estate once some changes are taken back, as far as it concerns the node, and
    /// the groups that match there.
    pub(super) fn mixture(&self, reverted: Mask) -> Mixture {
        let mut known = vec![LineageState::Unknown; self.family.members().len()];
        let mut is_there = vec![false; known.len()];
        let mut groups = Vec::new();
        let (mut matching, mut failing) = (Vec::new(), Vec::new());
        for at in &self.candidates {
            let Some(version) = self.version(*at, reverted) else { continue };
            let above = version.above.map(|it| self.lineage(it, reverted, &mut known));
            let LineageState::Attached { may_hold: true, fails } = above.unwrap_or(ABOVE_ROOT)
            else {
                continue;
            };
            let id = self.identity(*at);
            match version.truth(self.node) {
                None | Some(Ok(false)) => continue,
                Some(Err(cause)) if !fails => failing.push((id, cause)),
                Some(_) => matching.push(id),
            }
            self.add_lineage(*at, reverted, &mut is_there, &mut groups);
        }
        let estate = self.estate(reverted, groups);
        let mut places: Vec<GroupIndex> =
            matching.iter().filter_map(|id| estate.hierarchy.find(*id)).collect();
        places.sort_unstable();
        let first = failing.iter().min_by_key(|(id, _)| estate.hierarchy.find(*id));
        let failed = first.and_then(|(id, cause)| {
            let group = estate.hierarchy.group(estate.hierarchy.find(*id)?);
            Some(ClassificationError::of(group, (*cause).clone()))
        });
        Mixture { estate, matching: places, failed }
    }

    /// Adds a group and those above it, under their identities, that were not added yet.
    fn add_lineage(
        &self,
        at: MemberIndex,
        reverted: Mask,
        is_there: &mut [bool],
        groups: &mut Vec<Arc<Group>>,
    ) {
        let mut next = Some(at);
        while let Some(at) = next
            && let Some(is_there) = is_there.get_mut(at).filter(|it| !**it)
            && let Some(MemberVersion { group, parent, above, .. }) = self.version(at, reverted)
        {
            *is_there = true;
            let (id, parent) = (self.identity(at), *parent);
            groups.push(match (group.id, group.parent) == (id, parent) {
                true => Arc::clone(group),
                false => Arc::new(Group { id, parent, ..Group::clone(group) }),
            });
            next = *above;
        }
    }

    fn identity(&self, at: MemberIndex) -> GroupId {
        self.family.members().get(at).map_or(GroupId::ROOT, |it| it.id)
    }

    fn estate(&self, reverted: Mask, groups: Vec<Arc<Group>>) -> Estate {
        let file = self.comparison.node_file_of(&self.node.name).map(ChangeRef::NodeFile);
        let [base, head] = &self.individuals;
        let own = match file {
            Some(file) if self.contains(reverted, file) => base,
            _ => head,
        };
        let setting = match self.contains(reverted, ChangeRef::Interpolation) {
            true => StateVersion::Base,
            false => StateVersion::Head,
        };
        Estate {
            hierarchy: Hierarchy::of_checked(groups),
            individuals: Arc::clone(own),
            environments: Arc::default(),
            catalogues: Arc::default(),
            interpolation: self.comparison.side(setting).estate.interpolation,
        }
    }

    pub(super) fn node(&self) -> &'c Node {
        self.node
    }
}

/// The estate of one node once some changes are taken back. Its groups stand under their
/// identities.
pub(super) struct Mixture {
    estate: Estate,
    matching: Vec<GroupIndex>,
    failed: Option<ClassificationError>,
}

impl Mixture {
    /// Classifies the node.
    pub(super) fn classify<'m>(&'m self, node: &'m Node) -> Result<'m> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => conclude(&self.estate, node, &self.matching, WithheldFacts::Mark),
        }
    }
}

/// Returns a set of changes that has one.
fn set_of_one(units: &[ChangeRef], change: ChangeRef) -> Mask {
    let at = units.binary_search(&change).ok().and_then(|it| u32::try_from(it).ok());
    at.and_then(|it| Mask::checked_shl(1, it)).unwrap_or(0)
}

/// Returns the groups that can match in some mixture, by identity.
fn find_candidates(
    comparison: &StateComparison<'_>,
    node: &Node,
    results: [&Result<'_>; 2],
) -> std::result::Result<BTreeSet<GroupId>, TooMany> {
    const MOST: usize = 4_096;
    if comparison.entangled().len() > MOST {
        return Err(TooMany);
    }
    let mut candidates = BTreeSet::new();
    for (version, result) in STATES.into_iter().zip(results) {
        let hierarchy = &comparison.side(version).estate.hierarchy;
        let found = match result {
            Ok(it) => it.matches.iter().map(|it| it.group).collect(),
            Err(_) => not_ruled_out(hierarchy, node),
        };
        let ids = found.into_iter().map(|it| comparison.identity(hierarchy.group(it).id));
        candidates.extend(ids);
    }
    for id in comparison.entangled() {
        let may_hold = |version| {
            let rule = comparison.group(*id, version).and_then(|it| it.rule.as_ref());
            rule.is_some_and(|it| evaluate(it, node) != Ok(false))
        };
        if !candidates.contains(id) && STATES.into_iter().any(may_hold) {
            candidates.insert(*id);
        }
    }
    Ok(candidates)
}

/// Returns the groups that match, or of which that is unknown.
fn not_ruled_out(hierarchy: &Hierarchy, node: &Node) -> Vec<GroupIndex> {
    let mut found = Vec::new();
    let mut at = hierarchy.root();
    let mut rest = hierarchy.indexes();
    while let Some(index) = rest.find(|index| *index >= at) {
        at = index;
        match hierarchy.group(index).rule.as_ref().map(|it| evaluate(it, node)) {
            Some(Ok(false)) => at = hierarchy.end(index),
            Some(_) => found.push(index),
            None => {}
        }
    }
    found
}
