//! What stands in the places of a repository's own files, checked before libgit2 opens them: who opens a pipe may wait
//! for ever, and who reads a file makes room for all of it.
#![expect(clippy::disallowed_methods, reason = "what git keeps are files")]

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode};

use super::commit_links::{SHALLOW, SHALLOW_BYTES};
use super::grafts::{GRAFTS, check_grafts};
use super::regular_file::read_regular;

/// The files of a repository that libgit2 reads as a whole, and how large at most each of them is.
const FILES: [(&str, u64); 12] = [
    ("HEAD", 64 << 10),
    ("commondir", 64 << 10),
    ("ORIG_HEAD", 64 << 10),
    ("config", 16 << 20),
    ("config.worktree", 16 << 20),
    ("info/attributes", 16 << 20),
    ("info/exclude", 16 << 20),
    (GRAFTS, 64 << 20),
    ("logs/HEAD", 4 << 30),
    (SHALLOW, SHALLOW_BYTES),
    ("packed-refs", 1 << 30),
    ("index", 4 << 30),
];

/// How large the file of a ref is at most.
const REF_BYTES: u64 = 64 << 10;

/// Checks the files of the repository in a directory of git, and of the one that it shares refs and objects with.
///
/// # Errors
///
/// Returns what stands in the place of one of them.
fn check_own_files(directory: &Path) -> Result<(), git2::Error> {
    check_all(directory)?;
    // A linked working tree has a directory of its own, which names that of the repository.
    match shared_with(directory) {
        Some(common) => check_all(&common),
        None => Ok(()),
    }
}

/// Checks the files that libgit2 may read to find out what a ref is.
///
/// # Errors
///
/// Returns what stands in the place of one of them.
pub(super) fn check_ref_file(repository: &git2::Repository, name: &str) -> Result<(), git2::Error> {
    let is_below = |it: &str| it != ".." && !it.is_empty();
    if !name.split('/').all(is_below) {
        return Ok(());
    }
    check(&repository.commondir().join(name), REF_BYTES)
}

/// Checks the files of all refs, before they are listed.
///
/// # Errors
///
/// Returns what stands in the place of one of them.
pub(super) fn check_ref_files(repository: &git2::Repository) -> Result<(), git2::Error> {
    let mut waiting = vec![repository.commondir().join("refs")];
    while let Some(directory) = waiting.pop() {
        // What cannot be listed is for libgit2 to say.
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|it| it.is_dir()) {
                waiting.push(entry.path());
            } else {
                check(&entry.path(), REF_BYTES)?;
            }
        }
    }
    Ok(())
}

/// Returns what may not be read of the repository at a path, if that is why none is found there.
pub(super) fn denied_at(path: &Path) -> Option<PathBuf> {
    let parts = [".git", ".git/HEAD", ".git/refs", ".git/objects", "HEAD", "refs", "objects"];
    let places = std::iter::once(path.to_owned()).chain(parts.iter().map(|it| path.join(it)));
    places.into_iter().find(|it| is_denied(it))
}

/// Returns whether nothing is at a path.
pub(super) fn is_missing(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn is_denied(path: &Path) -> bool {
    let is_of_permission = |error: &std::io::Error| error.kind() == ErrorKind::PermissionDenied;
    match std::fs::metadata(path) {
        Err(error) => is_of_permission(&error),
        Ok(found) if found.is_dir() => {
            std::fs::read_dir(path).is_err_and(|it| is_of_permission(&it))
        }
        Ok(found) if found.is_file() => File::open(path).is_err_and(|it| is_of_permission(&it)),
        Ok(_) => false,
    }
}

/// Opens the repository in a directory, if nothing of it can keep who opens it waiting.
///
/// # Errors
///
/// Returns what stands in the place of one of its files, or what libgit2 says.
pub(super) fn open_checked(path: &Path) -> Result<git2::Repository, git2::Error> {
    check_files_at(path)?;
    git2::Repository::open(path)
}

/// Checks the files of the repository that libgit2 finds for a path, if it finds one.
///
/// # Errors
///
/// Returns what stands in the place of one of them.
pub(super) fn check_files_at(path: &Path) -> Result<(), git2::Error> {
    // To find a repository, libgit2 reads some of them.
    let below = path.join(".git");
    check_all(if below.is_dir() { &below } else { path })?;
    let none: [&std::ffi::OsStr; 0] = [];
    // Where there is none, opening says so.
    git2::Repository::discover_path(path, none).map_or(Ok(()), |it| check_own_files(&it))
}

fn check_all(directory: &Path) -> Result<(), git2::Error> {
    FILES.iter().try_for_each(|(name, most)| check(&directory.join(name), *most))?;
    check_grafts(directory)?;
    // libgit2 takes a repository whose settings it may not read for one without any, and a bare one for one that is not.
    let settings = directory.join("config");
    if !is_denied(&settings) {
        return check_ref_storage(&settings);
    }
    let message = format!("`{}` cannot be read: permission denied", settings.display());
    Err(git2::Error::new(ErrorCode::GenericError, ErrorClass::Os, message))
}

/// Refuses a repository whose references libgit2 does not read: it would find none, or name a setting of git alone.
fn check_ref_storage(settings: &Path) -> Result<(), git2::Error> {
    // What cannot be parsed is for libgit2 to say.
    let storage =
        git2::Config::open(settings).and_then(|it| it.get_string("extensions.refstorage"));
    let Ok(storage) = storage else { return Ok(()) };
    if storage.eq_ignore_ascii_case("files") {
        return Ok(());
    }
    let message = format!(
        "it stores its references as {storage}, which is not supported: convert it with `git refs migrate --ref-format=files`"
    );
    Err(git2::Error::new(ErrorCode::GenericError, ErrorClass::Reference, message))
}

fn shared_with(directory: &Path) -> Option<PathBuf> {
    let text = read_regular(&directory.join("commondir")).ok()?;
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(text.trim_ascii());
    Some(directory.join(name))
}

/// Refuses what is neither a file nor a directory, which libgit2 does not open, and what is too large.
fn check(path: &Path, most: u64) -> Result<(), git2::Error> {
    // What is not there, and what may not be read, is for libgit2 to say.
    let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
    match what_is_wrong(&found, most) {
        None => Ok(()),
        Some(wrong) => {
            let message = format!("`{}` {wrong}", path.display());
            Err(git2::Error::new(ErrorCode::GenericError, ErrorClass::Filesystem, message))
        }
    }
}

fn what_is_wrong(found: &Metadata, most: u64) -> Option<String> {
    if !found.is_file() && !found.is_dir() {
        return Some("is not a regular file: remove it".to_owned());
    }
    let size = found.len();
    (found.is_file() && size > most)
        .then(|| format!("has {size} bytes, {most} are allowed: put what git wrote in its place"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Repository;

    #[test]
    fn what_is_not_a_file_is_an_error_at_once() {
        for (name, _) in FILES.into_iter().chain([("refs/heads/main", 0)]) {
            for kind in ["pipe", "socket", "device", "large"] {
                let directory = tempfile::tempdir().unwrap();
                let git = git2::Repository::init(directory.path()).unwrap();
                git.set_head("refs/heads/main").unwrap();
                let path = git.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::remove_file(&path).ok();
                match kind {
                    "pipe" => rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap(),
                    "socket" => drop(std::os::unix::net::UnixListener::bind(&path).unwrap()),
                    "device" => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
                    _ => File::create(&path).unwrap().set_len(10 << 30).unwrap(),
                }
                let opened = Repository::discover(directory.path()).map_err(|it| it.to_string());
                let error = match opened {
                    Err(error) => error,
                    Ok(opened) => opened.branch_head(None).unwrap_err().to_string(),
                };
                // Without `HEAD` it is not a repository.
                let is_named = error.contains(name) || error.contains("is not a git repository");
                assert!(is_named, "{kind} at {name}: {error}");
            }
        }
    }
}
