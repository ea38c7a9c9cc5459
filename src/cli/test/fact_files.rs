//! The files of facts that tests name: those of the working tree, or those of the commit whose tests are run.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, bail};

use super::super::node::facts_file;
use super::super::repository::{LoadedRepository, RepositoryArgs, locate};
use super::super::shell::word_of_shell;
use crate::facts::{FILE_BYTES, NodeFacts, read_facts, too_long};
use crate::git::{EntryKind, Opener};
use crate::model::CommitId;
use crate::validation::TestCase;

/// Where the facts of tests are.
pub(super) enum FactFiles {
    /// In files below the directory of the group repository.
    WorkingTree(PathBuf),
    /// In a commit.
    Commit(CommittedFacts),
}

/// The files of a commit.
pub(super) struct CommittedFacts {
    /// Each thread opens a repository of its own.
    opener: Opener,
    commit: CommitId,
    /// The directory of the group repository, from the top.
    directory: String,
}

impl FactFiles {
    /// Returns where the facts of the tests are that were read.
    pub(super) fn of(repository: &RepositoryArgs, loaded: &LoadedRepository) -> Result<Self> {
        let directory = repository.directory();
        let Some(commit) = loaded.commit else {
            return Ok(Self::WorkingTree(directory.to_owned()));
        };
        let (repository, directory) = locate(directory)?;
        Ok(Self::Commit(CommittedFacts { opener: repository.opener(), commit, directory }))
    }

    /// Reads the file of facts that a test names, if it names one.
    pub(super) fn read(&self, test: &TestCase) -> Result<Option<NodeFacts>> {
        let Some(file) = test.facts_file.as_deref() else { return Ok(None) };
        let what = || format!("cannot read the facts in `{file}`");
        match self {
            Self::WorkingTree(directory) => {
                check(directory, file).with_context(what)?;
                facts_file(&inside(directory, file)).map(Some)
            }
            Self::Commit(committed) => committed.read(file).with_context(what).map(Some),
        }
    }

    /// Returns the command that explains the node of a test, if it takes no more than a file.
    pub(super) fn explaining(&self, test: &TestCase) -> Option<String> {
        let (Self::WorkingTree(directory), None) = (self, &test.trusted) else { return None };
        let file = inside(directory, test.facts_file.as_deref()?);
        let words = [&*test.node, &directory.to_string_lossy(), "--facts", &file.to_string_lossy()];
        Some(format!("clade explain {}", words.map(word_of_shell).join(" ")))
    }
}

fn inside(directory: &Path, file: &str) -> PathBuf {
    if directory == Path::new(".") { PathBuf::from(file) } else { directory.join(file) }
}

/// Refuses a file of facts outside the repository, behind a link, which may lead there, and one that
/// is not a regular file.
fn check(directory: &Path, file: &str) -> Result<()> {
    let directory = directory.canonicalize()?;
    // Git keeps nothing named `.git`, so a commit cannot widen this.
    let root = directory.ancestors().find(|it| it.join(".git").exists()).unwrap_or(&directory);
    let mut path = directory.clone();
    for part in file.split('/') {
        if part == ".." {
            path.pop();
        } else {
            path.push(part);
        }
    }
    if !path.starts_with(root) {
        bail!("it is not inside the repository `{}`", root.display());
    }
    match path.canonicalize() {
        Ok(real) if real != path => bail!("it is behind a link"),
        Ok(_) if !path.is_file() => bail!("it is not a regular file"),
        // What is not there is an error when it is read, and so is a link to nowhere.
        Ok(_) | Err(_) => Ok(()),
    }
}

impl CommittedFacts {
    fn read(&self, file: &str) -> Result<NodeFacts> {
        let repository = self.opener.open()?;
        let path = self.path_of(file)?;
        let bytes = match repository.entry(self.commit, &path)? {
            Some(EntryKind::File(blob)) if repository.blob_size(blob)? > FILE_BYTES => {
                return Err(too_long().into());
            }
            Some(EntryKind::File(blob)) => repository.blob(blob)?,
            Some(EntryKind::Link) => bail!("it is behind a link"),
            Some(EntryKind::Submodule) => bail!("it is not a regular file"),
            None => bail!("the commit {} has no such file", self.commit),
        };
        read_facts(&bytes).map_err(Error::from)
    }

    /// Returns the path from the top of the repository.
    fn path_of(&self, file: &str) -> Result<String> {
        let mut parts: Vec<&str> = self.directory.split('/').filter(|it| !it.is_empty()).collect();
        for part in file.split('/') {
            match part {
                ".." if parts.pop().is_none() => bail!("it is not inside the repository"),
                ".." => {}
                part => parts.push(part),
            }
        }
        Ok(parts.join("/"))
    }
}
