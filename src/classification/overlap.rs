//! Groups that can match one node and set a value differently, found without any node.
//!
//! For every two groups that set something differently, neither above the other, it is asked
//! whether their inherited rules can hold together. The answer is a node, and what is reported
//! was seen: that node was classified, and the conflict is between these two.

mod setters;

use std::collections::{BTreeMap, BTreeSet};

use super::{Conflicts, Difference, Outcome, classify};
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{ClassName, Key, Node, VariableName};
use crate::rule::{Formula, Solver, Verdict};

use setters::{Carrier, Setters};

/// Two groups that conflict on a node that can exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap<'e> {
    /// The group that is further down in the repository's order.
    pub group: GroupIndex,
    /// The other.
    pub other: GroupIndex,
    /// What they set differently.
    pub settings: Vec<Setting<'e>>,
    /// A node that both match, and that gets the conflict.
    pub witness: Node,
}

/// Something that a group sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting<'e> {
    /// Its environment.
    Environment,
    /// A parameter of a class.
    Parameter(&'e ClassName, &'e Key),
    /// A variable.
    Variable(&'e VariableName),
    /// An item of config data.
    ConfigData(&'e ClassName, &'e Key),
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlaps<'e> {
    /// The pairs.
    pub pairs: Vec<Overlap<'e>>,
    /// The group at which the search ended, if there were too many pairs to look at all of them.
    pub ended_at: Option<GroupIndex>,
}

/// How much is left to do.
#[derive(Clone, Copy, Debug)]
struct Budget {
    compared: usize,
    asked: usize,
    evaluated: usize,
}

impl Budget {
    /// Takes from what is left; returns whether there was enough.
    fn take(left: &mut usize, amount: usize) -> bool {
        *left = left.saturating_sub(amount);
        *left > 0
    }
}

/// How many partners of one group are shown: who mends the first meets the rest.
const PARTNERS: usize = 3;

/// How many pairs are compared by what they set, how many of them are asked about, and how many
/// rules are evaluated to classify witnesses: about a second each on a small machine. Estates of
/// two thousand groups stay below.
const BUDGET: Budget = Budget { compared: 5_000_000, asked: 40_000, evaluated: 20_000_000 };

/// How often a node is looked for that is not in groups which hide the conflict.
const REFINEMENTS: usize = 4;

/// Finds the groups of an estate that can conflict.
pub fn overlaps(estate: &Estate) -> Overlaps<'_> {
    within(estate, BUDGET)
}

fn within(estate: &Estate, budget: Budget) -> Overlaps<'_> {
    let hierarchy = &estate.hierarchy;
    let mut finder = Finder {
        estate,
        solver: Solver::default(),
        formulas: BTreeMap::new(),
        found: Overlaps::default(),
        budget,
    };
    let setters = Setters::of(hierarchy);
    for carrier in setters.carriers.iter().copied() {
        let mut shown = 0;
        let partners = setters.partners(hierarchy, carrier, &mut finder.budget);
        finder.ends_at(carrier);
        for (partner, settings) in partners {
            if shown == PARTNERS || finder.ends_at(carrier) {
                break;
            }
            shown += usize::from(finder.look(carrier, partner, &settings));
        }
    }
    for (minority, partners) in setters.environments(hierarchy, &mut finder.budget) {
        finder.ends_at(minority);
        for partner in partners {
            let environment = BTreeSet::from([Setting::Environment]);
            if finder.ends_at(minority) || finder.look(minority, partner, &environment) {
                break;
            }
        }
    }
    finder.found.pairs.sort_by_key(|it| (it.group, it.other));
    finder.found
}

struct Finder<'e> {
    estate: &'e Estate,
    solver: Solver,
    /// The rules of a group and its ancestors, compiled.
    formulas: BTreeMap<GroupIndex, Formula>,
    found: Overlaps<'e>,
    budget: Budget,
}

impl<'e> Finder<'e> {
    /// Returns whether the search ends, and notes the first group where it does.
    fn ends_at(&mut self, carrier: Carrier) -> bool {
        let Budget { compared, asked, evaluated } = self.budget;
        let ends = compared == 0 || asked == 0 || evaluated == 0;
        if ends {
            self.found.ended_at.get_or_insert(carrier.setter);
        }
        ends
    }

    /// Looks for a node on which two groups conflict; returns whether one was found.
    fn look(
        &mut self,
        carrier: Carrier,
        partner: Carrier,
        settings: &BTreeSet<Setting<'e>>,
    ) -> bool {
        Budget::take(&mut self.budget.asked, 1);
        let hierarchy = &self.estate.hierarchy;
        let both = [self.inherited(carrier.leaf), self.inherited(partner.leaf)];
        let mut without: Vec<Formula> = Vec::new();
        for _ in 0..REFINEMENTS {
            let all: Vec<&Formula> = both.iter().chain(&without).collect();
            let witness = match self.solver.solve(&all) {
                Verdict::Never | Verdict::Undecided => return false,
                Verdict::Together(witness) => *witness,
            };
            Budget::take(&mut self.budget.evaluated, hierarchy.len());
            let Ok(explanation) = classify(self.estate, &witness) else { return false };
            if let Outcome::Conflict(conflicts) = &explanation.outcome {
                let seen: Vec<Setting<'e>> = settings
                    .iter()
                    .copied()
                    .filter(|it| is_between(conflicts, *it, carrier.setter, partner.setter))
                    .collect();
                if !seen.is_empty() {
                    let (group, other) = (carrier.setter, partner.setter);
                    self.found.pairs.push(Overlap { group, other, settings: seen, witness });
                    return true;
                }
            }
            let hides = |it: &GroupIndex| {
                let above = |leaf| *it == leaf || hierarchy.is_ancestor(*it, leaf);
                !above(carrier.leaf) && !above(partner.leaf)
            };
            let hiding: Vec<GroupIndex> =
                explanation.matches.iter().map(|it| it.group).filter(hides).collect();
            if hiding.is_empty() {
                return false;
            }
            for group in hiding {
                if let Some(rule) = &hierarchy.group(group).rule {
                    without.push(self.solver.compile_not(rule));
                }
            }
        }
        false
    }

    /// Returns what a node must meet to be in a group.
    fn inherited(&mut self, group: GroupIndex) -> Formula {
        if let Some(known) = self.formulas.get(&group) {
            return known.clone();
        }
        let hierarchy = &self.estate.hierarchy;
        let rules = hierarchy.lineage(group).filter_map(|it| hierarchy.group(it).rule.as_deref());
        let formula = Formula::And(rules.map(|rule| self.solver.compile(rule)).collect());
        self.formulas.insert(group, formula.clone());
        formula
    }
}

/// Returns whether two groups take part in a conflict about a setting with different values.
fn is_between(
    conflicts: &Conflicts<'_>,
    setting: Setting<'_>,
    one: GroupIndex,
    other: GroupIndex,
) -> bool {
    let differences = match setting {
        Setting::Environment => Some(&conflicts.environment),
        Setting::Variable(name) => conflicts.variables.get(name),
        Setting::Parameter(class, name) => conflicts.classes.get(class).and_then(|it| it.get(name)),
        Setting::ConfigData(class, name) => {
            conflicts.config_data.get(class).and_then(|it| it.get(name))
        }
    };
    let by = |group: GroupIndex| {
        let all: &[Difference<'_>] = differences.map_or(&[], Vec::as_slice);
        all.iter().find(|it| it.defined_by == group)
    };
    matches!((by(one), by(other)), (Some(one), Some(other)) if !crate::model::same(&one.value, &other.value))
}

/// Returns whether neither of two groups is above the other, nor the same.
fn are_apart(hierarchy: &Hierarchy, one: GroupIndex, other: GroupIndex) -> bool {
    one != other && !hierarchy.is_ancestor(one, other) && !hierarchy.is_ancestor(other, one)
}

#[cfg(test)]
mod tests;
