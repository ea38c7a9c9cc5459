//! Whether two groups can both be leaves for one node.

use std::sync::Arc;

use hashbrown::HashMap;

use super::subject::Subject;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{Condition, Node};
use crate::rule::{EvaluationError, Formula, Outline, Satisfiability, Solver, evaluate};

/// How often a node is looked for that is not in groups which hide the conflict.
const ROUNDS: usize = 64;

/// How many groups with a rule, a group and the nearest above it, are outlined: what an outline leaves out may hold.
const OUTLINED: usize = 64;

/// Whether two groups can meet.
#[derive(Debug)]
pub(super) enum Meeting {
    /// On this node.
    On(Arc<Node>),
    /// On no node.
    Never,
    /// The solver cannot decide.
    Undecided,
}

/// Decides about pairs of groups.
pub(super) struct Meetings<'e> {
    hierarchy: &'e Hierarchy,
    solver: Solver,
    /// The own rule of each group that has one, compiled.
    rules: Vec<Option<Formula>>,
    /// How many comparisons the own rule of each group has, by which what it takes is counted.
    sizes: Vec<u64>,
    /// What a group and its ancestors demand together.
    outlines: Vec<Option<Outline>>,
    /// The opposite of rules.
    opposites: HashMap<GroupIndex, Formula>,
    /// The nearest groups below each that have a rule.
    below: Vec<Vec<GroupIndex>>,
    /// The groups whose environment trumps.
    trumping: Vec<GroupIndex>,
    /// Whether every node of a group is in one below it, of the groups that were asked about.
    always_hidden: HashMap<GroupIndex, bool>,
    evaluated: u64,
    budget: u64,
}

impl<'e> Meetings<'e> {
    /// Decides about the groups of an estate in about so many steps; beyond them nothing is decided.
    pub(super) fn new(estate: &'e Estate, solver: Solver, budget: u64) -> Self {
        let mut solver = solver.within(budget);
        let hierarchy = &estate.hierarchy;
        let rule = |it: GroupIndex| hierarchy.group(it).rule.as_deref();
        let rules: Vec<Option<Formula>> =
            hierarchy.indexes().map(|it| Some(solver.compile(rule(it)?))).collect();
        let of_lineage = |it: GroupIndex| {
            let compiled = hierarchy.lineage(it).filter_map(|it| rules.get(it.number())?.as_ref());
            compiled.take(OUTLINED).collect::<Vec<&Formula>>()
        };
        let with_rule = hierarchy.indexes().filter(|it| rule(*it).is_some());
        solver.prepare(with_rule.map(of_lineage));
        let outlines = hierarchy
            .indexes()
            .map(|it| rule(it).map(|_| solver.outline(&of_lineage(it))))
            .collect();
        let mut below = vec![Vec::new(); hierarchy.len()];
        for index in hierarchy.indexes().skip(1).filter(|it| rule(*it).is_some()) {
            let above = hierarchy.lineage(index).skip(1).find(|it| rule(*it).is_some());
            if let Some(below) = above.and_then(|it| below.get_mut(it.number())) {
                below.push(index);
            }
        }
        let trumps =
            |it: &GroupIndex| hierarchy.group(*it).environment_trumps && rule(*it).is_some();
        Self {
            hierarchy,
            solver,
            outlines,
            opposites: HashMap::new(),
            below,
            trumping: hierarchy.indexes().skip(1).filter(trumps).collect(),
            always_hidden: HashMap::new(),
            sizes: hierarchy.indexes().map(|it| rule(it).map_or(0, Condition::size)).collect(),
            rules,
            evaluated: 0,
            budget,
        }
    }

    /// Returns how many steps were taken so far.
    pub(super) fn steps(&self) -> u64 {
        self.solver.steps() + self.evaluated
    }

    /// Looks for a node on which two groups conflict.
    pub(super) fn find(&mut self, one: GroupIndex, other: GroupIndex, about: Subject) -> Meeting {
        if let (Some(Some(mine)), Some(Some(theirs))) =
            (self.outlines.get(one.number()), self.outlines.get(other.number()))
            && !self.solver.may_meet(mine, theirs)
        {
            return Meeting::Never;
        }
        if self.is_always_hidden(one) || self.is_always_hidden(other) {
            return Meeting::Never;
        }
        // Where two environments trump, nothing else matters.
        let trumps = self.hierarchy.group(one).environment_trumps;
        let can_be_trumped = about == Subject::Environment && !trumps;
        self.leaves(&[one, other], can_be_trumped)
    }

    /// Returns whether every node that a group matches is in one below it: then it meets no other, and which others
    /// there are does not matter.
    fn is_always_hidden(&mut self, group: GroupIndex) -> bool {
        if self.below.get(group.number()).is_none_or(Vec::is_empty) {
            return false;
        }
        if let Some(known) = self.always_hidden.get(&group) {
            return *known;
        }
        let is_hidden = matches!(self.leaves(&[group], false), Meeting::Never);
        self.always_hidden.insert(group, is_hidden);
        is_hidden
    }

    /// Looks for a node on which all of these groups are leaves.
    fn leaves(&mut self, groups: &[GroupIndex], can_be_trumped: bool) -> Meeting {
        let mut without: Vec<Formula> = Vec::new();
        for _ in 0..ROUNDS {
            let node = match self.solve(groups, &without) {
                Satisfiability::Together(node) => node,
                Satisfiability::Never => return Meeting::Never,
                Satisfiability::Undecided => return Meeting::Undecided,
            };
            let before = without.len();
            let hidden = self.hide(groups, &node, &mut without).and_then(|()| {
                if can_be_trumped { self.trump(&node, &mut without) } else { Ok(()) }
            });
            match hidden {
                Err(_) => return Meeting::Undecided,
                // What hides it was not looked for to the end.
                Ok(()) if self.is_used_up() => return Meeting::Undecided,
                Ok(()) if without.len() == before => return Meeting::On(node.into()),
                Ok(()) => {}
            }
        }
        Meeting::Undecided
    }

    /// Looks for a node that groups match, and that meets formulas.
    fn solve(&mut self, groups: &[GroupIndex], without: &[Formula]) -> Satisfiability {
        let hierarchy = self.hierarchy;
        let rules = &self.rules;
        let mut formulas: Vec<&Formula> = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            // What is above several of them is asked for once.
            let is_known = |it: &GroupIndex| {
                let mut before = groups.iter().take(at);
                before.any(|before| it == before || hierarchy.is_ancestor(*it, *before))
            };
            let own = hierarchy.lineage(*group).take_while(|it| !is_known(it));
            formulas.extend(own.filter_map(|it| rules.get(it.number())?.as_ref()));
        }
        formulas.extend(without);
        self.solver.solve(&formulas)
    }

    /// Asks for a node that is not in the groups below which match this one.
    fn hide(
        &mut self,
        groups: &[GroupIndex],
        node: &Node,
        without: &mut Vec<Formula>,
    ) -> Result<(), EvaluationError> {
        for group in groups {
            for child in self.below(*group) {
                if self.is_used_up() {
                    break;
                }
                if self.matches_alone(child, node)? {
                    without.push(self.opposite(child));
                }
            }
        }
        Ok(())
    }

    /// Asks for a node on which groups whose environments trump are no leaves.
    fn trump(&mut self, node: &Node, without: &mut Vec<Formula>) -> Result<(), EvaluationError> {
        for group in self.trumping.clone() {
            if self.is_used_up() {
                break;
            }
            let mut is_leaf = true;
            for it in self.hierarchy.lineage(group) {
                is_leaf = is_leaf && self.matches_alone(it, node)?;
            }
            let below = self.below(group);
            for it in &below {
                is_leaf = is_leaf && !self.matches_alone(*it, node)?;
            }
            if is_leaf {
                let above: Vec<GroupIndex> = self.hierarchy.lineage(group).collect();
                let with_rule = above.into_iter().filter(|it| self.rule(*it).is_some());
                let mut terms: Vec<Formula> =
                    with_rule.collect::<Vec<_>>().into_iter().map(|it| self.opposite(it)).collect();
                terms.extend(below.iter().filter_map(|it| self.rule(*it).cloned()));
                without.push(Formula::Or(terms));
            }
        }
        Ok(())
    }

    fn rule(&self, group: GroupIndex) -> Option<&Formula> {
        self.rules.get(group.number())?.as_ref()
    }

    fn below(&self, group: GroupIndex) -> Vec<GroupIndex> {
        self.below.get(group.number()).cloned().unwrap_or_default()
    }

    /// Returns whether a group's own rule holds; one without a rule rules out no node.
    fn matches_alone(&mut self, group: GroupIndex, node: &Node) -> Result<bool, EvaluationError> {
        self.evaluated += 1 + self.size(group);
        self.hierarchy.group(group).rule.as_deref().map_or(Ok(true), |rule| evaluate(rule, node))
    }

    fn size(&self, group: GroupIndex) -> u64 {
        self.sizes.get(group.number()).copied().unwrap_or_default()
    }

    fn is_used_up(&self) -> bool {
        self.steps() >= self.budget
    }

    fn opposite(&mut self, group: GroupIndex) -> Formula {
        self.evaluated += self.size(group);
        if let Some(known) = self.opposites.get(&group) {
            return known.clone();
        }
        let rule = self.hierarchy.group(group).rule.as_deref();
        let opposite = rule.map_or(Formula::False, |rule| self.solver.compile_not(rule));
        self.opposites.insert(group, opposite.clone());
        opposite
    }
}
