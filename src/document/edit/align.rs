//! Which elements of one list are those of another.

use serde_json::Value;

use super::same::same;

/// What became of an element of the old list, or where one of the new list comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlignStep {
    /// The element of the old list is this one of the new list; it may have changed.
    Keep { old: usize, new: usize },
    /// The element of the old list is gone.
    Remove { old: usize },
    /// The element of the new list is put in here.
    Insert { new: usize },
}

/// The largest table that is filled to find what two lists have in common.
const TABLE: usize = 1 << 20;

/// Aligns two lists so that as much as possible is kept.
pub(super) fn align(old: &[Value], new: &[Value]) -> Vec<AlignStep> {
    let head = old.iter().zip(new).take_while(|(a, b)| same(a, b)).count();
    let rest = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| same(a, b)).count();
    let middle_old = old.get(head..old.len() - tail).unwrap_or_default();
    let middle_new = new.get(head..new.len() - tail).unwrap_or_default();
    let mut steps: Vec<AlignStep> =
        (0..head).map(|at| AlignStep::Keep { old: at, new: at }).collect();
    let common = common(middle_old, middle_new);
    let ends = [(middle_old.len(), middle_new.len())];
    let (mut from_old, mut from_new) = (0, 0);
    for (to_old, to_new) in common.into_iter().chain(ends) {
        let gone = to_old - from_old;
        let come = to_new - from_new;
        // Of what stands in the place of another, the parts that agree are kept.
        let changed = gone.min(come);
        steps.extend(
            (0..changed)
                .map(|it| AlignStep::Keep { old: head + from_old + it, new: head + from_new + it }),
        );
        steps.extend((changed..gone).map(|it| AlignStep::Remove { old: head + from_old + it }));
        steps.extend((changed..come).map(|it| AlignStep::Insert { new: head + from_new + it }));
        if to_old < middle_old.len() {
            steps.push(AlignStep::Keep { old: head + to_old, new: head + to_new });
        }
        (from_old, from_new) = (to_old + 1, to_new + 1);
    }
    let (tail_old, tail_new) = (old.len() - tail, new.len() - tail);
    steps.extend((0..tail).map(|it| AlignStep::Keep { old: tail_old + it, new: tail_new + it }));
    steps
}

/// Returns the places of a longest common subsequence; none where the lists are very long.
fn common(old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    if old.is_empty() || new.is_empty() || width.saturating_mul(old.len() + 1) > TABLE {
        return Vec::new();
    }
    // The length of the longest for what is left from here on, row by row from the end.
    let mut lengths = vec![0_u32; width * (old.len() + 1)];
    let length = |lengths: &[u32], row: usize, column: usize| {
        lengths.get(row * width + column).copied().unwrap_or(0)
    };
    for (row, a) in old.iter().enumerate().rev() {
        for (column, b) in new.iter().enumerate().rev() {
            let best = if same(a, b) {
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
        if same(a, b) {
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
