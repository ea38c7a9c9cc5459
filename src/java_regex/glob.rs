//! Globs that stand where a regular expression is expected.

/// Returns the regular expression that a glob such as `*.web` or `web-?` stands for; `None` for a text
/// that is not a glob, or is more likely a regular expression.
pub fn from_glob(text: &str) -> Option<String> {
    let is_fit = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.' | '*' | '?');
    let is_glob = text.contains(['*', '?']) && text.chars().all(is_fit);
    if !is_glob || text.contains(".*") || text.contains(".?") {
        return None;
    }
    let inner = text.trim_start_matches('*').trim_end_matches('*');
    if inner.is_empty() {
        return Some(".+".to_owned());
    }
    let mut pattern = String::new();
    pattern.push_str(if text.starts_with('*') { "" } else { "^" });
    for character in inner.chars() {
        match character {
            '*' => pattern.push_str(".*"),
            '?' => pattern.push('.'),
            '.' => pattern.push_str("\\."),
            other => pattern.push(other),
        }
    }
    pattern.push_str(if text.ends_with('*') { "" } else { "$" });
    Some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_is_told_from_a_regular_expression() {
        for (text, expected) in [
            ("*.web", Some("\\.web$")),
            ("web*", Some("^web")),
            ("web-?", Some("^web-.$")),
            ("web?.*", None),
            ("web*.example.com", Some("^web.*\\.example\\.com$")),
            ("*web*", Some("web")),
            ("*", Some(".+")),
            ("web.*", None),
            ("web", None),
            ("^web*", None),
            ("(web)?", None),
        ] {
            assert_eq!(from_glob(text).as_deref(), expected, "{text}");
        }
    }
}
