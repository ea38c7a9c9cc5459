//! The commits that a fresh mirror takes over from the one whose place it takes: the remote may not have them any more.
#![expect(clippy::disallowed_methods, reason = "the mirror is a directory on disk")]

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use git2::{ObjectType, Odb, Oid};

use super::{Mirror, name_live};
use crate::git::commit_links::{CommitLinks, SHALLOW, commits_in};
use crate::git::cut_history::CutHistory;
use crate::git::failure::{FetchError, FetchFailure};
use crate::git::object_copy::ObjectSource;
use crate::git::object_id::{id_of, oid};
use crate::git::pack_index;
use crate::git::repository::Repository;
use crate::git::transport::Attempt;
use crate::model::CommitId;

/// Commits on their way from one mirror to another.
struct Copying<'m> {
    mirror: &'m Mirror,
    from: &'m git2::Repository,
    to: &'m git2::Repository,
    /// Trees and blobs that both have.
    seen: HashSet<Oid>,
    /// Commits that have no history in the fresh one.
    cut: BTreeSet<Oid>,
    /// Whether the history of one could not be copied, or not in time. That of others leads to the same objects, and to read
    /// all of it again for each may take minutes.
    leaves_history: bool,
}

impl Mirror {
    /// Copies the live commit and others from the mirror into a fresh one that lacks them, and names the live one there.
    /// What is damaged cannot be copied, and is logged.
    ///
    /// # Errors
    ///
    /// Returns an error if another try may copy what this one cannot.
    pub(super) fn keep_commits(&self, fresh: &Path, kept: &[CommitId]) -> Result<(), FetchError> {
        let old = self.directory.repository();
        // It would keep libgit2 from all other packs.
        if let Err(error) = pack_index::check_all(&old.join("objects/pack")) {
            tracing::warn!(%error, "the packs of the mirror cannot be checked");
        }
        let live = self.live().or_else(|| kept.first().copied());
        let Some(live) = live else { return Ok(()) };
        let opened = Repository::open_mirror(&old)
            .and_then(|old| Repository::open_mirror(fresh).map(|fresh| (old, fresh)));
        let (old, fresh) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::error!(commit = %live, %error, "commits that the remote may lack are not kept");
                return Ok(());
            }
        };
        let mut copying = Copying::new(self, old.inner(), fresh.inner());
        for commit in std::iter::once(live).chain(kept.iter().copied()) {
            if commit != live && copying.is_absent(oid(commit)) {
                continue;
            }
            if let Err(error) = copying.copy(oid(commit)) {
                let error = self.unless_passing(error)?;
                // What is here of it is not complete.
                copying.seen.clear();
                tracing::error!(%commit, %error, "a commit that the remote may lack is not kept");
            }
        }
        if let Err(error) = copying.mark_cut() {
            let error = self.unless_passing(error)?;
            tracing::error!(%error, "the mirror does not say which commits have no history");
        }
        if let Err(error) = name_live(&fresh, live) {
            let error = self.unless_passing(copying.failed(&error))?;
            tracing::error!(commit = %live, %error, "the mirror does not name the live commit");
        }
        Ok(())
    }

    /// Returns what is damaged for good.
    ///
    /// # Errors
    ///
    /// Returns the error itself if another try may succeed: the disk is full, it took too long, or the daemon stops.
    fn unless_passing(&self, error: FetchError) -> Result<FetchError, FetchError> {
        let is_passing = matches!(error.failure, FetchFailure::DiskFull | FetchFailure::Timeout)
            || self.options.interrupt.is_interrupted();
        if is_passing { Err(error) } else { Ok(error) }
    }
}

impl<'m> Copying<'m> {
    fn new(mirror: &'m Mirror, from: &'m git2::Repository, to: &'m git2::Repository) -> Self {
        let (seen, cut) = (HashSet::new(), BTreeSet::new());
        Self { mirror, from, to, seen, cut, leaves_history: false }
    }

    /// Copies what a commit leads to: with its history, or alone if that is not here.
    fn copy(&mut self, commit: Oid) -> Result<(), FetchError> {
        let is_new = !self.exists(commit)?;
        let mut missing = self.missing(commit)?;
        if is_new {
            missing.push(commit);
            return self.copy_new(commit, &missing);
        }
        if missing.is_empty() { Ok(()) } else { self.copy_from(self.from, &missing) }
    }

    fn copy_new(&mut self, commit: Oid, missing: &[Oid]) -> Result<(), FetchError> {
        let id = id_of(commit);
        if self.leaves_history {
            tracing::warn!(commit = %id, "a commit that the remote may lack is kept without its history");
        } else {
            let Err(error) = self.copy_from(self.from, missing) else { return Ok(()) };
            let error = match error.failure {
                // The next try would take as long, and no commit alone does.
                FetchFailure::Timeout => error,
                _ => self.mirror.unless_passing(error)?,
            };
            tracing::warn!(commit = %id, %error, "a commit that the remote may lack is kept without its history");
            self.leaves_history = true;
        }
        let cut = CutHistory::at(self.from, commit)
            .map_err(|error| FetchError::new(FetchFailure::of_io(&error), error.to_string()))?;
        self.copy_from(&cut.repository, missing)?;
        self.cut.insert(commit);
        Ok(())
    }

    fn copy_from(&self, from: &git2::Repository, tips: &[Oid]) -> Result<(), FetchError> {
        let attempt = Attempt::fetch(&self.mirror.remote, &self.mirror.options);
        let source = ObjectSource { repository: from, limits: self.mirror.options.objects };
        source.copy(&attempt, self.to, tips)
    }

    /// Returns whether neither mirror has a commit, such as one of the repository that was followed before.
    fn is_absent(&self, commit: Oid) -> bool {
        [self.from, self.to].iter().all(|it| it.odb().is_ok_and(|it| !it.exists(commit)))
    }

    fn exists(&self, object: Oid) -> Result<bool, FetchError> {
        Ok(self.to.odb().map_err(|it| self.failed(&it))?.exists(object))
    }

    /// Returns the trees and blobs of a commit that are to be copied. A remote that sends incomplete packs may have left
    /// out any of them.
    fn missing(&mut self, commit: Oid) -> Result<Vec<Oid>, FetchError> {
        let (from, to) = (self.from.odb(), self.to.odb());
        let from = from.map_err(|it| self.failed(&it))?;
        let to = to.map_err(|it| self.failed(&it))?;
        let links = CommitLinks::find(self.from, &from, commit)
            .or_else(|_| CommitLinks::find(self.to, &to, commit));
        let mut waiting = vec![links.map_err(|it| self.failed(&it))?.tree];
        let mut missing = Vec::new();
        while let Some(id) = waiting.pop() {
            if !self.seen.insert(id) {
                continue;
            }
            if !to.exists(id) {
                missing.push(id);
            }
            let tree = self.from.find_tree(id).or_else(|_| self.to.find_tree(id));
            for entry in &tree.map_err(|it| self.failed(&it))? {
                match entry.kind() {
                    Some(ObjectType::Tree) => waiting.push(entry.id()),
                    Some(ObjectType::Blob)
                        if self.seen.insert(entry.id()) && !to.exists(entry.id()) =>
                    {
                        missing.push(entry.id());
                    }
                    _ => {}
                }
            }
        }
        Ok(missing)
    }

    /// Notes which commits have no history, as git does: those that were copied alone, and those of the old mirror.
    fn mark_cut(&mut self) -> Result<(), FetchError> {
        for commit in commits_in(&self.from.path().join(SHALLOW)).unwrap_or_default() {
            if self.exists(commit)? && !self.has_parents(commit) {
                self.cut.insert(commit);
            }
        }
        if self.cut.is_empty() {
            return Ok(());
        }
        let path = self.to.path().join(SHALLOW);
        let lines: Vec<String> = self.cut.iter().map(|it| format!("{it}\n")).collect();
        std::fs::write(&path, lines.concat())
            .map_err(|error| FetchError::of_file(&path, "written", &error))
    }

    /// Returns whether the fresh mirror has what a commit follows.
    fn has_parents(&self, commit: Oid) -> bool {
        let has = |database: Odb<'_>| {
            let links = CommitLinks::read(&database, commit).ok()?;
            Some(links.parents.iter().all(|it| database.exists(*it)))
        };
        self.to.odb().ok().and_then(has).unwrap_or(false)
    }

    fn failed(&self, error: &git2::Error) -> FetchError {
        Attempt::fetch(&self.mirror.remote, &self.mirror.options).explain(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::{MirrorOptions, Remote};

    /// Returns a mirror whose live commit a fresh one lacks, and the directory of all.
    fn mirror_with_a_live_commit() -> (tempfile::TempDir, Mirror, CommitId) {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("origin");
        let origin = git2::Repository::init_bare(&place).unwrap();
        let who = git2::Signature::now("a", "a@example.com").unwrap();
        let tree = origin.find_tree(origin.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let commit = id_of(origin.commit(Some("HEAD"), &who, &who, "x", &tree, &[]).unwrap());
        let remote = Remote::parse(place.to_str().unwrap()).unwrap();
        let data = directory.path().join("data");
        let mirror = Mirror::open(&data, remote, MirrorOptions::default()).unwrap();
        mirror.fetch(None).unwrap();
        mirror.set_live(commit).unwrap();
        (directory, mirror, commit)
    }

    #[test]
    fn a_stop_while_commits_are_copied_is_an_error() {
        let (_directory, mirror, commit) = mirror_with_a_live_commit();
        let fresh = mirror.directory.prepare_fresh(&mirror.remote).unwrap();
        mirror.options.interrupt.interrupt();
        let error = mirror.keep_commits(&fresh, &[]).unwrap_err();
        assert!(error.message.ends_with("the daemon is stopping"), "{error}");
        assert_eq!(mirror.live(), Some(commit));
    }

    #[test]
    fn a_commit_whose_history_takes_too_long_is_kept_without_it() {
        let (directory, mut mirror, first) = mirror_with_a_live_commit();
        let origin = git2::Repository::open(directory.path().join("origin")).unwrap();
        let who = git2::Signature::now("a", "a@example.com").unwrap();
        let mut last = origin.find_commit(oid(first)).unwrap();
        for number in 0..1000 {
            let (message, tree) = (number.to_string(), last.tree().unwrap());
            let next = origin.commit(Some("HEAD"), &who, &who, &message, &tree, &[&last]).unwrap();
            last = origin.find_commit(next).unwrap();
        }
        let head = mirror.fetch(None).unwrap().head;
        mirror.set_live(head).unwrap();
        // The shortest time in which it is kept is that of one commit, not that of all.
        let kept = (0..16).find_map(|doublings| {
            mirror.options.timeout = std::time::Duration::from_millis(1 << doublings);
            let fresh = mirror.directory.prepare_fresh(&mirror.remote).unwrap();
            mirror.keep_commits(&fresh, &[]).ok().map(|()| fresh)
        });
        let fresh = Repository::open_mirror(&kept.unwrap()).unwrap();
        assert_eq!(fresh.log(head, 9999).unwrap().len(), 1);
        assert!(fresh.commit(head).is_ok());
    }

    #[test]
    fn what_another_try_may_copy_is_an_error_and_damage_is_not() {
        let (_directory, mirror, commit) = mirror_with_a_live_commit();
        for (failure, is_passing) in [
            (FetchFailure::DiskFull, true),
            (FetchFailure::Timeout, true),
            (FetchFailure::CorruptObjects, false),
            (FetchFailure::LimitExceeded, false),
        ] {
            let error = FetchError::new(failure, "x");
            assert_eq!(mirror.unless_passing(error).is_err(), is_passing, "{failure:?}");
        }
        let fresh = mirror.directory.prepare_fresh(&mirror.remote).unwrap();
        let objects = mirror.directory.repository().join("objects");
        std::fs::remove_dir_all(&objects).unwrap();
        std::fs::create_dir(&objects).unwrap();
        assert_eq!(mirror.keep_commits(&fresh, &[commit]), Ok(()));
    }
}
