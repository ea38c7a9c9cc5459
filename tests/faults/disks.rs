//! Disks that are full, damaged or emptied, and processes without file descriptors.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::follow::{conditions, live, wait_for};
use crate::hub::Hub;
use crate::program::{Daemon, GitRepository, serve, started_by};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "disks::full",
        promise: "a full disk is a condition, the last commit answers, and commits are followed again when space is free",
        injection: "a data directory on a tmpfs of 8 MiB and a commit of 12 MiB",
        speed: Speed::Fast,
        run: full,
    },
    Fault {
        name: "disks::mirror-deleted",
        promise: "a mirror that is gone is fetched again at the start",
        injection: "kill -9 and `rm -r mirror.git`, the journal kept",
        speed: Speed::Fast,
        run: mirror_deleted,
    },
    Fault {
        name: "disks::pack-damaged",
        promise: "no damaged object becomes an answer: answers are those of the commit they name, or errors",
        injection: "kill -9 and noise in the middle of every pack and object of the mirror, the remote gone",
        speed: Speed::Fast,
        run: pack_damaged,
    },
    Fault {
        name: "disks::no-descriptors",
        promise: "a daemon out of file descriptors recovers when connections close",
        injection: "RLIMIT_NOFILE of 64 and 120 connections",
        speed: Speed::Fast,
        run: no_descriptors,
    },
];

/// Runs a program that has a small disk of its own at a directory.
const ON_A_SMALL_DISK: &str = r#"mount -t tmpfs -o size=8m none "$0" && exec "$@""#;

fn full() -> Seen {
    let disk = tempfile::tempdir().unwrap();
    let on_a_small_disk = || {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", ON_A_SMALL_DISK]).arg(disk.path());
        command
    };
    let may = on_a_small_disk().arg("true").stderr(Stdio::null()).status();
    if !may.is_ok_and(|it| it.success()) {
        return Seen::Skipped("a kernel that lets users mount a tmpfs");
    }
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let remote = format!("file://{}", repository.text_path());
    let mut program = serve(&["--branch", "main", "--repo", &remote, "--data-dir"]);
    program.arg(disk.path().join("data"));
    let daemon = Daemon::launch(started_by(on_a_small_disk(), &program));
    wait_for(&daemon, &first);
    let mut random = fastrand::Rng::with_seed(3);
    let noise: String = (0..12 << 20).map(|_| random.alphanumeric()).collect();
    repository.commit("too much", &[("notes.txt", &noise), ("groups/b.yaml", "name: B\n")]);
    daemon.wait_until("the full disk is a condition", |it| {
        assert_eq!(live(it), Some(first.clone()));
        conditions(it).iter().any(|(_, reason)| reason == "DiskFull")
    });
    let git = repository.git();
    let object = git.find_object(first.parse().unwrap(), None).unwrap();
    git.reset(&object, git2::ResetType::Hard, None).unwrap();
    let small = repository.commit("small", &[("groups/c.yaml", "name: C\n")]);
    wait_for(&daemon, &small);
    assert!(!conditions(&daemon).iter().any(|(_, reason)| reason == "DiskFull"));
    Seen::Held("condition with reason `DiskFull`, then followed".to_owned())
}

fn mirror_deleted() -> Seen {
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let daemon = hub.serve(&[]);
    wait_for(&daemon, &hub.head_id());
    daemon.kill();
    std::fs::remove_dir_all(hub.directory.path().join("data/mirror.git")).unwrap();
    let daemon = hub.serve(&[]);
    let next = hub.commit("next", &[("groups/b.yaml", "name: B\n")]);
    wait_for(&daemon, &next);
    Seen::Held("followed again".to_owned())
}

/// Overwrites the middle of each file below a directory.
fn damage(directory: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            count += damage(&path);
            continue;
        }
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        for byte in bytes.iter_mut().skip(middle).take(8) {
            *byte = byte.wrapping_add(101);
        }
        // Objects are read-only.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        count += 1;
    }
    count
}

fn pack_damaged() -> Seen {
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n"), ("groups/b.yaml", "name: B\n")]);
    let daemon = hub.serve(&[]);
    let commit = hub.head_id();
    wait_for(&daemon, &commit);
    let expected = daemon.get("/v1/groups?x=1").json().as_array().unwrap().len();
    daemon.kill();
    let count = damage(&hub.directory.path().join("data/mirror.git/objects"));
    let away = hub.path().with_extension("away");
    std::fs::rename(hub.path(), &away).unwrap();
    let data = hub.directory.path().join("data").display().to_string();
    let path = hub.text_path();
    let daemon = Daemon::start(&["--repo", &path, "--data-dir", &data]);
    let answer = daemon.get("/v1/groups");
    match answer.status {
        200 => {
            assert_eq!(answer.header("X-Clade-Commit"), Some(commit.as_str()));
            assert_eq!(answer.json().as_array().unwrap().len(), expected);
        }
        status => assert_eq!(status, 503, "{}", answer.body),
    }
    Seen::Held(format!("{count} files damaged: {}", answer.status))
}

fn no_descriptors() -> Seen {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let mut limit = Command::new("prlimit");
    limit.arg("--nofile=64");
    let program = serve(&["--repo", &repository.text_path()]);
    let daemon = Daemon::launch(started_by(limit, &program));
    wait_for(&daemon, &first);
    let held: Vec<_> =
        (0..120).filter_map(|_| std::net::TcpStream::connect(&daemon.address).ok()).collect();
    std::thread::sleep(Duration::from_millis(500));
    let count = held.len();
    drop(held);
    let next = repository.commit("next", &[("groups/b.yaml", "name: B\n")]);
    wait_for(&daemon, &next);
    Seen::Held(format!("{count} connections, then the next commit answers"))
}
