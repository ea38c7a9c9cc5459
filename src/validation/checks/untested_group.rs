//! Groups that no test expects.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::gather::are_warnings;
use super::super::reading::{FileParts, FileReading};
use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::{Diagnostic, Kind};

pub(super) const CHECK: Check =
    Check { kinds: &[Kind::UntestedGroup], scope: FindingScope::Group, run: Run::Once(check) };

/// Looks for the name of every group that can match among the groups that tests expect: only these say
/// which nodes are in it. What the nodes of tests reach beyond is what `clade test --coverage` measures.
fn check(context: &CheckContext<'_>, findings: &mut Findings<'_>) {
    let Some(severity) = context.policy.groups.untested_groups.severity() else { return };
    // A file with errors may have had the tests.
    let is_lost = |it: &Arc<FileReading>| {
        let may_have_tests = matches!(it.parts, FileParts::Tests(_) | FileParts::Nothing);
        may_have_tests && !are_warnings(&it.diagnostics)
    };
    if context.places.readings.remarked().iter().any(is_lost) {
        return;
    }
    let tests = context.places.readings.iter().flat_map(|it| it.tests());
    let expected: HashSet<&str> =
        tests.flat_map(|it| it.expect.groups.iter().flatten()).map(String::as_str).collect();
    let hierarchy = context.hierarchy;
    for index in hierarchy.indexes().filter(|it| *it != hierarchy.root()) {
        let group = hierarchy.group(index);
        if group.rule.is_none() || expected.contains(group.name.as_str()) {
            continue;
        }
        findings.add_with(index, severity, || {
            let place = context.places.of(group.id)?.place();
            let message = format!("no test expects the group `{}`", group.name);
            let mut found = Diagnostic::new(Kind::UntestedGroup, place, message)
                .in_group(group.name.as_str())
                .with_help("add a test of one of its nodes that names it in `expect.groups`");
            found.severity = severity;
            Some(found)
        });
    }
}
