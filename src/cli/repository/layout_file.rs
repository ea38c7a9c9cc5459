//! The layout of a group repository that other commands write into.

use std::io;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::config::read_bounded;
use crate::diagnostic::Severity;
use crate::validation::{Layout, SourceContent, SourceFile, read_layout};

/// Returns the layout that `clade.yaml` gives a directory; one without it has the usual one. No link is followed.
///
/// # Errors
///
/// Returns an error if it cannot be read or is not valid: where files belong is not known then.
pub(in crate::cli) fn layout_of_directory(directory: &Path) -> Result<Layout> {
    let mut files = Vec::new();
    for name in ["clade.yaml", "clade.yml"] {
        let path = directory.join(name);
        let content = match read_bounded(&path) {
            _ if path.is_symlink() => SourceContent::Link,
            Ok(bytes) => SourceContent::Bytes(bytes.into()),
            Err(error) if is_absent(&error) => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
            }
        };
        files.push(SourceFile { path: name.into(), content });
    }
    let (layout, reading) = read_layout(&files);
    let mut diagnostics = reading.iter().flat_map(|it| &it.diagnostics);
    if let Some(error) = diagnostics.find(|it| it.severity == Severity::Error) {
        let start = error.place.span.start;
        let path = directory.join(&*error.place.file);
        bail!("{}:{}:{}: {}", path.display(), start.line, start.column, error.message);
    }
    Ok(layout)
}

/// Returns whether a repository has no such file; git has no settings in a directory of that name either.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory)
}
