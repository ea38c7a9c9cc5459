//! Files of Puppet Server that root reads where another user keeps them.
//!
//! What is read here is sent to a daemon. In a directory of its own, that user can put a link to a file
//! that only root may read in the place of any of these files. So root reads a file only if it belongs to
//! the users who could have led there, or if root alone decided where the path leads.

#![expect(clippy::disallowed_methods, reason = "this is where files are read")]

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::file_error::FileError;
use super::walk::{Missing, Reached, effective_user, walk};
use crate::facts::FILE_BYTES;

/// Reads a file, if it is there.
pub(super) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match open(path, effective_user()) {
        Ok(file) => read(file).map(Some).map_err(Into::into),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES {
        let message = format!("it has over {} MiB", FILE_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

fn open(path: &Path, us: u32) -> Result<File, FileError> {
    if us != 0 {
        return Ok(File::open(path)?);
    }
    let mut on_path = PathOwners::default();
    let reached = walk(path, Missing::Fail, &mut |_, stat| {
        on_path.pass(stat);
        Ok(())
    })?;
    let Reached { parent, name, .. } = reached;
    // A pipe must not hold us up.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(&parent, &name, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Err(FileError::NotAFile(path.to_owned())),
        opened => File::from(opened?),
    };
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(FileError::NotAFile(path.to_owned()));
    }
    match on_path.refuses(&stat) {
        Some(owner) => Err(FileError::Led { path: path.to_owned(), owner }),
        None => Ok(file),
    }
}

/// Who can change where a path leads.
#[derive(Debug, Default)]
struct PathOwners {
    /// The owners of directories and links on it, other than root.
    owners: Vec<u32>,
    /// Whether it goes through a link that one of them may have put there.
    is_led: bool,
}

impl PathOwners {
    /// Notes a component.
    fn pass(&mut self, stat: &Stat) {
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        self.is_led |= is_link && !self.owners.is_empty();
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if stat.st_uid != 0 && !is_file {
            self.owners.push(stat.st_uid);
            self.is_led |= is_link;
        }
    }

    /// Returns a user that can change the path, if the file belongs to another one.
    fn refuses(&self, file: &Stat) -> Option<u32> {
        let owner = self.owners.first()?;
        // A second name of a file leads to it as a link does.
        let is_led = self.is_led || file.st_nlink > 1;
        (is_led && !self.owners.contains(&file.st_uid)).then_some(*owner)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn root_reads_what_belongs_to_who_keeps_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("puppet")).unwrap();
        for (name, owner) in [("secret", 0), ("puppet/own", 1234), ("puppet/restored", 0)] {
            std::fs::write(at(name), name).unwrap();
            if effective_user() != 0 || chown(at(name), Some(owner), None).is_err() {
                eprintln!("skipped: needs root");
                return;
            }
        }
        std::fs::create_dir(at("secrets")).unwrap();
        std::fs::rename(at("secret"), at("secrets/secret")).unwrap();
        std::fs::hard_link(at("secrets/secret"), at("puppet/second")).unwrap();
        symlink(at("secrets/secret"), at("puppet/link")).unwrap();
        symlink(at("secrets"), at("puppet/directory")).unwrap();
        symlink("own", at("puppet/alias")).unwrap();
        symlink(at("puppet"), at("moved")).unwrap();
        chown(at("puppet"), Some(1234), None).unwrap();
        let text = |name: &str| {
            let read =
                read_if_there(&at(name)).map(|it| it.map(|it| String::from_utf8(it).unwrap()));
            read.map_err(|error| error.to_string())
        };
        let content = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(text("puppet/own"), content("puppet/own"));
        assert_eq!(text("puppet/alias"), content("puppet/own"));
        assert_eq!(text("moved/own"), content("puppet/own"));
        assert_eq!(text("puppet/restored"), content("puppet/restored"));
        assert_eq!(text("puppet/none"), Ok(None));
        for name in ["puppet/link", "puppet/directory/secret", "moved/link"] {
            let error = text(name).unwrap_err();
            assert!(error.starts_with("user 1234 can change where `"), "{name}: {error}");
        }
        // The file has two names now; where only root decides, that means nothing.
        assert!(text("puppet/second").unwrap_err().starts_with("user 1234 can change where `"));
        assert_eq!(text("secrets/secret"), content("secret"));
        symlink(at("secrets/secret"), at("own-link")).unwrap();
        assert_eq!(text("own-link"), content("secret"));
        assert!(text("puppet").unwrap_err().ends_with("is not a regular file"));
    }
}
