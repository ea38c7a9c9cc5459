//! Forges that misbehave while commit statuses are posted: the branch is followed, answers continue,
//! and the status is posted once the forge is well, or refused with the reason.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crate::follow::wait_for;
use crate::forge::{Fate, Stub, World, respond};
use crate::git::server::{Server, status};
use crate::program::Daemon;
use crate::{Fault, Seen, Speed};

const PROMISE: &str = "commits go live and answer meanwhile; statuses are retried within bounds, and each is posted once when the forge recovers";

macro_rules! fault {
    ($name:literal, $speed:ident, $injection:literal, $answer:expr) => {
        Fault {
            name: $name,
            promise: PROMISE,
            injection: $injection,
            speed: Speed::$speed,
            run: || retried($answer),
        }
    };
}

pub(crate) const FAULTS: &[Fault] = &[
    fault!("forges::server-error", Slow, "the forge answers 503 for ever", |stream| {
        respond(stream, "503 Service Unavailable", "{\"message\": \"down\"}");
    }),
    fault!("forges::page", Slow, "a proxy answers 200 with a page", |stream| {
        respond(stream, "200 OK", "<html>Please log in</html>");
    }),
    fault!("forges::truncated", Slow, "the forge closes in the middle of its answer", |stream| {
        stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n{\"id\": 1").ok();
    }),
    fault!("forges::garbage", Slow, "the forge answers with bytes of no protocol", |stream| {
        stream.write_all(&[0, 255, 7, 13, 10].repeat(1000)).ok();
    }),
    fault!(
        "forges::endless",
        Slow,
        "the forge sends a body that never ends, as fast as it is read",
        |stream| {
            stream.write_all(b"HTTP/1.1 201 Created\r\n\r\n[").ok();
            while stream.write_all(&[b'0'; 4096]).is_ok() {}
        }
    ),
    fault!("forges::hang", Slow, "the forge takes each request and never answers", |stream| {
        std::io::copy(stream, &mut std::io::sink()).ok();
    }),
    Fault {
        name: "forges::redirect",
        promise: "a redirect is not followed, so the token stays here; the status is refused with the reason, and the next one is posted",
        injection: "the forge redirects to another host",
        speed: Speed::Fast,
        run: redirect,
    },
    Fault {
        name: "forges::unknown-authority",
        promise: "a forge whose certificate is not trusted gets no token; commits go live, and statuses are retried",
        injection: "`--forge-url https://…` of a server with the certificate of another authority",
        speed: Speed::Slow,
        run: unknown_authority,
    },
    Fault {
        name: "forges::hang-at-the-end",
        promise: "SIGTERM ends the daemon within the grace period",
        injection: "SIGTERM while a forge takes a request and does not answer",
        speed: Speed::Slow,
        run: hang_at_the_end,
    },
];

const LIVE: &str = "clade/live/eu1";

/// A forge that is well, misbehaves for a while, and is well again.
struct Forge {
    stub: Stub,
    is_broken: Arc<AtomicBool>,
    /// How many requests came while it misbehaved.
    tries: Arc<AtomicUsize>,
}

impl Forge {
    fn new(misbehave: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        let (is_broken, tries) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let stub = Stub::behaving({
            let (is_broken, tries) = (Arc::clone(&is_broken), Arc::clone(&tries));
            move |stream| {
                if is_broken.load(Ordering::SeqCst) {
                    tries.fetch_add(1, Ordering::SeqCst);
                    misbehave(stream);
                    Fate::Lost
                } else {
                    respond(stream, "201 Created", "{}");
                    Fate::Taken
                }
            }
        });
        Self { stub, is_broken, tries }
    }

    fn set_broken(&self, is_broken: bool) {
        self.is_broken.store(is_broken, Ordering::SeqCst);
    }

    fn tries(&self) -> usize {
        self.tries.load(Ordering::SeqCst)
    }

    fn posted(&self, commit: &str) -> usize {
        self.stub.calls().iter().filter(|it| it.path.contains(commit)).count()
    }
}

/// Commits to the branch, and waits until the commit answers.
fn follow(world: &World, daemon: &Daemon, name: &str) -> String {
    let (path, text) = (format!("groups/{name}.yaml"), format!("name: {name}\n"));
    let commit = world.repository.commit(name, &[(&path, &text)]);
    wait_for(daemon, &commit);
    commit
}

fn retried(misbehave: fn(&mut TcpStream)) -> Seen {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let forge = Forge::new(misbehave);
    let daemon = world.start(&forge.stub, "github", &[]);
    wait_for(&daemon, &first);
    forge.stub.status(&first, LIVE);
    forge.set_broken(true);
    let began = Instant::now();
    let second = follow(&world, &daemon, "b");
    daemon.wait_until("the forge was asked", |_| forge.tries() > 0);
    let third = follow(&world, &daemon, "c");
    let counted = "clade_commit_status_posts_total{provider=\"github\",result=\"retried\"} ";
    daemon.wait_until("a try failed", |it| {
        let metrics = it.get("/metrics").body;
        metrics.lines().any(|it| it.strip_prefix(counted).is_some_and(|it| it != "0"))
    });
    forge.set_broken(false);
    let (tries, took) = (forge.tries(), began.elapsed());
    for commit in [&second, &third] {
        assert_eq!(forge.stub.status(commit, LIVE).1, "answers");
        assert_eq!(forge.stub.status(commit, "clade/validate").0, "success");
    }
    // Each of four statuses waits a second after its first try, and twice as long after each other.
    let doublings = (took.as_secs() + 2).ilog2() as usize + 1;
    assert!(tries <= 4 * doublings, "{tries} tries in {took:?}");
    assert_eq!([forge.posted(&second), forge.posted(&third)], [2, 2], "each is posted once");
    Seen::Held(format!("{tries} tries in {:.1} s, two commits live meanwhile", took.as_secs_f32()))
}

/// Counts the connections of a host that nothing must connect to.
fn trap() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (url, connections)
}

fn redirect() -> Seen {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let (url, connections) = trap();
    let forge = Forge::new(move |stream| {
        let location = format!("307 Temporary Redirect\r\nLocation: {url}/statuses");
        respond(stream, &location, "{}");
    });
    let daemon = world.start(&forge.stub, "github", &[]);
    wait_for(&daemon, &first);
    forge.stub.status(&first, LIVE);
    forge.set_broken(true);
    let second = follow(&world, &daemon, "b");
    let refused = "clade_commit_status_posts_total{provider=\"github\",result=\"refused\"} 2";
    daemon.wait_until("both are refused", |it| it.get("/metrics").body.contains(refused));
    forge.set_broken(false);
    let third = follow(&world, &daemon, "c");
    assert_eq!(forge.stub.status(&third, LIVE).1, "answers");
    assert_eq!((forge.tries(), forge.posted(&second)), (2, 0));
    assert_eq!(connections.load(Ordering::SeqCst), 0, "the other host was asked");
    Seen::Held(
        "refused twice, the other host was not asked, the next commit is reported".to_owned(),
    )
}

fn unknown_authority() -> Seen {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let requests = Arc::new(AtomicUsize::new(0));
    let forge = Server::https({
        let requests = Arc::clone(&requests);
        move |_| {
            requests.fetch_add(1, Ordering::SeqCst);
            status("201 Created", "")
        }
    });
    let stub = Stub::start(Vec::new());
    let url = format!("https://127.0.0.1:{}", forge.port);
    let own = world.arguments(&stub, "github");
    let own: Vec<&str> =
        own.iter().map(|it| if *it == stub.url { url.as_str() } else { it.as_str() }).collect();
    let daemon = Daemon::start(&own);
    wait_for(&daemon, &first);
    let counted = "clade_commit_status_posts_total{provider=\"github\",result=\"retried\"} ";
    daemon.wait_until("a try failed", |it| {
        let metrics = it.get("/metrics").body;
        metrics.lines().any(|it| it.strip_prefix(counted).is_some_and(|it| it != "0"))
    });
    follow(&world, &daemon, "b");
    assert_eq!(requests.load(Ordering::SeqCst), 0, "it got a token");
    Seen::Held("no status is posted, and the next commit is live".to_owned())
}

fn hang_at_the_end() -> Seen {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let forge = Forge::new(|stream| {
        std::io::copy(stream, &mut std::io::sink()).ok();
    });
    forge.set_broken(true);
    let daemon = world.start(&forge.stub, "github", &["--grace", "1s"]);
    wait_for(&daemon, &first);
    daemon.wait_until("the forge was asked", |_| forge.tries() > 0);
    let began = Instant::now();
    assert_eq!(daemon.terminate(), 0);
    let took = began.elapsed();
    Seen::Held(format!("ended after {:.1} s", took.as_secs_f32()))
}
