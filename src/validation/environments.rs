//! Environments of groups that no file describes.

use std::collections::BTreeMap;

use super::findings::Ground;
use super::layout::Strictness;
use crate::diagnostic::{Diagnostic, Kind, closest};
use crate::hierarchy::GroupIndex;
use crate::model::EnvironmentName;

/// The groups of an environment that no file describes.
pub(super) struct Unknown<'h> {
    name: &'h EnvironmentName,
    /// The first group that names it.
    pub(super) first: GroupIndex,
    others: usize,
}

/// Returns the environments that groups name and no file describes, if there are such files at all.
///
/// They may exist: r10k makes one of each branch. So this is a warning, once for each environment.
/// `production` exists wherever Puppet runs.
pub(super) fn unknown<'h>(ground: &Ground<'h>) -> Vec<Unknown<'h>> {
    let files = ground.catalogues.files.as_ref();
    if files.is_empty() || ground.strictness == Strictness::Off {
        return Vec::new();
    }
    let mut found: BTreeMap<&EnvironmentName, Unknown<'h>> = BTreeMap::new();
    for index in ground.hierarchy.indexes() {
        let name = &ground.hierarchy.group(index).environment;
        if files.contains_key(name) || matches!(name.as_str(), "production" | "agent-specified") {
            continue;
        }
        let known = found.entry(name).and_modify(|it| it.others += 1);
        known.or_insert(Unknown { name, first: index, others: 0 });
    }
    found.into_values().collect()
}

/// Reports an environment at the first group that names it.
pub(super) fn report(it: &Unknown<'_>, ground: &Ground<'_>) -> Option<Diagnostic> {
    let group = ground.hierarchy.group(it.first);
    let place = ground.places.of(group.id)?.environment.clone()?;
    let others = match it.others {
        0 => String::new(),
        1 => ", which another group names too".to_owned(),
        more => format!(", which {more} more groups name too"),
    };
    let message = format!("no file describes the environment `{}`{others}", it.name);
    let known = ground.catalogues.files.keys().map(EnvironmentName::as_str);
    let help = match closest(it.name.as_str(), known.chain(["production"])) {
        Some(similar) => format!("did you mean `{similar}`?"),
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
