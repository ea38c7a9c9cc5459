//! Values with a `$` that is not what it looks like.

use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::Kind;
use crate::hierarchy::GroupIndex;

pub(super) const CHECK: Check = Check {
    kinds: &[Kind::UninterpolatedValue, Kind::SuspiciousValue, Kind::SchemaViolation],
    scope: FindingScope::Group,
    run: Run::EachGroup(check),
};

fn check(context: &CheckContext<'_>, index: GroupIndex, findings: &mut Findings<'_>) {
    let group = context.hierarchy.group(index);
    let Some(file) = context.places.of(group.id) else { return };
    for found in file.dollars.iter().filter_map(|it| it.finding(context.interpolation)) {
        findings.add(index, found.in_group(group.name.as_str()));
    }
}
