//! The file of the log: rotated by size, reopened when another program has moved it away.
#![expect(clippy::disallowed_methods, reason = "what failed is tried again after some time")]

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::rotation::FileRotation;

/// How often the path is compared with the open file, and how long a file that failed is left alone.
const CHECK: Duration = Duration::from_secs(1);

/// How long a file that cannot be rotated grows before that is tried again.
const ROTATION_RETRY: Duration = Duration::from_mins(1);

/// What every user may do with a file, of its mode.
const OTHERS: u32 = 0o007;

/// That every user may read it.
const READ_BY_OTHERS: u32 = 0o004;

/// The file of the log.
#[derive(Debug)]
pub(super) struct DecisionFile {
    path: PathBuf,
    rotation: FileRotation,
    open: Option<OpenFile>,
    /// When the path is compared with the open file again, or a file that failed is tried again.
    due: Instant,
    /// Whether the last attempt to write failed.
    is_failing: bool,
    /// When a rotation that failed is tried again.
    rotation_retry: Option<Instant>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    bytes: u64,
    /// The device and the number of the file.
    id: (u64, u64),
}

impl DecisionFile {
    /// Opens the file for appending. A symbolic link is followed now and not again: else a rotation would rename the
    /// link, and leave the file without a limit.
    pub(super) fn open(path: PathBuf, rotation: FileRotation) -> io::Result<Self> {
        let open = OpenFile::open(&path)?;
        let path = if path.is_symlink() { fs::canonicalize(path)? } else { path };
        open.warn_if_public(&path);
        let (due, open) = (Instant::now() + CHECK, Some(open));
        Ok(Self { path, rotation, open, due, is_failing: false, rotation_retry: None })
    }

    /// Writes lines; returns how many were written whole.
    pub(super) fn write(&mut self, lines: &[u8]) -> usize {
        if self.is_failing && Instant::now() < self.due {
            return 0;
        }
        let mut written = 0;
        let outcome = self.try_write(lines, &mut written);
        match &outcome {
            Ok(()) if self.is_failing => {
                tracing::info!("the decision log `{}` is written again", self.path.display());
            }
            Err(error) if !self.is_failing => {
                tracing::error!(
                    "the decision log `{}` cannot be written, lines are dropped: {error}",
                    self.path.display()
                );
            }
            _ => {}
        }
        self.is_failing = outcome.is_err();
        if self.is_failing {
            self.due = Instant::now() + CHECK;
        }
        count_lines(lines.get(..written).unwrap_or_default())
    }

    fn try_write(&mut self, lines: &[u8], written: &mut usize) -> io::Result<()> {
        if Instant::now() >= self.due {
            self.due = Instant::now() + CHECK;
            self.follow_path();
        }
        let mut open = self.take_open()?;
        if self.is_rotation_due(&open, lines.len()) {
            // Another program may have moved it, or emptied it.
            self.open = Some(open);
            self.follow_path();
            open = self.take_open()?;
            if self.is_rotation_due(&open, lines.len()) && self.rotate() {
                open = OpenFile::open(&self.path)?;
            }
        }
        open.append(lines, written)?;
        self.open = Some(open);
        Ok(())
    }

    fn take_open(&mut self) -> io::Result<OpenFile> {
        match self.open.take() {
            Some(open) => Ok(open),
            None => OpenFile::open(&self.path),
        }
    }

    /// Closes the file if the path leads elsewhere, as after `logrotate`.
    fn follow_path(&mut self) {
        let now = fs::metadata(&self.path).ok();
        match (self.open.as_mut(), now) {
            (Some(open), Some(now)) if open.id == id(&now) => open.bytes = now.len(),
            _ => self.open = None,
        }
    }

    /// Returns whether the file is rotated before so many bytes are written.
    fn is_rotation_due(&self, open: &OpenFile, bytes: usize) -> bool {
        let is_full =
            open.bytes > 0 && open.bytes.saturating_add(bytes as u64) > self.rotation.max_bytes;
        is_full && self.rotation_retry.is_none_or(|it| Instant::now() >= it)
    }

    /// Moves the full file away; returns whether that worked. A file that cannot be moved is written further.
    fn rotate(&mut self) -> bool {
        let outcome = self.rotation.rotate(&self.path);
        let path = self.path.display();
        match (&outcome, self.rotation_retry) {
            (Ok(()), Some(_)) => tracing::info!("the decision log `{path}` is rotated again"),
            (Err(error), None) => tracing::warn!(
                "the decision log `{path}` cannot be rotated: {error}; it grows beyond --decision-log-max-bytes, and the daemon tries again each minute; let the daemon rename the files in its directory, and mount that directory, not the file alone"
            ),
            (Ok(()), None) | (Err(_), Some(_)) => {}
        }
        self.rotation_retry = outcome.is_err().then(|| Instant::now() + ROTATION_RETRY);
        outcome.is_ok()
    }
}

fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Self> {
        // Opening a pipe would wait for its reader.
        if fs::metadata(path).is_ok_and(|it| !it.is_file()) {
            return Err(io::Error::other("it is not a regular file"));
        }
        let file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let metadata = file.metadata()?;
        let mut open = Self { bytes: metadata.len(), id: id(&metadata), file };
        open.keep_from_others(path, &metadata);
        open.end_last_line()?;
        Ok(open)
    }

    /// Takes a file that belongs to the user of the daemon away from all others but its group, which an operator may
    /// have chosen for the program that ships the log.
    fn keep_from_others(&self, path: &Path, metadata: &Metadata) {
        let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
        if !is_ours || metadata.mode() & OTHERS == 0 {
            return;
        }
        let mode = metadata.mode() & 0o7777;
        // A file system without rights has nothing to take away; the start warns.
        if self.file.set_permissions(Permissions::from_mode(mode & !OTHERS)).is_ok() {
            tracing::info!(
                "other users cannot read the decision log `{}` from now on; before, its mode was {mode:o}",
                path.display()
            );
        }
    }

    /// Warns of a file that every user can read.
    fn warn_if_public(&self, path: &Path) {
        if self.file.metadata().is_ok_and(|it| it.mode() & READ_BY_OTHERS != 0) {
            tracing::warn!(
                "every user can read the decision log `{}`, and the daemon cannot change that: run `chmod o-rwx` as its owner",
                path.display()
            );
        }
    }

    /// Ends a line that a killed process has left without its end.
    fn end_last_line(&mut self) -> io::Result<()> {
        let Some(last) = self.bytes.checked_sub(1) else { return Ok(()) };
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, last)?;
        if byte == *b"\n" { Ok(()) } else { self.append(b"\n", &mut 0) }
    }

    /// Cuts off what was written last. Another program may have emptied the file before, so its length is not what is
    /// remembered of it.
    fn cut_end(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes = self.file.metadata()?.len().saturating_sub(bytes);
        self.file.set_len(self.bytes)
    }

    /// Appends lines, and says up to where whole ones were written; an error leaves no part of a line.
    fn append(&mut self, lines: &[u8], written: &mut usize) -> io::Result<()> {
        let outcome = loop {
            match self.file.write(lines.get(*written..).unwrap_or_default()) {
                Ok(0) if *written < lines.len() => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => *written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
            if *written == lines.len() {
                break Ok(());
            }
        };
        if outcome.is_err() {
            let whole = lines.get(..*written).unwrap_or_default();
            let whole = whole.iter().rposition(|it| *it == b'\n').map_or(0, |at| at + 1);
            if *written > whole {
                // Else the next attempt ends the line.
                self.cut_end((*written - whole) as u64)?;
            }
            *written = whole;
        } else {
            self.bytes += *written as u64;
        }
        outcome
    }
}

/// Returns how many lines end in a text.
pub(super) fn count_lines(text: &[u8]) -> usize {
    text.split_inclusive(|it| *it == b'\n').filter(|it| it.ends_with(b"\n")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROTATION: FileRotation = FileRotation { max_bytes: 10, keep: 2 };

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    #[test]
    fn a_line_without_its_end_is_ended_and_full_files_are_numbered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let numbered = |it: u32| directory.path().join(format!("log.{it}"));
        fs::write(&path, "torn").unwrap();
        let mut file = DecisionFile::open(path.clone(), ROTATION).unwrap();
        assert_eq!((file.write(b"1\n2\n"), read(&path)), (2, "torn\n1\n2\n".to_owned()));
        assert_eq!((file.write(b"34\n"), read(&path)), (1, "34\n".to_owned()));
        assert_eq!(file.write(b"long, and alone\n"), 1);
        assert_eq!(file.write(b"5\n"), 1);
        assert_eq!(read(&path), "5\n");
        assert_eq!(read(&numbered(1)), "long, and alone\n");
        assert_eq!(read(&numbered(2)), "34\n");
        assert!(!numbered(3).exists());
    }

    #[test]
    fn a_file_that_cannot_be_rotated_grows_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let numbered = |it: u32| directory.path().join(format!("log.{it}"));
        fs::create_dir(numbered(1)).unwrap();
        fs::write(numbered(2), "old\n").unwrap();
        let mut file = DecisionFile::open(path.clone(), ROTATION).unwrap();
        let mut expected = String::new();
        for number in 0..20 {
            let line = format!("line {number}\n");
            assert_eq!(file.write(line.as_bytes()), 1);
            expected.push_str(&line);
            // The path is compared meanwhile.
            file.due = Instant::now();
        }
        assert_eq!((read(&path), read(&numbered(2))), (expected.clone(), "old\n".to_owned()));
        assert!(numbered(1).is_dir());
        fs::remove_dir(numbered(1)).unwrap();
        assert_eq!(file.write(b"too soon\n"), 1);
        assert!(!numbered(1).exists());
        file.rotation_retry = Some(Instant::now());
        assert_eq!((file.write(b"next\n"), read(&path)), (1, "next\n".to_owned()));
        assert_eq!(read(&numbered(1)), expected + "too soon\n");
        assert_eq!((read(&numbered(2)), file.rotation_retry), ("old\n".to_owned(), None));
    }

    #[test]
    fn the_file_behind_a_link_is_rotated_and_not_the_link() {
        let directory = tempfile::tempdir().unwrap();
        let disk = directory.path().join("disk");
        fs::create_dir(&disk).unwrap();
        let path = directory.path().join("log");
        std::os::unix::fs::symlink(disk.join("decisions"), &path).unwrap();
        let mut file = DecisionFile::open(path.clone(), ROTATION).unwrap();
        assert_eq!((file.write(b"12345678\n"), file.write(b"9\n")), (1, 1));
        assert!(path.is_symlink());
        assert_eq!(read(&path), "9\n");
        assert_eq!(read(&disk.join("decisions.1")), "12345678\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_part_of_a_line_is_cut_from_a_file_that_another_program_has_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut open = OpenFile::open(&path).unwrap();
        open.append(b"a long line\n", &mut 0).unwrap();
        File::create(&path).unwrap();
        open.append(b"next\npart", &mut 0).unwrap();
        open.cut_end(4).unwrap();
        assert_eq!((read(&path), open.bytes), ("next\n".to_owned(), 5));
    }

    #[test]
    fn other_users_cannot_read_a_file_of_ours() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        for (before, after) in [(0o644, 0o640), (0o666, 0o660), (0o640, 0o640), (0o600, 0o600)] {
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            DecisionFile::open(path.clone(), ROTATION).unwrap();
            assert_eq!(mode(), after, "{before:o}");
        }
        fs::remove_file(&path).unwrap();
        DecisionFile::open(path.clone(), ROTATION).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let is_root = rustix::process::geteuid().as_raw() == 0;
        if !is_root || std::os::unix::fs::chown(&path, Some(1234), None).is_err() {
            eprintln!("skipped: needs root");
            return;
        }
        DecisionFile::open(path.clone(), ROTATION).unwrap();
        assert_eq!(mode(), 0o644, "it belongs to another user");
    }

    #[test]
    fn without_kept_files_a_full_one_begins_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let rotation = FileRotation { keep: 0, ..ROTATION };
        let mut file = DecisionFile::open(path.clone(), rotation).unwrap();
        assert_eq!((file.write(b"12345678\n"), file.write(b"9\n"), file.write(b"0\n")), (1, 1, 1));
        assert_eq!(read(&path), "9\n0\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_left_alone_and_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let path = inner.join("log");
        let mut file = DecisionFile::open(path.clone(), ROTATION).unwrap();
        fs::remove_dir_all(&inner).unwrap();
        file.due = Instant::now();
        assert_eq!(file.write(b"1\n2\n"), 0);
        fs::create_dir(&inner).unwrap();
        assert_eq!((file.write(b"3\n"), path.exists()), (0, false), "too soon");
        file.due = Instant::now();
        assert_eq!((file.write(b"4\n"), read(&path)), (1, "4\n".to_owned()));
    }
}
