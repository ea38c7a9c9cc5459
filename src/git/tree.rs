//! The files of a tree, without checking anything out.

use git2::{Oid, Tree, TreeEntry as TreeEntryOf};

use super::object_guard::header;
use super::repository::{ReadError, Repository};
use super::tree_entry::{EntryKind, is_in_place, kind_of};
use crate::model::{Budget, BudgetItem, CommitId, Exceeded, Meter};

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path from the directory that was asked for, with `/`; what is not UTF-8 is replaced.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
}

/// The files of a tree cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// An object cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The commit has no such directory.
    #[error("the commit has no directory `{0}`")]
    NoDirectory(String),
    /// There is more than the budget allows.
    #[error("the commit is too large: {0}")]
    TooLarge(#[from] Exceeded),
    /// An entry stands in its directory twice, not in its place, or under a name that no file can have. Git writes no
    /// such tree.
    #[error(
        "the tree is not as git writes it: `{}` stands there twice, or not in its place",
        .0.escape_debug()
    )]
    Misplaced(String),
}

impl Repository {
    /// Returns every file below a directory of a commit's tree, by path; links are not followed,
    /// and what lies elsewhere in the tree is not read.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory does not exist, a tree cannot be read, or there is more than
    /// the budget allows.
    pub fn files(
        &self,
        commit: CommitId,
        directory: &str,
        meter: &Meter,
    ) -> Result<Vec<TreeEntry>, FilesError> {
        let Some(tree) = self.tree_of(commit, directory, meter.budget())? else {
            return Err(FilesError::NoDirectory(directory.to_owned()));
        };
        self.walk(&tree, None, &name_of(commit, directory), meter)
    }

    /// Returns the files below a directory of a commit's tree that another commit, if there is one,
    /// does not have so; those that are gone are not among them, and where the directory is missing
    /// there are none. What both have in common is not read.
    ///
    /// # Errors
    ///
    /// As [`Repository::files`].
    pub fn changed_files(
        &self,
        before: Option<CommitId>,
        commit: CommitId,
        directory: &str,
        meter: &Meter,
    ) -> Result<Vec<TreeEntry>, FilesError> {
        let tree = self.tree_of(commit, directory, meter.budget())?;
        let Some(tree) = tree else { return Ok(Vec::new()) };
        let before = before.map(|before| self.tree_of(before, directory, meter.budget()));
        let old = before.and_then(Result::ok).flatten();
        self.walk(&tree, old.as_ref(), &name_of(commit, directory), meter)
    }

    /// Returns whether a commit has a directory.
    ///
    /// # Errors
    ///
    /// Returns an error if a tree cannot be read.
    pub fn has_directory(
        &self,
        commit: CommitId,
        directory: &str,
        budget: &Budget,
    ) -> Result<bool, FilesError> {
        Ok(self.tree_of(commit, directory, budget)?.is_some())
    }

    /// Returns what a commit has at a path from its top, if that is not a directory; nothing below a link.
    ///
    /// # Errors
    ///
    /// Returns an error if a tree cannot be read.
    pub fn entry(&self, commit: CommitId, path: &str) -> Result<Option<EntryKind>, FilesError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let tree = self.tree_of(commit, directory, &Budget::DEFAULT)?;
        Ok(tree.and_then(|tree| kind_of(&named(&tree, name)?)))
    }

    /// Returns the tree of a directory of a commit; none if the commit has no such directory.
    pub(super) fn tree_of(
        &self,
        commit: CommitId,
        directory: &str,
        budget: &Budget,
    ) -> Result<Option<Tree<'_>>, FilesError> {
        let what = name_of(commit, directory);
        let mut tree = self.open_tree(self.find_commit(commit)?.tree_id(), &what, budget)?;
        for name in directory.split('/').filter(|it| !matches!(*it, "" | ".")) {
            let below = named(&tree, name).filter(|it| kind_of(it).is_none()).map(|it| it.id());
            let Some(below) = below else { return Ok(None) };
            tree = self.open_tree(below, &what, budget)?;
        }
        Ok(Some(tree))
    }

    /// Opens a tree unless the object alone is larger than all paths may be.
    pub(super) fn open_tree(
        &self,
        id: Oid,
        what: &str,
        budget: &Budget,
    ) -> Result<Tree<'_>, FilesError> {
        let fail = |error: git2::Error| ReadError::of(what, &error);
        let (size, _) = self.inner().odb().and_then(|it| header(&it, id)).map_err(fail)?;
        let (item, counted) = (BudgetItem::PathBytes, size as u64);
        let limit = budget.limit(item);
        if counted > limit {
            return Err(Exceeded { item, limit, counted }.into());
        }
        Ok(self.inner().find_tree(id).map_err(fail)?)
    }

    /// Returns the files of a tree that another one, if there is one, does not have so.
    ///
    /// Paths are counted before they are built: deep directories with long names make gigabytes of
    /// paths out of a small push.
    fn walk(
        &self,
        tree: &Tree<'_>,
        old: Option<&Tree<'_>>,
        what: &str,
        meter: &Meter,
    ) -> Result<Vec<TreeEntry>, FilesError> {
        let mut files = Vec::new();
        let mut waiting = vec![(String::new(), 0, tree.id(), old.map(Tree::id))];
        while let Some((parent, depth, id, before)) = waiting.pop() {
            let tree = self.open_tree(id, what, meter.budget())?;
            let before = before.and_then(|it| self.open_tree(it, what, meter.budget()).ok());
            meter.charge(BudgetItem::Depth, depth)?;
            if let Some(entry) = misplaced(&tree) {
                let name = String::from_utf8_lossy(entry.name_bytes());
                return Err(FilesError::Misplaced(format!("{parent}{name}")));
            }
            for entry in &tree {
                let old = before.as_ref().and_then(|old| old.get_name_bytes(entry.name_bytes()));
                let same = |it: &TreeEntryOf<'_>| {
                    it.id() == entry.id() && it.filemode_raw() == entry.filemode_raw()
                };
                if old.as_ref().is_some_and(same) {
                    continue;
                }
                let length = (parent.len() + entry.name_bytes().len()) as u64;
                meter.charge(BudgetItem::Entries, 1)?;
                meter.charge(BudgetItem::PathLength, length)?;
                meter.charge(BudgetItem::PathBytes, length)?;
                let name = String::from_utf8_lossy(entry.name_bytes());
                match kind_of(&entry) {
                    Some(kind) => files.push(TreeEntry { path: format!("{parent}{name}"), kind }),
                    None => {
                        let old = old.filter(|it| kind_of(it).is_none()).map(|it| it.id());
                        waiting.push((format!("{parent}{name}/"), depth + 1, entry.id(), old));
                    }
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}

/// Returns the entry of a name. libgit2 takes none with a NUL, which a text can have.
fn named(tree: &Tree<'_>, name: &str) -> Option<TreeEntryOf<'static>> {
    if name.contains('\0') { None } else { tree.get_name(name).map(|it| it.to_owned()) }
}

/// Returns an entry that is not in its place. To look up such entries, or to compare them with others, finds one of two
/// with the same name, or none.
fn misplaced<'t>(tree: &'t Tree<'_>) -> Option<TreeEntryOf<'t>> {
    tree.iter().enumerate().find_map(|(at, entry)| {
        let is_wrong = !is_in_place(tree, at, &entry);
        is_wrong.then_some(entry)
    })
}

/// Names the tree of a commit, or a directory of it, for messages.
pub(super) fn name_of(commit: CommitId, directory: &str) -> String {
    match directory {
        "" | "." => format!("the tree of the commit {commit}"),
        _ => format!("the directory `{directory}` of the commit {commit}"),
    }
}

#[cfg(test)]
mod tests {
    use git2::ObjectType;

    use super::*;

    /// Makes a commit whose tree has the given entries, in any order: files, some behind their modes, and
    /// directories with one file.
    fn commit(git: &git2::Repository, entries: &[&str]) -> CommitId {
        let database = git.odb().unwrap();
        let write = |entries: &[(&str, &str, Oid)]| {
            let of_entry = |(mode, name, id): &(&str, &str, Oid)| {
                [format!("{mode} {name}\0").as_bytes(), id.as_bytes()].concat()
            };
            let tree: Vec<u8> = entries.iter().flat_map(of_entry).collect();
            database.write(ObjectType::Tree, &tree).unwrap()
        };
        // Files of one name differ.
        let blob = |at: usize| database.write(ObjectType::Blob, at.to_string().as_bytes()).unwrap();
        let entries: Vec<(&str, &str, Oid)> = entries
            .iter()
            .enumerate()
            .map(|(at, name)| match (name.strip_suffix('/'), name.split_once(' ')) {
                (Some(name), _) => ("40000", name, write(&[("100644", "x", blob(at))])),
                (None, Some((mode, name))) => (mode, name, blob(at)),
                (None, None) => ("100644", *name, blob(at)),
            })
            .collect();
        let tree = git.find_tree(write(&entries)).unwrap();
        let ada = git2::Signature::new("Ada", "a@example.com", &git2::Time::new(0, 0)).unwrap();
        let commit = git.commit(None, &ada, &ada, "x", &tree, &[]).unwrap();
        CommitId::from_bytes(super::super::object_id::bytes(commit))
    }

    #[test]
    fn a_tree_that_has_an_entry_twice_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init(directory.path()).unwrap();
        let before = commit(&git, &["a", "b", "b-c", "c/", "d", "e/"]);
        let repository = Repository::discover(directory.path()).unwrap();
        let read = |commit: CommitId| {
            let meter = Meter::new(Budget::DEFAULT);
            repository.files(commit, "", &meter).map(|it| it.len())
        };
        let changed = |commit: CommitId| {
            let changes = repository.changes_between(before, commit, "", 99, &Budget::DEFAULT);
            changes.unwrap().map(|it| it.written.len() + it.removed.len())
        };
        assert_eq!((read(before).unwrap(), changed(before)), (6, Some(0)));
        for entries in [
            &["a", "a.b", "b", "b-c", "c/", "d", "e/"][..],
            &["a", "b-c", "b.d/", "b/", "b0", "c", "d/", "e"],
        ] {
            let fine = commit(&git, entries);
            assert!(read(fine).is_ok() && changed(fine).is_some(), "{entries:?}");
        }
        for (entries, wrong) in [
            (&["a", "b", "b", "b-c", "c/", "d", "e/"][..], "b"),
            (&["a", "b", "b-c", "c/", "c/", "d", "e/"], "c"),
            (&["a", "b", "b-c", "c/", "d", "e/", "e/"], "e"),
            (&["a", "a", "b", "b-c", "c/", "d", "e/"], "a"),
            (&["b", "b-c", "a", "c/", "d", "e/"], "a"),
            (&["a", "b", "b-c", "c/", "d", "e/", "a"], "a"),
            (&["a", "b", "b-c", "c/", "c/x", "d", "e/"], "c/x"),
            (&["..", "a", "b", "b-c", "c/", "d", "e/"], ".."),
            (&[".", "a", "b", "b-c", "c/", "d", "e/"], "."),
            // A file and a directory, of which one was there before, with others between them or none.
            (&["a", "b", "b-c", "b/", "c/", "d", "e/"], "b"),
            (&["a", "b", "b-c", "c", "c-d", "c.d/", "c/", "d", "e/"], "c"),
            (&["a", "b", "b-c", "c/", "d", "d/", "e/"], "d"),
            (&["a", "b", "b-c", "c/", "d", "e", "e/"], "e"),
        ] {
            let commit = commit(&git, entries);
            let error = read(commit).unwrap_err().to_string();
            let named = format!("`{wrong}` stands there twice, or not in its place");
            assert!(error.contains(&named), "{entries:?}: {error}");
            assert_eq!(changed(commit), None, "{entries:?}");
        }
        // A submodule whose mode is normalized to that of a program.
        let modes = ["100755 c", "160755 c"].map(|it| commit(&git, &[it]));
        let changes = repository.changes_between(modes[0], modes[1], "", 99, &Budget::DEFAULT);
        let kinds: Vec<EntryKind> =
            changes.unwrap().unwrap().written.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [EntryKind::Submodule]);
    }
}
