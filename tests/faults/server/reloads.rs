//! Files that change while the daemon runs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::certificates::{Connection, Site};
use crate::Seen;
use crate::program::{Daemon, GitRepository, clade};

fn repository() -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    repository
}

fn start(site: &Site, repository: &GitRepository, more: &[&str]) -> Daemon {
    let (path, tls) = (repository.text_path(), site.arguments());
    let mut arguments = vec!["--repo", &path];
    arguments.extend(tls.iter().map(String::as_str));
    arguments.extend(more);
    Daemon::start(&arguments)
}

// The tokens are `hello` and `goodbye`.
const HELLO: &str = "- name: hello\n  sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n  roles: [read]\n";
const GOODBYE: &str = "- name: goodbye\n  sha256: 82e35a63ceba37e9646434c5dd412ea577147f1e4a41ccde1614253187e3dbf9\n  roles: [read, write]\n";
const SCOPE: &str = "  groups: [58463036-0efa-4365-b367-b5401c0711d3]\n";

fn tokens(site: &Site, repository: &GitRepository) -> Daemon {
    site.write("tokens.yaml", HELLO);
    let path = repository.text_path();
    Daemon::start(&["--repo", &path, "--tokens-file", &site.path("tokens.yaml")])
}

fn status(daemon: &Daemon, token: &str) -> u16 {
    daemon.request_with("GET", "/v1/groups", &format!("X-Authentication: {token}\r\n"), "").status
}

fn metrics(daemon: &Daemon) -> String {
    daemon.request_with("GET", "/metrics", "X-Authentication: hello\r\n", "").body
}

/// Returns whether the reload of the tokens fails, as the metrics say.
fn is_failing(daemon: &Daemon) -> bool {
    metrics(daemon).contains("clade_file_reload_failing{file=\"tokens\"} 1")
}

/// Returns how many reloads failed, by metrics: each poll of a file that cannot be loaded counts.
fn failures(metrics: &str) -> u64 {
    let counters = metrics.lines().filter(|it| it.starts_with("clade_file_reloads_total{"));
    let failed = counters.filter(|it| it.contains("result=\"failed\""));
    failed.map(|it| it.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Waits until two polls have found that the tokens cannot be loaded.
fn wait_for_failures(daemon: &Daemon) {
    let before = failures(&metrics(daemon));
    daemon.wait_until("the reload failed twice", |it| failures(&metrics(it)) >= before + 2);
}

pub(super) fn crl_empty_at_start() -> Seen {
    let (site, repository) = (Site::new(), repository());
    site.write("crl.pem", "");
    let tls = site.arguments();
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--repo"];
    let path = repository.text_path();
    arguments.push(&path);
    arguments.extend(tls.iter().map(String::as_str));
    let output = clade(&arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no revocation list in it"), "{said}");
    Seen::Held("exit 2, and the file is named".to_owned())
}

pub(super) fn crl_truncated() -> Seen {
    let (site, repository) = (Site::new(), repository());
    let (good, bad) = (site.sign("good", 3, 2100), site.sign("bad", 2, 2100));
    let daemon = start(&site, &repository, &[]);
    let list = site.list(2, 2100);
    let half = list.get(..list.len() / 2).unwrap().to_owned();
    let failed = || {
        let (_, text) = site.connect(&daemon.address, &good).read("/metrics").unwrap();
        failures(&text)
    };
    for text in [String::new(), half, site.list(9, 2021)] {
        site.write("crl.pem", &text);
        let before = failed();
        daemon.wait_until("the reload failed twice", |_| failed() >= before + 2);
        assert_eq!(site.connect(&daemon.address, &bad).ask("/v1/groups"), None);
        let mut connection = site.connect(&daemon.address, &good);
        assert_eq!(connection.ask("/v1/groups"), Some(200));
    }
    site.replace("crl.pem", &site.list(3, 2100));
    daemon.wait_until("the next list is loaded", |it| {
        site.connect(&it.address, &good).ask("/v1/groups").is_none()
    });
    assert_eq!(site.connect(&daemon.address, &bad).ask("/v1/groups"), Some(200));
    Seen::Held("the known list stayed in use until a good one came".to_owned())
}

pub(super) fn revoked_on_open_connection() -> Seen {
    let (site, repository) = (Site::new(), repository());
    let (good, bad) = (site.sign("good", 3, 2100), site.sign("bad", 4, 2100));
    let daemon = start(&site, &repository, &[]);
    let mut open = site.connect(&daemon.address, &bad);
    let mut other = site.connect(&daemon.address, &good);
    assert_eq!((open.ask("/v1/groups"), other.ask("/v1/groups")), (Some(200), Some(200)));
    site.replace("crl.pem", &site.list(4, 2100));
    let began = Instant::now();
    while open.ask("/v1/groups").is_some() {
        assert!(began.elapsed() < Duration::from_mins(1), "still open");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(other.ask("/v1/groups"), Some(200));
    Seen::Held(format!("closed {} ms after the list", began.elapsed().as_millis()))
}

pub(super) fn revoked_during_handshake() -> Seen {
    let (site, repository) = (Site::new(), repository());
    let bad = site.sign("bad", 4, 2100);
    let daemon = start(&site, &repository, &[]);
    let mut held: Vec<_> = (0..20).map(|_| site.connect(&daemon.address, &bad)).collect();
    for it in &mut held {
        it.hold("/v1/groups");
    }
    site.replace("crl.pem", &site.list(4, 2100));
    daemon.wait_until("the list is loaded", |it| {
        site.connect(&it.address, &bad).ask("/v1/groups").is_none()
    });
    let answered = held.iter_mut().filter_map(Connection::answer).count();
    assert_eq!(answered, 0);
    Seen::Held("each of 20 was closed without an answer".to_owned())
}

pub(super) fn half_written_tokens() -> Seen {
    let (site, repository) = (Site::new(), repository());
    let daemon = tokens(&site, &repository);
    assert_eq!((status(&daemon, "hello"), status(&daemon, "goodbye")), (200, 401));
    // A writer that hangs before `groups`.
    site.write("tokens.yaml", &format!("{HELLO}{GOODBYE}"));
    wait_for_failures(&daemon);
    assert_eq!((status(&daemon, "hello"), status(&daemon, "goodbye")), (200, 401));
    assert!(is_failing(&daemon));
    // The writer resumes, and closes the document.
    site.write("tokens.yaml", &format!("{HELLO}{GOODBYE}{SCOPE}...\n"));
    daemon.wait_until("the whole file is loaded", |it| status(it, "goodbye") == 200);
    assert!(!is_failing(&daemon));
    // Once closed, a file has to be closed.
    site.replace("tokens.yaml", HELLO);
    wait_for_failures(&daemon);
    assert_eq!(status(&daemon, "goodbye"), 200);
    site.replace("tokens.yaml", &format!("{HELLO}...\n"));
    daemon.wait_until("the next file is loaded", |it| status(it, "goodbye") == 401);
    Seen::Held("401 for two polls, 200 when the document was closed".to_owned())
}

pub(super) fn failed_reload() -> Seen {
    let (site, repository) = (Site::new(), repository());
    let daemon = tokens(&site, &repository);
    site.replace("tokens.yaml", "- nmae: x\n");
    daemon.wait_until("the metric shows it", is_failing);
    assert_eq!(status(&daemon, "hello"), 200);
    std::fs::remove_file(site.path("tokens.yaml")).unwrap();
    wait_for_failures(&daemon);
    assert_eq!(status(&daemon, "hello"), 200);
    assert!(is_failing(&daemon));
    site.replace("tokens.yaml", &format!("{HELLO}{GOODBYE}{SCOPE}"));
    daemon.wait_until("it is retried", |it| status(it, "goodbye") == 200);
    assert!(!is_failing(&daemon));
    Seen::Held("the former tokens stayed valid; the repaired file was loaded".to_owned())
}

pub(super) fn sighup() -> Seen {
    let (site, repository) = (Site::new(), repository());
    let daemon = tokens(&site, &repository);
    let mut open = TcpStream::connect(&daemon.address).unwrap();
    let mut ask = || {
        open.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut text = [0; 512];
        let count = open.read(&mut text).unwrap();
        assert!(text[..count].starts_with(b"HTTP/1.1 200 OK"));
    };
    ask();
    // In place: the signal declares that it is complete.
    site.write("tokens.yaml", &format!("{HELLO}{GOODBYE}{SCOPE}"));
    daemon.signal("HUP");
    let began = Instant::now();
    daemon.wait_until("the tokens are reloaded", |it| status(it, "goodbye") == 200);
    let took = began.elapsed().as_millis();
    ask();
    assert_eq!(daemon.terminate(), 0);
    Seen::Held(format!("reloaded after {took} ms, the open connection was still served"))
}
