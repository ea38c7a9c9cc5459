//! Keys that the policy of the repository requires of every group.

use super::super::layout::ValidationPolicy;
use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::{Diagnostic, Kind};

pub(super) const CHECK: Check =
    Check { kinds: &[Kind::SchemaViolation], scope: FindingScope::Group, run: Run::Once(check) };

/// Checks every group as written: of several groups with one id, the tree has only one.
fn check(context: &CheckContext<'_>, findings: &mut Findings<'_>) {
    let ValidationPolicy { require_ids, require_description, .. } = context.policy;
    if !require_ids && !require_description {
        return;
    }
    for file in context.places.readings.iter().flat_map(|it| it.groups()) {
        let Some(group) = file.checked_group() else { continue };
        let (no_id, no_description) = match file.partial() {
            Some(partial) => (partial.lacks("id"), partial.lacks("description")),
            None => (file.id_place().is_none(), group.description.is_none()),
        };
        let (lacks_id, lacks_description) =
            (require_ids && no_id, require_description && no_description);
        if !lacks_id && !lacks_description {
            continue;
        }
        // Also a group that has no place in the tree, such as the second of a name.
        let index = context.hierarchy.find(group.id).unwrap_or_else(|| context.hierarchy.root());
        let diagnostic = |message: &str, help: &str| {
            Diagnostic::new(Kind::SchemaViolation, file.place(), message)
                .in_group(group.name.as_str())
                .with_help(help)
        };
        if lacks_id {
            let help = match file.id() {
                Some(id) => {
                    format!("write `id: {id}`, which it has now, or run `clade fmt --ids`")
                }
                None => "correct the other errors, then run `clade fmt --ids`".to_owned(),
            };
            let message = "the policy of this repository requires an `id`";
            findings.add(index, diagnostic(message, &help));
        }
        if lacks_description {
            let message = "the policy of this repository requires a `description`";
            findings.add(index, diagnostic(message, "say what the group is for"));
        }
    }
}
