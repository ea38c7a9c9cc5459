//! Rules that repeat what the rules of ancestors demand already.

use std::collections::BTreeSet;

use super::lineage::ancestors;
use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::document::bounded;
use crate::hierarchy::GroupIndex;
use crate::model::{Condition, Path, Segment};
use crate::rule::parts;
use crate::wording::listed;

/// A rule with more conditions that must all hold is not compared; what bounds the comparisons.
const JOINED: usize = 32;

/// How many conditions a message names.
const SHOWN: usize = 3;

pub(super) const CHECK: Check = Check {
    kinds: &[Kind::RepeatedRule],
    scope: FindingScope::Ancestors,
    run: Run::EachGroup(check),
};

/// Looks for the conditions of a group among those that must hold for its ancestors.
fn check(context: &CheckContext<'_>, index: GroupIndex, findings: &mut Findings<'_>) {
    let Some(severity) = context.policy.groups.repeated_rules.severity() else { return };
    let hierarchy = context.hierarchy;
    let Some(whole) = hierarchy.group(index).rule.as_deref() else { return };
    // Nearly always there are none, and then the ids of groups need not be read.
    let without_pins = Some(&context.incomplete.pins).filter(|it| !it.is_empty());
    let has_pins =
        |it: &GroupIndex| without_pins.is_none_or(|ids| !ids.contains(&hierarchy.group(*it).id));
    // Every node matches the rule of the root group: to repeat it says so, and nothing else does.
    let above: Vec<(GroupIndex, Vec<&Condition>)> = ancestors(hierarchy, index)
        .filter(|it| *it != hierarchy.root())
        .filter(has_pins)
        .filter_map(|it| Some((it, joined(hierarchy.group(it).rule.as_deref()?)?)))
        .collect();
    // A pinned node must match the ancestors as well, so what is beside the pins can be compared alone.
    let own = [Some(whole), parts(whole).0].into_iter().flatten().find_map(|rule| {
        let own = joined(rule)?;
        let repeated = repeated(&own, &above);
        (!repeated.is_empty()).then_some((own.len(), repeated))
    });
    let Some((count, repeated)) = own else { return };
    findings.add_with(index, severity, || report(context, index, count, &repeated, severity));
}

/// A condition, and the nearest ancestor that demands it.
type Repeated<'h> = (&'h Condition, GroupIndex);

fn repeated<'h>(
    own: &[&'h Condition],
    above: &[(GroupIndex, Vec<&'h Condition>)],
) -> Vec<Repeated<'h>> {
    let nearest = |condition: &&'h Condition| {
        let demands = |it: &&(GroupIndex, Vec<&Condition>)| {
            it.1.iter().any(|other| is_same(condition, other))
        };
        above.iter().find(demands).map(|(by, _)| (*condition, *by))
    };
    own.iter().filter_map(nearest).collect()
}

/// Returns the conditions of a rule that must all hold; `None` if they are too many to be compared.
fn joined(rule: &Condition) -> Option<Vec<&Condition>> {
    let (mut found, mut rest) = (Vec::new(), vec![rule]);
    while let Some(condition) = rest.pop() {
        match condition {
            Condition::Or(terms) if terms.len() > 1 => found.push(condition),
            // An `or` of one is that one.
            Condition::And(terms) | Condition::Or(terms) => rest.extend(terms.iter().rev()),
            Condition::Not(_) | Condition::Test(_) => found.push(condition),
        }
        if found.len() + rest.len() > JOINED {
            return None;
        }
    }
    Some(found)
}

/// Returns whether two conditions are the same, whichever name the root of a path has.
fn is_same(a: &Condition, b: &Condition) -> bool {
    match (a, b) {
        (Condition::And(a), Condition::And(b)) | (Condition::Or(a), Condition::Or(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Condition::Not(a), Condition::Not(b)) => is_same(a, b),
        (Condition::Test(a), Condition::Test(b)) => {
            a.comparison == b.comparison && is_same_path(&a.path, &b.path)
        }
        _ => false,
    }
}

fn is_same_path(a: &Path, b: &Path) -> bool {
    let (Path::Segments(a), Path::Segments(b)) = (a, b) else { return a == b };
    let is_fact = |it: &Segment| matches!(it, Segment::Key(root) if matches!(root.as_ref(), "fact" | "facts"));
    match (a.split_first(), b.split_first()) {
        (Some((a, of_a)), Some((b, of_b))) => (a == b || is_fact(a) && is_fact(b)) && of_a == of_b,
        _ => false,
    }
}

fn report(
    context: &CheckContext<'_>,
    index: GroupIndex,
    count: usize,
    repeated: &[Repeated<'_>],
    severity: Severity,
) -> Option<Diagnostic> {
    let group = context.hierarchy.group(index);
    let place = rule_place(context, index)?;
    let by: BTreeSet<GroupIndex> = repeated.iter().map(|(_, by)| *by).collect();
    let names: Vec<String> = by
        .iter()
        .rev()
        .take(SHOWN)
        .map(|by| format!("`{}`", context.hierarchy.group(*by).name))
        .collect();
    let names = names.join(" and ");
    let (message, help) = if repeated.len() == count {
        let rules = if by.len() == 1 { "that" } else { "those" };
        (
            format!(
                "the rule repeats {rules} of {names}: the group matches whenever its parent does"
            ),
            "narrow the rule, or move what the group sets to its parent",
        )
    } else {
        let quoted = |it: &Repeated<'_>| format!("`{}`", bounded(it.0.to_string()));
        let conditions = listed(repeated.iter().map(quoted), SHOWN);
        (
            format!("{conditions}: {names} demands the same"),
            "leave it out: a node must match the rules of its group's ancestors too",
        )
    };
    let mut found = Diagnostic::new(Kind::RepeatedRule, place, message)
        .in_group(group.name.as_str())
        .with_help(help);
    found.severity = severity;
    for by in by {
        if let Some(place) = rule_place(context, by) {
            let name = &context.hierarchy.group(by).name;
            found = found.with_related(place, format!("the rule of `{name}`"));
        }
    }
    Some(found)
}

fn rule_place(context: &CheckContext<'_>, index: GroupIndex) -> Option<Place> {
    let written = context.places.of(context.hierarchy.group(index).id)?;
    Some(written.rule_place().unwrap_or_else(|| written.place()))
}
