//! What tells one change from others: names, values, and the numbers of its causes.

use super::digest::TextDigest;
use super::nodes::{Change, ChangeRef, Difference};
use super::shared_value::SharedValue;

impl Change {
    /// Returns a digest that only equal changes have.
    pub(super) fn digest(&self) -> TextDigest {
        let causes: Vec<(u8, usize)> = self
            .causes
            .changes()
            .iter()
            .map(|it| match it {
                ChangeRef::Group(at) => (0, *at),
                ChangeRef::NodeFile(at) => (1, *at),
                ChangeRef::Interpolation => (2, 0),
            })
            .collect();
        let decision = self.causes.as_str();
        // What follows the word has another form for each of them.
        match &self.what {
            Difference::Entered(group) => TextDigest::of(&("entered", group, decision, causes)),
            Difference::Left(group) => TextDigest::of(&("left", group, decision, causes)),
            Difference::Renamed { from, to } => {
                TextDigest::of(&("renamed", from, to, decision, causes))
            }
            Difference::Conflict(it) => {
                TextDigest::of(&("conflict", &it.old, &it.new, decision, causes))
            }
            Difference::Error(it) => TextDigest::of(&("error", &it.old, &it.new, decision, causes)),
            Difference::Environment { old, new } => {
                TextDigest::of(&("environment", old, new, decision, causes))
            }
            Difference::ClassAdded(class) => TextDigest::of(&("added", class, decision, causes)),
            Difference::ClassRemoved(class) => {
                TextDigest::of(&("removed", class, decision, causes))
            }
            Difference::Value(it) => {
                let values = [&it.old, &it.new].map(|it| it.as_ref().map(SharedValue::digest));
                let name = (it.kind.as_str(), &it.class, &it.name);
                TextDigest::of(&("value", name, values, decision, causes))
            }
        }
    }
}
