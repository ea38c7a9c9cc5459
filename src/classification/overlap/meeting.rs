//! Whether two groups can both be leaves for one node.

use hashbrown::HashMap;

use super::subject::Subject;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::Node;
use crate::rule::{EvaluationError, Formula, Outline, Satisfiability, Solver, evaluate};

/// How often a node is looked for that is not in groups which hide the conflict.
const ROUNDS: usize = 64;

/// Whether two groups can meet.
#[derive(Debug)]
pub(super) enum Meeting {
    /// On this node.
    On(Box<Node>),
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
    /// What a group and its ancestors demand together.
    outlines: Vec<Option<Outline>>,
    /// The opposite of rules.
    opposites: HashMap<GroupIndex, Formula>,
    /// The nearest groups below each that have a rule.
    below: Vec<Vec<GroupIndex>>,
    /// The groups whose environment trumps.
    trumping: Vec<GroupIndex>,
    evaluated: u64,
}

impl<'e> Meetings<'e> {
    pub(super) fn new(estate: &'e Estate, mut solver: Solver) -> Self {
        let hierarchy = &estate.hierarchy;
        let rule = |it: GroupIndex| hierarchy.group(it).rule.as_deref();
        let rules: Vec<Option<Formula>> =
            hierarchy.indexes().map(|it| Some(solver.compile(rule(it)?))).collect();
        let of_lineage = |it: GroupIndex| {
            let compiled = hierarchy.lineage(it).filter_map(|it| rules.get(it.number())?.as_ref());
            compiled.collect::<Vec<&Formula>>()
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
            rules,
            evaluated: 0,
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
        // Where two environments trump, nothing else matters.
        let trumps = self.hierarchy.group(one).environment_trumps;
        let can_be_trumped = about == Subject::Environment && !trumps;
        let mut without: Vec<Formula> = Vec::new();
        for _ in 0..ROUNDS {
            let node = match self.solve(one, other, &without) {
                Satisfiability::Together(node) => node,
                Satisfiability::Never => return Meeting::Never,
                Satisfiability::Undecided => return Meeting::Undecided,
            };
            let before = without.len();
            let hidden = self.hide(&[one, other], &node, &mut without).and_then(|()| {
                if can_be_trumped { self.trump(&node, &mut without) } else { Ok(()) }
            });
            match hidden {
                Err(_) => return Meeting::Undecided,
                Ok(()) if without.len() == before => return Meeting::On(node),
                Ok(()) => {}
            }
        }
        Meeting::Undecided
    }

    fn solve(&mut self, one: GroupIndex, other: GroupIndex, without: &[Formula]) -> Satisfiability {
        let hierarchy = self.hierarchy;
        let mine = hierarchy.lineage(one);
        let theirs = hierarchy
            .lineage(other)
            .take_while(|it| *it != one && !hierarchy.is_ancestor(*it, one));
        let rules = &self.rules;
        let formulas: Vec<&Formula> = mine
            .chain(theirs)
            .filter_map(|it| rules.get(it.number())?.as_ref())
            .chain(without)
            .collect();
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
        self.evaluated += 1;
        self.hierarchy.group(group).rule.as_deref().map_or(Ok(true), |rule| evaluate(rule, node))
    }

    fn opposite(&mut self, group: GroupIndex) -> Formula {
        if let Some(known) = self.opposites.get(&group) {
            return known.clone();
        }
        let rule = self.hierarchy.group(group).rule.as_deref();
        let opposite = rule.map_or(Formula::False, |rule| self.solver.compile_not(rule));
        self.opposites.insert(group, opposite.clone());
        opposite
    }
}
