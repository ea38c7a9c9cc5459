//! A daemon that is killed at every stage of a write: a change arrives whole or not at all, and
//! a client without an answer sends the same again.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Hub, ROOT, groups, has_git, post, serve_over_http};
use crate::git::server::{Server, http_backend};
use crate::program::Daemon;

const A: &str = "name: A\nid: aaaaaaaa-0000-4000-8000-00000000000a\n";

fn group(name: &str) -> Value {
    json!({"name": name, "parent": ROOT, "classes": {}})
}

fn added(name: &str) -> String {
    format!("Add the group \"{name}\" below \"All Nodes\"")
}

/// Creates a group; the answer is empty if the daemon is killed before it answers.
fn ask(daemon: &Daemon, name: &str) -> JoinHandle<String> {
    let address = daemon.address.clone();
    let body = group(name).to_string();
    std::thread::spawn(move || try_to_ask(&address, &body).unwrap_or_default())
}

fn try_to_ask(address: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    let head = format!(
        "POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Sends the same again until it is done, which it is once.
fn ask_again(daemon: &Daemon, hub: &Hub, name: &str) {
    let answers = std::cell::RefCell::new(Vec::new());
    daemon.wait_until("the repeated request is answered", |it| {
        let answer = post(it, "/v1/groups", &group(name));
        let done = answer.status == 303;
        if done {
            let id = answer.header("Location").unwrap().rsplit('/').next().unwrap().to_owned();
            assert_eq!(it.get(&format!("/v1/groups/{id}")).json()["name"], name);
        }
        // The interrupted push may still hold the branch.
        assert!(done || matches!(answer.status, 403 | 503), "{}", answer.body);
        answers.borrow_mut().push(answer.body);
        done
    });
    let times = hub.log().iter().filter(|it| **it == added(name)).count();
    assert_eq!(times, 1, "{name}: {:?}", answers.borrow());
    assert_eq!(daemon.get("/controller/status").json()["active"]["commit"], hub.head_id());
}

/// The commit is made and noted in the journal before the first hook; from the last one on it is
/// at the remote and does not answer yet.
#[test]
fn a_kill_in_any_hook_leaves_a_whole_change_or_none() {
    if !has_git() {
        return;
    }
    for (hook, when, exit, arrives) in [
        ("pre-receive", "true", 1, Some(false)),
        ("pre-receive", "true", 0, None),
        ("update", "true", 1, Some(false)),
        ("update", "true", 0, None),
        ("reference-transaction", "[ \"$1\" = prepared ]", 1, Some(false)),
        ("reference-transaction", "[ \"$1\" = committed ]", 0, Some(true)),
        ("post-receive", "true", 0, Some(true)),
    ] {
        let what = format!("{hook} {when} {exit}");
        let hub = Hub::new(&[("groups/a.yaml", A)]);
        let file = |name: &str| hub.path().join(name).display().to_string();
        let (reached, go, done) = (file("reached"), file("go"), file("done"));
        hub.hook(
            hook,
            &format!(
                "{when} || exit 0\n[ -e {go} ] && exit 0\ntouch {reached}\nn=0\nwhile [ ! -e {go} ] && [ $n -lt 400 ]; do sleep 0.05; n=$((n+1)); done\ntouch {done}\nexit {exit}"
            ),
        );
        let daemon = hub.serve(&[]);
        let first = ask(&daemon, "N");
        daemon.wait_until("the push is under way", |_| Path::new(&reached).exists());
        // Another one waits behind it.
        let queued = ask(&daemon, "Queued");
        std::thread::sleep(Duration::from_millis(20));
        daemon.kill();
        assert_eq!(
            first.join().unwrap() + &queued.join().unwrap(),
            "",
            "{what}: no client has an answer"
        );
        std::fs::write(&go, "").unwrap();
        let daemon = hub.serve(&[]);
        daemon.wait_until("the hook has ended", |_| Path::new(&done).exists());
        if let Some(arrives) = arrives {
            let expected = if arrives { 3 } else { 2 };
            daemon.wait_until("the branch is followed", |it| groups(it).len() == expected);
            assert_eq!(hub.log().len(), expected - 1, "{what}");
        }
        ask_again(&daemon, &hub, "N");
        ask_again(&daemon, &hub, "Queued");
        assert_eq!(hub.log(), ["Begin", &added("N"), &added("Queued")], "{what}");
    }
}

#[test]
fn a_kill_at_any_stage_over_http_leaves_a_whole_change_or_none() {
    if !has_git() {
        return;
    }
    // Before the remote is asked for its refs, before it has the push, before it answers.
    for (asks, stage, arrives) in [
        ("info/refs?service=git-receive-pack", "before", false),
        ("hub.git/git-receive-pack", "before", true),
        ("hub.git/git-receive-pack", "after", true),
    ] {
        let hub = Hub::new(&[("groups/a.yaml", A)]);
        let armed = Arc::new(AtomicBool::new(true));
        let (reached, is_reached) = channel();
        let (go, may_go) = channel::<()>();
        let (reached, may_go) = (Mutex::new(reached), Mutex::new(may_go));
        let server = Server::http({
            let directory = hub.path().parent().unwrap().to_owned();
            move |request| {
                let held = request.target.ends_with(asks) && armed.swap(false, Ordering::SeqCst);
                let hold = || {
                    reached.lock().unwrap().send(()).unwrap();
                    may_go.lock().unwrap().recv_timeout(Duration::from_mins(1)).unwrap();
                };
                if held && stage == "before" {
                    hold();
                }
                let answer = http_backend(&directory, request);
                if held && stage == "after" {
                    hold();
                }
                answer
            }
        });
        let data = tempfile::tempdir().unwrap();
        let daemon = serve_over_http(&server, data.path());
        let client = ask(&daemon, "N");
        is_reached.recv_timeout(Duration::from_mins(1)).unwrap();
        daemon.kill();
        assert_eq!(client.join().unwrap(), "", "{asks} {stage}: no client has an answer");
        go.send(()).unwrap();
        let daemon = serve_over_http(&server, data.path());
        if arrives {
            daemon.wait_until("the push arrives", |_| hub.log().len() == 2);
        }
        ask_again(&daemon, &hub, "N");
        assert_eq!(hub.log(), ["Begin", &added("N")], "{asks} {stage}");
    }
}

/// Where no hook stops the daemon, chance does: between the push, the journal and the answer.
#[test]
fn kills_at_random_moments_lose_no_answered_write() {
    const ROUNDS: u64 = 12;
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let answers: Arc<Mutex<BTreeMap<String, u16>>> = Arc::default();
    for round in 0..ROUNDS {
        let daemon = hub.serve(&[]);
        daemon.wait_until("it is ready", |it| it.get("/readyz").status == 200);
        let writers: Vec<JoinHandle<()>> = (0..3)
            .map(|writer| {
                let (address, answers) = (daemon.address.clone(), Arc::clone(&answers));
                std::thread::spawn(move || {
                    for number in 0.. {
                        let name = format!("G{round}-{writer}-{number}");
                        let answer = try_to_ask(&address, &group(&name).to_string());
                        let answer = answer.unwrap_or_default();
                        let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
                        answers.lock().unwrap().insert(name, status.unwrap_or_default());
                        if status.is_none() {
                            return;
                        }
                    }
                })
            })
            .collect();
        // Odd times, so that no two rounds end at the same stage.
        let started = Instant::now();
        daemon.wait_until("some are answered", |_| {
            let prefix = format!("G{round}-");
            answers.lock().unwrap().keys().any(|it| it.starts_with(&prefix))
        });
        let odd = Duration::from_micros(round * 7_919 % 61_000);
        std::thread::sleep(odd + started.elapsed() / 97);
        daemon.kill();
        for writer in writers {
            writer.join().unwrap();
        }
    }
    let daemon = hub.serve(&[]);
    daemon.wait_until("the branch answers", |it| {
        it.get("/controller/status").json()["active"]["commit"] == hub.head_id()
    });
    // `log` also sees to it that no commit has two parents.
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for subject in hub.log() {
        *times.entry(subject).or_default() += 1;
    }
    let answers = answers.lock().unwrap();
    let names: Vec<String> =
        groups(&daemon).iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    for (name, status) in answers.iter() {
        let (found, there) = (times.get(&added(name)).copied(), names.contains(name));
        match status {
            303 => assert_eq!((found, there), (Some(1), true), "{name} was answered"),
            0 => assert!(matches!((found, there), (Some(1), true) | (None, false)), "{name}"),
            other => panic!("{name}: {other}"),
        }
    }
    let written: usize = times.values().sum();
    assert_eq!((written + 1, times.len()), (names.len(), written), "nothing else was written");
    let answered = answers.values().filter(|it| **it == 303).count();
    assert!(answered >= usize::try_from(ROUNDS).unwrap(), "{answered} were answered");
    // The client without an answer sends the same again.
    for (name, _) in answers.iter().filter(|(_, status)| **status == 0) {
        ask_again(&daemon, &hub, name);
    }
}
