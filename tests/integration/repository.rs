//! Bare repositories that tests build commit by commit, with ids that never change.

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Oid, Repository, RepositoryInitOptions, Signature, Time, Tree};

/// The entry at a path of a commit.
#[derive(Clone, Copy)]
pub(crate) enum Put<'a> {
    File(&'a str),
    Link(&'a str),
    Submodule,
}

/// A bare repository in a temporary directory, whose `HEAD` names `main`.
pub(crate) struct Origin {
    directory: tempfile::TempDir,
    git: Repository,
}

impl Origin {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = RepositoryInitOptions::new();
        options.bare(true).initial_head("main");
        let git = Repository::init_opts(directory.path().join("groups.git"), &options).unwrap();
        Self { directory, git }
    }

    /// Returns an origin with one commit on `main`.
    pub(crate) fn with_a_commit() -> (Self, String) {
        let origin = Self::new();
        let commit = origin.commit("main", &[("groups/web.yaml", Put::File("name: Web\n"))]);
        (origin, commit)
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("groups.git")
    }

    pub(crate) fn git(&self) -> &Repository {
        &self.git
    }

    /// Commits on top of a branch, which need not be there yet.
    pub(crate) fn commit(&self, branch: &str, changes: &[(&str, Put<'_>)]) -> String {
        let tip = self.git.find_branch(branch, git2::BranchType::Local).ok();
        let parent = tip.map(|tip| tip.get().peel_to_commit().unwrap());
        let base = parent.as_ref().map(|it| it.tree().unwrap());
        let tree = self.tree(base.as_ref(), changes);
        let parents: Vec<Oid> = parent.iter().map(git2::Commit::id).collect();
        self.point(branch, tree, &parents)
    }

    /// Puts a commit without parents in the place of a branch's history.
    pub(crate) fn rewrite(&self, branch: &str, changes: &[(&str, Put<'_>)]) -> String {
        let tree = self.tree(None, changes);
        self.point(branch, tree, &[])
    }

    /// Has a branch name a commit.
    pub(crate) fn set(&self, branch: &str, commit: &str) {
        self.reference(&format!("refs/heads/{branch}"), commit);
    }

    /// Has a ref, given by its full name, name a commit.
    pub(crate) fn reference(&self, name: &str, commit: &str) {
        self.git.reference(name, commit.parse().unwrap(), true, "test").unwrap();
    }

    pub(crate) fn delete(&self, branch: &str) {
        self.git.find_branch(branch, git2::BranchType::Local).unwrap().delete().unwrap();
    }

    /// Makes an annotated tag.
    pub(crate) fn tag(&self, name: &str, commit: &str) {
        let target = self.git.find_object(commit.parse().unwrap(), None).unwrap();
        self.git.tag(name, &target, &author(), "a tag", true).unwrap();
    }

    /// Puts a commit of a given tree in the place of a branch's history.
    pub(crate) fn commit_tree(&self, branch: &str, tree: Oid) -> String {
        self.point(branch, tree, &[])
    }

    fn tree(&self, base: Option<&Tree<'_>>, changes: &[(&str, Put<'_>)]) -> Oid {
        let empty = self.git.treebuilder(None).unwrap().write().unwrap();
        let empty = self.git.find_tree(empty).unwrap();
        let mut update = TreeUpdateBuilder::new();
        for (path, put) in changes {
            let blob = |text: &str| self.git.blob(text.as_bytes()).unwrap();
            match put {
                Put::File(text) => update.upsert(*path, blob(text), FileMode::Blob),
                Put::Link(target) => update.upsert(*path, blob(target), FileMode::Link),
                Put::Submodule => {
                    update.upsert(*path, Oid::from_bytes(&[7; 20]).unwrap(), FileMode::Commit)
                }
            };
        }
        update.create_updated(&self.git, base.unwrap_or(&empty)).unwrap()
    }

    fn point(&self, branch: &str, tree: Oid, parents: &[Oid]) -> String {
        let tree = self.git.find_tree(tree).unwrap();
        let parents: Vec<_> = parents.iter().map(|it| self.git.find_commit(*it).unwrap()).collect();
        let parents: Vec<_> = parents.iter().collect();
        let id =
            self.git.commit(None, &author(), &author(), "A commit\n\nwith a body", &tree, &parents);
        let id = id.unwrap().to_string();
        self.set(branch, &id);
        id
    }
}

fn author() -> Signature<'static> {
    Signature::new("Ada", "ada@example.com", &Time::new(1_760_000_000, 0)).unwrap()
}
