//! Files that are loaded again when they change: tokens, certificates, revocation lists, secrets.
//!
//! A half-written file that is loaded may grant what nothing in the whole file grants, so a change is
//! loaded only when the file is stable and complete:
//!
//! - Stable: device, inode, size, modification time and change time are the same in two polls that are
//!   at least [`SETTLE`] apart, and while the file is read.
//! - Complete: the file was replaced, which is what a rename does (a new inode), or it closes with what
//!   its [`FileEnd`] asks for, or the operator declares it complete (SIGHUP). A file that closed with its
//!   ending once has to close with it from then on.
//!
//! A change that cannot be loaded leaves the content in use, and every later poll retries.
#![expect(clippy::disallowed_methods, reason = "watched files are read, and polls have a time")]

mod mark;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use mark::Mark;

/// How long a file has to stay the same before it is loaded.
pub const SETTLE: Duration = Duration::from_millis(250);

/// How long a start waits for a file that is being written.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// How a file that is rewritten in place shows that it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileEnd {
    /// A last line `...`, the end of a YAML document.
    DocumentEnd,
    /// A line end after the last line.
    LineEnd,
    /// The format shows it by itself: PEM has an end line for every block.
    Format,
}

/// A file to watch.
#[derive(Clone, Debug)]
pub struct WatchedFile {
    /// Where it is.
    pub path: PathBuf,
    /// How it shows that it is complete.
    pub ending: FileEnd,
}

/// Why files are compared with what is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadCause {
    /// It is time to.
    Poll,
    /// The operator declares that the files are complete.
    Declared,
}

/// What comparing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The files are those that are loaded.
    Unchanged,
    /// They changed and have to stay the same for a while.
    Pending,
    /// They changed and are in use now.
    Loaded,
}

/// A changed file is not in use.
#[derive(Debug, thiserror::Error)]
pub enum WatchError<E> {
    /// It cannot be read.
    #[error("`{}` cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was rewritten in place and does not show that it is complete.
    #[error(
        "`{}` was rewritten in place and may be incomplete: {help}, or send SIGHUP when it is complete",
        .path.display()
    )]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// What to do.
        help: &'static str,
    },
    /// It was replaced, and does not show that it is complete as the one before did.
    #[error(
        "`{}` does not close as the one before did and may be incomplete: {help}, or send SIGHUP when it is complete",
        .path.display()
    )]
    Unclosed {
        /// The file.
        path: PathBuf,
        /// What to do.
        help: &'static str,
    },
    /// Its content cannot be used.
    #[error(transparent)]
    Unusable(E),
}

/// A content that is loaded from files, together, and again when they change.
pub struct WatchedFiles<T, E> {
    files: Vec<WatchedFile>,
    parse: Box<Parse<T, E>>,
    content: ArcSwap<T>,
    versions: Mutex<Versions>,
}

/// Makes a content of what is in the files.
pub type Parse<T, E> = dyn Fn(&[Vec<u8>]) -> Result<T, E> + Send + Sync;

/// The states of the files when they were loaded, and when they were last found changed.
struct Versions {
    loaded: Vec<LoadedMark>,
    last: Option<(Vec<Mark>, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoadedMark {
    mark: Mark,
    /// Whether it closed with its ending.
    closed: bool,
}

impl<T, E> WatchedFiles<T, E> {
    /// Loads the files, as soon as they are stable.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or the content cannot be used.
    pub fn open(
        files: Vec<WatchedFile>,
        parse: impl Fn(&[Vec<u8>]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, WatchError<E>> {
        let began = Instant::now();
        let (contents, loaded) = loop {
            let marks = marks(&files)?;
            let young = marks.iter().filter_map(Mark::age).min().filter(|it| *it < SETTLE);
            if began.elapsed() < START_TIMEOUT
                && let Some(age) = young
            {
                std::thread::sleep(SETTLE.saturating_sub(age));
                continue;
            }
            match read_all(&files, &marks)? {
                Some(contents) => break (contents.clone(), loaded(&files, &marks, &contents)),
                None if began.elapsed() < START_TIMEOUT => {}
                None => {
                    let path = files.first().map(|it| it.path.clone()).unwrap_or_default();
                    let source = io::Error::other("it changes all the time");
                    return Err(WatchError::Unreadable { path, source });
                }
            }
        };
        let content = parse(&contents).map_err(WatchError::Unusable)?;
        Ok(Self {
            files,
            parse: Box::new(parse),
            content: ArcSwap::from_pointee(content),
            versions: Mutex::new(Versions { loaded, last: None }),
        })
    }

    /// Returns the content in use.
    pub fn load(&self) -> Guard<Arc<T>> {
        self.content.load()
    }

    /// Compares the files with what is loaded, and loads what changed, is stable and complete.
    ///
    /// # Errors
    ///
    /// Returns an error if the change cannot be loaded; the content in use stays, and the next call tries
    /// again.
    pub fn reload(&self, cause: ReloadCause) -> Result<Reloaded, WatchError<E>> {
        self.reload_at(cause, Instant::now())
    }

    fn reload_at(&self, cause: ReloadCause, now: Instant) -> Result<Reloaded, WatchError<E>> {
        let mut versions = self.versions.lock();
        let marks = match marks(&self.files) {
            Ok(marks) => marks,
            Err(error) => {
                versions.last = None;
                return Err(error);
            }
        };
        if versions.loaded.iter().map(|it| &it.mark).eq(&marks) {
            versions.last = None;
            return Ok(Reloaded::Unchanged);
        }
        match &versions.last {
            Some((last, since)) if *last == marks => {
                if now.saturating_duration_since(*since) < SETTLE {
                    return Ok(Reloaded::Pending);
                }
            }
            _ => {
                versions.last = Some((marks, now));
                return Ok(Reloaded::Pending);
            }
        }
        let Some(contents) = read_all(&self.files, &marks)? else {
            versions.last = None;
            return Ok(Reloaded::Pending);
        };
        let next = loaded(&self.files, &marks, &contents);
        if cause != ReloadCause::Declared {
            for ((file, before), after) in self.files.iter().zip(&versions.loaded).zip(&next) {
                check_complete(file, *before, *after)?;
            }
        }
        let content = (self.parse)(&contents).map_err(WatchError::Unusable)?;
        self.content.store(Arc::new(content));
        *versions = Versions { loaded: next, last: None };
        Ok(Reloaded::Loaded)
    }
}

impl<T: fmt::Debug, E> fmt::Debug for WatchedFiles<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedFiles").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Checks that a changed file is complete.
fn check_complete<E>(
    file: &WatchedFile,
    before: LoadedMark,
    after: LoadedMark,
) -> Result<(), WatchError<E>> {
    let is_replaced = !before.mark.is_same_file(&after.mark);
    if before == after || after.closed || (is_replaced && !before.closed) {
        return Ok(());
    }
    let path = file.path.clone();
    // One that is renamed has to close, too, once its ending was there: it may be a copy that was cut.
    let by_renaming = !before.closed;
    let help = match (file.ending, by_renaming) {
        (FileEnd::Format, _) => return Ok(()),
        (FileEnd::DocumentEnd, true) => {
            "replace it by renaming a new file, or close it with a last line `...`"
        }
        (FileEnd::LineEnd, true) => "replace it by renaming a new file, or close its last line",
        (FileEnd::DocumentEnd, false) => "close it with a last line `...`",
        (FileEnd::LineEnd, false) => "close its last line",
    };
    Err(match is_replaced {
        true => WatchError::Unclosed { path, help },
        false => WatchError::Incomplete { path, help },
    })
}

impl FileEnd {
    fn closes(self, bytes: &[u8]) -> bool {
        match self {
            Self::DocumentEnd => {
                let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
                let text = text.strip_suffix(b"\r").unwrap_or(text);
                text == b"..." || text.ends_with(b"\n...")
            }
            Self::LineEnd => bytes.ends_with(b"\n"),
            Self::Format => false,
        }
    }
}

fn marks<E>(files: &[WatchedFile]) -> Result<Vec<Mark>, WatchError<E>> {
    let mark = |file: &WatchedFile| Mark::of(&file.path).map_err(|it| unreadable(&file.path, it));
    files.iter().map(mark).collect()
}

/// Reads files that have to be those of the marks from the beginning to the end.
fn read_all<E>(
    files: &[WatchedFile],
    marks: &[Mark],
) -> Result<Option<Vec<Vec<u8>>>, WatchError<E>> {
    let mut contents = Vec::new();
    for (file, mark) in files.iter().zip(marks) {
        match mark.read(&file.path).map_err(|it| unreadable(&file.path, it))? {
            Some(bytes) => contents.push(bytes),
            None => return Ok(None),
        }
    }
    Ok(Some(contents))
}

fn loaded(files: &[WatchedFile], marks: &[Mark], contents: &[Vec<u8>]) -> Vec<LoadedMark> {
    let both = files.iter().zip(marks).zip(contents);
    both.map(|((file, mark), bytes)| LoadedMark { mark: *mark, closed: file.ending.closes(bytes) })
        .collect()
}

fn unreadable<E>(path: &Path, source: io::Error) -> WatchError<E> {
    WatchError::Unreadable { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
