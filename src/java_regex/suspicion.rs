//! Patterns that are valid but most likely not what their author meant.

use std::ops::Range;

use super::from_glob;

/// Something in a pattern that is valid but most likely not what its author meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The characters of the pattern, from 0.
    pub range: Range<usize>,
    /// One line, lowercase, without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// Looks for mistakes in a pattern that is valid.
pub fn suspicions(text: &str) -> Vec<Suspicion> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut add = |range: Range<usize>, message: &str, help: String| {
        found.push(Suspicion { range, message: message.to_owned(), help });
    };
    if text.is_empty() {
        add(
            0..0,
            "the empty pattern is found in every string",
            "for any value write `.+`".to_owned(),
        );
    }
    if characters.len() > 2 && text.starts_with('/') && text.ends_with('/') {
        let inner = text.trim_start_matches('/').trim_end_matches('/');
        // A path such as `/srv/` is not a pattern in slashes.
        if inner.starts_with('^') || inner.ends_with('$') {
            let message = "the slashes are part of the pattern";
            add(0..characters.len(), message, format!("write `{inner}`"));
        }
    }
    if text.starts_with('\u{2c6}') {
        let message = "this is the letter `ˆ` (U+02C6), not the anchor `^`";
        add(0..1, message, "write `^`".to_owned());
    }
    let ends_as_glob = characters.as_slice().split_last().is_some_and(|(last, before)| {
        *last == '*' && before.last().is_some_and(|it| it.is_ascii_alphanumeric() || *it == '-')
    });
    if ends_as_glob && let Some(pattern) = from_glob(text) {
        let at = characters.len() - 1;
        let message = "this repeats the character before it: a regular expression is not a glob";
        add(at..at + 1, message, format!("for the glob write `{pattern}`"));
    }
    if text.starts_with("^*") {
        add(
            0..2,
            "`^*` repeats the start of the string, which matches everywhere",
            "write `^.*`, or leave it out".to_owned(),
        );
    }
    if let Some(at) = find(&characters, "[[:").filter(|at| {
        characters.get(*at..).unwrap_or_default().windows(2).any(|pair| pair == [':', ']'])
    }) {
        let name: String =
            characters.iter().skip(at + 3).take_while(|it| it.is_ascii_alphabetic()).collect();
        let mut java = name.clone();
        if let Some(first) = java.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let message = "Java has no such classes: this is a set of the characters in it";
        add(at..at + 3 + name.len(), message, format!("write `\\p{{{java}}}`"));
    }
    if text.contains("(?i)") && !text.is_ascii() {
        let at = find(&characters, "(?i)").unwrap_or_default();
        let message = "`(?i)` ignores the case of ASCII letters only";
        add(at..at + 4, message, "write `(?iu)`".to_owned());
    }
    if let Some(at) = bare_dot(&characters) {
        let message = "a dot matches any character, and this looks like a host name";
        add(at..at + 1, message, "write `\\.`".to_owned());
    }
    if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|it| text.contains(it))
        && !has_literal(&characters)
    {
        let message =
            "look-around without any literal text cannot be indexed: every node pays for it";
        add(0..characters.len(), message, "say the same with `not` and a plain pattern".to_owned());
    }
    found
}

fn find(characters: &[char], wanted: &str) -> Option<usize> {
    let wanted: Vec<char> = wanted.chars().collect();
    characters.windows(wanted.len()).position(|window| window == wanted)
}

/// Top-level domains as people use them in host names.
const DOMAINS: &[&str] = &[
    "com", "net", "org", "io", "de", "eu", "local", "lan", "internal", "vm", "corp", "example",
    "edu", "gov",
];

/// Returns the first dot that stands for itself in what is plainly a host name: between letters,
/// with at least two labels of letters behind each other at the end.
fn bare_dot(characters: &[char]) -> Option<usize> {
    let text: String = characters.iter().collect();
    let body = text.trim_start_matches('^').trim_end_matches('$');
    let skipped = text.chars().take_while(|it| *it == '^').count();
    let (_, last) = body.rsplit_once('.')?;
    if !DOMAINS.contains(&last) {
        return None;
    }
    let inside: Vec<char> = body.chars().collect();
    let is_label = |it: &char| it.is_ascii_alphanumeric();
    let at = inside.iter().enumerate().position(|(at, character)| {
        let before = at.checked_sub(1).and_then(|before| inside.get(before));
        let two_before = at.checked_sub(2).and_then(|before| inside.get(before));
        let escaped_class = two_before == Some(&'\\');
        *character == '.'
            && before.is_some_and(|it| {
                is_label(it) && !escaped_class || matches!(it, '+' | '*' | ']' | ')')
            })
            && inside.get(at + 1).is_some_and(is_label)
    })?;
    Some(at + skipped)
}

/// Returns whether two characters in a row stand for themselves.
fn has_literal(characters: &[char]) -> bool {
    let plain =
        |it: &char| it.is_alphanumeric() || matches!(it, '-' | '_' | ':' | '/' | ' ' | '=' | '@');
    let mut run = 0;
    let mut rest = characters.iter().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => {
                let escaped = rest.next();
                run = if escaped.is_some_and(|it| !it.is_alphanumeric()) { run + 1 } else { 0 };
            }
            '(' => {
                // The head of a group is not text.
                while rest.next_if(|it| matches!(it, '?' | '=' | '!' | '<' | ':' | '>')).is_some() {
                }
                run = 0;
            }
            it if plain(it) => run += 1,
            _ => run = 0,
        }
        if run >= 2 {
            return true;
        }
    }
    false
}
