//! What two groups can conflict in.

use super::setting::Setting;
use crate::classification::{ConflictingLeaves, Conflicts};
use crate::hierarchy::GroupIndex;
use crate::model::same;

/// What two groups differ in. The values of two leaves always conflict; their environments do
/// where no other trumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Subject {
    Values,
    Environment,
}

/// The groups of a pair, the first of the repository first, and what it is about.
pub(super) type PairKey = (GroupIndex, GroupIndex, Subject);

/// Returns whether two leaves take part in a conflict about a setting with different values.
pub(super) fn differences(
    conflicts: &Conflicts<'_>,
    setting: Setting<'_>,
    one: GroupIndex,
    other: GroupIndex,
) -> bool {
    let leaves: Option<&ConflictingLeaves<'_>> = match setting {
        Setting::Environment => {
            let of = |group| conflicts.environment.iter().find(|it| it.from == group);
            return of(one)
                .zip(of(other))
                .is_some_and(|(one, other)| !same(&one.value, &other.value));
        }
        Setting::Variable(name) => conflicts.variables.get(name),
        Setting::Parameter(class, name) => conflicts.classes.get(class).and_then(|it| it.get(name)),
        Setting::ConfigData(class, name) => {
            conflicts.config_data.get(class).and_then(|it| it.get(name))
        }
    };
    let shares = leaves.and_then(|it| it.of(one).zip(it.of(other)));
    shares.is_some_and(|(one, other)| !same(&one.value, &other.value))
}
