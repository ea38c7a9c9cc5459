//! Pushing commits: compare and swap, so that no other commit is lost.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use git2::{ErrorCode, PushOptions, RemoteCallbacks};

use super::cut_history::CutHistory;
use super::durable::{Packs, sync_commits, sync_pushed, sync_written};
use super::failure::{FetchError, FetchFailure};
use super::local_push::{has_hooks, move_branch};
use super::mirror::Mirror;
use super::move_lock::{Move, MoveLock};
use super::object_copy::ObjectSource;
use super::object_guard::guard;
use super::object_id::{id_of, oid};
use super::options::MirrorOptions;
use super::push_error::PushError;
use super::refs::{WATCHED, referent, short_name};
use super::remote::Remote;
use super::repository::Repository;
use super::transport::{Attempt, LOCAL_PUSH, check_owner, git_is_here};
use super::working_tree::{CheckedOut, recover_all, wait_for_others};
use crate::model::CommitId;

/// The ref that names what is pushed.
const OUTGOING: &str = "refs/clade/outgoing";

/// What to do where the branch of a repository of this machine is checked out.
const FOLLOW_IN_PLACE: &str = "follow that repository by its path and without `--data-dir`, so that its files go along, or use a bare one";

/// How one try ended.
enum Try {
    Done,
    Moved,
    Rejected(String),
    /// Nothing changed at the remote.
    Unchanged(FetchError),
    /// The remote may have taken it.
    Broken(FetchError),
    /// The repository of this machine has it, which may not outlive the machine.
    Unsynced(FetchError),
}

impl Try {
    fn of(moved: Result<(), PushError>) -> Self {
        match moved {
            Ok(()) => Self::Done,
            Err(PushError::Moved) => Self::Moved,
            Err(PushError::Rejected(words)) => Self::Rejected(words),
            Err(PushError::Failed(error)) => Self::Unchanged(error),
            Err(PushError::Unknown(error)) => Self::Unsynced(error),
        }
    }
}

impl Mirror {
    /// Brings to the disk what was pushed to a branch since a commit, or its last commit alone, if the remote is a
    /// repository of this machine.
    ///
    /// # Errors
    ///
    /// Returns that this is not known to be done.
    pub fn sync(
        &self,
        branch: &str,
        commit: CommitId,
        since: Option<CommitId>,
    ) -> Result<(), PushError> {
        match self.remote().directory() {
            Some(directory) => {
                sync_pushed(&directory, branch, commit, since).map_err(PushError::Unknown)
            }
            None => Ok(()),
        }
    }

    /// Pushes a commit to a branch that is at `expected`, or is not there yet for none.
    ///
    /// When the connection breaks, the remote is asked where the branch is.
    ///
    /// # Errors
    ///
    /// Returns why it is not there, or that this is not known.
    pub fn push(
        &self,
        branch: &str,
        commit: CommitId,
        expected: Option<CommitId>,
        watched: Option<&str>,
    ) -> Result<(), PushError> {
        let broken = |error: &dyn std::fmt::Display| {
            PushError::Failed(FetchError::new(FetchFailure::CorruptObjects, error.to_string()))
        };
        let (repository, taken) = self.take_push_repository().map_err(|it| broken(&it))?;
        let tried = push_once(&repository, self.remote(), self.options(), branch, commit, expected);
        let tried = match tried {
            Try::Done => {
                let _refs = self.lock_refs();
                note_pushed(&repository, branch, commit);
                self.keep_push_repository(repository, &taken);
                return Ok(());
            }
            other => other,
        };
        if expected.is_none() {
            return Err(match tried {
                Try::Rejected(words) => PushError::Rejected(words),
                Try::Unchanged(error) => self.conflict_there(&repository, branch, error),
                Try::Broken(error) | Try::Unsynced(error) => PushError::Unknown(error),
                Try::Done | Try::Moved => PushError::Moved,
            });
        }
        // Another's commit, a hook, or a broken connection: the remote knows.
        let fetched = self.fetch_watched(watched);
        match (tried, fetched) {
            (Try::Unsynced(error), _) => Err(PushError::Unknown(error)),
            (_, Ok(fetched)) if repository.is_ancestor(commit, fetched.head).unwrap_or(false) => {
                Ok(())
            }
            // Compare and swap: a receiver that is still at it cannot take this commit any more. Trying
            // again would wait as long again.
            (Try::Broken(error), Ok(fetched))
                if error.failure == FetchFailure::Timeout && Some(fetched.head) != expected =>
            {
                Err(PushError::Failed(error))
            }
            (_, Ok(fetched)) if Some(fetched.head) != expected => Err(PushError::Moved),
            // A receiver on another machine, which we cannot end, may take it yet.
            (Try::Broken(error), Ok(_)) if self.remote().directory().is_none() => {
                Err(PushError::Unknown(error))
            }
            (Try::Rejected(words), _) => Err(PushError::Rejected(words)),
            (Try::Unchanged(error), _) | (Try::Broken(error), Ok(_)) => {
                Err(PushError::Failed(error))
            }
            (Try::Broken(error), Err(_)) => Err(PushError::Unknown(error)),
            (Try::Moved | Try::Done, Ok(_)) => Err(PushError::Moved),
            (Try::Moved | Try::Done, Err(error)) => Err(PushError::Failed(error)),
        }
    }

    /// Returns the error of a new branch: one that was made at the remote since the last fetch may be in its way.
    fn conflict_there(&self, own: &Repository, branch: &str, error: FetchError) -> PushError {
        if let Err(error) = self.fetch_others() {
            tracing::warn!(%error, "other refs are not fetched");
        }
        own.name_conflict(branch, PushError::Failed(error))
    }
}

/// Notes what is at the remote now, so that it is known before the next fetch.
fn note_pushed(repository: &Repository, branch: &str, commit: CommitId) {
    let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
    let watched = format!("{WATCHED}{branch}");
    let mut names = vec![format!("refs/remotes/origin/{short}")];
    if repository.target_of(&watched).is_some() {
        names.push(watched);
    }
    for name in names {
        if let Err(error) = repository.inner().reference(&name, oid(commit), true, "push") {
            tracing::warn!(
                reference = name,
                error = error.message(),
                "a ref could not be moved to the pushed commit"
            );
        }
    }
}

/// Tries a push. Where libgit2 cannot read a commit, it is tried without those that the remote has: one far behind may be
/// malformed.
fn push_once(
    repository: &Repository,
    remote: &Remote,
    options: &MirrorOptions,
    branch: &str,
    commit: CommitId,
    expected: Option<CommitId>,
) -> Try {
    let unread = match push_from(repository.inner(), remote, options, branch, commit, expected) {
        Ok(tried) => return tried,
        Err(unread) => unread,
    };
    let cut = match CutHistory::behind(repository, commit, expected) {
        Ok(cut) => cut,
        Err(error) => {
            tracing::warn!(%error, "a repository to push from cannot be made");
            return Try::Unchanged(unread);
        }
    };
    let tried = push_from(&cut.repository, remote, options, branch, commit, expected);
    tried.unwrap_or_else(Try::Unchanged)
}

/// Tries a push from a repository. Fails where libgit2 cannot read what is there, before anything is sent.
fn push_from(
    repository: &git2::Repository,
    remote: &Remote,
    options: &MirrorOptions,
    branch: &str,
    commit: CommitId,
    expected: Option<CommitId>,
) -> Result<Try, FetchError> {
    let attempt = Attempt::push(remote, options);
    let _entered = attempt.enter();
    let unsent = |error: git2::Error| Try::Unchanged(attempt.explain(&error));
    let address = match PushRoute::of(remote) {
        Ok(PushRoute::Remote(address)) => address,
        Ok(PushRoute::Git) => format!("{LOCAL_PUSH}://here"),
        Ok(PushRoute::Directory(directory)) => {
            let source = ObjectSource { repository, limits: options.objects };
            let tried = push_to_directory(&source, &attempt, &directory, branch, commit, expected);
            return Ok(tried);
        }
        Err(words) => return Ok(Try::Rejected(words)),
    };
    let named = repository.reference(OUTGOING, oid(commit), true, "push");
    let mut outlet = match named.and_then(|_| repository.remote_anonymous(&address)) {
        Ok(outlet) => outlet,
        Err(error) => return Ok(unsent(error)),
    };
    let output = RemoteOutput::default();
    let mut options = PushOptions::new();
    options.remote_callbacks(output.callbacks(expected));
    let pushed = outlet.push(&[format!("{OUTGOING}:{branch}")], Some(&mut options));
    drop(options);
    let RemoteOutput { words, refused, has_moved } = output;
    if has_moved.get() {
        return Ok(Try::Moved);
    }
    let words = on_one_line(&attempt, &words.borrow());
    let refused = refused.into_inner().map(|it| on_one_line(&attempt, &it));
    match (pushed, refused) {
        (_, Some(status)) => Ok(refusal(remote, &words, &status)),
        (Ok(()), None) => Ok(match remote.directory() {
            Some(directory) => sync_pushed(&directory, branch, commit, expected)
                .map_or_else(Try::Unsynced, |()| Try::Done),
            None => Try::Done,
        }),
        (Err(error), None) => failed_push(&attempt, &error),
    }
}

/// Returns how a try ended that the remote refused: by a rule of its own, or since it cannot write now.
fn refusal(remote: &Remote, words: &str, status: &str) -> Try {
    /// What git reports of a ref that it could not write, whatever is pushed.
    const FAULTS: [&str; 7] = [
        "failed to update ref",
        "failed to lock",
        "failed to write",
        "unable to migrate objects",
        "unable to create temporary object directory",
        "transaction failed to start",
        // The program that would have looked for them could not be started.
        "missing necessary objects",
    ];
    /// What git says where the remote has no room for objects, or for the programs that unpack them.
    const SHORTAGES: [&str; 8] = [
        "No space left on device",
        "Disk quota exceeded",
        "Read-only file system",
        "Input/output error",
        "Permission denied",
        "fork failed",
        "Resource temporarily unavailable",
        "Cannot allocate memory",
    ];
    // Its words advise to let the files stay behind.
    if status == "branch is currently checked out" {
        let instead = match remote.directory() {
            Some(_) => FOLLOW_IN_PLACE,
            None => "use a bare repository",
        };
        return Try::Rejected(format!("the branch is checked out there: {instead}"));
    }
    let said = if words.is_empty() { status.to_owned() } else { format!("{words} ({status})") };
    let is_of = |signs: &[&str], text: &str| signs.iter().any(|it| text.contains(it));
    if is_of(&FAULTS, status) || (status.contains("unpack") && is_of(&SHORTAGES, words)) {
        let message = format!("`{remote}` cannot take a push now: {said}");
        return Try::Unchanged(FetchError::new(FetchFailure::Other, message));
    }
    Try::Rejected(said)
}

/// What a remote said during a push.
#[derive(Default)]
struct RemoteOutput {
    words: RefCell<String>,
    /// Why it refuses the ref.
    refused: RefCell<Option<String>>,
    has_moved: Cell<bool>,
}

impl RemoteOutput {
    /// The most bytes of the remote's words that are kept.
    const WORDS: usize = 4096;

    /// Returns callbacks that fill this in, and end the push where the branch is not as expected.
    fn callbacks(&self, expected: Option<CommitId>) -> RemoteCallbacks<'_> {
        let mut callbacks = RemoteCallbacks::new();
        callbacks.sideband_progress(|text| {
            let mut words = self.words.borrow_mut();
            if words.len() < Self::WORDS {
                words.push_str(&String::from_utf8_lossy(text));
            }
            true
        });
        callbacks.push_update_reference(|_, status| {
            if let Some(status) = status {
                *self.refused.borrow_mut() = Some(status.to_owned());
            }
            Ok(())
        });
        callbacks.push_negotiation(move |updates| {
            let found = updates.first().map(git2::PushUpdate::src);
            let there = found.filter(|it| !it.is_zero()).map(id_of);
            if there == expected {
                return Ok(());
            }
            self.has_moved.set(true);
            Err(git2::Error::from_str("the branch moved meanwhile"))
        });
        callbacks
    }
}

/// How a push goes to the remote.
enum PushRoute {
    /// By a transport that compares where the branch is when it moves it.
    Remote(String),
    /// By git itself, which runs the hooks of a repository on this machine; libgit2 would pass them by.
    Git,
    /// By libgit2, into the directory of a repository without hooks.
    Directory(PathBuf),
}

impl PushRoute {
    /// Returns the route, or why there is none.
    fn of(remote: &Remote) -> Result<Self, String> {
        match remote.directory() {
            None => Ok(Self::Remote(remote.address())),
            Some(directory) if git_is_here() => {
                check_owner(&directory)?;
                Ok(Self::Git)
            }
            Some(directory) if has_hooks(&directory) => {
                Err("the repository has hooks and there is no `git` to run them".to_owned())
            }
            Some(directory) => Ok(Self::Directory(directory)),
        }
    }
}

/// Copies a commit into the directory of a repository on this machine, and moves the branch there: libgit2 pushes to a
/// directory without comparing where the branch is.
fn push_to_directory(
    source: &ObjectSource<'_>,
    attempt: &Attempt,
    directory: &Path,
    branch: &str,
    commit: CommitId,
    expected: Option<CommitId>,
) -> Try {
    let there = match git2::Repository::open(directory).and_then(guard) {
        Ok(there) => there,
        Err(error) => return Try::Unchanged(attempt.explain(&error)),
    };
    let copied = Packs::of(&there).and_then(|packs| {
        source.copy(attempt, &there, &[oid(commit)])?;
        packs.sync_added()
    });
    if let Err(error) = copied {
        return Try::Unchanged(error);
    }
    match CheckedOut::of(&there, &referent(&there, branch)) {
        Ok(None) => Try::of(move_branch(&there, branch, commit, expected)),
        Ok(Some(_)) => Try::Rejected(format!("the branch is checked out there: {FOLLOW_IN_PLACE}")),
        Err(error) => Try::of(Err(error)),
    }
}

/// Returns how a try ended that libgit2 has an error for; fails where that is of the objects here.
fn failed_push(attempt: &Attempt, error: &git2::Error) -> Result<Try, FetchError> {
    use git2::ErrorClass::{Invalid, Object, Odb, Tree};

    if let Some(words) = attempt.refusal() {
        return Ok(Try::Rejected(on_one_line(attempt, words)));
    }
    if error.code() == ErrorCode::NotFastForward {
        return Ok(Try::Moved);
    }
    let explained = attempt.explain(error);
    match explained.failure {
        // A key that may read may not write: the remote says so, and the network is fine.
        FetchFailure::AuthenticationFailed => Ok(Try::Rejected(explained.message)),
        _ if attempt.has_sent() => Ok(Try::Broken(explained)),
        // A malformed author is an invalid one.
        FetchFailure::CorruptObjects | FetchFailure::Other
            if matches!(error.class(), Invalid | Object | Odb | Tree) =>
        {
            Err(explained)
        }
        _ => Ok(Try::Unchanged(explained)),
    }
}

/// Writes the words of a remote on one line, without the secrets that it repeats.
fn on_one_line(attempt: &Attempt, words: &str) -> String {
    let lines: Vec<&str> =
        words.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
    let line: String = lines.join("; ").chars().filter(|it| !it.is_control()).collect();
    attempt.hide_secrets(&line).chars().take(1000).collect()
}

impl Repository {
    /// Moves a branch of a repository on this machine from `expected` to a commit that is in it.
    ///
    /// Where the branch is checked out, the files of the working tree follow; they must not have
    /// changes of their own.
    ///
    /// # Errors
    ///
    /// Returns why the branch is not moved.
    pub fn advance(
        &self,
        branch: &str,
        commit: CommitId,
        expected: Option<CommitId>,
        files: &[&str],
        options: &MirrorOptions,
    ) -> Result<(), PushError> {
        let advanced = self.advance_from(branch, commit, expected, files, options);
        match expected {
            Some(_) => advanced,
            None => advanced.map_err(|error| self.name_conflict(branch, error)),
        }
    }

    fn advance_from(
        &self,
        branch: &str,
        commit: CommitId,
        expected: Option<CommitId>,
        files: &[&str],
        options: &MirrorOptions,
    ) -> Result<(), PushError> {
        let inner = self.inner();
        let branch = &*referent(inner, branch);
        if inner.is_bare() && has_hooks(inner.path()) {
            return self.advance_through_hooks(branch, commit, expected, options);
        }
        let planned =
            Move { branch: branch.to_owned(), from: expected.unwrap_or(commit), to: commit };
        // A branch that is new is checked out nowhere.
        let tree = expected.map(|_| CheckedOut::of(inner, branch)).transpose()?.flatten();
        match tree {
            Some(tree) => {
                tree.follow(files, &planned, || move_branch(inner, branch, commit, expected))
            }
            None => {
                let _lock =
                    MoveLock::take(self.write_lock(), &planned).map_err(PushError::Failed)?;
                if expected.is_some() {
                    wait_for_others(inner)?;
                    // It may have been checked out meanwhile.
                    if CheckedOut::of(inner, branch)?.is_some() {
                        return Err(PushError::Moved);
                    }
                }
                move_branch(inner, branch, commit, expected)
            }
        }
    }

    /// Brings to the disk what was written for a branch since a commit, or its last commit alone.
    ///
    /// # Errors
    ///
    /// Returns that this is not known to be done.
    pub fn sync(
        &self,
        branch: &str,
        commit: CommitId,
        since: Option<CommitId>,
    ) -> Result<(), PushError> {
        sync_written(self.inner(), branch, commit, since).map_err(PushError::Unknown)
    }

    /// Returns the error of a new branch: which other one is in its way, if one is.
    fn name_conflict(&self, branch: &str, error: PushError) -> PushError {
        let other = self.branch_in_the_way(branch);
        match (other, error) {
            (Some(other), PushError::Moved | PushError::Failed(_)) => PushError::Rejected(format!(
                "the branch `{other}` is in the way of `{}`: rename or delete it",
                short_name(branch)
            )),
            (_, error) => error,
        }
    }

    /// Puts right what a process left that was killed while it moved a branch: locks, and files of working trees.
    pub fn recover_moves(&self) {
        recover_all(self.inner());
        MoveLock::remove_unfinished(&self.write_lock());
        if let Some((_lock, planned)) = MoveLock::take_over(&self.write_lock()) {
            planned.remove_ref_lock(self.inner().commondir());
        }
    }

    fn write_lock(&self) -> PathBuf {
        self.inner().commondir().join("clade-write.lock")
    }

    fn advance_through_hooks(
        &self,
        branch: &str,
        commit: CommitId,
        expected: Option<CommitId>,
        options: &MirrorOptions,
    ) -> Result<(), PushError> {
        // git takes what is there for what is on the disk.
        sync_commits(self.inner(), commit, expected).map_err(PushError::Failed)?;
        let remote = Remote::at_path(self.inner().path());
        match push_once(self, &remote, options, branch, commit, expected) {
            Try::Done => Ok(()),
            Try::Moved => Err(PushError::Moved),
            Try::Rejected(words) => Err(PushError::Rejected(words)),
            Try::Unsynced(error) => Err(PushError::Unknown(error)),
            // A hook that hangs after the branch has moved changes nothing about that.
            Try::Broken(_) if self.target_of(branch) == Some(commit) => Ok(()),
            Try::Unchanged(error) | Try::Broken(error) => Err(PushError::Failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_quoted_on_one_line_without_what_it_was_sent() {
        let remote = Remote::parse("https://git.example.com/groups.git").unwrap();
        let attempt = Attempt::push(&remote, &MirrorOptions::default());
        attempt.note_secrets(&["ci:hunter2", "hunter2"]);
        let long = format!("{}hunter2", "x".repeat(997));
        for (words, expected) in [
            ("bad header:\r\n  Basic Y2k6aHVudGVyMg==\n", "bad header:; Basic …=="),
            ("hun\u{7}ter2 is wrong", "… is wrong"),
            (&long, &*format!("{}…", "x".repeat(997))),
        ] {
            assert_eq!(on_one_line(&attempt, words), expected);
        }
    }

    #[test]
    fn a_remote_without_room_is_told_from_one_that_refuses() {
        let remote = Remote::parse("https://git.example.com/groups.git").unwrap();
        for (words, status, may_try_again) in [
            ("", "failed to update ref", true),
            ("", "missing necessary objects", true),
            ("fatal: fork failed: Resource temporarily unavailable", "unpacker error", true),
            ("error: cannot fork: Cannot allocate memory", "unpacker error", true),
            ("No space left on device", "unpacker error", true),
            // What a hook says is its own rule.
            ("Resource temporarily unavailable", "pre-receive hook declined", false),
            ("", "protected branch hook declined", false),
        ] {
            let is_fault = matches!(refusal(&remote, words, status), Try::Unchanged(_));
            assert_eq!(is_fault, may_try_again, "{words} ({status})");
        }
    }
}
