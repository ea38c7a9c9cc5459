//! SIGTERM and SIGINT: when the daemon ends by them, and how.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::git::server::{Server, http_backend};
use crate::program::{Daemon, GitRepository, serve};

/// How long an end at once may take on a busy machine; the grace period is 25 seconds.
const AT_ONCE: Duration = Duration::from_secs(10);

const GROUP: &str = "name: All\nrule: [\"~\", \"name\", \".*\"]\n";

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
}

/// Waits until a process catches SIGTERM and SIGINT.
fn until_caught(child: &Child) {
    const BOTH: u64 = 1 << 14 | 1 << 1;
    let status = format!("/proc/{}/status", child.id());
    let caught = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let mask = text.lines().find_map(|it| it.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    };
    let since = Instant::now();
    while caught() & BOTH != BOTH {
        assert!(since.elapsed() < AT_ONCE, "it does not catch signals");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A remote that accepts connections and says nothing.
fn silent_remote() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/groups", listener.local_addr().unwrap());
    (listener, url)
}

#[test]
fn a_daemon_that_still_reads_its_settings_ends_at_once() {
    for signal in ["-TERM", "-INT"] {
        // It waits for what is never written.
        let mut child = serve(&["--config", "/dev/stdin"]).stdin(Stdio::piped()).spawn().unwrap();
        // To wait for the child would close it.
        let _settings = child.stdin.take();
        until_caught(&child);
        send(signal, &child);
        let signalled = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        assert!(signalled.elapsed() < AT_ONCE, "{signal}: {:?}", signalled.elapsed());
    }
}

#[test]
fn a_daemon_whose_fetch_hangs_while_a_commit_is_live_ends_at_once() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/all.yaml", GROUP)]);
    let (hangs, hanging) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (directory, does_hang, count) =
        (repository.path().parent().unwrap().to_owned(), Arc::clone(&hangs), Arc::clone(&hanging));
    let server = Server::http(move |request| {
        if does_hang.load(Ordering::SeqCst) {
            count.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_mins(10));
        }
        http_backend(&directory, request)
    });
    let name = repository.path().file_name().unwrap().to_str().unwrap().to_owned();
    let url = format!("http://127.0.0.1:{}/{name}", server.port);
    let data = tempfile::tempdir().unwrap();
    let data = data.path().join("data");
    let daemon = Daemon::start(&[
        "--repo",
        &url,
        "--allow-insecure-remotes",
        "--data-dir",
        data.to_str().unwrap(),
        "--interval",
        "1s",
    ]);
    daemon.wait_until("a commit is live", |it| it.get("/readyz").status == 200);
    hangs.store(true, Ordering::SeqCst);
    daemon.wait_until("a fetch hangs", |_| hanging.load(Ordering::SeqCst) > 0);
    let signalled = Instant::now();
    assert_eq!(daemon.terminate(), 0);
    assert!(signalled.elapsed() < AT_ONCE, "{:?}", signalled.elapsed());
}

#[test]
fn a_daemon_that_waits_for_its_first_fetch_ends_at_once() {
    for signal in ["-TERM", "-INT"] {
        let (listener, url) = silent_remote();
        let data = tempfile::tempdir().unwrap();
        let data = data.path().join("data");
        let arguments =
            ["--repo", &url, "--allow-insecure-remotes", "--data-dir", data.to_str().unwrap()];
        let mut child = serve(&arguments).stderr(Stdio::null()).spawn().unwrap();
        let _fetch = listener.accept().unwrap();
        send(signal, &child);
        let signalled = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        assert!(signalled.elapsed() < AT_ONCE, "{signal}: {:?}", signalled.elapsed());
    }
}

#[test]
fn a_daemon_that_listens_without_a_commit_ends_at_once() {
    let (_listener, url) = silent_remote();
    let data = tempfile::tempdir().unwrap();
    let data = data.path().join("data");
    let arguments =
        ["--repo", &url, "--allow-insecure-remotes", "--data-dir", data.to_str().unwrap()];
    let daemon = Daemon::start(&arguments);
    assert_eq!(daemon.get("/readyz").status, 503);
    let signalled = Instant::now();
    assert_eq!(daemon.terminate(), 0);
    assert!(signalled.elapsed() < AT_ONCE, "{:?}", signalled.elapsed());
}

#[test]
fn a_second_signal_kills() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/all.yaml", GROUP)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let mut client = TcpStream::connect(daemon.address()).unwrap();
    // Its body is still to come, for which the daemon waits.
    let head =
        "POST /v1/classified/nodes/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{";
    client.write_all(head.as_bytes()).unwrap();
    daemon.wait_until("the request is in flight", |it| {
        it.get("/metrics").body.contains("clade_http_connections{listener=\"listen\"} 2\n")
    });
    // Counted as a connection, it is a request a moment later.
    std::thread::sleep(Duration::from_millis(500));
    let signalled = Instant::now();
    // Both at once are one, as those of `timeout` are.
    daemon.signal("TERM");
    daemon.signal("TERM");
    std::thread::sleep(Duration::from_secs(1));
    daemon.signal("TERM");
    assert_eq!(daemon.wait().signal(), Some(9));
    assert!(signalled.elapsed() < AT_ONCE, "{:?}", signalled.elapsed());
}
