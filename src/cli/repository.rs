//! The group repository that a command works on: a working tree or a revision.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use rayon::prelude::*;

use crate::diagnostic::{Colour, Diagnostic, Format, Report, Severity, ShownFindings};
use crate::document::Limits;
use crate::git::Repository;
use crate::hierarchy::Estate;
use crate::model::{Budget, BudgetItem, BudgetOverride, CommitId, Exceeded, Meter};
use crate::reconcile::{SourceError, meant_files, source_files};
use crate::validation::{
    Checked, Layout, OwnSchemas, Search, SourceContent, SourceFile, too_large, unread,
    unread_tests, validate_within,
};

/// Which repository, and which of its states.
#[derive(Clone, Debug, Args)]
pub(super) struct RepositoryArgs {
    /// The directory of the group repository [default: .]
    #[arg(value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
    /// Read this git revision instead of the working tree
    #[arg(long, value_name = "REV")]
    pub(super) rev: Option<String>,
    #[command(flatten)]
    pub(super) budget: BudgetArgs,
}

/// What a commit or a working tree may cost to read.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct BudgetArgs {
    /// Change a limit of the commit budget, such as `groups=50000`; repeatable
    #[arg(
        long = "commit-budget",
        value_name = "NAME=NUMBER",
        env = "CLADE_COMMIT_BUDGET",
        value_delimiter = ','
    )]
    commit_budget: Vec<BudgetOverride>,
}

impl BudgetArgs {
    /// Returns what a commit may cost.
    pub(super) fn budget(&self) -> Budget {
        Budget::DEFAULT.with(&self.commit_budget)
    }
}

/// A repository that has been validated.
pub(super) struct LoadedRepository {
    pub(super) checked: Checked,
    pub(super) commit: Option<CommitId>,
    sources: Vec<SourceFile>,
    directory: PathBuf,
}

impl RepositoryArgs {
    /// Returns the directory of the group repository.
    pub(super) fn directory(&self) -> &Path {
        self.directory.as_deref().unwrap_or(Path::new("."))
    }

    /// Returns whether the command line says which repository or revision is meant.
    pub(super) fn is_given(&self) -> bool {
        self.directory.is_some() || self.rev.is_some()
    }

    /// Reads and validates the repository.
    pub(super) fn load(&self) -> Result<LoadedRepository> {
        self.search(Search::Decisive)
    }

    /// Reads and validates the repository, looking for so much.
    pub(super) fn search(&self, search: Search) -> Result<LoadedRepository> {
        let meter = Arc::new(Meter::new(self.budget.budget()));
        let (sources, commit) = match &self.rev {
            None => (read_directory_within(self.directory(), &meter), None),
            Some(revision) => {
                let (sources, commit) = read_revision(self.directory(), revision, &meter)?;
                (sources, Some(commit))
            }
        };
        let (checked, sources) = match sources {
            Ok(sources) => (validate_within(&sources, search, &meter), sources),
            Err(NotRead::Rejected(found)) => {
                (Checked::rejected(*found, &Layout::default(), search), Vec::new())
            }
            Err(NotRead::Failed(error)) => return Err(error),
        };
        Ok(LoadedRepository { checked, commit, sources, directory: self.directory().to_owned() })
    }

    /// Reports the files that are not read, though their paths suggest that they should be.
    pub(super) fn unread(&self, layout: &Layout) -> Result<Vec<Diagnostic>> {
        Ok(unread(layout, &self.meant(layout)?))
    }

    /// Reports the files that look like tests and are not read.
    pub(super) fn unread_tests(&self, layout: &Layout) -> Result<Vec<Diagnostic>> {
        Ok(unread_tests(layout, &self.meant(layout)?))
    }

    fn meant(&self, layout: &Layout) -> Result<Vec<SourceFile>> {
        Ok(match &self.rev {
            None => {
                let (mut files, meter) = (Vec::new(), Meter::new(self.budget.budget()));
                // Reading the files reports what exceeds the budget.
                let _ = find_meant(self.directory(), "", layout, &meter, &mut files);
                files
            }
            Some(revision) => {
                let (repository, inside) = locate(self.directory())?;
                let commit = repository.resolve_searching(revision)?;
                meant_files(&repository, commit, &inside, layout)?
            }
        })
    }

    /// Reads the repository and returns its estate.
    ///
    /// A repository that is not valid is an error: nothing answers from it.
    pub(super) fn estate(&self) -> Result<Estate> {
        self.valid().map(|(estate, _)| estate)
    }

    /// Reads the repository and returns its estate, and the rest of what was read.
    pub(super) fn valid(&self) -> Result<(Estate, LoadedRepository)> {
        let mut loaded = self.load()?;
        let error = loaded.first_error().map_or_else(String::new, |it| format!(": {it}"));
        let no_estate = || anyhow!("the repository is not valid{error}; see `clade validate`");
        let estate = loaded.checked.estate.take().ok_or_else(no_estate)?;
        Ok((estate, loaded))
    }
}

impl LoadedRepository {
    /// Returns the first error with its place, and how many more there are.
    pub(super) fn first_error(&self) -> Option<String> {
        let errors = self.checked.diagnostics.iter().filter(|it| it.severity == Severity::Error);
        let first = errors.clone().next()?;
        let more = match errors.count() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let start = first.place.span.start;
        let (file, message) = (&first.place.file, &first.message);
        Some(format!("{file}:{}:{}: {message}{more}", start.line, start.column))
    }

    /// Returns what a file says that was read.
    pub(super) fn text(&self, path: &str) -> Option<&[u8]> {
        let source = self.sources.iter().find(|it| *it.path == *path)?;
        match &source.content {
            SourceContent::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the files that were read, with their text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&Arc<str>, &[u8])> {
        self.sources.iter().filter_map(|file| match &file.content {
            SourceContent::Bytes(bytes) => Some((&file.path, bytes.as_ref())),
            _ => None,
        })
    }

    /// Makes the report of what validation found.
    pub(super) fn report(&self) -> Report {
        let places =
            self.checked.diagnostics.iter().flat_map(|it| {
                std::iter::once(&it.place).chain(it.related.iter().map(|it| &it.place))
            });
        let with_findings: HashSet<&str> = places.map(|it| it.file.as_ref()).collect();
        let sources: BTreeMap<Arc<str>, String> = self
            .sources
            .iter()
            .filter_map(|file| match &file.content {
                SourceContent::Bytes(bytes) => Some((&file.path, bytes)),
                _ => None,
            })
            .filter(|(path, _)| with_findings.contains(path.as_ref()))
            .filter_map(|(path, bytes)| {
                Some((Arc::clone(path), String::from_utf8(bytes.to_vec()).ok()?))
            })
            .collect();
        let relative = self.directory.is_relative().then(|| self.directory.to_string_lossy());
        let prefix =
            match relative.as_deref().map(|it| it.trim_start_matches("./").trim_end_matches('/')) {
                None | Some("" | ".") => String::new(),
                Some(directory) => format!("{directory}/"),
            };
        Report {
            commit: self.commit.map(|commit| commit.to_string()),
            groups: self.checked.groups,
            diagnostics: self.checked.diagnostics.clone(),
            files: self.checked.files().cloned().collect(),
            prefix,
            sources,
        }
    }

    /// Writes the report; people are shown so many findings of it.
    pub(super) fn render(&self, format: Format, colour: Colour, shown: ShownFindings) -> String {
        match format {
            Format::Human => self.report().render_for_people(colour, shown),
            format => self.report().render(format, colour),
        }
    }
}

/// The files are not there.
enum NotRead {
    /// They cannot be read.
    Failed(anyhow::Error),
    /// The repository is not valid, whatever they say.
    Rejected(Box<Diagnostic>),
}

impl From<anyhow::Error> for NotRead {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Exceeded> for NotRead {
    fn from(exceeded: Exceeded) -> Self {
        Self::Rejected(Box::new(too_large(exceeded)))
    }
}

/// Reads the files of a working tree that can have a part in the repository.
pub(super) fn read_directory(directory: &Path) -> Result<Vec<SourceFile>> {
    match read_directory_within(directory, &Meter::new(Budget::DEFAULT)) {
        Ok(files) => Ok(files),
        Err(NotRead::Failed(error)) => Err(error),
        Err(NotRead::Rejected(found)) => bail!("{}", found.message),
    }
}

/// How many files are read at once: so many of the largest are read beyond a budget at the most.
const READ_AT_ONCE: usize = 64;

fn read_directory_within(directory: &Path, meter: &Meter) -> Result<Vec<SourceFile>, NotRead> {
    let what = || format!("cannot read the directory `{}`", directory.display());
    let metadata = std::fs::metadata(directory).with_context(what)?;
    if !metadata.is_dir() {
        return Err(anyhow!("`{}` is not a directory", directory.display()).into());
    }
    let mut files = Vec::new();
    let settings: Vec<SourceFile> = ["clade.yaml", "clade.yml"]
        .into_iter()
        .filter(|name| directory.join(name).symlink_metadata().is_ok())
        .map(|name| read_file(directory, name))
        .collect::<Result<_>>()?;
    let (layout, _) = crate::validation::read_layout(&settings);
    files.extend(settings);
    let mut paths = Vec::new();
    for part in [&layout.groups, &layout.nodes, &layout.environments, &layout.tests] {
        let path = directory.join(part);
        match path.symlink_metadata() {
            Err(_) => {}
            Ok(metadata) if metadata.is_dir() => {
                walk(directory, part, 1, meter, &mut paths, &mut files)?;
            }
            Ok(_) => files.push(read_file(directory, part)?),
        }
    }
    // Some at a time: the first error is that of the first file, and little is read beyond a budget.
    for paths in paths.chunks(READ_AT_ONCE) {
        let read: Vec<Result<SourceFile>> =
            paths.par_iter().map(|path| read_file(directory, path)).collect();
        for file in read {
            let file = file?;
            // No two files of a working tree are known to be the same.
            meter.charge(BudgetItem::DocumentBytes, file.size())?;
            files.push(file);
        }
    }
    files.extend(read_schemas(directory, &layout)?);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

/// Reads the files with schemas that the settings name, and those that they refer to.
fn read_schemas(directory: &Path, layout: &Layout) -> Result<Vec<SourceFile>> {
    let failure = OnceCell::new();
    let read = |path: &str| {
        let mut parts = path.split('/').scan(PathBuf::new(), |way, part| {
            way.push(part);
            Some(way.clone())
        });
        // A commit has nothing below a link, so neither has the working tree.
        let link = parts.find(|it| directory.join(it).is_symlink());
        if link.is_some() {
            return Some(SourceContent::Link);
        }
        if !directory.join(path).is_file() {
            return None;
        }
        match read_file(directory, path) {
            Ok(file) => Some(file.content),
            Err(error) => {
                drop(failure.set(error));
                None
            }
        }
    };
    let files = OwnSchemas::sources(&layout.schemas, &read);
    match failure.into_inner() {
        Some(error) => Err(error),
        None => Ok(files.into_iter().map(|(path, content)| SourceFile { path, content }).collect()),
    }
}

/// Finds the files of a directory that are to be read, and submodules, which are not.
fn walk(
    root: &Path,
    relative: &str,
    depth: u64,
    meter: &Meter,
    paths: &mut Vec<String>,
    submodules: &mut Vec<SourceFile>,
) -> Result<(), NotRead> {
    let directory = root.join(relative);
    let what = || format!("cannot read the directory `{}`", directory.display());
    meter.charge(BudgetItem::Depth, depth)?;
    for entry in std::fs::read_dir(&directory).with_context(what)? {
        let entry = entry.with_context(what)?;
        let name = entry.file_name();
        // A commit has no such file, but for the locks of an editor.
        if name == ".git" || name.as_encoded_bytes().starts_with(b".#") {
            continue;
        }
        let path = format!("{relative}/{}", name.to_string_lossy());
        meter.charge(BudgetItem::Entries, 1)?;
        meter.charge(BudgetItem::PathLength, path.len() as u64)?;
        meter.charge(BudgetItem::PathBytes, path.len() as u64)?;
        let kind = entry.file_type().with_context(what)?;
        if kind.is_dir() {
            if entry.path().join(".git").exists() {
                submodules
                    .push(SourceFile { path: path.into(), content: SourceContent::Submodule });
            } else {
                walk(root, &path, depth + 1, meter, paths, submodules)?;
            }
        } else if is_yaml(&path) || kind.is_symlink() {
            paths.push(path);
        }
    }
    Ok(())
}

/// Finds files that are not read, but may be meant by their path. What cannot be read is left out:
/// nothing depends on it.
fn find_meant(
    root: &Path,
    relative: &str,
    layout: &Layout,
    meter: &Meter,
    files: &mut Vec<SourceFile>,
) -> Result<(), Exceeded> {
    let Ok(entries) = std::fs::read_dir(root.join(relative)) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if relative.is_empty() { name } else { format!("{relative}/{name}") };
        meter.charge(BudgetItem::Entries, 1)?;
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && layout.may_hold_meant(&path) && !entry.path().join(".git").exists() {
            meter.charge(BudgetItem::Depth, path.matches('/').count() as u64)?;
            find_meant(root, &path, layout, meter, files)?;
        } else if kind.is_file() && layout.may_be_meant(&path) {
            files.extend(read_file(root, &path));
        }
    }
    Ok(())
}

fn is_yaml(path: &str) -> bool {
    matches!(path.rsplit_once('.'), Some((_, "yaml" | "yml")))
}

fn read_file(root: &Path, relative: &str) -> Result<SourceFile> {
    let path = root.join(relative);
    let what = || format!("cannot read `{}`", path.display());
    let metadata = path.symlink_metadata().with_context(what)?;
    let content = if metadata.is_symlink() {
        SourceContent::Link
    } else if metadata.len() > Limits::DEFAULT.file_bytes {
        SourceContent::TooLarge(metadata.len())
    } else {
        SourceContent::Bytes(std::fs::read(&path).with_context(what)?.into())
    };
    Ok(SourceFile { path: relative.into(), content })
}

/// The files of a revision, or why they are not there, and its commit.
type Revision = (Result<Vec<SourceFile>, NotRead>, CommitId);

/// Reads the files of a directory at a revision of the repository that the directory lies in.
fn read_revision(directory: &Path, revision: &str, meter: &Meter) -> Result<Revision> {
    let (repository, inside) = locate(directory)?;
    let commit = repository.resolve_searching(revision)?;
    let sources = source_files(&repository, commit, &inside, meter).map_err(|error| match error {
        SourceError::Rejected(found) => NotRead::Rejected(found),
        SourceError::Unbuilt(error) => NotRead::Failed(error.into()),
    });
    Ok((sources, commit))
}

/// Returns the git repository that a directory lies in, and its path from the top.
pub(super) fn locate(directory: &Path) -> Result<(Repository, String)> {
    let what = || format!("cannot read the directory `{}`", directory.display());
    let absolute = directory.canonicalize().with_context(what)?;
    let repository = Repository::discover(&absolute)?;
    let inside = match repository.worktree() {
        Some(worktree) => absolute
            .strip_prefix(worktree.canonicalize().with_context(what)?)
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default(),
        None => String::new(),
    };
    Ok((repository, inside))
}
