//! Files that have been read, and the reading of large ones.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use hashbrown::HashMap;

use super::build::File;
use crate::model::{BlobId, Exceeded, Meter};
use crate::validation::{FileKind, FileReading, SourceFile, read_file_within};

/// Files that have been read, by content and path; a commit reads only what it changes, and
/// snapshots share what they have in common.
#[derive(Debug, Default)]
pub(super) struct Cache {
    readings: Mutex<Shelf>,
    /// Held while a large file is read.
    large: Mutex<()>,
}

/// From how many bytes on files are read one at a time: what a file says takes a hundred times its size
/// until it is made into groups.
const LARGE: u64 = 64 << 10;

#[derive(Debug, Default)]
struct Shelf {
    readings: HashMap<Key, Weak<FileReading>>,
    /// At this size, dead entries are swept.
    clean_at: usize,
}

/// What a reading is known by.
pub(super) type Key = (BlobId, Arc<str>, FileKind);

impl Cache {
    /// Returns what is known of each file.
    pub(super) fn get(&self, files: &[File<'_>]) -> Vec<Option<Arc<FileReading>>> {
        let shelf = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.readings.is_empty() {
            return vec![None; files.len()];
        }
        let known = |file: &File<'_>| shelf.readings.get(&file.key()?).and_then(Weak::upgrade);
        files.iter().map(known).collect()
    }

    /// Reads a file, and makes of it what is kept; large ones one at a time in the whole process.
    pub(super) fn read<T>(
        &self,
        file: &SourceFile,
        kind: FileKind,
        meter: &Arc<Meter>,
        keep: impl FnOnce(FileReading) -> T,
    ) -> Result<T, Exceeded> {
        let _one_at_a_time = (file.size() >= LARGE)
            .then(|| self.large.lock().unwrap_or_else(PoisonError::into_inner));
        read_file_within(file, kind, meter).map(keep)
    }

    pub(super) fn keep<'f>(
        &self,
        fresh: impl Iterator<Item = (&'f File<'f>, &'f Arc<FileReading>)>,
    ) {
        let mut shelf = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.readings.extend(
            fresh.filter_map(|(file, reading)| Some((file.key()?, Arc::downgrade(reading)))),
        );
        if shelf.readings.len() >= shelf.clean_at {
            shelf.readings.retain(|_, reading| reading.strong_count() > 0);
            shelf.clean_at = 2 * shelf.readings.len() + 1024;
        }
    }

    pub(super) fn keep_one(&self, file: &File<'_>, reading: Arc<FileReading>) -> Arc<FileReading> {
        self.keep(std::iter::once((file, &reading)));
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Budget;
    use crate::validation::SourceContent;

    #[test]
    fn large_files_are_read_one_at_a_time() {
        let cache = Cache::default();
        let meter = Arc::new(Meter::new(Budget::DEFAULT));
        for (bytes, alone) in [(100, false), (LARGE, true)] {
            let text = format!("name: A\n# {}\n", "x".repeat(usize::try_from(bytes).unwrap()));
            let content = SourceContent::Bytes(text.into_bytes().into());
            let file = SourceFile { path: "groups/a.yaml".into(), content };
            let is_taken = |_| cache.large.try_lock().is_err();
            let taken = cache.read(&file, FileKind::Groups, &meter, is_taken).unwrap();
            assert_eq!(taken, alone, "{bytes}");
            assert!(cache.large.try_lock().is_ok(), "another may be read");
        }
    }
}
