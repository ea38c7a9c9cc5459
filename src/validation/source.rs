//! The files of a commit, as found, and what each is for.

use std::sync::Arc;

use crate::document::{Fault, FaultKind};

/// A file of a group repository, as found.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The path from the root of the group repository.
    pub path: Arc<str>,
    /// What is there.
    pub content: SourceContent,
}

impl SourceFile {
    /// Returns how many bytes were read of it.
    pub fn size(&self) -> u64 {
        match &self.content {
            SourceContent::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        }
    }
}

/// What is found at a path.
#[derive(Clone, Debug)]
pub enum SourceContent {
    /// A file.
    Bytes(Arc<[u8]>),
    /// A file that was not read for its size in bytes.
    TooLarge(u64),
    /// A symbolic link; it is not followed.
    Link,
    /// A submodule; it is not followed.
    Submodule,
}

/// What a file of the repository is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// `clade.yaml`
    Settings,
    /// Node groups.
    Groups,
    /// An individual classification.
    Node,
    /// A class catalogue.
    Environment,
    /// Classification tests.
    Tests,
}

impl FileKind {
    /// Returns whether a fault counts in a file of this kind: only this program reads the settings, so no other reader can
    /// differ there.
    pub fn counts(self, fault: &Fault) -> bool {
        self != Self::Settings || fault.kind != FaultKind::AmbiguousScalar
    }
}
