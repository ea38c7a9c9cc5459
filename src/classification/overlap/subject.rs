//! What two groups can conflict in.

use super::setting::Setting;
use crate::classification::{ConflictShare, Conflicts};
use crate::hierarchy::GroupIndex;
use crate::model::same;

/// What two groups differ in. The values of two leaves always conflict; their environments do
/// where no other trumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Subject {
    Values,
    Environment,
}

/// Returns whether two leaves take part in a conflict about a setting with different values.
pub(super) fn differences(
    conflicts: &Conflicts<'_>,
    setting: Setting<'_>,
    one: GroupIndex,
    other: GroupIndex,
) -> bool {
    let differences: Option<&Vec<ConflictShare<'_>>> = match setting {
        Setting::Environment => Some(&conflicts.environment),
        Setting::Variable(name) => conflicts.variables.get(name),
        Setting::Parameter(class, name) => conflicts.classes.get(class).and_then(|it| it.get(name)),
        Setting::ConfigData(class, name) => {
            conflicts.config_data.get(class).and_then(|it| it.get(name))
        }
    };
    let of = |group: GroupIndex| differences?.iter().find(|it| it.from == group);
    matches!((of(one), of(other)), (Some(one), Some(other)) if !same(&one.value, &other.value))
}
