//! The file of the log: rotated by size, reopened when another program has moved it away.
#![expect(clippy::disallowed_methods, reason = "the log is a file")]

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the path is compared with the open file, and how long a file that failed is left alone.
const CHECK: Duration = Duration::from_secs(1);

/// When the next file is begun, and how many stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileRotation {
    pub(super) max_bytes: u64,
    pub(super) keep: u32,
}

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
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    bytes: u64,
    /// The device and the number of the file.
    id: (u64, u64),
}

impl DecisionFile {
    /// Opens the file for appending.
    pub(super) fn open(path: PathBuf, rotation: FileRotation) -> io::Result<Self> {
        let open = Some(OpenFile::open(&path)?);
        Ok(Self { path, rotation, open, due: Instant::now() + CHECK, is_failing: false })
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
        if let Some(open) = &self.open
            && open.bytes > 0
            && open.bytes.saturating_add(lines.len() as u64) > self.rotation.max_bytes
        {
            self.rotate()?;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => OpenFile::open(&self.path)?,
        };
        open.append(lines, written)?;
        self.open = Some(open);
        Ok(())
    }

    /// Closes the file if the path leads elsewhere, as after `logrotate`.
    fn follow_path(&mut self) {
        let now = fs::metadata(&self.path).ok();
        match (self.open.as_mut(), now) {
            (Some(open), Some(now)) if open.id == id(&now) => open.bytes = now.len(),
            _ => self.open = None,
        }
    }

    /// Gives the file and those before it the next number, and drops the last one.
    fn rotate(&mut self) -> io::Result<()> {
        self.open = None;
        let FileRotation { keep, .. } = self.rotation;
        for number in (1..keep).rev() {
            ignore_missing(fs::rename(self.numbered(number), self.numbered(number + 1)))?;
        }
        let done = match keep {
            0 => fs::remove_file(&self.path),
            _ => fs::rename(&self.path, self.numbered(1)),
        };
        ignore_missing(done)
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

fn ignore_missing(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
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
        open.end_last_line()?;
        Ok(open)
    }

    /// Ends a line that a killed process has left without its end.
    fn end_last_line(&mut self) -> io::Result<()> {
        let Some(last) = self.bytes.checked_sub(1) else { return Ok(()) };
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, last)?;
        if byte == *b"\n" { Ok(()) } else { self.append(b"\n", &mut 0) }
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
                self.file.set_len(self.bytes + whole as u64)?;
            }
            *written = whole;
        }
        self.bytes += *written as u64;
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
