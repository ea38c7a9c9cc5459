//! Patterns of keys.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;

/// Returns a text with its letters in lower case, each for itself, but for those of ASCII.
pub(super) fn lower(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().flat_map(char::to_lowercase).collect())
}

/// A pattern of keys: `*` stands for any characters, and letters match in either case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPattern {
    /// What stands between the `*`, in lower case; one piece is the whole key.
    pieces: Vec<String>,
}

impl KeyPattern {
    /// Reads a pattern.
    pub(super) fn new(text: &str) -> Self {
        Self { pieces: text.split('*').map(|it| lower(it).to_ascii_lowercase()).collect() }
    }

    /// Makes a pattern in which no character is special.
    pub(super) fn verbatim(text: &str) -> Self {
        Self { pieces: vec![lower(text).to_ascii_lowercase()] }
    }

    /// Returns the longest text that every matching key has in it, in lower case.
    pub(super) fn literal(&self) -> &str {
        self.pieces.iter().map(String::as_str).max_by_key(|it| it.len()).unwrap_or_default()
    }

    /// Returns whether a key matches.
    pub(super) fn matches(&self, key: &str) -> bool {
        self.is_match(&lower(key))
    }

    /// Returns whether a key matches whose letters beyond ASCII are in lower case.
    fn is_match(&self, key: &str) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return false };
        let Some((last, middle)) = rest.split_last() else {
            return key.eq_ignore_ascii_case(first);
        };
        let Some(rest) = strip(key.as_bytes(), first.as_bytes()) else { return false };
        let rest = middle.iter().try_fold(rest, |rest, piece| behind(rest, piece.as_bytes()));
        rest.is_some_and(|rest| ends_with(rest, last.as_bytes()))
    }
}

/// Returns what stands behind a prefix.
fn strip<'k>(key: &'k [u8], prefix: &[u8]) -> Option<&'k [u8]> {
    let (start, rest) = key.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Returns what stands behind the first occurrence of a piece.
fn behind<'k>(key: &'k [u8], piece: &[u8]) -> Option<&'k [u8]> {
    (0..=key.len()).find_map(|at| strip(key.get(at..)?, piece))
}

fn ends_with(key: &[u8], suffix: &[u8]) -> bool {
    let start = key.len().checked_sub(suffix.len());
    start.and_then(|it| key.get(it..)).is_some_and(|it| it.eq_ignore_ascii_case(suffix))
}

/// Patterns of keys of which one must match.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyPatterns {
    patterns: Vec<KeyPattern>,
    /// Finds their literals.
    literals: Option<AhoCorasick>,
}

impl KeyPatterns {
    /// Compiles patterns, each of which has a literal.
    pub(super) fn new(patterns: Vec<KeyPattern>) -> Self {
        let literals = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(patterns.iter().map(KeyPattern::literal));
        Self { literals: literals.ok().filter(|_| !patterns.is_empty()), patterns }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns whether a key matches.
    #[inline]
    pub(super) fn matches(&self, key: &str) -> bool {
        match &self.literals {
            // Nearly no key has a literal.
            Some(literals) => {
                let key = lower(key);
                literals.is_match(&*key) && self.patterns.iter().any(|it| it.is_match(&key))
            }
            None => self.patterns.iter().any(|it| it.matches(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn patterns_match_whole_keys_in_either_case() {
        let rows = [
            ("os", "os", true),
            ("os", "OS", true),
            ("os", "oss", false),
            ("os*", "osfamily", true),
            ("*password*", "db_PassWord_old", true),
            ("*password*", "password", true),
            ("*password*", "passwor", false),
            ("*_key", "api_key", true),
            ("*_key", "api_keys", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*", "", true),
            ("é*", "été", true),
            ("É*", "été", true),
            ("schlüssel", "SCHLÜSSEL", true),
            ("*SCHLÜSSEL*", "der_schlüssel", true),
            ("*key*", "\u{212a}ey", true),
            ("*σ", "ΟΔΟΣ", true),
        ];
        each_row(rows, |(pattern, key, expected)| {
            assert_eq!(KeyPattern::new(pattern).matches(key), expected, "{pattern} {key}");
            let all =
                KeyPatterns::new(vec![KeyPattern::verbatim("other"), KeyPattern::new(pattern)]);
            assert_eq!(all.matches(key), expected, "{pattern} {key}");
        });
        assert!(
            KeyPattern::verbatim("a*").matches("a*") && !KeyPattern::verbatim("a*").matches("ab")
        );
    }
}
