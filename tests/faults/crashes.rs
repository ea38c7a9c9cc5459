//! Daemons that are killed or frozen: what answers afterwards is a commit, whole, and never an older
//! one than before.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::follow::{live, wait_for};
use crate::git::server::{Server, http_backend};
use crate::hub::Hub;
use crate::program::Daemon;
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "crashes::while-listing-refs",
        promise: "the last commit answers at once after a restart, and the next one is fetched",
        injection: "kill -9 while the remote is asked for its refs",
        speed: Speed::Fast,
        run: || while_fetching("GET", Held::Before),
    },
    Fault {
        name: "crashes::while-asking-for-a-pack",
        promise: "the last commit answers at once after a restart, and the next one is fetched",
        injection: "kill -9 while the remote makes a pack",
        speed: Speed::Fast,
        run: || while_fetching("POST", Held::Before),
    },
    Fault {
        name: "crashes::within-a-pack",
        promise: "the last commit answers at once after a restart, and the next one is fetched",
        injection: "kill -9 when half of the pack has arrived",
        speed: Speed::Fast,
        run: || while_fetching("POST", Held::Within),
    },
    Fault {
        name: "crashes::while-building",
        promise: "after a kill the commit that answered before, or a newer one, answers",
        injection: "kill -9 at eight moments after a push of 600 groups",
        speed: Speed::Slow,
        run: while_building,
    },
    Fault {
        name: "crashes::before-a-push-arrives",
        promise: "a change arrives whole or not at all; the same request again makes it once",
        injection: "kill -9 while the `pre-receive` hook of a write runs and then fails",
        speed: Speed::Fast,
        run: || within_a_write("pre-receive", 1),
    },
    Fault {
        name: "crashes::after-a-push-arrived",
        promise: "a change arrives whole or not at all; the same request again makes it once",
        injection: "kill -9 while the `post-receive` hook of a write runs",
        speed: Speed::Fast,
        run: || within_a_write("post-receive", 0),
    },
    Fault {
        name: "crashes::journal-cut-short",
        promise: "with the remote gone the commit of the last whole record answers",
        injection: "the journal cut within its last records, at nine places",
        speed: Speed::Fast,
        run: journal_cut_short,
    },
    Fault {
        name: "crashes::locks-left-behind",
        promise: "files that a crashed git leaves behind block no fetch",
        injection: "`config.lock`, `packed-refs.lock`, `HEAD.lock` and half a pack in the mirror",
        speed: Speed::Fast,
        run: locks_left_behind,
    },
    Fault {
        name: "crashes::frozen",
        promise: "requests that came meanwhile are answered after a freeze, and commits are followed",
        injection: "SIGSTOP for 1.5 s with 20 requests and a commit, then SIGCONT",
        speed: Speed::Fast,
        run: frozen,
    },
    Fault {
        name: "crashes::terminated-under-load",
        promise: "SIGTERM breaks no answer, and the daemon exits with 0 within its grace period",
        injection: "SIGTERM while eight clients ask",
        speed: Speed::Fast,
        run: terminated_under_load,
    },
];

const A: (&str, &str) = ("groups/a.yaml", "name: A\n");

/// Where an answer is held.
#[derive(Clone, Copy, PartialEq)]
enum Held {
    Before,
    Within,
}

fn while_fetching(method: &'static str, held: Held) -> Seen {
    let hub = Hub::new(&[A]);
    let first = hub.head_id();
    let armed = Arc::new(AtomicBool::new(false));
    let (reached, is_reached) = channel();
    let reached = Mutex::new(reached);
    let server = Server::start({
        let armed = Arc::clone(&armed);
        let directory = hub.path().parent().unwrap().to_owned();
        move |mut stream| {
            use std::io::Write as _;
            let Some(request) = crate::git::server::Request::read(&mut stream) else { return };
            let answer = http_backend(&directory, &request);
            let holds = request.method == method && armed.swap(false, Ordering::SeqCst);
            let sent = match held {
                Held::Before if holds => 0,
                Held::Within if holds => answer.len() / 2,
                _ => answer.len(),
            };
            stream.write_all(&answer[..sent]).ok();
            if holds {
                reached.lock().unwrap().send(()).ok();
                std::io::copy(&mut stream, &mut std::io::sink()).ok();
            }
        }
    });
    let url = format!("http://127.0.0.1:{}/hub.git", server.port);
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let arguments =
        ["--repo", &url, "--data-dir", data, "--allow-insecure-remotes", "--git-proxy", "none"];
    let daemon = Daemon::start(&arguments);
    wait_for(&daemon, &first);
    let text: String = (0..2000).fold(String::new(), |mut text, number: u32| {
        let noise = number.wrapping_mul(2_654_435_761);
        writeln!(text, "# {noise:x}").unwrap();
        text
    });
    armed.store(true, Ordering::SeqCst);
    let second = hub.commit("second", &[("groups/b.yaml", &format!("name: B\n{text}"))]);
    is_reached.recv_timeout(Duration::from_mins(1)).unwrap();
    daemon.kill();
    let daemon = Daemon::start(&arguments);
    assert!([Some(&first), Some(&second)].contains(&live(&daemon).as_ref()));
    wait_for(&daemon, &second);
    Seen::Held("the next commit answers after the restart".to_owned())
}

fn while_building() -> Seen {
    let hub = Hub::new(&[A]);
    let mut daemon = hub.serve(&[]);
    let mut last = hub.head_id();
    let mut restarts = Vec::new();
    for round in 0..8 {
        wait_for(&daemon, &last);
        let files: Vec<(String, String)> = (0..600)
            .map(|it| {
                (format!("groups/{it}.yaml"), format!("name: G{it}\ndescription: '{round}'\n"))
            })
            .collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let next = hub.commit("more", &files);
        std::thread::sleep(Duration::from_millis(round * 60));
        let before = live(&daemon).unwrap();
        daemon.kill();
        let began = Instant::now();
        daemon = hub.serve(&[]);
        let after = live(&daemon).unwrap();
        assert!(after == before || after == next, "{before} {after}");
        restarts.push(began.elapsed().as_millis());
        last = next;
    }
    wait_for(&daemon, &last);
    let longest = restarts.iter().max().unwrap();
    Seen::Held(format!("8 kills, answers again after at most {longest} ms"))
}

fn within_a_write(hook: &str, exit: u8) -> Seen {
    let hub = Hub::new(&[A]);
    let file = |name: &str| hub.path().join(name).display().to_string();
    let (reached, go) = (file("reached"), file("go"));
    hub.hook(
        hook,
        &format!("[ -e {go} ] && exit 0\ntouch {reached}\nn=0\nwhile [ ! -e {go} ] && [ $n -lt 400 ]; do sleep 0.05; n=$((n+1)); done\nexit {exit}"),
    );
    let daemon = hub.serve(&[]);
    let body = r#"{"name": "N", "parent": "00000000-0000-4000-8000-000000000000", "classes": {}}"#;
    let address = daemon.address.clone();
    let client = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(stream, "POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok();
        answer
    });
    daemon.wait_until("the push is under way", |_| Path::new(&reached).exists());
    daemon.kill();
    assert_eq!(client.join().unwrap(), "", "the client is told nothing");
    std::fs::write(&go, "").unwrap();
    let daemon = hub.serve(&[]);
    let mut requests = 0;
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let answer = daemon.request("POST", "/v1/groups", body);
        requests += 1;
        if answer.status == 303 {
            break;
        }
        // The interrupted push may still hold the branch.
        assert!(matches!(answer.status, 403 | 503), "{}", answer.body);
        assert!(Instant::now() < deadline, "{}", answer.body);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(hub.log().len(), 2, "the change is made once");
    Seen::Held(format!("made once, after {requests} requests"))
}

fn journal_cut_short() -> Seen {
    let hub = Hub::new(&[A]);
    let data = hub.directory.path().join("data");
    let daemon = hub.serve(&[]);
    let mut commits = BTreeSet::from([hub.head_id()]);
    for number in 0..3 {
        let path = format!("groups/{number}.yaml");
        let commit = hub.commit("more", &[(&path, &format!("name: N{number}\n"))]);
        wait_for(&daemon, &commit);
        commits.insert(commit);
    }
    daemon.kill();
    let file = data.join("journal");
    let whole = std::fs::read(&file).unwrap();
    // The remote is gone: only local commits can answer.
    let away = hub.path().with_extension("away");
    std::fs::rename(hub.path(), &away).unwrap();
    for cut in [1, 2, 3, 20, 50, 100, 150, 200, 250] {
        std::fs::write(&file, &whole[..whole.len().saturating_sub(cut)]).unwrap();
        let daemon = hub.serve(&[]);
        let found = live(&daemon).unwrap();
        assert!(commits.contains(&found), "{found}");
        daemon.kill();
    }
    std::fs::rename(&away, hub.path()).unwrap();
    let daemon = hub.serve(&[]);
    wait_for(&daemon, &hub.head_id());
    Seen::Held("9 cuts, each answers from a commit".to_owned())
}

fn locks_left_behind() -> Seen {
    let hub = Hub::new(&[A]);
    let daemon = hub.serve(&[]);
    wait_for(&daemon, &hub.head_id());
    daemon.kill();
    let mirror = hub.directory.path().join("data/mirror.git");
    for lock in ["config.lock", "packed-refs.lock", "HEAD.lock"] {
        std::fs::write(mirror.join(lock), "").unwrap();
    }
    let packs = mirror.join("objects/pack");
    std::fs::create_dir_all(&packs).unwrap();
    std::fs::write(packs.join("tmp_pack_AbCdEf"), "PACK\0\0\0\x02").unwrap();
    let daemon = hub.serve(&[]);
    let next = hub.commit("next", &[("groups/b.yaml", "name: B\n")]);
    wait_for(&daemon, &next);
    Seen::Held("the next commit answers".to_owned())
}

fn frozen() -> Seen {
    let hub = Hub::new(&[A]);
    let daemon = hub.serve(&[]);
    wait_for(&daemon, &hub.head_id());
    daemon.signal("STOP");
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let daemon = Daemon::at(&daemon.address);
            std::thread::spawn(move || daemon.get("/v1/groups").status)
        })
        .collect();
    let next = hub.commit("next", &[("groups/b.yaml", "name: B\n")]);
    std::thread::sleep(Duration::from_millis(1500));
    daemon.signal("CONT");
    for client in clients {
        assert_eq!(client.join().unwrap(), 200);
    }
    wait_for(&daemon, &next);
    assert_eq!(daemon.get("/livez").status, 200);
    Seen::Held("20 of 20 requests answered with 200".to_owned())
}

fn terminated_under_load() -> Seen {
    use std::io::{Read as _, Write as _};

    let hub = Hub::new(&[A]);
    let daemon = hub.serve(&["--grace", "5s"]);
    wait_for(&daemon, &hub.head_id());
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let address = daemon.address.clone();
            std::thread::spawn(move || {
                let mut whole = 0;
                loop {
                    let Ok(mut stream) = std::net::TcpStream::connect(&address) else {
                        return whole;
                    };
                    let request =
                        "GET /v1/groups HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                    stream.write_all(request.as_bytes()).ok();
                    let mut answer = String::new();
                    stream.read_to_string(&mut answer).ok();
                    // A connection that came too late is closed without a word.
                    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return whole };
                    let length = head.to_ascii_lowercase();
                    let length = length.split("content-length: ").nth(1).unwrap();
                    let length: usize = length.lines().next().unwrap().parse().unwrap();
                    assert_eq!(body.len(), length, "half an answer");
                    whole += 1;
                }
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    assert_eq!(daemon.terminate(), 0);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    let whole: u32 = clients.into_iter().map(|it| it.join().unwrap()).sum();
    Seen::Held(format!("{whole} whole answers, exit status 0 after {} ms", took.as_millis()))
}
