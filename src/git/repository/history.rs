//! Commits and which of them contain which.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::Repository;
use super::error::ReadError;
use crate::git::commit_links::CommitLinks;
use crate::git::object_id::{id_of, oid};
use crate::git::own_files::check_ref_files;
use crate::git::refs::LIVE;
use crate::model::CommitId;

/// Among how many commits each is asked about by itself.
const COMPARED: usize = 256;

/// How many bytes of a message are read.
const MESSAGE: usize = 64 << 10;

/// How many commits a history has at most that is cached.
const MOST_CACHED: usize = 1 << 18;

/// The history of the commit that was last asked for, where libgit2 cannot read it: requests ask for the same one.
struct LinkedHistory {
    repository: PathBuf,
    of: CommitId,
    commits: Arc<HashSet<git2::Oid>>,
}

impl LinkedHistory {
    fn last() -> &'static Mutex<Option<Self>> {
        static LAST: Mutex<Option<LinkedHistory>> = Mutex::new(None);
        &LAST
    }

    fn cached(repository: &Path, of: CommitId) -> Option<Arc<HashSet<git2::Oid>>> {
        let last = Self::last().lock();
        let found = last.as_ref().filter(|it| it.of == of && it.repository == repository);
        found.map(|it| Arc::clone(&it.commits))
    }

    fn cache(repository: &Path, of: CommitId, commits: HashSet<git2::Oid>) {
        if commits.len() <= MOST_CACHED {
            let (repository, commits) = (repository.to_owned(), Arc::new(commits));
            *Self::last().lock() = Some(Self { repository, of, commits });
        }
    }
}

/// What people want to know of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its id.
    pub id: CommitId,
    /// The name of its author, up to a length.
    pub author: String,
    /// When it was made, by its committer's clock.
    pub time: Timestamp,
    /// The first line of its message, up to a length.
    pub subject: String,
}

/// How many bytes of a name and of a first line are kept: what names a commit many times repeats them each time.
const NAME: usize = 256;
const SUBJECT: usize = 512;

/// Returns a line of a commit, with an ellipsis where it is longer than what is kept.
fn line(bytes: &[u8], most: usize) -> String {
    let Some(kept) = bytes.get(..most).filter(|it| it.len() < bytes.len()) else {
        return String::from_utf8_lossy(bytes).into_owned();
    };
    let whole = match std::str::from_utf8(kept) {
        // The last character is cut.
        Err(error) if error.error_len().is_none() => kept.get(..error.valid_up_to()),
        _ => None,
    };
    format!("{}…", String::from_utf8_lossy(whole.unwrap_or(kept)))
}

/// The first second of the year 0, before which there is no year of four digits.
const FIRST_YEAR: i64 = -62_167_219_200;

/// Returns the time of a commit, which git takes as any number; one beyond the years 0 to 9999 is the first or last in them.
fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds.max(FIRST_YEAR)).unwrap_or(Timestamp::MAX)
}

impl Repository {
    /// Returns what people want to know of a commit.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read.
    pub fn commit(&self, id: CommitId) -> Result<CommitInfo, ReadError> {
        let commit = self.find_commit(id)?;
        let seconds = commit.time().seconds();
        Ok(CommitInfo {
            id,
            author: line(commit.author().name_bytes(), NAME),
            time: timestamp(seconds),
            subject: commit
                .message_bytes()
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::trim_ascii)
                .find(|line| !line.is_empty())
                .map(|it| line(it, SUBJECT))
                .unwrap_or_default(),
        })
    }

    /// Returns the message of a commit, up to a length.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read.
    pub fn message(&self, id: CommitId) -> Result<String, ReadError> {
        let commit = self.find_commit(id)?;
        let bytes = commit.message_bytes();
        let kept = bytes.get(..MESSAGE).unwrap_or(bytes);
        Ok(String::from_utf8_lossy(kept).into_owned())
    }

    /// Returns the parents of a commit.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read.
    pub fn parents(&self, id: CommitId) -> Result<Vec<CommitId>, ReadError> {
        Ok(self.find_commit(id)?.parent_ids().map(id_of).collect())
    }

    /// Returns commits from the given one backwards along first parents.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit cannot be read.
    pub fn log(&self, from: CommitId, limit: usize) -> Result<Vec<CommitId>, ReadError> {
        self.first_parents(from).take(limit).collect()
    }

    fn first_parents(&self, from: CommitId) -> impl Iterator<Item = Result<CommitId, ReadError>> {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let id = next.take()?;
            let commit = self.find_commit(id);
            Some(commit.map(|it| {
                next = it.parent_ids().next().map(id_of);
                id
            }))
        })
    }

    /// Returns at most so many commits as far as they can be read, newest first, along first parents.
    pub fn readable_log(&self, from: CommitId, limit: usize) -> Vec<CommitId> {
        self.first_parents(from).map_while(Result::ok).take(limit).collect()
    }

    /// Returns the newest commits that changed a file, along the first parents of a commit: at most so many, among
    /// at most so many. A merge stands for what it brought.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit cannot be read.
    pub fn file_changes(
        &self,
        from: CommitId,
        path: &str,
        most: usize,
        among: usize,
    ) -> Result<Vec<CommitId>, ReadError> {
        let file = |commit: &git2::Commit<'_>| {
            let tree = commit.tree().ok()?;
            tree.get_path(path.as_ref()).ok().map(|it| (it.id(), it.filemode()))
        };
        let mut changes = Vec::new();
        let mut newer: Option<(CommitId, _)> = None;
        for id in self.log(from, among)? {
            if changes.len() == most {
                return Ok(changes);
            }
            let commit = self.find_commit(id)?;
            let now = file(&commit);
            if let Some((newer, then)) = newer.take()
                && then != now
            {
                changes.push(newer);
            }
            if commit.parent_count() == 0 && now.is_some() && changes.len() < most {
                changes.push(id);
            }
            newer = Some((id, now));
        }
        Ok(changes)
    }

    /// Returns the first parent of a commit; none for a commit that follows no other.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read.
    pub fn first_parent(&self, of: CommitId) -> Result<Option<CommitId>, ReadError> {
        Ok(self.find_commit(of)?.parent_ids().next().map(id_of))
    }

    /// Returns whether the repository lacks old commits, be they of a branch or of one commit.
    pub fn is_shallow(&self) -> bool {
        self.inner.is_shallow()
    }

    /// Returns whether a commit has no parents here though it follows others, as where the history of a shallow clone ends.
    pub fn is_cut_at(&self, commit: CommitId) -> bool {
        let is_cut = |database: git2::Odb<'_>| {
            let here = CommitLinks::find(&self.inner, &database, oid(commit)).ok()?;
            let written = CommitLinks::read(&database, oid(commit)).ok()?;
            Some(here.parents.is_empty() && !written.parents.is_empty())
        };
        // What cannot be read may follow others.
        self.inner.odb().ok().and_then(is_cut).unwrap_or(true)
    }

    /// Returns whether all commits are here that refs lead to, but for those before the live one, which a remote may have
    /// forgotten.
    pub fn has_all_commits(&self) -> bool {
        self.walk_all_commits().is_ok()
    }

    fn walk_all_commits(&self) -> Result<(), git2::Error> {
        check_ref_files(&self.inner)?;
        let database = self.inner.odb()?;
        let mut waiting = Vec::new();
        for reference in self.inner.references()? {
            let reference = reference?;
            if reference.name_bytes() != LIVE.as_bytes() {
                waiting.push(reference.peel_to_commit()?.id());
            }
        }
        let mut seen = HashSet::new();
        while let Some(id) = waiting.pop() {
            if seen.insert(id) {
                waiting.extend(CommitLinks::read(&database, id)?.parents);
            }
        }
        Ok(())
    }

    /// Returns whether one commit is the other or an ancestor of it.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit on the way cannot be read.
    pub fn is_ancestor(&self, ancestor: CommitId, descendant: CommitId) -> Result<bool, ReadError> {
        let what = || format!("the history of the commit {descendant}");
        let fail = |error: git2::Error| ReadError::of(what(), &error);
        if ancestor == descendant {
            return Ok(true);
        }
        let found = self.inner.graph_descendant_of(oid(descendant), oid(ancestor));
        // It fails at a malformed commit, and behind a commit whose parents are missing, as in a mirror of a shallow
        // repository.
        found.or_else(|_| self.is_linked(ancestor, descendant)).map_err(fail)
    }

    /// Returns whether parents lead from one commit to another, across commits that libgit2 refuses: it may be asked only
    /// where libgit2 has failed, since it reads all of the history once.
    fn is_linked(&self, ancestor: CommitId, descendant: CommitId) -> Result<bool, git2::Error> {
        let database = self.inner.odb()?;
        CommitLinks::find(&self.inner, &database, oid(ancestor))?;
        if let Some(history) = LinkedHistory::cached(self.inner.path(), descendant) {
            return Ok(history.contains(&oid(ancestor)));
        }
        let (mut seen, mut waiting, mut error) = (HashSet::new(), vec![oid(descendant)], None);
        while let Some(id) = waiting.pop() {
            if seen.insert(id) {
                match CommitLinks::find(&self.inner, &database, id) {
                    Ok(links) => waiting.extend(links.parents),
                    // What leads to the ancestor may be elsewhere.
                    Err(failed) => error = Some(failed),
                }
            }
        }
        let is_linked = seen.contains(&oid(ancestor));
        match error {
            Some(error) if !is_linked => return Err(error),
            Some(_) => {}
            None => LinkedHistory::cache(self.inner.path(), descendant, seen),
        }
        Ok(is_linked)
    }

    /// Returns the commits that one has and another lacks, newest first.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit on the way cannot be read.
    pub fn commits_between(
        &self,
        lacking: CommitId,
        having: CommitId,
    ) -> Result<Vec<CommitId>, ReadError> {
        let mut commits = self.commits_beyond(&[lacking], having)?;
        // Each question may read much of the history, and among so many commits the clocks of a few matter little.
        if commits.len() <= COMPARED {
            commits.retain(|it| !self.is_ancestor(*it, lacking).unwrap_or(false));
        }
        Ok(commits)
    }

    /// Returns the commits that one has and none of the others, newest first. Where committers' clocks went backwards,
    /// some that the others have are among them: libgit2 stops at older dates.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit on the way cannot be read.
    pub fn commits_beyond(
        &self,
        lacking: &[CommitId],
        having: CommitId,
    ) -> Result<Vec<CommitId>, ReadError> {
        // The history of a commit that is given is not read: damage in it does not count.
        if lacking.contains(&having) {
            return Ok(Vec::new());
        }
        let fail = |error: git2::Error| {
            ReadError::of(format!("the history of the commit {having}"), &error)
        };
        let mut walk = self.inner.revwalk().map_err(fail)?;
        walk.push(oid(having)).map_err(fail)?;
        for lacking in lacking {
            walk.hide(oid(*lacking)).map_err(fail)?;
        }
        walk.map(|id| id.map(id_of).map_err(fail)).collect()
    }

    /// Returns the newest commit that two commits have in common, if they have any.
    ///
    /// # Errors
    ///
    /// Returns an error if the history cannot be read.
    pub fn merge_base(
        &self,
        one: CommitId,
        other: CommitId,
    ) -> Result<Option<CommitId>, ReadError> {
        let fail = |error: git2::Error| ReadError::of("the history", &error);
        match self.inner.merge_base(oid(one), oid(other)) {
            Ok(common) => Ok(Some(id_of(common))),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(fail(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_between_characters_and_times_have_years_of_four_digits() {
        for (text, expected) in [
            ("", String::new()),
            ("abc", "abc".to_owned()),
            ("abcd", "abcd".to_owned()),
            ("abcde", "abcd…".to_owned()),
            ("abcé", "abc…".to_owned()),
            ("abéd", "abé…".to_owned()),
        ] {
            assert_eq!(line(text.as_bytes(), 4), expected, "{text}");
        }
        assert_eq!(line(b"a\xff", 4), "a\u{fffd}");
        assert_eq!(line(b"\xfca\xfc\xfc\xfc", 4), "\u{fffd}a\u{fffd}\u{fffd}…");
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (i64::MIN, "0000-01-01T00:00:00Z"),
            (i64::MAX, "9999-12-30T22:00:00.999999999Z"),
        ] {
            assert_eq!(timestamp(seconds).to_string(), expected);
        }
    }

    /// Commits on top of some, at a time that the committer's clock shows.
    fn commit_at(repository: &Repository, seconds: i64, parents: &[CommitId]) -> CommitId {
        let git = repository.inner();
        let tree = git.treebuilder(None).unwrap().write().unwrap();
        let tree = git.find_tree(tree).unwrap();
        let who = git2::Signature::new("A", "a@example.com", &git2::Time::new(seconds, 0)).unwrap();
        let parents: Vec<_> = parents.iter().map(|it| git.find_commit(oid(*it)).unwrap()).collect();
        let parents: Vec<_> = parents.iter().collect();
        id_of(git.commit(None, &who, &who, "a commit", &tree, &parents).unwrap())
    }

    #[test]
    fn what_a_commit_contains_is_found_whatever_the_dates_are() {
        let directory = tempfile::tempdir().unwrap();
        git2::Repository::init_bare(directory.path()).unwrap();
        let repository = Repository::at(directory.path()).unwrap();
        let at = |seconds: i64, parents: &[CommitId]| commit_at(&repository, seconds, parents);
        let root = at(2_000, &[]);
        let old = (1..=9).fold(root, |before, second| at(second, &[before]));
        let verified = at(3_000, &[old]);
        let side = at(3_001, &[root]);
        let merged = at(3_002, &[verified, side]);
        let beyond = repository.commits_beyond(&[verified], merged).unwrap();
        assert!(beyond.contains(&root), "libgit2 finds the root before the way to it");
        assert_eq!(repository.commits_between(verified, merged), Ok(vec![merged, side]));
        assert_eq!(repository.commits_between(merged, verified), Ok(vec![]));
        assert_eq!(repository.commits_between(merged, merged), Ok(vec![]));
        assert_eq!(repository.is_ancestor(root, verified), Ok(true));
        assert_eq!(repository.is_ancestor(side, verified), Ok(false));
    }
}
