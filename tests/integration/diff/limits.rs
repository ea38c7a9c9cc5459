//! Comparisons that are larger than a daemon has room for.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::program::{Daemon, GitRepository, run};

/// What the daemon may take beside what it keeps for clients, in MiB.
const MOST_MIB: u64 = 224;

/// A repository whose last commit changes what a fact of each node is put into.
fn interpolating(variables: usize, value: impl Fn(&str, usize) -> String) -> GitRepository {
    let repository = GitRepository::new();
    for text in ["0", "x"] {
        let mut group = "name: Notes\nrule: name ~ node\nvariables:\n".to_owned();
        for number in 0..variables {
            writeln!(group, "  v{number}: '{}'", value(text, number)).unwrap();
        }
        let files = [("clade.yaml", "interpolate: true\n"), ("groups/notes.yaml", group.as_str())];
        repository.commit(text, &files);
    }
    repository
}

/// A repository whose last commit lets a node into a hundred groups of a chain, the last with many variables.
fn chain(variables: usize) -> GitRepository {
    let repository = GitRepository::new();
    for rule in ["name = nothing", "name ~ node"] {
        let groups = (0..100).map(|number: usize| {
            let parent =
                number.checked_sub(1).map_or("All Nodes".to_owned(), |it| format!("G{it}"));
            let mut text = format!("name: G{number}\nparent: {parent}\nrule: {rule}\n");
            if number == 99 {
                text.push_str("variables:\n");
                for variable in 0..variables {
                    writeln!(text, "  v{variable}: text {variable}").unwrap();
                }
            }
            (format!("groups/g{number}.yaml"), text)
        });
        let groups: Vec<(String, String)> = groups.collect();
        let groups: Vec<(&str, &str)> = groups.iter().map(|(path, it)| (&**path, &**it)).collect();
        repository.commit(rule, &groups);
    }
    repository
}

/// Starts a daemon that knows some nodes, each with a note of so many bytes.
fn serve(repository: &GitRepository, nodes: usize, note: usize, more: &[&str]) -> Daemon {
    let daemon = Daemon::start(&[&["--repo", &repository.text_path()], more].concat());
    for number in 0..nodes {
        let facts = json!({"note": format!("{number}{}", "y".repeat(note))});
        let body = json!({"name": format!("node{number}"), "facts": facts}).to_string();
        assert_eq!(daemon.request("POST", "/api/hosts/facts", &body).status, 201);
    }
    daemon
}

/// A client of a comparison that reads as much as it is told to.
struct Reader(TcpStream);

impl Reader {
    fn new(daemon: &Daemon) -> Self {
        let mut stream = TcpStream::connect(&daemon.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(5))).unwrap();
        let request = "GET /controller/diff/HEAD~1/HEAD HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        Self(stream)
    }

    /// Reads so many bytes.
    fn read(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.0.read_exact(&mut read).unwrap();
        read
    }

    /// Reads the rest of the response, of which the first bytes are read; returns their number, and the last of them.
    fn read_rest(mut self, first: usize) -> (usize, Vec<u8>) {
        let (mut count, mut buffer, mut last) = (first, vec![0; 64 << 10], Vec::new());
        loop {
            let read = self.0.read(&mut buffer).unwrap();
            if read == 0 {
                return (count, last);
            }
            count += read;
            last.extend_from_slice(&buffer[..read]);
            last.drain(..last.len().saturating_sub(40));
        }
    }
}

fn peak_mib(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn a_long_fact_in_hundreds_of_values_is_sent_one_node_at_a_time() {
    let repository = interpolating(390, |text, _| format!("{text}${{note}}"));
    let daemon = serve(&repository, 3, 20_000, &[]);
    let mut reader = Reader::new(&daemon);
    assert!(reader.read(64).starts_with(b"HTTP/1.1 200 OK\r\n"));
    let (bytes, end) = reader.read_rest(64);
    // The old text and the new one of each variable.
    assert!(bytes > 3 * 390 * 2 * 20_000, "{bytes}");
    assert!(String::from_utf8_lossy(&end).contains("],\"unreadable\":[]}"), "the answer is whole");
    assert!(peak_mib(&daemon) < MOST_MIB, "{} MiB", peak_mib(&daemon));
}

#[test]
fn what_a_daemon_has_no_room_for_is_compared_by_the_command_itself() {
    let repository = chain(600);
    let daemon = serve(&repository, 1, 10, &[]);
    let answer = daemon.get("/controller/diff/HEAD~1/HEAD");
    let kind = answer.json()["kind"].clone();
    assert_eq!((answer.status, kind), (413, json!("payload-too-large")));
    assert!(answer.body.contains("takes more than 16 MiB of memory"), "{}", answer.body);

    let facts = tempfile::tempdir().unwrap();
    let file = facts.path().join("node0.json");
    std::fs::write(file, json!({"fact": {"note": "0yyyyyyyyyy"}, "trusted": {}}).to_string())
        .unwrap();
    let (repo, url) = (repository.text_path(), format!("http://{}", daemon.address));
    let diff = |more: &[&str]| run(&[&["diff", "HEAD~1", "HEAD", "--repo", &repo], more].concat());
    let local = diff(&["--facts", facts.path().to_str().unwrap()]);
    let remote = diff(&["--server", &url]);
    assert_eq!((local.status, remote.status), (0, 0), "{}{}", local.stderr, remote.stderr);
    assert!(remote.stderr.contains("fetched and compared here: "), "{}", remote.stderr);
    assert!(remote.stderr.contains("The comparison is too large"), "{}", remote.stderr);
    assert_eq!(local.stdout.lines().filter(|it| it.starts_with("  $v")).count(), 600);
    assert_eq!(local.stdout, remote.stdout);
}

#[test]
fn a_client_that_reads_slowly_keeps_no_other_comparison_waiting() {
    // Each node has texts of its own, so that two comparisons are more than may be kept for clients.
    let repository = interpolating(70, |text, number| format!("{text}{number} ${{note}}"));
    let daemon = serve(&repository, 3, 100_000, &[]);
    let mut slow = Reader::new(&daemon);
    assert!(slow.read(1024).starts_with(b"HTTP/1.1 200 OK\r\n"));
    let began = Instant::now();
    let small = daemon.get("/controller/diff/HEAD/HEAD");
    assert_eq!(small.status, 200, "{}", small.body);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    std::thread::scope(|scope| {
        let second = scope.spawn(|| Reader::new(&daemon).read(1024));
        for _ in 0..2 {
            slow.read(1024);
            std::thread::sleep(Duration::from_secs(1));
        }
        // There is room for the second when the slow client has left.
        drop(slow);
        assert!(second.join().unwrap().starts_with(b"HTTP/1.1 200 OK\r\n"));
    });
    assert!(peak_mib(&daemon) < MOST_MIB, "{} MiB", peak_mib(&daemon));
}

#[test]
fn a_response_whose_connection_is_evicted_is_logged() {
    let repository = interpolating(300, |text, _| format!("{text}${{note}}"));
    let daemon = serve(&repository, 2, 20_000, &["--max-connections", "4"]);
    let mut slow = Reader::new(&daemon);
    slow.read(1024);
    let _idle: Vec<TcpStream> =
        (0..4).map(|_| TcpStream::connect(&daemon.address).unwrap()).collect();
    daemon.wait_until("the response is logged", |it| {
        it.log_lines().iter().any(|line| line.contains("a response is cut off: its client reads"))
    });
}
