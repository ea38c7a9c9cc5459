//! Signatures of commits, and whether their keys are allowed.
//!
//! The keys come from files of the operator, never from the watched tree, and are read again at
//! each check: a key that is taken away counts at once.

mod openpgp;
mod signed;
mod ssh;

use std::path::{Path, PathBuf};

use self::signed::Signed;
use super::repository::{ReadError, Repository};
use crate::config::read_bounded_text;
use crate::model::CommitId;

pub use signed::{FirstSeen, SignatureFault, Signer};

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
    /// Checks the signatures that the mode asks for; without any, there is no signer.
    ///
    /// The commit itself must be signed in either mode. With [`VerifyMode::Range`] so must every
    /// commit in its history that no verified commit has in its own: the side branches of merges too.
    ///
    /// # Errors
    ///
    /// Returns the fault of the first commit, newest first, without a signature of an allowed key.
    pub fn check(
        &self,
        repository: &Repository,
        head: CommitId,
        base: Base<'_>,
        seen: FirstSeen<'_>,
    ) -> Result<Option<Signer>, SignatureFault> {
        if self.mode == VerifyMode::Off {
            return Ok(None);
        }
        let signer = self.signer_of(repository, head, seen)?;
        if let (VerifyMode::Range, Base::Verified(verified)) = (self.mode, base) {
            let unreadable = |error: ReadError| SignatureFault::Unreadable {
                commit: head,
                reason: error.to_string(),
            };
            for commit in repository.commits_not_in(verified, head).map_err(unreadable)? {
                if commit != head {
                    self.signer_of(repository, commit, seen)?;
                }
            }
        }
        Ok(Some(signer))
    }

    /// Returns who signed a commit.
    ///
    /// # Errors
    ///
    /// Returns an error unless the key is allowed.
    pub fn signer_of(
        &self,
        repository: &Repository,
        commit: CommitId,
        seen: FirstSeen<'_>,
    ) -> Result<Signer, SignatureFault> {
        let signed = Signed::read(repository, commit, seen)?;
        if signed.signature.contains("-----BEGIN SSH SIGNATURE-----") {
            let text = read_keys(self.allowed_signers.as_deref(), &signed, "SSH")?;
            ssh::check(&signed, &text)
        } else {
            let text = read_keys(self.openpgp_keys.as_deref(), &signed, "OpenPGP")?;
            openpgp::check(&signed, &text)
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

fn read_text(path: &Path) -> Result<String, String> {
    read_bounded_text(path).map_err(|error| error.to_string())
}

fn read_keys(
    path: Option<&Path>,
    signed: &Signed<'_>,
    sort: &str,
) -> Result<String, SignatureFault> {
    let Some(path) = path else {
        let reason = format!("no {sort} keys are configured");
        return Err(signed.not_allowed(format!("of an {sort} signature"), reason));
    };
    read_text(path)
        .map_err(|error| signed.unreadable(format_args!("`{}`: {error}", path.display())))
}
