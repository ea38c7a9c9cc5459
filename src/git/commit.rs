//! Writing commits.

use std::collections::BTreeMap;
use std::path::Path;

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, ObjectType, Oid};

use super::object_guard::header;
use super::object_id::id_of;
use super::repository::{ObjectFault, ReadError, Repository};
use super::tree_entry::{EntryKind, kind_of};
use crate::model::CommitId;

/// The author of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

/// The name of an author whose name git would strip of everything.
const UNNAMED: &str = "unnamed";

impl Person {
    /// Returns the signature of this moment. Git strips names of spaces and of some punctuation at both ends, and takes no
    /// empty one; names of callers come from files of tokens, certificates and proxies, and must not stop a write.
    fn sign(&self) -> Result<git2::Signature<'static>, git2::Error> {
        let is_stripped = |it: char| it <= ' ' || ".,:;<>\"\\'".contains(it);
        let is_nameless = self.name.chars().all(is_stripped);
        let name = if is_nameless { UNNAMED } else { &self.name };
        git2::Signature::now(name, &self.email)
    }
}

/// A commit that is to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewCommit<'d> {
    /// The commit that it follows.
    pub parent: CommitId,
    /// The files that change, from the root of the tree; none for one that goes.
    pub files: &'d BTreeMap<String, Option<String>>,
    /// Whose change it is.
    pub author: &'d Person,
    /// Who writes it down.
    pub committer: &'d Person,
    /// What it says.
    pub message: &'d str,
}

/// The size of the largest text that is read, in bytes.
const LARGEST_TEXT: usize = 1 << 20;

impl Repository {
    /// Writes a commit to the store of objects; no ref names it.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub fn write_commit(&self, new: &NewCommit<'_>) -> Result<CommitId, ReadError> {
        /// How often it is written at most. An attempt skips the objects that one before has written.
        const ATTEMPTS: usize = 10;
        let written = self.try_write_commit(new);
        // `git gc` removes empty directories of objects, and with them one that libgit2 has just made for a file.
        (1..ATTEMPTS).fold(written, |written, _| match written {
            Err(error) if error.fault() == ObjectFault::System => self.try_write_commit(new),
            done => done,
        })
    }

    fn try_write_commit(&self, new: &NewCommit<'_>) -> Result<CommitId, ReadError> {
        let fail = |error: git2::Error| ReadError::of_writing("a new commit", &error);
        let inner = self.inner();
        let parent = self.find_commit(new.parent)?;
        let tree = parent.tree().map_err(fail)?;
        let mut update = TreeUpdateBuilder::new();
        for (path, text) in new.files {
            match text {
                Some(text) => {
                    let blob = inner.blob(text.as_bytes()).map_err(fail)?;
                    let before = tree.get_path(Path::new(path)).ok();
                    let mode = match before.map(|it| it.filemode()) {
                        Some(mode) if mode == i32::from(FileMode::BlobExecutable) => {
                            FileMode::BlobExecutable
                        }
                        _ => FileMode::Blob,
                    };
                    update.upsert(path.as_str(), blob, mode);
                }
                None => {
                    update.remove(path.as_str());
                }
            }
        }
        let tree = update.create_updated(inner, &tree).map_err(fail)?;
        let tree = inner.find_tree(tree).map_err(fail)?;
        let author = new.author.sign().map_err(fail)?;
        let committer = new.committer.sign().map_err(fail)?;
        let id = inner
            .commit(None, &author, &committer, new.message, &tree, &[&parent])
            .map_err(fail)?;
        Ok(id_of(id))
    }

    /// Returns the names in a directory of a commit with what stands there, which is none for a directory. Where the
    /// commit has no such directory, there are no names.
    ///
    /// # Errors
    ///
    /// Returns an error if an object on the way cannot be read: something may be there all the same.
    pub fn names(
        &self,
        commit: CommitId,
        directory: &str,
    ) -> Result<Vec<(String, Option<EntryKind>)>, ReadError> {
        let Some(tree) = self.tree_at(commit, directory)? else { return Ok(Vec::new()) };
        let name = |it: &git2::TreeEntry<'_>| String::from_utf8_lossy(it.name_bytes()).into_owned();
        Ok(tree.iter().map(|it| (name(&it), kind_of(&it))).collect())
    }

    /// Returns the text of a file of a commit; none if there is no such file, it is not UTF-8, or larger
    /// than 1 MiB, which no document may be.
    ///
    /// # Errors
    ///
    /// Returns an error if an object on the way cannot be read: the file may be there all the same.
    pub fn text(&self, commit: CommitId, path: &str) -> Result<Option<String>, ReadError> {
        let fail = |error: git2::Error| {
            ReadError::of(format!("the file `{path}` of the commit {commit}"), &error)
        };
        let Some((ObjectType::Blob, id)) = self.object_at(commit, path)? else { return Ok(None) };
        let (size, _) = self.inner().odb().and_then(|it| header(&it, id)).map_err(fail)?;
        if size > LARGEST_TEXT {
            return Ok(None);
        }
        let blob = self.inner().find_blob(id).map_err(fail)?;
        Ok(String::from_utf8(blob.content().to_vec()).ok())
    }

    /// Returns what stands at a path of a commit; none if nothing does.
    fn object_at(
        &self,
        commit: CommitId,
        path: &str,
    ) -> Result<Option<(ObjectType, Oid)>, ReadError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let tree = self.tree_at(commit, directory)?;
        Ok(tree.and_then(|tree| tree.get_name(name).and_then(|it| Some((it.kind()?, it.id())))))
    }

    /// Returns the tree of a directory of a commit; none if there is no such directory.
    fn tree_at(
        &self,
        commit: CommitId,
        directory: &str,
    ) -> Result<Option<git2::Tree<'_>>, ReadError> {
        let fail = |error: git2::Error| {
            ReadError::of(format!("the directory `/{directory}` of the commit {commit}"), &error)
        };
        let mut tree = self.find_commit(commit)?.tree().map_err(fail)?;
        for part in directory.split('/').filter(|it| !it.is_empty()) {
            let below = tree.get_name(part).filter(|it| it.kind() == Some(ObjectType::Tree));
            let Some(below) = below.map(|it| it.id()) else { return Ok(None) };
            tree = self.inner().find_tree(below).map_err(fail)?;
        }
        Ok(Some(tree))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::table::each_row;

    /// What `git gc` does at its end, whatever others write meanwhile.
    fn remove_empty_directories(objects: &Path) {
        for first in 0..=u8::MAX {
            // One that has objects stays.
            std::fs::remove_dir(objects.join(format!("{first:02x}"))).ok();
        }
    }

    #[test]
    fn a_commit_is_written_while_git_removes_empty_directories() {
        let ada = Person { name: "Ada".to_owned(), email: "ada@example.com".to_owned() };
        for round in 0..60 {
            let directory = tempfile::tempdir().unwrap();
            let git = git2::Repository::init_bare(directory.path()).unwrap();
            let empty = git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap();
            let who = ada.sign().unwrap();
            let parent = git.commit(None, &who, &who, "first", &empty, &[]).unwrap();
            let repository = Repository::discover(directory.path()).unwrap();
            let text = |name: &str| (format!("{name}/a.yaml"), Some(format!("{name} {round}\n")));
            let files = BTreeMap::from(["a", "b", "c"].map(text));
            let (author, committer, parent) = (&ada, &ada, id_of(parent));
            let new = NewCommit { parent, files: &files, author, committer, message: "second" };
            let objects = git.path().join("objects");
            let start = Barrier::new(2);
            let written = std::thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    remove_empty_directories(&objects);
                });
                start.wait();
                repository.write_commit(&new)
            });
            let found = written.and_then(|it| repository.text(it, "c/a.yaml"));
            assert_eq!(found, Ok(Some(format!("c {round}\n"))));
        }
    }

    #[test]
    fn every_caller_has_a_name_in_git() {
        let rows = [
            ("Ada", "Ada"),
            (" a, ", "a"),
            ("é", "é"),
            ("", UNNAMED),
            (",", UNNAMED),
            ("\u{1}\"<>\\", UNNAMED),
        ];
        each_row(rows, |(name, expected)| {
            let person = Person { name: name.to_owned(), email: "a@example.com".to_owned() };
            assert_eq!(person.sign().unwrap().name().unwrap(), expected);
        });
    }
}
