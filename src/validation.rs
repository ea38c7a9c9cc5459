//! From the files of one commit to an estate, and everything that is wrong with them.
//!
//! Files are read one by one ([`read_file`], which can be kept as long as the file does not
//! change), then checked together ([`check`]). No check stops at the first finding.

mod catalogue;
mod group;
mod individual;
mod layout;
mod lint;
mod overlap;
mod parameter_type;
mod parents;
mod referents;
mod rule;
mod shape;
mod test_case;
mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::document::{self, Fault, FaultKind, Ignore, Limits, Span};
use crate::hierarchy::Estate;
use crate::model::GroupId;

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

/// The outcome of validation.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The estate; there is none if there are errors.
    pub estate: Option<Estate>,
    /// How many groups the files have.
    pub groups: usize,
    /// Everything that was found, by place.
    pub diagnostics: Vec<Diagnostic>,
    /// Every file that was read.
    pub files: Vec<Arc<str>>,
    /// Where each group is written.
    pub origins: BTreeMap<GroupId, Place>,
    /// The classification tests.
    pub tests: Vec<TestCase>,
    ignores: Ignores,
}

/// The warnings that comments silence, by file and line.
#[derive(Clone, Debug, Default)]
struct Ignores(BTreeMap<(Arc<str>, u32), Ignore>);

impl Checked {
    /// Returns whether there is no error.
    pub fn is_valid(&self) -> bool {
        self.estate.is_some()
    }

    /// Adds what was found otherwise, but for the warnings that a comment silences.
    pub fn add(&mut self, mut found: Vec<Diagnostic>) {
        found.retain(|it| !self.ignores.silence(it));
        self.diagnostics.append(&mut found);
        sort(&mut self.diagnostics);
        if !are_warnings(&self.diagnostics) {
            self.estate = None;
        }
    }
}

impl Ignores {
    fn of(readings: &[&FileReading]) -> Self {
        let of_one = |reading: &&FileReading| {
            let path = Arc::clone(&reading.path);
            let ignores = reading.ignores.clone().into_iter();
            ignores.map(move |it| ((Arc::clone(&path), it.line), it))
        };
        Self(readings.iter().flat_map(of_one).collect())
    }

    /// Returns whether a comment on the line above silences a warning.
    fn silence(&self, found: &Diagnostic) -> bool {
        let line = found.place.span.start.line;
        let ignore = self.0.get(&(Arc::clone(&found.place.file), line));
        found.severity == Severity::Warning
            && ignore.is_some_and(|it| it.kinds.iter().any(|kind| kind == found.kind.as_str()))
    }
}

fn are_warnings(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|it| it.severity != Severity::Error)
}

fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|a, b| {
        (&a.place, a.severity, a.kind, &a.message).cmp(&(&b.place, b.severity, b.kind, &b.message))
    });
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

/// Checks files together that have been read one by one.
pub fn check(layout: &Layout, readings: &[Arc<FileReading>], search: Search) -> Checked {
    let mut readings: Vec<&FileReading> = readings.iter().map(AsRef::as_ref).collect();
    readings.sort_by(|a, b| a.path.cmp(&b.path));
    let mut diagnostics: Vec<Diagnostic> =
        readings.iter().flat_map(|it| it.diagnostics.iter().cloned()).collect();
    let mut groups: Vec<&GroupFile> = Vec::new();
    let mut individuals = Vec::new();
    let mut catalogues = Vec::new();
    let mut tests = Vec::new();
    for reading in &readings {
        match &reading.parts {
            Parts::Nothing => {}
            Parts::Groups(found) => groups.extend(found),
            Parts::Node(found) => individuals.push(found.as_ref()),
            Parts::Environment(found) => catalogues.push(found.as_ref()),
            Parts::Tests(found) => tests.extend(found.iter().cloned()),
        }
    }
    let individuals = individual::join(&individuals, &mut diagnostics);
    let catalogues = catalogue::join(&catalogues, &mut diagnostics);
    let tree = tree::build(&groups, layout.policy, &mut diagnostics);
    if let Some(hierarchy) = &tree.hierarchy {
        let places = tree::places(&groups);
        referents::check(
            hierarchy,
            &catalogues.classes,
            &places,
            layout.policy.missing_referents,
            &mut diagnostics,
        );
        if layout.policy.missing_referents != Strictness::Off {
            parameter_type::check(hierarchy, &catalogues.types, &places, &mut diagnostics);
        }
        lint::contradictions(hierarchy, &places, &mut diagnostics);
    }
    let hierarchy = tree.hierarchy.filter(|_| are_warnings(&diagnostics));
    let mut estate = hierarchy.map(|hierarchy| Estate {
        hierarchy,
        individuals,
        environments: catalogues.files,
        catalogues: catalogues.classes,
    });
    let strictness = layout.policy.potential_conflicts;
    if let Some(estate) = &estate
        && (search == Search::Everything || strictness == Strictness::Error)
    {
        diagnostics.extend(overlap::check(estate, &tree::places(&groups), strictness));
    }
    let ignores = Ignores::of(&readings);
    diagnostics.retain(|it| !ignores.silence(it));
    sort(&mut diagnostics);
    estate = estate.filter(|_| are_warnings(&diagnostics));
    Checked {
        estate,
        groups: groups.len(),
        diagnostics,
        files: readings.iter().map(|it| Arc::clone(&it.path)).collect(),
        origins: groups
            .iter()
            .filter_map(|it| Some((it.group.as_ref()?.id, it.place.clone())))
            .collect(),
        tests,
        ignores,
    }
}

#[cfg(test)]
mod tests;
