//! The files of a working tree, as a commit of it has them.
//!
//! What is valid here and not in the commit, or the other way round, passes a check and then fails in the daemon, or is
//! seen by no check at all. So git's rules hold: nothing below a link or in a submodule is there, a pipe is not a file, and
//! names need not be UTF-8.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs::FileType;
use std::io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use rayon::prelude::*;

use super::not_read::NotRead;
use super::staged_tree::StagedTree;
use crate::document::Limits;
use crate::git::Repository;
use crate::model::{BudgetItem, Exceeded, Meter};
use crate::validation::{Layout, OwnSchemas, SourceContent, SourceFile, read_layout};

/// How many files are read at once: so many of the largest are read beyond a budget at the most.
const READ_AT_ONCE: usize = 64;

/// The names of the settings.
const SETTINGS: [&str; 2] = ["clade.yaml", "clade.yml"];

/// Which files of a working tree are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedFiles {
    /// All that a commit of it has.
    OfCommit,
    /// Those that are there: a sparse checkout has some of them.
    Present,
}

/// A file of a working tree.
pub(in crate::cli) struct WorkingFile {
    /// The path from the root of the group repository, as its name is written.
    pub(in crate::cli) path: PathBuf,
    pub(in crate::cli) source: SourceFile,
}

/// Reads the files of a working tree that can have a part in the repository.
pub(super) fn read(
    root: &Path,
    meter: &Meter,
    wanted: WantedFiles,
) -> Result<Vec<WorkingFile>, NotRead> {
    let what = || format!("cannot read the directory `{}`", root.display());
    if !std::fs::metadata(root).with_context(what)?.is_dir() {
        let what = "is not a directory: name the directory of the repository, all of which is read";
        return Err(anyhow!("`{}` {what}", root.display()).into());
    }
    if is_bare(root) {
        let why = "is a bare git repository, which has no working tree: pass a revision, such as `--rev HEAD`, to a command that takes one, or work in a clone";
        return Err(anyhow!("`{}` {why}", root.display()).into());
    }
    let tree = WorkingTree::new(root);
    if wanted == WantedFiles::OfCommit {
        tree.check_settings()?;
    }
    let mut files: Vec<WorkingFile> = Vec::new();
    for name in SETTINGS {
        let path = Path::new(name);
        match tree.find(path)? {
            None | Some(WorkingEntry::Directory) => {}
            Some(WorkingEntry::Leaf(leaf)) => files.push(read_leaf(root, path, leaf)?),
        }
    }
    let settings: Vec<SourceFile> = files.iter().map(|it| it.source.clone()).collect();
    let (layout, _) = read_layout(&settings);
    if wanted == WantedFiles::OfCommit {
        tree.check_whole(&layout)?;
    }
    let mut found = Vec::new();
    for part in outermost(&layout) {
        let path = Path::new(part);
        match tree.find(path)? {
            Some(WorkingEntry::Directory) => tree.walk(path, &layout, meter, &mut found)?,
            Some(WorkingEntry::Leaf(leaf)) if has_part(path, leaf, &layout) => {
                found.push((path.to_owned(), leaf));
            }
            Some(WorkingEntry::Leaf(_)) | None => {}
        }
    }
    read_all(root, &found, meter, &mut files)?;
    let known: HashSet<PathBuf> = files.iter().map(|it| it.path.clone()).collect();
    let schemas = tree.schemas(&layout, wanted)?.into_iter();
    files.extend(schemas.filter(|it| !known.contains(&it.path)));
    files.sort_by(|a, b| (&a.source.path, &a.path).cmp(&(&b.source.path, &b.path)));
    Ok(files)
}

/// Reads what was found, within the budget.
fn read_all(
    root: &Path,
    found: &[(PathBuf, WorkingLeaf)],
    meter: &Meter,
    files: &mut Vec<WorkingFile>,
) -> Result<(), NotRead> {
    let mut contents: HashSet<Arc<[u8]>> = HashSet::new();
    // Some at a time: the first error is that of the first file, and little is read beyond a budget.
    for found in found.chunks(READ_AT_ONCE) {
        let read: Vec<Result<WorkingFile>> =
            found.par_iter().map(|(path, leaf)| read_leaf(root, path, *leaf)).collect();
        for file in read {
            let file = file?;
            if let SourceContent::Bytes(bytes) = &file.source.content
                && contents.insert(Arc::clone(bytes))
            {
                meter.charge(BudgetItem::DistinctBytes, file.source.size())?;
            }
            meter.charge(BudgetItem::DocumentBytes, file.source.size())?;
            files.push(file);
        }
    }
    Ok(())
}

/// Reads the files that are not read, but may be meant by their path. What cannot be read is left out: nothing depends
/// on it.
pub(super) fn read_meant(root: &Path, layout: &Layout, meter: &Meter) -> Vec<SourceFile> {
    let (tree, mut files) = (WorkingTree::new(root), Vec::new());
    // Reading the files reports what exceeds the budget.
    let _ = tree.find_meant(Path::new(""), layout, meter, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// What git makes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkingEntry {
    Directory,
    Leaf(WorkingLeaf),
}

/// An entry that git keeps as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkingLeaf {
    File,
    Link,
    Submodule,
}

/// The directory of a group repository.
struct WorkingTree<'t> {
    root: &'t Path,
    /// What git knows of it; none where it is in no repository.
    staged: OnceCell<Option<StagedTree>>,
}

impl<'t> WorkingTree<'t> {
    fn new(root: &'t Path) -> Self {
        Self { root, staged: OnceCell::new() }
    }

    fn staged(&self) -> Option<&StagedTree> {
        self.staged.get_or_init(|| StagedTree::of(self.root)).as_ref()
    }

    /// Returns what a commit has at a path: nothing below a link or a submodule.
    fn find(&self, path: &Path) -> Result<Option<WorkingEntry>> {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.retain(|it| !it.as_os_str().is_empty());
        for directory in above.into_iter().rev() {
            if self.entry(directory)? != Some(WorkingEntry::Directory) {
                return Ok(None);
            }
        }
        self.entry(path)
    }

    /// Returns what is at a path whose directory is known to be one.
    fn entry(&self, path: &Path) -> Result<Option<WorkingEntry>> {
        let whole = self.root.join(path);
        match whole.symlink_metadata() {
            Ok(metadata) => Ok(self.entry_of(path, metadata.file_type())),
            // A path of the settings can be one that no file has.
            Err(error) if matches!(error.kind(), NotFound | NotADirectory | InvalidInput) => {
                Ok(None)
            }
            Err(error) => Err(error).with_context(|| format!("cannot read `{}`", whole.display())),
        }
    }

    fn entry_of(&self, path: &Path, kind: FileType) -> Option<WorkingEntry> {
        if kind.is_dir() {
            let is_submodule = is_repository(&self.root.join(path)) || self.has_submodule(path);
            let submodule = WorkingEntry::Leaf(WorkingLeaf::Submodule);
            Some(if is_submodule { submodule } else { WorkingEntry::Directory })
        } else {
            let leaf = match kind.is_symlink() {
                true => WorkingLeaf::Link,
                // Git keeps neither pipes nor devices.
                false => kind.is_file().then_some(WorkingLeaf::File)?,
            };
            let is_ignored = self.staged().is_some_and(|it| it.ignores(path));
            (!is_ignored).then_some(WorkingEntry::Leaf(leaf))
        }
    }

    /// The submodules that git knows: those that are not checked out are empty directories.
    fn has_submodule(&self, path: &Path) -> bool {
        self.staged().is_some_and(|it| it.has_submodule(path))
    }

    /// Refuses a sparse checkout that leaves out the settings: they say which files have a part in the repository.
    fn check_settings(&self) -> Result<()> {
        self.check_present(|it| SETTINGS.iter().any(|name| it == Path::new(name)))
    }

    /// Refuses a sparse checkout that leaves out files that have a part in the repository.
    fn check_whole(&self, layout: &Layout) -> Result<()> {
        self.check_present(|it| has_part(it, WorkingLeaf::File, layout))
    }

    fn check_present(&self, is_needed: impl Fn(&Path) -> bool) -> Result<()> {
        let advice = "pass a revision, such as `--rev HEAD`, or run `git sparse-checkout disable`";
        let Some(staged) = self.staged() else {
            if StagedTree::is_unreadable(self.root) {
                bail!("what this sparse checkout leaves out cannot be read: {advice}");
            }
            return Ok(());
        };
        let is_missing =
            |it: &&PathBuf| is_needed(it) && self.root.join(it).symlink_metadata().is_err();
        match staged.sparse().find(is_missing) {
            None => Ok(()),
            Some(path) => bail!(
                "`{}` is not in this sparse checkout, which a commit of it has: {advice}",
                path.display()
            ),
        }
    }

    /// Finds the entries of a directory that are to be read, and those that are not followed.
    fn walk(
        &self,
        directory: &Path,
        layout: &Layout,
        meter: &Meter,
        found: &mut Vec<(PathBuf, WorkingLeaf)>,
    ) -> Result<(), NotRead> {
        meter.charge(BudgetItem::Depth, directory.components().count() as u64)?;
        for (path, kind) in self.entries(directory)? {
            let length = path.as_os_str().len() as u64;
            meter.charge(BudgetItem::Entries, 1)?;
            meter.charge(BudgetItem::PathLength, length)?;
            meter.charge(BudgetItem::PathBytes, length)?;
            match self.entry_of(&path, kind) {
                Some(WorkingEntry::Directory) => self.walk(&path, layout, meter, found)?,
                Some(WorkingEntry::Leaf(WorkingLeaf::Link)) if self.is_lock(&path) => {}
                Some(WorkingEntry::Leaf(leaf)) if has_part(&path, leaf, layout) => {
                    found.push((path, leaf));
                }
                Some(WorkingEntry::Leaf(_)) | None => {}
            }
        }
        Ok(())
    }

    /// Returns what a directory has, without the repository of git.
    fn entries(&self, directory: &Path) -> Result<Vec<(PathBuf, FileType)>> {
        let whole = self.root.join(directory);
        let what = || format!("cannot read the directory `{}`", whole.display());
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(&whole).with_context(what)? {
            let entry = entry.with_context(what)?;
            let name = entry.file_name();
            if name != ".git" {
                entries.push((directory.join(&name), entry.file_type().with_context(what)?));
            }
        }
        Ok(entries)
    }

    /// Returns whether a link is one by which Emacs locks a file: it names who edits it and leads nowhere.
    fn is_lock(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b".#") && !self.root.join(path).exists()
    }

    /// Finds files that are not read, but may be meant by their path.
    fn find_meant(
        &self,
        directory: &Path,
        layout: &Layout,
        meter: &Meter,
        files: &mut Vec<SourceFile>,
    ) -> Result<(), Exceeded> {
        for (path, kind) in self.entries(directory).unwrap_or_default() {
            meter.charge(BudgetItem::Entries, 1)?;
            let shown = path.to_string_lossy();
            if kind.is_file() && layout.may_be_meant(&shown) {
                let file = read_leaf(self.root, &path, WorkingLeaf::File);
                files.extend(file.map(|it| it.source));
            } else if kind.is_dir()
                && layout.may_hold_meant(&shown)
                && self.entry_of(&path, kind) == Some(WorkingEntry::Directory)
            {
                meter.charge(BudgetItem::Depth, path.components().count() as u64)?;
                self.find_meant(&path, layout, meter, files)?;
            }
        }
        Ok(())
    }

    /// Reads the files with schemas that the settings name, and those that they refer to.
    fn schemas(&self, layout: &Layout, wanted: WantedFiles) -> Result<Vec<WorkingFile>> {
        let failure = OnceCell::new();
        let read = |path: &str| {
            let path = Path::new(path);
            let content = match self.find(path) {
                Ok(None) if wanted == WantedFiles::OfCommit => {
                    let error = self.check_present(|it| it == path).err()?;
                    drop(failure.set(error));
                    return None;
                }
                Ok(None | Some(WorkingEntry::Directory)) => return None,
                Ok(Some(WorkingEntry::Leaf(leaf))) => {
                    read_leaf(self.root, path, leaf).map(|it| it.source.content)
                }
                Err(error) => Err(error),
            };
            content.map_err(|error| drop(failure.set(error))).ok()
        };
        let files = OwnSchemas::sources(&layout.schemas, &read);
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        let file = |(path, content): (Arc<str>, SourceContent)| WorkingFile {
            path: PathBuf::from(&*path),
            source: SourceFile { path, content },
        };
        Ok(files.into_iter().map(file).collect())
    }
}

/// Returns whether an entry has a part in the repository, whatever it says.
fn has_part(path: &Path, leaf: WorkingLeaf, layout: &Layout) -> bool {
    let content = match leaf {
        WorkingLeaf::File => SourceContent::TooLarge(0),
        WorkingLeaf::Link => SourceContent::Link,
        WorkingLeaf::Submodule => SourceContent::Submodule,
    };
    layout.kind_of(&SourceFile { path: path.to_string_lossy().into(), content }).is_some()
}

/// Reads what is at a path, unless it is too large for a document.
fn read_leaf(root: &Path, path: &Path, leaf: WorkingLeaf) -> Result<WorkingFile> {
    let whole = root.join(path);
    let what = || format!("cannot read `{}`", whole.display());
    let content = match leaf {
        WorkingLeaf::Link => SourceContent::Link,
        WorkingLeaf::Submodule => SourceContent::Submodule,
        WorkingLeaf::File => match whole.symlink_metadata().with_context(what)?.len() {
            size if size > Limits::DEFAULT.file_bytes => SourceContent::TooLarge(size),
            _ => SourceContent::Bytes(std::fs::read(&whole).with_context(what)?.into()),
        },
    };
    let source = SourceFile { path: path.to_string_lossy().into(), content };
    Ok(WorkingFile { path: path.to_owned(), source })
}

/// Returns the directories of a layout that are not inside of others.
fn outermost(layout: &Layout) -> Vec<&str> {
    let parts = [&layout.groups, &layout.nodes, &layout.environments, &layout.tests];
    let parts: HashSet<&str> = parts.into_iter().map(String::as_str).collect();
    let is_inside = |inner: &str| {
        parts.iter().any(|it| inner.strip_prefix(it).is_some_and(|rest| rest.starts_with('/')))
    };
    let mut outermost: Vec<&str> = parts.iter().copied().filter(|it| !is_inside(it)).collect();
    outermost.sort_unstable();
    outermost
}

/// Returns whether a directory is one of another repository. Git takes it for an ordinary one if its `.git` is neither a
/// file nor the directory of a repository.
fn is_repository(directory: &Path) -> bool {
    let git = directory.join(".git");
    git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
}

/// Returns whether a directory is where git keeps a repository without a working tree.
fn is_bare(directory: &Path) -> bool {
    // Git is asked only where there may be one.
    let has = |name: &str| directory.join(name).exists();
    let may_be = has("HEAD") && has("objects") && !has(".git");
    may_be && Repository::at(directory).is_ok_and(|it| it.worktree().is_none())
}
