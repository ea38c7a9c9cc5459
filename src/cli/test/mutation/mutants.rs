//! The changes that are tried.

use std::collections::HashSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::cli::test::group_value::GroupValue;
use crate::cli::test::reach::{RepositoryPlaces, comparisons};
use crate::diagnostic::Place;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{ClassName, Classes, Condition, Group, Key, Table, Value};
use crate::rule::parts;

/// One change to one group.
#[derive(Clone, Debug)]
pub(super) struct Mutant<'e> {
    pub(super) group: GroupIndex,
    pub(super) place: Place,
    pub(super) part: MutatedPart<'e>,
}

/// What is changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MutatedPart<'e> {
    Rule(RuleChange),
    /// The value is dropped.
    Value(GroupValue<'e>),
}

/// A change to a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleChange {
    /// The way to the condition: an index for each level.
    way: Vec<usize>,
    pub(super) how: RuleMutation,
    /// The condition as people write it.
    pub(super) condition: String,
}

/// How a condition is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleMutation {
    /// It is dropped. Where it is the whole rule, every node that matches the ancestors matches.
    Drop,
    /// The opposite is demanded.
    Negate,
    /// The pinned node is dropped.
    Unpin,
}

/// Returns every change to every group, by group.
pub(super) fn of<'e>(hierarchy: &'e Hierarchy, places: &RepositoryPlaces<'_>) -> Vec<Mutant<'e>> {
    let mut all = Vec::new();
    for index in hierarchy.indexes() {
        let group = hierarchy.group(index);
        if let Some(rule) = group.rule.as_deref().filter(|_| index != hierarchy.root()) {
            let pins = parts(rule).1.len();
            let own = comparisons(rule).len() - pins;
            let mut walk = RuleWalk { way: Vec::new(), at: 0, own, found: Vec::new() };
            walk.visit(rule);
            let written = places.comparisons(hierarchy, index);
            all.extend(walk.found.into_iter().filter_map(|(at, change)| {
                let place = written.get(at)?.clone();
                Some(Mutant { group: index, place, part: MutatedPart::Rule(change) })
            }));
        }
        let written = places.values(hierarchy, index);
        all.extend(GroupValue::of(group).filter_map(|(value, _)| {
            let place = value.place(written.as_ref()?)?;
            Some(Mutant { group: index, place, part: MutatedPart::Value(value) })
        }));
    }
    all
}

/// Returns as many mutants as may be tried, by group.
///
/// Those are taken whose digests are the least: the sample is the same as long as groups are, and each kind
/// of change has its share, in whatever order a repository repeats them.
pub(super) fn sample<'e>(
    all: Vec<Mutant<'e>>,
    most: usize,
    hierarchy: &Hierarchy,
) -> Vec<Mutant<'e>> {
    if all.len() <= most {
        return all;
    }
    let digests = all.iter().enumerate().map(|(at, it)| (it.digest(hierarchy), at));
    let mut digests: Vec<([u8; 32], usize)> = digests.collect();
    digests.sort_unstable();
    let taken: HashSet<usize> = digests.into_iter().take(most).map(|(_, at)| at).collect();
    let all = all.into_iter().enumerate();
    all.filter(|(at, _)| taken.contains(at)).map(|(_, it)| it).collect()
}

impl Mutant<'_> {
    /// Returns a digest of the change and the group, wherever that is written.
    fn digest(&self, hierarchy: &Hierarchy) -> [u8; 32] {
        let id = hierarchy.group(self.group).id;
        let what = match &self.part {
            MutatedPart::Value(value) => value.describe(),
            MutatedPart::Rule(RuleChange { way, how, condition }) => {
                format!("{how:?} {way:?} {condition}")
            }
        };
        Sha256::digest(format!("{id} {what}")).into()
    }
}

/// A walk through a rule, comparison by comparison.
struct RuleWalk {
    way: Vec<usize>,
    /// How many comparisons came before.
    at: usize,
    /// How many comparisons the rule has before its pinned nodes.
    own: usize,
    /// The changes, with the number of the comparison where each stands.
    found: Vec<(usize, RuleChange)>,
}

impl RuleWalk {
    fn visit(&mut self, condition: &Condition) {
        match condition {
            Condition::And(terms) | Condition::Or(terms) => {
                for (index, term) in terms.iter().enumerate() {
                    self.inside(index, term);
                }
            }
            Condition::Not(inner) if is_comparison(inner) => self.comparison(condition),
            Condition::Not(inner) => {
                self.add(RuleMutation::Negate, condition);
                self.inside(0, inner);
            }
            Condition::Test(_) => self.comparison(condition),
        }
    }

    fn inside(&mut self, index: usize, condition: &Condition) {
        self.way.push(index);
        self.visit(condition);
        self.way.pop();
    }

    /// Adds the changes to a comparison, or the `not` of one.
    fn comparison(&mut self, condition: &Condition) {
        if self.at >= self.own {
            self.add(RuleMutation::Unpin, condition);
        } else {
            self.add(RuleMutation::Drop, condition);
            self.add(RuleMutation::Negate, condition);
        }
        self.at += 1;
    }

    fn add(&mut self, how: RuleMutation, condition: &Condition) {
        let condition = condition.to_string();
        self.found.push((self.at, RuleChange { way: self.way.clone(), how, condition }));
    }
}

/// Returns whether a condition is a comparison, or its opposite however often it is turned around.
fn is_comparison(condition: &Condition) -> bool {
    match condition {
        Condition::Test(_) => true,
        Condition::Not(inner) => is_comparison(inner),
        Condition::And(_) | Condition::Or(_) => false,
    }
}

impl RuleChange {
    /// Returns a rule with the change.
    pub(super) fn applied_to(&self, rule: &Condition) -> Condition {
        self.change(rule, &self.way)
            // A rule that demands nothing: `and` of no terms holds.
            .unwrap_or_else(|| Condition::And(Vec::new()))
    }

    /// Returns a condition with the change; `None` if nothing is left of it.
    fn change(&self, condition: &Condition, way: &[usize]) -> Option<Condition> {
        let Some((index, rest)) = way.split_first() else {
            return match (self.how, condition) {
                (RuleMutation::Drop | RuleMutation::Unpin, _) => None,
                (RuleMutation::Negate, Condition::Not(inner)) => Some(inner.as_ref().clone()),
                (RuleMutation::Negate, other) => Some(Condition::Not(Box::new(other.clone()))),
            };
        };
        let terms = |terms: &[Condition]| -> Vec<Condition> {
            let changed = |(at, term): (usize, &Condition)| {
                if at == *index { self.change(term, rest) } else { Some(term.clone()) }
            };
            terms.iter().enumerate().filter_map(changed).collect()
        };
        Some(match condition {
            Condition::And(inner) => Condition::And(terms(inner)),
            Condition::Or(inner) => Condition::Or(terms(inner)),
            Condition::Not(inner) => match self.change(inner, rest) {
                Some(inner) => Condition::Not(Box::new(inner)),
                None => return None,
            },
            Condition::Test(test) => Condition::Test(test.clone()),
        })
    }
}

impl GroupValue<'_> {
    /// Returns a group without the value; a class that has no parameter left stays.
    pub(super) fn dropped_from(self, group: &Group) -> Group {
        let mut group = group.clone();
        match self {
            Self::Class(class) => {
                let others = group.classes.iter().filter(|(name, _)| *name != class);
                let others = others.map(|(name, it)| (name.clone(), it.clone())).collect();
                group.classes = Arc::new(others);
            }
            Self::Parameter(class, key) => {
                group.classes = Arc::new(without(&group.classes, class, key));
            }
            Self::ConfigData(class, key) => {
                group.config_data = Arc::new(without(&group.config_data, class, key));
            }
            Self::Variable(variable) => {
                let others = group.variables.iter().filter(|(name, _)| *name != variable);
                let others = others.map(|(name, it)| (name.clone(), it.clone())).collect();
                group.variables = Arc::new(others);
            }
        }
        group
    }
}

fn without(classes: &Classes, class: &ClassName, key: &Key) -> Classes {
    let rest = |(name, parameters): (&ClassName, &Table<Key, Value>)| {
        let kept = parameters.iter().filter(|(it, _)| name != class || *it != key);
        (name.clone(), kept.map(|(key, value)| (key.clone(), value.clone())).collect())
    };
    classes.iter().map(rest).collect()
}
