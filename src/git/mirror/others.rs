//! The refs beside the watched one: other branches, tags, and what refspecs name.
//!
//! They are fetched apart from the watched ref, so that it is followed whatever they are. One that
//! cannot be fetched or kept never stops another: a batch that fails is halved until the ref that
//! spoils it is found. That one is left out until it moves.

use std::collections::HashSet;
use std::path::Path;

use git2::{ErrorClass, ErrorCode, Oid, Reference};
use parking_lot::MutexGuard;

use super::advertised::Advertised;
use super::parts::{FetchedOthers, Others, SkippedRef, Wanted};
use super::{Brought, Mirror};
use crate::git::failure::{FetchError, FetchFailure, failure_of};
use crate::git::refs::WATCHED;
use crate::git::repository::Repository;
use crate::git::transport::Attempt;

/// How many refs one connection fetches.
const BATCH: usize = 512;

/// How many refs the log names that are skipped in one round.
const NAMED: usize = 3;

/// How many connections are made for one round; what is left waits for the next.
const TRIES: usize = 48;

impl Mirror {
    /// Returns whether refs beside the watched one have moved since they were fetched.
    pub fn others_moved(&self) -> bool {
        self.others().moved
    }

    /// Fetches the refs beside the watched one.
    ///
    /// # Errors
    ///
    /// Returns an error if the remote cannot be fetched from, whatever the ref.
    pub fn fetch_others(&self) -> Result<FetchedOthers, FetchError> {
        self.fetch_others_into(&self.directory.repository())
    }

    /// Forgets which refs were skipped: what was wrong with them may have been in the mirror, or on the way.
    pub(super) fn forget_skipped(&self) {
        self.others().skipped.clear();
    }

    /// Fetches them into the mirror or into one that takes its place.
    pub(super) fn fetch_others_into(&self, directory: &Path) -> Result<FetchedOthers, FetchError> {
        let repository = self.open_for_fetch(directory)?;
        let Brought { advertised, deepened } = {
            let attempt = Attempt::fetch(&self.remote, &self.options);
            let _entered = attempt.enter();
            self.bring(&attempt, &repository, |_| Ok((Vec::new(), ())))?.0
        };
        self.follow_deepened(deepened, &repository);
        let watched_moved = has_watched_moved(&repository, &advertised);
        let wanted = self.wanted(&advertised);
        let names: HashSet<&str> = wanted.iter().map(|it| it.kept.as_str()).collect();
        self.others().skipped.retain(|kept, _| names.contains(kept.as_str()));
        let missing = self.missing(&repository, wanted);
        let mut round = FetchRound { tries: TRIES, skipped: Vec::new() };
        let mut batches = missing.chunks(BATCH);
        let brought = batches.try_for_each(|it| self.bring_batch(&repository, it, &mut round));
        log_skipped(&round.skipped);
        brought?;
        let mut others = self.others();
        others.moved = round.tries == 0;
        others.not_utf8 = self.wanted_not_utf8(&advertised);
        let odd = others.not_utf8.iter().map(|name| SkippedRef {
            name: name.clone(),
            failure: FetchFailure::UnusableRef,
            message: "its name is not UTF-8".to_owned(),
        });
        let skipped = others.skipped.values().map(|(_, skipped)| skipped.clone()).chain(odd);
        Ok(FetchedOthers { skipped: skipped.collect(), watched_moved })
    }

    fn bring_batch(
        &self,
        repository: &Repository,
        batch: &[Wanted],
        round: &mut FetchRound,
    ) -> Result<(), FetchError> {
        let Some(left) = round.tries.checked_sub(1) else { return Ok(()) };
        round.tries = left;
        let brought = {
            let attempt = Attempt::fetch(&self.remote, &self.options);
            let _entered = attempt.enter();
            self.bring(&attempt, repository, |_| Ok((batch.to_vec(), ())))
        };
        match (brought, batch) {
            (Ok((Brought { deepened, .. }, ())), _) => {
                let refs = self.lock_refs();
                for wanted in batch {
                    if let Err(error) = keep(repository, wanted) {
                        self.skip(wanted, error, round);
                    }
                }
                drop(refs);
                self.follow_deepened(deepened, repository);
                Ok(())
            }
            (Err(error), _) if !is_of_content(error.failure) => Err(error),
            (Err(error), [wanted]) => {
                self.skip(wanted, error, round);
                Ok(())
            }
            (Err(_), batch) => {
                let (first, second) = batch.split_at(batch.len() / 2);
                self.bring_batch(repository, first, round)?;
                self.bring_batch(repository, second, round)
            }
        }
    }

    fn skip(&self, wanted: &Wanted, error: FetchError, round: &mut FetchRound) {
        let Wanted { source, kept, target } = wanted;
        let FetchError { failure, message } = error;
        let skipped = SkippedRef { name: source.clone(), failure, message };
        round.skipped.push(skipped.clone());
        self.others().skipped.insert(kept.clone(), (*target, skipped));
    }

    /// Returns the refs that the mirror keeps, each with its name here.
    pub(super) fn wanted(&self, advertised: &Advertised) -> Vec<Wanted> {
        let specs = self.specs();
        let mut wanted = Vec::new();
        for (name, target) in advertised.refs() {
            for (from, to) in &specs {
                if let Some(kept) = mapped(name, from, to) {
                    wanted.push(Wanted { source: name.to_owned(), kept, target });
                }
            }
        }
        wanted
    }

    /// Returns the names of refs that the mirror would keep if they were UTF-8.
    fn wanted_not_utf8(&self, advertised: &Advertised) -> Vec<String> {
        let specs = self.specs();
        let is_wanted =
            |name: &&String| specs.iter().any(|(from, to)| mapped(name, from, to).is_some());
        advertised.not_utf8().iter().filter(is_wanted).cloned().collect()
    }

    /// Returns what is fetched, each with where it is kept.
    fn specs(&self) -> Vec<(&str, &str)> {
        let more = self.options.refspecs.iter().map(|spec| {
            let plain = spec.strip_prefix('+').unwrap_or(spec);
            plain.split_once(':').unwrap_or((plain, plain))
        });
        [("refs/heads/*", "refs/remotes/origin/*"), ("refs/tags/*", "refs/tags/*")]
            .into_iter()
            .chain(more)
            .collect()
    }

    /// Returns the refs that are not here as they are at the remote; those skipped are left out.
    fn missing(&self, repository: &Repository, wanted: Vec<Wanted>) -> Vec<Wanted> {
        let others = self.others();
        let is_missing = |it: &Wanted| {
            let known = repository.inner().refname_to_id(&it.kept).ok();
            let skipped = others.skipped.get(&it.kept).map(|(target, _)| *target);
            known != Some(it.target) && skipped != Some(it.target)
        };
        wanted.into_iter().filter(is_missing).collect()
    }

    /// Forgets refs that are gone from the remote.
    pub(super) fn prune(
        &self,
        repository: &Repository,
        wanted: &[Wanted],
    ) -> Result<(), git2::Error> {
        let inner = repository.inner();
        let names: HashSet<&str> = wanted.iter().map(|it| it.kept.as_str()).collect();
        let globs = self
            .options
            .refspecs
            .iter()
            .map(|spec| spec.rsplit(':').next().unwrap_or(spec).trim_start_matches('+'));
        for glob in ["refs/remotes/origin/*", "refs/tags/*"].into_iter().chain(globs) {
            for reference in inner.references_glob(glob)? {
                let Ok(mut reference) = reference else { continue };
                let name = std::str::from_utf8(reference.name_bytes()).unwrap_or_default();
                if !names.contains(name) {
                    reference.delete()?;
                }
            }
        }
        Ok(())
    }

    /// Notes whether refs have moved since they were fetched.
    pub(super) fn note_moved(
        &self,
        repository: &Repository,
        advertised: &Advertised,
        wanted: Vec<Wanted>,
    ) {
        // One that was skipped and is gone is not to be named any more.
        let is_there = |kept: &str, target: Oid| {
            wanted.iter().any(|it| it.kept == kept && it.target == target)
        };
        let is_outdated =
            self.others().skipped.iter().any(|(kept, (target, _))| !is_there(kept, *target));
        let is_outdated = is_outdated || self.others().not_utf8 != self.wanted_not_utf8(advertised);
        let missing = self.missing(repository, wanted);
        self.others().moved = is_outdated || !missing.is_empty();
    }

    fn others(&self) -> MutexGuard<'_, Others> {
        self.others.lock()
    }
}

/// Returns whether the watched ref is elsewhere at the remote than where it was fetched.
fn has_watched_moved(repository: &Repository, advertised: &Advertised) -> bool {
    let Ok(head) = repository.inner().find_reference("HEAD") else { return false };
    let Ok(Some(noted)) = head.symbolic_target() else { return false };
    let Some(watched) = noted.strip_prefix(WATCHED) else { return false };
    advertised.commit_of(watched) != repository.inner().refname_to_id(noted).ok()
}

/// One round of connections for the refs beside the watched one.
struct FetchRound {
    /// How many connections are left.
    tries: usize,
    /// What was skipped.
    skipped: Vec<SkippedRef>,
}

/// Logs refs that were skipped: the first few, and how many more there are.
fn log_skipped(skipped: &[SkippedRef]) {
    for SkippedRef { name, message, .. } in skipped.iter().take(NAMED) {
        let shown: String = name.chars().take(200).collect();
        tracing::warn!(reference = shown, error = message, "a ref of the remote is skipped");
    }
    if let more @ 1.. = skipped.len().saturating_sub(NAMED) {
        tracing::warn!(more, "more refs of the remote are skipped");
    }
}

/// Writes a ref whose objects are here.
fn keep(repository: &Repository, wanted: &Wanted) -> Result<(), FetchError> {
    let unusable = |detail: &str| FetchError::new(FetchFailure::UnusableRef, detail);
    if !Reference::is_valid_name(&wanted.kept) {
        return Err(unusable("its name is not valid"));
    }
    let inner = repository.inner();
    let object = match inner.find_object(wanted.target, None) {
        Ok(object) => object,
        // It may have moved again meanwhile.
        Err(error) if error.code() == ErrorCode::NotFound || is_of_system(&error) => return Ok(()),
        Err(error) => return Err(unusable(error.message())),
    };
    match object.peel_to_commit() {
        Ok(_) => {}
        Err(error) if is_of_system(&error) => return Ok(()),
        Err(_) => return Err(unusable("it does not name a commit")),
    }
    match inner.reference(&wanted.kept, wanted.target, true, "fetch") {
        Ok(_) => Ok(()),
        Err(error) if error.code() == ErrorCode::Locked => Ok(()),
        // The names of some refs are too long for a file: that is an error of the system as well.
        Err(error) if failure_of(&error) == FetchFailure::DiskFull => Ok(()),
        Err(error) => Err(unusable(error.message())),
    }
}

/// Returns whether the system is why something cannot be read now: it says nothing of the ref.
fn is_of_system(error: &git2::Error) -> bool {
    matches!(error.class(), ErrorClass::Os | ErrorClass::Filesystem | ErrorClass::NoMemory)
}

/// Returns the name that a refspec gives a ref in the mirror.
fn mapped(name: &str, from: &str, to: &str) -> Option<String> {
    let Some((before, after)) = from.split_once('*') else {
        return (name == from).then(|| to.to_owned());
    };
    let part = name.strip_prefix(before)?.strip_suffix(after)?;
    Some(to.replacen('*', part, 1))
}

/// Returns whether what failed may be the fault of one ref among several.
fn is_of_content(failure: FetchFailure) -> bool {
    matches!(
        failure,
        FetchFailure::LimitExceeded
            | FetchFailure::CorruptObjects
            | FetchFailure::MalformedResponse
            | FetchFailure::Timeout
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_says_nothing_of_a_ref() {
        for (class, expected) in [
            (ErrorClass::Os, true),
            (ErrorClass::Filesystem, true),
            (ErrorClass::NoMemory, true),
            (ErrorClass::Odb, false),
            (ErrorClass::Zlib, false),
        ] {
            let error = git2::Error::new(ErrorCode::GenericError, class, "x");
            assert_eq!(is_of_system(&error), expected, "{class:?}");
        }
    }

    #[test]
    fn refspecs_name_refs_here() {
        for (name, from, to, kept) in [
            (
                "refs/heads/a/b",
                "refs/heads/*",
                "refs/remotes/origin/*",
                Some("refs/remotes/origin/a/b"),
            ),
            ("refs/tags/v1", "refs/heads/*", "refs/remotes/origin/*", None),
            ("refs/pull/7/head", "refs/pull/*/head", "refs/pull/*/head", Some("refs/pull/7/head")),
            ("refs/pull/7/merge", "refs/pull/*/head", "refs/pull/*/head", None),
            ("refs/x", "refs/x", "refs/y", Some("refs/y")),
            ("refs/x/y", "refs/x", "refs/y", None),
        ] {
            assert_eq!(mapped(name, from, to).as_deref(), kept, "{name} {from}");
        }
    }
}
