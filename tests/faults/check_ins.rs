//! Check-ins: facts that were acknowledged, and the file that holds them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mtls::{Authority, Identity};
use crate::program::{Daemon, GitRepository, Response, serve, started_by};
use crate::rights::tokens;
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "check-ins::kill-after-201",
        promise: "facts that `POST /api/hosts/facts` answered 201 survive kill -9",
        injection: "SIGKILL right after the answer, eight times",
        speed: Speed::Fast,
        run: kill_after_201,
    },
    Fault {
        name: "check-ins::uploads-at-once",
        promise: "of many large uploads each is 201 and kept, or refused: 503, or a closed connection",
        injection: "24 uploads of 9 MB at once",
        speed: Speed::Slow,
        run: uploads_at_once,
    },
    Fault {
        name: "check-ins::full-disk",
        promise: "with a full disk classification goes on, what is stored is read, uploads are 503, the store is tried again after pauses, and it recovers",
        injection: "a data directory of 12 MiB that a file fills, and that is freed later",
        speed: Speed::Slow,
        run: full_disk,
    },
    Fault {
        name: "check-ins::file-size-limit",
        promise: "a failed write is 503 and a condition, what is stored is read, and the store recovers without a restart",
        injection: "RLIMIT_FSIZE, lifted later",
        speed: Speed::Slow,
        run: file_size_limit,
    },
    Fault {
        name: "check-ins::garbage",
        promise: "a damaged file is put aside, the daemon classifies, and its nodes never count as unknown",
        injection: "the file is overwritten with garbage",
        speed: Speed::Fast,
        run: || {
            damaged(&|path, sound| {
                std::fs::write(path, b"garbage\n".repeat(sound.len() / 8)).unwrap();
            })
        },
    },
    Fault {
        name: "check-ins::truncated",
        promise: "a truncated file is put aside like a damaged one",
        injection: "the file is cut off after 3,000 bytes",
        speed: Speed::Fast,
        run: || damaged(&|path, sound| std::fs::write(path, &sound[..3000]).unwrap()),
    },
    Fault {
        name: "check-ins::emptied",
        promise: "an emptied file is put aside like a damaged one",
        injection: "the file is truncated to 0 bytes",
        speed: Speed::Fast,
        run: || damaged(&|path, _| std::fs::write(path, "").unwrap()),
    },
    Fault {
        name: "check-ins::lost-log",
        promise: "a file that lost its log is put aside like a damaged one",
        injection: "SIGKILL; then the log is removed, emptied, or changed in one byte of its header",
        speed: Speed::Fast,
        run: lost_log,
    },
    Fault {
        name: "check-ins::another-version",
        promise: "a file in the format of another version is put aside like a damaged one",
        injection: "the version in the file's header is changed",
        speed: Speed::Fast,
        run: || {
            damaged(&|path, sound| {
                let mut bytes = sound.to_vec();
                // The version that is needed to write and to read the file.
                bytes[18..20].fill(99);
                std::fs::write(path, bytes).unwrap();
            })
        },
    },
    Fault {
        name: "check-ins::directory-in-its-place",
        promise: "a directory instead of the file is put aside",
        injection: "the file is replaced by a directory",
        speed: Speed::Fast,
        run: || damaged(&|path, _| std::fs::create_dir(path).unwrap()),
    },
    Fault {
        name: "check-ins::lost-trusted-data",
        promise: "after a damaged file was put aside, no node is answered without the trusted data that it had",
        injection: "garbage in the file; then facts without trusted data, by upload, by classification and without facts",
        speed: Speed::Fast,
        run: lost_trusted_data,
    },
    Fault {
        name: "check-ins::names-alone",
        promise: "a site whose nodes ask by their names alone has no file that could be damaged",
        injection: "nodes that ask by name, SIGKILL, and a restart",
        speed: Speed::Fast,
        run: names_alone,
    },
    Fault {
        name: "check-ins::deleted-file",
        promise: "facts that are acknowledged after the file was removed are on disk, with those before",
        injection: "`rm nodes.sqlite` while the daemon runs, then SIGKILL",
        speed: Speed::Fast,
        run: || deleted_file("nodes.sqlite"),
    },
    Fault {
        name: "check-ins::deleted-log",
        promise: "facts that are acknowledged after the log of the file was removed are on disk, with those before",
        injection: "`rm nodes.sqlite-wal` while the daemon runs, then SIGKILL",
        speed: Speed::Fast,
        run: || deleted_file("nodes.sqlite-wal"),
    },
    Fault {
        name: "check-ins::made-up-names",
        promise: "made-up names evict no node with uploaded facts, and memory stays bounded",
        injection: "300 names in a store of 20 nodes",
        speed: Speed::Fast,
        run: made_up_names,
    },
    Fault {
        name: "check-ins::large-list",
        promise: "`GET /v1/nodes` uses the memory of one node, for any number of nodes",
        injection: "300 nodes with 159 KB of facts each",
        speed: Speed::Slow,
        run: large_list,
    },
];

const GROUP: &str = "name: Web\nrule: os.family = Debian\nclasses: {apache: {}}\n";

/// A repository, and a data directory beside it.
struct Site {
    repository: GitRepository,
    data: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let repository = GitRepository::new();
        repository.commit("first", &[("groups/web.yaml", GROUP)]);
        Self { repository, data: tempfile::tempdir().unwrap() }
    }

    fn arguments(&self, data: &Path) -> Vec<String> {
        let remote = format!("file://{}", self.repository.text_path());
        ["--branch", "main", "--allow-insecure-remotes", "--repo", &remote, "--data-dir"]
            .into_iter()
            .chain([data.to_str().unwrap()])
            .map(str::to_owned)
            .collect()
    }

    fn start(&self, more: &[&str]) -> Daemon {
        let arguments = self.arguments(self.data.path());
        let all: Vec<&str> =
            arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let daemon = Daemon::start(&all);
        answers(&daemon);
        daemon
    }

    fn store(&self) -> std::path::PathBuf {
        self.data.path().join("nodes.sqlite")
    }
}

fn answers(daemon: &Daemon) {
    daemon.wait_until("a commit answers", |it| it.get("/readyz").status == 200);
}

fn facts(name: &str, more: &str) -> String {
    format!(r#"{{"name": "{name}", "facts": {{"os": {{"family": "Debian"}}, "more": "{more}"}}}}"#)
}

/// Uploads facts; the status is 0 if the daemon closed the connection, which acknowledges nothing.
fn upload_beyond_limits(daemon: &Daemon, name: &str, more: &str) -> u16 {
    let body = facts(name, more);
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    let head = format!(
        "POST /api/hosts/facts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // A daemon that has no room for the body answers and closes before all of it is sent; the answer
    // may then be lost.
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok();
    let mut text = String::new();
    stream.read_to_string(&mut text).ok();
    let status = text.split(' ').nth(1).map_or(0, |it| it.parse().unwrap());
    assert!([201, 503, 0].contains(&status), "{text}");
    status
}

fn upload(daemon: &Daemon, name: &str, more: &str) -> u16 {
    let answer = daemon.request("POST", "/api/hosts/facts", &facts(name, more));
    if answer.status != 201 {
        assert_eq!(answer.status, 503, "{}", answer.body);
        let kind = answer.json()["kind"].clone();
        assert!(kind == "storage-failed" || kind == "busy", "{kind}");
        assert!(answer.header("Retry-After").is_some(), "{}", answer.head);
    }
    answer.status
}

/// How often the store failed.
fn store_failures(daemon: &Daemon) -> u64 {
    let metrics = daemon.get("/metrics").body;
    let name = "clade_check_ins_store_failures_total ";
    let count = metrics.lines().find_map(|it| it.strip_prefix(name));
    count.map_or(0, |it| it.parse().unwrap())
}

/// How often the store is tried again in a time at the most: each half second, and for an upload that came before.
fn most_tries(time: Duration) -> u64 {
    time.as_secs() * 2 + 3
}

/// Classifies a node by its name alone; panics if the answer lacks its classes.
fn by_name(daemon: &Daemon, name: &str) -> u16 {
    let answer = daemon.get(&format!("/enc/{name}"));
    match answer.status {
        200 => assert!(answer.body.contains("apache"), "{name} lost its classes: {}", answer.body),
        503 => assert_eq!(answer.json()["kind"], "storage-failed", "{}", answer.body),
        status => panic!("{status}: {}", answer.body),
    }
    answer.status
}

/// Classification with facts needs no store.
fn classifies(daemon: &Daemon) {
    let body = r#"{"fact": {"os": {"family": "Debian"}}}"#;
    let answer = daemon.request("POST", "/v1/classified/nodes/other", body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["classes"], json!({"apache": {}}));
}

fn condition(daemon: &Daemon, kind: &str) -> Option<Value> {
    let status = daemon.get("/controller/status").json();
    status["conditions"].as_array().unwrap().iter().find(|it| it["type"] == kind).cloned()
}

fn kill_after_201() -> Seen {
    let site = Site::new();
    for round in 0..8 {
        let daemon = site.start(&[]);
        for earlier in 0..round {
            assert_eq!(by_name(&daemon, &format!("web{earlier}")), 200);
        }
        assert_eq!(upload(&daemon, &format!("web{round}"), ""), 201);
        daemon.kill();
    }
    Seen::Held("8 of 8 kept".to_owned())
}

fn uploads_at_once() -> Seen {
    let site = Site::new();
    let daemon = site.start(&[]);
    let more = "x".repeat(9_000_000);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..24)
            .map(|number| {
                let (daemon, more) = (&daemon, &more);
                scope.spawn(move || upload_beyond_limits(daemon, &format!("web{number}"), more))
            })
            .collect();
        all.into_iter().map(|it| it.join().unwrap()).collect()
    });
    daemon.kill();
    let daemon = site.start(&[]);
    // After a kill the file is checked before it is read, which takes a while in this build.
    daemon.wait_until("the store is open", |it| it.get("/v1/nodes?limit=0").status == 200);
    let kept = statuses.iter().enumerate().filter(|(_, status)| **status == 201);
    let kept = kept.map(|(number, _)| assert_eq!(by_name(&daemon, &format!("web{number}")), 200));
    let kept = kept.count();
    assert!(kept > 0, "{statuses:?}");
    Seen::Held(format!("{kept} were 201 and are kept, {} were refused", statuses.len() - kept))
}

/// Runs a program that has a small disk of its own at a directory.
const ON_A_SMALL_DISK: &str = r#"mount -t tmpfs -o size=12m none "$0" && exec "$@""#;

fn full_disk() -> Seen {
    let disk = tempfile::tempdir().unwrap();
    let may_mount = Command::new("unshare")
        .args(["-rm", "sh", "-c", ON_A_SMALL_DISK])
        .arg(disk.path())
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !may_mount.is_ok_and(|it| it.success()) {
        return Seen::Skipped("mounting a small disk");
    }
    let site = Site::new();
    let mut small = Command::new("unshare");
    small.args(["-rm", "sh", "-c", ON_A_SMALL_DISK]).arg(disk.path());
    let mut program = serve(&[]);
    program.args(site.arguments(&disk.path().join("data")));
    let daemon = Daemon::launch(started_by(small, &program));
    answers(&daemon);
    // The disk is in a namespace of its own.
    let inside = format!("/proc/{}/root{}", daemon.id(), disk.path().display());
    let filler = Path::new(&inside).join("filler");
    let more = "x".repeat(100_000);
    assert_eq!(upload(&daemon, "web0", &more), 201);
    // Copying stops when the disk is full.
    std::io::copy(&mut std::io::repeat(0), &mut std::fs::File::create(&filler).unwrap())
        .unwrap_err();
    let mut kept = 1;
    while upload(&daemon, &format!("web{kept}"), &more) == 201 {
        kept += 1;
        assert!(kept < 1000, "the disk is not full");
    }
    let began = Instant::now();
    let (mut asked, failed) = (0, store_failures(&daemon));
    while began.elapsed() < Duration::from_secs(4) {
        classifies(&daemon);
        for number in 0..kept {
            asked += 1;
            assert_eq!(by_name(&daemon, &format!("web{number}")), 200, "web{number} is on disk");
        }
        assert_eq!(upload(&daemon, "late", &more), 503);
    }
    let tried = store_failures(&daemon) - failed;
    assert!(tried <= most_tries(began.elapsed()), "tried {tried} times in {:?}", began.elapsed());
    daemon.wait_until("the condition says it", |it| condition(it, "CheckInsFailed").is_some());
    let reason = condition(&daemon, "CheckInsFailed").unwrap()["reason"].clone();
    std::fs::remove_file(&filler).unwrap();
    daemon.wait_until("it recovers", |it| condition(it, "CheckInsFailed").is_none());
    assert_eq!(upload(&daemon, "late", &more), 201);
    for number in 0..kept {
        assert_eq!(by_name(&daemon, &format!("web{number}")), 200);
    }
    Seen::Held(format!(
        "{reason}; {kept} nodes kept; {asked} reads answered while full, and {tried} more tries; it recovered"
    ))
}

fn file_size_limit() -> Seen {
    let site = Site::new();
    let mut limit = Command::new("sh");
    // The soft limit alone, so that it can be lifted; in units of 512 or 1,024 bytes.
    limit.args(["-c", r#"ulimit -S -f 5000; exec "$0" "$@""#]);
    let mut program = serve(&[]);
    program.args(site.arguments(site.data.path()));
    let daemon = Daemon::launch(started_by(limit, &program));
    answers(&daemon);
    let more = "x".repeat(300_000);
    let mut kept = 0;
    while upload(&daemon, &format!("web{kept}"), &more) == 201 {
        kept += 1;
        assert!(kept < 1000, "the file has no limit");
    }
    classifies(&daemon);
    daemon.wait_until("the condition says it", |it| condition(it, "CheckInsFailed").is_some());
    let (began, failed) = (Instant::now(), store_failures(&daemon));
    while began.elapsed() < Duration::from_secs(3) {
        for number in 0..kept {
            assert_eq!(by_name(&daemon, &format!("web{number}")), 200, "web{number} is on disk");
        }
    }
    let tried = store_failures(&daemon) - failed;
    assert!(tried <= most_tries(began.elapsed()), "tried {tried} times in {:?}", began.elapsed());
    let id = daemon.id().to_string();
    let lifted = Command::new("prlimit").args(["--pid", &id, "--fsize=unlimited:"]).status();
    if !lifted.is_ok_and(|it| it.success()) {
        return Seen::Skipped("prlimit");
    }
    daemon.wait_until("it recovers", |it| condition(it, "CheckInsFailed").is_none());
    assert_eq!(upload(&daemon, "late", &more), 201);
    for number in 0..kept {
        assert_eq!(by_name(&daemon, &format!("web{number}")), 200);
    }
    Seen::Held(format!("{kept} nodes kept; 503 beyond the limit; it recovered without a restart"))
}

/// Damages the file of a stopped daemon; `damage` gets its path and its content.
fn damaged(damage: &dyn Fn(&Path, &[u8])) -> Seen {
    let site = Site::new();
    let daemon = site.start(&[]);
    assert_eq!(upload(&daemon, "web1", ""), 201);
    assert_eq!(daemon.terminate(), 0);
    let sound = std::fs::read(site.store()).unwrap();
    std::fs::remove_file(site.store()).unwrap();
    damage(&site.store(), &sound);
    let daemon = site.start(&[]);
    classifies(&daemon);
    assert_eq!(by_name(&daemon, "web1"), 503);
    daemon.wait_until("the condition says it", |it| condition(it, "CheckInsLost").is_some());
    let lost = condition(&daemon, "CheckInsLost").unwrap();
    let aside = std::fs::read_dir(site.data.path()).unwrap().map(|it| it.unwrap().path());
    let is_file = |it: &std::path::PathBuf| {
        let name = it.to_str().unwrap();
        name.contains("nodes.sqlite.damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    let aside = aside.filter(is_file);
    let aside = aside.collect::<Vec<_>>().pop().unwrap();
    assert!(lost["message"].as_str().unwrap().contains(aside.to_str().unwrap()), "{lost}");
    // Hiera must not take the node for one without data, nor one by its name alone.
    assert_eq!(daemon.get("/hiera/web1").status, 503);
    assert_eq!(daemon.get("/node/web1").status, 503);
    assert_eq!(daemon.request("POST", "/enc/web1", "").status, 503);
    assert_eq!(upload(&daemon, "web1", ""), 201);
    // Its trusted data is not known.
    assert_eq!(by_name(&daemon, "web1"), 503);
    let trusted = r#"{"trusted": {"certname": "web1", "extensions": {}}}"#;
    assert_eq!(daemon.request("POST", "/enc/web1", trusted).status, 200);
    assert_eq!(by_name(&daemon, "web1"), 200);
    assert_eq!(by_name(&daemon, "web2"), 503);
    if aside.is_dir() {
        std::fs::remove_dir(&aside).unwrap();
    } else {
        std::fs::remove_file(&aside).unwrap();
    }
    assert_eq!(daemon.get("/enc/web2").status, 200);
    Seen::Held(format!("{}: {}", lost["type"], lost["reason"]))
}

/// A group whose rule reads the role in the certificate.
const PROVED: &str =
    "name: Proved\nrule: trusted.extensions.pp_role = web\nclasses: {proved: {}}\n";

fn lost_trusted_data() -> Seen {
    let site = Site::new();
    site.repository.commit("second", &[("groups/proved.yaml", PROVED)]);
    let authority = Authority::new();
    let (own, agent) = (authority.sign("localhost", None), authority.sign("web1", Some("web")));
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let tokens = tokens(&[("puppet", "roles: [classify, check-in, read]")]);
    let arguments = [
        ("--tls-cert", file("cert.pem", &own.0)),
        ("--tls-key", file("key.pem", &own.1)),
        ("--tls-client-ca", file("ca.pem", &authority.0.pem())),
        ("--tokens-file", file("tokens.yaml", &tokens)),
    ];
    let start = || {
        let remote = site.arguments(site.data.path());
        let own = arguments.iter().flat_map(|(name, value)| [*name, value.as_str()]);
        let all: Vec<&str> = remote.iter().map(String::as_str).chain(own).collect();
        Daemon::start(&all)
    };
    let send = |daemon: &Daemon, own: Option<&Identity>, method: &str, path: &str, body: &str| {
        let header = if own.is_some() { "" } else { "X-Authentication: puppet\r\n" };
        authority.send(&daemon.address, own, method, path, header, body).unwrap()
    };
    let live = |daemon: &Daemon| {
        daemon.wait_until("a commit answers", |it| {
            send(it, None, "GET", "/readyz", "").status == 200
        });
    };
    let whole = r#"{"fact": {"os": {"family": "Debian"}}, "trusted": {"certname": "n", "extensions": {"pp_role": "web"}}}"#;
    let names = ["uploaded", "web1", "classified", "bare"];
    let daemon = start();
    live(&daemon);
    for name in names {
        assert_eq!(send(&daemon, None, "POST", &format!("/enc/{name}"), whole).status, 200);
    }
    let group = "/v1/groups?limit=9";
    let groups = send(&daemon, None, "GET", group, "").json();
    let groups = groups.as_array().unwrap().iter();
    let id = groups.clone().find(|it| it["name"] == "Proved").unwrap()["id"].clone();
    let members = format!("/v1/groups/{}/nodes", id.as_str().unwrap());
    assert_eq!(
        send(&daemon, None, "GET", &members, "").json()["nodes"],
        json!(["bare", "classified", "uploaded", "web1"])
    );
    assert_eq!(daemon.terminate(), 0);
    std::fs::write(site.store(), b"garbage\n".repeat(4000)).unwrap();
    let daemon = start();
    live(&daemon);
    // Each of them leaves a check-in without what the node had.
    for name in ["uploaded", "web1"] {
        let body = facts(name, "");
        assert_eq!(send(&daemon, None, "POST", "/api/hosts/facts", &body).status, 201);
    }
    let body = r#"{"fact": {"os": {"family": "Debian"}}}"#;
    assert_eq!(send(&daemon, None, "POST", "/v1/classified/nodes/classified", body).status, 200);
    let body = r#"{"transaction_uuid": "x"}"#;
    assert_eq!(send(&daemon, None, "POST", "/v1/classified/nodes/bare", body).status, 200);
    for name in names {
        for path in ["/enc/", "/hiera/", "/node/", "/v1/nodes/"] {
            let answer = send(&daemon, None, "GET", &format!("{path}{name}"), "");
            assert_eq!(answer.status, 503, "{path}{name}: {}", answer.body);
            assert_eq!(answer.json()["kind"], "storage-failed");
        }
        assert_eq!(send(&daemon, None, "POST", &format!("/enc/{name}"), "").status, 503);
    }
    assert_eq!(send(&daemon, None, "GET", &members, "").status, 503);
    // The agent proves itself: for this answer, and with an upload for all.
    let proved = |answer: &Response| answer.status == 200 && answer.body.contains("\"proved\"");
    assert!(proved(&send(&daemon, Some(&agent), "GET", "/enc/web1", "")));
    assert_eq!(send(&daemon, None, "GET", "/enc/web1", "").status, 503);
    let body = facts("web1", "");
    assert_eq!(send(&daemon, Some(&agent), "POST", "/api/hosts/facts", &body).status, 201);
    assert!(proved(&send(&daemon, None, "GET", "/enc/web1", "")));
    // Puppet Server says what the certificate proved.
    let body = r#"{"trusted": {"certname": "uploaded", "extensions": {"pp_role": "web"}}}"#;
    assert!(proved(&send(&daemon, None, "POST", "/enc/uploaded", body)));
    assert!(proved(&send(&daemon, None, "GET", "/enc/uploaded", "")));
    Seen::Held("503 until the certificate, or a caller with `check-in`, says them".to_owned())
}

fn names_alone() -> Seen {
    let site = Site::new();
    let asks = |daemon: &Daemon| {
        // Not by `by_name`: without facts no group matches.
        assert_eq!(daemon.get("/enc/web1").status, 200);
        assert_eq!(daemon.get("/node/web1").status, 200);
        assert!(!site.store().exists());
    };
    let daemon = site.start(&[]);
    asks(&daemon);
    daemon.kill();
    let daemon = site.start(&[]);
    asks(&daemon);
    assert!(condition(&daemon, "CheckInsLost").is_none());
    assert_eq!(upload(&daemon, "web2", ""), 201);
    assert!(site.store().exists());
    Seen::Held("answered before and after; the first facts make the file".to_owned())
}

fn lost_log() -> Seen {
    let damages: [fn(&Path); 3] = [
        |log| std::fs::remove_file(log).unwrap(),
        |log| std::fs::write(log, "").unwrap(),
        |log| {
            let mut bytes = std::fs::read(log).unwrap();
            bytes[17] ^= 1;
            std::fs::write(log, bytes).unwrap();
        },
    ];
    for damage in damages {
        let site = Site::new();
        let daemon = site.start(&[]);
        assert_eq!(upload(&daemon, "web1", ""), 201);
        assert_eq!(by_name(&daemon, "web1"), 200);
        daemon.kill();
        damage(&site.data.path().join("nodes.sqlite-wal"));
        let daemon = site.start(&[]);
        classifies(&daemon);
        assert_eq!(by_name(&daemon, "web1"), 503);
        daemon.wait_until("the condition says it", |it| condition(it, "CheckInsLost").is_some());
    }
    Seen::Held("\"CheckInsLost\" three times".to_owned())
}

fn deleted_file(name: &str) -> Seen {
    let site = Site::new();
    let daemon = site.start(&[]);
    assert_eq!(upload(&daemon, "before", ""), 201);
    std::fs::remove_file(site.data.path().join(name)).unwrap();
    assert_eq!(upload(&daemon, "after", ""), 201);
    daemon.kill();
    let daemon = site.start(&[]);
    assert_eq!((by_name(&daemon, "before"), by_name(&daemon, "after")), (200, 200));
    Seen::Held("both nodes are known after the restart".to_owned())
}

fn made_up_names() -> Seen {
    let site = Site::new();
    let daemon = site.start(&["--store-max-nodes", "20"]);
    for number in 0..15 {
        assert_eq!(upload(&daemon, &format!("web{number}"), ""), 201);
    }
    for number in 0..300 {
        let path = format!("/v1/classified/nodes/made-up-{number}");
        let body = r#"{"fact": {"os": {"family": "Debian"}}}"#;
        assert_eq!(daemon.request("POST", &path, body).status, 200);
    }
    let nodes = daemon.get("/v1/nodes").json().as_array().unwrap().len();
    assert!(nodes <= 20, "{nodes}");
    for number in 0..15 {
        assert_eq!(by_name(&daemon, &format!("web{number}")), 200);
    }
    // Where all room is promised, the next promise is refused.
    let statuses: Vec<u16> =
        (0..6).map(|number| upload(&daemon, &format!("more{number}"), "")).collect();
    assert_eq!(statuses, [201, 201, 201, 201, 201, 503]);
    Seen::Held(format!("{nodes} nodes after the flood, all 15 promised ones among them"))
}

fn resident(daemon: &Daemon, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status.lines().find(|it| it.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Reads a body in chunks.
fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        let (chunk, rest) = rest.split_at(size);
        text.push_str(chunk);
        body = rest.strip_prefix("\r\n").unwrap();
    }
    text
}

fn large_list() -> Seen {
    let site = Site::new();
    let daemon = site.start(&[]);
    let value = "x".repeat(80);
    let more: Vec<String> =
        (0..1500).map(|it| format!(r#""fact{it}": {{"value": "{value}"}}, "#)).collect();
    let more = more.concat();
    for number in 0..300 {
        let body = format!(r#"{{"fact": {{{more}"os": {{"family": "Debian"}}}}}}"#);
        let path = format!("/v1/classified/nodes/web{number:03}");
        assert_eq!(daemon.request("POST", &path, &body).status, 200);
        if number % 50 == 0 {
            // What waits is written: a busy machine would have check-ins dropped.
            assert_eq!(daemon.get("/controller/nodes?limit=1").status, 200);
        }
    }
    let before = resident(&daemon, "VmHWM");
    let all: Value =
        serde_json::from_str(&unchunked(&daemon.get("/v1/nodes?facts=true").body)).unwrap();
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 300);
    assert!(names.is_sorted(), "{names:?}");
    let grown = resident(&daemon, "VmHWM") - before;
    assert!(grown < 100, "{grown} MiB");
    let page = daemon.get("/v1/nodes?limit=7&offset=100").json();
    assert_eq!((page[0]["name"].as_str(), page.as_array().unwrap().len()), (Some("web100"), 7));
    Seen::Held(format!("48 MB of facts listed in {grown} MiB more than before, of {before} MiB"))
}
