//! The files of an open database: whether they are still those that were opened, with all that was written.

#![expect(clippy::disallowed_methods, reason = "time passes for files")]

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use super::beside::{has_content, log_of};
use super::error::StoreError;
use super::generation;
use super::sql::LONGEST_LOG;

/// How long what is written may go without a new generation, while the log is not moved into the file.
const GENERATION: Duration = Duration::from_mins(1);

/// The device and the inode of a file.
type FileIdentity = (u64, u64);

/// The files of an open database.
#[derive(Debug)]
pub(super) struct FilesOnDisk {
    path: PathBuf,
    /// Which file it was when it was opened.
    identity: FileIdentity,
    /// Where the log is: beside the file that a link leads to.
    log: PathBuf,
    seen: Mutex<SeenFiles>,
}

#[derive(Debug)]
struct SeenFiles {
    /// How many bytes the file had.
    bytes: u64,
    /// Which log it was, and how many bytes it had; none on a disk where SQLite keeps no log.
    log: Option<(FileIdentity, u64)>,
    /// When the last generation began.
    begun: Option<GenerationBegin>,
    /// A generation that is on disk, and is not noted beside the file yet.
    unsaved: Option<i64>,
}

/// When a generation began.
#[derive(Clone, Copy, Debug)]
pub(super) struct GenerationBegin {
    at: Instant,
    /// When the log was moved into the file last: until then the file alone is of an earlier generation.
    modified: SystemTime,
    /// Whether no other one began since then.
    is_first: bool,
}

impl FilesOnDisk {
    /// Notes which files a database has that was opened just now.
    pub(super) fn new(path: &Path) -> Result<Self, StoreError> {
        let metadata = std::fs::metadata(path)?;
        let log = log_of(path)?;
        let seen_log = std::fs::metadata(&log).ok().map(|it| (identity(&it), it.len()));
        let seen = SeenFiles { bytes: metadata.len(), log: seen_log, begun: None, unsaved: None };
        let identity = identity(&metadata);
        Ok(Self { path: path.to_owned(), identity, log, seen: Mutex::new(seen) })
    }

    /// Returns whether the file that is open is still the one of its name.
    pub(super) fn has_name(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|it| identity(&it) == self.identity)
    }

    /// Returns whether both files are still those of their names, and nothing was cut off: what is written to
    /// others is gone at the next start. `needed` returns how many bytes the database has.
    pub(super) fn are_in_place(&self, needed: impl FnOnce() -> Option<u64>) -> bool {
        let Ok(file) = std::fs::metadata(&self.path) else { return false };
        let mut seen = self.seen.lock();
        if identity(&file) != self.identity {
            return false;
        }
        // Free pages are given back.
        if file.len() < seen.bytes && needed().is_none_or(|it| file.len() < it) {
            return false;
        }
        seen.bytes = file.len();
        let Some((log, bytes)) = &mut seen.log else { return true };
        let Ok(found) = std::fs::metadata(&self.log) else { return false };
        if identity(&found) != *log || found.len() < (*bytes).min(LONGEST_LOG) {
            return false;
        }
        *bytes = found.len();
        true
    }

    /// Notes that the log was emptied.
    pub(super) fn note_emptied_log(&self) {
        if let Some((_, bytes)) = &mut self.seen.lock().log {
            *bytes = 0;
        }
    }

    /// Returns the begin of a new generation, if what is written now must have one.
    pub(super) fn next_generation(&self) -> Option<GenerationBegin> {
        let at = Instant::now();
        let modified = std::fs::metadata(&self.path).and_then(|it| it.modified()).ok()?;
        let begun = self.seen.lock().begun;
        let is_first = begun.is_none_or(|it| it.modified != modified);
        let is_old = begun.is_none_or(|it| at.saturating_duration_since(it.at) >= GENERATION);
        (is_first || is_old).then_some(GenerationBegin { at, modified, is_first })
    }

    /// Notes that a generation is on disk. The first after the log was moved is saved at once: without it, a file that
    /// loses all of its log looks whole.
    pub(super) fn note_generation(&self, begin: GenerationBegin, number: i64) {
        let mut seen = self.seen.lock();
        seen.begun = Some(begin);
        seen.unsaved = Some(number);
        drop(seen);
        if begin.is_first {
            self.save_generation();
        }
    }

    /// Notes beside the file which generation it has at least.
    pub(super) fn save_generation(&self) {
        let Some(number) = self.seen.lock().unsaved.take() else { return };
        if generation::save(&self.path, self.identity.1, number).is_err() {
            // The next write has another one.
            self.seen.lock().begun = None;
        }
    }

    /// Forgets the generation of a file that was closed, if it has all that was written: a backup in its place
    /// has an earlier one.
    pub(super) fn remove_generation(&self) {
        if self.has_name() && !has_content(&self.log) {
            generation::remove(&self.path);
        }
    }
}

fn identity(metadata: &Metadata) -> FileIdentity {
    (metadata.dev(), metadata.ino())
}
