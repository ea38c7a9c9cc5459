//! The attributes by which git writes other bytes into a working tree than libgit2 does.
//!
//! libgit2 converts the ends of lines (`text`, `eol`) and `ident` as git does.

use std::path::Path;

use git2::{AttrCheckFlags, AttrValue, Repository};

/// The encoding of the files that git writes, and the program that it has convert them.
const CONVERSIONS: [&str; 2] = ["working-tree-encoding", "filter"];

/// Returns the attribute of a file that libgit2 does not follow, as it is written.
///
/// Whether a filter has a program is not asked for: that may stand in the settings of the owner, which are not read.
pub(super) fn written_by_git_alone(
    repository: &Repository,
    file: &Path,
) -> Result<Option<String>, git2::Error> {
    for name in CONVERSIONS {
        let value = repository.get_attr_bytes(file, name, AttrCheckFlags::FILE_THEN_INDEX)?;
        let AttrValue::Bytes(value) = AttrValue::always_bytes(value) else { continue };
        let value = String::from_utf8_lossy(value);
        if !is_as_stored(name, &value) {
            return Ok(Some(format!("{name}={value}")));
        }
    }
    Ok(None)
}

/// Returns whether git writes a file as it stores it for a value of an attribute.
fn is_as_stored(name: &str, value: &str) -> bool {
    let is_utf8 = || ["utf-8", "utf8"].iter().any(|it| value.eq_ignore_ascii_case(it));
    value.is_empty() || (name == "working-tree-encoding" && is_utf8())
}
