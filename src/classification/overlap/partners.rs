//! Which groups of a cause can have a pair with a later one.

use std::collections::BTreeMap;

use super::cause::Definer;
use crate::hierarchy::{GroupIndex, Hierarchy};

/// The definers before one that have a bearer which is not above it.
///
/// A group and one above it have no pair, so a chain of groups that override each other has none: it must not take the
/// square of its length to see that. Nor must groups that have the same value take the square of their number.
pub(super) struct Partners<'c> {
    hierarchy: &'c Hierarchy,
    definers: &'c [Definer],
    /// The definers above the latest, the nearest last.
    above: Vec<Above>,
    /// The numbers of those that can have a pair, in order.
    apart: Vec<usize>,
    /// The same by value.
    by_value: BTreeMap<Option<usize>, Vec<usize>>,
    /// Those with other values than the latest, in order, where they are few.
    others: Vec<usize>,
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
        let by_value = BTreeMap::new();
        let (above, apart, others) = (Vec::new(), Vec::new(), Vec::new());
        Self { hierarchy, definers, above, apart, by_value, others }
    }

    /// Returns the numbers of those that can have a pair with a definer, in order: all that have another value, and at
    /// most as many that have the same. Each definer is asked about once, in order.
    pub(super) fn of(&mut self, number: usize, definer: &Definer) -> &[usize] {
        self.leave(definer.group);
        if let Some(nearest) = self.above.last() {
            // All bearers of those further up are where they were for the nearest.
            let is_above = |it: GroupIndex| self.hierarchy.is_ancestor(it, definer.group);
            let has_none = nearest.is_chain && nearest.last_bearer.is_none_or(is_above);
            let number = nearest.number;
            let value = self.definers.get(number).and_then(|it| it.value);
            for numbers in [&mut self.apart, self.by_value.entry(value).or_default()] {
                match (numbers.binary_search(&number), has_none) {
                    (Ok(at), true) => drop(numbers.remove(at)),
                    (Err(at), false) => numbers.insert(at, number),
                    (Ok(_), false) | (Err(_), true) => {}
                }
            }
        }
        let mut pairs = definer.bearers.iter().zip(definer.bearers.iter().skip(1));
        self.above.push(Above {
            number,
            group: definer.group,
            is_chain: pairs.all(|(one, next)| self.hierarchy.is_ancestor(*one, *next)),
            last_bearer: definer.bearers.last().copied(),
        });
        self.apart_from(definer.value)
    }

    fn apart_from(&mut self, value: Option<usize>) -> &[usize] {
        let alike = self.by_value.get(&value).map_or(0, Vec::len);
        if alike <= self.apart.len() / 2 {
            return &self.apart;
        }
        self.others.clear();
        let others = self.by_value.iter().filter(|(it, _)| **it != value);
        self.others.extend(others.flat_map(|(_, numbers)| numbers));
        self.others.sort_unstable();
        &self.others
    }

    /// Puts the definers that are not above a group beside it, and all that follow.
    fn leave(&mut self, group: GroupIndex) {
        let is_above = |it: &Above| self.hierarchy.is_ancestor(it.group, group);
        let kept = self.above.iter().rposition(is_above).map_or(0, |it| it + 1);
        let left: Vec<usize> = self.above.drain(kept..).map(|it| it.number).collect();
        let Some(first) = left.first() else { return };
        let before = self.apart.partition_point(|it| it < first);
        let mut behind = self.apart.split_off(before);
        for number in left {
            let Some(definer) = self.definers.get(number) else { continue };
            if definer.bearers.is_empty() {
                continue;
            }
            behind.push(number);
            let alike = self.by_value.entry(definer.value).or_default();
            if let Err(at) = alike.binary_search(&number) {
                alike.insert(at, number);
            }
        }
        behind.sort_unstable();
        behind.dedup();
        self.apart.append(&mut behind);
    }
}
