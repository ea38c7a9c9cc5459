//! Writes through the classifier API: each is a commit.

mod classes;
mod clients;
mod crashes;
mod edits;
mod environments;
mod faults;
mod permissions;
mod proposals;
mod real;
mod recorded;
mod remotes;
mod workflow;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::git::server::Server;
use crate::program::{Daemon, Response};

pub(crate) const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// A bare repository that a daemon writes to.
struct Hub {
    directory: tempfile::TempDir,
    inner: git2::Repository,
}

impl Hub {
    /// Makes one with a first commit.
    fn new(files: &[(&str, &str)]) -> Self {
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

    fn path(&self) -> PathBuf {
        self.inner.path().to_owned()
    }

    fn text_path(&self) -> String {
        self.inner.path().to_str().unwrap().to_owned()
    }

    /// Commits files as somebody else would.
    fn commit(&self, message: &str, files: &[(&str, &str)]) -> String {
        let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
        self.commit_as(&ada, message, files)
    }

    /// Commits files, of which those without content go.
    fn commit_as(
        &self,
        ada: &git2::Signature<'_>,
        message: &str,
        files: &[(&str, &str)],
    ) -> String {
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
        id.unwrap().to_string()
    }

    fn head(&self) -> Option<git2::Commit<'_>> {
        self.inner.find_reference("refs/heads/main").ok()?.peel_to_commit().ok()
    }

    fn head_id(&self) -> String {
        self.head().unwrap().id().to_string()
    }

    /// Returns the first lines of all messages, the oldest first; no commit has two parents.
    fn log(&self) -> Vec<String> {
        let mut subjects = Vec::new();
        let mut next = self.head();
        while let Some(commit) = next {
            assert!(commit.parent_count() < 2);
            subjects.insert(0, commit.summary().unwrap().unwrap().to_owned());
            next = commit.parents().next();
        }
        subjects
    }

    fn show(&self, path: &str) -> Option<String> {
        self.show_at("refs/heads/main", path)
    }

    fn show_at(&self, revision: &str, path: &str) -> Option<String> {
        let tree = self.inner.revparse_single(revision).unwrap().peel_to_tree().unwrap();
        let entry = tree.get_path(Path::new(path)).ok()?;
        let blob = self.inner.find_blob(entry.id()).unwrap();
        Some(String::from_utf8(blob.content().to_vec()).unwrap())
    }

    /// Installs a hook, which stands in the directory of the hub.
    fn hook(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;

        let path = self.inner.path().join("hooks").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Starts a daemon that follows the hub by a mirror and writes to it.
    fn serve(&self, more: &[&str]) -> Daemon {
        let data = self.directory.path().join("data");
        let (path, data) = (self.text_path(), data.to_str().unwrap().to_owned());
        let arguments = ["--repo", &path, "--data-dir", &data, "--writes", "commit"];
        Daemon::start(&[&arguments, more].concat())
    }
}

/// Starts a daemon that follows and writes to the hub behind a server.
fn serve_over_http(server: &Server, data: &Path) -> Daemon {
    let url = format!("http://127.0.0.1:{}/hub.git", server.port);
    let data = data.to_str().unwrap();
    let remote = ["--allow-insecure-remotes", "--git-proxy", "none", "--writes", "commit"];
    Daemon::start(&[["--repo", &url, "--data-dir", data].as_slice(), &remote].concat())
}

fn post(daemon: &Daemon, path: &str, body: &Value) -> Response {
    daemon.request("POST", path, &body.to_string())
}

/// Makes a group and returns its id.
fn create(daemon: &Daemon, body: &Value) -> String {
    let made = post(daemon, "/v1/groups", body);
    assert_eq!(made.status, 303, "{}", made.body);
    let location = made.header("Location").unwrap();
    location.strip_prefix("/v1/groups/").unwrap().to_owned()
}

fn groups(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/v1/groups").json().as_array().unwrap().clone()
}

/// Returns a group or several without what counts their edits.
fn without_edits(groups: &Value) -> Value {
    let mut groups = groups.clone();
    let all = match &mut groups {
        Value::Array(groups) => groups.iter_mut().collect(),
        group => vec![group],
    };
    for fields in all.into_iter().filter_map(Value::as_object_mut) {
        fields.retain(|key, _| !matches!(key.as_str(), "serial_number" | "last_edited"));
    }
    groups
}

fn has_git() -> bool {
    let found = std::process::Command::new("git").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: needs git");
    }
    found
}
