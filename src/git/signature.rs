//! Signatures of commits, and whether their keys are allowed.
//!
//! The keys come from files of the operator, never from the watched tree. They are read once for each check of a commit
//! and its history, so that one content decides about all of it, and again for the next: removing a key takes effect
//! with the next check, as soon as its file is stable.

mod openpgp;
mod signed;
mod ssh;
mod watched_keys;

use std::cell::LazyCell;
use std::path::{Path, PathBuf};

use self::signed::Signed;
use self::watched_keys::KeyText;
use super::repository::Repository;
use crate::config::read_bounded_text;
use crate::model::CommitId;

pub use signed::{SeenAt, Sightings, SignatureFault, Signer};
pub use watched_keys::{KeyFiles, WatchedKeys};

/// Whose commits may be served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Which commits must be signed.
    pub mode: VerifyMode,
    /// OpenSSH's `allowed_signers`.
    pub allowed_signers: Option<PathBuf>,
    /// OpenPGP public keys, armoured, any number in a file.
    pub openpgp_keys: Option<PathBuf>,
}

/// Which commits must be signed by an allowed key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerifyMode {
    /// None.
    #[default]
    Off,
    /// The head of the branch.
    Head,
    /// Every commit that no verified one contains; the head alone where none is verified yet.
    Range,
}

impl VerifyMode {
    /// Returns the word of settings and status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Head => "head",
            Self::Range => "range",
        }
    }
}

/// What need not be verified again.
#[derive(Clone, Copy, Debug)]
pub enum Base<'a> {
    /// Nothing is verified yet: what a signed head contains is taken on trust.
    Trusted,
    /// Everything that these commits contain is verified.
    Verified(&'a [CommitId]),
}

impl Verification {
    /// Checks the signatures that the mode asks for by what the files of keys contained; without any, there is no signer.
    ///
    /// The commit itself must be signed in either mode. With [`VerifyMode::Range`] so must every
    /// commit in its history that no verified commit has in its own: the side branches of merges too.
    ///
    /// # Errors
    ///
    /// Returns the fault of the first commit, newest first, without a signature of an allowed key.
    pub fn check(
        &self,
        keys: &KeyFiles,
        repository: &Repository,
        head: CommitId,
        base: Base<'_>,
        seen: SeenAt<'_>,
    ) -> Result<Option<Signer>, SignatureFault> {
        if self.mode == VerifyMode::Off {
            return Ok(None);
        }
        let signer = keys.signer_of(repository, head, seen)?;
        if let (VerifyMode::Range, Base::Verified(verified)) = (self.mode, base) {
            keys.check_history(repository, head, verified, seen)?;
        }
        Ok(Some(signer))
    }

    /// Watches the files of keys.
    pub fn watch_keys(&self) -> WatchedKeys {
        WatchedKeys::new(self.allowed_signers.as_deref(), self.openpgp_keys.as_deref())
    }
}

impl KeyFiles {
    /// Checks the signatures of the commits that a commit has in its history and no verified one has.
    fn check_history(
        &self,
        repository: &Repository,
        head: CommitId,
        verified: &[CommitId],
        seen: SeenAt<'_>,
    ) -> Result<(), SignatureFault> {
        let unreadable = |source| SignatureFault::UnreadableCommit { commit: head, source };
        // Found out once, and only where a commit fails.
        let newest = LazyCell::new(|| newest(repository, verified));
        for commit in repository.commits_beyond(verified, head).map_err(unreadable)? {
            if commit == head {
                continue;
            }
            let Err(fault) = self.signer_of(repository, commit, seen) else { continue };
            // Dates of committers may have put it beside what verified commits contain.
            let is_contained = |it: &CommitId| repository.is_ancestor(commit, *it).unwrap_or(false);
            if fault.read_error().is_some() || !newest.iter().any(is_contained) {
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Returns who signed a commit, or an error unless the key is allowed.
    fn signer_of(
        &self,
        repository: &Repository,
        commit: CommitId,
        seen: SeenAt<'_>,
    ) -> Result<Signer, SignatureFault> {
        let signed = Signed::read(repository, commit, seen)?;
        if signed.signature.contains("-----BEGIN SSH SIGNATURE-----") {
            ssh::check(&signed, text_of(self.allowed_signers.as_ref(), &signed, "SSH")?)
        } else {
            openpgp::check(&signed, text_of(self.openpgp_keys.as_ref(), &signed, "OpenPGP")?)
        }
    }
}

/// Checks that a file of allowed signers can be used and has a key.
///
/// # Errors
///
/// Returns what is wrong with it.
pub fn check_allowed_signers(path: &Path) -> Result<(), String> {
    ssh::check_signers(&read_text(path)?)
}

/// Checks that a file of OpenPGP keys can be used and has a key.
///
/// # Errors
///
/// Returns what is wrong with it.
pub fn check_openpgp_keys(path: &Path) -> Result<(), String> {
    openpgp::check_keys(&read_text(path)?)
}

/// Returns those of some commits that no other of them contains: what they contain, all contain together.
fn newest(repository: &Repository, commits: &[CommitId]) -> Vec<CommitId> {
    let is_in =
        |one: CommitId, other: CommitId| repository.is_ancestor(one, other).unwrap_or(false);
    let mut kept: Vec<CommitId> = Vec::new();
    for commit in commits {
        if !kept.iter().any(|it| is_in(*commit, *it)) {
            kept.retain(|it| !is_in(*it, *commit));
            kept.push(*commit);
        }
    }
    kept
}

fn read_text(path: &Path) -> Result<String, String> {
    read_bounded_text(path).map_err(|error| error.to_string())
}

fn text_of<'k>(
    keys: Option<&'k KeyText>,
    signed: &Signed<'_>,
    sort: &str,
) -> Result<&'k str, SignatureFault> {
    match keys {
        Some(Ok(text)) => Ok(text),
        Some(Err(reason)) => Err(signed.unreadable_keys(reason)),
        None => {
            let reason = format!("no {sort} keys are configured");
            Err(signed.not_allowed(format!("of an {sort} signature"), reason))
        }
    }
}

#[cfg(test)]
mod tests;
