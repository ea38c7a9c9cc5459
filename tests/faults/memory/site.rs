//! The daemon under attack: its repository, its fleet, and its memory.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clade::internals::model::Node;
use indoc::formatdoc;
use serde_json::json;

use super::client::{Counts, Stop};
use super::process_peak;
use crate::hub::Hub;
use crate::load::{Judge, Report, ask, header};
use crate::program::{Daemon, clade};
use crate::world::nodes::{body, certname, nodes};
use crate::world::{Scale, estates};

/// How large the world is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) groups: usize,
    pub(super) nodes: usize,
}

/// How many old commits there are.
pub(super) const COMMITS: usize = 269;

/// How many of the groups are within each other.
const CHAIN: usize = 200;

/// The group that writes change.
pub(super) const WRITTEN: &str = "eeeeeeee-0000-4000-8000-000000000000";

/// What the forge signs webhooks with.
pub(super) const SECRET: &str = "a secret of the webhooks";

/// As many threads as on a machine with so many cores: a pod sees those of its machine.
const CORES: &str = "16";

/// How often facts repeat among the nodes; nothing in the store does.
const TEMPLATES: usize = 100;

pub(super) struct Site {
    size: Size,
    scale: Scale,
    /// Another process of the daemon's would have another id.
    daemon: Daemon,
    pub(super) address: String,
    pub(super) path: PathBuf,
    /// From the oldest on.
    pub(super) commits: Vec<String>,
    judge: Judge,
    report: Mutex<Report>,
    _directory: tempfile::TempDir,
}

impl Site {
    pub(super) fn new(size: Size) -> Self {
        let scale = Scale { nodes: size.nodes.max(5_000), ..Scale::of(size.groups) };
        let hub = Hub::new(&pairs(&files(size, scale)));
        let mut commits = vec![hub.head_id()];
        for number in 1..=COMMITS {
            commits.push(hub.commit("Change", &pairs(&changed(number))));
        }
        let data = hub.directory.path().join("data").display().to_string();
        let file = |name: &str, text: &str| {
            let path = hub.directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (secret, token) = (file("secret", SECRET), file("token", "token"));
        let (path, forge) = (hub.text_path(), forge());
        let mut command = clade(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--interval",
            "100ms",
            "--repo",
            &path,
            "--data-dir",
            &data,
            "--writes",
            "commit",
            "--webhook-secret-file",
            &secret,
            "--forge",
            "github",
            "--forge-url",
            &forge,
            "--forge-repository",
            "owner/name",
            "--forge-token-file",
            &token,
        ]);
        command.env("TOKIO_WORKER_THREADS", CORES).env("RAYON_NUM_THREADS", CORES);
        let daemon = Daemon::launch(command);
        let address = daemon.address.clone();
        wait("a commit answers", || daemon.get("/readyz").status == 200);
        let (path, nodes) = (hub.path(), nodes(scale, 80, 6));
        let judge = Judge::of_answered(&path, nodes, &hub.head_id());
        let report = Mutex::default();
        Self {
            size,
            scale,
            daemon,
            address,
            path,
            commits,
            judge,
            report,
            _directory: hub.directory,
        }
    }

    /// Stores the facts of the whole fleet, as Foreman's clients upload them.
    pub(super) fn store_nodes(&self) {
        let texts: Vec<String> = nodes(self.scale, TEMPLATES, 7)
            .iter()
            .map(|node| serde_json::to_string(&node.fact).unwrap())
            .collect();
        let next = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        if number >= self.size.nodes {
                            break;
                        }
                        let (name, fact) =
                            (certname(number, self.scale), &texts[number % TEMPLATES]);
                        let body = format!(r#"{{"name":"{name}","facts":{fact}}}"#);
                        // The disk may be busy for a while.
                        wait("the facts are stored", || {
                            ask(&self.address, "POST", "/api/hosts/facts", &body)
                                .is_ok_and(|(head, _)| head.starts_with("HTTP/1.1 201"))
                        });
                    }
                });
            }
        });
        let last = self.size.nodes - 1;
        let answer = self.daemon.get(&format!("/v1/nodes?limit=1&offset={last}"));
        assert_eq!(answer.json().as_array().unwrap().len(), 1, "all nodes are stored");
    }

    /// Returns the peak memory of the daemon since the last phase began, in MiB.
    pub(super) fn peak_mib(&self) -> u64 {
        process_peak(self.daemon.id())
    }

    /// Begins another phase.
    pub(super) fn reset_peak(&self) {
        // Where the kernel does not do this, peaks only grow.
        std::fs::write(self.process("clear_refs"), "5").ok();
    }

    fn process(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.daemon.id()))
    }

    pub(super) fn signal(&self, name: &str) {
        self.daemon.signal(name);
    }

    /// Waits until what an attack has left behind is done.
    pub(super) fn settle(&self) {
        wait("the daemon is idle", || {
            let metrics = self.daemon.get("/metrics").body;
            let open = metrics
                .lines()
                .find_map(|it| it.strip_prefix(r#"clade_http_connections{listener="listen"} "#));
            open.is_none_or(|it| it.parse::<u64>().is_ok_and(|it| it <= 2))
        });
    }

    /// Sends the probes of an orchestrator until the end; returns the time of the slowest answer.
    pub(super) fn probe(&self, stop: &Stop, timeout: Duration) -> Duration {
        let mut slowest = Duration::ZERO;
        while !stop.is_over() {
            for path in ["/livez", "/readyz"] {
                let began = Instant::now();
                let (head, _) = ask(&self.address, "GET", path, "").unwrap();
                assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
                slowest = slowest.max(began.elapsed());
            }
            stop.sleep(Duration::from_millis(500));
        }
        assert!(slowest < timeout, "a probe took {slowest:?}");
        slowest
    }

    /// Classifies nodes until the end, and compares each answer with that of the commit it names.
    pub(super) fn ask_and_compare(&self, client: usize, stop: &Stop) -> Counts {
        let (mut counts, mut turn) = (Counts::default(), client);
        while !stop.is_over() {
            let number = turn % self.judge.nodes().len();
            turn += 7;
            let node: &Node = &self.judge.nodes()[number];
            let path = format!("/v1/classified/nodes/{}", node.name);
            let body = String::from_utf8(body(node)).unwrap();
            match ask(&self.address, "POST", &path, &body) {
                Ok((head, body)) if head.starts_with("HTTP/1.1 200") => {
                    let commit = header(&head, "X-Clade-Commit").unwrap_or_default();
                    // Pins go back, so that an older answer is not wrong.
                    let mut report = Report::default();
                    self.judge.judge(number, commit, &body, 0, &mut report);
                    self.report.lock().unwrap().add(report);
                    counts.count(200);
                }
                Ok((head, _)) => counts.count(head.split(' ').nth(1).unwrap().parse().unwrap()),
                Err(_) => counts.count(0),
            }
            stop.sleep(Duration::from_millis(200));
        }
        counts
    }

    /// Asserts that the same process still answers.
    pub(super) fn assert_alive(&self) {
        assert_eq!(self.daemon.get("/readyz").status, 200);
        assert!(self.process("status").exists(), "the process is the same");
    }

    /// Asserts that the same process still answers, and that no answer was wrong.
    pub(super) fn assert_whole(&self) {
        self.assert_alive();
        self.report.lock().unwrap().assert_right();
    }
}

/// Waits until a condition holds; machines under attack are slow.
fn wait(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(3);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn pairs(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

/// Returns groups that ask for a text and for an element, of which a node can have millions.
fn found_often() -> String {
    let rule = |number: usize| match number % 6 {
        0 => r#"["~", [fact, banner], "^web-"]"#.to_owned(),
        1 => r#"["~", [fact, banner], "^db-"]"#.to_owned(),
        2 => r#"["<:", [fact, tags], web]"#.to_owned(),
        3 => format!(r#"["<:", [fact, tags], web{number}]"#),
        4 => format!(r#"[not, ["<:", [fact, tags], db{number}]]"#),
        _ => format!(r#"[">", [fact, digits], "{number}"]"#),
    };
    let group = |number: usize| format!("name: Often {number}\nrule: {}\n", rule(number));
    (0..1_200).map(group).collect::<Vec<_>>().join("---\n")
}

/// A realistic estate, some groups within each other, one that writes change, and one whose pattern
/// runs out of steps.
fn files(size: Size, scale: Scale) -> Vec<(String, String)> {
    let realistic = Scale { groups: size.groups - CHAIN, ..scale };
    let mut files = estates::files(realistic, 5);
    files.extend((0..CHAIN).map(|number| {
        let parent =
            if number == 0 { "All Nodes".to_owned() } else { format!("Deep {}", number - 1) };
        let value = "x".repeat(300);
        let text = format!(
            "name: Deep {number}\nparent: {parent}\nvariables: {{deep_{number}: {value}}}\n"
        );
        (format!("groups/deep/{number}.yaml"), text)
    }));
    files.push((
        "groups/written.yaml".to_owned(),
        formatdoc!(
            r#"
            name: Written
            id: {WRITTEN}
            rule: ["~", name, ".*"]
            classes:
              written: {{number: 0}}
        "#
        ),
    ));
    files.push((
        "groups/slow.yaml".to_owned(),
        "name: Slow\nrule: [\"~\", [fact, slow], \"^(a+)+(?!b)\\\\1c$\"]\nclasses: {slow: {}}\n"
            .to_owned(),
    ));
    files.push(("groups/found-often.yaml".to_owned(), found_often()));
    files.extend(changed(0));
    files
}

/// What each commit changes.
pub(super) fn changed(number: usize) -> Vec<(String, String)> {
    let group = |it: usize| {
        let text = format!(
            "name: Changed {it}\nrule: [\"~\", name, \"[{it}]\\\\.dc\"]\nclasses:\n  changed_{it}: {{number: {number}}}\n"
        );
        (format!("groups/changed/{it}.yaml"), text)
    };
    (0..5).map(group).collect()
}

/// A forge that accepts every status, with a delay.
fn forge() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || take_status(stream));
        }
    });
    url
}

fn take_status(mut stream: TcpStream) {
    // The daemon posts small bodies, whose content does not matter here.
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    stream.read_to_end(&mut Vec::new()).ok();
    let answer = json!({"html_url": "http://127.0.0.1/"}).to_string();
    let length = answer.len();
    let text = format!(
        "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{answer}"
    );
    stream.write_all(text.as_bytes()).ok();
}
