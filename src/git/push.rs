//! Pushing commits: compare and swap, so that no other commit is lost.

use std::path::{Path, PathBuf};

use git2::PushOptions;

use super::cut_history::CutHistory;
use super::durable::{Packs, check_before_push, sync_commits, sync_pushed, sync_written};
use super::failure::{FetchError, FetchFailure};
use super::local_push::{has_hooks, move_branch};
use super::mirror::Mirror;
use super::move_lock::{Move, MoveLock};
use super::object_copy::ObjectSource;
use super::object_guard::guard;
use super::object_id::oid;
use super::options::MirrorOptions;
use super::push_error::PushError;
use super::push_outcome::{PushPlace, ShownBranch, outcome};
use super::push_report::{FOLLOW_IN_PLACE, PushReport, RemoteOutput};
use super::refs::{WATCHED, referent, short_name};
use super::remote::Remote;
use super::remote_branch::find_branch;
use super::repository::Repository;
use super::transport::{Attempt, LOCAL_PUSH, NeededRefs, check_owner, git_is_here};
use super::working_tree::{CheckedOut, recover_all, wait_for_others};
use crate::model::CommitId;

/// The ref that names a commit while it is pushed: of each another one, since several processes may push from one
/// repository.
fn outgoing(commit: CommitId) -> String {
    format!("refs/clade/outgoing-{commit}")
}

/// For how many seconds at most a commit that was just made may be on its way.
const LONGEST_PUSH: i64 = 3_600;

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
    /// Where the push itself does not say what came of it, the remote is asked where the branch is.
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
        let report =
            push_once(&repository, self.remote(), self.options(), branch, commit, expected);
        if report == PushReport::Accepted {
            self.note_at_remote(&repository, branch, commit);
            self.keep_push_repository(repository, &taken);
            return Ok(());
        }
        let place = if self.is_of_this_machine() { PushPlace::Here } else { PushPlace::Elsewhere };
        let Some(expected) = expected else {
            let shown = self.shown_new(&repository, branch, commit, &report);
            let came = outcome(report, shown, place);
            return match came {
                Ok(()) => {
                    self.note_at_remote(&repository, branch, commit);
                    Ok(())
                }
                Err(PushError::Failed(error)) => {
                    Err(self.conflict_there(&repository, branch, error))
                }
                error => error,
            };
        };
        let shown = match self.fetch_watched(watched) {
            Ok(fetched) => ShownBranch::of(&repository, fetched.head, commit, expected),
            Err(error) => ShownBranch::Unknown(error),
        };
        outcome(report, shown, place)
    }

    /// Returns where the remote shows a branch that was to be made.
    fn shown_new(
        &self,
        own: &Repository,
        branch: &str,
        commit: CommitId,
        report: &PushReport,
    ) -> ShownBranch {
        // What would have taken the push has listed it.
        if *report == PushReport::Moved {
            return ShownBranch::Overtaken;
        }
        match find_branch(own, self.remote(), self.options(), branch) {
            Ok(None) => ShownBranch::Expected,
            Ok(Some(found)) if found == commit => ShownBranch::Ours,
            Ok(Some(_)) => ShownBranch::Overtaken,
            Err(error) => ShownBranch::Unknown(error),
        }
    }

    /// Returns the error of a new branch: one that was made at the remote since the last fetch may be in its way.
    fn conflict_there(&self, own: &Repository, branch: &str, error: FetchError) -> PushError {
        if let Err(error) = self.fetch_others_for(branch) {
            tracing::warn!(%error, "other refs are not fetched");
        }
        own.name_conflict(branch, PushError::Failed(error))
    }

    /// Notes what is at the remote now, so that it is known before the next fetch.
    fn note_at_remote(&self, repository: &Repository, branch: &str, commit: CommitId) {
        let _refs = self.lock_refs();
        note_pushed(repository, branch, commit);
    }
}

/// Names what is at the remote in a mirror.
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
) -> PushReport {
    // A branch is compared with itself alone; what makes a new one may have to send nothing.
    let only = |commits| NeededRefs::Only { branch: branch.to_owned(), commits };
    let needed = expected.map_or(NeededRefs::All, |_| only(Vec::new()));
    let goal = PushGoal { branch, commit, expected };
    let unread = match push_from(repository.inner(), remote, options, &goal, needed) {
        Ok(tried) => return tried,
        Err(unread) => unread,
    };
    let cut = match CutHistory::behind(repository, commit, expected) {
        Ok(cut) => cut,
        Err(error) => {
            tracing::warn!(%error, "a repository to push from cannot be made");
            return PushReport::Unchanged(unread);
        }
    };
    let parents = repository.parents(commit).unwrap_or_default();
    let tried = push_from(&cut.repository, remote, options, &goal, only(parents));
    tried.unwrap_or_else(PushReport::Unchanged)
}

/// What is pushed where.
struct PushGoal<'g> {
    branch: &'g str,
    commit: CommitId,
    /// Where the branch is; none for a new one.
    expected: Option<CommitId>,
}

/// Tries a push from a repository. Fails where libgit2 cannot read what is there, before anything is sent.
fn push_from(
    repository: &git2::Repository,
    remote: &Remote,
    options: &MirrorOptions,
    goal: &PushGoal<'_>,
    needed: NeededRefs,
) -> Result<PushReport, FetchError> {
    let PushGoal { branch, commit, expected } = *goal;
    let attempt = Attempt::push(remote, options);
    attempt.need_refs(needed);
    let _entered = attempt.enter();
    let unsent = |error: git2::Error| PushReport::Unchanged(attempt.explain(&error));
    let address = match PushRoute::of(remote) {
        Ok(PushRoute::Remote(address)) => address,
        Ok(PushRoute::Git) => {
            let checked = remote.directory().map(|it| check_before_push(&it, branch));
            if let Some(Err(error)) = checked {
                return Ok(PushReport::Unchanged(error));
            }
            format!("{LOCAL_PUSH}://here")
        }
        Ok(PushRoute::Directory(directory)) => {
            let source = ObjectSource { repository, limits: options.objects };
            return Ok(push_to_directory(&source, &attempt, &directory, goal));
        }
        Err(words) => return Ok(PushReport::Rejected(words)),
    };
    // Naming a commit that is damaged does not say so.
    let read = repository.odb().and_then(|it| it.read(oid(commit)).map(drop));
    let name = outgoing(commit);
    let outlet = read.and_then(|()| {
        let outlet = repository.remote_anonymous(&address)?;
        repository.reference(&name, oid(commit), true, "push")?;
        Ok(outlet)
    });
    let mut outlet = match outlet {
        Ok(outlet) => outlet,
        Err(error) => return Ok(unsent(error)),
    };
    let output = RemoteOutput::default();
    let mut options = PushOptions::new();
    options.remote_callbacks(output.callbacks(expected));
    let pushed = outlet.push(&[format!("{name}:{branch}")], Some(&mut options));
    if let Err(error) = repository.find_reference(&name).and_then(|mut it| it.delete()) {
        tracing::debug!(reference = name, error = error.message(), "a ref is left behind");
    }
    drop(options);
    let report = output.report(remote, &attempt, pushed)?;
    Ok(match (report, remote.directory()) {
        (PushReport::Accepted, Some(directory)) => {
            sync_pushed(&directory, branch, commit, expected)
                .map_or_else(PushReport::Unsynced, |()| PushReport::Accepted)
        }
        (report, _) => report,
    })
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
    goal: &PushGoal<'_>,
) -> PushReport {
    let PushGoal { branch, commit, expected } = *goal;
    let there = match git2::Repository::open(directory).and_then(guard) {
        Ok(there) => there,
        Err(error) => return PushReport::Unchanged(attempt.explain(&error)),
    };
    let copied = Packs::of(&there).and_then(|packs| {
        source.copy(attempt, &there, &[oid(commit)])?;
        packs.sync_added()
    });
    if let Err(error) = copied {
        return PushReport::Unchanged(error);
    }
    match CheckedOut::of(&there, &referent(&there, branch)) {
        Ok(None) => PushReport::of(move_branch(&there, branch, commit, expected)),
        Ok(Some(_)) => {
            PushReport::Rejected(format!("the branch is checked out there: {FOLLOW_IN_PLACE}"))
        }
        Err(error) => PushReport::of(Err(error)),
    }
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
        self.remove_outgoing();
    }

    /// Removes the names of commits that processes pushed which were killed. Another one may be pushing now.
    fn remove_outgoing(&self) {
        let now = jiff::Timestamp::now().as_second();
        let names = self.inner().references_glob("refs/clade/outgoing*");
        for mut name in names.into_iter().flatten().flatten() {
            let time = name.peel_to_commit().map_or(0, |it| it.time().seconds());
            if now.saturating_sub(time) > LONGEST_PUSH {
                name.delete().ok();
            }
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
        let report = push_once(self, &remote, options, branch, commit, expected);
        // A hook that hangs after the branch has moved changes nothing about that.
        let shown = ShownBranch::here(self, branch, commit, expected);
        // Behind an existing branch; a new one may be merged and removed by a hook right away.
        let is_elsewhere = report == PushReport::Accepted
            && expected.is_some()
            && matches!(shown, ShownBranch::Expected | ShownBranch::Other);
        outcome(report, shown, PushPlace::Here)?;
        if is_elsewhere {
            // A hook may do that, as one that moves the branch back.
            let message = "the push succeeded, and the branch does not have the commit";
            return Err(PushError::Unknown(FetchError::new(FetchFailure::Other, message)));
        }
        Ok(())
    }
}
