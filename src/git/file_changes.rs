//! Which files one commit adds, changes and removes.

use std::cmp::Ordering;

use git2::{Tree, TreeEntry as TreeEntryOf};

use super::repository::Repository;
use super::tree::{FilesError, TreeEntry, kind_of, name_of};
use super::tree_difference::order;
use crate::model::{Budget, BudgetItem, CommitId, Counts};

/// What a commit does to the files below a directory of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// The files that the commit adds or changes, as it has them.
    pub written: Vec<TreeEntry>,
    /// The paths of the files that it removes.
    pub removed: Vec<String>,
    /// What the files and directories that it adds cost of a budget.
    pub added_cost: Counts,
    /// What those cost that it removes.
    pub removed_cost: Counts,
}

/// Two directories to compare; one of them may be missing.
struct Directories<'r> {
    path: String,
    depth: u64,
    old: Option<Tree<'r>>,
    new: Option<Tree<'r>>,
}

impl FileChanges {
    fn len(&self) -> usize {
        self.written.len() + self.removed.len()
    }
}

/// Counts a file or directory with a path of so many bytes.
fn count(cost: &mut Counts, length: u64) {
    for (item, more) in [(BudgetItem::Entries, 1), (BudgetItem::PathBytes, length)] {
        *cost = cost.with(item, cost.get(item) + more);
    }
}

/// Notes how long a path is and how deep it lies.
fn note_peaks(cost: &mut Counts, length: u64, depth: u64) {
    for (item, peak) in [(BudgetItem::PathLength, length), (BudgetItem::Depth, depth)] {
        *cost = cost.with(item, cost.get(item).max(peak));
    }
}

impl Repository {
    /// Returns what a commit changes below a directory that another commit has, too; `None` if more files
    /// differ than so many, or directories in each other than the budget allows.
    ///
    /// # Errors
    ///
    /// Returns an error if a tree cannot be read.
    pub fn changes_between(
        &self,
        before: CommitId,
        after: CommitId,
        directory: &str,
        most: usize,
        budget: &Budget,
    ) -> Result<Option<FileChanges>, FilesError> {
        let what = name_of(after, directory);
        let open = |entry: &TreeEntryOf<'_>| self.open_tree(entry.id(), &what, budget);
        let (old, new) =
            (self.tree_of(before, directory, budget)?, self.tree_of(after, directory, budget)?);
        let (Some(old), Some(new)) = (old, new) else { return Ok(None) };
        let mut changes = FileChanges::default();
        let (path, deepest) = (String::new(), budget.limit(BudgetItem::Depth));
        let mut waiting = vec![Directories { path, depth: 0, old: Some(old), new: Some(new) }];
        // What is read is limited by the number of files that differ, and of directories around them.
        let mut directories = 0;
        while let Some(pair) = waiting.pop() {
            if pair.depth > deepest {
                return Ok(None);
            }
            let mut olds = pair.old.iter().flat_map(Tree::iter).peekable();
            let mut news = pair.new.iter().flat_map(Tree::iter).peekable();
            loop {
                let order = match (olds.peek(), news.peek()) {
                    (None, None) => break,
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (Some(old), Some(new)) => order(old, new),
                };
                let old = if order.is_le() { olds.next() } else { None };
                let new = if order.is_ge() { news.next() } else { None };
                if let (Some(old), Some(new)) = (&old, &new)
                    && old.id() == new.id()
                    && old.filemode() == new.filemode()
                {
                    continue;
                }
                let Some(either) = new.as_ref().or(old.as_ref()) else { break };
                let name = String::from_utf8_lossy(either.name_bytes());
                let path = format!("{}{name}", pair.path);
                let length = (pair.path.len() + either.name_bytes().len()) as u64;
                match (&old, &new) {
                    (None, _) => {
                        count(&mut changes.added_cost, length);
                        note_peaks(&mut changes.added_cost, length, pair.depth);
                    }
                    (_, None) => count(&mut changes.removed_cost, length),
                    (Some(_), Some(_)) => {}
                }
                match kind_of(either) {
                    Some(kind) if new.is_some() => changes.written.push(TreeEntry { path, kind }),
                    Some(_) => changes.removed.push(path),
                    None => {
                        directories += 1;
                        waiting.push(Directories {
                            path: format!("{path}/"),
                            depth: pair.depth + 1,
                            old: old.as_ref().map(open).transpose()?,
                            new: new.as_ref().map(open).transpose()?,
                        });
                    }
                }
                if changes.len() + waiting.len() > most || directories > most * (1 + most) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(changes))
    }
}
