//! Numbers, names and problems in messages.

use std::fmt::Display;

/// How many names are listed.
const NAMES: usize = 5;

/// How many problems of a body an error names: an answer is not several times as long as what was asked.
pub const SHOWN_PROBLEMS: usize = 100;

/// Writes how many of something there are: `1 child`, `2 children`.
pub(super) fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Lists names, not all of many: `a, b, c, d, e and 12 more`.
pub(super) fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(NAMES);
    let shown = names.take(NAMES).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// Joins what is wrong with a body: the first hundred, and how many more there are; empty if nothing is.
pub fn first_problems<T: Display>(
    mut problems: impl Iterator<Item = T>,
    separator: &str,
) -> String {
    let shown = problems.by_ref().take(SHOWN_PROBLEMS).map(|it| it.to_string());
    let text = shown.collect::<Vec<_>>().join(separator);
    match problems.count() {
        0 => text,
        more => format!("{text}{separator}and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, listed};

    #[test]
    fn numbers_and_names_read_as_a_sentence() {
        assert_eq!(counted(1, "child", "children"), "1 child");
        assert_eq!(counted(2, "child", "children"), "2 children");
        assert_eq!(listed(["a"].into_iter()), "a");
        assert_eq!(listed(["a", "b", "c", "d", "e"].into_iter()), "a, b, c, d, e");
        assert_eq!(listed(["a"; 17].into_iter()), "a, a, a, a, a and 12 more");
    }
}
