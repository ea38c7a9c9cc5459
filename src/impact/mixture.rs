//! Classifying one node with some changes taken back.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::comparison::StateComparison;
use super::nodes::{ChangeRef, GroupName};
use super::version::{Result, StateVersion};
use crate::classification::{ClassificationError, WithheldFacts, conclude};
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{Group, GroupId, Individual, Node};
use crate::rule::{EvaluationError, evaluate};

/// A set of changes of one node, by their numbers among [`NodeCase::units`].
pub(super) type Mask = u128;

/// One node with everything that decides what it gets, whichever of the changes are taken back.
pub(super) struct NodeCase<'c, 'a> {
    comparison: &'c StateComparison<'a>,
    node: &'c Node,
    /// The groups that match in some mixture, and perhaps a few more, by identity.
    candidates: BTreeSet<GroupId>,
    /// The changes that can have a part in what the node gets.
    units: Vec<ChangeRef>,
    /// Whether the own rule of a group holds for the node.
    truths: RefCell<HashMap<(GroupId, StateVersion), std::result::Result<bool, EvaluationError>>>,
    individuals: [Arc<BTreeMap<String, Individual>>; 2],
}

/// Too many groups to ask for one node.
#[derive(Debug)]
pub(super) struct TooMany;

impl<'c, 'a> NodeCase<'c, 'a> {
    /// Gathers what decides.
    pub(super) fn new(
        comparison: &'c StateComparison<'a>,
        node: &'c Node,
        results: [&Result<'_>; 2],
    ) -> std::result::Result<Self, TooMany> {
        let individuals = [StateVersion::Base, StateVersion::Head].map(|version| {
            let own = comparison.side(version).estate.individuals.get(&node.name);
            Arc::new(own.map(|it| (node.name.clone(), it.clone())).into_iter().collect())
        });
        let mut case = Self {
            comparison,
            node,
            candidates: BTreeSet::new(),
            units: Vec::new(),
            truths: RefCell::default(),
            individuals,
        };
        case.find_candidates(results)?;
        case.find_units();
        Ok(case)
    }

    /// Returns the changes that can have a part.
    pub(super) fn units(&self) -> &[ChangeRef] {
        &self.units
    }

    /// Returns what all answers follow from: equal for nodes with equal causes. There is none for
    /// a node with values of its own, and none where facts are put into values.
    pub(super) fn key(&self) -> Option<Vec<(GroupId, u8)>> {
        // What facts make of values is another thing for each node.
        if self.individuals.iter().any(|it| !it.is_empty()) || self.comparison.puts_facts() {
            return None;
        }
        let mut key = Vec::new();
        for id in self.ancestry() {
            let mut code = 0;
            for version in [StateVersion::Base, StateVersion::Head] {
                let holds = match self.comparison.group(id, version) {
                    None => 0,
                    Some(group) => match self.truth(id, version, group) {
                        Some(Ok(false)) => 1,
                        Some(Ok(true)) => 2,
                        None => 3,
                        // What fails is rare, and says which pattern it was.
                        Some(Err(_)) => return None,
                    },
                };
                code = code * 4 + holds;
            }
            key.push((id, code));
        }
        Some(key)
    }

    fn find_candidates(&mut self, results: [&Result<'_>; 2]) -> std::result::Result<(), TooMany> {
        const MOST: usize = 4_096;
        let comparison = self.comparison;
        if comparison.entangled().len() > MOST {
            return Err(TooMany);
        }
        for (version, result) in [StateVersion::Base, StateVersion::Head].into_iter().zip(results) {
            let hierarchy = &comparison.side(version).estate.hierarchy;
            let Ok(explanation) = result else {
                self.candidates.extend(self.not_ruled_out(version, hierarchy));
                continue;
            };
            for matching in &explanation.matches {
                let id = comparison.identity(hierarchy.group(matching.group).id);
                self.candidates.insert(id);
                let truths = self.truths.get_mut();
                truths.insert((id, version), Ok(true));
                if comparison.change_of(id).is_none() {
                    truths.insert((id, version.other()), Ok(true));
                }
            }
        }
        for id in comparison.entangled() {
            let may_hold = [StateVersion::Base, StateVersion::Head].into_iter().any(|version| {
                let group = comparison.group(*id, version);
                let truth = group.and_then(|it| self.truth(*id, version, it));
                truth.is_some_and(|it| it != Ok(false))
            });
            if may_hold {
                self.candidates.insert(*id);
            }
        }
        Ok(())
    }

    /// Returns the groups that match, or of which that is unknown.
    fn not_ruled_out(&self, version: StateVersion, hierarchy: &Hierarchy) -> Vec<GroupId> {
        let mut found = Vec::new();
        let mut at = hierarchy.root();
        let mut rest = hierarchy.indexes();
        while let Some(index) = rest.find(|index| *index >= at) {
            at = index;
            let group = hierarchy.group(index);
            let id = self.comparison.identity(group.id);
            match self.truth(id, version, group) {
                Some(Ok(false)) => at = hierarchy.end(index),
                Some(_) => found.push(id),
                None => {}
            }
        }
        found
    }

    fn find_units(&mut self) {
        let of_groups = self.ancestry();
        let of_groups = of_groups.iter().filter_map(|id| self.comparison.change_of(*id));
        let mut units: Vec<ChangeRef> = of_groups.map(ChangeRef::Group).collect();
        units.extend(self.comparison.node_file_of(&self.node.name).map(ChangeRef::NodeFile));
        if self.comparison.interpolation_differs() {
            units.push(ChangeRef::Interpolation);
        }
        units.sort_unstable();
        units.dedup();
        self.units = units;
    }

    /// Returns the candidates and every group that is above one of them in some mixture.
    fn ancestry(&self) -> BTreeSet<GroupId> {
        let mut found = BTreeSet::new();
        for id in &self.candidates {
            self.comparison.ancestry(*id, &mut found);
        }
        found
    }

    fn truth(
        &self,
        id: GroupId,
        version: StateVersion,
        group: &Group,
    ) -> Option<std::result::Result<bool, EvaluationError>> {
        let rule = group.rule.as_ref()?;
        if let Some(known) = self.truths.borrow().get(&(id, version)) {
            return Some(known.clone());
        }
        let truth = evaluate(rule, self.node);
        self.truths.borrow_mut().insert((id, version), truth.clone());
        Some(truth)
    }

    /// Returns which version of a group there is once some changes are taken back.
    fn version(&self, id: GroupId, reverted: Mask) -> StateVersion {
        let change = self.comparison.change_of(id).map(ChangeRef::Group);
        match change {
            Some(change) if self.contains(reverted, change) => StateVersion::Base,
            _ => StateVersion::Head,
        }
    }

    fn contains(&self, mask: Mask, change: ChangeRef) -> bool {
        self.units.binary_search(&change).is_ok_and(|at| mask & (1 << at) != 0)
    }

    /// Returns the name of a group once some changes are taken back.
    pub(super) fn name(&self, id: GroupId, reverted: Mask) -> GroupName {
        let group = self.comparison.group(id, self.version(id, reverted));
        group.map_or_else(
            || GroupName { name: String::new(), id },
            |group| GroupName { name: group.name.to_string(), id: group.id },
        )
    }

    /// Returns a group and its ancestors up to the root once some changes are taken back; none if
    /// it is not there, or hangs below one that is not.
    fn lineage(&self, id: GroupId, reverted: Mask) -> Option<Vec<(GroupId, StateVersion, &Group)>> {
        let mut lineage: Vec<(GroupId, StateVersion, &Group)> = Vec::new();
        let mut next = id;
        loop {
            // Taking back one of two moves can make a cycle: nothing reaches that from the root.
            if lineage.iter().any(|(seen, ..)| *seen == next) {
                return None;
            }
            let version = self.version(next, reverted);
            let group = self.comparison.group(next, version)?;
            lineage.push((next, version, group));
            if next == GroupId::ROOT {
                return Some(lineage);
            }
            next = self.comparison.identity(group.parent);
        }
    }

    /// Returns the estate once some changes are taken back, as far as it concerns the node, and
    /// the groups that match there.
    pub(super) fn mixture(&self, reverted: Mask) -> Mixture {
        let mut groups: BTreeMap<GroupId, Group> = BTreeMap::new();
        let mut matching = Vec::new();
        let mut failing = Vec::new();
        for id in &self.candidates {
            let Some(lineage) = self.lineage(*id, reverted) else { continue };
            let truth = |(id, version, group): &(GroupId, StateVersion, &Group)| {
                self.truth(*id, *version, group)
            };
            let Some(own) = lineage.first().and_then(truth) else { continue };
            let above: Vec<_> = lineage.iter().skip(1).filter_map(truth).collect();
            if own == Ok(false) || above.contains(&Ok(false)) {
                continue;
            }
            match own {
                Err(cause) if above.iter().all(std::result::Result::is_ok) => {
                    failing.push((*id, cause));
                }
                _ => matching.push(*id),
            }
            for (id, _, group) in lineage {
                groups.entry(id).or_insert_with(|| Group {
                    id,
                    parent: self.comparison.identity(group.parent),
                    ..group.clone()
                });
            }
        }
        let reverts_file = self.comparison.node_file_of(&self.node.name);
        let reverts_file = reverts_file.map(ChangeRef::NodeFile);
        let [base, head] = &self.individuals;
        let own = match reverts_file {
            Some(file) if self.contains(reverted, file) => base,
            _ => head,
        };
        let setting = match self.contains(reverted, ChangeRef::Interpolation) {
            true => StateVersion::Base,
            false => StateVersion::Head,
        };
        let estate = Estate {
            hierarchy: Hierarchy::of_checked(groups.into_values().collect()),
            individuals: Arc::clone(own),
            environments: Arc::default(),
            catalogues: Arc::default(),
            interpolation: self.comparison.side(setting).estate.interpolation,
        };
        let places = |ids: &[GroupId]| {
            let mut places: Vec<GroupIndex> =
                ids.iter().filter_map(|id| estate.hierarchy.find(*id)).collect();
            places.sort_unstable();
            places
        };
        let matching = places(&matching);
        let first = failing.iter().min_by_key(|(id, _)| estate.hierarchy.find(*id));
        let failed = first.and_then(|(id, cause)| {
            let group = estate.hierarchy.group(estate.hierarchy.find(*id)?);
            Some(ClassificationError::of(group, cause.clone()))
        });
        Mixture { estate, matching, failed }
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
