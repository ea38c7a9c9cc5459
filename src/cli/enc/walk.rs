//! Paths, opened component by component.
//!
//! The owner of a component can change where the path leads. So each component is opened on its own, its
//! owner is checked, and links are followed here instead of by the kernel.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::file_error::FileError;

/// How many links a path may have, as in the kernel.
const LINKS: usize = 40;

/// Whether a directory that is missing is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Make,
    Fail,
}

/// Where a path leads.
pub(super) struct Reached {
    /// The directory that holds it.
    pub(super) parent: OwnedFd,
    /// Its name there.
    pub(super) name: OsString,
    /// The thing itself, not opened for reading.
    pub(super) at: OwnedFd,
}

/// Opens every component of a path and has each checked, links included.
pub(super) fn walk(
    path: &Path,
    missing: Missing,
    check: &mut dyn FnMut(&Path, &Stat) -> Result<(), FileError>,
) -> Result<Reached, FileError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut reached = start(path)?;
    let mut so_far = PathBuf::from(root(path));
    let mut pending: VecDeque<OsString> = names(path).collect();
    let mut links = 0;
    while let Some(name) = pending.pop_front() {
        let here = so_far.join(&name);
        let next = match rustix::fs::openat(&reached.at, &name, flags, Mode::empty()) {
            Err(Errno::NOENT) if missing == Missing::Make => {
                make(&reached.at, &name)?;
                rustix::fs::openat(&reached.at, &name, flags, Mode::empty())?
            }
            opened => opened?,
        };
        let stat = rustix::fs::fstat(&next)?;
        check(&here, &stat)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            (reached, so_far) = (Reached { parent: reached.at, name, at: next }, here);
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(FileError::Links(path.to_owned()));
        }
        let target = rustix::fs::readlinkat(&next, c"", Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            (reached, so_far) = (start(&target)?, PathBuf::from(root(&target)));
        }
        for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
            pending.push_front(name);
        }
    }
    Ok(reached)
}

fn start(path: &Path) -> Result<Reached, Errno> {
    let start = if path.is_absolute() { c"/" } else { c"." };
    let open = || rustix::fs::openat(CWD, start, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    Ok(Reached { parent: open()?, name: OsString::from("."), at: open()? })
}

/// Returns what an error says before the names on a path.
fn root(path: &Path) -> &'static str {
    if path.is_absolute() { "/" } else { "" }
}

/// Returns the names on a path, after its root.
fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components()
        .filter(|it| !matches!(it, Component::RootDir | Component::CurDir))
        .map(|it| it.as_os_str().to_owned())
}

/// Makes a directory for us alone; another process of ours may be doing the same.
fn make(at: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    match rustix::fs::mkdirat(at, name, Mode::RWXU) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

/// Returns the user that this process acts for.
pub(super) fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
