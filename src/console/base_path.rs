//! The path that all addresses begin with.

use std::fmt;
use std::str::FromStr;

/// The path that all addresses begin with behind a proxy: empty, or such as `/clade`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

/// A text is not a path that addresses can begin with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path such as `/clade`: segments of letters, digits, `-`, `.`, `_` and `~`")]
pub struct BasePathError(String);

impl BasePath {
    /// Returns the path, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}

impl FromStr for BasePath {
    type Err = BasePathError;

    fn from_str(text: &str) -> Result<Self, BasePathError> {
        let path = text.strip_suffix('/').unwrap_or(text);
        let is_allowed =
            |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_' | b'~');
        let fits =
            |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_allowed);
        let segments = path.strip_prefix('/').map(|it| it.split('/'));
        if path.is_empty() || segments.is_some_and(|mut it| it.all(fits)) {
            return Ok(Self(path.to_owned()));
        }
        Err(BasePathError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_has_plain_segments() {
        for (text, expected) in [
            ("", Some("")),
            ("/", Some("")),
            ("/clade", Some("/clade")),
            ("/a/b-1/", Some("/a/b-1")),
            ("clade", None),
            ("//evil.example", None),
            ("/a//b", None),
            ("/..", None),
            ("/a?b", None),
            ("/{x}", None),
        ] {
            let found = text.parse::<BasePath>();
            assert_eq!(found.as_ref().ok().map(BasePath::as_str), expected, "{text}");
        }
    }
}
