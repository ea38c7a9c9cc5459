//! Which groups give nodes the same in two hierarchies.

use super::{GroupIndex, Hierarchy};
use crate::model::Group;

impl Hierarchy {
    /// Returns the places of some groups in another hierarchy, if they, all their ancestors and the root group give nodes
    /// the same there: only descriptions, the order of keys in values and what rules say may differ.
    pub(crate) fn alike_in(
        &self,
        other: &Self,
        groups: &[GroupIndex],
    ) -> Option<Box<[GroupIndex]>> {
        let place = |index: GroupIndex| {
            let place = other.find(self.group(index).id)?;
            let mut theirs = other.lineage(place);
            let is_alike = |ours: GroupIndex| {
                theirs.next().is_some_and(|it| are_alike(self.group(ours), other.group(it)))
            };
            self.lineage(index).all(is_alike).then_some(place)
        };
        // It decides also where no group matches.
        place(self.root())?;
        groups.iter().map(|it| place(*it)).collect()
    }
}

/// Returns whether two groups give nodes the same, under the same name.
fn are_alike(one: &Group, other: &Group) -> bool {
    let Group {
        id, name, environment, environment_trumps, classes, variables, config_data, ..
    } = one;
    // A group without a rule is not named among those that match.
    let has_rule = |it: &Group| it.rule.is_some();
    std::ptr::eq(one, other)
        || (id, name, has_rule(one)) == (&other.id, &other.name, has_rule(other))
            && (environment, environment_trumps) == (&other.environment, &other.environment_trumps)
            && (classes, variables, config_data)
                == (&other.classes, &other.variables, &other.config_data)
}
