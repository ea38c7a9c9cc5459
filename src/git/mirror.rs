//! The bare mirror that follows a remote.
//!
//! Beside the branches (`refs/remotes/origin/*`) and tags of the remote it has refs of its own:
//! `refs/clade/watched/<full name>` is where the watched ref was last, `refs/clade/live` is the
//! live commit, and `HEAD` names the watched one.

mod advertised;
mod directory;
mod error;
mod foreign;
mod former_remote;
mod kept_commits;
mod local;
mod others;
mod packs;
mod parts;
mod privacy;
mod repair;
mod reused;
mod skipped;
mod source_ends;
mod unread_history;

use std::path::Path;

use git2::{AutotagOption, Direction, FetchOptions, RemoteCallbacks};
use parking_lot::{Mutex, MutexGuard};

use self::advertised::Advertised;
use self::directory::Directory;
use self::local::Source;
use self::parts::{Joined, Others, Wanted};
use self::reused::Reused;
use self::source_ends::SourceEnds;
use super::failure::{FetchError, FetchFailure};
use super::libgit2;
use super::object_id::{id_of, oid};
use super::options::MirrorOptions;
use super::refs::{LIVE, WATCHED};
use super::remote::{Remote, Scheme};
use super::repository::{OpenError, ReadError, Repository};
use super::transport::Attempt;
use crate::model::CommitId;

pub(super) use self::reused::Taken;

pub use self::error::MirrorError;
pub use self::foreign::foreign_entry;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use self::packs::fuzz_join;
pub use self::parts::FetchedOthers;
pub use self::skipped::SkippedRef;

/// A bare copy of a remote repository, in a directory that one process owns.
#[derive(Debug)]
pub struct Mirror {
    remote: Remote,
    options: Box<MirrorOptions>,
    directory: Directory,
    joined: Joined,
    others: Box<Mutex<Others>>,
    /// Held while the watched ref is fetched.
    fetching: Mutex<()>,
    /// Held while refs are written, never while the remote is waited for.
    refs: Mutex<()>,
    /// What the last push read from, with the trees that the next one needs again.
    push_repository: Reused<Repository>,
}

/// What a fetch brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The full name of the watched ref; a detached `HEAD` is `HEAD`.
    pub branch: String,
    /// The commit that it names now.
    pub head: CommitId,
}

/// What the remote was asked for.
struct Brought {
    advertised: Advertised,
    /// A repository of this machine that may be shallow, and where it ends.
    deepened: Option<(Source, SourceEnds)>,
}

impl Mirror {
    /// Opens the mirror in a data directory, or makes it.
    ///
    /// Locks that a crash left behind are removed, and damaged files repaired. A mirror that cannot be
    /// repaired is moved aside and fetched again. One of another remote is kept until its remote is
    /// given again, or a third one has been fetched. A data directory that exists and is read-only is read, and what is fetched goes to a temporary directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the scheme of the remote is not allowed, another process has the
    /// directory, or it can be neither created nor read.
    pub fn open(data: &Path, remote: Remote, options: MirrorOptions) -> Result<Self, MirrorError> {
        if let Some(scheme) = remote.scheme().filter(|it| !options.schemes.contains(it)) {
            return Err(MirrorError::SchemeNotAllowed(scheme.as_str()));
        }
        libgit2::prepare().map_err(|error| OpenError::of(data, &error))?;
        let directory = Directory::open(data, &remote)?;
        Ok(Self {
            remote,
            options: Box::new(options),
            directory,
            joined: Joined::default(),
            others: Box::default(),
            fetching: Mutex::default(),
            refs: Mutex::default(),
            push_repository: Reused::default(),
        })
    }

    /// Returns whether what is fetched is lost at the end, since the data directory was read-only.
    pub fn is_temporary(&self) -> bool {
        self.directory.is_temporary()
    }

    /// Opens the repository for reading.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be opened.
    pub fn repository(&self) -> Result<Repository, OpenError> {
        Repository::open_mirror(&self.directory.repository())
    }

    /// Fetches the watched ref and then all others, and returns where the watched one is.
    ///
    /// # Errors
    ///
    /// As [`Mirror::fetch_watched`]; what is wrong with others is logged.
    pub fn fetch(&self, branch: Option<&str>) -> Result<Fetched, FetchError> {
        let fetched = self.fetch_watched(branch)?;
        if self.needs_others()
            && let Err(error) = self.fetch_others()
        {
            tracing::warn!(%error, "other refs are not fetched");
        }
        Ok(fetched)
    }

    /// Fetches the watched ref, and returns where it is: the given one, or what the remote's `HEAD`
    /// names. What other refs are does not matter; those that are gone are forgotten.
    ///
    /// # Errors
    ///
    /// Returns an error if the remote cannot be fetched or does not have the ref; the mirror is
    /// then as it was. Where it turns out to be damaged, [`Mirror::renew`] mends it: what is to be kept is the caller's to
    /// say.
    pub fn fetch_watched(&self, branch: Option<&str>) -> Result<Fetched, FetchError> {
        let _one_at_a_time = self.fetching.lock();
        self.fetch_into(&self.directory.repository(), branch)
    }

    /// Fetches everything into a fresh directory and puts it in the place of the old one, which is
    /// kept aside. Repositories that are open keep reading what they have mapped.
    ///
    /// The live commit and some others are copied from the old mirror where the remote does not have them: they must
    /// answer after a restart without it. What is damaged cannot be copied, and is logged.
    ///
    /// # Errors
    ///
    /// Returns an error if the remote cannot be fetched or what is copied not be written in time; the mirror is then as it
    /// was, and what was fetched is removed.
    pub fn renew(&self, branch: Option<&str>, kept: &[CommitId]) -> Result<Fetched, FetchError> {
        let _one_at_a_time = self.fetching.lock();
        self.replace(branch, kept).inspect_err(|_| self.directory.remove_fresh())
    }

    fn replace(&self, branch: Option<&str>, kept: &[CommitId]) -> Result<Fetched, FetchError> {
        let io = |error: std::io::Error| {
            let failure = FetchFailure::of_io(&error);
            FetchError::new(failure, format!("the mirror cannot be replaced: {error}"))
        };
        let fresh = self.directory.prepare_fresh(&self.remote).map_err(|error| {
            FetchError::new(FetchFailure::Other, format!("the mirror cannot be replaced: {error}"))
        })?;
        let fetched = self.fetch_into(&fresh, branch)?;
        self.forget_skipped();
        // Before what is copied, which may have no history: that would not be fetched any more.
        if let Err(error) = self.fetch_others_into(&fresh, None) {
            tracing::warn!(%error, "other refs are not fetched");
        }
        self.keep_commits(&fresh, kept)?;
        {
            // What was joined is in the old one: a pack of the same name may be all that the new one has. Packs that are
            // being joined now are waited for.
            let mut joined = self.joined.0.lock();
            self.directory.replace_with(&fresh).map_err(io)?;
            joined.clear();
        }
        self.close_push_repository();
        Ok(fetched)
    }

    /// Returns whether the remote is a repository of this machine.
    pub fn is_of_this_machine(&self) -> bool {
        matches!(self.remote.scheme(), None | Some(Scheme::File))
    }

    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Locks the refs for writing, which takes no longer than the disk.
    pub(super) fn lock_refs(&self) -> MutexGuard<'_, ()> {
        self.refs.lock()
    }

    /// Returns what the last push read from, or opens the repository. A push that succeeds keeps it for the next one.
    pub(super) fn take_push_repository(&self) -> Result<(Repository, Taken), OpenError> {
        let (last, taken) = self.push_repository.take();
        Ok((last.map_or_else(|| self.repository(), Ok)?, taken))
    }

    pub(super) fn keep_push_repository(&self, repository: Repository, taken: &Taken) {
        self.push_repository.keep(repository, taken);
    }

    /// Closes what the last push read from, and what one reads from now once it ends: a file that is removed takes
    /// room as long as it is open, and the mirror may be another one.
    pub(super) fn close_push_repository(&self) {
        self.push_repository.close();
    }

    pub(super) fn options(&self) -> &MirrorOptions {
        &self.options
    }

    /// Returns whether it fetches more than branches and tags, such as heads of pull requests.
    pub fn fetches_more(&self) -> bool {
        !self.options.refspecs.is_empty()
    }

    /// Returns the commits of the refs that are fetched beside branches and tags, the newest first,
    /// and whether the watched ref contains them; those that are known are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if the refs cannot be read.
    pub fn heads_of_more(
        &self,
        is_known: &dyn Fn(CommitId) -> bool,
    ) -> Result<Vec<(CommitId, bool)>, ReadError> {
        let what = || "the refs of the mirror".to_owned();
        let fail = |error: git2::Error| ReadError::of(what(), &error);
        let repository =
            self.repository().map_err(|error| ReadError::new(what(), error.to_string()))?;
        let inner = repository.inner();
        let watched = inner.head().and_then(|it| it.peel_to_commit()).map(|it| it.id());
        let mut heads = Vec::new();
        for spec in &self.options.refspecs {
            let glob = spec.rsplit(':').next().unwrap_or(spec).trim_start_matches('+');
            for reference in inner.references_glob(glob).map_err(fail)? {
                let Ok(commit) = reference.and_then(|it| it.peel_to_commit()) else { continue };
                let id = id_of(commit.id());
                if is_known(id) {
                    continue;
                }
                let is_merged = watched.as_ref().is_ok_and(|it| {
                    *it == commit.id()
                        || inner.graph_descendant_of(*it, commit.id()).unwrap_or(false)
                });
                heads.push((commit.time().seconds(), id, is_merged));
            }
        }
        heads.sort_unstable_by(|a, b| b.cmp(a));
        heads.dedup();
        Ok(heads.into_iter().map(|(_, commit, is_merged)| (commit, is_merged)).collect())
    }

    /// Returns the commit that was live last.
    pub fn live(&self) -> Option<CommitId> {
        self.repository().ok()?.target_of(LIVE)
    }

    /// Notes the live commit.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub fn set_live(&self, commit: CommitId) -> Result<(), ReadError> {
        let what = || format!("the name of the live commit {commit}");
        let repository =
            self.repository().map_err(|error| ReadError::new(what(), error.to_string()))?;
        name_live(&repository, commit).map_err(|error| ReadError::of_writing(what(), &error))
    }

    fn fetch_into(&self, directory: &Path, branch: Option<&str>) -> Result<Fetched, FetchError> {
        let attempt = Attempt::fetch(&self.remote, &self.options);
        let _entered = attempt.enter();
        let repository = self.open_for_fetch(directory)?;
        let fail = |error: git2::Error| attempt.explain(&error);
        // A fetch of a ref that is gone succeeds and leaves the old one, so what the remote has is
        // looked up first.
        let followed = branch.and_then(|it| followed_before(&repository, it));
        let pick = |advertised: &Advertised| {
            let watched = advertised.find(&self.remote, followed.as_deref().or(branch))?;
            let (source, target) = (watched.name.clone(), watched.commit);
            let kept = format!("{WATCHED}{source}");
            Ok((vec![Wanted { source, kept, target }], watched))
        };
        let (Brought { advertised, deepened }, watched) =
            self.bring(&attempt, &repository, pick)?;
        let inner = repository.inner();
        let found = inner.find_object(watched.commit, None).map_err(fail)?;
        let commit = found.into_commit().map_err(|_| {
            let detail = format!("`{}` does not name a commit", watched.name);
            FetchError::at(&self.remote, FetchFailure::RefNotFound, detail)
        })?;
        commit.tree().map_err(fail)?;

        let noted = format!("{WATCHED}{}", watched.name);
        let refs = self.lock_refs();
        // What is gone goes first: a branch `a` would be in the way of `a/b`.
        forget_other_watched(&repository, &noted).map_err(fail)?;
        let wanted = self.wanted(&advertised);
        attempt.remaining()?;
        let own = wanted.iter().find(|it| it.source == watched.name).cloned();
        self.prune(&repository, &wanted).map_err(fail)?;
        if let Some(Wanted { kept, target, .. }) = own.filter(|it| it.target == watched.commit) {
            move_to(&repository, &kept, target).map_err(fail)?;
        }
        self.note_moved(&repository, &advertised, wanted);
        move_to(&repository, &noted, watched.commit).map_err(fail)?;
        // Where there is nothing new, a fetch works on a read-only disk as well.
        let head = inner.find_reference("HEAD").map_err(fail)?;
        if head.symbolic_target().ok().flatten() != Some(&noted) {
            inner.reference_symbolic("HEAD", &noted, true, "watch").map_err(fail)?;
        }
        drop(refs);
        // Last: it may take as long as a fetch may, and what was fetched counts whatever becomes of it.
        self.follow_deepened(deepened, &repository);
        Ok(Fetched { branch: watched.name, head: id_of(commit.id()) })
    }

    /// Asks the remote for its refs and brings the objects of those that are picked.
    fn bring<T>(
        &self,
        attempt: &Attempt,
        repository: &Repository,
        pick: impl FnOnce(&Advertised) -> Result<(Vec<Wanted>, T), FetchError>,
    ) -> Result<(Brought, T), FetchError> {
        let fail = |error: git2::Error| attempt.explain(&error);
        let inner = repository.inner();
        if let Some(source) = Source::open(attempt, &self.remote)? {
            let advertised = source.advertised().map_err(fail)?;
            let (wanted, picked) = pick(&advertised)?;
            let tips: Vec<git2::Oid> = wanted.iter().map(|it| it.target).collect();
            let ends = SourceEnds::read(&source, inner);
            source.copy(attempt, self.options.objects, inner, &tips)?;
            let deepened = ends.map(|ends| (source, ends));
            return Ok((Brought { advertised, deepened }, picked));
        }
        let address = self.remote.address();
        let mut remote = inner.remote_anonymous(&address).map_err(fail)?;
        let mut connection = remote.connect_auth(Direction::Fetch, None, None).map_err(fail)?;
        let advertised = Advertised::list(&connection, attempt).map_err(fail)?;
        // With many refs, what comes in time may be read for long.
        attempt.remaining()?;
        let (wanted, picked) = pick(&advertised)?;
        let objects = inner.odb().map_err(fail)?;
        let specs: Vec<String> = wanted
            .iter()
            .filter(|it| !objects.exists(it.target))
            .map(|it| format!("+{}:{}", it.source, it.kept))
            .collect();
        attempt.remaining()?;
        if !specs.is_empty()
            && let Err(error) = download(attempt, connection.remote(), &specs)
        {
            drop(connection);
            if attempt.has_failed() {
                return Err(error);
            }
            self.bring_without_history(repository, &specs, error)?;
        }
        Ok((Brought { advertised, deepened: None }, picked))
    }

    /// Copies what a repository of this machine that was deepened has by now.
    fn follow_deepened(&self, deepened: Option<(Source, SourceEnds)>, repository: &Repository) {
        if let Some((source, ends)) = deepened {
            ends.follow(&source, repository.inner(), &self.remote, &self.options);
        }
    }

    fn open_for_fetch(&self, directory: &Path) -> Result<Repository, FetchError> {
        let broken = |error| FetchError::at(&self.remote, FetchFailure::CorruptObjects, error);
        Repository::open_mirror(directory).map_err(broken)
    }
}

/// Downloads the objects of some refs.
fn download(
    attempt: &Attempt,
    remote: &mut git2::Remote<'_>,
    specs: &[String],
) -> Result<(), FetchError> {
    let mut callbacks = RemoteCallbacks::new();
    callbacks
        .transfer_progress(|_| attempt.remaining().map_err(|error| attempt.note(error)).is_ok());
    let mut options = FetchOptions::new();
    options.remote_callbacks(callbacks).download_tags(AutotagOption::None);
    remote.download(specs, Some(&mut options)).map_err(|error| attempt.explain(&error))
}

/// Returns the full name of a branch or tag that was followed by its name: another one of that name is not followed
/// instead, whether the first is deleted or the daemon starts again.
fn followed_before(repository: &Repository, name: &str) -> Option<String> {
    let head = repository.inner().find_reference("HEAD").ok()?;
    let full = head.symbolic_target().ok()??.strip_prefix(WATCHED)?;
    let mut kinds = ["refs/heads/", "refs/tags/"].into_iter();
    kinds.any(|it| full.strip_prefix(it) == Some(name)).then(|| full.to_owned())
}

/// Names the live commit in a repository.
fn name_live(repository: &Repository, commit: CommitId) -> Result<(), git2::Error> {
    repository.inner().reference(LIVE, oid(commit), true, "activated").map(drop)
}

/// Has a ref name a commit, if it does not.
fn move_to(repository: &Repository, name: &str, target: git2::Oid) -> Result<(), git2::Error> {
    let inner = repository.inner();
    if inner.find_reference(name).is_ok_and(|it| it.target() == Some(target)) {
        return Ok(());
    }
    inner.reference(name, target, true, "fetch").map(drop)
}

/// Forgets where refs were that are watched no more: they would be in the way of others.
fn forget_other_watched(repository: &Repository, noted: &str) -> Result<(), git2::Error> {
    for reference in repository.inner().references_glob(&format!("{WATCHED}*"))? {
        let mut reference = reference?;
        if reference.name_bytes() != noted.as_bytes() {
            reference.delete()?;
        }
    }
    Ok(())
}
