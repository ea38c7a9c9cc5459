//! The layout of a group repository that other commands write into.

use std::path::Path;

use crate::validation::{FileReading, Layout, SourceContent, SourceFile, read_layout};

/// Returns the layout that `clade.yaml` gives a directory, and how that was read, if it is there. No link is followed.
pub(in crate::cli) fn layout_of_directory(directory: &Path) -> (Layout, Option<FileReading>) {
    let files = ["clade.yaml", "clade.yml"].into_iter().filter_map(|name| {
        let path = directory.join(name);
        let content = match path.is_symlink() {
            true => SourceContent::Link,
            false => SourceContent::Bytes(std::fs::read(path).ok()?.into()),
        };
        Some(SourceFile { path: name.into(), content })
    });
    read_layout(&files.collect::<Vec<_>>())
}
