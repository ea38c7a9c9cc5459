//! What differs between the trees of two commits.

use std::cmp::Ordering;

use git2::{Oid, Tree, TreeEntry as TreeEntryOf};

use super::repository::Repository;
use super::tree::{FilesError, TreeEntry, name_of};
use super::tree_entry::{kind_of, order};
use crate::model::{BudgetItem, CommitId, Meter};

/// How many trees stay open: those of the commit compared last, which is compared with its parent next.
const OPEN: usize = 8;

/// Compares commits, one with the next.
pub struct TreeComparer<'r> {
    repository: &'r Repository,
    /// Trees opened last, the latest at the end. To open a large tree takes longer than to compare it.
    open: Vec<(Oid, Tree<'r>)>,
}

impl std::fmt::Debug for TreeComparer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeComparer").field("repository", self.repository).finish_non_exhaustive()
    }
}

/// Two directories to compare; one of them may be missing.
struct DirectoryPair<'r> {
    path: String,
    depth: u64,
    one: Option<Tree<'r>>,
    other: Option<Tree<'r>>,
}

impl<'r> TreeComparer<'r> {
    /// Compares commits of a repository.
    pub fn new(repository: &'r Repository) -> Self {
        Self { repository, open: Vec::new() }
    }

    /// Returns the files below a directory that two commits do not have alike, as each of them has them. What both
    /// have in common is not read, and where the directory is missing there are no files.
    ///
    /// # Errors
    ///
    /// Returns an error if a tree cannot be read, or there is more than the budget allows.
    pub fn differing_files(
        &mut self,
        [one, other]: [CommitId; 2],
        directory: &str,
        meter: &Meter,
    ) -> Result<Vec<TreeEntry>, FilesError> {
        let what = name_of(other, directory);
        let (one, other) =
            (self.directory(one, directory, meter)?, self.directory(other, directory, meter)?);
        let mut files = Vec::new();
        let mut waiting = vec![DirectoryPair { path: String::new(), depth: 0, one, other }];
        while let Some(pair) = waiting.pop() {
            let ids = [&pair.one, &pair.other].map(|it| it.as_ref().map(Tree::id));
            if ids[0] == ids[1] {
                continue;
            }
            meter.charge(BudgetItem::Depth, pair.depth)?;
            let mut found =
                Differences { pair: &pair, meter, files: &mut files, directories: Vec::new() };
            found.compare()?;
            for (path, ids) in found.directories {
                let [one, other] =
                    ids.map(|id| id.map(|it| self.tree(it, &what, meter)).transpose());
                waiting.push(DirectoryPair {
                    path,
                    depth: pair.depth + 1,
                    one: one?,
                    other: other?,
                });
            }
        }
        Ok(files)
    }

    /// Opens the tree of a directory of a commit; none if the commit has no such directory.
    fn directory(
        &mut self,
        commit: CommitId,
        directory: &str,
        meter: &Meter,
    ) -> Result<Option<Tree<'r>>, FilesError> {
        let what = name_of(commit, directory);
        let mut tree = self.tree(self.repository.find_commit(commit)?.tree_id(), &what, meter)?;
        for name in directory.split('/').filter(|it| !matches!(*it, "" | ".")) {
            let below = tree.get_name(name).filter(|it| kind_of(it).is_none()).map(|it| it.id());
            let Some(below) = below else { return Ok(None) };
            tree = self.tree(below, &what, meter)?;
        }
        Ok(Some(tree))
    }

    fn tree(&mut self, id: Oid, what: &str, meter: &Meter) -> Result<Tree<'r>, FilesError> {
        if let Some(at) = self.open.iter().position(|(it, _)| *it == id) {
            let open = self.open.remove(at);
            let tree = open.1.clone();
            self.open.push(open);
            return Ok(tree);
        }
        let tree = self.repository.open_tree(id, what, meter.budget())?;
        if self.open.len() >= OPEN {
            self.open.remove(0);
        }
        self.open.push((id, tree.clone()));
        Ok(tree)
    }
}

/// The directories that differ, by path.
type Directories = Vec<(String, [Option<Oid>; 2])>;

/// What differs between two directories.
struct Differences<'p, 'r> {
    pair: &'p DirectoryPair<'r>,
    meter: &'p Meter,
    files: &'p mut Vec<TreeEntry>,
    directories: Directories,
}

impl Differences<'_, '_> {
    /// Compares the entries, which are sorted.
    fn compare(&mut self) -> Result<(), FilesError> {
        let pair = self.pair;
        let mut ones = pair.one.iter().flat_map(Tree::iter).peekable();
        let mut others = pair.other.iter().flat_map(Tree::iter).peekable();
        loop {
            let order = match (ones.peek(), others.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) => order(one, other),
            };
            let one = if order.is_le() { ones.next() } else { None };
            let other = if order.is_ge() { others.next() } else { None };
            self.note(one.as_ref(), other.as_ref())?;
        }
    }

    /// Notes what one or both have under a name.
    fn note(
        &mut self,
        one: Option<&TreeEntryOf<'_>>,
        other: Option<&TreeEntryOf<'_>>,
    ) -> Result<(), FilesError> {
        if let (Some(one), Some(other)) = (one, other)
            && one.id() == other.id()
            && one.filemode_raw() == other.filemode_raw()
        {
            return Ok(());
        }
        let mut directory = None;
        for (side, entry) in [one, other].into_iter().enumerate() {
            let Some(entry) = entry else { continue };
            let length = (self.pair.path.len() + entry.name_bytes().len()) as u64;
            self.meter.charge(BudgetItem::Entries, 1)?;
            self.meter.charge(BudgetItem::PathLength, length)?;
            self.meter.charge(BudgetItem::PathBytes, length)?;
            let path = format!("{}{}", self.pair.path, String::from_utf8_lossy(entry.name_bytes()));
            match kind_of(entry) {
                Some(kind) => self.files.push(TreeEntry { path, kind }),
                None => {
                    let (_, ids) = directory.get_or_insert((format!("{path}/"), [None, None]));
                    if let Some(id) = ids.get_mut(side) {
                        *id = Some(entry.id());
                    }
                }
            }
        }
        self.directories.extend(directory);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Budget;

    const LINK: i32 = 0o120_000;
    const FILE: i32 = 0o100_644;
    const PROGRAM: i32 = 0o100_755;

    fn commit(git: &git2::Repository, files: &[(&str, &str, i32)]) -> CommitId {
        let mut update = git2::build::TreeUpdateBuilder::new();
        for (path, content, mode) in files {
            let mode = match *mode {
                LINK => git2::FileMode::Link,
                PROGRAM => git2::FileMode::BlobExecutable,
                _ => git2::FileMode::Blob,
            };
            update.upsert(path, git.blob(content.as_bytes()).unwrap(), mode);
        }
        let empty = git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let tree = git.find_tree(update.create_updated(git, &empty).unwrap()).unwrap();
        let ada = git2::Signature::new("Ada", "a@example.com", &git2::Time::new(0, 0)).unwrap();
        let commit = git.commit(None, &ada, &ada, "x", &tree, &[]).unwrap();
        CommitId::from_bytes(super::super::object_id::bytes(commit))
    }

    #[test]
    fn both_directions_are_compared_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init(directory.path()).unwrap();
        let commits = [
            commit(
                &git,
                &[
                    ("g/a", "1", FILE),
                    ("g/b/x", "1", FILE),
                    ("g/b/y", "1", FILE),
                    ("g/c", "1", FILE),
                ],
            ),
            commit(
                &git,
                &[("g/a", "2", FILE), ("g/b", "1", FILE), ("g/c/x", "1", FILE), ("g/d", "a", LINK)],
            ),
            commit(
                &git,
                &[
                    ("g/c", "1", PROGRAM),
                    ("g/a.b", "1", FILE),
                    ("g/a-b", "1", FILE),
                    ("g/a/b", "1", FILE),
                ],
            ),
            commit(
                &git,
                &[
                    ("g/b/x", "1", FILE),
                    ("g/b.y", "1", FILE),
                    ("g/b/y", "2", FILE),
                    ("h", "1", FILE),
                ],
            ),
            commit(&git, &[("h", "1", FILE)]),
            commit(&git, &[("g", "1", FILE)]),
        ];
        let repository = Repository::discover(directory.path()).unwrap();
        let mut comparer = TreeComparer::new(&repository);
        let meter = || Meter::new(Budget::DEFAULT);
        for pair in commits.iter().flat_map(|one| commits.iter().map(move |other| [*one, *other])) {
            for directory in ["", "g", "g/b"] {
                let changed = |from, to| {
                    repository.changed_files(Some(from), to, directory, &meter()).unwrap()
                };
                let [one, other] = pair;
                let mut expected = changed(one, other);
                expected.extend(changed(other, one));
                let mut found = comparer.differing_files(pair, directory, &meter()).unwrap();
                for files in [&mut expected, &mut found] {
                    files.sort_by_key(|it| format!("{it:?}"));
                }
                assert_eq!(found, expected, "{pair:?} {directory}");
            }
        }
    }

    #[test]
    fn what_exceeds_the_budget_is_not_listed() {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init(directory.path()).unwrap();
        let (one, other) = (commit(&git, &[("a", "1", FILE)]), commit(&git, &[("a", "2", FILE)]));
        let repository = Repository::discover(directory.path()).unwrap();
        let budget = Budget::DEFAULT.with(&["entries=1".parse().unwrap()]);
        let found =
            TreeComparer::new(&repository).differing_files([one, other], "", &Meter::new(budget));
        assert!(matches!(found, Err(FilesError::TooLarge(_))), "{found:?}");
    }
}
