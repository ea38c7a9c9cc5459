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
        let end = offset + shown;
        Self {
            total,
            first: if shown == 0 { 0 } else { offset as u64 + 1 },
            last: end as u64,
            previous: (offset > 0).then(|| at(offset.saturating_sub(limit))),
            next: ((end as u64) < total).then(|| at(end)),
        }
    }
}

/// Writes a query of the parameters that have a value.
pub(super) fn query(parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}
