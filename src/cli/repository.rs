//! The group repository that a command works on: a working tree or a revision.

mod budget;
mod discover;
mod layout_file;
mod meant_directory;
mod not_read;
mod staged_tree;
mod working_tree;

use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use clap::Args;

use super::shell::word_of_shell;
use crate::diagnostic::{Colour, Diagnostic, Format, Kind, Report, ShownFindings, first_error};
use crate::git::{OpenError, Repository};
use crate::hierarchy::Estate;
use crate::model::{Budget, CommitId, Meter};
use crate::priority::STACK;
use crate::reconcile::{SourceError, meant_files, source_files};
use crate::validation::{
    Checked, Layout, Search, SourceContent, SourceFile, unread, unread_tests, validate_within,
};
pub(super) use budget::{BUDGET_OF_DAEMON, BudgetArgs};
use discover::discover;
pub(super) use layout_file::layout_of_directory;
pub(super) use meant_directory::{MeantDirectory, refuse_documents, repository_with_part};
use not_read::NotRead;
use working_tree::{WantedFiles, WorkingFile};

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

/// A repository that has been validated.
pub(super) struct LoadedRepository {
    pub(super) checked: Checked,
    pub(super) commit: Option<CommitId>,
    sources: Vec<SourceFile>,
    /// Where each file lies in the working tree, if it is one.
    paths: Vec<PathBuf>,
    directory: PathBuf,
    /// The repository that was meant, if this one has no groups.
    meant: Option<MeantDirectory>,
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
        // Where there are threads already, they stay.
        rayon::ThreadPoolBuilder::new().stack_size(STACK).build_global().ok();
        let meter = Arc::new(Meter::new(self.budget.budget()));
        let (read, commit) = match &self.rev {
            None => {
                let files = working_tree::read(self.directory(), &meter, WantedFiles::OfCommit);
                let split = |it: WorkingFile| (it.source, it.path);
                (files.map(|files| files.into_iter().map(split).unzip()), None)
            }
            Some(revision) => {
                let (sources, commit) = read_revision(self.directory(), revision, &meter)?;
                (sources.map(|sources| (sources, Vec::new())), Some(commit))
            }
        };
        let (checked, sources, paths) = match read {
            Ok((sources, paths)) => (validate_within(&sources, search, &meter), sources, paths),
            Err(NotRead::Rejected(found)) => {
                let checked = Checked::rejected(*found, &Layout::default(), search);
                (checked, Vec::new(), Vec::new())
            }
            Err(NotRead::Failed(error)) => return Err(error),
        };
        let directory = self.directory().to_owned();
        let mut loaded =
            LoadedRepository { checked, commit, sources, paths, directory, meant: None };
        if loaded.checked.diagnostics.iter().any(|it| it.kind == Kind::NoGroups) {
            let has_meant_files = !self.unread(&loaded)?.is_empty();
            loaded.meant = MeantDirectory::find(self.directory(), has_meant_files);
            let help = loaded.meant.as_ref().map(|it| it.help("clade validate"));
            loaded.checked.explain_no_groups(help);
        }
        Ok(loaded)
    }

    /// Reports the files that are not read, though their paths suggest that they should be. Where the directory is a
    /// part of the repository, they are in their place.
    pub(super) fn unread(&self, loaded: &LoadedRepository) -> Result<Vec<Diagnostic>> {
        if matches!(loaded.meant, Some(MeantDirectory::Above(_))) {
            return Ok(Vec::new());
        }
        let layout = loaded.checked.layout();
        Ok(unread(layout, &self.meant(layout)?))
    }

    /// Reports the files that look like tests and are not read.
    pub(super) fn unread_tests(&self, layout: &Layout) -> Result<Vec<Diagnostic>> {
        Ok(unread_tests(layout, &self.meant(layout)?))
    }

    fn meant(&self, layout: &Layout) -> Result<Vec<SourceFile>> {
        let meter = Meter::new(self.budget.budget());
        Ok(match &self.rev {
            None => working_tree::read_meant(self.directory(), layout, &meter),
            Some(revision) => {
                let (repository, inside) = locate(self.directory())?;
                let commit = repository.resolve_searching(revision)?;
                meant_files(&repository, commit, &inside, layout, &meter)?
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
        match loaded.checked.estate.take() {
            Some(estate) => Ok((estate, loaded)),
            None => Err(self.invalid(&loaded)),
        }
    }

    /// Says what makes the repository invalid, and how to see all of it.
    pub(super) fn invalid(&self, loaded: &LoadedRepository) -> anyhow::Error {
        let error = loaded.first_error().map_or_else(String::new, |it| format!(": {it}"));
        anyhow!("the repository is not valid{error}; see `clade validate{}`", self.words())
    }

    /// Writes the arguments that name this repository and revision for a shell, each after a space.
    pub(super) fn words(&self) -> String {
        let directory = self.directory.as_ref().map(|it| it.to_string_lossy());
        let directory = directory.map(|it| format!(" {}", word_of_shell(&it)));
        let revision = self.rev.as_ref().map(|it| format!(" --rev {}", word_of_shell(it)));
        [directory, revision].into_iter().flatten().collect()
    }
}

impl LoadedRepository {
    /// Returns the repository that was meant, if this one has no groups.
    pub(super) fn meant(&self) -> Option<&MeantDirectory> {
        self.meant.as_ref()
    }

    /// Returns the first error with its place, and how many more there are.
    pub(super) fn first_error(&self) -> Option<String> {
        first_error(&self.checked.diagnostics)
    }

    /// Returns what a file says that was read; nothing where several are shown alike.
    pub(super) fn text(&self, path: &str) -> Option<&[u8]> {
        let mut shown = self.sources.iter().filter(|it| *it.path == *path);
        match (&shown.next()?.content, shown.next()) {
            (SourceContent::Bytes(bytes), None) => Some(bytes),
            _ => None,
        }
    }

    /// Returns where a file of the working tree lies.
    ///
    /// # Errors
    ///
    /// Returns an error if that is not known, or several files are shown alike.
    pub(super) fn path_of(&self, shown: &str) -> Result<PathBuf> {
        let all = self.sources.iter().zip(&self.paths).filter(|(it, _)| *it.path == *shown);
        match all.map(|(_, path)| path).collect::<Vec<_>>().as_slice() {
            [only] => Ok(self.directory.join(only)),
            [] => bail!("`{shown}` is not in the working tree"),
            _ => bail!(
                "several files are shown as `{shown}`, since their names are not UTF-8: rename them"
            ),
        }
    }

    /// Returns the files that were read, with their text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&Arc<str>, &[u8])> {
        self.sources.iter().filter_map(|file| match &file.content {
            SourceContent::Bytes(bytes) => Some((&file.path, bytes.as_ref())),
            _ => None,
        })
    }

    /// Returns what stands before the path of a file, to make it one from the top of the git repository: there forges
    /// look for it, wherever the job runs.
    fn forge_prefix(&self) -> String {
        match locate(&self.directory) {
            Ok((_, inside)) if inside.is_empty() => inside,
            Ok((_, inside)) => inside + "/",
            // In no repository, or in one that git does not open for this user.
            Err(_) => self.prefix(),
        }
    }

    /// Returns what stands before the path of a file, to make it one from the working directory. A directory elsewhere is
    /// left out.
    pub(super) fn prefix(&self) -> String {
        let relative = below_working_directory(&self.directory).unwrap_or_default();
        // Without what changes nothing, such as `./` and a last `/`.
        let parts = relative.components().filter(|it| *it != Component::CurDir);
        parts.fold(String::new(), |path, it| path + &it.as_os_str().to_string_lossy() + "/")
    }

    /// Makes the report of what validation found.
    pub(super) fn report(&self) -> Report {
        let places =
            self.checked.diagnostics.iter().flat_map(|it| {
                std::iter::once(&it.place).chain(it.related.iter().map(|it| &it.place))
            });
        let with_findings: HashSet<&str> = places.map(|it| it.file.as_ref()).collect();
        let mut sources: BTreeMap<Arc<str>, String> = BTreeMap::new();
        // Whose lines a finding is about is not known where several files are shown alike.
        for alike in self.sources.chunk_by(|a, b| a.path == b.path) {
            if let [SourceFile { path, content: SourceContent::Bytes(bytes) }] = alike
                && with_findings.contains(path.as_ref())
                && let Ok(text) = String::from_utf8(bytes.to_vec())
            {
                sources.insert(Arc::clone(path), text);
            }
        }
        Report {
            commit: self.commit.map(|commit| commit.to_string()),
            groups: self.checked.groups,
            diagnostics: self.checked.diagnostics.clone(),
            files: self.checked.files().cloned().collect(),
            prefix: self.forge_prefix(),
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

/// Reads the files of a working tree that can have a part in the repository, as far as they are there.
pub(super) fn read_directory(directory: &Path, budget: Budget) -> Result<Vec<WorkingFile>> {
    match working_tree::read(directory, &Meter::new(budget), WantedFiles::Present) {
        Ok(files) => Ok(files),
        Err(NotRead::Failed(error)) => Err(error),
        Err(NotRead::Rejected(found)) => bail!("{}", found.message),
    }
}

/// Says where the repository is, if a working tree without any of its files is a part of one, or around one, and how to
/// name it to a command.
pub(super) fn help_without_files(
    directory: &Path,
    budget: Budget,
    command: &str,
) -> Option<String> {
    let layout = Layout::default();
    let files = working_tree::read_meant(directory, &layout, &Meter::new(budget));
    let has_meant_files = !unread(&layout, &files).is_empty();
    MeantDirectory::find(directory, has_meant_files).map(|it| it.help(command))
}

/// The files of a revision, or why they are not there, and its commit.
type Revision = (Result<Vec<SourceFile>, NotRead>, CommitId);

/// Reads the files of a directory at a revision of the repository that the directory lies in.
fn read_revision(directory: &Path, revision: &str, meter: &Meter) -> Result<Revision> {
    let (repository, inside) = locate_clone(directory)?;
    let commit = repository.resolve_searching(revision)?;
    let sources = source_files(&repository, commit, &inside, meter).map_err(|error| match error {
        SourceError::Rejected(found) => NotRead::Rejected(found),
        SourceError::Unbuilt(error) => NotRead::Failed(error.into()),
    });
    Ok((sources, commit))
}

/// Returns the path of a directory from the working directory, if it lies in that.
fn below_working_directory(directory: &Path) -> Option<PathBuf> {
    let leads_down = |path: &Path| {
        path.components().all(|it| matches!(it, Component::CurDir | Component::Normal(_)))
    };
    if leads_down(directory) {
        return Some(directory.to_owned());
    }
    let here = std::env::current_dir().ok()?;
    let below = directory.strip_prefix(&here).ok().filter(|it| leads_down(it));
    // Either may be named by way of a link, and `..` may lead back to here.
    let real = || Some(directory.canonicalize().ok()?.strip_prefix(&here).ok()?.to_owned());
    below.map(Path::to_owned).or_else(real)
}

/// As [`locate`], and says what to do where a directory is in no git repository.
pub(super) fn locate_clone(directory: &Path) -> Result<(Repository, String)> {
    locate(directory).map_err(|error| match error.downcast_ref() {
        Some(OpenError::NotARepository(_)) => {
            anyhow!("{error}: name a directory of a clone, or run `git init` and commit the files")
        }
        _ => error,
    })
}

/// Returns the git repository that a directory lies in, and its path from the top.
pub(super) fn locate(directory: &Path) -> Result<(Repository, String)> {
    let (repository, inside) = discover(directory)?;
    match inside.into_os_string().into_string() {
        Ok(inside) => Ok((repository, inside)),
        Err(inside) => bail!(
            "cannot read the directory `{}` of a commit: its name is not UTF-8; rename it",
            inside.display()
        ),
    }
}
