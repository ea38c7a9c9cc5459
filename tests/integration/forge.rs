//! A forge that accepts commit statuses, or misbehaves, and a daemon that reports to it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Daemon, GitRepository};

/// A request that came.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Taken,
    Lost,
}

/// A forge.
pub(crate) struct Stub {
    pub(crate) url: String,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Stub {
    /// Starts one that answers with some status lines, and 201 from then on.
    pub(crate) fn start(answers: Vec<&'static str>) -> Self {
        let answers = Mutex::new(answers.into_iter());
        Self::behaving(move |stream| {
            let answer = answers.lock().unwrap().next().unwrap_or("201 Created");
            respond(stream, answer, "{}");
            if answer.starts_with('2') { Fate::Taken } else { Fate::Lost }
        })
    }

    /// Starts one that answers by a function; each connection has a thread.
    pub(crate) fn behaving(
        answer: impl Fn(&mut TcpStream) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stub = Self { url, calls: Arc::default() };
        let calls = Arc::clone(&stub.calls);
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (calls, answer) = (Arc::clone(&calls), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let Some(call) = read(&stream) else { return };
                    if answer(&mut stream) == Fate::Taken {
                        calls.lock().unwrap().push(call);
                    }
                });
            }
        });
        stub
    }

    /// Returns the statuses that it accepted.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Returns the state and description of the last status of a commit, once it is there.
    pub(crate) fn status(&self, commit: &str, context: &str) -> (String, String) {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let found = self.calls().into_iter().rev().find(|it| {
                it.path.contains(commit)
                    && (it.body["context"] == context || it.body["name"] == context)
            });
            if let Some(call) = found {
                let text = |key: &str| call.body[key].as_str().unwrap().to_owned();
                return (text("state"), text("description"));
            }
            assert!(Instant::now() < deadline, "no {context} of {commit}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Writes a whole answer with a body.
pub(crate) fn respond(stream: &mut TcpStream, status: &str, body: &str) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}");
    // A daemon that is killed does not take it.
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).ok();
}

fn read(stream: &TcpStream) -> Option<Call> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Call { path, headers, body: serde_json::from_slice(&body).ok()? })
}

/// A repository and the data directory of a daemon that reports what its commits came to.
pub(crate) struct World {
    pub(crate) repository: GitRepository,
    pub(crate) data: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let (repository, data) = (GitRepository::new(), tempfile::tempdir().unwrap());
        std::fs::write(data.path().join("token"), "secret-token\n").unwrap();
        Self { repository, data }
    }

    /// Returns the arguments of a daemon that reports to a forge.
    pub(crate) fn arguments(&self, stub: &Stub, provider: &str) -> Vec<String> {
        let (data, token) = (self.data.path().join("data"), self.data.path().join("token"));
        let text = |it: &std::path::Path| it.to_str().unwrap().to_owned();
        [
            ("--repo", self.repository.text_path()),
            ("--data-dir", text(&data)),
            ("--branch", "main".to_owned()),
            ("--forge", provider.to_owned()),
            ("--forge-url", stub.url.clone()),
            ("--forge-repository", "ops/groups".to_owned()),
            ("--forge-token-file", text(&token)),
            ("--instance", "eu1".to_owned()),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect()
    }

    pub(crate) fn start(&self, stub: &Stub, provider: &str, more: &[&str]) -> Daemon {
        let all = self.arguments(stub, provider);
        let all: Vec<&str> = all.iter().map(String::as_str).chain(more.iter().copied()).collect();
        Daemon::start(&all)
    }

    /// Commits the head of a pull request on top of the branch, which stays where it is.
    pub(crate) fn propose(&self, number: u32, files: &[(&str, &str)]) -> String {
        let git = self.repository.git();
        let branch = git.head().unwrap().target().unwrap();
        git.set_head_detached(branch).unwrap();
        let head = self.repository.commit("proposed", files);
        let name = format!("refs/pull/{number}/head");
        git.reference(&name, head.parse().unwrap(), true, "").unwrap();
        git.set_head("refs/heads/main").unwrap();
        let branch = git.find_object(branch, None).unwrap();
        git.reset(&branch, git2::ResetType::Hard, None).unwrap();
        head
    }
}
