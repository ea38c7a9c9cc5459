//! Numbers and lists in messages.

use std::fmt::Display;

/// Writes how many of something there are: `1 error`, `2 errors`.
pub fn counted<N: Number>(number: N, one: &str) -> String {
    format!("{number} {one}{}", plural_ending(number, one))
}

/// A number of things.
pub trait Number: Copy + Display + PartialEq + From<u8> {}

impl<N: Copy + Display + PartialEq + From<u8>> Number for N {}

/// Returns what the word for one thing ends with, where there are so many.
pub fn plural_ending<N: Number>(number: N, one: &str) -> &'static str {
    if number == N::from(1) {
        ""
    } else if one.ends_with("child") {
        "ren"
    } else if one.ends_with('s') || one.ends_with("ch") {
        "es"
    } else {
        "s"
    }
}

/// Lists the first of some names: `a, b, c and 12 more`.
pub fn listed(names: impl ExactSizeIterator<Item: Display>, most: usize) -> String {
    let more = and_more(names.len().saturating_sub(most));
    let shown: Vec<String> = names.take(most).map(|it| it.to_string()).collect();
    shown.join(", ") + &more
}

/// Writes how many more there are than were listed: ` and 12 more`; nothing if there are none.
pub fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}

/// Joins the first of some sentences, and how many more there are: `a; b; and 12 more`.
pub fn first_sentences(
    mut sentences: impl Iterator<Item: Display>,
    most: usize,
    separator: &str,
) -> String {
    let shown: Vec<String> = sentences.by_ref().take(most).map(|it| it.to_string()).collect();
    let text = shown.join(separator);
    match sentences.count() {
        0 => text,
        more => format!("{text}{separator}and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_their_words() {
        for (number, one, expected) in [
            (0, "value", "0 values"),
            (1, "class", "1 class"),
            (2, "class", "2 classes"),
            (2, "failed fetch", "2 failed fetches"),
            (1, "child", "1 child"),
            (3, "child", "3 children"),
        ] {
            assert_eq!(counted(number, one), expected);
        }
        assert_eq!(counted(u64::MAX, "node"), "18446744073709551615 nodes");
    }

    #[test]
    fn not_all_of_many_names_are_listed() {
        assert_eq!(listed([""; 0].iter(), 5), "");
        assert_eq!(listed(["a"].iter(), 5), "a");
        assert_eq!(listed(["a", "b", "c", "d", "e"].iter(), 5), "a, b, c, d, e");
        assert_eq!(listed(["a"; 17].iter(), 5), "a, a, a, a, a and 12 more");
        assert_eq!(first_sentences([""; 0].iter(), 2, "; "), "");
        assert_eq!(first_sentences(["a", "b"].iter(), 2, "; "), "a; b");
        assert_eq!(first_sentences(["a"; 5].iter(), 2, "; "), "a; a; and 3 more");
    }
}
