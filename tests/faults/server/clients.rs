//! Clients that send, or take, as little as they can.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::certificates::Site;
use crate::Seen;
use crate::commits::within;
use crate::program::{Daemon, GitRepository, serve};

fn repository() -> GitRepository {
    let repository = GitRepository::new();
    let text = "x".repeat(200_000);
    let group = format!("name: A\nvariables: {{text: {text}}}\n");
    repository.commit("first", &[("groups/a.yaml", &group)]);
    repository
}

fn start(repository: &GitRepository, more: &[&str]) -> Daemon {
    let path = repository.text_path();
    Daemon::start(&[&["--repo", path.as_str()], more].concat())
}

fn connect(daemon: &Daemon, sends: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    stream.write_all(sends.as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream
}

const HALF: &str =
    "POST /v1/classified/nodes/n HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{";

/// Returns the bytes until the connection ends, and how long they took.
fn until_the_end(stream: &mut TcpStream) -> (String, Duration) {
    let began = Instant::now();
    let mut bytes = Vec::new();
    let done = stream.read_to_end(&mut bytes);
    let still_open = done
        .as_ref()
        .is_err_and(|it| matches!(it.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    assert!(!still_open, "the connection is still open");
    (String::from_utf8_lossy(&bytes).into_owned(), began.elapsed())
}

/// Sends many requests, each on a new connection, and returns the slowest of 99 in 100.
fn p99(daemon: &Daemon) -> Duration {
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let began = Instant::now();
            let answer = daemon.request("POST", "/v1/classified/nodes/n", "{}");
            assert_eq!(answer.status, 200, "{}", answer.body);
            began.elapsed()
        })
        .collect();
    times.sort();
    times[197]
}

pub(super) fn half_sent_bodies() -> Seen {
    let repository = repository();
    let daemon = start(&repository, &[]);
    let before = p99(&daemon);
    let mut open: Vec<TcpStream> = (0..4200).map(|_| connect(&daemon, HALF)).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let trickling: Vec<TcpStream> = open.drain(..420).collect();
    let stopped = Arc::clone(&stop);
    let trickle = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            for mut stream in &trickling {
                // It may have been closed.
                stream.write_all(b" ").ok();
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    let during = p99(&daemon);
    assert_eq!(daemon.get("/readyz").status, 200);
    stop.store(true, Ordering::Relaxed);
    trickle.join().unwrap();
    assert!(during < Duration::from_secs(5), "p99 {before:?} before, {during:?} meanwhile");
    Seen::Held(format!("p99 {} ms before, {} ms meanwhile", before.as_millis(), during.as_millis()))
}

pub(super) fn slow_body() -> Seen {
    let repository = repository();
    let daemon = start(&repository, &["--client-timeout", "500ms"]);
    let mut stream = connect(&daemon, HALF);
    let mut writing = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        while writing.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let (answer, took) = until_the_end(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("Connection: close\r\n"), "{answer}");
    assert!(answer.contains("{\"kind\":\"request-timeout\",\"msg\":"), "{answer}");
    // A body with a declared length over the limit is refused before it is sent.
    let large = HALF.replace("1000", "99999999");
    let (answer, _) = until_the_end(&mut connect(&daemon, &large));
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    Seen::Held(format!("408 after {} ms", took.as_millis()))
}

pub(super) fn slow_reader() -> Seen {
    let repository = repository();
    let daemon = start(&repository, &["--client-timeout", "500ms"]);
    let asks = "GET /v1/groups HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    let mut stream = connect(&daemon, &asks);
    // 20 MB do not fit into the buffers of the kernel.
    daemon.wait_until("the daemon gives up", |it| {
        it.get("/metrics")
            .body
            .contains("http_connections_ended_total{listener=\"listen\",reason=\"SlowReader\"} 1")
    });
    let (answers, _) = until_the_end(&mut stream);
    assert!(answers.len() < 20_000_000, "{} bytes", answers.len());
    Seen::Held("closed, and counted as SlowReader".to_owned())
}

pub(super) fn idle_connections() -> Seen {
    let (site, repository) = (Site::new(), repository());
    let daemon = start(&repository, &["--client-timeout", "500ms"]);
    let mut longest = Duration::ZERO;
    for sends in ["", "GET / HT", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        let (_, took) = until_the_end(&mut connect(&daemon, sends));
        assert!(took < Duration::from_secs(20), "{sends:?} took {took:?}");
        longest = longest.max(took);
    }
    let tls = site.arguments();
    let mut arguments: Vec<&str> = vec!["--client-timeout", "500ms"];
    arguments.extend(tls.iter().map(String::as_str));
    let daemon = start(&repository, &arguments);
    let (_, took) = until_the_end(&mut connect(&daemon, ""));
    assert!(took < Duration::from_secs(20), "a handshake took {took:?}");
    Seen::Held(format!("closed after {} ms at the latest", longest.max(took).as_millis()))
}

pub(super) fn full_table() -> Seen {
    let repository = repository();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let admin = Daemon::at(&free.to_string());
    let daemon =
        start(&repository, &["--max-connections", "32", "--admin-listen", &free.to_string()]);
    let _open: Vec<TcpStream> = (0..300).map(|_| connect(&daemon, "GET /livez HT")).collect();
    let took = p99(&daemon);
    assert_eq!(daemon.get("/readyz").status, 200);
    assert_eq!(admin.get("/readyz").status, 200);
    let metrics = admin.get("/metrics").body;
    assert!(metrics.contains("reason=\"GaveWay\""), "{metrics}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    Seen::Held(format!("p99 {} ms with a full table", took.as_millis()))
}

/// Starts a daemon with 1 GiB of address space.
fn limited(repository: &GitRepository, more: &[&str]) -> Daemon {
    let program = serve(&[&["--repo", &repository.text_path()], more].concat());
    Daemon::launch(within(1 << 30, &program))
}

pub(super) fn held_bytes() -> Seen {
    let repository = repository();
    let daemon = limited(&repository, &[]);
    let head = HALF.replace("1000", "16000000");
    let part = "x".repeat(8_000_000);
    let mut open = Vec::new();
    for _ in 0..40 {
        let mut stream = connect(&daemon, &head);
        // It may have to give way to the next.
        stream.write_all(part.as_bytes()).ok();
        open.push(stream);
    }
    let took = p99(&daemon);
    Seen::Held(format!("40 × 8 MB sent, p99 {} ms", took.as_millis()))
}

pub(super) fn bodies_that_expand() -> Seen {
    let repository = repository();
    let daemon = limited(&repository, &["--writes", "commit"]);
    let mut refused = 0;
    // One body as large as may be; the others have as many values as matter.
    for (value, bytes) in [("0", 8_000_000), (r#"{"":0}"#, 1_800_000)] {
        let list = vec![value; bytes / (value.len() + 1)].join(",");
        // A hierarchy may have four times as many.
        let hierarchy = format!("[{}]", [list.as_str(); 3].join(","));
        let facts = format!(r#"{{"name":"n","fact":{{"a":[{list}]}},"facts":{{}}}}"#);
        for (path, body) in [
            ("/v1/classified/nodes/n", &facts),
            ("/v2/classified/nodes/n", &facts),
            ("/v1/classified/nodes/n/explanation", &facts),
            ("/enc/n", &facts),
            ("/api/hosts/facts", &facts),
            ("/v1/validate/group", &format!("[{list}]")),
            ("/v1/rules/translate", &format!(r#"["or",{list}]"#)),
            ("/v1/groups", &format!(r#"{{"name":"x","classes":[{list}]}}"#)),
            ("/v1/import-hierarchy", &hierarchy),
            ("/v1/commands/unpin-from-all", &format!(r#"{{"nodes":[{list}]}}"#)),
            ("/controller/pin", &format!(r#"{{"commit":[{list}]}}"#)),
        ] {
            if bytes > 2_000_000 && path != "/v1/classified/nodes/n" {
                continue;
            }
            let answer = daemon.request("POST", path, body);
            assert_eq!(answer.status, 413, "{path} {}", answer.body);
            assert_eq!(answer.json()["kind"], "payload-too-large", "{path}");
            refused += 1;
        }
    }
    assert_eq!(daemon.get("/v1/nodes/n").status, 404);
    // Stored facts can be read again.
    let most = format!(r#"{{"fact":{{"a":[{}]}}}}"#, vec![r#"{"":0}"#; 40_000].join(","));
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/n", &most).status, 200);
    daemon.wait_until("the node is kept", |daemon| daemon.get("/v1/nodes/n").status == 200);
    for path in ["/v1/nodes", "/enc/n", "/controller/diff/HEAD/HEAD"] {
        assert_eq!(daemon.get(path).status, 200, "{path}");
    }
    Seen::Held(format!("413 for {refused} bodies"))
}

pub(super) fn heavy_requests() -> Seen {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    daemon.wait_until("a commit answers", |it| it.get("/readyz").status == 200);
    let facts = format!(r#"{{"fact":{{"a":[{}]}}}}"#, vec!["0"; 200_000].join(","));
    let pins = vec![r#"["=","name","n"]"#; 12_000].join(",");
    let rule = format!(r#"["or",{pins}]"#);
    let requests = [("/v1/classified/nodes/n/explanation", &facts), ("/v1/rules/translate", &rule)];
    let left = AtomicUsize::new(8);
    let began = Instant::now();
    let (mut probes, mut longest) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        for (path, body) in requests.iter().cycle().take(8) {
            let (daemon, left) = (&daemon, &left);
            scope.spawn(move || {
                let status = daemon.request("POST", path, body).status;
                left.fetch_sub(1, Ordering::Relaxed);
                assert_eq!(status, 200, "{path}");
            });
        }
        while left.load(Ordering::Relaxed) > 0 {
            let asked = Instant::now();
            assert_eq!(daemon.get("/livez").status, 200);
            let small = r#"{"fact":{"a":1}}"#;
            assert_eq!(daemon.request("POST", "/v1/classified/nodes/m", small).status, 200);
            longest = longest.max(asked.elapsed());
            probes += 1;
        }
    });
    let all = began.elapsed();
    // On a machine of any speed: a probe that waits for a heavy request waits for a large part of the whole.
    assert!(longest * 4 < all, "a probe took {longest:?} of {all:?}");
    assert!(probes > 10, "{probes} in {all:?}");
    Seen::Held("no probe took a quarter of the time of the heavy requests".to_owned())
}
