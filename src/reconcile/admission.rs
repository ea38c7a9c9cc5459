//! Which commits may answer: those whose signatures are what `--verify` demands.
//!
//! It holds for every commit that answers an agent, however it is asked for. The one exception is the
//! comparison of two commits, which answers people and takes heads of pull requests.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use super::controller::Controller;
use super::journal::{Event, Journal};
use crate::git::{Base, Repository, SignatureFault, Signer};
use crate::model::CommitId;

/// How many verified commits are looked for in the journal, newest first: one would do for a branch
/// that only grows, and more are needed after rewrites and pins.
const VERIFIED: usize = 64;

/// How many commits are remembered whose history is verified.
const REMEMBERED: usize = 4_096;

/// What becomes of a commit where nothing is verified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It is the head of the branch or an operator's choice: its own signature vouches for what it
    /// contains.
    Begin,
    /// Any caller may have asked for it: everything that it contains must be signed.
    Nothing,
}

/// Commits whose whole history is verified.
#[derive(Debug, Default)]
pub(super) struct Verified(Mutex<HashSet<CommitId>>);

impl Verified {
    fn has(&self, commit: CommitId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&commit)
    }

    fn insert(&self, commit: CommitId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert(commit);
    }
}

impl Controller {
    /// Checks that a commit may answer, and returns who signed it where that is asked for.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with its signature or one in its history.
    pub(super) fn admit(
        &self,
        repository: &Repository,
        commit: CommitId,
        trust: Trust,
    ) -> Result<Option<Signer>, SignatureFault> {
        let verification = &self.settings.verification;
        let seen = |it| self.first_seen(repository, it);
        if self.verified.has(commit) {
            // Its history does not change; whether its key is still allowed may.
            return verification.check(repository, commit, Base::Trusted, &seen);
        }
        let live = self.live_snapshots.commit();
        let mut known = self.journal().verified(VERIFIED);
        known.extend(live);
        known.retain(|it| repository.commit(*it).is_ok());
        let base = match trust {
            Trust::Begin if known.is_empty() => Base::Trusted,
            Trust::Begin | Trust::Nothing => Base::Verified(&known),
        };
        let signer = verification.check(repository, commit, base, &seen)?;
        if signer.is_some() {
            self.verified.insert(commit);
        }
        Ok(signer)
    }

    /// Returns who signed the commit that answers: a key may have been taken away since.
    pub(super) fn signer_of(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Option<Signer>, SignatureFault> {
        let seen = |it| self.first_seen(repository, it);
        self.settings.verification.check(repository, commit, Base::Trusted, &seen)
    }

    /// Returns when a commit was first seen here: with the first head of the branch that contains it,
    /// or now.
    fn first_seen(&self, repository: &Repository, commit: CommitId) -> Timestamp {
        let heads = self.journal().seen();
        if let Some((time, _)) = heads.iter().find(|(_, head)| *head == commit) {
            return *time;
        }
        // Where the branch only grew, every head after the first that has the commit has it too; after a
        // rewrite a later one may be found, which is on the safe side.
        let lacks = |head: CommitId| !repository.is_ancestor(commit, head).unwrap_or(false);
        let first = heads.partition_point(|(_, head)| lacks(*head));
        heads.get(first).map_or_else(Timestamp::now, |(time, _)| *time)
    }
}

impl Journal {
    /// Returns whether it says that a commit was verified.
    pub(super) fn has_verified(&self, commit: CommitId) -> bool {
        self.records()
            .iter()
            .rev()
            .any(|it| matches!(it.event, Event::Verified { commit: it, .. } if it == commit))
    }

    /// Returns the commits whose history was verified, newest first.
    fn verified(&self, most: usize) -> Vec<CommitId> {
        let all = self.records().iter().rev().filter_map(|it| match it.event {
            Event::Verified { commit, .. } => Some(commit),
            _ => None,
        });
        all.take(most).collect()
    }

    /// Returns which heads were seen when, oldest first.
    fn seen(&self) -> Vec<(Timestamp, CommitId)> {
        let all = self.records().iter().filter_map(|it| match it.event {
            Event::Fetched { commit } | Event::Activated { commit, .. } => Some((it.time, commit)),
            _ => None,
        });
        all.collect()
    }
}
