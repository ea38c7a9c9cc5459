//! One mask.

use std::fmt;
use std::str::FromStr;

use super::glob::KeyPattern;

/// The path of values to mask, as people write paths of facts: `os.family`, `trusted.extensions.pp_secret`.
///
/// In a key, `*` stands for any characters; `**` stands for any number of keys, and at the start for facts
/// and trusted data alike; letters match in either case. A key in quotes is taken verbatim. The elements of a
/// list have the path of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMask {
    text: String,
    pub(super) scope: MaskedData,
    /// The last one is a key.
    pub(super) steps: Vec<MaskStep>,
}

/// What a mask is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MaskedData {
    Facts,
    Trusted,
    Both,
}

/// A step of the path of a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MaskStep {
    /// `**`
    AnyDepth,
    /// A key that matches.
    Key(KeyPattern),
}

/// A text is not a mask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaskError {
    /// A key is missing.
    #[error("expected a path such as `os.family` or `**.*password*`, found `{0}`")]
    NoPath(String),
    /// The path has an index.
    #[error("`{0}` has an index: a mask covers every element of a list, so leave it out")]
    Index(String),
    /// The path ends where any key is meant.
    #[error(
        "`{0}` ends with `**`: a mask covers all below its path, so leave it out, or write `*`"
    )]
    AnyDepthLast(String),
    /// All facts, or all trusted data.
    #[error(
        "`{0}` is not a key of facts: `{0}.*` masks all of them; `fact.{0}` is the fact of this name"
    )]
    Whole(String),
}

impl FromStr for PathMask {
    type Err = MaskError;

    fn from_str(text: &str) -> Result<Self, MaskError> {
        let no_path = || MaskError::NoPath(text.to_owned());
        let mut keys = split(text).ok_or_else(no_path)?;
        if keys.iter().any(|it| !it.is_quoted && it.text.contains(['[', ']'])) {
            return Err(MaskError::Index(text.to_owned()));
        }
        let is_root =
            |at: usize, name: &str| keys.get(at).is_some_and(|it| !it.is_quoted && it.text == name);
        let scope = match () {
            () if is_root(0, "**") => MaskedData::Both,
            () if is_root(0, "trusted") => MaskedData::Trusted,
            () => MaskedData::Facts,
        };
        let has_root = scope == MaskedData::Trusted || is_root(0, "fact") || is_root(0, "facts");
        if has_root && keys.len() == 1 {
            return Err(MaskError::Whole(text.to_owned()));
        }
        let steps = keys.split_off(usize::from(has_root)).into_iter().map(MaskStep::from);
        let steps: Vec<MaskStep> = steps.collect();
        if steps.last() == Some(&MaskStep::AnyDepth) {
            return Err(MaskError::AnyDepthLast(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), scope, steps })
    }
}

impl fmt::Display for PathMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A key as it is written.
struct WrittenKey {
    text: String,
    is_quoted: bool,
}

impl From<WrittenKey> for MaskStep {
    fn from(key: WrittenKey) -> Self {
        match key.text.as_str() {
            "**" if !key.is_quoted => Self::AnyDepth,
            text if key.is_quoted => Self::Key(KeyPattern::verbatim(text)),
            text => Self::Key(KeyPattern::new(text)),
        }
    }
}

/// Splits a path at its dots; `None` if a key is missing.
fn split(text: &str) -> Option<Vec<WrittenKey>> {
    let mut keys = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (key, behind, is_quoted) = match text.strip_prefix('"') {
            Some(quoted) => {
                let (key, behind) = quoted.split_once('"')?;
                (key, behind, true)
            }
            None => {
                let (key, behind) = text.split_at(text.find('.').unwrap_or(text.len()));
                (key, behind, false)
            }
        };
        let is_key = is_quoted
            || !key.is_empty() && !key.contains(|it: char| it.is_whitespace() || it == '"');
        if !is_key {
            return None;
        }
        keys.push(WrittenKey { text: key.to_owned(), is_quoted });
        rest = match behind {
            "" => None,
            behind => Some(behind.strip_prefix('.')?),
        };
    }
    Some(keys)
}

/// A value of the setting: a mask, or `none`, which removes the usual ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaskSetting {
    /// No usual masks.
    None,
    /// One more mask.
    One(PathMask),
}

impl FromStr for MaskSetting {
    type Err = MaskError;

    fn from_str(text: &str) -> Result<Self, MaskError> {
        if text == "none" { Ok(Self::None) } else { text.parse().map(Self::One) }
    }
}

impl fmt::Display for MaskSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::One(mask) => mask.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn a_text_that_is_not_a_path_is_refused() {
        let rows = [
            ("", "expected a path such as `os.family` or `**.*password*`, found ``"),
            ("os.", "expected a path such as `os.family` or `**.*password*`, found `os.`"),
            ("os..x", "expected a path such as `os.family` or `**.*password*`, found `os..x`"),
            (
                "os family",
                "expected a path such as `os.family` or `**.*password*`, found `os family`",
            ),
            ("\"os", "expected a path such as `os.family` or `**.*password*`, found `\"os`"),
            (
                "a[0].b",
                "`a[0].b` has an index: a mask covers every element of a list, so leave it out",
            ),
            (
                "os.**",
                "`os.**` ends with `**`: a mask covers all below its path, so leave it out, or write `*`",
            ),
            (
                "**",
                "`**` ends with `**`: a mask covers all below its path, so leave it out, or write `*`",
            ),
            (
                "trusted",
                "`trusted` is not a key of facts: `trusted.*` masks all of them; `fact.trusted` is the fact of this name",
            ),
        ];
        each_row(rows, |(text, message)| {
            assert_eq!(text.parse::<PathMask>().unwrap_err().to_string(), message);
        });
        assert_eq!("none".parse(), Ok(MaskSetting::None));
        assert!(matches!("fact.none".parse(), Ok(MaskSetting::One(_))));
    }
}
