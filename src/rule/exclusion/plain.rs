//! Patterns for which texts of printable ASCII on one line stand for all texts.
//!
//! Whether patterns exclude each other is only known for such texts. That no other text passes
//! either follows for patterns that cannot tell other characters apart: every character outside of
//! printable ASCII is replaced by one that no pattern names, a line end at the very end is left out.

use crate::java_regex::Pattern;

/// Returns whether a text in which some patterns are found, others are not, and that is not one of
/// some texts can be replaced by one of printable ASCII on one line.
pub(super) fn suffices(found: &[&Pattern], absent: &[&Pattern], unequal: &[&str]) -> bool {
    let shapes = |patterns: &[&Pattern]| -> Option<Vec<PlainForm>> {
        patterns.iter().map(|it| PlainForm::of(it.as_str())).collect()
    };
    let (Some(found), Some(absent)) = (shapes(found), shapes(absent)) else { return false };
    // The replacement may be found by what is not to be found, where that takes any character, and a
    // text without its line end may be one that it must not be.
    let safe = |it: &PlainForm| !it.any && !it.end;
    if !absent.iter().all(safe) || (!unequal.is_empty() && found.iter().any(|it| it.end)) {
        return false;
    }
    let named = |character: char| {
        found.iter().chain(&absent).any(|it| it.names(character))
            || unequal.iter().any(|it| it.contains(character))
    };
    ['~', '|', '!', '#', '%', '&', ';', '<', '>', '"', '\'', '`', '@', '=', ',', ':']
        .into_iter()
        .any(|it| !named(it))
}

/// What a pattern of a plain form is made of.
struct PlainForm {
    /// Whether it has a dot.
    any: bool,
    /// Whether it has a `$`.
    end: bool,
    /// The characters that stand in it, and stretches of them.
    ranges: Vec<(char, char)>,
}

impl PlainForm {
    /// Returns what a pattern is made of: literals, dots, classes of characters that are named,
    /// `\d`, `\w`, groups, repetitions, alternatives and anchors; `None` for any other.
    fn of(pattern: &str) -> Option<Self> {
        let mut shape = Self { any: false, end: false, ranges: Vec::new() };
        let mut rest = pattern.chars().peekable();
        let mut before = None;
        let mut is_class = false;
        while let Some(character) = rest.next() {
            if !(' '..='~').contains(&character) {
                return None;
            }
            shape.ranges.push((character, character));
            match (character, is_class) {
                ('\\', _) => match rest.next()? {
                    'd' | 'w' => before = None,
                    escaped if escaped.is_ascii_punctuation() => {
                        shape.ranges.push((escaped, escaped));
                        before = Some(escaped);
                    }
                    _ => return None,
                },
                ('[' | '&', true) => return None,
                ('-', true) => {
                    // `[a-z]`; a hyphen at either end stands for itself.
                    let to = rest.peek().copied().filter(|it| *it != ']');
                    if let (Some(from), Some(to)) = (before, to) {
                        if to == '\\' {
                            return None;
                        }
                        shape.ranges.push((from, to));
                    }
                    before = None;
                }
                (']', true) => is_class = false,
                (character, true) => before = Some(character),
                ('[', false) => {
                    is_class = true;
                    before = None;
                    if matches!(rest.peek(), Some('^' | ']')) {
                        return None;
                    }
                }
                ('(', false) if rest.next_if_eq(&'?').is_some() => {
                    rest.next_if_eq(&':')?;
                }
                ('.', false) => shape.any = true,
                ('$', false) => shape.end = true,
                _ => {}
            }
        }
        Some(shape)
    }

    fn names(&self, character: char) -> bool {
        self.ranges.iter().any(|(from, to)| (*from..=*to).contains(&character))
    }
}
