//! Environments of groups that no file describes.

use std::collections::BTreeMap;

use super::super::layout::Strictness;
use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::{Diagnostic, Kind, closest};
use crate::hierarchy::GroupIndex;
use crate::model::EnvironmentName;

pub(super) const CHECK: Check =
    Check { kinds: &[Kind::SuspiciousValue], scope: FindingScope::Estate, run: Run::Once(check) };

fn check(context: &CheckContext<'_>, findings: &mut Findings<'_>) {
    for it in unknown(context) {
        if let Some(found) = report(&it, context) {
            findings.add(it.first, found);
        }
    }
}

/// The groups of an environment that no file describes.
struct Unknown<'h> {
    name: &'h EnvironmentName,
    /// The first group that names it.
    first: GroupIndex,
    others: usize,
}

/// Returns the environments that groups name and no file describes, if there are such files at all.
///
/// They may exist: r10k makes one of each branch. So this is a warning, once for each environment.
/// `production` exists wherever Puppet runs.
fn unknown<'h>(context: &CheckContext<'h>) -> Vec<Unknown<'h>> {
    let files = context.catalogues.files.as_ref();
    if files.is_empty() || context.policy.missing_referents == Strictness::Off {
        return Vec::new();
    }
    let mut found: BTreeMap<&EnvironmentName, Unknown<'h>> = BTreeMap::new();
    for index in context.hierarchy.indexes() {
        let name = &context.hierarchy.group(index).environment;
        if files.contains_key(name) || matches!(name.as_str(), "production" | "agent-specified") {
            continue;
        }
        let known = found.entry(name).and_modify(|it| it.others += 1);
        known.or_insert(Unknown { name, first: index, others: 0 });
    }
    // A group whose environment is not known has one that no other group has, and that is not written anywhere.
    let is_written = |it: &Unknown<'_>| {
        let written = context.places.of(context.hierarchy.group(it.first).id);
        written.is_none_or(|it| it.environment().is_some())
    };
    found.into_values().filter(is_written).collect()
}

/// Reports an environment at the first group that names it.
fn report(it: &Unknown<'_>, context: &CheckContext<'_>) -> Option<Diagnostic> {
    let group = context.hierarchy.group(it.first);
    let place = context.places.of(group.id)?.environment_place()?;
    let others = match it.others {
        0 => String::new(),
        1 => ", which another group names too".to_owned(),
        more => format!(", which {more} more groups name too"),
    };
    let message = format!("no file describes the environment `{}`{others}", it.name);
    let known = context.catalogues.files.keys().map(EnvironmentName::as_str);
    let help = match closest(it.name.as_str(), known.chain(["production"])) {
        Some(similar) => format!("did you mean `{similar}`?"),
        // It may be the one whose name could not be read.
        None if context.catalogues.has_nameless => return None,
        None => format!(
            "correct the name; if the environment exists, add the file `{}.yaml` with `name: {}` to the directory of environments",
            it.name, it.name
        ),
    };
    Some(
        Diagnostic::new(Kind::SuspiciousValue, place, message)
            .in_group(group.name.as_str())
            .with_help(help),
    )
}
