//! Reading one file by itself.

use std::sync::Arc;

use super::commit::too_large;
use super::file_cost::FileCost;
use super::file_reader::FileReader;
use super::source::{FileKind, SourceContent, SourceFile};
use super::test_case::TestCase;
use super::{catalogue, group, individual, test_case};
use crate::diagnostic::{Diagnostic, Kind, Place, closest};
use crate::document::{self, Content, Count, Ignore, Limits, Node, Span, quote};
use crate::model::{Budget, BudgetItem, Counts, EnvironmentName, Exceeded, Meter};
use group::GroupFile;

/// A file that has been read by itself.
#[derive(Clone, Debug)]
pub struct FileReading {
    /// The path from the root of the group repository.
    pub path: Arc<str>,
    /// What was found in it.
    pub diagnostics: Box<[Arc<Diagnostic>]>,
    pub(super) ignores: Box<[Ignore]>,
    pub(super) parts: FileParts,
    /// Whether the file was not read to its end.
    pub(super) is_cut_off: bool,
    pub(super) cost: FileCost,
}

impl FileReading {
    /// Returns the environment that the file is about.
    pub fn environment(&self) -> Option<&EnvironmentName> {
        match &self.parts {
            FileParts::Environment(file) => file.known_name(),
            _ => None,
        }
    }

    /// Returns the reading of a file that nothing is known of but what is wrong with it.
    fn broken(path: &Arc<str>, diagnostic: Diagnostic) -> Self {
        Self {
            path: Arc::clone(path),
            diagnostics: [diagnostic.into()].into(),
            ignores: Box::default(),
            parts: FileParts::Nothing,
            is_cut_off: true,
            cost: FileCost::default(),
        }
    }

    /// Returns what the file costs of the commit's budget.
    pub fn cost(&self) -> Counts {
        self.cost.counts()
    }

    /// Returns whether the file could be read as one of node groups, however few.
    pub fn is_of_groups(&self) -> bool {
        matches!(self.parts, FileParts::Groups(_))
    }

    /// Returns the node groups of the file.
    pub fn groups(&self) -> &[GroupFile] {
        match &self.parts {
            FileParts::Groups(groups) => groups,
            _ => &[],
        }
    }

    /// Returns the node whose own values the file has, if it has any.
    pub fn node(&self) -> Option<&str> {
        match &self.parts {
            FileParts::Node(file) => Some(file.origin().0),
            _ => None,
        }
    }

    /// Returns the classification tests of the file.
    pub(super) fn tests(&self) -> &[TestCase] {
        match &self.parts {
            FileParts::Tests(tests) => tests,
            _ => &[],
        }
    }

    /// Returns whether the file is a class catalogue; that of an environment need not be one.
    pub fn is_catalogue(&self) -> bool {
        matches!(&self.parts, FileParts::Environment(file) if file.is_catalogue())
    }
}

/// What a file says.
#[derive(Clone, Debug)]
pub(super) enum FileParts {
    Nothing,
    Groups(Box<[GroupFile]>),
    Node(Box<individual::NodeFile>),
    Environment(Box<catalogue::EnvironmentFile>),
    Tests(Vec<TestCase>),
}

/// How many values of a file are counted at once.
const COUNTED_TOGETHER: u64 = 64;

/// Reads one file by itself; a file alone is bounded by its size.
pub fn read_file(file: &SourceFile, kind: FileKind) -> FileReading {
    let meter = Arc::new(Meter::new(Budget::DEFAULT));
    match read_file_within(file, kind, &meter) {
        Ok(reading) => reading,
        Err(exceeded) => {
            let mut found = too_large(exceeded);
            found.place.file = Arc::clone(&file.path);
            FileReading::broken(&file.path, found)
        }
    }
}

/// Reads one file by itself, within the budget of its commit.
///
/// # Errors
///
/// Returns an error if the files read so far cost more than the commit may.
pub fn read_file_within(
    file: &SourceFile,
    kind: FileKind,
    meter: &Arc<Meter>,
) -> Result<FileReading, Exceeded> {
    let bytes = match bytes_of(file) {
        Ok(bytes) => bytes,
        Err(diagnostic) => return Ok(FileReading::broken(&file.path, *diagnostic)),
    };
    let mut reader = FileReader::new(Arc::clone(&file.path), meter);
    reader.source = Some(Arc::clone(bytes));
    // All threads count in one place: each value for itself would have them wait for each other.
    let mut uncounted = 0;
    let mut contents = document::read_counted(bytes, &Limits::DEFAULT, &mut |nodes| {
        uncounted += nodes as u64;
        if uncounted < COUNTED_TOGETHER {
            return Count::Continue;
        }
        match reader.charge(BudgetItem::YamlNodes, std::mem::take(&mut uncounted)) {
            Some(()) => Count::Continue,
            None => Count::Stop,
        }
    });
    reader.charge(BudgetItem::YamlNodes, uncounted);
    if let Some(exceeded) = reader.exceeded {
        return Err(exceeded);
    }
    reader.cost = reader.cost.with(BudgetItem::DocumentBytes, bytes.len() as u64);
    let is_broken = !contents.faults.is_empty();
    reader.note_faults(contents.faults.into_iter().filter(|it| kind.counts(it)));
    comments(&contents.ignores, &contents.in_place_of_values, &mut reader);
    let parts = parts_of(kind, &mut contents.documents, &mut reader);
    if !is_broken && let Some(what) = missing(kind, &parts, &contents.documents) {
        let message = format!("the file has no effect: there is no {what} in it");
        let help = "write what is missing, or remove the file";
        reader.add(Kind::UnreadFile, Span::START, message).help = Some(help.to_owned());
    }
    if let Some(exceeded) = reader.exceeded {
        return Err(exceeded);
    }
    reader.cost = reader.cost.with(BudgetItem::Findings, reader.diagnostics.len() as u64);
    Ok(FileReading {
        path: Arc::clone(&file.path),
        diagnostics: reader.diagnostics.into_iter().map(Arc::new).collect(),
        ignores: contents.ignores.into(),
        parts,
        is_cut_off: contents.is_cut_off,
        cost: FileCost::of(&reader.cost),
    })
}

/// Returns the bytes of a file, or why there are none.
fn bytes_of(file: &SourceFile) -> Result<&Arc<[u8]>, Box<Diagnostic>> {
    let found = |kind: Kind, message: String, help: &str| {
        let place = Place { file: Arc::clone(&file.path), span: Span::START };
        Err(Box::new(Diagnostic::new(kind, place, message).with_help(help)))
    };
    match &file.content {
        SourceContent::Bytes(bytes) => Ok(bytes),
        SourceContent::TooLarge(size) => {
            let limit = Limits::DEFAULT.file_bytes;
            let message = format!("the file has {size} bytes, {limit} are allowed");
            found(Kind::FileTooLarge, message, "split it into several files")
        }
        SourceContent::Link => {
            let message = "this is a symbolic link; it is not followed".to_owned();
            found(Kind::NotAFile, message, "put the file itself here")
        }
        SourceContent::Submodule => {
            let message = "this is a submodule; it is not followed".to_owned();
            found(Kind::NotAFile, message, "put the files themselves here")
        }
    }
}

/// Reads what the documents of a file say.
fn parts_of(kind: FileKind, documents: &mut [Node], reader: &mut FileReader) -> FileParts {
    match kind {
        FileKind::Settings => FileParts::Nothing,
        FileKind::Groups => FileParts::Groups(group::read(documents, reader)),
        FileKind::Node => individual::read(documents, reader)
            .map_or(FileParts::Nothing, |it| FileParts::Node(Box::new(it))),
        FileKind::Environment => catalogue::read(documents, reader)
            .map_or(FileParts::Nothing, |it| FileParts::Environment(Box::new(it))),
        FileKind::Tests => FileParts::Tests(test_case::read(documents, reader)),
    }
}

/// Warns of comments that were most likely not meant as such, or silence nothing.
fn comments(ignores: &[Ignore], in_place_of_values: &[(Span, String)], reader: &mut FileReader) {
    for (span, comment) in in_place_of_values {
        let message = format!("`{comment}` is a comment, so there is no value here");
        let help = format!(
            "put a value in quotes: {}; a comment has a blank behind its `#`",
            quote(comment)
        );
        reader.add(Kind::SuspiciousValue, *span, message).help = Some(help);
    }
    for ignore in ignores {
        for kind in &ignore.kinds {
            let known = || Kind::ALL.iter().map(|it| it.as_str());
            if known().any(|it| it == kind) {
                continue;
            }
            let message = format!("`{kind}` is not a kind of warning, so nothing is silenced");
            let help = match closest(kind, known()) {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => "a warning names its kind in brackets".to_owned(),
            };
            reader.add(Kind::SuspiciousValue, ignore.span, message).help = Some(help);
        }
    }
}

/// Returns what a file without any should have.
fn missing(kind: FileKind, parts: &FileParts, documents: &[Node]) -> Option<&'static str> {
    let is_empty = documents.iter().all(Node::is_null);
    match (kind, parts) {
        (FileKind::Groups, _) if is_empty => Some("node group"),
        (FileKind::Node, _) if is_empty => Some("document"),
        (FileKind::Tests, FileParts::Tests(tests)) if tests.is_empty() => {
            // A list whose tests have errors is not empty.
            let has_none = |it: &Node| match &it.content {
                Content::Sequence(elements) => elements.is_empty(),
                _ => it.is_null(),
            };
            documents.iter().all(has_none).then_some("test")
        }
        _ => None,
    }
}
