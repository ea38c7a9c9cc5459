//! Data directories that are damaged, read-only, or open to other users.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Hub;
use crate::Seen;
use crate::follow::{conditions, wait_for};
use crate::program::{Daemon, serve, started_by};

const GARBAGE: &[u8] = b"\0\0[core\n\0";

/// The damage to one file; `None` deletes it.
const DAMAGES: &[(&str, Option<&[u8]>)] = &[
    ("config", Some(b"")),
    ("config", Some(GARBAGE)),
    ("config", None),
    ("HEAD", Some(b"")),
    ("HEAD", None),
    ("packed-refs", Some(GARBAGE)),
    ("refs/clade/live", Some(b"")),
    ("refs/clade/watched/refs/heads/main", Some(GARBAGE)),
    ("refs/remotes/origin/main", Some(b"")),
];

pub(super) fn emptied_config() -> Seen {
    let hub = Hub::new();
    let mut head = hub.commit("main", "groups/b.yaml", b"name: B\n");
    let daemon = hub.serve(&["--interval", "50ms"]);
    wait_for(&daemon, &head);
    daemon.kill();
    let away = hub.path().with_extension("away");
    for (index, (name, content)) in DAMAGES.iter().enumerate() {
        let path = hub.data().join("mirror.git").join(name);
        match content {
            Some(content) => std::fs::write(&path, content).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        std::fs::rename(hub.path(), &away).unwrap();
        let (repo, data) = (hub.path(), hub.data());
        let repo = ["--repo", repo.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
        let daemon = Daemon::start(&[repo.as_slice(), &["--interval", "50ms"]].concat());
        let answer = daemon.get("/v1/groups");
        assert_eq!(answer.header("X-Clade-Commit"), Some(head.as_str()), "{name} {content:?}");
        std::fs::rename(&away, hub.path()).unwrap();
        let file = format!("groups/c{index}.yaml");
        head = hub.commit("main", &file, format!("name: C{index}\n").as_bytes());
        wait_for(&daemon, &head);
        daemon.wait_until("nothing is wrong any more", |it| conditions(it).is_empty());
        daemon.kill();
        assert!(!hub.data().join("mirror.git.broken").exists(), "{name}: the mirror is fetched");
    }
    assert!(hub.data().join("mirror.git/damaged/config").exists());
    Seen::Held(format!("{} damages: the last commit answered, and the next one", DAMAGES.len()))
}

/// Runs a program that sees a directory read-only.
const READ_ONLY: &str = r#"mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@""#;

fn read_only(directory: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", READ_ONLY]).arg(directory);
    command
}

/// Returns all files below a directory with what they hold.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

pub(super) fn read_only_data() -> Seen {
    let hub = Hub::new();
    let first = hub.commit("main", "groups/b.yaml", b"name: B\n");
    let probe = read_only(hub.directory.path()).arg("true").stderr(Stdio::null()).status();
    if !probe.is_ok_and(|it| it.success()) {
        return Seen::Skipped("a kernel that lets users mount a directory read-only");
    }
    let daemon = hub.serve(&["--interval", "50ms"]);
    wait_for(&daemon, &first);
    daemon.kill();
    let before = files(&hub.data());
    let away = hub.path().with_extension("away");
    std::fs::rename(hub.path(), &away).unwrap();
    let daemon = Daemon::launch(started_by(read_only(&hub.data()), &hub.program(&[])));
    let answer = daemon.get("/v1/groups");
    assert_eq!(answer.header("X-Clade-Commit"), Some(first.as_str()));
    let has_failed = |it: &Daemon| conditions(it).iter().any(|(it, _)| it == "StorageFailed");
    assert!(has_failed(&daemon), "{:?}", conditions(&daemon));
    let pinned = daemon.request("POST", "/controller/pin", &format!(r#"{{"commit": "{first}"}}"#));
    assert_eq!(pinned.status, 503, "{}", pinned.body);
    assert_eq!(pinned.json()["kind"], "storage-failed");
    std::fs::rename(&away, hub.path()).unwrap();
    let second = hub.commit("main", "groups/c.yaml", b"name: C\n");
    wait_for(&daemon, &second);
    assert!(has_failed(&daemon), "{:?}", conditions(&daemon));
    daemon.kill();
    assert_eq!(files(&hub.data()), before);
    Seen::Held("StorageFailed; the last commit answered, then the next; pin 503".to_owned())
}

/// Returns what other users can read, enter or write below a directory that they can enter.
fn open_to_others(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let is_open = metadata.permissions().mode() & 0o007 != 0;
        if !is_open {
            continue;
        }
        // A file without content has no value to restore.
        if metadata.is_dir() || metadata.len() > 0 {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub(super) fn private_data() -> Seen {
    let hub = Hub::new();
    let first = hub.commit("main", "groups/b.yaml", b"name: B\n");
    let data = hub.directory.path().join("new/data");
    let serve = || {
        let mut open = Command::new("sh");
        open.args(["-c", "umask 000 && exec \"$0\" \"$@\""]);
        let mut program = serve(&["--repo"]);
        program.arg(hub.path()).arg("--data-dir").arg(&data);
        Daemon::launch(started_by(open, &program))
    };
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let daemon = serve();
    wait_for(&daemon, &first);
    daemon.kill();
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("mirror.git")), 0o700);
    for file in ["journal", "lock"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
    // As an older version made them.
    for (name, mode) in [(".", 0o755), ("mirror.git", 0o755), ("journal", 0o644), ("lock", 0o644)] {
        std::fs::set_permissions(data.join(name), Permissions::from_mode(mode)).unwrap();
    }
    let daemon = serve();
    wait_for(&daemon, &first);
    daemon.kill();
    for (name, expected) in
        [(".", 0o700), ("mirror.git", 0o700), ("journal", 0o600), ("lock", 0o600)]
    {
        assert_eq!(mode(&data.join(name)), expected, "{name}");
    }
    let open = open_to_others(&data);
    assert!(open.is_empty(), "{open:?}");
    Seen::Held(
        "directories 0700, files 0600; what had 0755 and 0644 became 0700 and 0600".to_owned(),
    )
}
