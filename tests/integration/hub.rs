//! A bare repository that a daemon writes to, and that others push to as well.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::program::Daemon;

/// Returns how a file of tokens says one.
pub(crate) fn token_hash(token: &str) -> String {
    let digest = Sha256::digest(token.as_bytes());
    digest.iter().fold(String::new(), |text, it| text + &format!("{it:02x}"))
}

/// A bare repository that a daemon writes to.
pub(crate) struct Hub {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) inner: git2::Repository,
}

impl Hub {
    /// Makes one with a first commit.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        let path = directory.path().join("hub.git");
        let inner =
            git2::Repository::init_opts(path, options.bare(true).initial_head("main")).unwrap();
        inner.config().unwrap().set_bool("http.receivepack", true).unwrap();
        let hub = Self { directory, inner };
        hub.commit("Begin", files);
        hub
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.inner.path().to_owned()
    }

    pub(crate) fn text_path(&self) -> String {
        self.inner.path().to_str().unwrap().to_owned()
    }

    /// Commits files as another user would.
    pub(crate) fn commit(&self, message: &str, files: &[(&str, &str)]) -> String {
        let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
        self.commit_as(&ada, message, files)
    }

    /// Commits files, of which those without content go.
    pub(crate) fn commit_as(
        &self,
        ada: &git2::Signature<'_>,
        message: &str,
        files: &[(&str, &str)],
    ) -> String {
        self.try_commit_as(ada, message, files).unwrap()
    }

    /// Commits files unless another push is faster.
    pub(crate) fn try_commit_as(
        &self,
        ada: &git2::Signature<'_>,
        message: &str,
        files: &[(&str, &str)],
    ) -> Result<String, git2::Error> {
        let parent = self.head();
        let empty = self.inner.treebuilder(None).unwrap().write().unwrap();
        let base = match &parent {
            Some(parent) => parent.tree().unwrap(),
            None => self.inner.find_tree(empty).unwrap(),
        };
        let mut update = git2::build::TreeUpdateBuilder::new();
        for (path, text) in files {
            if text.is_empty() {
                update.remove(*path);
                continue;
            }
            let blob = self.inner.blob(text.as_bytes()).unwrap();
            update.upsert(*path, blob, git2::FileMode::Blob);
        }
        let tree = update.create_updated(&self.inner, &base).unwrap();
        let tree = self.inner.find_tree(tree).unwrap();
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        let id = self.inner.commit(Some("refs/heads/main"), ada, ada, message, &tree, &parents);
        Ok(id?.to_string())
    }

    pub(crate) fn head(&self) -> Option<git2::Commit<'_>> {
        self.inner.find_reference("refs/heads/main").ok()?.peel_to_commit().ok()
    }

    pub(crate) fn head_id(&self) -> String {
        self.head().unwrap().id().to_string()
    }

    /// Returns the first lines of all messages, the oldest first; no commit has two parents.
    pub(crate) fn log(&self) -> Vec<String> {
        let mut subjects = Vec::new();
        let mut next = self.head();
        while let Some(commit) = next {
            assert!(commit.parent_count() < 2);
            subjects.insert(0, commit.summary().unwrap().unwrap().to_owned());
            next = commit.parents().next();
        }
        subjects
    }

    pub(crate) fn show(&self, path: &str) -> Option<String> {
        self.show_at("refs/heads/main", path)
    }

    pub(crate) fn show_at(&self, revision: &str, path: &str) -> Option<String> {
        let tree = self.inner.revparse_single(revision).unwrap().peel_to_tree().unwrap();
        let entry = tree.get_path(Path::new(path)).ok()?;
        let blob = self.inner.find_blob(entry.id()).unwrap();
        Some(String::from_utf8(blob.content().to_vec()).unwrap())
    }

    /// Installs a hook; it runs in the directory of the hub.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;

        let path = self.inner.path().join("hooks").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Starts a daemon that follows the hub by a mirror and writes to it.
    pub(crate) fn serve(&self, more: &[&str]) -> Daemon {
        let data = self.directory.path().join("data");
        let (path, data) = (self.text_path(), data.to_str().unwrap().to_owned());
        let arguments = ["--repo", &path, "--data-dir", &data, "--writes", "commit"];
        Daemon::start(&[&arguments, more].concat())
    }
}
