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
    let written = PatternText { text, characters: &text.chars().collect::<Vec<char>>() };
    CHECKS.iter().filter_map(|check| check(&written)).collect()
}

/// A pattern as it is written.
struct PatternText<'t> {
    text: &'t str,
    characters: &'t [char],
}

const CHECKS: [fn(&PatternText<'_>) -> Option<Suspicion>; 9] = [
    empty,
    in_slashes,
    circumflex_letter,
    glob,
    repeated_start,
    posix_class,
    ascii_case,
    host_name,
    slow_look_around,
];

impl Suspicion {
    fn new(range: Range<usize>, message: &str, help: impl Into<String>) -> Self {
        Self { range, message: message.to_owned(), help: help.into() }
    }
}

fn empty(written: &PatternText<'_>) -> Option<Suspicion> {
    if !written.text.is_empty() {
        return None;
    }
    let message = "the empty pattern is found in every string";
    Some(Suspicion::new(0..0, message, "for any value write `.+`"))
}

fn in_slashes(written: &PatternText<'_>) -> Option<Suspicion> {
    let (text, length) = (written.text, written.characters.len());
    if length <= 2 || !text.starts_with('/') || !text.ends_with('/') {
        return None;
    }
    let inner = text.trim_start_matches('/').trim_end_matches('/');
    // A path such as `/srv/` is not a pattern in slashes.
    if !inner.starts_with('^') && !inner.ends_with('$') {
        return None;
    }
    let message = "the slashes are part of the pattern";
    Some(Suspicion::new(0..length, message, format!("write `{inner}`")))
}

fn circumflex_letter(written: &PatternText<'_>) -> Option<Suspicion> {
    if !written.text.starts_with('\u{2c6}') {
        return None;
    }
    let message = "this is the letter `ˆ` (U+02C6), not the anchor `^`";
    Some(Suspicion::new(0..1, message, "write `^`"))
}

fn glob(written: &PatternText<'_>) -> Option<Suspicion> {
    let (last, before) = written.characters.split_last()?;
    let is_name = |it: &char| it.is_ascii_alphanumeric() || *it == '-';
    if *last != '*' || !before.last().is_some_and(is_name) {
        return None;
    }
    let pattern = from_glob(written.text)?;
    let message = "this repeats the character before it: a regular expression is not a glob";
    let help = format!("for the glob write `{pattern}`");
    Some(Suspicion::new(before.len()..before.len() + 1, message, help))
}

fn repeated_start(written: &PatternText<'_>) -> Option<Suspicion> {
    if !written.text.starts_with("^*") {
        return None;
    }
    let message = "`^*` repeats the start of the string, which matches everywhere";
    Some(Suspicion::new(0..2, message, "write `^.*`, or leave it out"))
}

fn posix_class(written: &PatternText<'_>) -> Option<Suspicion> {
    let at = find(written.characters, "[[:")?;
    let rest = written.characters.get(at..)?;
    if !rest.windows(2).any(|pair| pair == [':', ']']) {
        return None;
    }
    let name: String = rest.iter().skip(3).take_while(|it| it.is_ascii_alphabetic()).collect();
    let mut java = name.clone();
    if let Some(first) = java.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let message = "Java has no such classes: this is a set of the characters in it";
    Some(Suspicion::new(at..at + 3 + name.len(), message, format!("write `\\p{{{java}}}`")))
}

fn ascii_case(written: &PatternText<'_>) -> Option<Suspicion> {
    let at = find(written.characters, "(?i)")?;
    if written.text.is_ascii() {
        return None;
    }
    let message = "`(?i)` ignores the case of ASCII letters only";
    Some(Suspicion::new(at..at + 4, message, "write `(?iu)`"))
}

fn host_name(written: &PatternText<'_>) -> Option<Suspicion> {
    let at = bare_dot(written.characters)?;
    let message = "a dot matches any character, and this looks like a host name";
    Some(Suspicion::new(at..at + 1, message, "write `\\.`"))
}

fn slow_look_around(written: &PatternText<'_>) -> Option<Suspicion> {
    let has_look_around = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|it| written.text.contains(it));
    if !has_look_around || has_literal(written.characters) {
        return None;
    }
    let message = "look-around without any literal text cannot be indexed: every node pays for it";
    let help = "say the same with `not` and a plain pattern";
    Some(Suspicion::new(0..written.characters.len(), message, help))
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
