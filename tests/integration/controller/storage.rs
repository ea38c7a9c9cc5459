//! A disk that is full.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{conditions, group, live, wait_for};
use crate::program::{Daemon, GitRepository, serve, started_by};

/// Runs a program that has a small disk of its own at a directory.
const ON_A_SMALL_DISK: &str = r#"mount -t tmpfs -o size=8m none "$0" && exec "$@""#;

pub(crate) fn may_mount(directory: &Path) -> bool {
    let done = Command::new("unshare")
        .args(["-rm", "sh", "-c", ON_A_SMALL_DISK])
        .arg(directory)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|it| it.success())
}

/// Returns what starts a program on a small disk.
pub(crate) fn on_a_small_disk(directory: &Path) -> Command {
    let mut small = Command::new("unshare");
    small.args(["-rm", "sh", "-c", ON_A_SMALL_DISK]).arg(directory);
    small
}

#[test]
fn a_full_disk_is_a_condition_and_the_last_commit_answers_until_space_is_free() {
    let disk = tempfile::tempdir().unwrap();
    if !may_mount(disk.path()) {
        println!("skipped: this machine does not allow to mount a small disk");
        return;
    }
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let data = disk.path().join("data");
    let remote = format!("file://{}", repository.text_path());
    let small = on_a_small_disk(disk.path());
    let data = data.to_str().unwrap();
    let program = serve(&["--branch", "main", "--repo", &remote, "--data-dir", data]);
    let daemon = Daemon::launch(started_by(small, &program));
    wait_for(&daemon, &first);

    let mut state = 1_u64;
    let noise: String = (0..12 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b' ' + u8::try_from(state >> 58).unwrap())
        })
        .collect();
    repository.commit("too much", &[("notes.txt", &noise), ("groups/b.yaml", &group("B"))]);
    daemon.wait_until("the full disk is said", |it| {
        conditions(it).iter().any(|(_, reason)| reason == "DiskFull")
    });
    assert_eq!(live(&daemon), Some(first.clone()));

    // The oversized commit is reverted; the daemon recovers without a restart.
    let git = repository.git();
    let first = git.find_object(first.parse().unwrap(), None).unwrap();
    git.reset(&first, git2::ResetType::Hard, None).unwrap();
    let small = repository.commit("small", &[("groups/c.yaml", &group("C"))]);
    wait_for(&daemon, &small);
    assert!(!conditions(&daemon).iter().any(|(_, reason)| reason == "DiskFull"));
}

#[test]
fn a_commit_answers_though_the_one_before_it_is_gone() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    wait_for(&daemon, &first);
    // History is rewritten, and the former objects are removed.
    let git = repository.git();
    let blob = git.blob(b"name: A\ndescription: again\n").unwrap();
    let tree = |name: &str, id: git2::Oid, mode: i32| {
        let mut builder = git.treebuilder(None).unwrap();
        builder.insert(name, id, mode).unwrap();
        builder.write().unwrap()
    };
    let tree = tree("groups", tree("a.yaml", blob, 0o100_644), 0o040_000);
    let who = git2::Signature::now("Ada", "ada@example.com").unwrap();
    let tree = git.find_tree(tree).unwrap();
    let second = git.commit(None, &who, &who, "again", &tree, &[]).unwrap();
    let old = git.find_commit(first.parse().unwrap()).unwrap();
    for id in [old.id(), old.tree_id()].map(|it| it.to_string()) {
        let (start, rest) = id.split_at(2);
        std::fs::remove_file(git.path().join("objects").join(start).join(rest)).unwrap();
    }
    let branch = git.find_reference("HEAD").unwrap();
    let branch = branch.symbolic_target().unwrap().unwrap();
    git.reference(branch, second, true, "again").unwrap();
    wait_for(&daemon, &second.to_string());
}
