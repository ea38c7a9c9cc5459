//! Pushing over every transport.

use serde_json::json;

use super::{Hub, ROOT, create, groups, has_git, post};
use crate::git::server::{Server, http_backend, tls};
use crate::program::{Daemon, GitRepository, serve};

const A: &str = "name: A\n";

#[test]
fn writes_are_pushed_over_https() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let directory = hub.path().parent().unwrap().to_owned();
    let server = Server::https(move |request| http_backend(&directory, request));
    let data = tempfile::tempdir().unwrap();
    let url = format!("https://localhost:{}/hub.git", server.port);
    let daemon = Daemon::start(&[
        "--repo",
        &url,
        "--data-dir",
        data.path().to_str().unwrap(),
        "--git-ca-file",
        tls("ca.pem").to_str().unwrap(),
        "--git-proxy",
        "none",
        "--writes",
        "commit",
    ]);
    create(&daemon, &json!({"name": "N", "parent": ROOT, "classes": {}}));
    assert_eq!(hub.log(), ["Begin", "Add the group \"N\" below \"All Nodes\""]);
    assert_eq!(groups(&daemon).len(), 3);
    hub.hook("pre-receive", "echo 'not today' >&2\nexit 1");
    let refused = post(&daemon, "/v1/groups", &json!({"name": "M", "parent": ROOT, "classes": {}}));
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("not today"), "{}", refused.body);
    // Credentials that may read may not always write; they are those of the daemon.
    hub.inner.config().unwrap().set_bool("http.receivepack", false).unwrap();
    let refused = post(&daemon, "/v1/groups", &json!({"name": "M", "parent": ROOT, "classes": {}}));
    assert_eq!((refused.status, &refused.json()["kind"]), (503, &json!("remote-unreachable")));
    assert!(refused.body.contains("the credentials of the daemon"), "{}", refused.body);
    assert!(refused.header("Retry-After").is_some());
}

pub(super) fn file_url(hub: &Hub) -> String {
    format!("file://{}", hub.text_path().trim_end_matches('/'))
}

/// Returns the command of a daemon that follows a hub by a URL and writes to a branch of it.
pub(super) fn serve_file_url(
    url: &str,
    data: &tempfile::TempDir,
    branch: &str,
) -> std::process::Command {
    let data = data.path().to_str().unwrap();
    serve(&["--repo", url, "--data-dir", data, "--branch", branch, "--writes", "commit"])
}

#[test]
fn the_hooks_of_a_repository_behind_a_file_url_are_run() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let before = hub.head_id();
    hub.hook("pre-receive", "echo 'not today' >&2\nexit 1");
    let data = tempfile::tempdir().unwrap();
    let daemon = Daemon::launch(serve_file_url(&file_url(&hub), &data, "main"));
    let body = json!({"name": "M", "parent": ROOT, "classes": {}});
    let refused = post(&daemon, "/v1/groups", &body);
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("not today"), "{}", refused.body);
    assert_eq!(hub.head_id(), before);
}

#[test]
fn a_hook_that_refuses_to_move_refs_is_told_as_any_other() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let before = hub.head_id();
    let in_place = Daemon::start(&["--repo", &hub.text_path(), "--writes", "commit"]);
    let data = tempfile::tempdir().unwrap();
    let behind_a_url = Daemon::launch(serve_file_url(&file_url(&hub), &data, "main"));
    let refuse = "[ \"$1\" = prepared ] || exit 0\necho 'not today' >&2\nexit 1";
    hub.hook("reference-transaction", refuse);
    let body = json!({"name": "M", "parent": ROOT, "classes": {}});
    for daemon in [in_place, behind_a_url] {
        let refused = post(&daemon, "/v1/groups", &body);
        assert_eq!(refused.status, 403, "{}", refused.body);
        assert!(refused.body.contains("not today"), "{}", refused.body);
        assert_eq!(hub.head_id(), before);
    }
}

/// Both push from the repository itself, where one must not name its commit as the other does.
#[test]
fn two_daemons_in_place_on_a_repository_with_hooks_push_their_own() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    hub.hook("pre-receive", "cat > /dev/null; sleep 0.05");
    let start = || Daemon::start(&["--repo", &hub.text_path(), "--writes", "commit"]);
    let daemons = [start(), start()];
    let write = |(number, daemon): (usize, &Daemon)| -> Vec<String> {
        let path = |at: usize| format!("/v1/groups/000000{number}{at}-1111-4111-8111-111111111111");
        let done = (0..8).map(|at| {
            let body = json!({"name": format!("n{number}{at}"), "parent": ROOT, "classes": {}});
            daemon.request("PUT", &path(at), &body.to_string())
        });
        let done = done.filter(|it| it.status == 201);
        done.map(|it| it.header("X-Clade-Commit").unwrap().to_owned()).collect()
    };
    let written: Vec<String> = std::thread::scope(|scope| {
        let threads = daemons.iter().enumerate().map(|it| scope.spawn(move || write(it)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    assert!(written.len() > 4, "{written:?}");
    let mut walk = hub.inner.revwalk().unwrap();
    walk.push_head().unwrap();
    let on_branch: Vec<String> = walk.map(|it| it.unwrap().to_string()).collect();
    for commit in written {
        assert!(on_branch.contains(&commit), "{commit} is not on the branch");
    }
    // What names a commit while it is pushed is gone.
    let left = hub.inner.references_glob("refs/clade/outgoing*").unwrap().count();
    assert_eq!(left, 0);
}

/// git removes the locks of refs at SIGTERM; those that a killed one left kept everyone from pushing.
#[test]
fn a_push_that_takes_too_long_leaves_no_locks() {
    if !has_git() {
        return;
    }
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    hub.hook("reference-transaction", "[ \"$1\" = prepared ] || exit 0\nsleep 1000");
    let daemon = hub.serve(&["--fetch-timeout", "1s"]);
    let body = json!({"name": "M", "parent": ROOT, "classes": {}});
    let late = post(&daemon, "/v1/groups", &body);
    assert_eq!(late.status, 503, "{}", late.body);
    assert!(!hub.path().join("refs/heads/main.lock").exists());
    hub.hook("reference-transaction", "exit 0");
    assert_eq!(daemon.terminate(), 0);
    // A push that succeeds may take longer on a busy machine.
    let daemon = hub.serve(&[]);
    let made = post(&daemon, "/v1/groups", &body);
    assert_eq!(made.status, 303, "{}", made.body);
}

#[test]
fn a_shallow_repository_of_this_machine_is_written() {
    for path in [std::env::var("PATH").unwrap(), String::new()] {
        for is_url in [true, false] {
            let hub = Hub::new(&[("groups/a.yaml", A)]);
            for number in 0..3 {
                hub.commit(
                    "More",
                    &[("groups/b.yaml", &format!("name: B\ndescription: d{number}\n"))],
                );
            }
            let cut = hub.inner.revparse_single("main~1").unwrap().id();
            std::fs::write(hub.path().join("shallow"), format!("{cut}\n")).unwrap();
            let data = tempfile::tempdir().unwrap();
            let url = if is_url { file_url(&hub) } else { hub.text_path() };
            let mut command = serve_file_url(&url, &data, "main");
            command.env("PATH", &path);
            let daemon = Daemon::launch(command);
            let make = |name: &str| {
                let body = json!({"name": name, "parent": ROOT, "classes": {}});
                let created = post(&daemon, "/v1/groups", &body);
                assert_eq!(created.status, 303, "{path} {url}: {}", created.body);
            };
            make("M");
            // Those that wait together are pushed together.
            std::thread::scope(|scope| {
                for name in ["N", "O", "P", "Q", "R"] {
                    scope.spawn(move || make(name));
                }
            });
            assert_eq!(groups(&daemon).len(), 9, "{path} {url}");
        }
    }
}

#[test]
fn a_branch_that_names_another_one_stays_so_when_it_is_pushed() {
    let body = json!({"name": "M", "parent": ROOT, "classes": {}});
    for path in [std::env::var("PATH").unwrap(), String::new()] {
        let hub = Hub::new(&[("groups/a.yaml", A)]);
        hub.inner.reference_symbolic("refs/heads/now", "refs/heads/main", false, "").unwrap();
        let data = tempfile::tempdir().unwrap();
        let mut command = serve_file_url(&file_url(&hub), &data, "now");
        // Without a path there is no `git`, so libgit2 pushes.
        command.env("PATH", &path);
        let daemon = Daemon::launch(command);
        let created = post(&daemon, "/v1/groups", &body);
        assert_eq!(created.status, 303, "{path}: {}", created.body);
        assert_eq!(hub.log().len(), 2, "{path}");
        let now = hub.inner.find_reference("refs/heads/now").unwrap();
        assert_eq!(now.symbolic_target().unwrap(), Some("refs/heads/main"), "{path}");
        let incoming = hub.inner.references_glob("refs/clade/*").unwrap();
        assert_eq!(incoming.count(), 0, "{path}");
    }
}

/// Adds a commit with a malformed author and committer to a hub, and one after it; a tag stays there. Returns the first.
pub(super) fn add_malformed(hub: &Hub) -> git2::Oid {
    let (tree, head) = (hub.head().unwrap().tree_id(), hub.head_id());
    let commit = |parent: &str, who: &str| {
        let text =
            format!("tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nimported\n");
        let database = hub.inner.odb().unwrap();
        database.write(git2::ObjectType::Commit, text.as_bytes()).unwrap()
    };
    let malformed = commit(&head, "Ada a@example.com 1400000000 +0000");
    let after = commit(&malformed.to_string(), "Ada <a@example.com> 1700000000 +0000");
    for name in ["refs/tags/v1", "refs/heads/main"] {
        hub.inner.reference(name, after, true, "").unwrap();
    }
    malformed
}

#[test]
fn a_malformed_commit_in_the_history_keeps_nothing_from_being_written() {
    for path in [std::env::var("PATH").unwrap(), String::new()] {
        let hub = Hub::new(&[("groups/a.yaml", A)]);
        add_malformed(&hub);
        let data = tempfile::tempdir().unwrap();
        let mut command = serve_file_url(&file_url(&hub), &data, "main");
        command.env("PATH", &path);
        let daemon = Daemon::launch(command);
        for name in ["M", "N"] {
            let body = json!({"name": name, "parent": ROOT, "classes": {}});
            let created = post(&daemon, "/v1/groups", &body);
            assert_eq!(created.status, 303, "{path}: {}", created.body);
        }
        assert_eq!(groups(&daemon).len(), 4, "{path}");
    }
}

#[test]
fn two_daemons_that_write_to_one_repository_lose_nothing() {
    for path in [std::env::var("PATH").unwrap(), String::new()] {
        let hub = Hub::new(&[("groups/a.yaml", A)]);
        let url = file_url(&hub);
        let write_all = |writer: char| {
            let data = tempfile::tempdir().unwrap();
            let mut command = serve_file_url(&url, &data, "main");
            command.env("PATH", &path);
            let daemon = Daemon::launch(command);
            let names = (0..12).map(|number| format!("{writer}{number}"));
            let is_written = |name: &String| {
                let body = json!({"name": name, "parent": ROOT, "classes": {}});
                let answer = post(&daemon, "/v1/groups", &body);
                assert!(matches!(answer.status, 303 | 409 | 503), "{}", answer.body);
                answer.status == 303
            };
            names.filter(is_written).collect::<Vec<_>>()
        };
        let written = std::thread::scope(|scope| {
            let threads = ['x', 'y'].map(|it| {
                let write_all = &write_all;
                scope.spawn(move || write_all(it))
            });
            threads.map(|it| it.join().unwrap()).concat()
        });
        assert!(written.len() >= 12, "{path}: {written:?}");
        let log = hub.log();
        for name in &written {
            let subject = format!("Add the group \"{name}\" below \"All Nodes\"");
            assert_eq!(log.iter().filter(|it| **it == subject).count(), 1, "{path}: {name}");
        }
    }
}

#[test]
fn a_repository_read_in_place_is_written_in_place() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let daemon = Daemon::start(&["--repo", &hub.text_path(), "--writes", "commit"]);
    create(&daemon, &json!({"name": "N", "parent": ROOT, "classes": {}}));
    assert_eq!(hub.log().len(), 2);
    assert_eq!(groups(&daemon).len(), 3);
}

#[test]
fn a_repository_in_place_that_cannot_be_read_takes_writes_again_when_it_can() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let daemon = Daemon::start(&["--repo", &hub.text_path(), "--writes", "commit"]);
    let body = json!({"name": "N", "parent": ROOT, "classes": {}});
    for name in ["", "HEAD", "objects", "refs/heads/main"] {
        let path = hub.path().join(name);
        let aside = hub.directory.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        let refused = post(&daemon, "/v1/groups", &body);
        assert_eq!(refused.status, 503, "{name}: {}", refused.body);
        assert!(refused.body.contains("othing was changed"), "{name}: {}", refused.body);
        assert!(refused.header("Retry-After").is_some(), "{name}");
        assert_eq!(groups(&daemon).len(), 2, "{name}");
        std::fs::rename(&aside, &path).unwrap();
    }
    daemon.wait_until("it is written", |it| post(it, "/v1/groups", &body).status == 303);
}

#[test]
fn what_the_system_says_of_a_repository_in_place_is_the_reason_of_a_failed_write() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let daemon = Daemon::start(&["--repo", &hub.text_path(), "--writes", "commit"]);
    let body = json!({"name": "N", "parent": ROOT, "classes": {}});
    let objects = format!("objects/{}", &hub.head_id()[..2]);
    // Root may read all, but a link to itself leads nowhere for root as well.
    for name in ["refs/heads", "packed-refs", &objects] {
        let (path, aside) = (hub.path().join(name), hub.directory.path().join("aside"));
        let main = hub.path().join("refs/heads/main");
        if name == "packed-refs" {
            std::fs::rename(&main, &aside).unwrap();
        } else {
            std::fs::rename(&path, &aside).unwrap();
        }
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let refused = post(&daemon, "/v1/groups", &body);
        assert_eq!(refused.status, 503, "{name}: {}", refused.body);
        let json = refused.json();
        assert_eq!(json["kind"], "storage-failed", "{name}: {}", refused.body);
        assert!(refused.body.contains("symbolic links"), "{name}: {}", refused.body);
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&aside, if name == "packed-refs" { &main } else { &path }).unwrap();
    }
    daemon.wait_until("it is written", |it| post(it, "/v1/groups", &body).status == 303);
}

#[test]
fn a_repository_read_in_place_is_followed_before_it_is_written() {
    let id = "aaaaaaaa-0000-4000-8000-00000000000a";
    let a = format!("name: A\nid: {id}\n");
    let hub = Hub::new(&[("groups/a.yaml", &a)]);
    let repository = hub.text_path();
    let in_place = ["--repo", &repository, "--writes", "commit", "--interval", "1h"];
    let daemon = Daemon::start(&[in_place.as_slice(), &["--on-rewrite", "hold"]].concat());
    let path = format!("/v1/groups/{id}");
    let describe = |text: &str| post(&daemon, &path, &json!({"description": text}));
    let active = || daemon.get("/controller/status").json()["active"]["commit"].clone();
    // A write that finds nothing to change is answered when what it found is live.
    let first = hub.head_id();
    let described = hub.commit("by hand", &[("groups/a.yaml", &(a.clone() + "description: d\n"))]);
    assert_eq!(active(), first, "the daemon has not noticed it");
    let found = describe("d");
    assert_eq!(found.status, 200, "{}", found.body);
    assert_eq!(daemon.get(&path).json()["description"], "d");
    assert_eq!(active(), described);
    // One on a branch that was rewritten waits for an operator as any commit does.
    let first = git2::Oid::from_str(&first).unwrap();
    hub.inner.reference("refs/heads/main", first, true, "rewritten").unwrap();
    let other = hub.commit("another", &[("groups/b.yaml", "name: B\n")]);
    let held = describe("e");
    assert_eq!(held.status, 409, "{}", held.body);
    assert!(held.body.contains("resume"), "{}", held.body);
    assert_eq!((hub.head_id(), active()), (other, described.into()));
}

#[test]
fn a_working_tree_follows_unless_it_has_changes() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", A)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--writes", "commit"]);
    let a = groups(&daemon).iter().find(|it| it["name"] == "A").unwrap()["id"].clone();
    let path = format!("/v1/groups/{}", a.as_str().unwrap());
    assert_eq!(post(&daemon, &path, &json!({"description": "d"})).status, 200);
    let file = repository.path().join("groups/a.yaml");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "name: A\ndescription: d\n");
    assert!(repository.git().statuses(None).unwrap().is_empty());
    std::fs::write(&file, "name: A # mine\n").unwrap();
    let refused = post(&daemon, &path, &json!({"description": "e"}));
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("has changes that are not committed: groups/a.yaml"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "name: A # mine\n");
}

#[test]
fn groups_in_a_directory_of_the_repository_are_written_there() {
    let hub = Hub::new(&[("puppet/groups/a.yaml", A), ("groups/other.yaml", "not: ours\n")]);
    let daemon = hub.serve(&["--path", "./puppet//"]);
    create(&daemon, &json!({"name": "N", "parent": ROOT, "classes": {}}));
    assert!(hub.show("puppet/groups/n.yaml").is_some());
    assert!(hub.show("groups/n.yaml").is_none());
}
