//! Refs beside the branch that cannot be fetched for a while: they are fetched again, and delay no others.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clade::internals::git::{FetchFailure, Mirror, MirrorOptions, Remote};

use super::server::{Server, has_git, http_backend};
use super::transports::options;
use crate::program::Daemon;
use crate::repository::{Origin, Put};

/// What becomes of a fetch of commits that are spoilt.
#[derive(Clone, Copy, Debug)]
enum Spoil {
    Garble,
    Stall,
}

/// A server that spoils each fetch of some commits.
struct SpoilingServer {
    server: Server,
    spoilt: Arc<Mutex<Vec<String>>>,
    /// How many packs were requested.
    packs: Arc<AtomicUsize>,
}

impl SpoilingServer {
    fn of(origin: &Origin, spoil: Spoil) -> Self {
        let spoilt: Arc<Mutex<Vec<String>>> = Arc::default();
        let packs: Arc<AtomicUsize> = Arc::default();
        let (path, spoils, counted) = (origin.path(), Arc::clone(&spoilt), Arc::clone(&packs));
        let server = Server::http(move |request| {
            let mut answer = http_backend(path.parent().unwrap(), request);
            if request.method != "POST" {
                return answer;
            }
            counted.fetch_add(1, Ordering::SeqCst);
            let asked = String::from_utf8_lossy(&request.body).into_owned();
            if spoils.lock().unwrap().iter().any(|it| asked.contains(&format!("want {it}"))) {
                match spoil {
                    Spoil::Stall => std::thread::sleep(Duration::from_secs(12)),
                    Spoil::Garble => {
                        let pack = answer.windows(4).position(|it| it == b"PACK").unwrap();
                        answer[pack + 30] ^= 1;
                    }
                }
            }
            answer
        });
        Self { server, spoilt, packs }
    }

    fn spoil(&self, commits: &[String]) {
        *self.spoilt.lock().unwrap() = commits.to_vec();
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/groups.git", self.server.port)
    }

    fn open(&self, data: &Path, timeout: Duration) -> Mirror {
        let refspecs = vec!["refs/pull/*/head".to_owned()];
        let options = MirrorOptions { refspecs, timeout, ..options() };
        Mirror::open(data, Remote::parse(&self.url()).unwrap(), options).unwrap()
    }

    /// Returns how many packs are requested meanwhile.
    fn packs_of(&self, work: impl FnOnce()) -> usize {
        let before = self.packs.load(Ordering::SeqCst);
        work();
        self.packs.load(Ordering::SeqCst) - before
    }
}

/// Opens a pull request, and returns its head.
fn propose(origin: &Origin, number: usize) -> String {
    let text = format!("name: Web{number}\n");
    let head = origin.commit("topic", &[("groups/b.yaml", Put::File(&text))]);
    let git = origin.git();
    git.reference(&format!("refs/pull/{number}/head"), head.parse().unwrap(), true, "").unwrap();
    git.find_reference("refs/heads/topic").unwrap().delete().unwrap();
    head
}

fn names(mirror: &Mirror) -> Vec<String> {
    mirror.fetch_others().unwrap().skipped.into_iter().map(|it| it.name).collect()
}

fn has(mirror: &Mirror, name: &str, commit: &str) -> bool {
    let found = mirror.repository().unwrap().resolve(name);
    found.is_ok_and(|it| it.to_string() == commit)
}

/// Fetches other refs until none is skipped.
fn fetch_all(mirror: &Mirror) {
    let until = Instant::now() + Duration::from_mins(1);
    while !names(mirror).is_empty() {
        assert!(Instant::now() < until, "refs are still skipped");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_ref_that_failed_once_is_fetched_again() {
    if !has_git() {
        return;
    }
    for (spoil, failure) in
        [(Spoil::Garble, FetchFailure::MalformedResponse), (Spoil::Stall, FetchFailure::Timeout)]
    {
        let (origin, _) = Origin::with_a_commit();
        let server = SpoilingServer::of(&origin, spoil);
        let data = tempfile::tempdir().unwrap();
        let mirror = server.open(data.path(), Duration::from_secs(6));
        mirror.fetch(None).unwrap();
        let head = propose(&origin, 1);
        server.spoil(std::slice::from_ref(&head));
        mirror.fetch_watched(None).unwrap();
        assert!(mirror.needs_others(), "{spoil:?}");
        let others = mirror.fetch_others().unwrap();
        let failures: Vec<FetchFailure> = others.skipped.iter().map(|it| it.failure).collect();
        assert_eq!(failures, [failure], "{spoil:?}");
        assert!(mirror.expects_others(), "{spoil:?}");
        server.spoil(&[]);
        fetch_all(&mirror);
        assert!(has(&mirror, "refs/pull/1/head", &head), "{spoil:?}");
        mirror.fetch_watched(None).unwrap();
        assert!(!mirror.needs_others(), "{spoil:?}");
        assert_eq!(mirror.until_retry(), None, "{spoil:?}");
    }
}

#[test]
fn many_refs_that_fail_delay_no_others() {
    if !has_git() {
        return;
    }
    let (origin, _) = Origin::with_a_commit();
    let server = SpoilingServer::of(&origin, Spoil::Garble);
    let data = tempfile::tempdir().unwrap();
    let mirror = server.open(data.path(), Duration::from_mins(1));
    mirror.fetch(None).unwrap();
    let spoilt: Vec<String> = (1..=12).map(|it| propose(&origin, it)).collect();
    server.spoil(&spoilt);
    assert_eq!(names(&mirror).len(), 12);
    let good = propose(&origin, 13);
    mirror.retry_others();
    let packs = server.packs_of(|| assert_eq!(names(&mirror).len(), 12));
    assert!(has(&mirror, "refs/pull/13/head", &good));
    assert_eq!(packs, 6, "one for the new one, one for all, and four for some alone");
    // A write fetches what it waits for, whatever others do.
    mirror.retry_others();
    let packs = server.packs_of(|| drop(mirror.fetch_others_for("refs/pull/7/head").unwrap()));
    assert_eq!(packs, 1);
    assert!(mirror.skipped("refs/pull/7/head").is_some());
    server.spoil(&[]);
    mirror.retry_others();
    let packs = server.packs_of(|| assert_eq!(names(&mirror), [""; 0]));
    assert_eq!(packs, 1, "they are fetched together");
}

#[test]
fn a_file_in_the_way_of_a_ref_is_not_the_fault_of_the_ref() {
    let (origin, _) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let remote = Remote::parse(origin.path().to_str().unwrap()).unwrap();
    let refspecs = vec!["refs/pull/*/head".to_owned()];
    let mirror =
        Mirror::open(data.path(), remote, MirrorOptions { refspecs, ..options() }).unwrap();
    mirror.fetch(None).unwrap();
    let head = propose(&origin, 1);
    let in_the_way = data.path().join("mirror.git/refs/pull");
    std::os::unix::fs::symlink("/dev/null", &in_the_way).unwrap();
    let skipped = mirror.fetch_others().unwrap().skipped;
    assert_eq!(skipped.first().map(|it| it.failure), Some(FetchFailure::Other), "{skipped:?}");
    std::fs::remove_file(&in_the_way).unwrap();
    fetch_all(&mirror);
    assert!(has(&mirror, "refs/pull/1/head", &head));
}

#[test]
fn a_skipped_ref_that_moves_is_fetched() {
    let (origin, _) = Origin::with_a_commit();
    let git = origin.git();
    let blob = git.blob(b"x").unwrap();
    git.reference("refs/tags/a", blob, true, "").unwrap();
    let data = tempfile::tempdir().unwrap();
    let remote = Remote::parse(origin.path().to_str().unwrap()).unwrap();
    let mirror = Mirror::open(data.path(), remote, options()).unwrap();
    mirror.fetch_watched(None).unwrap();
    assert_eq!(names(&mirror), ["refs/tags/a"]);
    let main = git.refname_to_id("refs/heads/main").unwrap();
    git.reference("refs/tags/a", main, true, "").unwrap();
    mirror.fetch_watched(None).unwrap();
    assert!(mirror.needs_others());
    assert_eq!(names(&mirror), [""; 0]);
    mirror.fetch_watched(None).unwrap();
    assert!(!mirror.needs_others());
}

#[test]
fn a_daemon_fetches_a_ref_again_between_polls_and_when_it_is_told_to() {
    if !has_git() {
        return;
    }
    let (origin, first) = Origin::with_a_commit();
    let server = SpoilingServer::of(&origin, Spoil::Garble);
    let data = tempfile::tempdir().unwrap();
    let url = server.url();
    let own = ["--repo", &url, "--data-dir", data.path().to_str().unwrap()];
    let more = ["--allow-insecure-remotes", "--git-proxy", "none", "--interval", "1h"];
    let refs = ["--fetch-refspec", "refs/pull/*/head"];
    let daemon = Daemon::start(&[&own[..], &more, &refs].concat());
    daemon.wait_until("the first commit answers", |it| {
        it.get("/controller/status").json()["active"]["commit"] == first
    });
    let is_skipped = |it: &Daemon| it.get("/controller/status").body.contains("RefsSkipped");
    for (number, is_told) in [(1, false), (2, true)] {
        let head = propose(&origin, number);
        server.spoil(std::slice::from_ref(&head));
        daemon.request("POST", "/controller/reconcile", "");
        daemon.wait_until("the ref is skipped", is_skipped);
        server.spoil(&[]);
        if is_told {
            daemon.request("POST", "/controller/reconcile", "");
        }
        daemon.wait_until("the ref is fetched", |it| !is_skipped(it));
        assert_eq!(daemon.get(&format!("/v1/groups?commit={head}")).status, 200);
    }
}
