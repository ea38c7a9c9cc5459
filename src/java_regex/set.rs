//! Sets of code points.

use std::sync::Arc;

/// A set of code points: ranges in order that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CodeSet(Ranges);

/// Most sets are one character, which takes no memory of its own. Copies of others share theirs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Ranges {
    /// One range.
    One([(u32, u32); 1]),
    /// None or several.
    Other(Arc<[(u32, u32)]>),
}

impl Default for Ranges {
    fn default() -> Self {
        Self::Other(Arc::default())
    }
}

/// The last code point.
const LAST: u32 = 0x0010_ffff;

impl CodeSet {
    pub(super) fn all() -> Self {
        Self::range(0, LAST)
    }

    pub(super) fn of(character: u32) -> Self {
        Self::range(character, character)
    }

    pub(super) fn range(first: u32, last: u32) -> Self {
        Self(Ranges::One([(first, last)]))
    }

    /// Makes a set of ranges in order that neither touch nor overlap.
    fn of_disjoint(ranges: &[(u32, u32)]) -> Self {
        Self(match ranges {
            [only] => Ranges::One([*only]),
            ranges => Ranges::Other(ranges.into()),
        })
    }

    /// Makes a set of ranges in any order.
    pub(super) fn of_ranges(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut ranges: Vec<(u32, u32)> = ranges.into_iter().collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        Self::of_disjoint(&joined)
    }

    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        match &self.0 {
            Ranges::One(only) => only,
            Ranges::Other(ranges) => ranges,
        }
    }

    /// Returns the character of a set of one, unless it is a surrogate.
    pub(super) fn only(&self) -> Option<char> {
        match self.ranges() {
            [(first, last)] if first == last => char::from_u32(*first),
            _ => None,
        }
    }

    pub(super) fn contains(&self, character: u32) -> bool {
        let ranges = self.ranges();
        let at = ranges.partition_point(|(_, last)| *last < character);
        ranges.get(at).is_some_and(|(first, _)| *first <= character)
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self::of_ranges(self.ranges().iter().chain(other.ranges()).copied())
    }

    pub(super) fn negate(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges().len() + 1);
        let mut next = 0;
        for (first, last) in self.ranges() {
            if *first > next {
                ranges.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            ranges.push((next, LAST));
        }
        Self::of_disjoint(&ranges)
    }

    pub(super) fn intersect(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        let (mut left, mut right) =
            (self.ranges().iter().peekable(), other.ranges().iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let (first, last) = (a.0.max(b.0), a.1.min(b.1));
            if first <= last {
                ranges.push((first, last));
            }
            if a.1 < b.1 {
                left.next()
            } else {
                right.next()
            };
        }
        Self::of_disjoint(&ranges)
    }
}

/// Returns what `\v` stands for, and what `\R` takes one of.
pub(super) fn vertical() -> CodeSet {
    CodeSet::of_ranges([(0x0a, 0x0d), (0x85, 0x85), (0x2028, 0x2029)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_follow_the_laws() {
        let set = |ranges: &[(u32, u32)]| CodeSet::of_ranges(ranges.iter().copied());
        let a = set(&[(5, 9), (0, 2), (3, 3), (20, 30)]);
        assert_eq!(a.ranges(), [(0, 3), (5, 9), (20, 30)]);
        assert_eq!(a.negate().negate(), a);
        assert_eq!(a.intersect(&set(&[(2, 6), (25, 40)])).ranges(), [(2, 3), (5, 6), (25, 30)]);
        assert_eq!(a.union(&a.negate()), CodeSet::all());
        assert_eq!(a.intersect(&a.negate()), CodeSet::default());
        assert_eq!(a.intersect(&set(&[(2, 2), (10, 19)])).only(), Some('\u{2}'));
        for set in [a.clone(), CodeSet::default(), CodeSet::range(5, 6), CodeSet::of(0xd800)] {
            assert_eq!(set.only(), None, "{set:?}");
        }
        for (character, inside) in
            [(0, true), (4, false), (9, true), (10, false), (30, true), (31, false)]
        {
            assert_eq!(a.contains(character), inside, "{character}");
        }
    }
}
