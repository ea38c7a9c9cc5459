//! What remotes and their hooks can do to the daemon.

mod mirror;

use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::commits::within;
use crate::program::{Daemon, Response, serve};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "remotes::hanging-hook",
        promise: "a push has a deadline, the branch is followed meanwhile, and a condition says so",
        injection: "a pre-receive hook that never ends, with a child of its own",
        speed: Speed::Fast,
        run: hanging_hook,
    },
    Fault {
        name: "remotes::stopped-receiver",
        promise: "the deadline of a push ends a receiver that is stopped",
        injection: "a pre-receive hook that sends SIGSTOP to git receive-pack",
        speed: Speed::Fast,
        run: stopped_receiver,
    },
    Fault {
        name: "remotes::hook-after-the-branch-moved",
        promise: "a write that reached the remote is acknowledged, and no older commit answers after it",
        injection: "a post-receive hook that never ends, and commits of others meanwhile",
        speed: Speed::Fast,
        run: hanging_post_receive,
    },
    Fault {
        name: "remotes::grace-with-a-hanging-hook",
        promise: "SIGTERM ends the daemon within the grace period, and the hook with it",
        injection: "SIGTERM while a pre-receive hook hangs",
        speed: Speed::Fast,
        run: grace_with_a_hook,
    },
    Fault {
        name: "remotes::grace-with-a-silent-peer",
        promise: "SIGTERM ends the daemon within the grace period",
        injection: "SIGTERM while a git:// and an http:// server accept and say nothing",
        speed: Speed::Fast,
        run: grace_with_silence,
    },
    Fault {
        name: "remotes::hooks-of-another-user",
        promise: "hooks of a repository of another user are not run unless safe.directory lists it",
        injection: "a write to a repository that was given to another user",
        speed: Speed::Fast,
        run: hooks_of_another_user,
    },
    Fault {
        name: "remotes::environment-of-hooks",
        promise: "a hook sees nothing of the daemon's environment but a short list",
        injection: "a hook that writes its environment down, and a secret in CLADE_REPO",
        speed: Speed::Fast,
        run: environment_of_hooks,
    },
    Fault {
        name: "remotes::webhook-flood",
        promise: "webhooks cause at most one fetch a second, and the first one at once",
        injection: "signed webhooks without a pause from four connections, each of another commit",
        speed: Speed::Fast,
        run: webhook_flood,
    },
    Fault {
        name: "remotes::huge-blob",
        promise: "a blob that inflates to more than the limit stops its own ref alone",
        injection: "256 MiB of zeros in one blob of a branch, over a path, file:// and git://, with 2 GiB of address space",
        speed: Speed::Fast,
        run: huge_blob,
    },
    Fault {
        name: "remotes::odd-refs",
        promise: "a ref that cannot be kept is skipped and named, and the others are fetched",
        injection: "tags of a blob and of a tree, and a branch name of 3,988 characters",
        speed: Speed::Fast,
        run: odd_refs,
    },
    Fault {
        name: "remotes::refs-not-utf8",
        promise: "a ref whose name is not UTF-8 is skipped and named, and the others are fetched",
        injection: "a branch whose name is in Latin-1",
        speed: Speed::Fast,
        run: refs_not_utf8,
    },
    Fault {
        name: "remotes::emptied-config",
        promise: "a damaged file of the mirror is restored or moved aside, and answers go on from the objects",
        injection: "kill -9; each of config, HEAD, packed-refs and single refs emptied, deleted or overwritten; the remote gone",
        speed: Speed::Fast,
        run: mirror::emptied_config,
    },
    Fault {
        name: "remotes::read-only-data",
        promise: "a read-only data directory starts, answers, follows and is a condition; what cannot be written is refused",
        injection: "a restart with the data directory remounted read-only, the remote gone and back",
        speed: Speed::Fast,
        run: mirror::read_only_data,
    },
    Fault {
        name: "remotes::private-data",
        promise: "only the daemon's user can read the mirror, the journal and stored facts",
        injection: "a data directory created under umask 000, and one with files that an older version left open to all",
        speed: Speed::Fast,
        run: mirror::private_data,
    },
];

/// A bare repository with one group on `main`.
struct Hub {
    directory: tempfile::TempDir,
    git: git2::Repository,
}

impl Hub {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        let git = git2::Repository::init_opts(
            directory.path().join("hub.git"),
            options.bare(true).initial_head("main"),
        )
        .unwrap();
        let hub = Self { directory, git };
        hub.commit("main", "groups/a.yaml", b"name: A\n");
        hub
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("hub.git")
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Puts a file on top of a branch.
    fn commit(&self, branch: &str, path: &str, content: &[u8]) -> String {
        let blob = self.git.blob(content).unwrap();
        self.commit_blob(branch, path, blob)
    }

    fn commit_blob(&self, branch: &str, path: &str, blob: git2::Oid) -> String {
        let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
        let name = format!("refs/heads/{branch}");
        let parent = self.git.find_reference(&name).ok().map(|it| it.peel_to_commit().unwrap());
        let empty = self.git.treebuilder(None).unwrap().write().unwrap();
        let base = match &parent {
            Some(parent) => parent.tree().unwrap(),
            None => self.git.find_tree(empty).unwrap(),
        };
        let mut update = git2::build::TreeUpdateBuilder::new();
        update.upsert(path, blob, git2::FileMode::Blob);
        let tree = update.create_updated(&self.git, &base).unwrap();
        let tree = self.git.find_tree(tree).unwrap();
        let parents: Vec<_> = parent.iter().collect();
        self.git.commit(Some(&name), &ada, &ada, "x", &tree, &parents).unwrap().to_string()
    }

    fn hook(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;

        let path = self.path().join("hooks").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Prepares a daemon that follows the hub by a mirror.
    fn program(&self, more: &[&str]) -> std::process::Command {
        let (path, data) = (self.path(), self.data());
        let path = ["--repo", path.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
        serve(&[path.as_slice(), more].concat())
    }

    fn serve(&self, more: &[&str]) -> Daemon {
        Daemon::launch(self.program(&[&["--writes", "commit"], more].concat()))
    }
}

fn active(daemon: &Daemon) -> String {
    let status = daemon.get("/controller/status").json();
    status["active"]["commit"].as_str().unwrap_or_default().to_owned()
}

fn conditions(daemon: &Daemon) -> Vec<String> {
    let status = daemon.get("/controller/status").json();
    let all = status["conditions"].as_array().unwrap().iter();
    all.map(|it| format!("{} {}", it["type"], it["reason"]).replace('"', "")).collect()
}

/// Sends a write in a thread of its own.
fn write(daemon: &Daemon, name: &str) -> std::thread::JoinHandle<Response> {
    let (daemon, name) = (Daemon::at(&daemon.address), name.to_owned());
    std::thread::spawn(move || {
        let root = "00000000-0000-4000-8000-000000000000";
        let body = serde_json::json!({"name": name, "parent": root, "classes": {}}).to_string();
        daemon.request_with("POST", "/v1/groups", "Content-Type: application/json\r\n", &body)
    })
}

/// Waits until a file has a line, and returns it.
fn line_of(path: &Path) -> String {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if let Some(line) = text.strip_suffix('\n') {
            return line.to_owned();
        }
        assert!(Instant::now() < until, "{} has no line", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_running(process: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !(state.is_empty() || state.contains(") Z ") || state.contains(") X "))
}

/// Waits for a process that is killed: on a busy machine it ends a moment later.
fn wait_for_the_end_of(process: &str) {
    let until = Instant::now() + Duration::from_secs(30);
    while is_running(process) {
        assert!(Instant::now() < until, "the hook's child lives");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A hook that hangs with a child, whose process id it writes down.
fn hang(pid: &Path) -> String {
    format!("sleep 1000 &\necho $! >'{}'\nwait", pid.display())
}

fn hanging_hook() -> Seen {
    let hub = Hub::new();
    let pid = hub.directory.path().join("pid");
    hub.hook("pre-receive", &hang(&pid));
    // The hook outlives what is waited for, however busy the machine is.
    let daemon = hub.serve(&["--fetch-timeout", "60s", "--grace", "1s"]);
    let began = Instant::now();
    let written = write(&daemon, "N");
    let child = line_of(&pid);
    let next = hub.commit("main", "groups/b.yaml", b"name: B\n");
    daemon.wait_until("the branch is followed while a hook hangs", |it| active(it) == next);
    let followed = began.elapsed();
    assert!(
        is_running(&child),
        "the hook ended before the commit was followed, after {followed:?}"
    );
    let says = |it: &Daemon| conditions(it).contains(&"PushStalled Pushing".to_owned());
    daemon.wait_until("a condition says so", says);
    assert_eq!(daemon.terminate(), 0);
    // It may get no answer any more.
    written.join().ok();
    std::fs::remove_file(&pid).unwrap();

    // Time enough for the hook to begin.
    let daemon = hub.serve(&["--fetch-timeout", "10s"]);
    let began = Instant::now();
    let answer = write(&daemon, "N").join().unwrap();
    let took = began.elapsed();
    let child = line_of(&pid);
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(took < Duration::from_mins(1), "{took:?}");
    wait_for_the_end_of(&child);
    assert!(!says(&daemon));
    assert_eq!(daemon.terminate(), 0);
    // The next write finds a remote that works.
    hub.hook("pre-receive", "exit 0");
    let daemon = hub.serve(&[]);
    assert_eq!(write(&daemon, "M").join().unwrap().status, 303);
    Seen::Held(format!("followed after {followed:.1?}, the push ended after {took:.1?}"))
}

fn stopped_receiver() -> Seen {
    let hub = Hub::new();
    hub.hook("pre-receive", "kill -STOP $PPID\nsleep 1000");
    let daemon = hub.serve(&["--fetch-timeout", "1s"]);
    let began = Instant::now();
    let answer = write(&daemon, "N").join().unwrap();
    let took = began.elapsed();
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(took < Duration::from_secs(30), "{took:?}");
    Seen::Held(format!("503 after {took:.1?}"))
}

fn hanging_post_receive() -> Seen {
    let hub = Hub::new();
    let pid = hub.directory.path().join("pid");
    hub.hook("post-receive", &hang(&pid));
    let daemon = hub.serve(&["--fetch-timeout", "2s"]);
    let written = write(&daemon, "N");
    let child = line_of(&pid);
    let next = hub.commit("main", "groups/b.yaml", b"name: B\n");
    daemon.wait_until("the branch is followed while a hook hangs", |it| active(it) == next);
    let answer = written.join().unwrap();
    assert_eq!(answer.status, 303, "{}", answer.body);
    assert_eq!(active(&daemon), next);
    wait_for_the_end_of(&child);
    Seen::Held("303, and the later commit went on answering".to_owned())
}

fn grace_with_a_hook() -> Seen {
    let hub = Hub::new();
    let pid = hub.directory.path().join("pid");
    hub.hook("pre-receive", &hang(&pid));
    let daemon = hub.serve(&["--fetch-timeout", "60s", "--grace", "1s"]);
    let address = daemon.address.clone();
    let written = write(&Daemon::at(&address), "N");
    let child = line_of(&pid);
    let began = Instant::now();
    assert_eq!(daemon.terminate(), 0);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    wait_for_the_end_of(&child);
    // What the client saw does not matter, but it saw something.
    written.join().ok();
    Seen::Held(format!("exit status 0 after {took:.1?}"))
}

fn grace_with_silence() -> Seen {
    let mut seen = Vec::new();
    for scheme in ["git", "http"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, accepted) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            sender.send(()).unwrap();
            stream.read_to_end(&mut Vec::new()).ok();
        });
        let data = tempfile::tempdir().unwrap();
        let url = format!("{scheme}://127.0.0.1:{port}/x.git");
        let mut program = serve(&[
            "--repo",
            &url,
            "--allow-insecure-remotes",
            "--data-dir",
            data.path().to_str().unwrap(),
            "--fetch-timeout",
            "60s",
            "--grace",
            "1s",
        ]);
        let mut child = program.stderr(std::process::Stdio::null()).spawn().unwrap();
        accepted.recv_timeout(Duration::from_mins(1)).unwrap();
        let began = Instant::now();
        let id = child.id().to_string();
        assert!(
            std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success()
        );
        assert!(child.wait().unwrap().success());
        let took = began.elapsed();
        assert!(took < Duration::from_secs(30), "{scheme}: {took:?}");
        seen.push(format!("{scheme}: {took:.1?}"));
    }
    Seen::Held(seen.join(", "))
}

fn hooks_of_another_user() -> Seen {
    let hub = Hub::new();
    let ran = hub.directory.path().join("ran");
    hub.hook("pre-receive", &format!("touch '{}'", ran.display()));
    let give = |path: &Path| std::os::unix::fs::chown(path, Some(4711), Some(4711));
    for name in ["", "hooks", "config"] {
        if give(&hub.path().join(name)).is_err() {
            return Seen::Skipped("root, to give a repository away");
        }
    }
    // Settings of the machine that runs this must not decide.
    let home = tempfile::tempdir().unwrap();
    let launch = || {
        let mut command = hub.program(&["--writes", "commit"]);
        command.env("HOME", home.path());
        Daemon::launch(command)
    };
    let daemon = launch();
    let refused = write(&daemon, "N").join().unwrap();
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("belongs to the user 4711"), "{}", refused.body);
    assert!(!ran.exists(), "the hook ran");
    drop(daemon);
    let trusted = format!("[safe]\n\tdirectory = {}\n", hub.path().display());
    std::fs::write(home.path().join(".gitconfig"), trusted).unwrap();
    let daemon = launch();
    assert_eq!(write(&daemon, "N").join().unwrap().status, 303);
    assert!(ran.exists());
    Seen::Held("403 naming the owner; 303 once safe.directory lists it".to_owned())
}

fn environment_of_hooks() -> Seen {
    let hub = Hub::new();
    let seen = hub.directory.path().join("environment");
    hub.hook("pre-receive", &format!("env >'{}'", seen.display()));
    let (path, data) = (hub.path(), hub.data());
    let mut command = serve(&["--writes", "commit"]);
    command
        .env("CLADE_REPO", &path)
        .env("CLADE_DATA_DIR", &data)
        .env("FORGE_PASSWORD", "hunter2")
        .env("GIT_CONFIG_COUNT", "0")
        .env("LD_AUDIT_NOTE", "hunter2");
    let daemon = Daemon::launch(command);
    assert_eq!(write(&daemon, "N").join().unwrap().status, 303);
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(!seen.contains("hunter2") && !seen.contains("CLADE_"), "{seen}");
    assert!(seen.contains("PATH="), "{seen}");
    Seen::Held("neither the password nor any CLADE_ variable".to_owned())
}

fn sign(secret: &str, body: &str) -> String {
    use hmac::{Hmac, KeyInit as _, Mac as _};

    let mut mac: Hmac<sha2::Sha256> = Hmac::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let made = mac.finalize().into_bytes();
    made.iter().fold("sha256=".to_owned(), |hex, it| hex + &format!("{it:02x}"))
}

fn push_event(daemon: &Daemon, after: &str, delivery: &str) -> u16 {
    let body = format!(
        r#"{{"ref": "refs/heads/main", "before": "{after}", "after": "{after}", "n": "{delivery}"}}"#
    );
    let headers = format!(
        "X-Hub-Signature-256: {}\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: {delivery}\r\n",
        sign("secret", &body)
    );
    daemon.request_with("POST", "/webhook/github", &headers, &body).status
}

/// Returns how many fetches there were.
fn fetches(daemon: &Daemon) -> u64 {
    let metrics = daemon.get("/metrics").body;
    let counts = metrics.lines().filter(|it| it.starts_with("clade_source_fetches_total{"));
    counts.map(|it| it.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

fn webhook_flood() -> Seen {
    let hub = Hub::new();
    let secrets = hub.directory.path().join("secrets");
    std::fs::write(&secrets, "secret\n").unwrap();
    let secrets = secrets.to_str().unwrap();
    let daemon = hub.serve(&["--interval", "1h", "--webhook-secret-file", secrets]);
    // A quiet second.
    std::thread::sleep(Duration::from_millis(1100));
    let next = hub.commit("main", "groups/b.yaml", b"name: B\n");
    let began = Instant::now();
    push_event(&daemon, &next, "first");
    daemon.wait_until("the first webhook is heeded", |it| active(it) == next);
    let first = began.elapsed();
    assert!(first < Duration::from_secs(20), "{first:?}");
    let before = fetches(&daemon);
    let (began, until) = (Instant::now(), Instant::now() + Duration::from_secs(3));
    let sent: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let daemon = Daemon::at(&daemon.address);
                scope.spawn(move || {
                    let mut sent = 0;
                    while Instant::now() < until {
                        let after = format!("{:040x}", thread * 1_000_000 + sent + 1);
                        assert!(push_event(&daemon, &after, &format!("{thread}-{sent}")) < 300);
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    let count = fetches(&daemon) - before;
    // The last answers may be late.
    let (seconds, most) = (began.elapsed().as_secs_f32(), began.elapsed().as_secs() + 2);
    assert!((1..=most).contains(&count), "{count} fetches in {seconds:.1} s for {sent} webhooks");
    Seen::Held(format!(
        "{count} fetches in {seconds:.0} s for {sent} webhooks; the first after {first:.0?}"
    ))
}

/// Starts the daemon with so many bytes of address space.
fn serve_within(bytes: u64, url: &str, data: &Path) -> Daemon {
    let data = data.to_str().unwrap();
    let program = serve(&["--allow-insecure-remotes", "--repo", url, "--data-dir", data]);
    Daemon::launch(within(bytes, &program))
}

/// git's own daemon; it is stopped when this is dropped.
struct GitDaemon(std::process::Child, u16);

impl GitDaemon {
    fn start(directory: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = std::process::Command::new("git")
            .args(["daemon", "--listen=127.0.0.1", "--export-all", "--reuseaddr"])
            .arg(format!("--port={port}"))
            .arg(format!("--base-path={}", directory.display()))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_mins(1);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "git daemon does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self(child, port)
    }
}

impl Drop for GitDaemon {
    fn drop(&mut self) {
        // `git` runs `git-daemon` as a child.
        let group = format!("-{}", self.0.id());
        std::process::Command::new("kill").args(["-KILL", "--", &group]).status().ok();
        self.0.wait().ok();
    }
}

fn huge_blob() -> Seen {
    let hub = Hub::new();
    let script = "head -c 268435456 /dev/zero | git hash-object -w --stdin";
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .env("GIT_DIR", hub.path())
        .output()
        .unwrap();
    let blob = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    hub.commit_blob("big", "groups/big.yaml", blob);
    let small = hub.commit("small", "groups/small.yaml", b"name: Small\n");
    let git = GitDaemon::start(hub.directory.path());
    let path = hub.path();
    let path = path.to_str().unwrap();
    for (index, url) in
        [path.to_owned(), format!("file://{path}"), format!("git://127.0.0.1:{}/hub.git", git.1)]
            .into_iter()
            .enumerate()
    {
        let data = hub.directory.path().join(format!("data-{index}"));
        let daemon = serve_within(2 << 30, &url, &data);
        let skipped = "RefsSkipped LimitExceeded".to_owned();
        daemon.wait_until("the ref is skipped", |it| conditions(it).contains(&skipped));
        let next = hub.commit("main", "groups/b.yaml", format!("name: B{index}\n").as_bytes());
        daemon.wait_until("main is followed", |it| active(it) == next);
        let answer = daemon.get("/v1/groups?commit=small");
        assert_eq!(answer.status, 200, "{url}: {}", answer.body);
        assert_eq!(answer.header("X-Clade-Commit"), Some(small.as_str()));
    }
    Seen::Held("main and another branch are followed; the ref is named".to_owned())
}

fn odd_refs() -> Seen {
    use std::io::Write as _;

    let hub = Hub::new();
    let good = hub.commit("zz-good", "groups/good.yaml", b"name: Good\n");
    let blob = hub.git.blob(b"no commit").unwrap();
    hub.git.reference("refs/tags/blob", blob, true, "x").unwrap();
    let tree = hub.git.revparse_single("main^{tree}").unwrap().id();
    hub.git.reference("refs/tags/tree", tree, true, "x").unwrap();
    let long = vec!["x".repeat(200); 20].join("/");
    let mut packed = std::fs::File::options()
        .create(true)
        .append(true)
        .open(hub.path().join("packed-refs"))
        .unwrap();
    writeln!(packed, "{good} refs/heads/{}", long.get(..3988).unwrap()).unwrap();
    let git = GitDaemon::start(hub.directory.path());
    let path = hub.path();
    for (index, url) in
        [path.to_str().unwrap().to_owned(), format!("git://127.0.0.1:{}/hub.git", git.1)]
            .into_iter()
            .enumerate()
    {
        let data = hub.directory.path().join(format!("data-{index}"));
        let daemon = serve_within(4 << 30, &url, &data);
        let skipped = "RefsSkipped UnusableRef".to_owned();
        daemon.wait_until("the refs are skipped", |it| conditions(it).contains(&skipped));
        let next = hub.commit("main", "groups/b.yaml", format!("name: B{index}\n").as_bytes());
        daemon.wait_until("main is followed", |it| active(it) == next);
        let answer = daemon.get("/v1/groups?commit=zz-good");
        assert_eq!(answer.status, 200, "{url}: {}", answer.body);
    }
    Seen::Held("the condition names them; main and another branch are followed".to_owned())
}

fn refs_not_utf8() -> Seen {
    use std::io::Write as _;

    let hub = Hub::new();
    let good = hub.commit("zz-good", "groups/good.yaml", b"name: Good\n");
    let packed = hub.path().join("packed-refs");
    let mut packed = std::fs::File::options().create(true).append(true).open(packed).unwrap();
    packed.write_all(&[good.as_bytes(), b" refs/heads/zz-f\xfcr\n"].concat()).unwrap();
    let git = GitDaemon::start(hub.directory.path());
    let path = hub.path();
    for (index, url) in
        [path.to_str().unwrap().to_owned(), format!("git://127.0.0.1:{}/hub.git", git.1)]
            .into_iter()
            .enumerate()
    {
        let data = hub.directory.path().join(format!("data-{index}"));
        let daemon = serve_within(4 << 30, &url, &data);
        let named = "`refs/heads/zz-f\u{fffd}r` (its name is not UTF-8)";
        daemon
            .wait_until("the ref is named", |it| it.get("/controller/status").body.contains(named));
        let next = hub.commit("main", "groups/b.yaml", format!("name: B{index}\n").as_bytes());
        daemon.wait_until("main is followed", |it| active(it) == next);
        let log = daemon.log_lines();
        assert!(!log.iter().any(|it| it.contains("panic")), "{url}: {log:?}");
    }
    Seen::Held("the condition names it, no panic is logged; main is followed".to_owned())
}
