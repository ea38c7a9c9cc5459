//! Objects on disk that are damaged, and disks that take none.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::remotes::{add_malformed, serve_file_url};
use super::{Hub, ROOT, create, has_git, post};
use crate::controller::storage::{may_mount, on_a_small_disk};
use crate::follow::conditions;
use crate::git::server::{Server, http_backend};
use crate::program::{Daemon, clade, run, serve, started_by};

const A: &str = "name: A\nid: aaaaaaaa-0000-4000-8000-00000000000a\n";

fn file_of(objects: &Path, id: git2::Oid) -> PathBuf {
    let id = id.to_string();
    objects.join(&id[..2]).join(&id[2..])
}

/// Cuts the file of an object short.
fn cut(objects: &Path, id: git2::Oid) {
    use std::os::unix::fs::PermissionsExt as _;

    let file = file_of(objects, id);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() * 2 / 3]).unwrap();
}

/// The commit of a hub, its tree, that of `groups`, and the file of a group.
fn objects_of(hub: &Hub, file: &str) -> Vec<git2::Oid> {
    let tree = hub.head().unwrap().tree().unwrap();
    let of = |path: &str| tree.get_path(Path::new(path)).unwrap().id();
    vec![hub.head_id().parse().unwrap(), tree.id(), of("groups"), of(file)]
}

fn objects(hub: &Hub) -> PathBuf {
    hub.directory.path().join("data/mirror.git/objects")
}

#[test]
fn damaged_objects_of_the_mirror_are_fetched_again_after_a_restart() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    // Each object in turn: those of a write have a file each.
    for number in 0..4 {
        let daemon = hub.serve(&[]);
        daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
        let name = format!("N{number}");
        create(&daemon, &json!({"name": name, "parent": ROOT, "classes": {}}));
        assert_eq!(daemon.terminate(), 0);
        cut(&objects(&hub), objects_of(&hub, &format!("groups/n{number}.yaml"))[number]);
        let daemon = hub.serve(&[]);
        daemon.wait_until("the commit answers", |it| {
            let groups = it.get("/v1/groups");
            groups.status == 200 && groups.body.contains(&name)
        });
    }
}

#[test]
fn a_write_that_meets_damaged_objects_is_done_when_they_are_fetched_again() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let daemon = hub.serve(&["--interval", "1h"]);
    daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
    let id = create(&daemon, &json!({"name": "B", "parent": ROOT, "classes": {}}));
    for number in 0..4 {
        let said = format!("said {number}");
        // Those of the write before have a file each. What stands in one is not written over, though it cannot be read.
        cut(&objects(&hub), objects_of(&hub, "groups/b.yaml")[number]);
        let edited = post(&daemon, &format!("/v1/groups/{id}"), &json!({"description": said}));
        assert_eq!(edited.status, 200, "{number}: {}", edited.body);
        let text = hub.show("groups/b.yaml").unwrap();
        assert!(text.contains("name: B") && text.contains(&said), "{number}: {text}");
    }
}

#[test]
fn damage_that_cannot_be_fetched_again_is_an_error_and_a_condition() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let objects_in_place = hub.path().join("objects");
    let daemon = Daemon::start(&["--repo", &hub.text_path(), "--writes", "commit"]);
    let id = create(&daemon, &json!({"name": "B", "parent": ROOT, "classes": {}}));
    cut(&objects_in_place, objects_of(&hub, "groups/b.yaml")[3]);
    let edited = post(&daemon, &format!("/v1/groups/{id}"), &json!({"description": "d"}));
    assert_eq!(edited.status, 503, "{}", edited.body);
    assert_eq!(edited.json()["kind"], "storage-failed");
    assert!(edited.body.contains("is damaged: it is cut short"), "{}", edited.body);
    assert_eq!(daemon.get("/v1/groups").status, 200);
    // A damaged head is not a branch that is missing.
    cut(&objects_in_place, hub.head_id().parse().unwrap());
    daemon.request("POST", "/controller/reconcile", "");
    daemon.wait_until("the damage is said", |it| {
        let conditions = it.get("/controller/status").json()["conditions"].to_string();
        conditions.contains("FetchFailed") && conditions.contains("CorruptObjects")
    });
    let validated = run(&["validate", &hub.text_path(), "--rev", "HEAD"]);
    assert_ne!(validated.status, 0);
}

#[test]
fn a_commit_in_place_is_built_when_its_objects_are_restored() {
    let damages: [fn(&Path, git2::Oid); 2] =
        [cut, |objects, id| std::fs::remove_file(file_of(objects, id)).unwrap()];
    for damage in damages {
        let hub = Hub::new(&[("groups/a.yaml", A)]);
        let daemon = Daemon::start(&["--repo", &hub.text_path(), "--interval", "1h"]);
        daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
        let objects = hub.path().join("objects");
        // Each object that the commit needs, with the next commit damaged after the one before was restored.
        for number in 1..4 {
            let head = hub.commit("next", &[("groups/b.yaml", &format!("name: B{number}\n"))]);
            let object = objects_of(&hub, "groups/b.yaml")[number];
            let bytes = std::fs::read(file_of(&objects, object)).unwrap();
            damage(&objects, object);
            for _ in 0..2 {
                fetch(&daemon);
                daemon.wait_until("the commit is rejected", |it| {
                    let status = it.get("/controller/status").json();
                    let failed = &status["last_failed"];
                    failed["commit"] == *head && failed["stage"] == "load"
                });
            }
            std::fs::remove_file(file_of(&objects, object)).ok();
            std::fs::write(file_of(&objects, object), bytes).unwrap();
            fetch(&daemon);
            daemon.wait_until("the commit answers", |it| {
                it.get("/v1/groups").header("X-Clade-Commit") == Some(&head)
            });
            daemon.wait_until("nothing is wrong any more", |it| {
                it.get("/controller/status").json()["last_failed"] == Value::Null
            });
        }
    }
}

/// Has the branch fetched, and waits until it was: a fetch that is still to come would find the next commit before it is
/// damaged.
fn fetch(daemon: &Daemon) {
    let fetches = |it: &Daemon| -> u64 {
        let metrics = it.get("/metrics").body;
        let manual = "clade_source_fetches_total{trigger=\"manual\"";
        let counts = metrics.lines().filter(|it| it.starts_with(manual));
        counts.map(|it| it.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    let before = fetches(daemon);
    assert_eq!(daemon.request("POST", "/controller/reconcile", "").status, 202);
    daemon.wait_until("the branch was fetched", |it| fetches(it) > before);
}

#[test]
fn a_repository_that_is_gone_keeps_the_live_commit_answering_and_nothing_else() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let daemon = Daemon::start(&["--repo", &hub.text_path(), "--writes", "commit"]);
    create(&daemon, &json!({"name": "B", "parent": ROOT, "classes": {}}));
    let first = hub.head().unwrap().parent_id(0).unwrap();
    std::fs::rename(hub.path().join("objects"), hub.path().join("elsewhere")).unwrap();
    assert_eq!(daemon.get("/v1/groups").status, 200);
    let classified = daemon.request("POST", "/v2/classified/nodes/web1", "{}");
    assert_eq!(classified.status, 200, "{}", classified.body);
    let read = [
        format!("/v1/groups?commit={first}"),
        "/controller/commits".to_owned(),
        "/v1/groups?commit=main".to_owned(),
        format!("/controller/diff/{first}/{first}"),
        "/controller/nodes/web1/blame".to_owned(),
    ];
    let answers = read.iter().map(|it| (it.as_str(), daemon.get(it)));
    let body = json!({"name": "C", "parent": ROOT, "classes": {}});
    for (what, answer) in answers.chain([("a write", post(&daemon, "/v1/groups", &body))]) {
        let kind = answer.json()["kind"].clone();
        assert_eq!(
            (answer.status, kind),
            (503, "storage-failed".into()),
            "{what}: {}",
            answer.body
        );
    }
    std::fs::rename(hub.path().join("elsewhere"), hub.path().join("objects")).unwrap();
    for path in read {
        assert_eq!(daemon.get(&path).status, 200, "{path}");
    }
}

#[test]
fn a_damaged_commit_is_not_one_that_is_missing_and_is_fetched_again() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let daemon = hub.serve(&["--interval", "1h"]);
    daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
    let write =
        |name: String| create(&daemon, &json!({"name": name, "parent": ROOT, "classes": {}}));
    for what in ["a parameter", "a short id", "a header"] {
        write(format!("Before {what}"));
        let older = hub.head_id();
        write(format!("After {what}"));
        let header = format!("X-Clade-Commit: {older}\r\n");
        let ask = |it: &Daemon| match what {
            "a parameter" => it.get(&format!("/v1/groups?commit={older}")),
            "a short id" => it.get(&format!("/v1/groups?commit={}", &older[..12])),
            _ => it.request_with("GET", "/v1/groups", &header, ""),
        };
        assert_eq!(ask(&daemon).status, 200, "{what}");
        cut(&objects(&hub), older.parse().unwrap());
        let asked = ask(&daemon);
        assert_eq!(asked.status, 503, "{what}: {}", asked.body);
        assert_eq!(asked.json()["kind"], "storage-failed", "{what}");
        assert!(asked.body.contains("is damaged: it is cut short"), "{what}: {}", asked.body);
        daemon.wait_until("the commit is fetched again", |it| ask(it).status == 200);
        // What read the old mirror just then has everything fetched once more, into packs.
        let is_mended = |it: &Daemon| !conditions(it).iter().any(|(_, it)| it == "CorruptObjects");
        daemon.wait_until("nothing is damaged", is_mended);
    }
}

/// Cuts each object short that has a file of its own.
fn cut_all(objects: &Path) {
    let paths = |directory: &Path| {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|it| it.unwrap().path()).collect::<Vec<_>>()
    };
    let is_loose = |it: &PathBuf| it.file_name().unwrap().len() == 2;
    for file in paths(objects).into_iter().filter(is_loose).flat_map(|it| paths(&it)) {
        let id = file.strip_prefix(objects).unwrap().to_str().unwrap().replace('/', "");
        cut(objects, id.parse().unwrap());
    }
}

#[test]
fn damage_that_a_push_meets_is_mended_before_the_next_poll() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let (directory, data) = (hub.path().parent().unwrap().to_owned(), tempfile::tempdir().unwrap());
    let objects = data.path().join("mirror.git/objects");
    let is_damaging = Arc::new(AtomicBool::new(false));
    let damages = Arc::clone(&is_damaging);
    let server = Server::http(move |request| {
        // What a write made, and its push has not read yet.
        if request.target.contains("git-receive-pack") && damages.swap(false, Ordering::SeqCst) {
            cut_all(&objects);
        }
        http_backend(&directory, request)
    });
    let url = format!("http://127.0.0.1:{}/hub.git", server.port);
    let directory = data.path().to_str().unwrap();
    let follow = ["--repo", &url, "--data-dir", directory, "--branch", "main", "--interval", "1h"];
    let more = ["--writes", "commit", "--allow-insecure-remotes", "--git-proxy", "none"];
    let daemon = Daemon::launch(serve(&[&follow[..], &more].concat()));
    daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
    is_damaging.store(true, Ordering::SeqCst);
    let b = json!({"name": "B", "parent": ROOT, "classes": {}});
    let failed = post(&daemon, "/v1/groups", &b);
    assert_eq!(failed.status, 503, "{}", failed.body);
    assert!(failed.body.contains("is damaged"), "{}", failed.body);
    let aside = data.path().join("mirror.git.broken");
    daemon.wait_until("everything is fetched again", |_| aside.exists());
    assert_eq!(post(&daemon, "/v1/groups", &b).status, 303);
}

/// Fills a small disk until nothing fits.
const FILL: &str = r#"cat /dev/zero > "$0/full" 2>/dev/null; true"#;

#[test]
fn a_full_disk_of_the_mirror_is_a_condition_and_writes_go_on_when_there_is_room() {
    let disk = tempfile::tempdir().unwrap();
    if !may_mount(disk.path()) {
        println!("skipped: this machine does not allow to mount a small disk");
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let data = disk.path().join("data");
    let (path, data) = (hub.text_path(), data.to_str().unwrap());
    let program = serve(&["--repo", &path, "--data-dir", data, "--writes", "commit"]);
    let daemon = Daemon::launch(started_by(on_a_small_disk(disk.path()), &program));
    daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
    let enter = |script: &str| {
        let done = std::process::Command::new("nsenter")
            .args(["-U", "-m", "--preserve-credentials", "-t", &daemon.id().to_string()])
            .args(["sh", "-c", script])
            .arg(disk.path())
            .status();
        assert!(done.unwrap().success());
    };
    enter(FILL);
    let b = json!({"name": "B", "parent": ROOT, "classes": {}});
    let refused = post(&daemon, "/v1/groups", &b);
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert_eq!(refused.json()["kind"], "storage-failed", "{}", refused.body);
    let has_failed = |it: &Daemon| {
        let conditions = it.get("/controller/status").json()["conditions"].to_string();
        conditions.contains("StorageFailed") && conditions.contains("DiskFull")
    };
    daemon.wait_until("the status says so", has_failed);
    enter(r#"rm "$0/full""#);
    daemon.wait_until("there is room", |it| !has_failed(it));
    assert_eq!(post(&daemon, "/v1/groups", &b).status, 303);
}

#[test]
fn a_remote_that_cannot_write_now_is_asked_again() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let daemon = hub.serve(&[]);
    daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
    let lock = hub.path().join("refs/heads/main.lock");
    std::fs::write(&lock, "").unwrap();
    let b = json!({"name": "B", "parent": ROOT, "classes": {}});
    let refused = post(&daemon, "/v1/groups", &b);
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.header("Retry-After").is_some());
    assert!(refused.body.contains("main.lock"), "{}", refused.body);
    std::fs::remove_file(lock).unwrap();
    assert_eq!(post(&daemon, "/v1/groups", &b).status, 303);
}

#[test]
fn a_command_ends_where_objects_are_damaged() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let path = hub.text_path();
    assert_eq!(run(&["validate", &path, "--rev", "HEAD"]).status, 0);
    for object in objects_of(&hub, "groups/a.yaml") {
        cut(&hub.path().join("objects"), object);
        let mut command = clade(&["validate", &path, "--rev", "HEAD"]);
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let ended = (0..600).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            child.try_wait().unwrap()
        });
        child.kill().ok();
        assert!(!ended.expect("it hangs").success());
    }
}

/// A push from a history with a malformed commit needs a directory for a while.
#[test]
fn a_malformed_history_is_written_where_there_is_no_temporary_directory() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    add_malformed(&hub);
    let directory = hub.path().parent().unwrap().to_owned();
    let server = Server::http(move |request| http_backend(&directory, request));
    let url = format!("http://127.0.0.1:{}/hub.git", server.port);
    let data = tempfile::tempdir().unwrap();
    let mut command = serve_file_url(&url, &data, "main");
    command.args(["--allow-insecure-remotes", "--git-proxy", "none"]);
    command.env("TMPDIR", "/absent/absent");
    let daemon = Daemon::launch(command);
    create(&daemon, &json!({"name": "M", "parent": ROOT, "classes": {}}));
    let falls_back = |it: &Daemon| it.log_lines().iter().any(|it| it.contains("/absent/absent"));
    daemon.wait_until("another directory is taken", falls_back);
    let mirror = std::fs::read_dir(data.path().join("mirror.git")).unwrap();
    let mut directories = mirror.map(|it| it.unwrap().path()).filter(|it| it.is_dir());
    let left =
        directories.find(|it| it.file_name().unwrap().to_string_lossy().starts_with("clade"));
    assert_eq!(left, None);
}
