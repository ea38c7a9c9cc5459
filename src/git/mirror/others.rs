//! The refs beside the watched one: other branches, tags, and what refspecs name.
//!
//! They are fetched apart from the watched ref, so that it is followed whatever they are. One that
//! cannot be fetched or kept never stops another: a batch that fails is halved until the ref that
//! spoils it is found. That one is left out until it moves. If its failure may pass, such as that of a network, it is
//! fetched again after pauses that grow.
#![expect(clippy::disallowed_methods, reason = "pauses are measured by the clock")]

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use git2::{ErrorClass, ErrorCode, Oid, Reference};
use parking_lot::MutexGuard;

use super::advertised::Advertised;
use super::parts::{FetchedOthers, Others, Wanted};
use super::skipped::SkippedRef;
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

/// How many refs that failed before are fetched alone in one round, if they cannot be fetched together.
const ALONE: usize = 4;

impl Mirror {
    /// Returns whether refs beside the watched one have moved since they were fetched.
    pub fn others_moved(&self) -> bool {
        self.others().moved
    }

    /// Returns whether refs beside the watched one are to be fetched: they have moved, or failed and are due again.
    pub fn needs_others(&self) -> bool {
        self.others_moved() || self.until_retry().is_some_and(|it| it.is_zero())
    }

    /// Returns whether refs beside the watched one may arrive soon: they have moved, or failed a few times only.
    pub fn expects_others(&self) -> bool {
        let others = self.others();
        others.moved || others.skipped.has_recent()
    }

    /// Returns how long it takes until a ref that failed is fetched again; none if none is.
    pub fn until_retry(&self) -> Option<Duration> {
        self.others().skipped.until_due(Instant::now())
    }

    /// Has [`Mirror::fetch_others`] fetch refs again that failed, without the rest of their pauses.
    pub fn retry_others(&self) {
        self.others().skipped.make_due(Instant::now());
    }

    /// Returns why a ref of the remote is not fetched, by its full name.
    pub fn skipped(&self, name: &str) -> Option<FetchError> {
        self.others().skipped.error_of(name)
    }

    /// Fetches the refs beside the watched one.
    ///
    /// # Errors
    ///
    /// Returns an error if the remote cannot be fetched from, whatever the ref.
    pub fn fetch_others(&self) -> Result<FetchedOthers, FetchError> {
        self.fetch_others_into(&self.directory.repository(), None)
    }

    /// Fetches the refs beside the watched one that have moved, and one that a write waits for. Others that failed before
    /// do not delay it.
    ///
    /// # Errors
    ///
    /// As [`Mirror::fetch_others`].
    pub fn fetch_others_for(&self, name: &str) -> Result<FetchedOthers, FetchError> {
        self.fetch_others_into(&self.directory.repository(), Some(name))
    }

    /// Forgets which refs were skipped: what was wrong with them may have been in the mirror, or on the way.
    pub(super) fn forget_skipped(&self) {
        self.others().skipped.clear();
    }

    /// Fetches them into the mirror or into one that takes its place. Of those that failed, it fetches the given one, or
    /// those that are due.
    pub(super) fn fetch_others_into(
        &self,
        directory: &Path,
        only: Option<&str>,
    ) -> Result<FetchedOthers, FetchError> {
        let repository = self.open_for_fetch(directory)?;
        let Brought { advertised, deepened } = {
            let attempt = Attempt::fetch(&self.remote, &self.options);
            let _entered = attempt.enter();
            self.bring(&attempt, &repository, |_| Ok((Vec::new(), ())))?.0
        };
        self.follow_deepened(deepened, &repository);
        let watched_moved = has_watched_moved(&repository, &advertised);
        let missing = missing(&repository, self.wanted(&advertised));
        self.others().skipped.retain(&places(&missing));
        let (failed, moved): (Vec<_>, Vec<_>) = {
            let others = self.others();
            missing.into_iter().partition(|it| others.skipped.contains(&it.kept, it.target))
        };
        let mut round = FetchRound { tries: TRIES, skipped: Vec::new() };
        let mut batches = moved.chunks(BATCH);
        let brought = batches.try_for_each(|it| self.bring_batch(&repository, it, &mut round));
        log_skipped(&round.skipped);
        brought?;
        self.others().moved = round.tries == 0;
        if let Err(error) = self.retry(&repository, failed, only) {
            // A proposal needs its ref now; the round has brought all that moved.
            if only.is_some() {
                return Err(error);
            }
            tracing::warn!(%error, "refs that failed before are not fetched again now");
        }
        let mut others = self.others();
        others.not_utf8 = self.wanted_not_utf8(&advertised);
        let odd = others.not_utf8.iter().map(|name| SkippedRef {
            name: name.clone(),
            failure: FetchFailure::UnusableRef,
            message: "its name is not UTF-8".to_owned(),
        });
        let skipped = others.skipped.iter().cloned().chain(odd);
        Ok(FetchedOthers { skipped: skipped.collect(), watched_moved })
    }

    /// Fetches refs again that failed: together, and if that fails a few of them alone, those first that failed the fewest
    /// times. However many refs fail, this takes at most three times as long as one connection may.
    fn retry(
        &self,
        repository: &Repository,
        failed: Vec<Wanted>,
        only: Option<&str>,
    ) -> Result<(), FetchError> {
        let due = self.due(failed, only);
        // Their first failure is in the log.
        let mut round = FetchRound { tries: ALONE, skipped: Vec::new() };
        match due.as_slice() {
            [] => return Ok(()),
            [alone] => {
                let brought = self.bring_batch(repository, std::slice::from_ref(alone), &mut round);
                return brought.inspect_err(|_| self.postpone(&due));
            }
            several => match self.bring_together(repository, several, &mut round) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    self.postpone(several);
                    if !is_of_content(error.failure) {
                        return Err(error);
                    }
                }
            },
        }
        let until = Instant::now() + self.options.timeout;
        for wanted in due.chunks(1).take(ALONE).take_while(|_| Instant::now() < until) {
            self.bring_batch(repository, wanted, &mut round)?;
        }
        Ok(())
    }

    /// Counts a fetch that failed of these refs.
    fn postpone(&self, due: &[Wanted]) {
        let (mut others, now) = (self.others(), Instant::now());
        for wanted in due {
            others.skipped.postpone(&wanted.kept, now);
        }
    }

    /// Returns which of the refs that failed are fetched now.
    fn due(&self, failed: Vec<Wanted>, only: Option<&str>) -> Vec<Wanted> {
        if let Some(only) = only {
            return failed.into_iter().filter(|it| it.source == only).collect();
        }
        let (others, now) = (self.others(), Instant::now());
        let with_failures = |it: Wanted| Some((others.skipped.due(&it.kept, now)?, it));
        let mut due: Vec<(u32, Wanted)> = failed.into_iter().filter_map(with_failures).collect();
        due.sort_by_key(|(failures, _)| *failures);
        due.into_iter().take(BATCH).map(|(_, it)| it).collect()
    }

    /// Fetches refs by one connection, and if that fails for one of them, without it.
    fn bring_batch(
        &self,
        repository: &Repository,
        batch: &[Wanted],
        round: &mut FetchRound,
    ) -> Result<(), FetchError> {
        let Some(left) = round.tries.checked_sub(1) else { return Ok(()) };
        round.tries = left;
        match (self.bring_together(repository, batch, round), batch) {
            (Ok(()), _) => Ok(()),
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

    /// Fetches refs by one connection.
    fn bring_together(
        &self,
        repository: &Repository,
        batch: &[Wanted],
        round: &mut FetchRound,
    ) -> Result<(), FetchError> {
        let (Brought { deepened, .. }, ()) = {
            let attempt = Attempt::fetch(&self.remote, &self.options);
            let _entered = attempt.enter();
            self.bring(&attempt, repository, |_| Ok((batch.to_vec(), ())))?
        };
        let refs = self.lock_refs();
        for wanted in batch {
            match keep(repository, wanted) {
                Ok(()) => self.others().skipped.remove(&wanted.kept),
                Err(error) => self.skip(wanted, error, round),
            }
        }
        drop(refs);
        self.follow_deepened(deepened, repository);
        Ok(())
    }

    fn skip(&self, wanted: &Wanted, error: FetchError, round: &mut FetchRound) {
        let Wanted { source, kept, target } = wanted;
        let FetchError { failure, message } = error;
        let skipped = SkippedRef { name: source.clone(), failure, message };
        round.skipped.push(skipped.clone());
        self.others().skipped.insert(kept, *target, skipped, Instant::now());
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
        let mut others = self.others();
        // One that was skipped and is gone is not to be named any more.
        let is_outdated = !others.skipped.are_in(&places(&wanted))
            || others.not_utf8 != self.wanted_not_utf8(advertised);
        let mut missing = missing(repository, wanted).into_iter();
        let moved = missing.any(|it| !others.skipped.contains(&it.kept, it.target));
        others.moved = is_outdated || moved;
    }

    fn others(&self) -> MutexGuard<'_, Others> {
        self.others.lock()
    }
}

/// Returns the refs that are not in the mirror as they are at the remote.
fn missing(repository: &Repository, wanted: Vec<Wanted>) -> Vec<Wanted> {
    let is_missing =
        |it: &Wanted| repository.inner().refname_to_id(&it.kept).ok() != Some(it.target);
    wanted.into_iter().filter(is_missing).collect()
}

/// Returns where refs are, by their names in the mirror.
fn places(wanted: &[Wanted]) -> HashSet<(&str, Oid)> {
    wanted.iter().map(|it| (it.kept.as_str(), it.target)).collect()
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
        Err(error) if error.code() == ErrorCode::NotFound => {
            return Err(FetchError::new(FetchFailure::CorruptObjects, error.message()));
        }
        Err(_) => return Err(unusable("it does not name a commit")),
    }
    match inner.reference(&wanted.kept, wanted.target, true, "fetch") {
        Ok(_) => Ok(()),
        Err(error) if error.code() == ErrorCode::Locked => Ok(()),
        Err(error) if failure_of(&error) == FetchFailure::DiskFull => Ok(()),
        Err(error) if is_of_system(&error) && !is_of_name(&error) => {
            Err(FetchError::new(FetchFailure::Other, error.message()))
        }
        Err(error) => Err(unusable(error.message())),
    }
}

/// How the system says that no file can have a name (`ENAMETOOLONG` and `EILSEQ`, also as musl has them).
const OF_NAMES: [&str; 4] = [
    "File name too long",
    "Filename too long",
    "Invalid or incomplete multibyte or wide character",
    "Illegal byte sequence",
];

/// Returns whether an error of the system is about the name of a ref, whatever else the machine does.
fn is_of_name(error: &git2::Error) -> bool {
    OF_NAMES.iter().any(|it| error.message().ends_with(it))
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
