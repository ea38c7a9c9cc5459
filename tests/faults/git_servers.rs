//! git servers that misbehave: the last commit keeps answering, and the next one is followed once
//! the server is well again.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::follow::{conditions, live, wait_for};
use crate::git::server::{Request, Server, http_backend, status};
use crate::hub::Hub;
use crate::program::Daemon;
use crate::{Fault, Seen, Speed};

const PROMISE: &str = "the last commit answers, the fault is a condition with its reason, and the next commit answers once the server recovers";

macro_rules! fault {
    ($name:literal, $injection:literal, $answer:expr) => {
        Fault {
            name: concat!("git-servers::", $name),
            promise: PROMISE,
            injection: $injection,
            speed: Speed::Fast,
            run: || injected($answer),
        }
    };
}

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "git-servers::endless-push-refs",
        promise: "a write is an error within 64 MiB of refs, the daemon takes less than 400 MiB for it, and the next write is pushed",
        injection: "the server is well for fetches, and lists refs without an end before a push",
        speed: Speed::Slow,
        run: endless_push_refs,
    },
    fault!("hang", "the server accepts and never answers", |stream, _, _| {
        std::io::copy(stream, &mut std::io::sink()).ok();
    }),
    fault!("closed", "the server closes each connection", |_, _, _| {}),
    fault!("garbage", "the server answers with bytes of no protocol", |stream, _, _| {
        stream.write_all(&[0, 255, 7, 13, 10].repeat(1000)).ok();
    }),
    fault!("server-error", "the server answers 503", |stream, _, _| {
        stream.write_all(&status("503 Service Unavailable", "Retry-After: 1\r\n")).ok();
    }),
    fault!("redirect", "the server redirects to another host", |stream, _, _| {
        let other = "Location: http://127.0.0.2:9/other.git\r\n";
        stream.write_all(&status("302 Found", other)).ok();
    }),
    fault!("page", "the server answers with the page of a proxy", |stream, _, _| {
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
        stream.write_all(page.as_bytes()).ok();
    }),
    fault!("slow", "the server sends a byte every 50 ms", |stream, _, answer| {
        for byte in answer {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }),
    fault!("endless", "the server sends a body that never ends", |stream, _, answer| {
        let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap_or_default();
        let head = String::from_utf8_lossy(&answer[..end]).replace("Content-Length", "X-Length");
        stream.write_all(format!("{head}\r\n\r\n").as_bytes()).ok();
        while stream.write_all(&[b'0'; 4096]).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }),
    fault!("truncated", "every answer lacks its last 30 bytes", |stream, _, answer| {
        stream.write_all(&answer[..answer.len() - 30]).ok();
    }),
    fault!("flipped", "a bit of every pack is turned", |stream, request, answer| {
        let mut answer = answer.to_vec();
        if request.method == "POST"
            && let Some(pack) = answer.windows(4).position(|it| it == b"PACK")
        {
            answer[pack + 30] ^= 1;
        }
        stream.write_all(&answer).ok();
    }),
    fault!(
        "unknown-head",
        "the server advertises a commit that it does not have",
        |stream, _, answer| {
            let text = String::from_utf8_lossy(answer);
            // The ids of the advertisement, each with another last digit.
            let forged = text.replace(" refs/heads/main", "\0refs/heads/main");
            let Some(at) = forged.find('\0') else {
                stream.write_all(answer).ok();
                return;
            };
            let mut answer = answer.to_vec();
            answer[at - 1] = if answer[at - 1] == b'0' { b'1' } else { b'0' };
            stream.write_all(&answer).ok();
        }
    ),
];

/// A server that is well until it is written to.
fn endless_push_refs() -> Seen {
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let broken = Arc::new(AtomicBool::new(true));
    let server = Server::start({
        let (broken, directory) = (Arc::clone(&broken), hub.path().parent().unwrap().to_owned());
        move |mut stream| {
            let Some(request) = Request::read(&mut stream) else { return };
            let is_push = request.target.ends_with("service=git-receive-pack");
            match is_push && broken.load(Ordering::SeqCst) {
                true => send_refs(&mut stream),
                false => drop(stream.write_all(&http_backend(&directory, &request))),
            }
        }
    });
    let url = format!("http://127.0.0.1:{}/hub.git", server.port);
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let remote = ["--allow-insecure-remotes", "--git-proxy", "none", "--writes", "commit"];
    let daemon = Daemon::start(&[&["--repo", &url, "--data-dir", data], &remote[..]].concat());
    wait_for(&daemon, &hub.head_id());
    let before = peak_mib(&daemon);
    let group = r#"{"name": "B", "parent": "00000000-0000-4000-8000-000000000000", "classes": {}}"#;
    let began = Instant::now();
    let answer = daemon.request("POST", "/v1/groups", group);
    let (took, grown) = (began.elapsed(), peak_mib(&daemon) - before);
    assert!(answer.status >= 500, "{} {}", answer.status, answer.body);
    assert!(answer.body.contains("bytes of refs"), "{}", answer.body);
    assert!(grown < 400, "{grown} MiB");
    broken.store(false, Ordering::SeqCst);
    let answer = daemon.request("POST", "/v1/groups", group);
    assert_eq!(answer.status, 303, "{}", answer.body);
    Seen::Held(format!("refused after {:.1} s and {grown} MiB, then written", took.as_secs_f32()))
}

/// Sends lines of refs without an end.
fn send_refs(stream: &mut TcpStream) {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-receive-pack-advertisement\r\n\r\n";
    let line = |name: &str| {
        let line = format!("{} refs/heads/{name}\n", "a".repeat(40));
        format!("{:04x}{line}", line.len() + 4)
    };
    let first = line("x\0report-status delete-refs side-band-64k");
    let begin = format!("{head}001f# service=git-receive-pack\n0000{first}");
    let mut sent = stream.write_all(begin.as_bytes());
    for part in 0_u32.. {
        let lines: String = (0..1000).map(|it| line(&format!("branch-{part}-{it}"))).collect();
        sent = sent.and_then(|()| stream.write_all(lines.as_bytes()));
        if sent.is_err() {
            return;
        }
    }
}

/// Returns the most memory that a daemon has had.
fn peak_mib(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// What a server does with a connection, the request on it, and what git would have answered.
type Misbehave = fn(&mut TcpStream, &Request, &[u8]);

fn injected(misbehave: Misbehave) -> Seen {
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let first = hub.head_id();
    let broken = Arc::new(AtomicBool::new(false));
    let tries = Arc::new(Mutex::new(0_u32));
    let server = Server::start({
        let (broken, tries) = (Arc::clone(&broken), Arc::clone(&tries));
        let directory = hub.path().parent().unwrap().to_owned();
        move |mut stream| {
            let Some(request) = Request::read(&mut stream) else { return };
            let answer = http_backend(&directory, &request);
            if broken.load(Ordering::SeqCst) {
                *tries.lock().unwrap() += 1;
                misbehave(&mut stream, &request, &answer);
            } else {
                stream.write_all(&answer).ok();
            }
        }
    });
    let url = format!("http://127.0.0.1:{}/hub.git", server.port);
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let remote = ["--allow-insecure-remotes", "--git-proxy", "none", "--fetch-timeout", "700ms"];
    let daemon = Daemon::start(&[&["--repo", &url, "--data-dir", data], &remote[..]].concat());
    wait_for(&daemon, &first);
    broken.store(true, Ordering::SeqCst);
    let second = hub.commit("second", &[("groups/b.yaml", "name: B\n")]);
    let reason = std::cell::RefCell::new(String::new());
    let began = Instant::now();
    daemon.wait_until("the fault is a condition", |it| {
        assert_eq!(live(it), Some(first.clone()));
        conditions(it).into_iter().next().is_some_and(|(_, why)| {
            *reason.borrow_mut() = why;
            true
        })
    });
    let said = began.elapsed();
    broken.store(false, Ordering::SeqCst);
    daemon.request("POST", "/controller/reconcile", "");
    wait_for(&daemon, &second);
    let tries = *tries.lock().unwrap();
    let reason = reason.borrow();
    Seen::Held(format!(
        "`{reason}` after {:.1} s and {tries} requests, then followed",
        said.as_secs_f32()
    ))
}
