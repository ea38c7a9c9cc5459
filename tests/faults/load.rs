//! Load on a daemon that is written to and killed, with every answer recomputed from its commit.
//!
//! `--load MINUTES` runs it with 200 clients, a commit every two seconds, two writers and a kill a
//! minute; two faults run it for seconds.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clade::internals::classification::{self, Outcome, Version, classify};
use clade::internals::git::Repository;
use clade::internals::model::Node;
use clade::internals::reconcile::load;
use indoc::formatdoc;
use serde_json::json;

use crate::hub::Hub;
use crate::program::Daemon;
use crate::world::{Scale, estates, nodes};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "load::with-commits-and-writes",
        promise: "every answer is that of the commit that it names, and no later answer is older",
        injection: "24 clients for 4 s, a commit every 100 ms, two writers",
        speed: Speed::Fast,
        run: || {
            held(&Load {
                clients: 24,
                time: Duration::from_secs(4),
                pause: Duration::from_millis(20),
                commit_every: Duration::from_millis(100),
                kill_every: None,
            })
        },
    },
    Fault {
        name: "load::with-kills",
        promise: "every answer is that of the commit that it names, no later answer is older, and no answered write is lost",
        injection: "50 clients for 60 s, a commit every 500 ms, two writers, kill -9 every 5 s",
        speed: Speed::Slow,
        run: || {
            held(&Load {
                clients: 50,
                time: Duration::from_mins(1),
                pause: Duration::from_millis(50),
                commit_every: Duration::from_millis(500),
                kill_every: Some(Duration::from_secs(5)),
            })
        },
    },
];

/// What a daemon is put under.
#[derive(Debug)]
struct Load {
    clients: usize,
    time: Duration,
    /// How long a client waits between its requests.
    pause: Duration,
    commit_every: Duration,
    kill_every: Option<Duration>,
}

fn held(load: &Load) -> Seen {
    let report = run(load);
    report.assert_clean();
    Seen::Held(report.to_string())
}

/// Runs the load of the command line; returns whether everything held.
pub(crate) fn run_for(minutes: u64) -> bool {
    let report = run(&Load {
        clients: 200,
        time: Duration::from_mins(minutes),
        pause: Duration::from_millis(400),
        commit_every: Duration::from_secs(2),
        kill_every: Some(Duration::from_mins(1)),
    });
    println!("{report}");
    report.is_clean()
}

/// The observations.
#[derive(Debug, Default)]
pub(crate) struct Report {
    answers: u64,
    /// Answers that are those of no commit.
    wrong: Vec<String>,
    /// Answers of another commit than the one they name.
    mixed: Vec<String>,
    /// Answers that are older than one that arrived before their request.
    older: Vec<String>,
    failed: BTreeMap<String, u64>,
    commits: u64,
    writes: u64,
    lost_writes: Vec<String>,
    restarts: Vec<Duration>,
    micros: Vec<u32>,
    peak_kib: u64,
}

impl Report {
    fn is_clean(&self) -> bool {
        let bad = [&self.wrong, &self.mixed, &self.older, &self.lost_writes];
        bad.iter().all(|it| it.is_empty()) && self.answers > 0 && self.writes > 0
    }

    fn assert_clean(&self) {
        assert!(
            self.is_clean(),
            "{self}\nwrong: {:?}\nmixed: {:?}\nolder: {:?}\nlost: {:?}",
            self.wrong.first(),
            self.mixed.first(),
            self.older.first(),
            self.lost_writes.first(),
        );
    }

    /// Asserts that each answer was that of the commit that it named.
    pub(crate) fn assert_right(&self) {
        let (wrong, mixed) = (self.wrong.first(), self.mixed.first());
        assert!(wrong.is_none() && mixed.is_none(), "wrong: {wrong:?}\nmixed: {mixed:?}");
        assert!(self.answers > 0, "something was compared");
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.answers += other.answers;
        self.wrong.extend(other.wrong);
        self.mixed.extend(other.mixed);
        self.older.extend(other.older);
        self.micros.extend(other.micros);
        self.writes += other.writes;
        self.lost_writes.extend(other.lost_writes);
        for (kind, count) in other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut micros = self.micros.clone();
        micros.sort_unstable();
        let quantile = |share: usize| {
            let at = (micros.len() * share / 1000).min(micros.len().saturating_sub(1));
            f64::from(micros.get(at).copied().unwrap_or_default()) / 1000.0
        };
        let failed: Vec<String> =
            self.failed.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let failed = if failed.is_empty() { "none".to_owned() } else { failed.join(", ") };
        let longest = self.restarts.iter().max().map_or(0, Duration::as_millis);
        write!(
            f,
            "{} answers, {} wrong, {} mixed, {} older; failed: {failed}; {} commits, {} writes, {} lost; {} restarts, the longest {longest} ms; p50 {:.1} ms, p99 {:.1} ms; peak RSS {} MiB",
            self.answers,
            self.wrong.len(),
            self.mixed.len(),
            self.older.len(),
            self.commits,
            self.writes,
            self.lost_writes.len(),
            self.restarts.len(),
            quantile(500),
            quantile(990),
            self.peak_kib / 1024,
        )
    }
}

/// What a commit answers to each node, and how many came before it.
#[derive(Debug)]
struct Expected {
    answers: Vec<String>,
    generation: u64,
}

/// The answers of commits, computed by the library.
pub(crate) struct Judge {
    repository: Mutex<Repository>,
    nodes: Vec<Node>,
    known: Mutex<BTreeMap<String, Arc<Expected>>>,
    /// The newest generation that any client has seen.
    newest: AtomicU64,
}

/// How many commits are kept to tell a mixed answer from a wrong one.
const KEPT: usize = 120;

impl Judge {
    /// Judges answers about those of some nodes that have no conflict at a commit.
    pub(crate) fn of_answered(path: &std::path::Path, nodes: Vec<Node>, commit: &str) -> Self {
        let all = Self {
            repository: Mutex::new(Repository::discover(path).unwrap()),
            nodes,
            known: Mutex::default(),
            newest: AtomicU64::new(0),
        };
        let answers = all.of(commit).unwrap();
        let nodes = all.nodes.iter().zip(&answers.answers).filter(|(_, it)| *it != "a conflict");
        let nodes: Vec<Node> = nodes.map(|(node, _)| node.clone()).take(40).collect();
        assert!(nodes.len() > 20, "most nodes have no conflict");
        Self { nodes, known: Mutex::default(), ..all }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn of(&self, commit: &str) -> Option<Arc<Expected>> {
        if let Some(expected) = self.known.lock().unwrap().get(commit) {
            return Some(Arc::clone(expected));
        }
        let repository = self.repository.lock().unwrap();
        // Another client may have been faster.
        if let Some(expected) = self.known.lock().unwrap().get(commit) {
            return Some(Arc::clone(expected));
        }
        let id = commit.parse().ok()?;
        let estate = load(&repository, id, ".").ok()?.estate?;
        let answer = |node: &Node| -> String {
            let explanation = classify(&estate, node).unwrap();
            match &explanation.outcome {
                Outcome::Classified(result) => {
                    classification::classified(&explanation, result, Version::V1).to_string()
                }
                Outcome::Conflict(_) => "a conflict".to_owned(),
            }
        };
        let generation = repository.log(id, usize::MAX).ok()?.len() as u64;
        let answers = self.nodes.iter().map(answer).collect();
        let expected = Arc::new(Expected { answers, generation });
        let mut known = self.known.lock().unwrap();
        known.insert(commit.to_owned(), Arc::clone(&expected));
        if known.len() > KEPT {
            let oldest = known.iter().min_by_key(|(_, it)| it.generation);
            let oldest = oldest.map(|(commit, _)| commit.clone()).unwrap();
            known.remove(&oldest);
        }
        Some(expected)
    }

    pub(crate) fn judge(
        &self,
        number: usize,
        commit: &str,
        body: &str,
        before: u64,
        report: &mut Report,
    ) {
        report.answers += 1;
        let said = || format!("{} of {commit}: {body}", self.nodes[number].name);
        let Some(expected) = self.of(commit) else {
            report.wrong.push(said());
            return;
        };
        if expected.answers[number] != body {
            let known = self.known.lock().unwrap();
            let is_other = known.values().any(|it| it.answers[number] == body);
            if is_other { report.mixed.push(said()) } else { report.wrong.push(said()) }
        } else if expected.generation < before {
            report.older.push(said());
        }
        self.newest.fetch_max(expected.generation, Ordering::SeqCst);
    }
}

/// Sends a request and returns head and body; an error says how it failed.
pub(crate) fn ask(
    address: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(String, String), String> {
    ask_within(Duration::from_secs(30), address, method, path, body)
}

/// Sends a request; the connection may be silent for so long.
pub(crate) fn ask_within(
    timeout: Duration,
    address: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(String, String), String> {
    let kind = |error: io::Error| match error.kind() {
        io::ErrorKind::ConnectionRefused => "refused".to_owned(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "reset".to_owned(),
        other => format!("{other:?}"),
    };
    let mut stream = TcpStream::connect(address).map_err(kind)?;
    stream.set_read_timeout(Some(timeout)).map_err(kind)?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).map_err(kind)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(kind)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or("closed without an answer")?;
    let length = header(head, "Content-Length").and_then(|it| it.parse().ok());
    if length.is_some_and(|it: usize| it != body.len()) {
        return Err("cut short".to_owned());
    }
    Ok((head.to_owned(), body.to_owned()))
}

pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// The groups that commits change, each with a number that all of a commit share.
const CHANGED: usize = 12;

fn changed(number: u64) -> Vec<(String, String)> {
    let group = |it: usize| {
        let text = format!(
            "name: Changed {it}\nrule: [\"~\", name, \"[{it}{}]\\\\.dc\"]\nclasses:\n  changed_{it}: {{number: {number}}}\n",
            it % 10
        );
        (format!("groups/changed/{it}.yaml"), text)
    };
    (0..CHANGED).map(group).collect()
}

fn written(writer: usize) -> (String, String) {
    let text = formatdoc!(
        r#"
            name: Written {writer}
            id: eeeeeeee-0000-4000-8000-00000000000{writer}
            rule: ["~", name, ".*"]
            classes:
              written_{writer}: {{number: 0}}
        "#
    );
    (format!("groups/written/{writer}.yaml"), text)
}

const WRITERS: usize = 2;

fn run(load: &Load) -> Report {
    let scale = Scale::of(100);
    let mut files = estates::files(scale, 5);
    files.extend(changed(0));
    files.extend((0..WRITERS).map(written));
    let hub = Hub::new(&pairs(&files));
    let first = hub.head_id();
    let judge = Judge::of_answered(&hub.path(), nodes::nodes(scale, 120, 6), &first);
    let bodies: Vec<String> =
        judge.nodes.iter().map(|it| String::from_utf8(nodes::body(it)).unwrap()).collect();

    // The same port after each restart.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let start =
        || hub.serve(&["--listen", &address, "--interval", "100ms", "--write-retries", "50"]);
    let mut daemon = start();
    let stop = AtomicBool::new(false);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..load.clients)
            .map(|client| {
                let (judge, bodies, stop, address) = (&judge, &bodies, &stop, &address);
                scope.spawn(move || client_loop(client, load, judge, bodies, address, stop))
            })
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (path, stop, address) = (hub.path(), &stop, &address);
                scope.spawn(move || writer_loop(writer, load, &path, address, stop))
            })
            .collect();
        let began = Instant::now();
        let mut killed = Instant::now();
        while began.elapsed() < load.time {
            std::thread::sleep(load.commit_every);
            report.commits += u64::from(commit(&hub, report.commits + 1));
            if load.kill_every.is_some_and(|it| killed.elapsed() >= it) {
                report.peak_kib = report.peak_kib.max(peak_kib(&daemon));
                killed = Instant::now();
                std::mem::replace(&mut daemon, Daemon::at(&address)).kill();
                daemon = start();
                report.restarts.push(killed.elapsed());
            }
        }
        stop.store(true, Ordering::SeqCst);
        for thread in clients.into_iter().chain(writers) {
            report.add(thread.join().unwrap());
        }
    });
    report.peak_kib = report.peak_kib.max(peak_kib(&daemon));
    report
}

fn pairs(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

/// Pushes a commit that changes many groups at once, unless a writer is faster each time.
fn commit(hub: &Hub, number: u64) -> bool {
    let files = changed(number);
    let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
    (0..20).any(|_| hub.try_commit_as(&ada, "Change", &pairs(&files)).is_ok())
}

fn client_loop(
    client: usize,
    load: &Load,
    judge: &Judge,
    bodies: &[String],
    address: &str,
    stop: &AtomicBool,
) -> Report {
    let mut report = Report::default();
    let mut turn = client;
    while !stop.load(Ordering::SeqCst) {
        let number = turn % bodies.len();
        turn += 7;
        let before = judge.newest.load(Ordering::SeqCst);
        let path = format!("/v1/classified/nodes/{}", judge.nodes[number].name);
        let began = Instant::now();
        match ask(address, "POST", &path, &bodies[number]) {
            Ok((head, body)) if head.starts_with("HTTP/1.1 200") => {
                let micros = u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX);
                report.micros.push(micros);
                let commit = header(&head, "X-Clade-Commit").unwrap_or_default();
                judge.judge(number, commit, &body, before, &mut report);
            }
            Ok((head, body)) => {
                let status = head.lines().next().unwrap_or_default();
                let body: String = body.chars().take(60).collect();
                *report.failed.entry(format!("{status} {body}")).or_default() += 1;
            }
            Err(kind) => *report.failed.entry(kind).or_default() += 1,
        }
        std::thread::sleep(load.pause);
    }
    report
}

/// Writes one number after the other; one that was answered is on the branch.
fn writer_loop(
    writer: usize,
    load: &Load,
    hub: &std::path::Path,
    address: &str,
    stop: &AtomicBool,
) -> Report {
    let mut report = Report::default();
    let path = format!("/v1/groups/eeeeeeee-0000-4000-8000-00000000000{writer}");
    for number in 1.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let body = json!({"classes": {format!("written_{writer}"): {"number": number}}});
        match ask(address, "POST", &path, &body.to_string()) {
            Ok((head, _)) if head.starts_with("HTTP/1.1 200") => {
                report.writes += 1;
                let git = git2::Repository::open(hub).unwrap();
                let tree = git.revparse_single("refs/heads/main").unwrap().peel_to_tree().unwrap();
                let (file, _) = written(writer);
                let entry = tree.get_path(std::path::Path::new(&file)).unwrap();
                let text = git.find_blob(entry.id()).unwrap().content().to_vec();
                let text = String::from_utf8(text).unwrap();
                if !text.contains(&format!("number: {number}")) {
                    report.lost_writes.push(format!("{number}: {text}"));
                }
            }
            Ok((head, body)) => {
                let status = head.lines().next().unwrap_or_default();
                let body: String = body.chars().take(60).collect();
                *report.failed.entry(format!("write {status} {body}")).or_default() += 1;
            }
            Err(kind) => *report.failed.entry(format!("write {kind}")).or_default() += 1,
        }
        std::thread::sleep(load.commit_every);
    }
    report
}

/// Returns the peak memory of a daemon.
fn peak_kib(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}
