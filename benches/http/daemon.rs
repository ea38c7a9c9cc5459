//! The real program, answering from a repository of ten thousand groups.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use git2::{IndexEntry, IndexTime, Oid, Repository, Signature, Time};
use tempfile::TempDir;

use super::connection::Connection;
use super::world::{Scale, estates};

pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: String,
    repository: TempDir,
    files: Arc<Vec<estates::File>>,
}

/// Commits that come one after the other.
pub(crate) struct Changing {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Changing {
    pub(crate) fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

impl Daemon {
    pub(crate) fn start(scale: Scale) -> Self {
        Self::start_with(scale, &[])
    }

    /// Starts it with more arguments.
    pub(crate) fn start_with(scale: Scale, more: &[&str]) -> Self {
        let repository = tempfile::tempdir().unwrap();
        Repository::init_bare(repository.path()).unwrap();
        let files = Arc::new(estates::files(scale, 1));
        let first = commit(repository.path(), &files, None);
        move_head(repository.path(), first);
        let mut child = Command::new(env!("CARGO_BIN_EXE_clade"))
            .args(["serve", "--listen", "127.0.0.1:0", "--interval", "1h", "--repo"])
            .arg(repository.path())
            .args(more)
            .env("RUST_LOG", "clade=info")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some((_, rest)) = line.split_once("listening on http://") {
                break rest.split(' ').next().unwrap().to_owned();
            }
        };
        // The daemon must not be held up by a full pipe.
        std::thread::spawn(move || lines.count());
        Self { child, address, repository, files }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has commits built and swapped in, one after the other, each of which changes one file. They
    /// are made before: a real push makes them on another machine.
    pub(crate) fn keep_changing(&self) -> Changing {
        let stop = Arc::new(AtomicBool::new(false));
        let address = self.address.clone();
        let directory = self.repository.path().to_owned();
        let mut commits = vec![head(&directory)];
        for number in 0..COMMITS {
            let (path, text) = &self.files[number * 37 % self.files.len()];
            let text = format!("{text}description: changed {}\n", fastrand::u64(..));
            let before = commits.last().copied();
            commits.push(commit(&directory, &[(path.clone(), text)], before));
        }
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut connection = Connection::new(&address);
                let before = builds(&mut connection);
                for commit in commits.into_iter().skip(1) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    move_head(&directory, commit);
                    connection.exchange("POST", "/controller/reconcile", "", b"");
                    std::thread::sleep(BETWEEN);
                }
                builds(&mut connection) - before
            }
        });
        Changing { stop, thread }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// How many commits are made to be swapped in, more than are wanted in one turn.
const COMMITS: usize = 8;

/// What lies between two of them: the daemon fetches once a second at most when it is asked to.
const BETWEEN: Duration = Duration::from_millis(1100);

/// Returns how many commits the daemon has built and made live.
fn builds(connection: &mut Connection) -> usize {
    let (_, metrics) = connection.exchange("GET", "/metrics", "", b"");
    let live = "clade_snapshot_builds_total{result=\"live\"} ";
    let metrics = String::from_utf8(metrics).unwrap();
    metrics.lines().find_map(|line| line.strip_prefix(live)).unwrap().parse().unwrap()
}

fn head(directory: &Path) -> Oid {
    Repository::open_bare(directory).unwrap().head().unwrap().target().unwrap()
}

fn move_head(directory: &Path, to: Oid) {
    let repository = Repository::open_bare(directory).unwrap();
    let name = repository.find_reference("HEAD").unwrap();
    let name = name.symbolic_target().unwrap().unwrap().to_owned();
    repository.reference(&name, to, true, "bench").unwrap();
}

/// Commits files on top of others.
fn commit(directory: &Path, files: &[estates::File], before: Option<Oid>) -> Oid {
    let repository = Repository::open_bare(directory).unwrap();
    let mut index = git2::Index::new().unwrap();
    let parent = before.map(|it| repository.find_commit(it).unwrap());
    if let Some(parent) = &parent {
        index.read_tree(&parent.tree().unwrap()).unwrap();
    }
    for (path, text) in files {
        let time = IndexTime::new(0, 0);
        let id = repository.blob(text.as_bytes()).unwrap();
        index
            .add(&IndexEntry {
                ctime: time,
                mtime: time,
                dev: 0,
                ino: 0,
                mode: 0o100_644,
                uid: 0,
                gid: 0,
                file_size: 0,
                id,
                flags: 0,
                flags_extended: 0,
                path: path.as_bytes().to_vec(),
            })
            .unwrap();
    }
    let tree = index.write_tree_to(&repository).unwrap();
    let tree = repository.find_tree(tree).unwrap();
    let who = Signature::new("a", "a@example.com", &Time::new(0, 0)).unwrap();
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    repository.commit(None, &who, &who, "x", &tree, &parents).unwrap()
}
