//! What two long lists have in common, in their order.

use std::collections::HashMap;

/// The largest table that is filled to find a longest common subsequence.
const TABLE: usize = 1 << 20;

/// How many cells of tables and elements of lists all stretches of two lists may take; what is left is not
/// compared.
const WORK: usize = 1 << 24;

/// Two stretches, one of each list, where nothing is known to be common yet.
struct Stretch {
    old: (usize, usize),
    new: (usize, usize),
}

/// Returns the places of a common subsequence: a longest one for lists that are short or differ in one stretch.
/// In long ones, values that both have equally often divide the lists, as unique lines do in `git diff --patience`.
pub(super) fn common(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut work = WORK;
    let mut open = vec![Stretch { old: (0, old.len()), new: (0, new.len()) }];
    while let Some(stretch) = open.pop() {
        let stretch = trimmed(old, new, &stretch, &mut found);
        let a = old.get(stretch.old.0..stretch.old.1).unwrap_or_default();
        let b = new.get(stretch.new.0..stretch.new.1).unwrap_or_default();
        if a.is_empty() || b.is_empty() {
            continue;
        }
        let cells = (a.len() + 1).saturating_mul(b.len() + 1);
        let is_small = cells <= TABLE;
        let Some(left) = work.checked_sub(if is_small { cells } else { a.len() + b.len() }) else {
            continue;
        };
        work = left;
        let pairs = if is_small { longest(a, b) } else { anchors(a, b) };
        let (first_old, first_new) = (stretch.old.0, stretch.new.0);
        let pairs = pairs.into_iter().map(|(old, new)| (first_old + old, first_new + new));
        if is_small {
            found.extend(pairs);
            continue;
        }
        let (mut from, before) = ((first_old, first_new), found.len());
        found.extend(pairs);
        let divided = found.len() > before;
        let ends = [(stretch.old.1, stretch.new.1)];
        for &(to_old, to_new) in found.get(before..).unwrap_or_default().iter().chain(&ends) {
            if divided {
                open.push(Stretch { old: (from.0, to_old), new: (from.1, to_new) });
            }
            from = (to_old + 1, to_new + 1);
        }
    }
    found.sort_unstable();
    found
}

/// Takes what is common at both ends of a stretch off, and adds it to what is found.
fn trimmed(
    old: &[usize],
    new: &[usize],
    stretch: &Stretch,
    found: &mut Vec<(usize, usize)>,
) -> Stretch {
    let (mut from, mut to) = ((stretch.old.0, stretch.new.0), (stretch.old.1, stretch.new.1));
    while from.0 < to.0 && from.1 < to.1 && old.get(from.0) == new.get(from.1) {
        found.push(from);
        from = (from.0 + 1, from.1 + 1);
    }
    while from.0 < to.0 && from.1 < to.1 && old.get(to.0 - 1) == new.get(to.1 - 1) {
        to = (to.0 - 1, to.1 - 1);
        found.push(to);
    }
    Stretch { old: (from.0, to.0), new: (from.1, to.1) }
}

/// Returns the places of a longest common subsequence.
fn longest(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    // The length of the longest for what is left from here on, row by row from the end.
    let mut lengths = vec![0_u32; width * (old.len() + 1)];
    let length = |lengths: &[u32], row: usize, column: usize| {
        lengths.get(row * width + column).copied().unwrap_or(0)
    };
    for (row, a) in old.iter().enumerate().rev() {
        for (column, b) in new.iter().enumerate().rev() {
            let best = if a == b {
                length(&lengths, row + 1, column + 1) + 1
            } else {
                length(&lengths, row + 1, column).max(length(&lengths, row, column + 1))
            };
            if let Some(cell) = lengths.get_mut(row * width + column) {
                *cell = best;
            }
        }
    }
    let mut found = Vec::new();
    let (mut row, mut column) = (0, 0);
    while let (Some(a), Some(b)) = (old.get(row), new.get(column)) {
        if a == b {
            found.push((row, column));
            row += 1;
            column += 1;
        } else if length(&lengths, row + 1, column) >= length(&lengths, row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    found
}

/// Returns places in order where two lists have the same value: of values that both have equally often the first
/// with the first, the second with the second; of all values if there is none of those.
fn anchors(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let places = |list: &[usize]| {
        let mut places: HashMap<usize, Vec<usize>> = HashMap::new();
        for (place, value) in list.iter().enumerate() {
            places.entry(*value).or_default().push(place);
        }
        places
    };
    let (in_old, in_new) = (places(old), places(new));
    let pairs = |is_anchor: &dyn Fn(&[usize], &[usize]) -> bool| {
        let shared = in_old.iter().filter_map(|(value, old)| Some((old, in_new.get(value)?)));
        let anchors = shared.filter(|(old, new)| is_anchor(old, new));
        let mut pairs: Vec<(usize, usize)> =
            anchors.flat_map(|(old, new)| old.iter().copied().zip(new.iter().copied())).collect();
        pairs.sort_unstable();
        pairs
    };
    let mut found = pairs(&|old, new| old.len() == new.len());
    if found.is_empty() {
        found = pairs(&|_, _| true);
    }
    rising(&found)
}

/// Returns as many pairs as possible whose second places rise, of pairs whose first places do.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let second = |at: &usize| pairs.get(*at).map(|it| it.1);
    // The pair with the least second place that ends a series of each length, and the pair before each.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|it| second(it) < Some(pair.1));
        before.push(length.checked_sub(1).and_then(|it| ends.get(it)).copied());
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let last = ends.last().copied();
    let chain = std::iter::successors(last, |at| before.get(*at).copied().flatten());
    let mut found: Vec<(usize, usize)> = chain.filter_map(|at| pairs.get(at).copied()).collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

        #[test]
        fn anchors_are_common_and_rise(
            old in prop::collection::vec(0..20_usize, 0..60),
            new in prop::collection::vec(0..20_usize, 0..60),
        ) {
            for pairs in [anchors(&old, &new), common(&old, &new)] {
                prop_assert!(pairs.iter().all(|(a, b)| old[*a] == new[*b]));
                prop_assert!(pairs.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{pairs:?}");
            }
            let has_common = old.iter().any(|it| new.contains(it));
            prop_assert_eq!(anchors(&old, &new).is_empty(), !has_common);
        }
    }
}
