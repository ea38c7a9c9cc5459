//! Rules and pinned nodes that contradict the rules of ancestors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashSet;

use super::super::places::Places;
use super::super::search::Search;
use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::bounded;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Comparison, Condition, GroupId, Path, Segment, Test};
use crate::rule::{self, Claim, Prover, decide_by_name, opens_foreign_quote};

/// How many steps the proofs of a commit may take together; shared out among its groups, so that what
/// is found of a group depends on its own rules alone.
const STEPS: usize = 4_000_000;

/// The fewest and the most steps for a group.
const OF_A_GROUP: (usize, usize) = (200, 20_000);

/// How many ancestors with a rule, the nearest first, a group is compared with.
const ANCESTORS: usize = 64;

/// How many conditions are taken away one by one to find those that contradict each other.
const EXPLAINED: usize = 48;

/// How many conditions are shown.
const SHOWN: usize = 3;

pub(super) const CHECK: Check = Check {
    kinds: &[Kind::NeverMatches],
    scope: FindingScope::Ancestors,
    run: Run::EachSubtree(check),
};

/// Finds groups, among one and its descendants, whose rule no node meets, by itself or together with
/// those of ancestors, and pinned nodes that an ancestor never matches.
fn check(context: &CheckContext<'_>, top: GroupIndex, findings: &mut Findings<'_>) {
    let prover = match context.search {
        Search::Decisive => Prover::quick(),
        Search::Everything | Search::WithoutConflicts => Prover::thorough(context.automata),
    };
    let (hierarchy, places) = (context.hierarchy, &context.places);
    let steps = steps(hierarchy.len());
    let without_pins = &context.incomplete.pins;
    let mut walk = TreeWalk { hierarchy, places, without_pins, steps, prover, above: Vec::new() };
    let mut lineage: Vec<GroupIndex> = hierarchy.lineage(top).skip(1).collect();
    lineage.reverse();
    for index in lineage.into_iter().chain(hierarchy.subtree(top)) {
        for diagnostic in walk.enter(index) {
            if index >= top {
                findings.add(index, diagnostic);
            }
        }
    }
}

/// Returns how many steps a group of so many may take. It is the same for numbers that are close: a few
/// groups more change nothing for all others.
pub(super) fn steps(groups: usize) -> usize {
    let (least, most) = OF_A_GROUP;
    let groups = groups.max(1);
    let close = 1 << groups.ilog2().saturating_sub(2);
    (STEPS / groups.next_multiple_of(close)).clamp(least, most)
}

/// A walk down the tree.
struct TreeWalk<'h, 'p> {
    hierarchy: &'h Hierarchy,
    places: &'p Places<'p>,
    without_pins: &'p BTreeSet<GroupId>,
    steps: usize,
    prover: Prover<'h>,
    /// The ancestors with a rule that a node can meet, from the root downwards.
    above: Vec<Ancestor<'h>>,
}

/// A group whose rule its descendants inherit.
struct Ancestor<'h> {
    index: GroupIndex,
    claim: Claim<'h>,
    rule: Option<&'h Condition>,
    pinned: HashSet<&'h str>,
}

impl Ancestor<'_> {
    /// Returns whether no node of a name is in the group, whatever else it has.
    fn excludes(&self, name: &str) -> bool {
        !self.pinned.contains(name)
            && self.rule.is_none_or(|rule| decide_by_name(rule, name) == Some(false))
    }
}

/// A condition that must hold for a group to match.
#[derive(Clone, Copy)]
struct Term<'h> {
    by: GroupIndex,
    condition: &'h Condition,
}

impl<'h> TreeWalk<'h, '_> {
    /// Checks the rule of a group, whose ancestors were entered before.
    fn enter(&mut self, index: GroupIndex) -> Vec<Diagnostic> {
        let hierarchy = self.hierarchy;
        while self.above.last().is_some_and(|it| !hierarchy.is_ancestor(it.index, index)) {
            self.above.pop();
        }
        let Some(whole) = hierarchy.group(index).rule.as_deref() else { return Vec::new() };
        let (rule, pinned) = rule::parts(whole);
        let mut found = Vec::new();
        let unmatched = self.unmatched(&pinned);
        let pins_fail = unmatched.values().map(Vec::len).sum::<usize>() == pinned.len();
        let rule_fails = rule.is_none_or(|rule| {
            let fails = self.never_matches(rule);
            if fails {
                found.extend(self.report(index, rule, pins_fail));
            }
            fails
        });
        for (ancestor, names) in unmatched {
            found.extend(self.report_pins(index, ancestor, &names));
        }
        // What contradicts a group that no node is in is not worth a finding.
        let is_whole = !self.without_pins.contains(&hierarchy.group(index).id);
        if is_whole && !(rule_fails && pins_fail) {
            let claim = self.prover.claim(whole);
            let pinned = pinned.into_iter().map(AsRef::as_ref).collect();
            self.above.push(Ancestor { index, claim, rule, pinned });
        }
        found
    }

    /// Returns whether no node meets a rule and those of the ancestors.
    fn never_matches(&mut self, rule: &'h Condition) -> bool {
        let own = self.prover.claim(rule);
        let above = self.above.iter().rev().take(ANCESTORS).map(|it| &it.claim);
        let claims: Vec<&Claim<'h>> = std::iter::once(&own).chain(above).collect();
        self.prover.excludes(&claims, self.steps)
    }

    /// Returns the pinned nodes that an ancestor never matches, by the nearest such ancestor.
    fn unmatched<'n>(&self, pinned: &[&'n Arc<str>]) -> BTreeMap<GroupIndex, Vec<&'n Arc<str>>> {
        let mut unmatched: BTreeMap<GroupIndex, Vec<&Arc<str>>> = BTreeMap::new();
        let mut steps = self.steps as u64 * 8;
        for name in pinned {
            for ancestor in self.above.iter().rev().take(ANCESTORS) {
                let Some(left) = steps.checked_sub(1 + ancestor.rule.map_or(0, Condition::size))
                else {
                    return unmatched;
                };
                steps = left;
                if ancestor.excludes(name) {
                    unmatched.entry(ancestor.index).or_default().push(name);
                    break;
                }
            }
        }
        unmatched
    }

    /// Reports a rule that no node meets; nodes that are pinned may be in the group all the same.
    fn report(
        &mut self,
        index: GroupIndex,
        rule: &'h Condition,
        pins_fail: bool,
    ) -> Option<Diagnostic> {
        let mut core = self.core(index, rule);
        // The root group says of a name only that there is one: what excludes the other is what certnames are made of.
        let root = self.hierarchy.root();
        let of_certnames = core.len() == 2 && core.iter().any(|it| it.by == root);
        if of_certnames {
            core.retain(|it| it.by != root);
        }
        // Quotes that are letters of a value are a finding of the rule by themselves.
        if core.iter().any(|it| has_foreign_quotes(it.condition)) {
            return None;
        }
        let group = self.hierarchy.group(index);
        let written = self.places.of(group.id)?;
        let place = written.rule_place().unwrap_or_else(|| written.place());
        let who = match pins_fail {
            true => "no node matches",
            false => "the rule matches no node, only pinned nodes do",
        };
        let message = format!("{who}: {}", describe(&core));
        let mut found =
            Diagnostic::new(Kind::NeverMatches, place, message).in_group(group.name.as_str());
        let others: BTreeSet<GroupIndex> =
            core.iter().map(|it| it.by).filter(|by| *by != index).collect();
        let Some(first) = others.first() else {
            let help = "certnames are printable ASCII in lower case, without `/`";
            return Some(if of_certnames { found.with_help(help) } else { found });
        };
        found = found.with_help(format!(
            "a node must match its group's ancestors too: move the group out of `{}`, or change one of the rules",
            self.hierarchy.group(*first).name
        ));
        for other in others {
            if let Some(place) = self.rule_place(other) {
                let name = &self.hierarchy.group(other).name;
                found = found.with_related(place, format!("`{name}` demands the other"));
            }
        }
        Some(found)
    }

    /// Reports pinned nodes that an ancestor never matches.
    fn report_pins(
        &self,
        index: GroupIndex,
        ancestor: GroupIndex,
        names: &[&Arc<str>],
    ) -> Option<Diagnostic> {
        let (group, other) = (self.hierarchy.group(index), self.hierarchy.group(ancestor));
        let (name, more) = names.split_first()?;
        let written = self.places.of(group.id)?;
        let pin = written.pin_place(name);
        let is_pin = pin.is_some();
        let place = pin.or_else(|| written.rule_place()).unwrap_or_else(|| written.place());
        let others = match more.len() {
            0 => String::new(),
            1 => ", nor another one".to_owned(),
            more => format!(", nor {more} more"),
        };
        // A rule may say the same as a list of pinned nodes.
        let what =
            if is_pin { format!("the pinned node `{name}`") } else { format!("the node `{name}`") };
        let message = format!(
            "{what} never matches: the ancestor `{}` does not match it{others}",
            other.name
        );
        let found = Diagnostic::new(Kind::NeverMatches, place, message)
            .in_group(group.name.as_str())
            .with_help(format!(
                "a node must match its group's ancestors too: pin it to `{}` as well, or move the group out of it",
                other.name
            ));
        Some(match self.rule_place(ancestor) {
            Some(place) => {
                found.with_related(place, format!("`{}` matches other nodes", other.name))
            }
            None => found,
        })
    }

    fn rule_place(&self, index: GroupIndex) -> Option<Place> {
        let written = self.places.of(self.hierarchy.group(index).id)?;
        let place = written.rule_place().or_else(|| written.pin_places().next());
        Some(place.unwrap_or_else(|| written.place()))
    }

    /// Returns conditions that contradict each other, from the root downwards: without any one of
    /// them, it could not be proven.
    fn core(&mut self, index: GroupIndex, rule: &'h Condition) -> Vec<Term<'h>> {
        let mut terms = Vec::new();
        for ancestor in self.above.iter().rev().take(ANCESTORS).rev() {
            if let Some(rule) = self.hierarchy.group(ancestor.index).rule.as_deref() {
                collect(rule, ancestor.index, &mut terms);
            }
        }
        collect(rule, index, &mut terms);
        let claims: Vec<Claim<'h>> =
            terms.iter().map(|it| self.prover.claim(it.condition)).collect();
        let mut kept: Vec<usize> = (0..terms.len()).collect();
        if kept.len() > EXPLAINED {
            return Vec::new();
        }
        for at in 0..terms.len() {
            let rest: Vec<usize> = kept.iter().copied().filter(|it| *it != at).collect();
            let without: Vec<&Claim<'h>> = rest.iter().filter_map(|it| claims.get(*it)).collect();
            if self.prover.excludes(&without, self.steps) {
                kept = rest;
            }
        }
        kept.into_iter().filter_map(|it| terms.get(it).copied()).collect()
    }
}

fn has_foreign_quotes(condition: &Condition) -> bool {
    matches!(condition, Condition::Test(test) if opens_foreign_quote(test.comparison.operand()).is_some())
}

/// Collects the conditions that must hold: those joined by `and`.
fn collect<'h>(condition: &'h Condition, by: GroupIndex, terms: &mut Vec<Term<'h>>) {
    match condition {
        Condition::Or(inner) if inner.len() > 1 => terms.push(Term { by, condition }),
        // An `or` of one is that one.
        Condition::And(inner) | Condition::Or(inner) => {
            for condition in inner {
                collect(condition, by, terms);
            }
        }
        Condition::Not(_) | Condition::Test(_) => terms.push(Term { by, condition }),
    }
}

fn describe(core: &[Term<'_>]) -> String {
    let equality = |it: &Term<'_>| match it.condition {
        Condition::Test(Test { path, comparison: Comparison::Equals(text) }) => {
            Some((show(path), text.to_string()))
        }
        _ => None,
    };
    let quoted = |it: &Term<'_>| format!("`{}`", bounded(it.condition.to_string()));
    match core {
        [] => "the rule contradicts itself or those of its ancestors".to_owned(),
        [only] => format!("{} never holds", quoted(only)),
        [one, other] => match (equality(one), equality(other)) {
            (Some((a, x)), Some((b, y))) if a == b => format!("{a} cannot be both `{x}` and `{y}`"),
            _ => format!("{} excludes {}", quoted(one), quoted(other)),
        },
        several => {
            let shown: Vec<String> = several.iter().take(SHOWN).map(quoted).collect();
            let more = match several.len().saturating_sub(SHOWN) {
                0 => String::new(),
                1 => " and another condition".to_owned(),
                more => format!(" and {more} more conditions"),
            };
            format!("{}{more} exclude each other", shown.join(", "))
        }
    }
}

/// Writes a path, whichever name its root has.
fn show(path: &Path) -> String {
    let Path::Segments(segments) = path else { return format!("`{path}`") };
    let root = segments.iter().take(1).map(|root| match root {
        Segment::Key(key) if key.as_ref() == "facts" => Segment::Key("fact".into()),
        root => root.clone(),
    });
    format!("`{}`", Path::Segments(root.chain(segments.iter().skip(1).cloned()).collect()))
}
