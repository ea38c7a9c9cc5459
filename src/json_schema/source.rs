//! Where schemas are read from.

use std::sync::Arc;

use crate::diagnostic::Place;

/// What a commit has at the path of a schema.
#[derive(Clone, Debug)]
pub enum SchemaSource {
    /// A file.
    Bytes(Arc<[u8]>),
    /// A file that was not read for its size in bytes.
    TooLarge(u64),
    /// A symbolic link or a submodule; neither is followed.
    NotAFile,
    /// Nothing.
    Missing,
}

/// Reads a path of a commit.
pub type ReadSource<'r> = dyn Fn(&str) -> SchemaSource + 'r;

/// A schema that settings name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaRequest {
    /// The path from the root of the group repository.
    pub path: Arc<str>,
    /// Where the path is written.
    pub place: Place,
}
