//! Where the groups come from: a repository of this machine, or a remote that a mirror follows.

mod files;
mod pushing;
mod upstream;

use std::path::PathBuf;
use std::sync::OnceLock;

use parking_lot::{Mutex, MutexGuard};

use super::state::SourceKind;
use super::status::Reason;
use crate::git::{
    FetchError, FetchFailure, Mirror, MirrorOptions, ObjectFault, OpenError, Repository,
    ResolveError, short_name,
};
use crate::model::CommitId;

pub use files::path_below;
pub(super) use pushing::WriteBranch;
pub use upstream::Upstream;

/// Where the branch is.
#[derive(Debug)]
pub enum Target {
    /// In a repository of this machine that is read as it is.
    Local(PathBuf),
    /// At a remote that a mirror follows.
    Remote(Box<dyn Upstream>),
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
                | OpenError::Missing(_)
                | OpenError::Inside { .. }
                | OpenError::Denied(_),
            ) => FetchFailure::RepositoryNotFound,
            (Target::Local(_), OpenError::Unusable { .. }) => FetchFailure::Other,
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

    /// Returns the live commit that the mirror names, which outlives the journal.
    pub(super) fn noted_live(&self) -> Option<CommitId> {
        self.upstream()?.live()
    }

    /// Names the live commit in the mirror.
    pub(super) fn note_live(&self, commit: CommitId) {
        let noted = self.upstream().map_or(Ok(()), |it| it.set_live(commit));
        if let Err(error) = noted {
            tracing::warn!(%commit, %error, "the mirror does not name the live commit");
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
