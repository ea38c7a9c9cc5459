//! Which commit a revision, a branch or a ref names.

use git2::{ErrorCode, ObjectType};

use super::error::{ReadError, ResolveError};
use super::{Branches, Repository};
use crate::git::object_id::{id_of, oid};
use crate::git::own_files::{check_ref_file, check_ref_files};
use crate::git::refs::{WATCHED, instead, short_name};
use crate::model::CommitId;

/// The longest part of a revision, in bytes: no file has a longer name.
const LONGEST_PART: usize = 250;

/// The longest revision, in bytes.
const LONGEST: usize = 2048;

/// How many commits a branch of a shallow clone has at most that is known to be one.
const DEEPEST: usize = 10_000;

/// How many characters of an id mean a commit at least, as in git.
const SHORTEST_ID: usize = 4;

/// Whether a repository has a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitPresence {
    /// It has the commit.
    Present,
    /// It does not have the commit.
    Absent,
    /// What leads to the commit cannot be read.
    Unknown,
}

/// Where git looks for a ref of a name.
const PLACES: [&str; 5] = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];

impl Repository {
    /// Returns the commit of a revision: anything that `git rev-parse` understands, but for searches
    /// of messages (`:/text`).
    ///
    /// A full id is always the commit itself and `HEAD` the watched branch, whatever branches are
    /// called. In a mirror the branches of the remote are known by their own names, before tags.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it cannot be read.
    pub fn resolve(&self, revision: &str) -> Result<CommitId, ResolveError> {
        // A search of messages would run a pattern of the caller's over the whole history.
        if revision.contains(":/") || revision.contains("^{/") {
            return Err(ResolveError::unknown(revision));
        }
        self.resolve_searching(revision)
    }

    /// Returns whether the repository has a commit, by its id.
    pub fn presence(&self, commit: CommitId) -> CommitPresence {
        let resolve = || self.resolve(&commit.to_string());
        let found = resolve();
        let found = match found {
            Err(ResolveError::Unknown(_)) if self.check_readable().is_err() => {
                return CommitPresence::Unknown;
            }
            // It may have been unreadable until then.
            Err(ResolveError::Unknown(_)) => resolve(),
            found => found,
        };
        match found {
            Ok(_) => CommitPresence::Present,
            Err(ResolveError::Unknown(_)) => CommitPresence::Absent,
            Err(ResolveError::Unreadable(_)) => CommitPresence::Unknown,
        }
    }

    /// Returns whether the repository has no ref at all, as before its first fetch.
    pub fn is_bare_of_refs(&self) -> bool {
        self.inner.references().is_ok_and(|mut it| it.next().is_none())
    }

    /// Returns the commit of a revision that the owner of the repository names, who may search
    /// messages: `:/text`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it cannot be read.
    pub fn resolve_searching(&self, revision: &str) -> Result<CommitId, ResolveError> {
        let found = self.commit_of(revision);
        found.map_err(|error| match error {
            _ if self.lacks_history_of(revision) => error.in_shallow_clone(),
            // A mirror may not have been fetched yet.
            _ if matches!(self.branches, Branches::Own) && self.has_no_commit() => {
                error.in_empty_repository()
            }
            _ if self.names_remote(revision) => error.of_remote(),
            _ => error,
        })
    }

    /// Returns whether the repository is a shallow clone. A mirror may also have commits whose history alone is missing, of
    /// which other revisions know nothing; programs ask it for whole ids, and are given no advice.
    fn lacks_history_of(&self, revision: &str) -> bool {
        let is_branch_cut = || {
            let head = self.target_of("HEAD")?;
            let oldest = *self.log(head, DEEPEST).ok()?.last()?;
            Some(self.is_cut_at(oldest))
        };
        self.is_shallow()
            && match self.branches {
                Branches::Own => true,
                Branches::Mirrored => {
                    revision.parse::<CommitId>().is_err() && is_branch_cut().unwrap_or(false)
                }
            }
    }

    /// Returns whether a revision begins with the name of a remote, such as `origin/main`.
    fn names_remote(&self, revision: &str) -> bool {
        let remote = revision.split_once('/').map(|(remote, _)| remote);
        matches!(self.branches, Branches::Own)
            && remote.is_some_and(|it| self.inner.find_remote(it).is_ok())
    }

    /// Returns whether there is no commit that a name leads to, so probably none at all.
    fn has_no_commit(&self) -> bool {
        // What stands in the place of a ref may be a pipe, which libgit2 would wait for.
        let is_readable =
            check_ref_files(&self.inner).and_then(|()| self.check_refs_of("HEAD")).is_ok();
        let has_refs = || self.inner.references().is_ok_and(|mut it| it.next().is_some());
        let is_unborn = || self.inner.head().is_err_and(|it| it.code() == ErrorCode::UnbornBranch);
        is_readable && !has_refs() && is_unborn()
    }

    fn commit_of(&self, revision: &str) -> Result<CommitId, ResolveError> {
        if revision.is_empty() || revision.contains('\0') || is_too_long(revision) {
            return Err(ResolveError::unknown(revision));
        }
        let fail = |error: git2::Error| ResolveError::of(revision, &error);
        if let Ok(id) = git2::Oid::from_str(revision)
            && revision.len() == 40
        {
            let commit = self.inner.find_object(id, None).and_then(|it| it.peel_to_commit());
            return commit.map(|it| id_of(it.id())).map_err(fail);
        }
        if self.is_ambiguous(revision) {
            return Err(ResolveError::ambiguous(revision));
        }
        let mirrored = match self.branches {
            Branches::Own => [None, None],
            Branches::Mirrored => branches_of(revision),
        };
        for branch in mirrored.into_iter().flatten() {
            match self.peel(&format!("refs/remotes/origin/{branch}")).map_err(fail) {
                found @ (Ok(_) | Err(ResolveError::Unreadable(_))) => return found,
                Err(ResolveError::Unknown(_)) => {}
            }
        }
        self.peel(revision).map_err(fail)
    }

    /// Returns whether there is an object of an id, be it a commit or not.
    pub fn has_object(&self, id: CommitId) -> bool {
        self.inner.odb().is_ok_and(|it| it.exists(oid(id)))
    }

    /// Returns whether a revision begins with part of a commit's id that is the name of a ref at another commit: who may
    /// push some branch must not choose what an id means.
    fn is_ambiguous(&self, revision: &str) -> bool {
        let name = name_of(revision);
        if !(SHORTEST_ID..40).contains(&name.len())
            || !name.bytes().all(|it| it.is_ascii_hexdigit())
        {
            return false;
        }
        let mirrored = format!("refs/remotes/origin/{name}");
        if [name, &mirrored].into_iter().any(|it| self.check_refs_of(it).is_err()) {
            return false;
        }
        let start = git2::Oid::from_str(name);
        let objects = start.and_then(|start| Ok((start, self.inner.odb()?)));
        let whole = objects.and_then(|(start, objects)| objects.exists_prefix(start, name.len()));
        let mut names = PLACES.iter().map(|it| format!("{it}{name}")).chain([mirrored]);
        let commit = match whole {
            // Another object, which can be made for this, may have the same beginning.
            Err(error) if error.code() == ErrorCode::Ambiguous => None,
            whole => {
                let commit =
                    whole.and_then(|it| self.inner.find_object(it, None)?.peel_to_commit());
                let Ok(commit) = commit else { return false };
                Some(id_of(commit.id()))
            }
        };
        names.any(|it| self.target_of(&it).is_some_and(|named| Some(named) != commit))
    }

    /// Returns the commit that a ref leads to.
    pub(in crate::git) fn target_of(&self, reference: &str) -> Option<CommitId> {
        let commit = self.inner.find_reference(reference).ok()?.peel_to_commit().ok()?;
        Some(id_of(commit.id()))
    }

    fn peel(&self, revision: &str) -> Result<CommitId, git2::Error> {
        self.check_refs_of(revision)?;
        let object = self.inner.revparse_single(revision)?;
        object.peel(ObjectType::Commit).map(|it| id_of(it.id()))
    }

    /// Checks the files of the refs that a revision may begin with.
    fn check_refs_of(&self, revision: &str) -> Result<(), git2::Error> {
        let name = name_of(revision);
        if matches!(name, "" | "@" | "HEAD") {
            // What HEAD itself is was checked when the repository was opened.
            let head = self.inner.find_reference("HEAD");
            let target = head.as_ref().ok().and_then(|it| it.symbolic_target().ok()?);
            return target.map_or(Ok(()), |it| check_ref_file(&self.inner, it));
        }
        PLACES.iter().try_for_each(|it| check_ref_file(&self.inner, &format!("{it}{name}")))
    }

    /// Returns the commit of a branch, a tag or a full ref name, or of what HEAD names; a detached HEAD counts.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such branch, no commit yet, or one that cannot be read.
    pub fn branch_head(&self, branch: Option<&str>) -> Result<CommitId, ResolveError> {
        match branch {
            None => self.resolve("HEAD"),
            Some(branch) => {
                let found = if branch.starts_with("refs/") {
                    self.resolve(branch)
                } else {
                    self.resolve(&format!("refs/heads/{branch}")).or_else(|error| match error {
                        ResolveError::Unknown(_) => self.resolve(&format!("refs/tags/{branch}")),
                        ResolveError::Unreadable(_) => Err(error),
                    })
                };
                found.map_err(|error| match error {
                    ResolveError::Unknown(_) => ResolveError::unknown(branch),
                    ResolveError::Unreadable(_) => error,
                })
            }
        }
    }

    /// Returns the full name of what a branch or tag is called; a name that nothing has is returned as it is.
    pub fn full_name_of(&self, name: &str) -> String {
        let places =
            if name.starts_with("refs/") { &[][..] } else { &["refs/heads/", "refs/tags/"] };
        let mut names = places.iter().map(|it| format!("{it}{name}"));
        let found = names.find(|it| {
            check_ref_file(&self.inner, it).is_err() || self.inner.find_reference(it).is_ok()
        });
        found.unwrap_or_else(|| name.to_owned())
    }

    /// Returns why the commit of a branch, or of HEAD, cannot be read although there is one.
    pub fn damage_at(&self, branch: Option<&str>) -> Option<ReadError> {
        let names = match branch {
            None => vec!["HEAD".to_owned()],
            Some(full) if full.starts_with("refs/") => vec![full.to_owned()],
            Some(name) => ["heads", "tags"].iter().map(|it| format!("refs/{it}/{name}")).collect(),
        };
        names.into_iter().find_map(|name| {
            let target = self.inner.refname_to_id(&name).ok()?;
            let error = self.inner.find_object(target, None).err()?;
            Some(ReadError::of(format!("the object {target} of `{name}`"), &error))
        })
    }

    /// Returns a branch that keeps another one from being made, if one does: git has no branch `a/b` beside `a`.
    pub(in crate::git) fn branch_in_the_way(&self, branch: &str) -> Option<String> {
        let short = short_name(branch);
        let heads = match self.branches {
            Branches::Own => "refs/heads/",
            Branches::Mirrored => "refs/remotes/origin/",
        };
        let mut above = short.match_indices('/').filter_map(|(at, _)| short.get(..at));
        let found = above.find(|it| self.inner.find_reference(&format!("{heads}{it}")).is_ok());
        found.map(str::to_owned).or_else(|| {
            let below = self.inner.references_glob(&format!("{heads}{short}/*")).ok()?;
            let name = below.flatten().next()?.name().ok()?.strip_prefix(heads)?.to_owned();
            Some(name)
        })
    }

    /// Returns the full name of the ref that HEAD names; a detached HEAD names none.
    pub fn head_ref(&self) -> Option<String> {
        let head = self.inner.find_reference("HEAD").ok()?;
        let target = head.symbolic_target().ok()??;
        let name = target.strip_prefix(WATCHED).unwrap_or(target);
        (name != "HEAD").then(|| name.to_owned())
    }

    /// Says that a branch, or what HEAD names, has no commit, and which branches have one.
    pub fn why_missing(&self, branch: Option<&str>) -> String {
        let found =
            check_ref_files(&self.inner).and_then(|()| self.inner.references_glob("refs/heads/*"));
        let found = found.ok().into_iter().flatten();
        let names = found.filter_map(|it| it.ok()?.name().ok().map(str::to_owned));
        let names: Vec<String> = names.collect();
        let missing = match (branch, self.head_ref()) {
            (Some(branch), _) => format!("the repository has no branch `{}`", short_name(branch)),
            (None, _) if names.is_empty() => {
                return "the repository has no commit yet: commit the files first".to_owned();
            }
            (None, Some(named)) => {
                format!("HEAD names `{}`, which the repository does not have", short_name(&named))
            }
            (None, None) => "HEAD names no commit of the repository".to_owned(),
        };
        missing + &instead(names.iter().map(String::as_str))
    }
}

/// Returns the id or name that a revision begins with.
fn name_of(revision: &str) -> &str {
    let name = revision.split(['~', '^', ':']).next().unwrap_or_default();
    name.split("@{").next().unwrap_or_default()
}

/// Returns whether a revision cannot name a ref since a file cannot have such a name.
fn is_too_long(revision: &str) -> bool {
    let mut parts = revision.split(['/', '~', '^', ':', '@']);
    revision.len() > LONGEST || parts.any(|it| it.len() > LONGEST_PART)
}

/// Returns the branches of the remote that a revision in a mirror may begin with, the one that is meant first: as in
/// git, `heads/x` is the branch `x`, and else one of that whole name.
///
/// A remote may have a branch called `HEAD`, `@` or `refs/clade/live`: by these names alone it is not
/// meant, only by `refs/heads/HEAD`.
fn branches_of(revision: &str) -> [Option<&str>; 2] {
    if let Some(branch) = revision.strip_prefix("refs/heads/") {
        return [Some(branch), None];
    }
    let name = name_of(revision);
    let is_own = matches!(name, "" | "HEAD" | "@") || name.starts_with("refs/");
    [revision.strip_prefix("heads/"), (!is_own).then_some(revision)]
}
