//! Where the groups come from: a repository of this machine, or a remote that a mirror follows.

use std::path::PathBuf;
use std::sync::OnceLock;

use parking_lot::{Mutex, MutexGuard};

use super::state::{Ancestry, SourceKind};
use super::status::Reason;
use super::tree_files::SETTINGS_FILES;
use crate::changeset::PathKind;
use crate::git::{
    EntryKind, FetchError, FetchFailure, FilesError, Mirror, MirrorOptions, ObjectFault, OpenError,
    PushError, ReadError, Repository, ResolveError, short_name,
};
use crate::model::{Budget, CommitId};
use crate::validation::{Layout, SourceContent, SourceFile, read_layout};

/// Where the branch is.
#[derive(Debug)]
pub enum Target {
    /// In a repository of this machine that is read as it is.
    Local(PathBuf),
    /// At a remote that a mirror follows.
    Remote(Box<dyn Upstream>),
}

/// A remote and the mirror of it, as the controller uses them.
pub trait Upstream: std::fmt::Debug + Send + Sync {
    /// Fetches the watched branch, and returns its head. Blocking.
    ///
    /// # Errors
    ///
    /// Returns why the branch cannot be fetched.
    fn fetch_watched(&self, branch: Option<&str>) -> Result<CommitId, FetchError>;

    /// Opens the mirror for reading.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be opened.
    fn repository(&self) -> Result<Repository, OpenError>;

    /// Moves a branch of the remote to a commit if it is at `expected`; none is for a new branch.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// Returns why the branch is not moved, or that this is not known.
    fn push(
        &self,
        branch: &str,
        commit: CommitId,
        expected: Option<CommitId>,
        watched: Option<&str>,
    ) -> Result<(), PushError>;

    /// Brings to the disk what was pushed since a commit, or the last commit alone, where that is a matter of this
    /// machine. Blocking.
    fn sync(
        &self,
        branch: &str,
        commit: CommitId,
        since: Option<CommitId>,
    ) -> Result<(), PushError>;

    /// Fetches everything again into a fresh mirror, into which commits are copied that the remote does not have.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// Returns why the branch cannot be fetched; the mirror is then as it was.
    fn renew(&self, branch: Option<&str>, kept: &[CommitId]) -> Result<(), FetchError>;

    /// Returns the live commit that the mirror names.
    fn live(&self) -> Option<CommitId>;

    /// Names the live commit in the mirror; returns whether that worked.
    fn set_live(&self, commit: CommitId) -> bool;

    /// Returns whether the mirror is lost with the process.
    fn is_temporary(&self) -> bool;

    /// Returns the mirror, for stages that work on its directory and its other refs.
    fn mirror(&self) -> Option<&Mirror> {
        None
    }
}

impl Upstream for Mirror {
    fn fetch_watched(&self, branch: Option<&str>) -> Result<CommitId, FetchError> {
        Self::fetch_watched(self, branch).map(|it| it.head)
    }

    fn repository(&self) -> Result<Repository, OpenError> {
        Self::repository(self)
    }

    fn push(
        &self,
        branch: &str,
        commit: CommitId,
        expected: Option<CommitId>,
        watched: Option<&str>,
    ) -> Result<(), PushError> {
        Self::push(self, branch, commit, expected, watched)
    }

    fn sync(
        &self,
        branch: &str,
        commit: CommitId,
        since: Option<CommitId>,
    ) -> Result<(), PushError> {
        Self::sync(self, branch, commit, since)
    }

    fn renew(&self, branch: Option<&str>, kept: &[CommitId]) -> Result<(), FetchError> {
        Self::renew(self, branch, kept).map(drop)
    }

    fn live(&self) -> Option<CommitId> {
        Self::live(self)
    }

    fn set_live(&self, commit: CommitId) -> bool {
        Self::set_live(self, commit).is_ok()
    }

    fn is_temporary(&self) -> bool {
        Self::is_temporary(self)
    }

    fn mirror(&self) -> Option<&Mirror> {
        Some(self)
    }
}

/// One branch of a repository, and the directory of the groups in it.
#[derive(Debug)]
pub(super) struct Source {
    target: Target,
    address: String,
    branch: Option<String>,
    /// The full name of what was followed at the first fetch, but for what HEAD of a remote elsewhere names: who checks out
    /// another branch in a working tree does not mean to deploy it, and a tag may have the name of a deleted branch.
    named_first: OnceLock<String>,
    path: String,
    transport: Box<MirrorOptions>,
    /// Where the branch was before a push of which it is not known whether it is on the disk.
    unsynced: Mutex<Option<CommitId>>,
    /// Held while everything is fetched again.
    refetching: Mutex<()>,
}

/// Where a fetch found the branch.
pub(super) struct Fetched {
    pub(super) repository: Repository,
    pub(super) head: CommitId,
}

/// The branch that writes go to.
pub(super) struct WriteBranch {
    /// Its full name, `refs/heads/…`; none where the followed ref is not a branch.
    pub(super) name: Option<String>,
    /// Its newest commit; none before the first fetch.
    pub(super) head: Option<CommitId>,
}

impl Source {
    /// Returns the source; `branch` is none for what HEAD names, and `address` has no credentials.
    pub(super) fn new(
        target: Target,
        address: String,
        branch: Option<String>,
        path: String,
        transport: Box<MirrorOptions>,
    ) -> Self {
        let (named_first, unsynced) = (OnceLock::new(), Mutex::new(None));
        let refetching = Mutex::new(());
        Self { target, address, branch, named_first, path, transport, unsynced, refetching }
    }

    /// Fetches the branch from a remote, or reads where it is in a repository of this machine.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be read or does not have the branch.
    pub(super) fn fetch(&self) -> Result<Fetched, FetchError> {
        let branch = self.branch();
        match &self.target {
            Target::Local(path) => {
                let fail = |failure, message: String| FetchError { failure, message };
                let repository = Repository::at(path).map_err(|error| self.open_failed(&error))?;
                repository.recover_moves();
                // Read once: HEAD may be moved meanwhile.
                let named = branch.map(str::to_owned).or_else(|| repository.head_ref());
                let named = named.map(|it| repository.full_name_of(&it));
                let head = repository.branch_head(named.as_deref()).map_err(|error| {
                    if let ResolveError::Unreadable(error) = &error
                        && error.fault() == ObjectFault::System
                    {
                        return fail(FetchFailure::RepositoryNotFound, error.to_string());
                    }
                    if let Some(damage) = repository.damage_at(branch) {
                        return fail(FetchFailure::CorruptObjects, damage.to_string());
                    }
                    fail(FetchFailure::RefNotFound, repository.why_missing(branch))
                })?;
                self.keep_named(named);
                Ok(Fetched { repository, head })
            }
            Target::Remote(mirror) => {
                let head = mirror.fetch_watched(branch)?;
                let repository = mirror.repository().map_err(|error| self.open_failed(&error))?;
                // Who changes HEAD at a forge means it.
                let is_of_this_machine = || mirror.mirror().is_some_and(Mirror::is_of_this_machine);
                if self.branch.is_some() || is_of_this_machine() {
                    self.keep_named(repository.head_ref());
                }
                Ok(Fetched { repository, head })
            }
        }
    }

    /// Keeps what was followed first: HEAD may name another branch later, and a tag may have the name of a branch that
    /// is deleted.
    fn keep_named(&self, name: Option<String>) {
        if let Some(name) = name.filter(|it| it.starts_with("refs/")) {
            self.named_first.get_or_init(|| name);
        }
    }

    /// Waits until another thread has fetched everything again, if one does. Blocking.
    pub(super) fn lock_refetch(&self) -> MutexGuard<'_, ()> {
        self.refetching.lock()
    }

    /// Fetches everything again into a fresh mirror, since objects of the old one are damaged. A repository of this machine
    /// is not ours to mend. Blocking.
    ///
    /// # Errors
    ///
    /// Returns why the branch cannot be fetched.
    pub(super) fn refetch(&self, kept: &[CommitId]) -> Result<(), FetchError> {
        self.upstream().map_or(Ok(()), |it| it.renew(self.branch(), kept))
    }

    /// Moves the branch to a commit, if it is still where the caller believes it is. `files` are the
    /// files that the commit changes, from the root of the groups. Blocking.
    ///
    /// # Errors
    ///
    /// Returns why the branch is not moved, or that this is not known.
    pub(super) fn push<'f>(
        &self,
        repository: &Repository,
        branch: &str,
        commit: CommitId,
        expected: CommitId,
        files: impl Iterator<Item = &'f String>,
    ) -> Result<(), PushError> {
        let pushed = match &self.target {
            Target::Remote(mirror) => mirror.push(branch, commit, Some(expected), self.branch()),
            Target::Local(_) => {
                let mut files: Vec<String> = files.map(|path| self.path_of(path)).collect();
                files.sort_unstable();
                files.dedup();
                let files: Vec<&str> = files.iter().map(String::as_str).collect();
                repository.advance(branch, commit, Some(expected), &files, &self.transport)
            }
        };
        if matches!(pushed, Err(PushError::Unknown(_))) {
            self.unsynced.lock().get_or_insert(expected);
        }
        pushed
    }

    /// Brings to the disk what an earlier push may have left off it, before a client is told that it is there. Blocking.
    ///
    /// # Errors
    ///
    /// Returns that this is not known to be done.
    pub(super) fn settle(
        &self,
        repository: &Repository,
        branch: &str,
        head: CommitId,
    ) -> Result<(), PushError> {
        let mut unsynced = self.unsynced.lock();
        if let Some(since) = *unsynced {
            self.sync(repository, branch, head, Some(since))?;
            *unsynced = None;
        }
        Ok(())
    }

    /// Brings to the disk a branch that was pushed before, with its commits since another, or the last alone: whether
    /// that push did is not known. Blocking.
    ///
    /// # Errors
    ///
    /// Returns that this is not known to be done.
    pub(super) fn sync(
        &self,
        repository: &Repository,
        branch: &str,
        head: CommitId,
        since: Option<CommitId>,
    ) -> Result<(), PushError> {
        match &self.target {
            Target::Remote(mirror) => mirror.sync(branch, head, since),
            Target::Local(_) => repository.sync(branch, head, since),
        }
    }

    /// Makes a branch for a commit, beside the one that is followed. Blocking.
    ///
    /// # Errors
    ///
    /// Returns why there is no such branch; [`PushError::Moved`] if there was one before.
    pub(super) fn push_new_branch(
        &self,
        repository: &Repository,
        branch: &str,
        commit: CommitId,
    ) -> Result<(), PushError> {
        match &self.target {
            Target::Remote(mirror) => mirror.push(branch, commit, None, None),
            Target::Local(_) => repository.advance(branch, commit, None, &[], &self.transport),
        }
    }

    /// Ends what is under way with the remote, pushes included: their time is up.
    pub(super) fn interrupt(&self) {
        self.transport.interrupt.interrupt();
    }

    /// Opens the repository for reading.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be opened.
    pub(super) fn repository(&self) -> Result<Repository, OpenError> {
        match &self.target {
            Target::Local(path) => Repository::at(path),
            Target::Remote(mirror) => mirror.repository(),
        }
    }

    /// Returns what the status says of a repository that cannot be opened: a mirror can be fetched again.
    pub(super) fn open_failed(&self, error: &OpenError) -> FetchError {
        let failure = match (&self.target, error) {
            (Target::Remote(_), _) | (Target::Local(_), OpenError::Damaged { .. }) => {
                FetchFailure::CorruptObjects
            }
            (
                Target::Local(_),
                OpenError::NotARepository(_)
                | OpenError::Inside { .. }
                | OpenError::Denied(_)
                | OpenError::Unusable { .. },
            ) => FetchFailure::RepositoryNotFound,
        };
        FetchError { failure, message: error.to_string() }
    }

    fn upstream(&self) -> Option<&dyn Upstream> {
        match &self.target {
            Target::Local(_) => None,
            Target::Remote(upstream) => Some(upstream.as_ref()),
        }
    }

    /// Returns the mirror of a remote.
    pub(super) fn mirror(&self) -> Option<&Mirror> {
        self.upstream()?.mirror()
    }

    pub(super) fn kind(&self) -> SourceKind {
        match &self.target {
            Target::Local(_) => SourceKind::Local,
            Target::Remote(_) => SourceKind::Remote,
        }
    }

    /// Returns the address for messages, without credentials.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the directory of the groups in the repository.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the branch or ref that is followed; none before HEAD named one, or while it is detached.
    fn branch(&self) -> Option<&str> {
        self.named_first.get().or(self.branch.as_ref()).map(String::as_str)
    }

    /// Returns the branch as people name it; none for a detached HEAD.
    pub(super) fn branch_name(&self) -> Option<String> {
        match &self.branch {
            Some(chosen) => Some(chosen.clone()),
            None => self.watched_ref().map(|it| short_name(&it).to_owned()),
        }
    }

    /// Returns the full name of the ref that is followed, if there is one.
    pub(super) fn watched_ref(&self) -> Option<String> {
        match self.branch() {
            Some(name) => Some(full_name(name.to_owned())),
            None => self.repository().ok()?.head_ref(),
        }
    }

    /// Returns the branch that writes go to; `observed` is where the last fetch found it.
    ///
    /// # Errors
    ///
    /// Returns an error if a repository of this machine does not have it.
    pub(super) fn write_branch(
        &self,
        repository: &Repository,
        observed: Option<CommitId>,
    ) -> Result<WriteBranch, ResolveError> {
        let (name, head) = match &self.target {
            Target::Local(_) => {
                let branch = self.branch();
                let head = repository.branch_head(branch)?;
                (branch.map(str::to_owned).or_else(|| repository.head_ref()), Some(head))
            }
            Target::Remote(_) => (repository.head_ref(), observed),
        };
        let name = name.map(full_name).filter(|it| it.starts_with("refs/heads/"));
        Ok(WriteBranch { name, head })
    }

    /// Returns the path in the repository of a file, given from the root of the groups.
    pub(super) fn path_of(&self, path: &str) -> String {
        path_below(&self.path, path)
    }

    /// Returns whether a commit has the directory of the groups.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read within the budget.
    pub(super) fn has_path(
        &self,
        repository: &Repository,
        commit: CommitId,
        budget: &Budget,
    ) -> Result<bool, FilesError> {
        repository.has_directory(commit, &self.path, budget)
    }

    /// Returns the text of a file in a commit, by its path from the root of the groups; none if the
    /// commit lacks it.
    ///
    /// # Errors
    ///
    /// Returns an error if an object on the way cannot be read.
    pub(super) fn text(
        &self,
        repository: &Repository,
        commit: CommitId,
        path: &str,
    ) -> Result<Option<String>, ReadError> {
        repository.text(commit, &self.path_of(path))
    }

    /// Returns the names in a directory of a commit, from the root of the groups, with what stands there.
    ///
    /// # Errors
    ///
    /// Returns an error if an object on the way cannot be read.
    pub(super) fn names(
        &self,
        repository: &Repository,
        commit: CommitId,
        directory: &str,
    ) -> Result<Vec<(String, PathKind)>, ReadError> {
        let names = repository.names(commit, &self.path_of(directory))?;
        let kind = |it: Option<EntryKind>| match it {
            None => PathKind::Directory,
            Some(_) => PathKind::File,
        };
        Ok(names.into_iter().map(|(name, it)| (name, kind(it))).collect())
    }

    /// Returns the layout and policy of a commit.
    ///
    /// # Errors
    ///
    /// Returns an error if the file of them cannot be read.
    pub(super) fn layout(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Layout, ReadError> {
        for path in SETTINGS_FILES {
            if let Some(text) = self.text(repository, commit, path)? {
                let content = SourceContent::Bytes(text.into_bytes().into());
                return Ok(read_layout(&[SourceFile { path: path.into(), content }]).0);
            }
        }
        Ok(read_layout(&[]).0)
    }

    /// Returns the live commit that the mirror names, which outlives the journal.
    pub(super) fn noted_live(&self) -> Option<CommitId> {
        self.upstream()?.live()
    }

    /// Names the live commit in the mirror.
    pub(super) fn note_live(&self, commit: CommitId) {
        if self.upstream().is_some_and(|it| !it.set_live(commit)) {
            tracing::warn!(%commit, "the mirror does not name the live commit: writing its ref failed");
        }
    }

    /// Returns what the status says while fetched commits do not go to the data directory.
    pub(super) fn storage_fault(&self) -> Option<(Reason, String)> {
        let message = "the data directory was read-only at the start, so fetched commits are kept in a \
                       temporary directory: restart the daemon";
        self.upstream()?.is_temporary().then(|| (Reason::WriteFailed, message.to_owned()))
    }
}

/// Returns the full name of a ref; a short name is a branch.
fn full_name(name: String) -> String {
    if name.starts_with("refs/") { name } else { format!("refs/heads/{name}") }
}

impl Ancestry for Repository {
    fn is_ancestor(&self, ancestor: CommitId, descendant: CommitId) -> bool {
        Self::is_ancestor(self, ancestor, descendant).unwrap_or(false)
    }
}

/// Returns the path in the repository of a file, given from a directory of the repository.
pub fn path_below(directory: &str, path: &str) -> String {
    match directory.trim_matches('/') {
        "" | "." => path.to_owned(),
        directory => format!("{directory}/{path}"),
    }
}
