//! Which files one commit adds, changes and removes.

use std::cmp::Ordering;

use git2::{Tree, TreeEntry as TreeEntryOf};

use super::repository::Repository;
use super::tree::{FilesError, TreeEntry, name_of};
use super::tree_entry::{is_in_place, kind_of, order};
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

/// Two trees to compare; one of them may be missing.
struct TreePair<'r> {
    path: String,
    depth: u64,
    old: Option<Tree<'r>>,
    new: Option<Tree<'r>>,
}

/// What both trees have under a name.
type EntryPair<'t> = [Option<TreeEntryOf<'t>>; 2];

/// The new tree is not as git writes it: see [`is_in_place`].
struct Disorder;

impl TreePair<'_> {
    /// Returns what they do not have alike. The old tree is in order.
    fn differing(&self) -> impl Iterator<Item = Result<EntryPair<'_>, Disorder>> {
        let mut olds = self.old.iter().flat_map(Tree::iter).peekable();
        let mut news = self.new.iter().flat_map(Tree::iter).peekable();
        let mut passed = 0_usize;
        let is_ordered =
            |at, it: &TreeEntryOf<'_>| self.new.as_ref().is_none_or(|new| is_in_place(new, at, it));
        let pairs = std::iter::from_fn(move || {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => order(old, new),
            };
            let old = if order.is_le() { olds.next() } else { None };
            let new = if order.is_ge() { news.next() } else { None };
            if let (None, Some(new)) = (&old, &new)
                && !is_ordered(passed, new)
            {
                return Some(Err(Disorder));
            }
            passed += usize::from(new.is_some());
            Some(Ok([old, new]))
        });
        pairs.filter(|pair| match pair {
            // The plain mode of a submodule that is executable is that of a program.
            Ok([Some(old), Some(new)]) => {
                old.id() != new.id() || old.filemode_raw() != new.filemode_raw()
            }
            _ => true,
        })
    }
}

impl FileChanges {
    fn len(&self) -> usize {
        self.written.len() + self.removed.len()
    }

    /// Notes what differs under a name; returns its path if that is a directory.
    fn note(&mut self, pair: &TreePair<'_>, [old, new]: &EntryPair<'_>) -> Option<String> {
        let either = new.as_ref().or(old.as_ref())?;
        let path = format!("{}{}", pair.path, String::from_utf8_lossy(either.name_bytes()));
        let length = (pair.path.len() + either.name_bytes().len()) as u64;
        if old.is_none() {
            count(&mut self.added_cost, length);
            for (item, peak) in [(BudgetItem::PathLength, length), (BudgetItem::Depth, pair.depth)]
            {
                self.added_cost = self.added_cost.with(item, self.added_cost.get(item).max(peak));
            }
        } else if new.is_none() {
            count(&mut self.removed_cost, length);
        }
        match kind_of(either) {
            None => return Some(path),
            Some(kind) if new.is_some() => self.written.push(TreeEntry { path, kind }),
            Some(_) => self.removed.push(path),
        }
        None
    }
}

/// Counts a file or directory with a path of so many bytes.
fn count(cost: &mut Counts, length: u64) {
    for (item, more) in [(BudgetItem::Entries, 1), (BudgetItem::PathBytes, length)] {
        cost.add(item, more);
    }
}

impl Repository {
    /// Returns what a commit changes below a directory that another commit has, too; `None` if more files
    /// differ than so many, directories in each other than the budget allows, or a directory is not as git writes it.
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
        let mut waiting = vec![TreePair { path, depth: 0, old: Some(old), new: Some(new) }];
        // What is read is limited by the number of files that differ, and of directories around them.
        let mut directories = 0;
        while let Some(pair) = waiting.pop() {
            if pair.depth > deepest {
                return Ok(None);
            }
            for entries in pair.differing() {
                let Ok(entries) = entries else { return Ok(None) };
                if let Some(path) = changes.note(&pair, &entries) {
                    directories += 1;
                    let [old, new] = &entries;
                    waiting.push(TreePair {
                        path: format!("{path}/"),
                        depth: pair.depth + 1,
                        old: old.as_ref().map(open).transpose()?,
                        new: new.as_ref().map(open).transpose()?,
                    });
                }
                if changes.len() + waiting.len() > most || directories > most * (1 + most) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(changes))
    }
}
