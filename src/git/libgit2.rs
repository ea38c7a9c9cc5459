//! Settings of libgit2, made once for the whole process.
#![expect(
    unsafe_code,
    reason = "settings of libgit2 are global, so git2 marks their setters unsafe"
)]

use std::sync::OnceLock;

use git2::{ConfigLevel, ObjectType};

use super::transport;

/// How many packs are kept open at once, by all that read repositories.
const OPEN_PACKS: usize = 64;

/// The largest tree that is cached, in bytes: that of a directory with some twenty thousand files. A write reads the
/// trees of the commit before and of its own a dozen times, and libgit2 caches none of more than 4 KiB by itself.
const CACHED_TREE: usize = 1 << 20;

/// How many bytes of objects are cached, by all that read repositories: it lets go of several trees at once, so there is
/// room for many. A parsed tree takes about as much memory again.
const CACHED: isize = 16 << 20;

/// Prepares libgit2; everything in `git` that opens a repository calls this first.
///
/// # Errors
///
/// Returns an error if libgit2 does not take the settings; without them it must not be used, since
/// its own transports know no deadline.
pub(super) fn prepare() -> Result<(), git2::Error> {
    static PREPARED: OnceLock<Result<(), String>> = OnceLock::new();
    let prepared = PREPARED.get_or_init(|| set_up().map_err(|error| error.message().to_owned()));
    prepared.as_ref().map_err(|message| git2::Error::from_str(message)).copied()
}

fn set_up() -> Result<(), git2::Error> {
    // SAFETY: these write to globals of libgit2 without a lock. The only caller is the initialiser
    // of a `OnceLock` that every use of libgit2 in this crate waits for, so nothing reads them yet.
    unsafe {
        // A mirror on a volume that belongs to another user must open (`fsGroup` in Kubernetes).
        // The check guards against hooks and commands in a foreign configuration; we run none.
        git2::opts::set_verify_owner_validation(false)?;
        // Settings of the user who starts the daemon must not change what is fetched (`url.<base>.insteadOf`).
        for level in [ConfigLevel::System, ConfigLevel::XDG, ConfigLevel::Global] {
            git2::opts::set_search_path(level, "")?;
        }
        // Every fetch that brings something leaves a pack, and each would be kept open.
        git2::opts::set_mwindow_file_limit(OPEN_PACKS)?;
        git2::opts::set_cache_object_limit(ObjectType::Tree, CACHED_TREE)?;
        git2::opts::set_cache_max_size(CACHED)?;
        git2::transport::register("http", transport::http)?;
        git2::transport::register("https", transport::http)?;
        git2::transport::register("git", transport::daemon)?;
        git2::transport::register("ssh", transport::ssh)?;
        git2::transport::register(transport::LOCAL_PUSH, transport::here)?;
    }
    Ok(())
}
