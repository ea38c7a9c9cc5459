//! Parts of a list, with links to the other parts.

use super::layout::escaped;
use super::markup::count;

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
        let at = |offset: usize| part_at(address, offset);
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

    /// Describes a part of a list that says itself where the next one begins, if there is one: items that are gone by now
    /// make the list shorter than the numbers of its parts.
    pub(super) fn with_place(
        total: u64,
        (offset, shown, limit): (usize, usize, usize),
        address: &str,
        place: Option<&str>,
    ) -> Self {
        let at_next = |place: &str| {
            let next = part_at(address, offset.saturating_add(shown));
            format!("{next}&after={}", escaped(place))
        };
        Self { next: place.map(at_next), ..Self::new(total, (offset, shown, limit), address) }
    }

    /// Returns which items are shown, and of how many, unless this part shows that there are more.
    pub(super) fn range(&self) -> String {
        let Self { total, first, last, next, .. } = self;
        if *first == 0 {
            return "none".to_owned();
        }
        let range = format!("{}–{}", count(first), count(last));
        let has_more = last > total || last == total && next.is_some();
        if has_more { range } else { format!("{range} of {}", count(total)) }
    }

    /// Returns whether this part is behind the end of a list that is not empty.
    pub(super) fn is_beyond(&self) -> bool {
        self.start.is_some()
    }
}

/// Returns the address of the part of a list that begins at an offset.
fn part_at(address: &str, offset: usize) -> String {
    let separator = if address.contains('?') { '&' } else { '?' };
    match offset {
        0 => address.to_owned(),
        offset => format!("{address}{separator}offset={offset}"),
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
    fn the_next_part_is_linked_exactly_if_its_place_is_known() {
        let next = Some("/nodes?offset=100&after=5%3Aa".to_owned());
        for (total, place, expected, range) in [
            (120, Some("5:a"), next.clone(), "51–100 of 120"),
            // Nodes of the first part were forgotten, and others are still behind this one.
            (90, Some("5:a"), next.clone(), "51–100"),
            (100, Some("5:a"), next, "51–100"),
            (100, None, None, "51–100 of 100"),
            (90, None, None, "51–100"),
            (120, None, None, "51–100 of 120"),
        ] {
            let pager = Pager::with_place(total, (50, 50, 50), "/nodes", place);
            assert_eq!(pager.next, expected, "{total} {place:?}");
            assert_eq!(pager.range(), range, "{total} {place:?}");
            assert_eq!(pager.previous.as_deref(), Some("/nodes"));
        }
    }

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
