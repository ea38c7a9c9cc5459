//! Which groups of a cause can have a pair with a later one.

use super::cause::Definer;
use crate::hierarchy::{GroupIndex, Hierarchy};

/// The definers before one that have a bearer which is not above it.
///
/// A group and one above it have no pair, so a chain of groups that override each other has none: it must not take the
/// square of its length to see that.
pub(super) struct Partners<'c> {
    hierarchy: &'c Hierarchy,
    definers: &'c [Definer],
    /// The definers above the latest, the nearest last.
    above: Vec<Above>,
    /// The numbers of those that can have a pair, in order.
    apart: Vec<usize>,
}

/// A definer that stands above the latest.
struct Above {
    number: usize,
    group: GroupIndex,
    /// Whether each of its bearers is above the next, so that all may be above another group.
    is_chain: bool,
    last_bearer: Option<GroupIndex>,
}

impl<'c> Partners<'c> {
    pub(super) fn new(hierarchy: &'c Hierarchy, definers: &'c [Definer]) -> Self {
        Self { hierarchy, definers, above: Vec::new(), apart: Vec::new() }
    }

    /// Returns the numbers of those that can have a pair with a definer, in order. Each definer is asked about once, in
    /// order.
    pub(super) fn of(&mut self, number: usize, definer: &Definer) -> &[usize] {
        self.leave(definer.group);
        if let Some(nearest) = self.above.last() {
            // All bearers of those further up are where they were for the nearest.
            let is_above = |it: GroupIndex| self.hierarchy.is_ancestor(it, definer.group);
            let has_none = nearest.is_chain && nearest.last_bearer.is_none_or(is_above);
            match (self.apart.binary_search(&nearest.number), has_none) {
                (Ok(at), true) => drop(self.apart.remove(at)),
                (Err(at), false) => self.apart.insert(at, nearest.number),
                (Ok(_), false) | (Err(_), true) => {}
            }
        }
        let mut pairs = definer.bearers.iter().zip(definer.bearers.iter().skip(1));
        self.above.push(Above {
            number,
            group: definer.group,
            is_chain: pairs.all(|(one, next)| self.hierarchy.is_ancestor(*one, *next)),
            last_bearer: definer.bearers.last().copied(),
        });
        &self.apart
    }

    /// Puts the definers that are not above a group beside it, and all that follow.
    fn leave(&mut self, group: GroupIndex) {
        let is_above = |it: &Above| self.hierarchy.is_ancestor(it.group, group);
        let kept = self.above.iter().rposition(is_above).map_or(0, |it| it + 1);
        let left: Vec<usize> = self.above.drain(kept..).map(|it| it.number).collect();
        let Some(first) = left.first() else { return };
        let before = self.apart.partition_point(|it| it < first);
        let has_bearers =
            |it: &usize| self.definers.get(*it).is_some_and(|it| !it.bearers.is_empty());
        let mut behind = self.apart.split_off(before);
        behind.extend(left.into_iter().filter(has_bearers));
        behind.sort_unstable();
        behind.dedup();
        self.apart.append(&mut behind);
    }
}
