//! Fetching everything again: when it is done, and what of the old mirror is kept.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clade::internals::git::{FetchFailure, Mirror, MirrorError, MirrorOptions, Remote};
use clade::internals::model::CommitId;

use super::meter;
use super::server::{Server, has_git, http_backend};
use super::transports::options;
use crate::program::Daemon;
use crate::repository::{Origin, Put};

fn open(data: &Path, origin: &Origin) -> Mirror {
    let remote = Remote::parse(origin.path().to_str().unwrap()).unwrap();
    // A process that another test starts has the lock of a mirror that was dropped for a moment.
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match Mirror::open(data, remote.clone(), MirrorOptions::default()) {
            Err(MirrorError::Locked(_)) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened.unwrap(),
        }
    }
}

fn id(text: &str) -> CommitId {
    text.parse().unwrap()
}

/// Checks that the mirror names a commit as the live one, and has its only file and so many commits of its history.
fn check_live(mirror: &Mirror, commit: &str, history: usize) {
    assert_eq!(mirror.live(), Some(id(commit)));
    let repository = mirror.repository().unwrap();
    assert_eq!(repository.files(id(commit), "groups", &meter()).unwrap().len(), 1);
    assert_eq!(repository.log(id(commit), 99).unwrap().len(), history);
}

#[test]
fn commits_that_the_remote_lost_are_copied_into_the_fresh_mirror() {
    let (origin, first) = Origin::with_a_commit();
    let second = origin.commit("main", &[("groups/web.yaml", Put::File("name: W\n"))]);
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(None).unwrap();
    mirror.set_live(id(&second)).unwrap();
    origin.rewrite("main", &[("a", Put::File("a"))]);
    mirror.renew(None, &[]).unwrap();
    check_live(&mirror, &second, 2);
    assert!(mirror.repository().unwrap().is_ancestor(id(&first), id(&second)).unwrap());
    assert!(!data.path().join("mirror.git/shallow").exists());
    drop(mirror);
    std::fs::remove_dir_all(origin.path()).unwrap();
    check_live(&open(data.path(), &origin), &second, 2);
}

#[test]
fn a_kept_commit_whose_history_is_missing_is_copied_alone() {
    let (origin, first) = Origin::with_a_commit();
    let second = origin.commit("main", &[("groups/web.yaml", Put::File("name: W\n"))]);
    std::fs::write(origin.path().join("shallow"), format!("{second}\n")).unwrap();
    let object = origin.path().join("objects").join(&first[..2]).join(&first[2..]);
    std::fs::remove_file(object).unwrap();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(None).unwrap();
    mirror.set_live(id(&second)).unwrap();
    std::fs::remove_file(origin.path().join("shallow")).unwrap();
    let third = origin.rewrite("main", &[("a", Put::File("a"))]);
    for _ in 0..2 {
        assert_eq!(mirror.renew(None, &[]).unwrap().head, id(&third));
        check_live(&mirror, &second, 1);
        let shallow = std::fs::read_to_string(data.path().join("mirror.git/shallow")).unwrap();
        assert_eq!(shallow, format!("{second}\n"), "as git marks it");
    }
    // What the remote has is not cut.
    origin.commit("main", &[("b", Put::File("b"))]);
    let fetched = mirror.fetch(None).unwrap();
    assert_eq!(mirror.repository().unwrap().log(fetched.head, 99).unwrap().len(), 2);
}

#[test]
fn a_refetch_that_fails_leaves_nothing() {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(None).unwrap();
    let fresh = data.path().join("mirror.git.new");
    let away = origin.path().with_extension("away");
    std::fs::rename(origin.path(), &away).unwrap();
    mirror.renew(None, &[]).unwrap_err();
    assert!(!fresh.exists(), "others need the room");
    assert_eq!(mirror.repository().unwrap().log(id(&first), 9).unwrap(), [id(&first)]);
    drop(mirror);
    // As a process leaves it that is killed.
    std::fs::create_dir_all(fresh.join("objects")).unwrap();
    std::fs::write(fresh.join("objects/pack"), "much").unwrap();
    let mirror = open(data.path(), &origin);
    assert!(!fresh.exists());
    std::fs::rename(away, origin.path()).unwrap();
    assert_eq!(mirror.renew(None, &[]).map(|it| it.head), Ok(id(&first)));
}

#[test]
fn a_commit_without_its_history_stops_no_fetch() {
    if !has_git() {
        return;
    }
    let (origin, _) = Origin::with_a_commit();
    let directory = origin.path().parent().unwrap().to_owned();
    let server = Server::http(move |request| http_backend(&directory, request));
    let url = format!("http://127.0.0.1:{}/groups.git", server.port);
    let data = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(data.path(), Remote::parse(&url).unwrap(), options()).unwrap();
    mirror.fetch(None).unwrap();
    let packs = data.path().join("mirror.git/objects/pack");
    let first = indexes(&packs);
    let second = origin.commit("main", &[("groups/web.yaml", Put::File("name: W\n"))]);
    mirror.fetch(None).unwrap();
    mirror.set_live(id(&second)).unwrap();
    for index in first {
        std::fs::remove_file(index.with_extension("pack")).unwrap();
        std::fs::remove_file(index).unwrap();
    }
    origin.rewrite("main", &[("a", Put::File("a"))]);
    mirror.renew(None, &[]).unwrap();
    check_live(&mirror, &second, 1);
    origin.commit("main", &[("b", Put::File("b"))]);
    let head = mirror.fetch(None).unwrap().head;
    assert_eq!(mirror.repository().unwrap().log(head, 99).unwrap().len(), 2);
    let advises = || {
        let mistyped = mirror.repository().unwrap().resolve("mian").unwrap_err().to_string();
        mistyped.contains("shallow clone")
    };
    assert!(!advises(), "the branch is whole");
    // The remote has it again, with what came before it.
    origin.set("main", &second);
    let last = origin.commit("main", &[("c", Put::File("c"))]);
    assert_eq!(mirror.fetch(None).unwrap().head, id(&last));
    assert_eq!(mirror.repository().unwrap().log(id(&last), 99).unwrap().len(), 2);
    assert!(advises(), "the branch ends there");
    mirror.renew(None, &[]).unwrap();
    assert!(!advises());
    assert_eq!(mirror.repository().unwrap().log(id(&last), 99).unwrap().len(), 3);
    assert!(!data.path().join("mirror.git/shallow").exists());
}

fn indexes(packs: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(packs).unwrap().map(|it| it.unwrap().path());
    entries.filter(|it| it.extension().is_some_and(|it| it == "idx")).collect()
}

#[test]
fn a_damaged_index_keeps_no_other_objects_from_being_copied() {
    use std::os::unix::fs::PermissionsExt as _;

    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(None).unwrap();
    mirror.set_live(id(&first)).unwrap();
    let packs = data.path().join("mirror.git/objects/pack");
    let before = indexes(&packs);
    origin.rewrite("main", &[("a", Put::File("a"))]);
    mirror.fetch(None).unwrap();
    let added = indexes(&packs).into_iter().find(|it| !before.contains(it)).unwrap();
    std::fs::set_permissions(&added, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&added, "damaged").unwrap();
    mirror.renew(None, &[]).unwrap();
    check_live(&mirror, &first, 1);
}

/// What a server answers with where a pack is asked for: everything that a repository has but one object.
fn pack_without(directory: &Path, lacking: git2::Oid) -> Vec<u8> {
    let git = git2::Repository::open_bare(directory).unwrap();
    let mut builder = git.packbuilder().unwrap();
    let odb = git.odb().unwrap();
    let mut all = Vec::new();
    odb.foreach(|it| {
        all.push(*it);
        true
    })
    .unwrap();
    for object in all.into_iter().filter(|it| *it != lacking) {
        builder.insert_object(object, None).unwrap();
    }
    let mut pack = git2::Buf::new();
    builder.write_buf(&mut pack).unwrap();
    let mut body = b"0008NAK\n".to_vec();
    for part in pack.chunks(900) {
        body.extend(format!("{:04x}\x01", part.len() + 5).into_bytes());
        body.extend(part);
    }
    body.extend(b"0000");
    let head = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/x-git-upload-pack-result\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

/// A server of an origin whose packs may lack an object.
struct LackingServer {
    server: Server,
    lacking: Arc<Mutex<Option<git2::Oid>>>,
    /// How many packs lacked it.
    packs: Arc<AtomicUsize>,
}

impl LackingServer {
    fn of(origin: &Origin) -> Self {
        let lacking: Arc<Mutex<Option<git2::Oid>>> = Arc::default();
        let packs: Arc<AtomicUsize> = Arc::default();
        let (path, lacks, counted) = (origin.path(), Arc::clone(&lacking), Arc::clone(&packs));
        let server = Server::http(move |request| {
            let lacking = *lacks.lock().unwrap();
            match lacking.filter(|_| request.method == "POST") {
                Some(lacking) => {
                    counted.fetch_add(1, Ordering::SeqCst);
                    pack_without(&path, lacking)
                }
                None => http_backend(path.parent().unwrap(), request),
            }
        });
        Self { server, lacking, packs }
    }

    fn lack(&self, object: Option<git2::Oid>) {
        self.packs.store(0, Ordering::SeqCst);
        *self.lacking.lock().unwrap() = object;
    }

    fn packs(&self) -> usize {
        self.packs.load(Ordering::SeqCst)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/groups.git", self.server.port)
    }
}

fn start(url: &str, data: &Path) -> Daemon {
    let data = data.to_str().unwrap();
    let remote = ["--allow-insecure-remotes", "--git-proxy", "none", "--interval", "1h"];
    Daemon::start(&[&["--repo", url, "--data-dir", data], &remote[..]].concat())
}

/// A daemon that follows an origin whose first commit answers.
struct Followed {
    origin: Origin,
    first: String,
    server: LackingServer,
    data: tempfile::TempDir,
    daemon: Daemon,
}

impl Followed {
    fn new() -> Self {
        let (origin, first) = Origin::with_a_commit();
        let server = LackingServer::of(&origin);
        let data = tempfile::tempdir().unwrap();
        let daemon = start(&server.url(), data.path());
        wait_for(&daemon, &first);
        Self { origin, first, server, data, daemon }
    }
}

fn pin(daemon: &Daemon, commit: &str) {
    let pinned = daemon.request("POST", "/controller/pin", &format!(r#"{{"commit": "{commit}"}}"#));
    assert_eq!(pinned.status, 200, "{}", pinned.body);
}

fn wait_for(daemon: &Daemon, commit: &str) {
    daemon.wait_until(&format!("{commit} answers"), |it| {
        it.get("/controller/status").json()["active"]["commit"] == commit
    });
}

/// Returns the tree of a commit, and the file of its group.
fn tree_and_file(origin: &Origin, commit: &str) -> [git2::Oid; 2] {
    let tree = origin.git().find_commit(commit.parse().unwrap()).unwrap().tree().unwrap();
    [tree.id(), tree.get_path(Path::new("groups/web.yaml")).unwrap().id()]
}

#[test]
fn incomplete_packs_are_fetched_again_until_the_remote_sends_whole_ones() {
    if !has_git() {
        return;
    }
    let Followed { origin, server, daemon, .. } = Followed::new();
    for (number, name) in ["the tree", "a file"].into_iter().enumerate() {
        let text = format!("name: Web{number}\n");
        let head = origin.commit("main", &[("groups/web.yaml", Put::File(&text))]);
        server.lack(Some(tree_and_file(&origin, &head)[number]));
        daemon.request("POST", "/controller/reconcile", "");
        daemon.wait_until(&format!("{name} is asked for again and again"), |_| server.packs() > 2);
        let conditions = daemon.get("/controller/status").json()["conditions"].to_string();
        assert!(conditions.contains("CorruptObjects"), "{name}: {conditions}");
        server.lack(None);
        wait_for(&daemon, &head);
        daemon.wait_until("the damage is forgotten", |it| {
            !it.get("/controller/status").json()["conditions"].to_string().contains("Corrupt")
        });
    }
}

#[test]
fn a_commit_that_the_remote_lost_answers_after_a_refetch_and_a_restart_without_the_remote() {
    if !has_git() {
        return;
    }
    let Followed { origin, first, server, data, daemon } = Followed::new();
    let second = origin.commit("main", &[("groups/web.yaml", Put::File("name: W\n"))]);
    daemon.request("POST", "/controller/reconcile", "");
    wait_for(&daemon, &second);
    pin(&daemon, &first);
    let third = origin.rewrite("main", &[("groups/web.yaml", Put::File("name: X\n"))]);
    server.lack(Some(tree_and_file(&origin, &third)[0]));
    daemon.request("POST", "/controller/reconcile", "");
    daemon.wait_until("everything is fetched again", |_| server.packs() > 1);
    server.lack(None);
    daemon.wait_until("the new head is there", |it| {
        it.get("/controller/status").json()["observed"]["commit"] == *third
    });
    assert!(data.path().join("mirror.git.broken").exists());
    assert_eq!(daemon.terminate(), 0);
    // Nothing answers at its address any more.
    let url = server.url();
    drop(server);
    let daemon = start(&url, data.path());
    wait_for(&daemon, &first);
    assert_eq!(daemon.get(&format!("/v1/groups?commit={second}")).status, 200);
}

/// Has the daemon fetch, and waits until it has seen a commit at the remote.
fn wait_until_seen(daemon: &Daemon, commit: &str) {
    daemon.request("POST", "/controller/reconcile", "");
    daemon.wait_until("the new head is there", |it| {
        it.get("/controller/status").json()["observed"]["commit"] == *commit
    });
}

#[test]
fn a_pinned_commit_that_is_nowhere_leaves_the_mirror_as_it_is() {
    if !has_git() {
        return;
    }
    let Followed { origin, first, server, data, daemon } = Followed::new();
    pin(&daemon, &first);
    assert_eq!(daemon.terminate(), 0);
    std::fs::remove_dir_all(data.path().join("mirror.git")).unwrap();
    let broken = data.path().join("mirror.git.broken");
    for number in 0..2 {
        let text = format!("name: W{number}\n");
        let head = origin.rewrite("main", &[("groups/web.yaml", Put::File(&text))]);
        let daemon = start(&server.url(), data.path());
        wait_until_seen(&daemon, &head);
        assert!(!broken.exists(), "start {number}");
        let status = daemon.get("/controller/status").json();
        assert_eq!(status["pinned"], *first, "{status}");
        assert_eq!(daemon.terminate(), 0);
    }
    // It is at the remote again.
    origin.set("main", &first);
    let daemon = start(&server.url(), data.path());
    wait_for(&daemon, &first);
    assert!(!broken.exists());
}

#[test]
fn a_pinned_commit_that_the_mirror_lost_is_fetched_again() {
    if !has_git() {
        return;
    }
    let Followed { origin, first, server, data, daemon } = Followed::new();
    pin(&daemon, &first);
    let packs = data.path().join("mirror.git/objects/pack");
    let before = indexes(&packs);
    let second = origin.commit("main", &[("groups/web.yaml", Put::File("name: W\n"))]);
    wait_until_seen(&daemon, &second);
    assert_eq!(daemon.terminate(), 0);
    for index in before {
        std::fs::remove_file(index.with_extension("pack")).unwrap();
        std::fs::remove_file(index).unwrap();
    }
    let daemon = start(&server.url(), data.path());
    wait_for(&daemon, &first);
    assert!(data.path().join("mirror.git.broken").exists());
}

#[test]
fn a_damaged_index_is_mended_at_once_and_what_was_live_before_is_kept() {
    if !has_git() {
        return;
    }
    let Followed { origin, first, server, data, daemon } = Followed::new();
    let mut heads = vec![first];
    let packs = data.path().join("mirror.git/objects/pack");
    let mut before = Vec::new();
    for name in ["name: W\n", "name: X\n"] {
        before = indexes(&packs);
        heads.push(origin.rewrite("main", &[("groups/web.yaml", Put::File(name))]));
        daemon.request("POST", "/controller/reconcile", "");
        wait_for(&daemon, heads.last().unwrap());
    }
    let added = indexes(&packs).into_iter().find(|it| !before.contains(it)).unwrap();
    // The daemon may have the old file mapped.
    std::fs::remove_file(&added).unwrap();
    std::fs::write(&added, "damaged").unwrap();
    let last = origin.commit("main", &[("groups/web.yaml", Put::File("name: Y\n"))]);
    daemon.request("POST", "/controller/reconcile", "");
    wait_for(&daemon, &last);
    assert!(data.path().join("mirror.git.broken").exists(), "everything was fetched again");
    assert_eq!(daemon.terminate(), 0);
    let url = server.url();
    drop(server);
    let daemon = start(&url, data.path());
    wait_for(&daemon, &last);
    for head in &heads[..2] {
        assert_eq!(daemon.get(&format!("/v1/groups?commit={head}")).status, 200, "{head}");
    }
}

#[test]
fn a_shallow_remote_has_a_reason_of_its_own() {
    if !has_git() {
        return;
    }
    let (origin, _) = Origin::with_a_commit();
    let second = origin.commit("main", &[("groups/web.yaml", Put::File("name: W\n"))]);
    std::fs::write(origin.path().join("shallow"), format!("{second}\n")).unwrap();
    let directory = origin.path().parent().unwrap().to_owned();
    let daemon = Server::git_daemon(&directory);
    let http = Server::http(move |request| http_backend(&directory, request));
    for (scheme, port) in [("git", daemon.port), ("http", http.port)] {
        let url = format!("{scheme}://127.0.0.1:{port}/groups.git");
        let data = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(data.path(), Remote::parse(&url).unwrap(), options()).unwrap();
        let error = mirror.fetch(None).unwrap_err();
        assert_eq!(error.failure, FetchFailure::ShallowRemote, "{error}");
        let help =
            "it is a shallow clone, which lacks older commits: run `git fetch --unshallow` in it";
        assert!(error.message.contains(help), "{error}");
    }
    std::fs::remove_file(origin.path().join("shallow")).unwrap();
    let data = tempfile::tempdir().unwrap();
    let url = format!("http://127.0.0.1:{}/groups.git", http.port);
    let mirror = Mirror::open(data.path(), Remote::parse(&url).unwrap(), options()).unwrap();
    assert_eq!(mirror.fetch(None).map(|it| it.head), Ok(id(&second)), "it has all commits again");
}

#[test]
fn a_malformed_commit_of_a_pull_request_stops_no_fetch_of_the_branch() {
    if !has_git() {
        return;
    }
    let (origin, first) = Origin::with_a_commit();
    let git = origin.git();
    let tree = git.find_commit(first.parse().unwrap()).unwrap().tree_id();
    let write = |parent: &str, who: &str| {
        let text =
            format!("tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nimported\n");
        git.odb().unwrap().write(git2::ObjectType::Commit, text.as_bytes()).unwrap().to_string()
    };
    let malformed = write(&first, "Ada a@example.com 1400000000 +0000");
    let request = |number: u32, head: &str| {
        let path = origin.path().join(format!("refs/pull/{number}/head"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{head}\n")).unwrap();
    };
    request(1, &write(&malformed, "Ada <a@example.com> 1900000000 +0000"));
    request(2, &malformed);
    let directory = origin.path().parent().unwrap().to_owned();
    let server = Server::http(move |request| http_backend(&directory, request));
    let url = format!("http://127.0.0.1:{}/groups.git", server.port);
    let data = tempfile::tempdir().unwrap();
    let refspecs = vec!["refs/pull/*/head".to_owned()];
    let options = MirrorOptions { refspecs, ..options() };
    let mirror = Mirror::open(data.path(), Remote::parse(&url).unwrap(), options).unwrap();
    mirror.fetch(None).unwrap();
    for number in 0..3 {
        let text = format!("name: Web{number}\n");
        let head = origin.commit("main", &[("groups/web.yaml", Put::File(&text))]);
        assert_eq!(mirror.fetch(None).map(|it| it.head), Ok(id(&head)));
        request(3, &head);
        let others = mirror.fetch_others().unwrap();
        let names: Vec<&str> = others.skipped.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["refs/pull/2/head"]);
    }
    // Everything of one commit and no more is brought: what both have is agreed on.
    assert_eq!(
        mirror.repository().unwrap().log(mirror.fetch(None).unwrap().head, 99).unwrap().len(),
        4
    );
}

#[test]
fn the_rest_of_a_repository_of_this_machine_is_fetched_when_it_is_deepened() {
    let (origin, first) = Origin::with_a_commit();
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    let third = origin.commit("main", &[("a", Put::File("b"))]);
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    let has = |commit: &str| mirror.repository().unwrap().commit(id(commit)).is_ok();
    let noted = data.path().join("mirror.git/clade-source-ends");
    // As git writes it for many ends: more than a file of a few lines has.
    let others = (1..2_000).map(|it| format!("{it:040x}\n")).collect::<Vec<_>>().concat();
    for (end, expected) in [(&third, [false, false]), (&second, [false, true])] {
        let text = format!("{others}{end}\n");
        std::fs::write(origin.path().join("shallow"), &text).unwrap();
        mirror.fetch(None).unwrap();
        assert_eq!([has(&first), has(&second)], expected, "{end}");
        assert_eq!(std::fs::read_to_string(&noted).unwrap(), text);
    }
    std::fs::remove_file(origin.path().join("shallow")).unwrap();
    mirror.fetch(None).unwrap();
    assert_eq!(mirror.repository().unwrap().log(id(&third), 9).unwrap().len(), 3);
    assert!(!noted.exists());
}
