//! Parts of a list, with links to the other parts.

use super::layout::escaped;

/// A part of a list.
#[derive(Clone, Debug)]
pub(super) struct Pager {
    pub(super) total: u64,
    /// The number of the first item that is shown, from 1.
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) previous: Option<String>,
    pub(super) next: Option<String>,
    /// The first part, if this one is behind the end of the list.
    pub(super) start: Option<String>,
}

impl Pager {
    /// Describes the part of a list that begins at an offset; `address` is that of the list, with its query.
    pub(super) fn new(
        total: u64,
        (offset, shown, limit): (usize, usize, usize),
        address: &str,
    ) -> Self {
        let at = |offset: usize| {
            let separator = if address.contains('?') { '&' } else { '?' };
            match offset {
                0 => address.to_owned(),
                offset => format!("{address}{separator}offset={offset}"),
            }
        };
        let end = offset.saturating_add(shown);
        let is_beyond = shown == 0 && total > 0;
        Self {
            total,
            first: if shown == 0 { 0 } else { offset as u64 + 1 },
            last: end as u64,
            previous: (offset > 0 && !is_beyond).then(|| at(offset.saturating_sub(limit))),
            next: ((end as u64) < total).then(|| at(end)),
            start: is_beyond.then(|| at(0)),
        }
    }

    /// Has the link to the next part name the place where that begins, if it is known.
    pub(super) fn with_place(self, place: Option<&str>) -> Self {
        let Some(place) = place else { return self };
        let next = self.next.map(|it| format!("{it}&after={}", escaped(place)));
        Self { next, ..self }
    }

    /// Returns whether this part is behind the end of a list that is not empty.
    pub(super) fn is_beyond(&self) -> bool {
        self.start.is_some()
    }
}

/// Writes a query of the parameters that have a value.
pub(super) fn query(parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_behind_the_end_leads_to_the_first() {
        let address = |offset| format!("/nodes?q=web&offset={offset}");
        let first = Some("/nodes?q=web".to_owned());
        for (total, part, numbers, links) in [
            (15, (0, 10, 10), (1, 10), [None, Some(address(10)), None]),
            (15, (10, 5, 10), (11, 15), [first.clone(), None, None]),
            (15, (99_999, 0, 10), (0, 99_999), [None, None, first.clone()]),
            (15, (usize::MAX, 0, 10), (0, u64::MAX), [None, None, first]),
            (0, (99_999, 0, 10), (0, 99_999), [Some(address(99_989)), None, None]),
            (0, (0, 0, 10), (0, 0), [None, None, None]),
        ] {
            let pager = Pager::new(total, part, "/nodes?q=web");
            assert_eq!((pager.first, pager.last), numbers, "{part:?} of {total}");
            assert_eq!([pager.previous, pager.next, pager.start], links, "{part:?} of {total}");
        }
    }
}
