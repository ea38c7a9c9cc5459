//! Numbering the files of the log: a full one becomes the first, and the last one is replaced.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The number of a full file until those before it have their next one.
const ASIDE: u32 = 0;

/// When the next file is begun, and how many stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileRotation {
    pub(super) max_bytes: u64,
    pub(super) keep: u32,
}

impl FileRotation {
    /// Gives a full file the first number. After an error the file has its name as before.
    pub(super) fn rotate(self, path: &Path) -> io::Result<()> {
        if self.keep == 0 {
            ignore_missing(fs::remove_file(path)).map_err(failed("delete", path))?;
        } else {
            let aside = numbered(path, ASIDE);
            if is_taken(&aside)? {
                // A process was killed within a rotation.
                self.shift(path)?;
            }
            // Only this shows whether the file can be renamed: until then no other file is.
            match fs::rename(path, &aside) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                moved => moved.map_err(failed("rename", path))?,
            }
            if let Err(error) = self.shift(path) {
                // Where that fails too, the file is found at the next rotation.
                fs::rename(&aside, path).ok();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives each file before the first free number its next one; the last file is replaced where no number is
    /// free. What fails halfway leaves a free number, so that no attempt after it replaces a file.
    fn shift(self, path: &Path) -> io::Result<()> {
        let mut free = 1;
        while is_taken(&numbered(path, free))? && free < self.keep {
            free += 1;
        }
        for number in (ASIDE..free).rev() {
            let from = numbered(path, number);
            ignore_missing(fs::rename(&from, numbered(path, number + 1)))
                .map_err(failed("rename", &from))?;
        }
        Ok(())
    }
}

/// Returns whether a file has a name; a directory is an error, since a file cannot replace it.
fn is_taken(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            let reason = format!("`{}` is a directory: move it away", path.display());
            Err(io::Error::new(ErrorKind::IsADirectory, reason))
        }
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("find", path)(error)),
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(format!(".{number}"));
    name.into()
}

/// Says what failed.
fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let path = path.display().to_string();
    move |error| io::Error::new(error.kind(), format!("cannot {action} `{path}`: {error}"))
}

fn ignore_missing(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the log is a file")]
mod tests {
    use super::*;

    struct Files(tempfile::TempDir);

    impl Files {
        /// Makes files that have their own names as content.
        fn new(names: &[&str]) -> Self {
            let files = Self(tempfile::tempdir().unwrap());
            for name in names {
                fs::write(files.0.path().join(name), name).unwrap();
            }
            files
        }

        fn rotate(&self, keep: u32) -> io::Result<()> {
            FileRotation { max_bytes: 0, keep }.rotate(&self.0.path().join("log"))
        }

        /// Returns the files and what they contain; a directory contains nothing.
        fn found(&self) -> Vec<(String, String)> {
            let entries = fs::read_dir(self.0.path()).unwrap().map(|it| it.unwrap().path());
            let mut found: Vec<_> = entries
                .map(|it| {
                    let name = it.file_name().unwrap().to_str().unwrap().to_owned();
                    (name, fs::read_to_string(it).unwrap_or_default())
                })
                .collect();
            found.sort();
            found
        }

        #[track_caller]
        fn assert(&self, expected: &[(&str, &str)]) {
            let found = self.found();
            let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
            assert_eq!(found, expected);
        }
    }

    const ALL: [&str; 4] = ["log", "log.1", "log.2", "log.3"];

    #[test]
    fn files_get_the_next_number_up_to_the_first_that_is_free() {
        let files = Files::new(&ALL);
        files.rotate(3).unwrap();
        files.assert(&[("log.1", "log"), ("log.2", "log.1"), ("log.3", "log.2")]);
        let files = Files::new(&["log", "log.1", "log.3"]);
        files.rotate(3).unwrap();
        files.assert(&[("log.1", "log"), ("log.2", "log.1"), ("log.3", "log.3")]);
        files.rotate(3).unwrap();
        files.assert(&[("log.1", "log"), ("log.2", "log.1"), ("log.3", "log.3")]);
    }

    #[test]
    fn a_file_that_cannot_be_renamed_leaves_the_others_as_they_are() {
        let files = Files::new(&[]);
        // A directory that has content cannot be renamed to a file, nor be replaced by one.
        fs::create_dir_all(files.0.path().join("log.0/inner")).unwrap();
        for name in ALL {
            fs::write(files.0.path().join(name), name).unwrap();
        }
        let before = files.found();
        for _ in 0..3 {
            let error = files.rotate(3).unwrap_err();
            assert!(error.to_string().contains("log.0` is a directory: move it away"), "{error}");
            assert_eq!(files.found(), before);
        }
    }

    #[test]
    fn a_directory_in_the_way_leaves_the_others_as_they_are() {
        for (keep, at) in [(1, 1), (3, 1), (3, 2), (3, 3)] {
            let files = Files::new(&[]);
            for name in ALL {
                fs::write(files.0.path().join(name), name).unwrap();
            }
            let way = files.0.path().join(format!("log.{at}"));
            fs::remove_file(&way).unwrap();
            fs::create_dir(&way).unwrap();
            let before = files.found();
            assert_eq!(files.rotate(keep).unwrap_err().kind(), ErrorKind::IsADirectory);
            assert_eq!(files.found(), before, "{keep} {at}");
        }
    }

    #[test]
    fn a_rotation_that_was_interrupted_is_finished_by_the_next() {
        let files = Files::new(&["log", "log.0", "log.1"]);
        files.rotate(3).unwrap();
        files.assert(&[("log.1", "log"), ("log.2", "log.0"), ("log.3", "log.1")]);
        // Another program has moved the file away.
        files.rotate(3).unwrap();
        files.assert(&[("log.1", "log"), ("log.2", "log.0"), ("log.3", "log.1")]);
    }
}
