//! Which commit answers: pins, writes, resumes and clocks, and acknowledgements before a crash.

mod signatures;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{Daemon, GitRepository, Response, serve, started_by};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "activation::pin-on-a-full-disk",
        promise: "a pin that cannot be written is a 503 and changes nothing; it works when space is free again",
        injection: "a file that fills the file system of the data directory, then kill -9",
        speed: Speed::Fast,
        run: pin_on_a_full_disk,
    },
    Fault {
        name: "activation::pin-without-a-data-directory",
        promise: "a pin that was acknowledged holds after a crash",
        injection: "the data directory is deleted, a pin, kill -9",
        speed: Speed::Fast,
        run: pin_without_a_data_directory,
    },
    Fault {
        name: "activation::pin-without-its-journal",
        promise: "a pin holds, and one that was ended stays ended, whatever becomes of the journal",
        injection: "kill -9; the journal emptied, deleted, cut before the pin or resume, damaged in it, naming another commit in it",
        speed: Speed::Fast,
        run: pin_without_its_journal,
    },
    Fault {
        name: "activation::pin-during-a-write",
        promise: "a pin wins over a write that is being pushed, and the writer gets a conflict",
        injection: "a pre-receive hook that waits, and a pin meanwhile",
        speed: Speed::Fast,
        run: pin_during_a_write,
    },
    Fault {
        name: "activation::clock-ahead-for-one-commit",
        promise: "`?at=` answers from the commit that was live when the clock showed that time",
        injection: "the clock a day ahead, a commit, the clock right again, a commit (libfaketime)",
        speed: Speed::Fast,
        run: clock_ahead_for_one_commit,
    },
    Fault {
        name: "activation::resume-without-the-remote",
        promise: "after a restart, `resume` goes to the newest commit that the mirror has",
        injection: "a pin, newer commits, the remote gone, a restart, a resume",
        speed: Speed::Fast,
        run: resume_without_the_remote,
    },
    Fault {
        name: "activation::resume-to-an-invalid-head",
        promise: "`resume` goes to the newest valid commit",
        injection: "a pin, a good commit, a commit that is not valid, a resume",
        speed: Speed::Fast,
        run: resume_to_an_invalid_head,
    },
    Fault {
        name: "activation::branch-called-head",
        promise: "`HEAD` is the watched branch in `?commit=` and in a pin",
        injection: "a remote with branches called `HEAD`, `@` and `refs/clade/live`",
        speed: Speed::Fast,
        run: branch_called_head,
    },
    Fault {
        name: "activation::rewrite-while-the-mirror-was-lost",
        promise: "`--on-rewrite hold` holds a rewritten branch though the mirror was lost",
        injection: "the mirror deleted and the journal kept, a forced push, a restart",
        speed: Speed::Fast,
        run: rewrite_while_the_mirror_was_lost,
    },
    Fault {
        name: "activation::rewrite-of-a-pinned-branch",
        promise: "the status says `HistoryRewritten` while a commit is pinned, also after a restart without the remote",
        injection: "a pin, a forced push, a push on top of it, the remote gone, a restart",
        speed: Speed::Fast,
        run: rewrite_of_a_pinned_branch,
    },
    Fault {
        name: "activation::stricter-settings-without-the-remote",
        promise: "the head seen last is known after a restart although nothing answers, and the status says why nothing does",
        injection: "a smaller `--commit-budget`, the remote gone, a restart",
        speed: Speed::Fast,
        run: stricter_settings_without_the_remote,
    },
    signatures::UNSIGNED_ASKED_FOR,
    signatures::UNSIGNED_AT_THE_START,
    signatures::UNSIGNED_BEHIND_MERGES,
    signatures::EXPIRED_KEY_BACKDATED,
    signatures::OLDER_SIGNED_COMMIT,
];

fn group(name: &str) -> String {
    format!("name: {name}\n")
}

fn live(daemon: &Daemon) -> Option<String> {
    daemon.get("/v1/groups").header("X-Clade-Commit").map(str::to_owned)
}

fn wait_for(daemon: &Daemon, commit: &str) {
    daemon.wait_until("the commit answers", |it| live(it).as_deref() == Some(commit));
}

fn pin(daemon: &Daemon, revision: &str) -> Response {
    daemon.request("POST", "/controller/pin", &json!({"commit": revision}).to_string())
}

fn resume(daemon: &Daemon) {
    assert_eq!(daemon.request("POST", "/controller/resume", "").status, 202);
}

fn condition(daemon: &Daemon, kind: &str) -> Option<Value> {
    let status = daemon.get("/controller/status").json();
    status["conditions"].as_array().unwrap().iter().find(|it| it["type"] == kind).cloned()
}

fn kind(answer: &Response) -> (u16, String) {
    (answer.status, answer.json()["kind"].as_str().unwrap_or_default().to_owned())
}

fn start(repository: &GitRepository, data: &Path, more: &[&str]) -> Daemon {
    let path = repository.text_path();
    let own = ["--repo", &path, "--data-dir", data.to_str().unwrap(), "--branch", "main"];
    Daemon::start(&[&own[..], more].concat())
}

/// A repository with two commits.
fn two() -> (GitRepository, String, String) {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    (repository, first, second)
}

/// Runs a program that has a small disk of its own at a directory, and leaves its process id beside it.
const ON_A_SMALL_DISK: &str =
    r#"echo $$ > "$0.pid" && mount -t tmpfs -o size=2m none "$0" && exec "$@""#;

fn pin_on_a_full_disk() -> Seen {
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let may_mount = Command::new("unshare")
        .args(["-rm", "sh", "-c", ON_A_SMALL_DISK])
        .arg(&disk)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !may_mount.is_ok_and(|it| it.success()) {
        return Seen::Skipped("unshare");
    }
    let (repository, first, second) = two();
    let mut small = Command::new("unshare");
    small.args(["-rm", "sh", "-c", ON_A_SMALL_DISK]).arg(&disk);
    let mut program = serve(&["--branch", "main", "--repo", &repository.text_path()]);
    program.arg("--data-dir").arg(disk.join("data"));
    let daemon = Daemon::launch(started_by(small, &program));
    wait_for(&daemon, &second);
    // Seen from here, the disk is below the root of that process.
    let process = std::fs::read_to_string(disk.with_extension("pid")).unwrap();
    let inside = format!("/proc/{}/root{}", process.trim(), disk.display());
    let filler = Path::new(&inside).join("filler");
    // The last page of the journal has room for a while: it is filled by what happens.
    let full = std::fs::write(&filler, vec![0; 4 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let mut acknowledged = first.clone();
    let mut refused = None;
    for round in 0..200 {
        let target = if round % 2 == 0 { &second } else { &first };
        let answer = pin(&daemon, target);
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
        acknowledged.clone_from(target);
    }
    let refused = refused.unwrap();
    assert_eq!(kind(&refused), (503, "storage-failed".to_owned()), "{}", refused.body);
    assert_eq!(live(&daemon), Some(acknowledged.clone()), "nothing is changed");
    assert_eq!(daemon.get("/controller/status").json()["pinned"], acknowledged.as_str());
    assert_eq!(kind(&daemon.request("POST", "/controller/resume", "")).0, 503);
    assert_eq!(daemon.get("/controller/status").json()["pinned"], acknowledged.as_str());
    assert_eq!(condition(&daemon, "StorageFailed").unwrap()["reason"], "DiskFull");
    std::fs::remove_file(&filler).unwrap();
    daemon.wait_until("the storage works again", |it| condition(it, "StorageFailed").is_none());
    assert_eq!(pin(&daemon, &first).status, 200);
    let journal = std::fs::read_to_string(Path::new(&inside).join("data/journal")).unwrap();
    let last = journal.lines().rev().find(|it| it.contains("\"pinned\"")).unwrap();
    assert!(last.contains(&first), "{last}");
    Seen::Held(
        "503 `storage-failed`, the pin before it stays; with room, the next is 200".to_owned(),
    )
}

/// What is done to a journal, to its last line of an event.
type Damage = fn(&Path, &str, &str);

const DAMAGES: [(&str, Damage); 5] = [
    ("emptied", |path, _, _| std::fs::write(path, "").unwrap()),
    ("deleted", |path, _, _| std::fs::remove_file(path).unwrap()),
    ("cut before it", |path, text, event| {
        std::fs::write(path, last_line_of(text, event).0).unwrap();
    }),
    ("damaged in it", |path, text, event| {
        let (before, line) = last_line_of(text, event);
        std::fs::write(path, before + &line.replace(event, "\0") + "\n").unwrap();
    }),
    ("naming another commit in it", |path, text, event| {
        let (before, line) = last_line_of(text, event);
        let line = match line.split_once("\"commit\":\"") {
            Some((head, rest)) => {
                format!("{head}\"commit\":\"{}{}", "7".repeat(40), rest.split_at(40).1)
            }
            None => line,
        };
        std::fs::write(path, before + &line + "\n").unwrap();
    }),
];

/// Returns the last line of an event, and the lines before it.
fn last_line_of(text: &str, event: &str) -> (String, String) {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().rposition(|it| it.contains(event)).unwrap();
    let before = lines.iter().take(at).flat_map(|it| [*it, "\n"]).collect();
    (before, lines[at].to_owned())
}

fn pin_without_its_journal() -> Seen {
    let (repository, first, second) = two();
    for (name, damage) in DAMAGES {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let journal = data.join("journal");
        let restarted = |daemon: Daemon, event: &str| {
            daemon.kill();
            damage(&journal, &std::fs::read_to_string(&journal).unwrap(), event);
            start(&repository, &data, &[]).kill();
            start(&repository, &data, &[])
        };
        let is_pinned = |daemon: &Daemon, to: Value| {
            assert_eq!(daemon.get("/controller/status").json()["pinned"], to, "{name}");
        };
        let daemon = start(&repository, &data, &[]);
        wait_for(&daemon, &second);
        assert_eq!(pin(&daemon, &second).status, 200);
        assert_eq!(pin(&daemon, &first).status, 200);
        let daemon = restarted(daemon, "\"pinned\"");
        wait_for(&daemon, &first);
        is_pinned(&daemon, json!(first));
        resume(&daemon);
        wait_for(&daemon, &second);
        let daemon = restarted(daemon, "\"resumed\"");
        is_pinned(&daemon, Value::Null);
        wait_for(&daemon, &second);
    }
    pin_of_another_repository();
    pin_of_a_lost_commit();
    Seen::Held(format!("{} damages: what an operator decided last stayed", DAMAGES.len()))
}

/// A pin of a commit that the repository does not have ends with its journal, and for good.
fn pin_of_another_repository() {
    let (repository, first, second) = two();
    let other = GitRepository::new();
    let head = other.commit("other", &[("groups/c.yaml", &group("C"))]);
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &second);
    assert_eq!(pin(&daemon, &first).status, 200);
    daemon.kill();
    std::fs::remove_file(data.join("journal")).unwrap();
    for (repository, expected) in [(&other, &head), (&repository, &second)] {
        let daemon = start(repository, &data, &[]);
        wait_for(&daemon, expected);
        assert_eq!(daemon.get("/controller/status").json()["pinned"], Value::Null);
        daemon.kill();
    }
}

/// A pin stays whose commit the mirror lost as well as the journal, until the commit is fetched again.
fn pin_of_a_lost_commit() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &first);
    let packs: Vec<_> = std::fs::read_dir(data.join("mirror.git/objects/pack"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "pack"))
        .collect();
    assert!(!packs.is_empty());
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    wait_for(&daemon, &second);
    assert_eq!(pin(&daemon, &first).status, 200);
    daemon.kill();
    std::fs::write(data.join("journal"), "").unwrap();
    for pack in packs {
        std::fs::remove_file(&pack).unwrap();
        std::fs::write(&pack, "PACK").unwrap();
    }
    let is_pinned = |daemon: &Daemon| {
        assert_eq!(daemon.get("/controller/status").json()["pinned"], first.as_str());
    };
    let away = repository.path().with_extension("away");
    std::fs::rename(repository.path(), &away).unwrap();
    for _ in 0..2 {
        let daemon = start(&repository, &data, &[]);
        daemon.wait_until("the fetch fails", |it| condition(it, "FetchFailed").is_some());
        assert_eq!(live(&daemon), None);
        is_pinned(&daemon);
        daemon.kill();
    }
    std::fs::rename(&away, repository.path()).unwrap();
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &first);
    is_pinned(&daemon);
    daemon.kill();
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &first);
    is_pinned(&daemon);
    resume(&daemon);
    wait_for(&daemon, &second);
}

fn pin_without_a_data_directory() -> Seen {
    let (repository, first, second) = two();
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &second);
    // The daemon may be writing into it.
    let gone = directory.path().join("gone");
    std::fs::rename(&data, &gone).unwrap();
    std::fs::remove_dir_all(&gone).ok();
    // Without its mirror the daemon has commits again once it has fetched them.
    daemon.wait_until("the pin is acknowledged", |it| pin(it, &first).status == 200);
    daemon.kill();
    let daemon = start(&repository, &data, &[]);
    wait_for(&daemon, &first);
    assert_eq!(daemon.get("/controller/status").json()["pinned"], first.as_str());
    let third = repository.commit("third", &[("groups/c.yaml", &group("C"))]);
    daemon.wait_until("the third commit is held", |it| condition(it, "PromotionHeld").is_some());
    assert_eq!(live(&daemon), Some(first));
    resume(&daemon);
    wait_for(&daemon, &third);
    Seen::Held(
        "the journal is written again in a new directory; the pin holds after the crash".to_owned(),
    )
}

fn hook(repository: &GitRepository, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;

    let path = repository.git().path().join("hooks/pre-receive");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn pin_during_a_write() -> Seen {
    let (repository, first, second) = two();
    repository.git().config().unwrap().set_str("receive.denyCurrentBranch", "ignore").unwrap();
    let signals = tempfile::tempdir().unwrap();
    let (reached, go) = (signals.path().join("reached"), signals.path().join("go"));
    hook(
        &repository,
        &format!(
            "touch {}\nn=0\nwhile [ ! -e {} ] && [ $n -lt 400 ]; do sleep 0.05; n=$((n+1)); done",
            reached.display(),
            go.display()
        ),
    );
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, data.path(), &["--writes", "commit"]);
    wait_for(&daemon, &second);
    let body =
        json!({"name": "N", "parent": "00000000-0000-4000-8000-000000000000", "classes": {}});
    let write = std::thread::spawn({
        let (daemon, body) = (Daemon::at(&daemon.address), body.to_string());
        move || daemon.request("POST", "/v1/groups", &body)
    });
    daemon.wait_until("the push is under way", |_| reached.exists());
    assert_eq!(pin(&daemon, &first).status, 200);
    std::fs::write(&go, "").unwrap();
    let told = write.join().unwrap();
    assert_eq!(kind(&told), (409, "write-conflict".to_owned()), "{}", told.body);
    let pushed = repository.git().refname_to_id("refs/heads/main").unwrap().to_string();
    let expected = json!({"commit": pushed, "pinned": first});
    assert_eq!(told.json()["details"], expected);
    let status = daemon.get("/controller/status").json();
    assert_eq!((&status["pinned"], &status["active"]["commit"]), (&json!(first), &json!(first)));
    assert_eq!(live(&daemon), Some(first));
    assert!(condition(&daemon, "PromotionHeld").is_some());
    resume(&daemon);
    wait_for(&daemon, &pushed);
    // The same request again finds its change.
    assert_eq!(daemon.request("POST", "/v1/groups", &body.to_string()).status, 303);
    assert_eq!(repository.git().refname_to_id("refs/heads/main").unwrap().to_string(), pushed);
    Seen::Held("the pinned commit answers; the writer gets 409 with both commits".to_owned())
}

fn clock_ahead_for_one_commit() -> Seen {
    let mut libraries = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let library = libraries.find_map(|it| {
        let path = it.path().join("faketime/libfaketime.so.1");
        path.exists().then_some(path)
    });
    let Some(library) = library else { return Seen::Skipped("faketime") };
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let (data, clock) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(clock.path(), "+0").unwrap();
    let mut command = serve(&["--repo", &repository.text_path(), "--data-dir"]);
    command
        .arg(data.path())
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", clock.path())
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let daemon = Daemon::launch(command);
    wait_for(&daemon, &first);
    let pause = || std::thread::sleep(Duration::from_millis(300));
    pause();
    let before = jiff::Timestamp::now();
    std::fs::write(clock.path(), "+1d").unwrap();
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    wait_for(&daemon, &second);
    std::fs::write(clock.path(), "+0").unwrap();
    // The journal reads the clock once a second.
    std::thread::sleep(Duration::from_millis(1_500));
    let between = jiff::Timestamp::now();
    pause();
    let third = repository.commit("third", &[("groups/c.yaml", &group("C"))]);
    wait_for(&daemon, &third);
    pause();
    let now = jiff::Timestamp::now();
    for (time, commit) in [(before, first), (between, second), (now, third)] {
        let answer = daemon.get(&format!("/v1/groups?at={time}"));
        assert_eq!(answer.header("X-Clade-Commit"), Some(commit.as_str()), "{time}");
    }
    Seen::Held("each time answers from its commit".to_owned())
}

fn resume_without_the_remote() -> Seen {
    let (repository, first, second) = two();
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, data.path(), &[]);
    wait_for(&daemon, &second);
    assert_eq!(pin(&daemon, &first).status, 200);
    let third = repository.commit("third", &[("groups/c.yaml", &group("C"))]);
    daemon.wait_until("the third commit is fetched", |it| {
        it.get("/controller/status").json()["observed"]["commit"] == third.as_str()
    });
    let away = repository.path().with_extension("away");
    std::fs::rename(repository.path(), &away).unwrap();
    daemon.kill();
    let daemon = start(&repository, data.path(), &[]);
    assert_eq!(live(&daemon), Some(first));
    assert_eq!(daemon.get("/controller/status").json()["observed"]["commit"], third.as_str());
    resume(&daemon);
    wait_for(&daemon, &third);
    std::fs::rename(&away, repository.path()).unwrap();
    Seen::Held("the head seen last is known and answers".to_owned())
}

fn resume_to_an_invalid_head() -> Seen {
    let (repository, first, second) = two();
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, data.path(), &[]);
    wait_for(&daemon, &second);
    assert_eq!(pin(&daemon, &first).status, 200);
    let good = repository.commit("good", &[("groups/c.yaml", &group("C"))]);
    let bad = "name: Bad\nparent: Nowhere\n";
    repository.commit("bad", &[("groups/bad.yaml", bad)]);
    let head = repository.commit("still bad", &[("groups/d.yaml", &group("D"))]);
    daemon.wait_until("the head is observed", |it| {
        it.get("/controller/status").json()["observed"]["commit"] == head.as_str()
    });
    resume(&daemon);
    wait_for(&daemon, &good);
    let status = daemon.get("/controller/status").json();
    assert_eq!(status["last_failed"]["commit"], head.as_str());
    Seen::Held("the last good commit before the head answers, and the head is reported".to_owned())
}

fn branch_called_head() -> Seen {
    let (repository, first, second) = two();
    let git = repository.git();
    let hostile = {
        let base = git.find_commit(first.parse().unwrap()).unwrap();
        let who = git2::Signature::now("E", "e@x").unwrap();
        let tree = base.tree().unwrap();
        git.commit(None, &who, &who, "hostile", &tree, &[&base]).unwrap()
    };
    for name in ["refs/heads/HEAD", "refs/heads/@", "refs/heads/refs/clade/live"] {
        git.reference(name, hostile, true, "").unwrap();
    }
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, data.path(), &[]);
    wait_for(&daemon, &second);
    // Refs beside the watched one are fetched after it.
    daemon.wait_until("the other branches are there", |it| {
        it.get("/v1/groups?commit=refs/heads/HEAD").status == 200
    });
    for (revision, commit) in [
        ("HEAD", &second),
        ("@", &second),
        ("HEAD~1", &first),
        ("HEAD%5E", &first),
        ("refs/clade/live", &second),
        ("refs/heads/HEAD", &hostile.to_string()),
    ] {
        let answer = daemon.get(&format!("/v1/groups?commit={revision}"));
        assert_eq!(answer.header("X-Clade-Commit"), Some(commit.as_str()), "{revision}");
    }
    assert_eq!(pin(&daemon, "HEAD").json()["pinned"], second.as_str());
    Seen::Held("`HEAD`, `@`, `HEAD~1` and `refs/clade/live` are ours".to_owned())
}

/// Forces the branch to a commit on top of `base`.
fn rewrite(repository: &GitRepository, base: &str, name: &str) -> String {
    let base = repository.git().find_commit(base.parse().unwrap()).unwrap();
    repository.git().reset(base.as_object(), git2::ResetType::Hard, None).unwrap();
    repository.commit(name, &[(&format!("groups/{name}.yaml"), &group(name))])
}

fn observed(daemon: &Daemon) -> Value {
    daemon.get("/controller/status").json()["observed"]["commit"].clone()
}

fn rewrite_of_a_pinned_branch() -> Seen {
    for pin_to in ["an ancestor of the new head", "a commit that the branch lost"] {
        let (repository, first, second) = two();
        let third = repository.commit("third", &[("groups/c.yaml", &group("C"))]);
        let data = tempfile::tempdir().unwrap();
        let daemon = start(&repository, data.path(), &["--on-rewrite", "hold"]);
        wait_for(&daemon, &third);
        let pinned = if pin_to.starts_with("an") { first.clone() } else { second };
        assert_eq!(pin(&daemon, &pinned).status, 200);
        let other = rewrite(&repository, &first, "Other");
        let from_third = format!("the branch went from {third} to ");
        let is_said = |daemon: &Daemon, head: &str| {
            observed(daemon) == head
                && condition(daemon, "HistoryRewritten").is_some_and(|it| {
                    let message = it["message"].as_str().unwrap();
                    message.starts_with(&format!("{from_third}{head}"))
                        && message.ends_with(": held")
                })
        };
        daemon.wait_until("the rewrite is said", |it| is_said(it, &other));
        let more = repository.commit("more", &[("groups/e.yaml", &group("E"))]);
        daemon.wait_until("it is said of the next head", |it| is_said(it, &more));
        daemon.kill();
        let away = repository.path().with_extension("away");
        std::fs::rename(repository.path(), &away).unwrap();
        let daemon = start(&repository, data.path(), &["--on-rewrite", "hold"]);
        assert_eq!(live(&daemon), Some(pinned));
        daemon.wait_until("it is said after the restart", |it| is_said(it, &more));
        daemon.wait_until("the head is held", |it| {
            condition(it, "PromotionHeld").is_some_and(|it| it["reason"] == "Pinned")
        });
        resume(&daemon);
        wait_for(&daemon, &more);
        std::fs::rename(&away, repository.path()).unwrap();
    }
    Seen::Held("the condition names what the branch was at before the pin".to_owned())
}

fn stricter_settings_without_the_remote() -> Seen {
    let (repository, _, second) = two();
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, data.path(), &[]);
    wait_for(&daemon, &second);
    let bad = repository.commit("bad", &[("groups/bad.yaml", "name: Bad\nparent: Nowhere\n")]);
    daemon.wait_until("the head is rejected", |it| condition(it, "CandidateRejected").is_some());
    daemon.kill();
    let away = repository.path().with_extension("away");
    std::fs::rename(repository.path(), &away).unwrap();
    let daemon = start(&repository, data.path(), &["--commit-budget", "groups=1"]);
    assert_eq!((live(&daemon), daemon.get("/readyz").status), (None, 503));
    assert_eq!(observed(&daemon), bad.as_str());
    daemon.wait_until("the head is rejected", |it| condition(it, "CandidateRejected").is_some());
    let message = condition(&daemon, "Ready").unwrap()["message"].clone();
    let said = format!("no commit answers: {second}, which answered before the restart, cannot ");
    assert!(message.as_str().unwrap().starts_with(&said), "{message}");
    assert!(message.as_str().unwrap().contains("not valid any more"), "{message}");
    assert_eq!(daemon.get("/controller/status").json()["last_failed"]["commit"], bad.as_str());
    daemon.kill();
    // With the former settings it answers at once.
    let daemon = start(&repository, data.path(), &[]);
    assert_eq!(live(&daemon), Some(second));
    assert_eq!(observed(&daemon), bad.as_str());
    std::fs::rename(&away, repository.path()).unwrap();
    Seen::Held("the status names the commit, the reason and the head".to_owned())
}

fn rewrite_while_the_mirror_was_lost() -> Seen {
    let (repository, first, second) = two();
    let data = tempfile::tempdir().unwrap();
    let daemon = start(&repository, data.path(), &["--on-rewrite", "hold"]);
    wait_for(&daemon, &second);
    daemon.kill();
    std::fs::remove_dir_all(data.path().join("mirror.git")).unwrap();
    let other = rewrite(&repository, &first, "Other");
    let daemon = start(&repository, data.path(), &["--on-rewrite", "hold"]);
    daemon.wait_until("the rewrite is held", |it| condition(it, "PromotionHeld").is_some());
    assert_eq!(condition(&daemon, "PromotionHeld").unwrap()["reason"], "OnRewriteHold");
    assert!(condition(&daemon, "HistoryRewritten").is_some());
    assert_eq!(live(&daemon), None);
    resume(&daemon);
    wait_for(&daemon, &other);
    Seen::Held("nothing answers until an operator resumes; the status says why".to_owned())
}
