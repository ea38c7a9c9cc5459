//! In which groups a class or a parameter that a group sets comes out.

use super::CheckContext;
use crate::diagnostic::Diagnostic;
use crate::hierarchy::GroupIndex;
use crate::model::{ClassName, EnvironmentName, Key, Table, Value};

/// A class, or one of its parameters, that a group sets, in one environment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassUse<'h> {
    pub(super) source: GroupIndex,
    pub(super) class: &'h ClassName,
    /// None stands for the class itself.
    pub(super) parameter: Option<&'h Key>,
    pub(super) environment: &'h EnvironmentName,
}

impl ClassUse<'_> {
    /// Returns the first group of the environment in which this comes out, its own or inherited.
    pub(super) fn user(&self, context: &CheckContext<'_>) -> Option<GroupIndex> {
        let (hierarchy, doubtful) = (context.hierarchy, &context.incomplete.classes);
        let end = hierarchy.end(self.source);
        let mut next = Some(self.source);
        while let Some(index) = next.filter(|it| *it < end) {
            let group = hierarchy.group(index);
            // A class cannot be taken away below, a parameter can be set otherwise or removed.
            let sets = |it: &Table<Key, Value>| {
                self.parameter.is_some_and(|parameter| it.contains_key(parameter))
            };
            let may_set = || {
                let is_doubtful = self.parameter.is_some() && doubtful.contains(&group.id);
                is_doubtful || group.classes.get(self.class).is_some_and(sets)
            };
            if index != self.source && may_set() {
                // Groups below this one get its value.
                next = hierarchy.at(hierarchy.end(index).number());
            } else if group.environment == *self.environment {
                return Some(index);
            } else {
                next = hierarchy.at(index.number() + 1);
            }
        }
        None
    }

    /// Adds the place of a group that inherits this to a finding about it.
    pub(super) fn show_user(
        &self,
        user: GroupIndex,
        found: Diagnostic,
        context: &CheckContext<'_>,
    ) -> Diagnostic {
        let heir = context.hierarchy.group(user);
        match context.places.of(heir.id).filter(|_| user != self.source) {
            Some(written) => {
                let place = written.environment_place().unwrap_or_else(|| written.place());
                let message = format!("`{}` inherits it in `{}`", heir.name, self.environment);
                found.with_related(place, message)
            }
            None => found,
        }
    }
}
