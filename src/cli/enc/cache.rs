//! The directory of last good answers: files that only we can have written.
//!
//! What is kept here may one day classify a node, and root may be the one that keeps it. So every
//! component of the path is opened on its own, and files are made and renamed within a directory
//! that is open. Root passes only through directories that root alone can change: in any other its
//! owner could put a link in the place of whatever root is about to write.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::file_error::FileError;
use super::walk::{Missing, effective_user, walk};

/// How many bytes of a file are read.
const LIMIT: u64 = 64 << 20;

/// A directory of the cache, of which only the path is known yet.
#[derive(Clone, Debug)]
pub(super) struct Cache(PathBuf);

impl Cache {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads a file.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        let directory = self.open(Missing::Fail)?;
        // A pipe must not hold us up.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&directory, name, flags, Mode::empty()) {
            Err(Errno::LOOP) => return Err(FileError::NotAFile(self.0.join(name))),
            opened => File::from(opened?),
        };
        let stat = rustix::fs::fstat(&file)?;
        let path = self.0.join(name);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(FileError::NotAFile(path));
        }
        check_own(&path, &stat)?;
        let mut bytes = Vec::new();
        file.take(LIMIT).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Puts a file in the place of another, whole or not at all; only its owner may read it, since
    /// parameters can be secrets.
    pub(super) fn replace(&self, name: &str, text: &str) -> Result<(), FileError> {
        let directory = self.open(Missing::Make)?;
        let fresh = format!(".{name}.{}.{:016x}", std::process::id(), fastrand::u64(..));
        Ok(replace_by(&directory, &fresh, name, text)?)
    }

    /// Opens the directory, component by component.
    fn open(&self, missing: Missing) -> Result<OwnedFd, FileError> {
        let at = walk(&self.0, missing, &mut check_passable)?.at;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&at, c".", flags, Mode::empty())?;
        check_own(&self.0, &rustix::fs::fstat(&directory)?)?;
        Ok(directory)
    }
}

/// Writes a file under a name that is not taken, then renames it within its directory.
fn replace_by(directory: impl AsFd, fresh: &str, name: &str, text: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&directory, fresh, flags, Mode::RUSR | Mode::WUSR)?;
    let renamed = File::from(file)
        .write_all(text.as_bytes())
        .and_then(|()| Ok(rustix::fs::renameat(&directory, fresh, &directory, name)?));
    if renamed.is_err() {
        rustix::fs::unlinkat(&directory, fresh, AtFlags::empty()).ok();
    }
    renamed
}

/// Refuses what other users can write, and for root what they own.
fn check_passable(path: &Path, stat: &Stat) -> Result<(), FileError> {
    check_passable_by(effective_user(), path, stat)
}

fn check_passable_by(us: u32, path: &Path, stat: &Stat) -> Result<(), FileError> {
    if us != 0 {
        // What others do to us they could do to themselves.
        return Ok(());
    }
    if stat.st_uid != 0 {
        return Err(FileError::Foreign { path: path.to_owned(), owner: stat.st_uid });
    }
    if is_writable_by_others(stat) {
        return Err(FileError::Writable { path: path.to_owned(), mode: stat.st_mode & 0o7777 });
    }
    Ok(())
}

/// Returns whether others than the owner can change what is in a directory of root's.
fn is_writable_by_others(stat: &Stat) -> bool {
    let mode = Mode::from_raw_mode(stat.st_mode);
    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    let by_group = mode.contains(Mode::WGRP) && stat.st_gid != 0;
    !is_link && !mode.contains(Mode::SVTX) && (by_group || mode.contains(Mode::WOTH))
}

/// Refuses what is not ours alone: what others put there could classify a node.
fn check_own(path: &Path, stat: &Stat) -> Result<(), FileError> {
    let us = effective_user();
    if stat.st_uid != us && stat.st_uid != 0 {
        return Err(FileError::Planted { path: path.to_owned(), owner: stat.st_uid, us });
    }
    if Mode::from_raw_mode(stat.st_mode).contains(Mode::WOTH) {
        return Err(FileError::Writable { path: path.to_owned(), mode: stat.st_mode & 0o7777 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn file_of(cache: &Cache, name: &str) -> String {
        String::from_utf8(cache.read(name).unwrap()).unwrap()
    }

    #[test]
    fn a_file_takes_the_place_of_a_link_and_never_follows_it() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        let cache = Cache::new(&directory.path().join("new/answers"));
        cache.replace("a", "1").unwrap();
        std::fs::remove_file(cache.path().join("a")).unwrap();
        symlink(&victim, cache.path().join("a")).unwrap();
        assert!(matches!(cache.read("a"), Err(FileError::NotAFile(_))));
        cache.replace("a", "2").unwrap();
        assert_eq!(file_of(&cache, "a"), "2");
        // The name of the new file cannot be guessed; if it could, nothing would be written through it.
        let open = cache.open(Missing::Fail).unwrap();
        symlink(&victim, cache.path().join("fresh")).unwrap();
        let error = replace_by(&open, "fresh", "a", "3").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(file_of(&cache, "a"), "2");
    }

    #[test]
    fn a_directory_stays_the_one_that_was_opened() {
        let directory = tempfile::tempdir().unwrap();
        let (cache, victim) =
            (Cache::new(&directory.path().join("answers")), directory.path().join("victim"));
        cache.replace("a", "1").unwrap();
        std::fs::create_dir(&victim).unwrap();
        let open = cache.open(Missing::Fail).unwrap();
        std::fs::rename(cache.path(), directory.path().join("moved")).unwrap();
        symlink(&victim, cache.path()).unwrap();
        replace_by(&open, "fresh", "a", "2").unwrap();
        assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
        assert_eq!(std::fs::read_to_string(directory.path().join("moved/a")).unwrap(), "2");
    }

    #[test]
    fn a_pipe_delays_no_reader() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(&directory.path().join("answers"));
        cache.replace("a", "1").unwrap();
        let open = cache.open(Missing::Fail).unwrap();
        rustix::fs::mknodat(&open, "pipe", FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(cache.read("pipe"), Err(FileError::NotAFile(_))));
        assert!(cache.read("gone").unwrap_err().is_absent());
    }

    #[test]
    fn a_directory_that_every_user_can_write_is_not_a_cache() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(&directory.path().join("answers"));
        cache.replace("a", "1").unwrap();
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&cache.path().join("a"), 0o606);
        assert!(matches!(cache.read("a"), Err(FileError::Writable { .. })));
        set(&cache.path().join("a"), 0o600);
        set(cache.path(), 0o777);
        assert!(matches!(cache.read("a"), Err(FileError::Writable { .. })));
        assert!(matches!(cache.replace("a", "2"), Err(FileError::Writable { .. })));
    }

    #[test]
    fn links_on_the_way_are_followed_a_number_of_times() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        symlink("data", directory.path().join("relative")).unwrap();
        symlink(directory.path().join("relative"), directory.path().join("absolute")).unwrap();
        let cache = Cache::new(&directory.path().join("absolute/../relative/answers"));
        cache.replace("a", "1").unwrap();
        let kept = std::fs::read_to_string(directory.path().join("data/answers/a")).unwrap();
        assert_eq!(kept, "1");
        symlink("round", directory.path().join("round")).unwrap();
        let round = Cache::new(&directory.path().join("round/answers"));
        assert!(matches!(round.replace("a", "1"), Err(FileError::Links(_))));
    }

    #[test]
    fn root_passes_through_its_own_directories_only() {
        let directory = tempfile::tempdir().unwrap();
        let (own, others) = (directory.path().join("own"), directory.path().join("others"));
        std::fs::create_dir(&own).unwrap();
        std::fs::create_dir(&others).unwrap();
        if effective_user() != 0 || chown(&others, Some(1234), Some(1234)).is_err() {
            eprintln!("skipped: needs root");
            return;
        }
        symlink(&own, others.join("clade")).unwrap();
        symlink(&own, others.join("answers")).unwrap();
        for path in [others.join("clade/answers"), others.join("answers"), others.join("new")] {
            let error = Cache::new(&path).replace("a", "1").unwrap_err();
            assert!(matches!(error, FileError::Foreign { owner: 1234, .. }), "{error}");
            assert!(error.to_string().starts_with("`/"), "{error}");
            assert!(Cache::new(&path).read("a").is_err());
        }
        assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0);
        let names = std::fs::read_dir(&others).unwrap().count();
        assert_eq!(names, 2, "root made nothing there");
    }
}
