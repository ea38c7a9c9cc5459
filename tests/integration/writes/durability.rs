//! A write that was answered is on the disk: it outlives a machine that loses its power.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::json;

use super::remotes::{file_url, serve_file_url};
use super::{ROOT, create, has_git, post};
use crate::hub::Hub;
use crate::program::{Daemon, GitRepository, serve, started_by};

const A: (&str, &str) = ("groups/a.yaml", "name: A\n");

/// A library that records what a program brings to the disk.
static RECORDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/record_syncs.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(directory.path().join("recorder.so"));
    assert!(compiler.arg(source).arg("-ldl").status().unwrap().success());
    directory
});

/// What a program, and the `git` that it starts, bring to the disk.
struct Recording {
    directory: tempfile::TempDir,
}

impl Recording {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("record"), "").unwrap();
        Self { directory }
    }

    fn record(&self) -> PathBuf {
        self.directory.path().join("record")
    }

    /// While this file is there, no branch can be brought to the disk.
    fn fault(&self) -> PathBuf {
        self.directory.path().join("fault")
    }

    /// Starts a daemon that is recorded.
    fn launch(&self, mut command: Command) -> Daemon {
        let library = RECORDER.path().join("recorder.so");
        Daemon::launch({
            command.env("LD_PRELOAD", library).env("RECORD", self.record());
            command.env("FAULT", self.fault());
            command
        })
    }

    /// Has a `git` found that is recorded as well: what the daemon starts does not get its environment.
    fn with_git(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap();
        let git = std::env::split_paths(&path).map(|it| it.join("git")).find(|it| it.exists());
        let script = self.directory.path().join("git");
        let text = format!(
            "#!/bin/sh\nexport LD_PRELOAD='{}/recorder.so' RECORD='{}'\nexec '{}' \"$@\"\n",
            RECORDER.path().display(),
            self.record().display(),
            git.unwrap().display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        command.env("PATH", format!("{}:{path}", self.directory.path().display()));
    }

    /// Forgets what was recorded, and returns it.
    fn take(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.record()).unwrap();
        std::fs::write(self.record(), "").unwrap();
        text.lines().map(|it| it.replace("/./", "/")).collect()
    }
}

fn files_below(directory: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(files_below(&entry.path())),
            false => drop(files.insert(entry.path())),
        }
    }
    files
}

/// Returns what was brought to the disk before and after a branch was moved.
fn around_move<'r>(record: &'r [String], branch: &Path) -> [BTreeSet<&'r str>; 2] {
    let named = format!("name {}", branch.display());
    let at = record.iter().position(|it| *it == named);
    let at = at.unwrap_or_else(|| panic!("the branch is not moved: {record:#?}"));
    [&record[..at], &record[at..]]
        .map(|part| part.iter().filter_map(|it| it.strip_prefix("sync ")).collect())
}

/// Makes a group and checks that the daemon brings to the disk what a repository gets: objects, then the branch.
fn check(recording: &Recording, daemon: &Daemon, repository: &Path) -> Vec<String> {
    let objects = repository.join("objects");
    let before = files_below(&objects);
    recording.take();
    create(daemon, &json!({"name": "N", "parent": ROOT, "classes": {}}));
    let record = recording.take();
    let branch = repository.join("refs/heads/main");
    let [first, then] = around_move(&record, &branch);
    let is_synced = |synced: &BTreeSet<&str>, it: &Path| synced.contains(it.to_str().unwrap());
    let after = files_below(&objects);
    let added: Vec<_> = after.difference(&before).collect();
    assert!(added.len() > 1, "{added:?}");
    for file in added {
        assert!(is_synced(&first, file), "{}: {record:#?}", file.display());
        assert!(is_synced(&first, file.parent().unwrap()), "{}: {record:#?}", file.display());
    }
    assert!(is_synced(&then, &branch), "{record:#?}");
    assert!(is_synced(&then, branch.parent().unwrap()), "{record:#?}");
    record
}

#[test]
fn a_write_in_place_is_on_the_disk() {
    let hub = Hub::new(&[A]);
    let recording = Recording::new();
    let daemon = recording.launch(serve(&["--repo", &hub.text_path(), "--writes", "commit"]));
    check(&recording, &daemon, &hub.path());
}

#[test]
fn writes_that_are_pushed_together_are_all_on_the_disk() {
    let hub = Hub::new(&[A]);
    let recording = Recording::new();
    let daemon = recording.launch(serve(&["--repo", &hub.text_path(), "--writes", "commit"]));
    let objects = hub.path().join("objects");
    let before = files_below(&objects);
    std::thread::scope(|scope| {
        for number in 0..12 {
            let daemon = &daemon;
            let body = json!({"name": format!("N{number}"), "parent": ROOT, "classes": {}});
            scope.spawn(move || create(daemon, &body));
        }
    });
    let record = recording.take();
    let after = files_below(&objects);
    let added: Vec<_> = after.difference(&before).collect();
    assert!(added.len() >= 12, "{added:?}");
    for file in added {
        assert!(
            record.contains(&format!("sync {}", file.display())),
            "{}: {record:#?}",
            file.display()
        );
    }
}

#[test]
fn what_could_not_be_brought_to_the_disk_is_before_a_repeated_write_is_answered() {
    let hub = Hub::new(&[A]);
    let recording = Recording::new();
    let daemon = recording.launch(serve(&["--repo", &hub.text_path(), "--writes", "commit"]));
    let body = json!({"name": "N", "parent": ROOT, "classes": {}});
    std::fs::write(recording.fault(), "").unwrap();
    let unknown = post(&daemon, "/v1/groups", &body);
    assert_eq!((unknown.status, &unknown.json()["kind"]), (503, &json!("write-unknown")));
    std::fs::remove_file(recording.fault()).unwrap();
    recording.take();
    create(&daemon, &body);
    assert_eq!(hub.log().len(), 2);
    let record = recording.take();
    for file in [format!("objects/{}", &hub.head_id()[..2]), "refs/heads/main".to_owned()] {
        let line = format!("sync {}", hub.path().join(file).display());
        assert!(record.contains(&line), "{line}: {record:#?}");
    }
}

#[test]
fn a_proposal_that_could_not_be_brought_to_the_disk_is_before_it_is_answered() {
    let hub = Hub::new(&[A]);
    for repository in [hub.text_path(), file_url(&hub)] {
        let recording = Recording::new();
        let data = tempfile::tempdir().unwrap();
        let data = data.path().to_str().unwrap();
        let arguments = ["--repo", &repository, "--data-dir", data, "--writes", "propose"];
        let daemon = recording.launch(serve(&arguments));
        let body = json!({"name": format!("of {repository}"), "parent": ROOT, "classes": {}});
        std::fs::write(recording.fault(), "").unwrap();
        let unknown = post(&daemon, "/v1/groups", &body);
        assert_eq!((unknown.status, &unknown.json()["kind"]), (503, &json!("write-unknown")));
        assert_eq!(post(&daemon, "/v1/groups", &body).status, 503);
        std::fs::remove_file(recording.fault()).unwrap();
        recording.take();
        let proposed = post(&daemon, "/v1/groups", &body);
        assert_eq!(proposed.status, 202, "{}", proposed.body);
        let (branch, commit) = (&proposed.json()["branch"], &proposed.json()["commit"]);
        let record = recording.take();
        for file in [
            format!("objects/{}", &commit.as_str().unwrap()[..2]),
            format!("refs/heads/{}", branch.as_str().unwrap()),
        ] {
            let line = format!("sync {}", hub.path().join(file).display());
            assert!(record.contains(&line), "{line}: {record:#?}");
        }
    }
}

#[test]
fn the_files_of_a_working_tree_are_on_the_disk() {
    if !has_git() {
        return;
    }
    let repository = GitRepository::new();
    repository.commit("first", &[A]);
    let path = repository.path();
    let reset = Command::new("git").arg("-C").arg(&path).args(["reset", "-q", "--hard"]).status();
    assert!(reset.unwrap().success());
    let recording = Recording::new();
    let daemon =
        recording.launch(serve(&["--repo", &repository.text_path(), "--writes", "commit"]));
    let record = check(&recording, &daemon, &path.join(".git"));
    // The directory may be new as well.
    for file in ["groups/n.yaml", "groups", "", ".git/index.clade", ".git/index"] {
        let file = path.join(file);
        let line = format!("sync {}", file.to_str().unwrap().trim_end_matches('/'));
        assert!(record.contains(&line), "{line}: {record:#?}");
    }
}

#[test]
fn a_write_to_a_file_url_is_on_the_disk_without_git() {
    let hub = Hub::new(&[A]);
    let (recording, data) = (Recording::new(), tempfile::tempdir().unwrap());
    let mut command = serve_file_url(&file_url(&hub), &data, "main");
    command.env("PATH", "");
    let daemon = recording.launch(command);
    check(&recording, &daemon, &hub.path());
}

/// Checks the same of what git writes. It syncs each file under its first name, and then gives it its own.
fn check_through_git(recording: &Recording, daemon: &Daemon, repository: &Path) {
    let objects = repository.join("objects");
    let before = files_below(&objects);
    recording.take();
    create(daemon, &json!({"name": "N", "parent": ROOT, "classes": {}}));
    let record = recording.take();
    let branch = repository.join("refs/heads/main");
    let [first, then] = around_move(&record, &branch);
    let below = objects.to_str().unwrap();
    let synced = first.iter().filter(|it| it.starts_with(below) && !Path::new(it).is_dir()).count();
    let after = files_below(&objects);
    let added: Vec<_> = after.difference(&before).collect();
    assert!(synced >= added.len() && added.len() > 1, "{added:?}: {record:#?}");
    let lock = branch.with_extension("lock");
    assert!(first.contains(lock.to_str().unwrap()), "{record:#?}");
    for file in added.into_iter().chain([&branch]) {
        let directory = file.parent().unwrap().to_str().unwrap();
        assert!(then.contains(directory), "{directory}: {record:#?}");
    }
}

#[test]
fn what_git_writes_is_on_the_disk() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[A]);
    let (recording, data) = (Recording::new(), tempfile::tempdir().unwrap());
    let mut command = serve_file_url(&file_url(&hub), &data, "main");
    recording.with_git(&mut command);
    check_through_git(&recording, &recording.launch(command), &hub.path());
    // With a hook, git writes to a repository in place as well.
    let hub = Hub::new(&[A]);
    hub.hook("pre-receive", "exit 0");
    let mut command = serve(&["--repo", &hub.text_path(), "--writes", "commit"]);
    recording.with_git(&mut command);
    check_through_git(&recording, &recording.launch(command), &hub.path());
}

/// A user that owns nothing else.
const USER: u32 = 1234;

/// Gives all below a directory to a user without rights; none where this process may not.
fn give_away(directory: &Path) -> Option<()> {
    chown(directory, Some(USER), Some(USER)).ok()?;
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => give_away(&entry.path())?,
            false => chown(entry.path(), Some(USER), Some(USER)).ok()?,
        }
    }
    Some(())
}

#[test]
fn a_branch_that_cannot_be_brought_to_the_disk_is_not_moved() {
    if !has_git() || Command::new("setpriv").arg("--version").output().is_err() {
        return;
    }
    for (mode, has_hook, is_followed_by_mirror) in [
        ("commit", false, false),
        ("commit", true, false),
        ("commit", false, true),
        ("propose", false, false),
    ] {
        let hub = Hub::new(&[A]);
        if has_hook {
            hub.hook("pre-receive", "exit 0");
        }
        let data = hub.directory.path().join("data");
        std::fs::create_dir(&data).unwrap();
        if give_away(hub.directory.path()).is_none() {
            eprintln!("skipped: needs root");
            return;
        }
        let (path, user) = (hub.text_path(), USER.to_string());
        let mut arguments = vec!["--repo", &path, "--writes", mode];
        if is_followed_by_mirror {
            arguments.extend(["--data-dir", data.to_str().unwrap()]);
        }
        let mut launcher = Command::new("setpriv");
        launcher.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        let daemon = Daemon::launch(started_by(launcher, &serve(&arguments)));
        let set_mode = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(hub.path().join("refs"), mode).unwrap();
        };
        // It can be entered, and not listed.
        set_mode(0o311);
        let refused =
            post(&daemon, "/v1/groups", &json!({"name": "N", "parent": ROOT, "classes": {}}));
        let what = format!("{mode} {has_hook} {is_followed_by_mirror}: {}", refused.body);
        assert_eq!(
            (refused.status, &refused.json()["kind"]),
            (503, &json!("remote-unreachable")),
            "{what}"
        );
        assert!(
            refused.body.contains("Nothing was changed") && refused.body.contains("refs`"),
            "{what}"
        );
        set_mode(0o755);
        assert_eq!(hub.log().len(), 1, "{what}");
        assert_eq!(hub.inner.references_glob("refs/heads/clade/*").unwrap().count(), 0, "{what}");
        let body = json!({"name": "N", "parent": ROOT, "classes": {}});
        let written = post(&daemon, "/v1/groups", &body);
        assert!(written.status < 400, "{}", written.body);
    }
}
