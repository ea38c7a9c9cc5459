//! Which groups the files of a commit have documents of.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::diagnostic::Severity;
use crate::history::Digested;
use crate::model::GroupId;
use crate::validation::FileReading;

/// The documents of a file of groups.
pub(super) struct FileDocuments {
    pub(super) path: Arc<str>,
    pub(super) documents: Vec<Digested>,
    /// Whether it has no others, which cannot be read.
    pub(super) is_whole: bool,
}

impl FileDocuments {
    pub(super) fn of(file: &FileReading) -> Self {
        let documents: Vec<Digested> = file.groups().iter().map(Digested::of).collect();
        // A link gives a warning, and a file that cannot be read an error, which the budget of findings may leave out.
        let is_read = file.is_of_groups() || !file.diagnostics.is_empty();
        let is_whole = is_read
            && documents.iter().all(|it| it.group().is_some())
            && file.diagnostics.iter().all(|it| it.severity != Severity::Error);
        Self { path: Arc::clone(&file.path), documents, is_whole }
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.documents.iter().filter_map(Digested::group)
    }
}

/// The documents that all files of a commit have of each group: in commits that are not valid one may have several.
pub(super) struct DocumentCounts {
    of_groups: HashMap<GroupId, usize>,
    /// The files that cannot be read as a whole.
    unread: HashSet<Arc<str>>,
}

impl DocumentCounts {
    pub(super) fn of(files: &[FileDocuments]) -> Self {
        let mut all = Self { of_groups: HashMap::new(), unread: HashSet::new() };
        all.replace(&[], files);
        all
    }

    /// Takes files in, in the place of others.
    pub(super) fn replace(&mut self, old: &[FileDocuments], new: &[FileDocuments]) {
        for file in old {
            self.unread.remove(&file.path);
            for group in file.groups() {
                if let Some(count) = self.of_groups.get_mut(&group) {
                    *count = count.saturating_sub(1);
                }
            }
        }
        for file in new {
            if !file.is_whole {
                self.unread.insert(Arc::clone(&file.path));
            }
            for group in file.groups() {
                *self.of_groups.entry(group).or_default() += 1;
            }
        }
    }

    /// Returns whether no file has a group, as far as is known: one that cannot be read may have any.
    pub(super) fn lacks(&self, group: GroupId) -> bool {
        self.unread.is_empty() && self.of_groups.get(&group).is_none_or(|it| *it == 0)
    }
}
