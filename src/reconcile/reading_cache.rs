//! Files that have been read, and the reading of large ones.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::commit_tree::CommitTree;
use super::schema_cache::SchemaCache;
use super::tree_files::{Key, TreeFile};
use crate::model::{Exceeded, Meter};
use crate::validation::{
    FileKind, FileReading, OwnSchemas, SchemaSettings, SourceFile, read_file_within,
};

/// Files that have been read, by content and path; a commit reads only what it changes, and
/// snapshots share what they have in common.
#[derive(Debug, Default)]
pub(super) struct ReadingCache {
    readings: Mutex<Entries>,
    /// Held while a large file is read.
    large: Mutex<()>,
    schemas: SchemaCache,
}

/// From how many bytes on files are read one at a time: what a file says takes a hundred times its size
/// until it is made into groups.
const LARGE: u64 = 64 << 10;

#[derive(Debug, Default)]
struct Entries {
    readings: HashMap<Key, Weak<FileReading>>,
    /// At this size, dead entries are swept.
    clean_at: usize,
}

impl ReadingCache {
    /// Returns the reading of each file that is known.
    pub(super) fn get(&self, files: &[TreeFile<'_>]) -> Vec<Option<Arc<FileReading>>> {
        let entries = self.readings.lock();
        if entries.readings.is_empty() {
            return vec![None; files.len()];
        }
        let known =
            |file: &TreeFile<'_>| entries.readings.get(&file.key()?).and_then(Weak::upgrade);
        files.iter().map(known).collect()
    }

    /// Returns the schemas that settings of a commit name.
    pub(super) fn schemas(
        &self,
        settings: &SchemaSettings,
        tree: &CommitTree<'_>,
    ) -> Arc<OwnSchemas> {
        self.schemas.get(settings, tree)
    }

    /// Reads a file, and makes of it what is kept; large ones one at a time in the whole process.
    pub(super) fn read<T>(
        &self,
        file: &SourceFile,
        kind: FileKind,
        meter: &Arc<Meter>,
        keep: impl FnOnce(FileReading) -> T,
    ) -> Result<T, Exceeded> {
        let _one_at_a_time = (file.size() >= LARGE).then(|| self.large.lock());
        read_file_within(file, kind, meter).map(keep)
    }

    pub(super) fn insert<'f>(
        &self,
        fresh: impl Iterator<Item = (&'f TreeFile<'f>, &'f Arc<FileReading>)>,
    ) {
        let mut entries = self.readings.lock();
        entries.readings.extend(
            fresh.filter_map(|(file, reading)| Some((file.key()?, Arc::downgrade(reading)))),
        );
        if entries.readings.len() >= entries.clean_at {
            entries.readings.retain(|_, reading| reading.strong_count() > 0);
            entries.clean_at = 2 * entries.readings.len() + 1024;
        }
    }

    pub(super) fn insert_one(
        &self,
        file: &TreeFile<'_>,
        reading: Arc<FileReading>,
    ) -> Arc<FileReading> {
        self.insert(std::iter::once((file, &reading)));
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
        let cache = ReadingCache::default();
        let meter = Arc::new(Meter::new(Budget::DEFAULT));
        for (bytes, alone) in [(100, false), (LARGE, true)] {
            let text = format!("name: A\n# {}\n", "x".repeat(usize::try_from(bytes).unwrap()));
            let content = SourceContent::Bytes(text.into_bytes().into());
            let file = SourceFile { path: "groups/a.yaml".into(), content };
            let is_taken = |_| cache.large.try_lock().is_none();
            let taken = cache.read(&file, FileKind::Groups, &meter, is_taken).unwrap();
            assert_eq!(taken, alone, "{bytes}");
            assert!(cache.large.try_lock().is_some(), "another may be read");
        }
    }
}
