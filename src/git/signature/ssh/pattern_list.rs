//! Lists of patterns, as PATTERNS in `ssh_config(5)` defines them.

/// Patterns between commas: `*` stands for any text, `?` for one byte, and `!` negates a pattern.
#[derive(Debug)]
pub(super) struct PatternList<'a>(&'a str);

impl<'a> PatternList<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns whether a pattern matches and no negated one does, in whatever order they stand.
    pub(super) fn matches(&self, text: &str) -> bool {
        let matching = |pattern: &str| matches_pattern(text.as_bytes(), pattern.as_bytes());
        let is_negated = |it: &str| it.strip_prefix('!').is_some_and(matching);
        let is_matched = |it: &str| !it.starts_with('!') && matching(it);
        self.0.split(',').any(is_matched) && !self.0.split(',').any(is_negated)
    }
}

/// Tries the shortest text for each `*` first; only the last `*` is tried again, so that the time is
/// bounded by the product of both lengths.
fn matches_pattern(text: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut next) = (0, 0);
    let mut retry = None;
    while let Some(byte) = text.get(at) {
        match pattern.get(next) {
            Some(b'*') => {
                next += 1;
                retry = Some((at, next));
            }
            Some(it) if *it == b'?' || it == byte => {
                at += 1;
                next += 1;
            }
            _ => {
                let Some((from, after)) = retry else { return false };
                retry = Some((from + 1, after));
                (at, next) = (from + 1, after);
            }
        }
    }
    pattern.iter().skip(next).all(|it| *it == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negated_pattern_refuses_wherever_it_stands() {
        for (list, matched) in [
            ("git", true),
            ("file,git", true),
            ("g*", true),
            ("gi?", true),
            ("*i*", true),
            ("***", true),
            ("*g*i*t*", true),
            ("!file,*", true),
            ("git,,", true),
            ("!!git,git", true),
            ("", false),
            (",", false),
            ("GIT", false),
            ("gi", false),
            ("gi??", false),
            ("*x*", false),
            ("git, file", true),
            (" git", false),
            ("!git,*", false),
            ("*,!git", false),
            ("git,!g*", false),
            ("!file", false),
            ("!", false),
        ] {
            assert_eq!(PatternList::new(list).matches("git"), matched, "{list}");
        }
        let many = "*a".repeat(200);
        assert!(!PatternList::new(&many).matches(&"a".repeat(199)));
        assert!(PatternList::new(&many).matches(&"a".repeat(200)));
    }
}
