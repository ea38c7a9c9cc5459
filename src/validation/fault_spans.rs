//! Where a file has errors, to tell what only follows from one of them.

use crate::document::Span;

/// Places with errors.
#[derive(Clone, Debug, Default)]
pub(super) struct FaultSpans {
    /// The bytes at which the places begin, in order; each with the last byte of all places up to it.
    spans: Vec<(u32, u32)>,
}

impl FaultSpans {
    /// Returns whether there are no errors.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns whether a place lies within that of an error.
    pub(super) fn cover(&self, span: Span) -> bool {
        let before = self.spans.partition_point(|(start, _)| *start <= span.start.offset);
        self.end_of(before).is_some_and(|end| end >= span.end.offset)
    }

    /// Returns whether a place has a part in common with that of an error.
    pub(super) fn touch(&self, span: Span) -> bool {
        let before = self.spans.partition_point(|(start, _)| *start < span.end.offset);
        self.end_of(before).is_some_and(|end| end > span.start.offset)
    }

    /// Returns where the last of so many places ends.
    fn end_of(&self, count: usize) -> Option<u32> {
        self.spans.get(count.checked_sub(1)?).map(|(_, end)| *end)
    }
}

impl FromIterator<Span> for FaultSpans {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut spans: Vec<(u32, u32)> =
            spans.into_iter().map(|it| (it.start.offset, it.end.offset)).collect();
        spans.sort_unstable();
        let mut last = 0;
        for (_, end) in &mut spans {
            last = last.max(*end);
            *end = last;
        }
        Self { spans }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Position;
    use crate::table::each_row;

    fn span((start, end): (u32, u32)) -> Span {
        let at = |offset| Position { offset, line: 1, column: offset + 1 };
        Span { start: at(start), end: at(end) }
    }

    #[test]
    fn a_place_is_compared_with_those_of_all_errors() {
        let faults: FaultSpans = [(20, 24), (4, 8), (5, 6)].into_iter().map(span).collect();
        let rows = [
            ((4, 8), true, true),
            ((6, 8), true, true),
            ((8, 8), true, false),
            ((7, 9), false, true),
            ((0, 30), false, true),
            ((0, 4), false, false),
            ((9, 20), false, false),
            ((24, 30), false, false),
        ];
        each_row(rows, |(place, is_covered, is_touched)| {
            assert_eq!(faults.cover(span(place)), is_covered, "{place:?}");
            assert_eq!(faults.touch(span(place)), is_touched, "{place:?}");
        });
        assert!(!FaultSpans::default().cover(Span::START));
    }
}
