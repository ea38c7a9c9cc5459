//! The checks of groups among each other, in one list.
//!
//! [`run`] runs the list over a commit, [`rerun`] over what a change affects; a check states on what
//! its findings depend ([`FindingScope`]), and that alone decides what is checked again. A new check is a
//! file here, with its module and its entry in [`CHECKS`]. Pairs of groups that can conflict are
//! searched for by [`overlap`](super::overlap), which no change narrows down.

mod affected;
mod catalogue_mismatch;
mod check;
mod class_use;
mod context;
mod facts_in_values;
mod lineage;
mod missing_referent;
mod never_matches;
mod parameter_type;
mod redundant_value;
mod repeated_rule;
mod required_keys;
mod scope;
mod too_many_pins;
mod unknown_environment;
mod untested_group;

use rayon::prelude::*;

pub(super) use affected::{Affected, Selection};
pub(super) use check::{Check, Finding, Findings, Run};
pub(super) use context::{CatalogueNames, CheckContext};
use scope::FindingScope;

use super::gather::sort_findings;
use crate::hierarchy::GroupIndex;

/// Every check.
pub(super) const CHECKS: &[Check] = &[
    missing_referent::CHECK,
    parameter_type::CHECK,
    unknown_environment::CHECK,
    required_keys::CHECK,
    never_matches::CHECK,
    redundant_value::CHECK,
    repeated_rule::CHECK,
    untested_group::CHECK,
    too_many_pins::CHECK,
    catalogue_mismatch::CHECK,
    facts_in_values::CHECK,
];

/// Runs every check over all groups; the findings are in the order in which they are shown.
pub(super) fn run(context: &CheckContext<'_>) -> Vec<Finding> {
    let found = CHECKS.iter().flat_map(|check| run_check(check, context, Selection::All));
    let mut findings: Vec<Finding> = found.collect();
    sort_findings(&mut findings);
    findings
}

/// Returns whether a finding in a group is the same among so many groups as among so many others, if
/// nothing else differs that it depends on.
pub(super) fn is_same_among(before: usize, after: usize) -> bool {
    never_matches::steps(before) == never_matches::steps(after)
}

/// Brings earlier findings up to date: drops those that a change affects, and runs every check over
/// the groups concerned.
pub(super) fn rerun(
    context: &CheckContext<'_>,
    affected: &Affected<'_>,
    before: &[Finding],
) -> Vec<Finding> {
    let stays = |it: &Finding| {
        let group = affected.place_of(it.group)?;
        (!affected.has(it.scope, group)).then(|| Finding { group, ..it.clone() })
    };
    let mut findings: Vec<Finding> = before.iter().filter_map(stays).collect();
    let selection = Selection::Affected(affected);
    findings.extend(CHECKS.iter().flat_map(|check| run_check(check, context, selection)));
    sort_findings(&mut findings);
    findings
}

fn run_check(check: &Check, context: &CheckContext<'_>, selection: Selection<'_>) -> Vec<Finding> {
    let findings = || Findings::new(check, selection, context.meter);
    let mut found = findings();
    match check.run {
        Run::Once(function) => function(context, &mut found),
        Run::EachGroup(function) => {
            for group in selection.groups(check.scope, context.hierarchy) {
                function(context, group, &mut found);
            }
        }
        Run::EachSubtree(function) => {
            let tops: Vec<GroupIndex> = selection.tops(context.hierarchy);
            let of_subtree = |top: GroupIndex| {
                let mut found = findings();
                function(context, top, &mut found);
                found.into_vec()
            };
            return tops.into_par_iter().flat_map_iter(of_subtree).collect();
        }
    }
    found.into_vec()
}
