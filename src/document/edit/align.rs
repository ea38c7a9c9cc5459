//! Which elements of one list are those of another.

use serde_json::Value;

use super::numbering::numbered;
use super::subsequence::common;

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

/// Aligns two lists so that as much as possible is kept.
pub(super) fn align(old: &[Value], new: &[Value]) -> Vec<AlignStep> {
    let (old, new) = numbered(old, new);
    let mut steps: Vec<AlignStep> = Vec::with_capacity(old.len().max(new.len()));
    let end = (old.len(), new.len());
    let (mut from_old, mut from_new) = (0, 0);
    for (to_old, to_new) in common(&old, &new).into_iter().chain([end]) {
        let gone = to_old - from_old;
        let come = to_new - from_new;
        // Of what stands in the place of another, the parts that agree are kept.
        let changed = gone.min(come);
        steps.extend(
            (0..changed).map(|it| AlignStep::Keep { old: from_old + it, new: from_new + it }),
        );
        steps.extend((changed..gone).map(|it| AlignStep::Remove { old: from_old + it }));
        steps.extend((changed..come).map(|it| AlignStep::Insert { new: from_new + it }));
        if (to_old, to_new) != end {
            steps.push(AlignStep::Keep { old: to_old, new: to_new });
        }
        (from_old, from_new) = (to_old + 1, to_new + 1);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the elements of the new list that are aligned with another one of the old list, though that is in
    /// both.
    fn misplaced(old: &[Value], new: &[Value]) -> usize {
        let is_misplaced = |step: &AlignStep| match *step {
            AlignStep::Keep { old: a, new: b } => old[a] != new[b] && new.contains(&old[a]),
            _ => false,
        };
        align(old, new).iter().filter(|it| is_misplaced(it)).count()
    }

    fn names(numbers: impl IntoIterator<Item = usize>) -> Vec<Value> {
        numbers.into_iter().map(|it| format!("n{it:06}").into()).collect()
    }

    #[test]
    fn in_long_lists_too_every_element_stays_itself() {
        let old = names(0..1500);
        let without = |gone: &[usize]| names((0..1500).filter(|it| !gone.contains(it)));
        assert_eq!(misplaced(&old, &without(&[3, 1400])), 0);
        assert_eq!(misplaced(&without(&[3, 1400]), &old), 0);
        assert_eq!(misplaced(&old, &names((0..1500).filter(|it| it % 3 > 0))), 0);
        // Values that occur often.
        let ports = |gone: &[usize]| -> Vec<Value> {
            let all = (0..1500).filter(|it| !gone.contains(it));
            all.map(|it| [80, 443, 8080][it % 3].into()).collect()
        };
        let kept = |new: &[Value]| {
            let steps = align(&ports(&[]), new);
            let old = ports(&[]);
            let is_kept = |step: &AlignStep| matches!(*step, AlignStep::Keep { old: a, new: b } if old[a] == new[b]);
            steps.iter().filter(|it| is_kept(it)).count()
        };
        assert_eq!(kept(&ports(&[3, 1400])), 1498);
        assert_eq!(kept(&ports(&[4, 700, 701, 1400])), 1496);
    }

    #[test]
    fn the_longest_lists_of_a_file_are_aligned() {
        let old = names(0..250_000);
        let new = names((0..250_000).filter(|it| it % 1000 != 7).chain([900_000]));
        let steps = align(&old, &new);
        let kept = |step: &&AlignStep| matches!(**step, AlignStep::Keep { old: a, new: b } if old[a] == new[b]);
        assert_eq!(steps.iter().filter(kept).count(), 249_750);
        // Nothing in common, the same backwards, and one value alone.
        let other = names(300_000..550_000);
        assert_eq!(align(&old, &other).len(), 250_000);
        let backwards: Vec<Value> = old.iter().rev().cloned().collect();
        assert!(align(&old, &backwards).iter().any(|it| matches!(it, AlignStep::Keep { .. })));
        let alike = vec![Value::from(1); 250_000];
        assert_eq!(align(&alike, &alike[1..]).len(), 250_000);
    }
}
