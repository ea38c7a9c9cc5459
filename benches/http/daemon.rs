//! The real program, answering from a repository of ten thousand groups.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use git2::{IndexEntry, IndexTime, Repository, Signature, Time};
use tempfile::TempDir;

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
        let repository = tempfile::tempdir().unwrap();
        Repository::init_bare(repository.path()).unwrap();
        let files = Arc::new(estates::files(scale, 1));
        commit(repository.path(), &files);
        let mut child = Command::new(env!("CARGO_BIN_EXE_clade"))
            .args(["serve", "--listen", "127.0.0.1:0", "--interval", "1h", "--repo"])
            .arg(repository.path())
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

    /// Changes one file after the other and has each commit built and swapped in.
    pub(crate) fn keep_changing(&self) -> Changing {
        let stop = Arc::new(AtomicBool::new(false));
        let (address, files) = (self.address.clone(), Arc::clone(&self.files));
        let directory = self.repository.path().to_owned();
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut built = 0;
                while !stop.load(Ordering::Relaxed) {
                    let (path, text) = &files[built * 37 % files.len()];
                    let text = format!("{text}description: changed {}\n", fastrand::u64(..));
                    commit(&directory, &[(path.clone(), text)]);
                    let mut stream = TcpStream::connect(&address).unwrap();
                    stream
                        .write_all(b"POST /controller/reconcile HTTP/1.1\r\nHost: clade\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                        .unwrap();
                    stream.read_to_end(&mut Vec::new()).unwrap();
                    built += 1;
                    std::thread::sleep(Duration::from_millis(250));
                }
                built
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

/// Commits files on top of what is there.
fn commit(directory: &std::path::Path, files: &[estates::File]) {
    let repository = Repository::open_bare(directory).unwrap();
    let mut index = git2::Index::new().unwrap();
    let parent = repository.head().ok().map(|it| it.peel_to_commit().unwrap());
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
    repository.commit(Some("HEAD"), &who, &who, "x", &tree, &parents).unwrap();
}
