//! The two states that the arguments name.

use std::path::Path;

use anyhow::{Result, bail};

use crate::cli::repository::locate_clone;

/// The revisions to compare, as the arguments name them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// `BASE [HEAD]` or `BASE..HEAD`; without a head the files as they are.
    Between { base: String, head: Option<String> },
    /// `BASE...HEAD`: from where the two diverged to the head.
    SinceDivergence { base: String, head: String },
}

/// A state to load.
pub(super) struct NamedRevision {
    /// What people call it.
    pub(super) name: String,
    /// The revision; none for the files as they are.
    pub(super) revision: Option<String>,
}

impl Range {
    /// Reads the arguments. As in git, an end of a range that is left out is `HEAD`; no ref has
    /// `..` in its name.
    pub(super) fn parse(base: &str, head: Option<&str>) -> Result<Self> {
        let Some((left, right)) = base.split_once("..") else {
            if head.is_some_and(|head| head.contains("..")) {
                bail!("a range such as `A..B` stands alone: leave out `{base}`");
            }
            return Ok(Self::Between { base: base.to_owned(), head: head.map(str::to_owned) });
        };
        if let Some(head) = head {
            bail!("`{base}` names both revisions: leave out `{head}`");
        }
        let or_head = |end: &str| if end.is_empty() { "HEAD" } else { end }.to_owned();
        Ok(match right.strip_prefix('.') {
            Some(right) => Self::SinceDivergence { base: or_head(left), head: or_head(right) },
            None => Self::Between { base: or_head(left), head: Some(or_head(right)) },
        })
    }

    /// Returns the states before and after.
    pub(super) fn states(self, directory: &Path) -> Result<[NamedRevision; 2]> {
        let named =
            |revision: String| NamedRevision { name: revision.clone(), revision: Some(revision) };
        Ok(match self {
            Self::Between { base, head } => {
                let files = NamedRevision { name: "working tree".to_owned(), revision: None };
                [named(base), head.map_or(files, named)]
            }
            Self::SinceDivergence { base, head } => {
                let (repository, _) = locate_clone(directory)?;
                let (left, right) =
                    (repository.resolve_searching(&base)?, repository.resolve_searching(&head)?);
                let Some(common) = repository.merge_base(left, right)? else {
                    bail!(
                        "`{base}` and `{head}` have no commit in common: compare `{base}..{head}`"
                    );
                };
                let name = format!("merge base of {base} and {head}");
                [NamedRevision { name, revision: Some(common.to_string()) }, named(head)]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ranges_as_git_does() {
        let between = |base: &str, head: Option<&str>| Range::Between {
            base: base.to_owned(),
            head: head.map(str::to_owned),
        };
        let since = |base: &str, head: &str| Range::SinceDivergence {
            base: base.to_owned(),
            head: head.to_owned(),
        };
        for (base, head, expected) in [
            ("main", None, Some(between("main", None))),
            ("main", Some("v1.2"), Some(between("main", Some("v1.2")))),
            ("main..branch", None, Some(between("main", Some("branch")))),
            ("main..", None, Some(between("main", Some("HEAD")))),
            ("..branch", None, Some(between("HEAD", Some("branch")))),
            ("main...branch", None, Some(since("main", "branch"))),
            ("...branch", None, Some(since("HEAD", "branch"))),
            ("v1.2.3...", None, Some(since("v1.2.3", "HEAD"))),
            ("a..b", Some("c"), None),
            ("a", Some("b..c"), None),
        ] {
            assert_eq!(Range::parse(base, head).ok(), expected, "{base} {head:?}");
        }
    }
}
