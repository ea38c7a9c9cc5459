//! Writes to a repository in place whose branch is checked out in a working tree.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{ROOT, create, has_git, post};
use crate::program::{Daemon, GitRepository};
use crate::table::each_row;

const A: &str = "name: A\nid: aaaaaaaa-0000-4000-8000-00000000000a\n";
const PATH: &str = "/v1/groups/aaaaaaaa-0000-4000-8000-00000000000a";

fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-C"]).arg(directory);
    let done = command.args(arguments).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// A repository with a working tree, and a daemon that writes to it.
fn repository() -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", A)]);
    git(&repository.path(), &["reset", "-q", "--hard"]);
    repository
}

fn serve(repository: &GitRepository, more: &[&str]) -> Daemon {
    let path = repository.text_path();
    Daemon::start(&[&["--repo", &path, "--writes", "commit"], more].concat())
}

fn describe(daemon: &Daemon, text: &str) -> crate::program::Response {
    post(daemon, PATH, &json!({"description": text}))
}

fn status(directory: &Path) -> String {
    git(directory, &["status", "--porcelain"])
}

#[test]
fn the_working_tree_follows() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let path = repository.path();
    std::fs::write(path.join("groups/own.txt"), "mine\n").unwrap();
    let daemon = serve(&repository, &[]);
    assert_eq!(describe(&daemon, "d").status, 200);
    let id = create(&daemon, &json!({"name": "B", "parent": ROOT, "classes": {}}));
    assert_eq!(status(&path), "?? groups/own.txt\n");
    assert!(path.join("groups/b.yaml").exists());
    assert_eq!(daemon.request("DELETE", &format!("/v1/groups/{id}"), "").status, 204);
    assert_eq!(status(&path), "?? groups/own.txt\n");
    assert!(!path.join("groups/b.yaml").exists());
}

#[test]
fn the_files_follow_a_branch_that_is_followed_by_another_name() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let path = repository.path();
    let branch = git(&path, &["symbolic-ref", "HEAD"]).trim().to_owned();
    git(&path, &["symbolic-ref", "refs/heads/now", &branch]);
    git(&path, &["symbolic-ref", "refs/heads/latest", "refs/heads/now"]);
    let daemon = serve(&repository, &["--branch", "latest"]);
    for (head, text) in [(&*branch, "d"), ("refs/heads/now", "e"), ("refs/heads/latest", "f")] {
        git(&path, &["symbolic-ref", "HEAD", head]);
        let written = describe(&daemon, text);
        assert_eq!(written.status, 200, "{head}: {}", written.body);
        assert_eq!(status(&path), "", "{head}");
    }
    assert_eq!(git(&path, &["symbolic-ref", "--no-recurse", "refs/heads/now"]).trim(), branch);
    assert_eq!(git(&path, &["rev-list", "--count", &branch]).trim(), "4");
}

#[test]
fn a_write_waits_for_a_running_git_and_is_refused_where_that_goes_on() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let (path, daemon) = (repository.path(), serve(&repository, &[]));
    let lock = path.join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let before = git(&path, &["rev-parse", "HEAD"]);
    let refused = describe(&daemon, "d");
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("index.lock"), "{}", refused.body);
    assert!(refused.header("Retry-After").is_some());
    assert_eq!(git(&path, &["rev-parse", "HEAD"]), before);
    // The commit that the write would have been is in no list.
    let listed = daemon.get("/controller/commits").json();
    let listed: Vec<&str> =
        listed.as_array().unwrap().iter().map(|it| it["commit"].as_str().unwrap()).collect();
    assert_eq!(listed, [before.trim()]);
    assert!(lock.exists(), "it belongs to the other process");
    let removed = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::fs::remove_file(lock).unwrap();
    });
    assert_eq!(describe(&daemon, "d").status, 200);
    removed.join().unwrap();
    assert_eq!(status(&path), "");
    // `git pack-refs` has the branch for a moment.
    let branch = git(&path, &["symbolic-ref", "HEAD"]);
    for name in [branch.trim(), "packed-refs"] {
        let lock = path.join(".git").join(format!("{name}.lock"));
        std::fs::write(&lock, "").unwrap();
        let removed = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            std::fs::remove_file(lock).unwrap();
        });
        let written = describe(&daemon, name);
        assert_eq!(written.status, 200, "{name}: {}", written.body);
        removed.join().unwrap();
    }
}

#[test]
fn a_linked_working_tree_follows_its_branch() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let path = repository.path();
    let linked = tempfile::tempdir().unwrap();
    let linked = linked.path().join("linked");
    let branch = git(&path, &["symbolic-ref", "--short", "HEAD"]).trim().to_owned();
    git(&path, &["checkout", "-q", "-b", "trunk"]);
    git(&path, &["worktree", "add", "-q", linked.to_str().unwrap(), &branch]);
    // One of another branch need not be one that can be opened.
    let broken = linked.with_file_name("broken");
    git(&path, &["worktree", "add", "-q", "-b", "side", broken.to_str().unwrap()]);
    std::fs::write(broken.join(".git"), "garbage\n").unwrap();
    let daemon = serve(&repository, &["--branch", &branch]);
    assert_eq!(describe(&daemon, "d").status, 200);
    assert_eq!((status(&path), status(&linked)), (String::new(), String::new()));
    let read = |root: &Path| std::fs::read_to_string(root.join("groups/a.yaml")).unwrap();
    assert!(read(&linked).contains("description: d") && !read(&path).contains("description"));
    std::fs::write(linked.join("groups/a.yaml"), "mine\n").unwrap();
    let refused = describe(&daemon, "e");
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert_eq!(read(&linked), "mine\n");
}

#[test]
fn a_git_directory_elsewhere_has_its_working_tree() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    let elsewhere = directory.path().join("deep/git");
    std::fs::create_dir(directory.path().join("deep")).unwrap();
    let path = repository.path();
    let elsewhere_option = format!("--separate-git-dir={}", elsewhere.display());
    git(&path, &["clone", "-q", &elsewhere_option, ".", tree.to_str().unwrap()]);
    let daemon = Daemon::start(&["--repo", tree.to_str().unwrap(), "--writes", "commit"]);
    create(&daemon, &json!({"name": "B", "parent": ROOT, "classes": {}}));
    assert_eq!(describe(&daemon, "d").status, 200);
    assert!(tree.join("groups/b.yaml").exists() && !directory.path().join("deep/groups").exists());
    assert_eq!(status(&tree), "");
}

#[test]
fn a_branch_that_is_rebased_or_switched_to_is_not_moved() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let path = repository.path();
    let branch = git(&path, &["symbolic-ref", "HEAD"]).trim().to_owned();
    let daemon = serve(&repository, &["--branch", &branch]);
    git(&path, &["checkout", "-q", "--detach"]);
    let rebase = path.join(".git/rebase-merge");
    std::fs::create_dir(&rebase).unwrap();
    std::fs::write(rebase.join("head-name"), format!("{branch}\n")).unwrap();
    let before = git(&path, &["rev-parse", &branch]);
    let refused = describe(&daemon, "d");
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("is being rebased"), "{}", refused.body);
    std::fs::remove_dir_all(&rebase).unwrap();
    // As while git switches to the branch: it has the index, and then moves HEAD.
    let lock = path.join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let refused = describe(&daemon, "d");
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("index.lock"), "{}", refused.body);
    assert_eq!(git(&path, &["rev-parse", &branch]), before);
    let (head, then) = (path.join(".git/HEAD"), format!("ref: {branch}\n"));
    let switched = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::fs::write(head, then).unwrap();
        std::fs::remove_file(lock).unwrap();
    });
    assert_eq!(describe(&daemon, "d").status, 200);
    switched.join().unwrap();
    assert_eq!(status(&path), "");
    // And while it switches away from it.
    let lock = path.join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let head = path.join(".git/HEAD");
    let switched = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::fs::write(head, "ref: refs/heads/other\n").unwrap();
        std::fs::remove_file(lock).unwrap();
    });
    git(&path, &["branch", "other"]);
    assert_eq!(describe(&daemon, "e").status, 200);
    switched.join().unwrap();
    assert_eq!(status(&path), "", "nothing is staged on the other branch");
}

#[test]
fn a_working_tree_that_is_not_there_keeps_its_branch() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let path = repository.path();
    let branch = git(&path, &["symbolic-ref", "--short", "HEAD"]).trim().to_owned();
    let linked = tempfile::tempdir().unwrap();
    git(&path, &["checkout", "-q", "--detach"]);
    let tree = linked.path().join("tree");
    git(&path, &["worktree", "add", "-q", tree.to_str().unwrap(), &branch]);
    let daemon = serve(&repository, &["--branch", &branch]);
    std::fs::rename(&tree, linked.path().join("moved")).unwrap();
    let refused = describe(&daemon, "d");
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("git worktree repair"), "{}", refused.body);
    std::fs::rename(linked.path().join("moved"), &tree).unwrap();
    assert_eq!(describe(&daemon, "d").status, 200);
    assert_eq!(status(&tree), "");
}

#[test]
fn what_is_not_committed_is_not_lost() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let (path, daemon) = (repository.path(), serve(&repository, &[]));
    let file = path.join("groups/a.yaml");
    let b = json!({"name": "B", "parent": ROOT, "classes": {}});
    let refuses = |why: &str, expected: &str| {
        let refused = describe(&daemon, "d");
        assert_eq!(refused.status, 403, "{why}: {}", refused.body);
        assert!(refused.body.contains("not committed"), "{why}: {}", refused.body);
        assert_eq!(status(&path), expected, "{why}");
    };
    std::fs::write(&file, "mine\n").unwrap();
    refuses("an edit", " M groups/a.yaml\n");
    git(&path, &["add", "."]);
    refuses("a staged edit", "M  groups/a.yaml\n");
    git(&path, &["reset", "-q", "--hard"]);
    std::fs::remove_file(&file).unwrap();
    refuses("a deletion", " D groups/a.yaml\n");
    git(&path, &["rm", "-q", "groups/a.yaml"]);
    refuses("a staged deletion", "D  groups/a.yaml\n");
    git(&path, &["reset", "-q", "--hard"]);
    assert_eq!(describe(&daemon, "once").status, 200);
    std::fs::write(path.join("groups/b.yaml"), "mine\n").unwrap();
    let refused = post(&daemon, "/v1/groups", &b);
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert_eq!(std::fs::read_to_string(path.join("groups/b.yaml")).unwrap(), "mine\n");
    std::fs::remove_file(path.join("groups/b.yaml")).unwrap();
    assert_eq!(post(&daemon, "/v1/groups", &b).status, 303);
    assert_eq!(status(&path), "");
}

#[test]
fn what_a_killed_daemon_left_is_put_right() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let path = repository.path();
    let branch = git(&path, &["symbolic-ref", "HEAD"]).trim().to_owned();
    let first = git(&path, &["rev-parse", "HEAD"]).trim().to_owned();
    let files = [("groups/a.yaml", "name: A2\n"), ("groups/b.yaml", "name: B\n")];
    for (name, text) in files {
        std::fs::write(path.join(name), text).unwrap();
    }
    git(&path, &["add", "."]);
    git(&path, &["commit", "-q", "-m", "second"]);
    let second = git(&path, &["rev-parse", "HEAD"]).trim().to_owned();
    let place = path.join(".git");
    let [lock, copied, written, moved] =
        ["index.lock", "index.clade.lock", "clade-write.lock", &format!("{branch}.lock")]
            .map(|it| place.join(it));
    let mark = format!("clade {branch} {first} {second}\n");
    // Files and index are of one commit, the branch may be at the other, and a file may be half written.
    for (head, left, torn) in [
        (&first, String::new(), "name: A2\n"),
        (&first, format!("{second}\n"), "name:"),
        (&second, String::new(), ""),
    ] {
        git(&path, &["reset", "-q", "--hard", &second]);
        git(&path, &["update-ref", &branch, head]);
        std::fs::write(path.join("groups/a.yaml"), torn).unwrap();
        for (file, text) in [(&lock, &mark), (&copied, &String::new()), (&moved, &left)] {
            std::fs::write(file, text).unwrap();
        }
        let daemon = serve(&repository, &[]);
        daemon.wait_until("it is put right", |_| !lock.exists());
        assert_eq!(status(&path), "");
        assert_eq!(&git(&path, &["rev-parse", "HEAD"]).trim(), head);
        let b = json!({"name": "C", "parent": ROOT, "classes": {}});
        assert_eq!(post(&daemon, "/v1/groups", &b).status, 303);
    }
    // Where the branch is not checked out, only it is locked.
    let head = git(&path, &["rev-parse", "HEAD"]).trim().to_owned();
    git(&path, &["checkout", "-q", "--detach"]);
    for (file, text) in [(&written, mark.clone()), (&moved, format!("{second}\n"))] {
        std::fs::write(file, text).unwrap();
    }
    let daemon = serve(&repository, &["--branch", &branch]);
    daemon.wait_until("it is put right", |_| !written.exists());
    let id = create(&daemon, &json!({"name": "D", "parent": ROOT, "classes": {}}));
    // A lock of another process stays, and the client learns which.
    std::fs::write(&written, "").unwrap();
    let refused = daemon.request("DELETE", &format!("/v1/groups/{id}"), "");
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("clade-write.lock"), "{}", refused.body);
    assert!(written.exists() && status(&path).is_empty());
    assert_eq!(git(&path, &["rev-parse", "HEAD"]).trim(), head);
}

/// Whenever a daemon is killed, the next commit of the owner undoes no write.
#[test]
fn a_killed_daemon_leaves_no_write_reversed() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let path = repository.path();
    for number in 0..8_u64 {
        let daemon = serve(&repository, &[]);
        let described = describe(&daemon, &format!("before {number}"));
        assert_eq!(described.status, 200, "{number}: {}", described.body);
        let (address, text) = (daemon.address().to_owned(), format!("killed {number}"));
        let asked = std::thread::spawn(move || {
            let daemon = Daemon::at(&address);
            let body = json!({"description": text}).to_string();
            daemon.try_request("POST", PATH, &body)
        });
        std::thread::sleep(std::time::Duration::from_millis(3 * number));
        daemon.kill();
        asked.join().ok();
        let lock = path.join(".git/index.lock");
        let restarted = serve(&repository, &[]);
        restarted.wait_until("it is put right", |_| !lock.exists());
        assert_eq!(status(&path), "", "{number}");
        drop(restarted);
    }
}

#[test]
fn what_is_checked_out_later_is_not_deployed() {
    if !has_git() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    for more in [&[][..], &["--data-dir", data.path().to_str().unwrap()]] {
        let repository = repository();
        let path = repository.path();
        let main = git(&path, &["symbolic-ref", "--short", "HEAD"]).trim().to_owned();
        let head = || git(&path, &["rev-parse", "HEAD"]).trim().to_owned();
        let usual = ["--repo", &repository.text_path(), "--interval", "200ms"];
        let daemon = Daemon::start(&[&usual, more].concat());
        let live =
            |daemon: &Daemon| daemon.get("/v1/groups").header("X-Clade-Commit").map(str::to_owned);
        let first = head();
        git(&path, &["checkout", "-q", "-b", "try"]);
        std::fs::write(path.join("groups/a.yaml"), format!("{A}description: try\n")).unwrap();
        git(&path, &["commit", "-q", "-a", "-m", "try"]);
        let fetched = daemon.get("/controller/status").json()["remote"]["last_contact"].clone();
        daemon.wait_until("another fetch", |it| {
            it.get("/controller/status").json()["remote"]["last_contact"] != fetched
        });
        let status = daemon.get("/controller/status").json();
        assert_eq!(live(&daemon), Some(first), "{status}");
        assert_eq!(status["repository"]["branch"], json!(main));
        git(&path, &["checkout", "-q", &main]);
        std::fs::write(path.join("groups/a.yaml"), format!("{A}description: main\n")).unwrap();
        git(&path, &["commit", "-q", "-a", "-m", "main"]);
        let second = head();
        daemon.wait_until("the branch is followed", |it| live(it).as_deref() == Some(&second));
        // It stays so where the branch is gone.
        git(&path, &["branch", "-q", "-m", &main, "trunk"]);
        daemon.wait_until("the branch is missing", |it| {
            it.get("/controller/status").body.contains("choose one with `--branch`")
        });
        assert_eq!(live(&daemon), Some(second));
    }
}

#[test]
fn pipes_that_git_would_read_keep_no_write_waiting() {
    if !has_git() {
        return;
    }
    let repository = repository();
    let path = repository.path();
    let daemon = serve(&repository, &[]);
    for name in [
        ".gitattributes",
        "groups/.gitattributes",
        "groups/.gitignore",
        ".git/logs/refs/heads/main",
    ] {
        let (pipe, aside) = (path.join(name), path.join(".git/aside"));
        std::fs::rename(&pipe, &aside).ok();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success(), "{name}");
        let refused = describe(&daemon, name);
        assert_eq!(refused.status, 503, "{name}: {}", refused.body);
        assert!(refused.body.contains(name), "{name}: {}", refused.body);
        std::fs::remove_file(&pipe).unwrap();
        std::fs::rename(&aside, &pipe).ok();
        assert_eq!(status(&path), "", "{name}");
        assert_eq!(describe(&daemon, name).status, 200, "{name}");
    }
}

/// git would write other bytes than libgit2, so its next status would show a change or fail.
#[test]
fn files_that_only_git_can_write_are_refused() {
    if !has_git() {
        return;
    }
    let wide = "working-tree-encoding=UTF-16LE-BOM";
    let rows = [
        (".gitattributes", format!("*.yaml text {wide}\n"), Some(wide)),
        ("groups/.gitattributes", format!("*.yaml text {wide}\n"), Some(wide)),
        (".git/info/attributes", format!("*.yaml {wide}\n"), Some(wide)),
        (".gitattributes", format!("[attr]wide {wide}\n*.yaml wide\n"), Some(wide)),
        (".gitattributes", "*.yaml filter=caps\n".to_owned(), Some("filter=caps")),
        (".gitattributes", "*.yaml working-tree-encoding=utf-8\n".to_owned(), None),
        (".gitattributes", "*.yaml text eol=crlf -filter\n".to_owned(), None),
        (".gitattributes", "*.yaml ident\n".to_owned(), None),
        (".gitattributes", format!("*.yml {wide}\n"), None),
    ];
    each_row(rows, |(place, attributes, refused)| {
        let repository = repository();
        let path = repository.path();
        git(&path, &["config", "filter.caps.clean", "cat"]);
        git(&path, &["config", "filter.caps.smudge", "cat"]);
        std::fs::create_dir_all(path.join(".git/info")).unwrap();
        std::fs::write(path.join(place), attributes).unwrap();
        std::fs::remove_file(path.join("groups/a.yaml")).unwrap();
        git(&path, &["checkout", "-q", "--", "groups/a.yaml"]);
        git(&path, &["add", "."]);
        git(&path, &["commit", "-q", "--allow-empty", "-m", "attributes"]);
        let before = git(&path, &["rev-parse", "HEAD"]);
        let daemon = serve(&repository, &[]);
        let b = json!({"name": "B", "parent": ROOT, "classes": {}});
        let written = [describe(&daemon, "d"), post(&daemon, "/v1/groups", &b)];
        assert_eq!(status(&path), "");
        let Some(attribute) = refused else {
            assert_eq!(written.each_ref().map(|it| it.status), [200, 303], "{}", written[0].body);
            return;
        };
        for (answer, file) in written.iter().zip(["groups/a.yaml", "groups/b.yaml"]) {
            assert_eq!(answer.status, 403, "{}", answer.body);
            assert!(answer.body.contains(attribute), "{}", answer.body);
            assert!(answer.body.contains(file), "{}", answer.body);
        }
        assert_eq!(git(&path, &["rev-parse", "HEAD"]), before);
        assert!(!path.join("groups/b.yaml").exists());
    });
}
