//! From the files of one commit to an estate, and everything that is wrong with them.
//!
//! Files are read one by one ([`read_file`], which can be kept as long as the file does not
//! change), then checked together ([`check`]). No check stops at the first finding.

mod again;
mod catalogue;
mod checked;
mod findings;
mod group;
mod individual;
mod layout;
mod lint;
mod overlap;
mod parameter_type;
mod parents;
mod places;
mod referents;
mod rule;
mod shape;
mod test_case;
mod tree;

use std::sync::Arc;

use rayon::prelude::*;

use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::{self, Fault, FaultKind, Ignore, Limits, Span};

pub use checked::{Checked, Origins, check};
pub use group::{GroupFile, ParentName};
pub use layout::{Layout, Policy, Strictness};
pub use test_case::{Expectation, TestCase};

/// A file of a group repository, as found.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The path from the root of the group repository.
    pub path: Arc<str>,
    /// What is there.
    pub content: SourceContent,
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

/// A file that has been read by itself.
#[derive(Clone, Debug)]
pub struct FileReading {
    /// The path from the root of the group repository.
    pub path: Arc<str>,
    /// What was found in it.
    pub diagnostics: Vec<Diagnostic>,
    ignores: Vec<Ignore>,
    parts: Parts,
}

impl FileReading {
    /// Returns the node groups of the file.
    pub fn groups(&self) -> &[GroupFile] {
        match &self.parts {
            Parts::Groups(groups) => groups,
            _ => &[],
        }
    }

    /// Returns whether the file is a class catalogue; that of an environment need not be one.
    pub fn is_catalogue(&self) -> bool {
        matches!(&self.parts, Parts::Environment(file) if file.is_catalogue())
    }
}

/// What a file says.
#[derive(Clone, Debug)]
enum Parts {
    Nothing,
    Groups(Vec<GroupFile>),
    Node(Box<individual::NodeFile>),
    Environment(Box<catalogue::EnvironmentFile>),
    Tests(Vec<TestCase>),
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// What decides about a commit, and what costs little beside that.
    Decisive,
    /// Everything, also what takes time and is for people alone.
    Everything,
}

/// Validates the files of one commit.
pub fn validate(files: &[SourceFile], search: Search) -> Checked {
    let (layout, mut settings) = layout::read(files);
    let mut readings: Vec<Arc<FileReading>> = files
        .par_iter()
        .filter_map(|file| Some(Arc::new(read_file(file, layout.kind_of(file)?))))
        .collect();
    readings.extend(settings.take().map(Arc::new));
    check(&layout, &readings, search)
}

/// Reads the layout and policy of a repository from its `clade.yaml`, if it has one.
pub fn read_layout(files: &[SourceFile]) -> (Layout, Option<FileReading>) {
    layout::read(files)
}

/// Reads one file by itself.
pub fn read_file(file: &SourceFile, kind: FileKind) -> FileReading {
    let place = || Place { file: Arc::clone(&file.path), span: Span::START };
    let nothing = |diagnostic: Diagnostic| FileReading {
        path: Arc::clone(&file.path),
        diagnostics: vec![diagnostic],
        ignores: Vec::new(),
        parts: Parts::Nothing,
    };
    let bytes = match &file.content {
        SourceContent::Bytes(bytes) => bytes,
        SourceContent::TooLarge(size) => {
            let message =
                format!("the file has {size} bytes, {} are allowed", Limits::DEFAULT.file_bytes);
            let diagnostic = Diagnostic::new(Kind::FileTooLarge, place(), message);
            return nothing(diagnostic.with_help("split it into several files"));
        }
        SourceContent::Link => {
            let message = "this is a symbolic link; it is not followed";
            let diagnostic = Diagnostic::new(Kind::NotAFile, place(), message);
            return nothing(diagnostic.with_help("put the file itself here"));
        }
        SourceContent::Submodule => {
            let message = "this is a submodule; it is not followed";
            let diagnostic = Diagnostic::new(Kind::NotAFile, place(), message);
            return nothing(diagnostic.with_help("put the files themselves here"));
        }
    };
    let contents = document::read(bytes, &Limits::DEFAULT);
    let mut shape = shape::Shape::new(Arc::clone(&file.path));
    let broken = !contents.faults.is_empty();
    // Nobody but this program reads the settings, so nobody reads them differently.
    let counts = |it: &Fault| kind != FileKind::Settings || it.kind != FaultKind::AmbiguousScalar;
    for fault in contents.faults.into_iter().filter(counts) {
        shape.diagnostics.push(from_fault(&file.path, fault));
    }
    let parts = match kind {
        FileKind::Settings => Parts::Nothing,
        FileKind::Groups => Parts::Groups(group::read(&contents.documents, &mut shape)),
        FileKind::Node => individual::read(&contents.documents, &mut shape)
            .map_or(Parts::Nothing, |it| Parts::Node(Box::new(it))),
        FileKind::Environment => catalogue::read(&contents.documents, &mut shape)
            .map_or(Parts::Nothing, |it| Parts::Environment(Box::new(it))),
        FileKind::Tests => Parts::Tests(test_case::read(&contents.documents, &mut shape)),
    };
    if broken {
        // What a broken document lacks is not worth a finding: the fault may have swallowed it.
        shape
            .diagnostics
            .retain(|it| it.kind != Kind::SchemaViolation || it.message.starts_with("unknown key"));
    }
    FileReading {
        path: Arc::clone(&file.path),
        diagnostics: shape.diagnostics,
        ignores: contents.ignores,
        parts,
    }
}

fn from_fault(file: &Arc<str>, fault: Fault) -> Diagnostic {
    let kind = match fault.kind {
        FaultKind::Malformed | FaultKind::Refused => Kind::MalformedYaml,
        FaultKind::DuplicateKey => Kind::DuplicateKey,
        FaultKind::AmbiguousScalar => Kind::AmbiguousScalar,
        FaultKind::TooLarge => Kind::FileTooLarge,
    };
    let at = |span| Place { file: Arc::clone(file), span };
    let mut diagnostic = Diagnostic::new(kind, at(fault.span), fault.message);
    diagnostic.help = fault.help;
    for (span, message) in fault.related {
        diagnostic = diagnostic.with_related(at(span), message);
    }
    diagnostic
}

#[cfg(test)]
mod tests;
