//! What a walk remembers of the files that it passed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::blame::ConcernedNodes;
use crate::reconcile::tree_files::Key as FileKey;

/// Of how many files a walk remembers which nodes they can concern.
const FILES: usize = 20_000;

/// About how many bytes that may take: a file may have thousands of rules, and another one with each commit.
const BYTES: usize = 16 << 20;

/// The nodes that the files of a walk can concern.
#[derive(Debug, Default)]
pub(super) struct ConcernMemo {
    files: HashMap<FileKey, Arc<ConcernedNodes>>,
    /// The same by path, as of the file that was read last: most changes leave the rules as they are.
    last: HashMap<Arc<str>, Arc<ConcernedNodes>>,
    /// About how many bytes both take.
    bytes: usize,
}

impl ConcernMemo {
    /// Returns the nodes that a file can concern, if it is remembered.
    pub(super) fn get(&self, key: &FileKey) -> Option<&Arc<ConcernedNodes>> {
        self.files.get(key)
    }

    /// Remembers the nodes that a file can concern. Returns them, and about how many bytes they take beside what was
    /// remembered.
    pub(super) fn keep(
        &mut self,
        path: &Arc<str>,
        key: Option<FileKey>,
        nodes: ConcernedNodes,
    ) -> (Arc<ConcernedNodes>, usize) {
        let known = self.last.get(path).filter(|it| ***it == nodes);
        let (nodes, bytes) = match known {
            Some(known) => (Arc::clone(known), 0),
            None => {
                let bytes = nodes.bytes();
                (Arc::new(nodes), bytes)
            }
        };
        // One that takes much would be all that is remembered.
        if bytes > BYTES / 4 {
            return (nodes, bytes);
        }
        if self.files.len().max(self.last.len()) >= FILES || self.bytes + bytes > BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.last.insert(Arc::clone(path), Arc::clone(&nodes));
        if let Some(key) = key {
            self.files.insert(key, Arc::clone(&nodes));
        }
        (nodes, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: usize) -> ConcernedNodes {
        ConcernedNodes::One("n".repeat(bytes).into())
    }

    #[test]
    fn files_are_remembered_within_a_number_of_bytes() {
        let mut memo = ConcernMemo::default();
        for number in 0..1_000 {
            let (_, bytes) = memo.keep(&format!("{number}").into(), None, one(100_000 + number));
            assert!(bytes >= 100_000 && memo.bytes <= BYTES, "{number}");
        }
        assert!((1..200).contains(&memo.last.len()));
        // The same again takes no more.
        let before = memo.bytes;
        assert_eq!(memo.keep(&"999".into(), None, one(100_999)).1, 0);
        assert_eq!(memo.bytes, before);
        memo.keep(&"large".into(), None, one(BYTES));
        assert!(!memo.last.contains_key("large"));
        assert_eq!(memo.bytes, before);
    }
}
