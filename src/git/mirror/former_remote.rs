//! The mirror of the remote that was followed before another one was configured: it answers again as soon as its remote is
//! configured again, so that a mistyped URL costs no more than the time until it is corrected.
#![expect(clippy::disallowed_methods, reason = "the mirror is a directory on disk")]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::repair::{belongs_to, noted_address, remove};
use crate::git::remote::Remote;

/// What the names of such mirrors begin with; a digest of the address of their remote follows.
const PREFIX: &str = "mirror.git.of-";

/// How many bytes of the digest are in a name.
const DIGEST_BYTES: usize = 8;

/// Puts the mirror of a remote in its place, if it is kept, and keeps the one of another remote that stands there. One in
/// which nothing was fetched is not kept, and of those that are, the last one alone.
pub(super) fn exchange(base: &Path, repository: &Path, remote: &Remote) -> io::Result<()> {
    if belongs_to(repository, remote) {
        return Ok(());
    }
    let own = kept_path(base, remote);
    if let Some(address) = noted_address(repository) {
        if is_empty(repository) {
            remove(repository)?;
        } else {
            keep(base, repository, &address, &own)?;
        }
    }
    if !repository.exists() && belongs_to(&own, remote) {
        fs::rename(&own, repository)?;
        tracing::info!("the mirror that was kept for this remote is used again");
    }
    Ok(())
}

/// Keeps a mirror beside its place, and removes those of all remotes but it and the one that is wanted.
fn keep(base: &Path, repository: &Path, address: &str, wanted: &Path) -> io::Result<()> {
    let kept = base.join(name_of(address));
    if kept.exists() {
        remove(&kept)?;
    }
    fs::rename(repository, &kept)?;
    tracing::warn!(
        kept_as = %kept.display(),
        "the mirror is of another remote; it is kept until a third one is followed"
    );
    for entry in fs::read_dir(base)? {
        let entry = entry?;
        let path = entry.path();
        let is_former = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_former && path != kept && path != wanted {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Returns where the mirror of a remote is kept while another one is followed.
pub(super) fn kept_path(base: &Path, remote: &Remote) -> PathBuf {
    base.join(name_of(&remote.address()))
}

fn name_of(address: &str) -> OsString {
    let digest = Sha256::digest(address.as_bytes());
    let digits = digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}"));
    [PREFIX.to_owned()].into_iter().chain(digits).collect::<String>().into()
}

/// Returns whether nothing was ever fetched into a mirror; one that cannot be read may have something.
fn is_empty(repository: &Path) -> bool {
    let Ok(opened) = git2::Repository::open_bare(repository) else { return false };
    opened.references().is_ok_and(|mut it| it.next().is_none())
}
