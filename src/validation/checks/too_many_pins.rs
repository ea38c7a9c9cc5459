//! Groups that pin so many nodes that a rule would say it better.

use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::{Diagnostic, Kind};
use crate::hierarchy::GroupIndex;
use crate::rule::parts;

pub(super) const CHECK: Check =
    Check { kinds: &[Kind::TooManyPins], scope: FindingScope::Group, run: Run::EachGroup(check) };

fn check(context: &CheckContext<'_>, index: GroupIndex, findings: &mut Findings<'_>) {
    let policy = context.policy.groups;
    let Some(severity) = policy.too_many_pins.severity() else { return };
    let group = context.hierarchy.group(index);
    let Some(rule) = group.rule.as_deref() else { return };
    let (_, pins) = parts(rule);
    // Every rule of one name looks like a pin, too.
    if pins.len() <= policy.max_pins as usize || pins.len() < 2 {
        return;
    }
    findings.add_with(index, severity, || {
        let written = context.places.of(group.id)?;
        let first = written.pin_places().next();
        let place =
            first.or_else(|| written.rule_place()).unwrap_or_else(|| written.place());
        let allowed = policy.max_pins;
        let message = format!("{} nodes are pinned, the policy allows {allowed}", pins.len());
        let mut found = Diagnostic::new(Kind::TooManyPins, place, message)
            .in_group(group.name.as_str())
            .with_help(
                "write a rule for what these nodes have in common, such as a fact or a trusted extension",
            );
        found.severity = severity;
        Some(found)
    });
}
