//! Patterns of class names.

/// A pattern of class names: `*` stands for any characters, `::` among them, and `?` for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassPattern(Vec<char>);

impl ClassPattern {
    /// Reads a pattern; a leading `::` stands for nothing, as in the name of a class.
    pub(super) fn new(text: &str) -> Self {
        Self(text.strip_prefix("::").unwrap_or(text).chars().collect())
    }

    /// Returns what the pattern is written with.
    pub(super) fn characters(&self) -> impl Iterator<Item = char> {
        self.0.iter().copied()
    }

    /// Returns whether a class has such a name.
    pub(super) fn matches(&self, class: &str) -> bool {
        let class: Vec<char> = class.chars().collect();
        let (mut at, mut next) = (0, 0);
        // The last `*`, and up to where it stands for what was read.
        let mut star: Option<(usize, usize)> = None;
        while next < class.len() {
            match (self.0.get(at), class.get(next)) {
                (Some('*'), _) => {
                    star = Some((at, next));
                    at += 1;
                }
                (Some(wanted), Some(found)) if *wanted == '?' || wanted == found => {
                    at += 1;
                    next += 1;
                }
                _ => {
                    let Some((place, end)) = star else { return false };
                    star = Some((place, end + 1));
                    at = place + 1;
                    next = end + 1;
                }
            }
        }
        self.0.get(at..).is_some_and(|rest| rest.iter().all(|it| *it == '*'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_globs_over_names() {
        for (pattern, class, expected) in [
            ("profile::web", "profile::web", true),
            ("::profile::web", "profile::web", true),
            ("profile::web", "profile::webs", false),
            ("profile::*", "profile::web::tls", true),
            ("profile::*", "profile", false),
            ("*::tls", "profile::web::tls", true),
            ("*::tls", "profile::tls::web", false),
            ("profile::*::tls", "profile::a::tls::tls", true),
            ("profile::we?", "profile::web", true),
            ("profile::we?", "profile::we", false),
            ("*", "ntp", true),
            ("", "ntp", false),
            ("**a**a**a**b", &"a".repeat(200), false),
        ] {
            assert_eq!(ClassPattern::new(pattern).matches(class), expected, "{pattern} {class}");
        }
    }
}
