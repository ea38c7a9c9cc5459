//! A disk that is full.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{conditions, group, live, wait_for};
use crate::program::{Daemon, GitRepository, clade, root};

/// Runs a program that has a small disk of its own at a directory.
const ON_A_SMALL_DISK: &str = r#"mount -t tmpfs -o size=8m none "$0" && exec "$@""#;

fn may_mount(directory: &Path) -> bool {
    let done = Command::new("unshare")
        .args(["-rm", "sh", "-c", ON_A_SMALL_DISK])
        .arg(directory)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|it| it.success())
}

#[test]
fn a_full_disk_is_said_and_the_last_commit_answers_until_there_is_room() {
    let disk = tempfile::tempdir().unwrap();
    if !may_mount(disk.path()) {
        println!("skipped: this machine lets nobody mount a small disk");
        return;
    }
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let data = disk.path().join("data");
    let remote = format!("file://{}", repository.text_path());
    let program = clade(&[]);
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", ON_A_SMALL_DISK])
        .arg(disk.path())
        .arg(program.get_program())
        .args(["serve", "--listen", "127.0.0.1:0", "--interval", "50ms", "--branch", "main"])
        .args(["--repo", &remote, "--data-dir", data.to_str().unwrap()])
        .current_dir(root());
    let daemon = Daemon::launch(command);
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

    // What was too much is taken back; the daemon goes on by itself.
    let git = repository.git();
    let first = git.find_object(first.parse().unwrap(), None).unwrap();
    git.reset(&first, git2::ResetType::Hard, None).unwrap();
    let small = repository.commit("small", &[("groups/c.yaml", &group("C"))]);
    wait_for(&daemon, &small);
    assert!(!conditions(&daemon).iter().any(|(_, reason)| reason == "DiskFull"));
}
