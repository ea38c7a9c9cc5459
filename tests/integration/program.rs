//! Running the real program.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Returns the root of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Prepares the program without anything from the surroundings, in the root of the project.
pub(crate) fn clade(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clade"));
    command.args(arguments).current_dir(root()).stdin(Stdio::null());
    for (name, _) in std::env::vars() {
        if name.starts_with("CLADE_") || name == "NO_COLOR" {
            command.env_remove(name);
        }
    }
    command
}

/// Prepares a daemon on a free port that fetches often, unless the arguments say otherwise.
pub(crate) fn serve(arguments: &[&str]) -> Command {
    let unless_given = |flag: &'static str, value: &'static str| {
        if arguments.contains(&flag) { Vec::new() } else { vec![flag, value] }
    };
    let listen = unless_given("--listen", "127.0.0.1:0");
    let interval = unless_given("--interval", "50ms");
    clade(&[&["serve"], &listen[..], &interval, arguments].concat())
}

/// Lets another program start a prepared one, whose words are its last arguments.
pub(crate) fn started_by(mut launcher: Command, program: &Command) -> Command {
    launcher.arg(program.get_program()).args(program.get_args()).stdin(Stdio::null());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => launcher.env(name, value),
            None => launcher.env_remove(name),
        };
    }
    if let Some(directory) = program.get_current_dir() {
        launcher.current_dir(directory);
    }
    launcher
}

/// What a run of the program left.
pub(crate) struct Done {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn run(arguments: &[&str]) -> Done {
    clade(arguments).output().unwrap().into()
}

/// A daemon that is stopped when it is dropped.
pub(crate) struct Daemon {
    child: Option<Child>,
    pub(crate) address: String,
    /// The last lines of its log, which a failing test shows.
    log: Arc<Mutex<VecDeque<String>>>,
}

/// How long a daemon may take to start or to reach a state; a machine under load is slow.
const TIMEOUT: Duration = Duration::from_secs(90);

/// How long a request may be without a byte of its answer, so that one that hangs fails and the log is shown.
const HUNG: Duration = Duration::from_mins(5);

/// How many lines of the log a failing test shows.
const SHOWN_LINES: usize = 30;

/// Returns the address that a line of the log names, if it is one that a daemon listens on.
fn listening_address(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("listening on http")?;
    let (_, address) = rest.split_once("://")?;
    address.split(' ').next().map(str::to_owned)
}

impl Daemon {
    /// Starts the daemon on a free port and waits until it listens.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::launch(serve(arguments))
    }

    /// Starts a daemon by a command and waits until it listens.
    pub(crate) fn launch(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        let log: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            use std::io::BufRead as _;
            for line in std::io::BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_back(line.clone());
                while kept.len() > SHOWN_LINES {
                    kept.pop_front();
                }
                drop(kept);
                if let Some(address) = listening_address(&line) {
                    // Later lines are read too, so that the daemon is not held up.
                    sender.send(Ok(address)).ok();
                } else {
                    sender.send(Err(line)).ok();
                }
            }
        });
        let mut said = Vec::new();
        loop {
            match lines.recv_timeout(TIMEOUT) {
                Ok(Ok(address)) => return Self { child: Some(child), address, log },
                Ok(Err(line)) => said.push(line),
                Err(error) => panic!("the daemon did not start: {error}: {said:?}"),
            }
        }
    }

    /// Returns the address of its second listener, which is that of operators.
    pub(crate) fn admin_address(&self) -> String {
        let second =
            |it: &Self| it.log_lines().iter().filter_map(|it| listening_address(it)).nth(1);
        self.wait_until("it listens for operators", |it| second(it).is_some());
        second(self).unwrap()
    }

    /// Another address of a daemon, which this does not stop.
    pub(crate) fn at(address: &str) -> Self {
        Self { child: None, address: address.to_owned(), log: Arc::default() }
    }

    /// Returns its address.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request; returns the status, or none where the daemon is gone.
    pub(crate) fn try_request(&self, method: &str, path: &str, body: &str) -> Option<u16> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(HUNG)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.split(' ').nth(1)?.parse().ok()
    }

    /// Sends a request and returns status, head and body.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Response {
        self.request_with(method, path, "", body)
    }

    /// Sends a request with more headers, each with its line end.
    pub(crate) fn request_with(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Response {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(HUNG)).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        // The answer to a request that is too large may come before all of it is sent.
        let sent = stream.write_all(request.as_bytes());
        let mut text = String::new();
        let read = stream.read_to_string(&mut text);
        assert!(!text.is_empty(), "no answer: {sent:?} {read:?}");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Response { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path, "")
    }

    /// Waits until a condition holds.
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !holds(self) {
            assert!(Instant::now() < deadline, "waited in vain until {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the last lines of its log.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().cloned().collect()
    }

    /// Returns the id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Asks the daemon to stop and returns its exit status.
    pub(crate) fn terminate(mut self) -> i32 {
        let mut child = self.child.take().unwrap();
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        child.wait().unwrap().code().unwrap()
    }

    /// Waits until the daemon ends by itself or by a signal.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.take().unwrap().wait().unwrap()
    }

    /// Ends the daemon without warning.
    pub(crate) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            for line in log.iter() {
                eprintln!("  daemon: {line}");
            }
        }
        if let Some(child) = &mut self.child {
            // It may have ended already.
            child.kill().ok();
            child.wait().ok();
        }
    }
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// A git repository in a temporary directory.
pub(crate) struct GitRepository {
    directory: tempfile::TempDir,
    inner: git2::Repository,
}

impl GitRepository {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        let inner =
            git2::Repository::init_opts(directory.path(), options.initial_head("main")).unwrap();
        Self { directory, inner }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    pub(crate) fn text_path(&self) -> String {
        self.directory.path().to_str().unwrap().to_owned()
    }

    /// Commits files, given as path and content, on top of the present tree; empty content removes.
    pub(crate) fn commit(&self, message: &str, files: &[(&str, &str)]) -> String {
        let mut index = self.inner.index().unwrap();
        for (path, content) in files {
            let file = self.directory.path().join(path);
            if content.is_empty() {
                std::fs::remove_file(&file).unwrap();
                index.remove_path(Path::new(path)).unwrap();
            } else {
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(&file, content).unwrap();
                index.add_path(Path::new(path)).unwrap();
            }
        }
        index.write().unwrap();
        let tree = self.inner.find_tree(index.write_tree().unwrap()).unwrap();
        let parent = self.inner.head().ok().map(|head| head.peel_to_commit().unwrap());
        let time = git2::Time::new(1_760_000_000, 0);
        let author = git2::Signature::new("Ada", "ada@example.com", &time).unwrap();
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        self.inner
            .commit(Some("HEAD"), &author, &author, message, &tree, &parents)
            .unwrap()
            .to_string()
    }

    pub(crate) fn git(&self) -> &git2::Repository {
        &self.inner
    }
}
