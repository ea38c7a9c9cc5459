//! Commits that are made to exhaust or to deceive, or that are empty.

mod heads;

use std::process::Command;
use std::time::{Duration, Instant};

use git2::{Oid, Signature, Time};

use crate::program::{Daemon, Done, GitRepository, clade, serve, started_by};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "commits::deep-names",
        promise: "paths are counted before they are built; the live commit goes on answering",
        injection: "120 directories within each other with names of 4,000 bytes, and 20,000 files",
        speed: Speed::Fast,
        run: deep_names,
    },
    Fault {
        name: "commits::one-blob-many-names",
        promise: "content counts under each of its names, before it is read",
        injection: "a file of 1 MB under 3,000 names",
        speed: Speed::Fast,
        run: one_blob_many_names,
    },
    Fault {
        name: "commits::many-values",
        promise: "YAML values of all files are counted while they are read",
        injection: "16 files with 400,000 values each",
        speed: Speed::Slow,
        run: many_values,
    },
    Fault {
        name: "commits::aliases-of-text",
        promise: "the text that aliases add is bounded",
        injection: "an anchor of 900 kB with 20,000 aliases",
        speed: Speed::Fast,
        run: aliases_of_text,
    },
    Fault {
        name: "commits::small-steps",
        promise: "a commit built from another counts as a whole",
        injection: "commits that add two files each, until the commit is too large",
        speed: Speed::Fast,
        run: small_steps,
    },
    Fault {
        name: "commits::many-findings",
        promise: "findings are bounded, and a last line says how many more there are",
        injection: "a file with 9,000 unknown keys under 50 names",
        speed: Speed::Slow,
        run: many_findings,
    },
    Fault {
        name: "commits::empty-estate",
        promise: "a commit without node groups never answers",
        injection: "the directory of groups is renamed",
        speed: Speed::Fast,
        run: empty_estate,
    },
    Fault {
        name: "commits::missing-path",
        promise: "a commit without the directory of `--path` is `no-groups`",
        injection: "the directory of `--path` is renamed",
        speed: Speed::Fast,
        run: missing_path,
    },
    Fault {
        name: "commits::file-names",
        promise: "a file name is never a line of its own, a terminal escape or a pipeline command",
        injection: "file names with line breaks, escapes and marks of direction",
        speed: Speed::Fast,
        run: file_names,
    },
    Fault {
        name: "commits::long-group-name",
        promise: "long text of a repository is truncated in logs and status",
        injection: "a group name of 900 kB",
        speed: Speed::Fast,
        run: long_group_name,
    },
    Fault {
        name: "commits::settings-at-start",
        promise: "an unusable setting is reported in one sentence, and the daemon does not start",
        injection: "a path without a repository, a `--path` with a typo, an unreadable key file",
        speed: Speed::Fast,
        run: settings_at_start,
    },
    Fault {
        name: "commits::unreviewed-heads",
        promise: "a commit beside the branch gets a tenth of the budget beyond the live commit's",
        injection: "a head of a pull request with 200,000 values, read and compared",
        speed: Speed::Fast,
        run: unreviewed_heads,
    },
    Fault {
        name: "commits::worst-heads",
        promise: "the largest head that is built fits into the memory of the daemon, before and after a restart",
        injection: "heads beside the branch at a tenth of each limit that takes memory, and a crash while one is built",
        speed: Speed::Slow,
        run: worst_heads,
    },
    Fault {
        name: "commits::head-that-kills-its-checker",
        promise: "the process that checks a head dies alone: the forge gets an error with the reason, once; the daemon and other heads go on, also after a crash",
        injection: "a head of a pull request with 145,000 values at `--head-memory 16777216`, between good and bad ones, and SIGKILL",
        speed: Speed::Fast,
        run: heads::kills_its_checker,
    },
    Fault {
        name: "commits::head-check-that-hangs",
        promise: "a check is killed at its deadline and with the daemon, and knows no secret",
        injection: "SIGSTOP to the process that checks a head; SIGTERM to the daemon; a password in `CLADE_REPO`",
        speed: Speed::Slow,
        run: heads::hangs,
    },
    Fault {
        name: "commits::head-check-on-a-paused-machine",
        promise: "the time for which a machine or a container is paused does not count for the deadline of a check",
        injection: "SIGSTOP to the daemon and the process that checks a head, for longer than `--head-timeout`",
        speed: Speed::Slow,
        run: heads::is_paused,
    },
    Fault {
        name: "commits::head-that-ends-the-daemon",
        promise: "after three crashes during the check of a head the daemon gives it up; the next start answers",
        injection: "SIGKILL to the daemon during a check, and a journal with two more such checks",
        speed: Speed::Fast,
        run: heads::ends_the_daemon,
    },
    Fault {
        name: "commits::old-commits",
        promise: "old commits are built one at a time, cached within a budget, and read by few threads",
        injection: "80 old commits of 1,000 groups, 40 of them asked for at once",
        speed: Speed::Slow,
        run: old_commits,
    },
    Fault {
        name: "commits::comparisons-at-once",
        promise: "comparisons run one at a time over bounded batches of nodes; more than a few get 503",
        injection: "60 comparisons of two commits at once, over a node with 240,000 values of facts",
        speed: Speed::Slow,
        run: comparisons_at_once,
    },
    Fault {
        name: "commits::inherited-list",
        promise: "the list of groups with inherited values is streamed",
        injection: "1,500 groups within each other, each with a value of its own",
        speed: Speed::Slow,
        run: inherited_list,
    },
];

/// The address space of a daemon under test: 512 MiB, and what code and stacks reserve.
const SPACE: u64 = 640 << 20;

/// Limits the address space of a prepared program, in bytes.
pub(crate) fn within(space: u64, program: &Command) -> Command {
    let mut launcher = Command::new("prlimit");
    // glibc reserves 64 MiB of address space for each arena and uses little of it; with few arenas the
    // limit is on what is used.
    launcher.arg(format!("--as={space}")).env("MALLOC_ARENA_MAX", "2");
    started_by(launcher, program)
}

/// Runs a prepared program with a limit on its address space.
fn run_within(space: u64, program: &Command) -> Done {
    within(space, program).output().unwrap().into()
}

/// Starts a daemon with a limit on its address space.
fn start(arguments: &[&str]) -> Daemon {
    Daemon::launch(within(SPACE, &serve(arguments)))
}

/// Makes a commit of a tree on top of the branch, without a working tree.
fn commit_tree(repository: &GitRepository, tree: Oid) -> String {
    let git = repository.git();
    let author = Signature::new("Eve", "eve@example.com", &Time::new(1_760_000_100, 0)).unwrap();
    let parent = git.head().unwrap().peel_to_commit().unwrap();
    let tree = git.find_tree(tree).unwrap();
    git.commit(Some("HEAD"), &author, &author, "more", &tree, &[&parent]).unwrap().to_string()
}

/// Makes a tree of entries: names with blobs or trees.
fn tree(repository: &GitRepository, entries: &[(&[u8], Oid, i32)]) -> Oid {
    let mut builder = repository.git().treebuilder(None).unwrap();
    for (name, id, mode) in entries {
        builder.insert(*name, *id, *mode).unwrap();
    }
    builder.write().unwrap()
}

const FILE: i32 = 0o100_644;
const DIRECTORY: i32 = 0o040_000;

fn blob(repository: &GitRepository, text: &str) -> Oid {
    repository.git().blob(text.as_bytes()).unwrap()
}

/// A repository whose first commit answers.
fn live() -> (GitRepository, String) {
    let repository = GitRepository::new();
    let commit = repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    (repository, commit)
}

/// Puts a tree below `groups/` of the branch.
fn push(repository: &GitRepository, groups: Oid) -> String {
    commit_tree(repository, tree(repository, &[(b"groups", groups, DIRECTORY)]))
}

/// Returns the kind and message of the first finding of a commit that was rejected.
fn rejected(daemon: &Daemon, commit: &str, live: &str) -> (String, String) {
    let status = || daemon.get("/controller/status").json();
    daemon.wait_until("the commit is rejected", |_| status()["last_failed"]["commit"] == commit);
    let status = status();
    assert_eq!(status["active"]["commit"], live, "the live commit goes on answering");
    assert_eq!(daemon.get("/v1/groups").status, 200);
    let first = &status["last_failed"]["diagnostics"][0];
    let text = |key: &str| first[key].as_str().unwrap_or_default().to_owned();
    (text("kind"), text("message"))
}

/// Rejects a commit in a daemon with little memory, twice: a restart must not fail over it.
fn rejected_twice(repository: &GitRepository, commit: &str, live: &str) -> String {
    let path = repository.text_path();
    let daemon = start(&["--repo", &path]);
    // Without a last good commit nothing answers, so a good commit comes first.
    drop(daemon);
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let back = |id: &str| {
        repository.git().reference("refs/heads/main", id.parse().unwrap(), true, "test").unwrap();
    };
    let restart = || start(&["--repo", &path, "--data-dir", data]);
    back(live);
    let daemon = restart();
    daemon.wait_until("the first commit answers", |it| it.get("/v1/groups").status == 200);
    back(commit);
    let first = rejected(&daemon, commit, live);
    daemon.kill();
    let daemon = restart();
    assert_eq!(rejected(&daemon, commit, live), first);
    let (kind, message) = first;
    assert_eq!(kind, "commit-too-large", "{message}");
    // The commands that read the repository say the same.
    let done = run_within(SPACE, &clade(&["validate", &path, "--rev", commit]));
    assert_eq!(done.status, 1, "{}", done.stderr);
    assert!(done.stdout.contains("[commit-too-large]"), "{}", done.stdout);
    message
}

fn deep_names() -> Seen {
    let (repository, live) = live();
    let group = blob(&repository, "name: B\n");
    let names: Vec<String> = (0..20_000).map(|it| format!("{it}.yaml")).collect();
    let files: Vec<(&[u8], Oid, i32)> =
        names.iter().map(|it| (it.as_bytes(), group, FILE)).collect();
    let long = "d".repeat(4_000);
    let mut top = tree(&repository, &files);
    for _ in 0..120 {
        top = tree(&repository, &[(long.as_bytes(), top, DIRECTORY)]);
    }
    let commit = push(&repository, top);
    Seen::Held(rejected_twice(&repository, &commit, &live))
}

fn one_blob_many_names() -> Seen {
    let (repository, live) = live();
    let text = format!("name: B\ndescription: {}\n", "x".repeat(1_000_000));
    let file = blob(&repository, &text);
    let names: Vec<String> = (0..3_000).map(|it| format!("{it}.yaml")).collect();
    let files: Vec<(&[u8], Oid, i32)> =
        names.iter().map(|it| (it.as_bytes(), file, FILE)).collect();
    let commit = push(&repository, tree(&repository, &files));
    Seen::Held(rejected_twice(&repository, &commit, &live))
}

fn many_values() -> Seen {
    let (repository, live) = live();
    let names: Vec<String> = (0..16).map(|it| format!("{it}.yaml")).collect();
    let values = format!("[{}0]", "1,".repeat(400_000));
    let file = blob(&repository, &format!("name: B\nvariables: {{a: {values}}}\n"));
    let files: Vec<(&[u8], Oid, i32)> =
        names.iter().map(|it| (it.as_bytes(), file, FILE)).collect();
    let commit = push(&repository, tree(&repository, &files));
    Seen::Held(rejected_twice(&repository, &commit, &live))
}

fn aliases_of_text() -> Seen {
    let (repository, live) = live();
    let text = format!(
        "name: B\nvariables:\n  a: &a {}\n  b: [{}0]\n",
        "x".repeat(900_000),
        "*a ,".repeat(20_000)
    );
    let file = blob(&repository, &text);
    let commit = push(&repository, tree(&repository, &[(b"a.yaml", file, FILE)]));
    let daemon = serve_after(&repository, &live, &commit);
    let (kind, message) = rejected(&daemon, &commit, &live);
    assert_eq!(kind, "malformed-yaml");
    Seen::Held(message)
}

/// Has a commit answer, and then puts the branch at another.
fn serve_after(repository: &GitRepository, live: &str, commit: &str) -> Daemon {
    let git = repository.git();
    git.reference("refs/heads/main", live.parse().unwrap(), true, "test").unwrap();
    let daemon = start(&["--repo", &repository.text_path()]);
    daemon.wait_until("the first commit answers", |it| it.get("/v1/groups").status == 200);
    git.reference("refs/heads/main", commit.parse().unwrap(), true, "test").unwrap();
    daemon
}

fn small_steps() -> Seen {
    let repository = GitRepository::new();
    let text = |size: usize| format!("name: A\nvariables: {{a: [{}0]}}\n", "1,".repeat(size));
    let live = repository.commit("first", &[("groups/a.yaml", &text(10))]);
    let path = repository.text_path();
    let daemon = start(&["--repo", &path, "--commit-budget", "yaml-nodes=100"]);
    let mut before = live;
    for size in [30, 50, 70] {
        let next = repository.commit("more", &[("groups/a.yaml", &text(size))]);
        daemon.wait_until("it answers", |it| {
            it.get("/controller/status").json()["active"]["commit"] == next
        });
        before = next;
    }
    let last = repository.commit("too much", &[("groups/a.yaml", &text(120))]);
    let (kind, message) = rejected(&daemon, &last, &before);
    assert_eq!(kind, "commit-too-large");
    assert!(message.contains("more than 100 YAML values"), "{message}");
    Seen::Held(message)
}

fn many_findings() -> Seen {
    let (repository, _) = live();
    let keys: Vec<String> = (0..9_000).map(|it| format!("key{it}: 1")).collect();
    let keys = keys.join("\n");
    let file = blob(&repository, &keys);
    let names: Vec<String> = (0..50).map(|it| format!("{it}.yaml")).collect();
    let files: Vec<(&[u8], Oid, i32)> =
        names.iter().map(|it| (it.as_bytes(), file, FILE)).collect();
    let commit = push(&repository, tree(&repository, &files));
    let path = repository.text_path();
    let began = Instant::now();
    let validate = ["validate", &path, "--rev", &commit];
    let done = run_within(SPACE, &clade(&validate));
    assert_eq!(done.status, 1, "{}", done.stderr);
    let last: String = done.stdout.chars().rev().take(2_000).collect();
    let last: String = last.chars().rev().collect();
    assert!(last.contains("there are more than 5000 findings"), "{last}");
    assert!(done.stdout.len() < 8 << 20, "{} bytes", done.stdout.len());
    Seen::Held(format!("{} bytes in {:.1} s", done.stdout.len(), began.elapsed().as_secs_f32()))
}

fn empty_estate() -> Seen {
    let (repository, live) = live();
    let daemon = start(&["--repo", &repository.text_path()]);
    let group = blob(&repository, "name: A\n");
    let groups = tree(&repository, &[(b"a.yaml", group, FILE)]);
    let moved = tree(&repository, &[(b"group", groups, DIRECTORY)]);
    let commit = commit_tree(&repository, moved);
    let (kind, message) = rejected(&daemon, &commit, &live);
    assert_eq!(kind, "no-groups", "{message}");
    let done = run_within(SPACE, &clade(&["validate", &repository.text_path(), "--rev", &commit]));
    assert_eq!(done.status, 1, "{}", done.stdout);
    // With `allow_empty` it is accepted.
    let allowed = blob(&repository, "allow_empty: true\n");
    let entries: [(&[u8], Oid, i32); 2] =
        [(b"clade.yaml", allowed, FILE), (b"group", groups, DIRECTORY)];
    let meant = commit_tree(&repository, tree(&repository, &entries));
    daemon.wait_until("the empty estate answers", |it| {
        it.get("/controller/status").json()["active"]["commit"] == meant
    });
    Seen::Held(message)
}

fn missing_path() -> Seen {
    let repository = GitRepository::new();
    let live = repository.commit("first", &[("site/groups/a.yaml", "name: A\n")]);
    let path = repository.text_path();
    let daemon = start(&["--repo", &path, "--path", "site"]);
    let group = blob(&repository, "name: A\n");
    let groups = tree(&repository, &[(b"a.yaml", group, FILE)]);
    let site = tree(&repository, &[(b"groups", groups, DIRECTORY)]);
    let commit = commit_tree(&repository, tree(&repository, &[(b"sites", site, DIRECTORY)]));
    let (kind, message) = rejected(&daemon, &commit, &live);
    assert_eq!(
        (kind.as_str(), message.as_str()),
        ("no-groups", "the commit has no directory `site`")
    );
    Seen::Held(message)
}

fn file_names() -> Seen {
    let (repository, live) = live();
    let broken = blob(&repository, "name: [\nother: 1\n");
    let name = "a\n::error file=x::owned\n\u{1b}[31m\u{202e}\u{9b}##[add-mask]x.yaml";
    let commit = push(&repository, tree(&repository, &[(name.as_bytes(), broken, FILE)]));
    let path = repository.text_path();
    for format in ["human", "github", "gitlab", "sarif", "junit"] {
        let validate = ["validate", &path, "--rev", &commit, "--format", format];
        let done = run_within(SPACE, &clade(&validate));
        assert_eq!(done.status, 1, "{format}: {}", done.stderr);
        assert!(done.stdout.contains("malformed-yaml"), "{format}: {}", done.stdout);
        check_lines(format, &done.stdout);
    }
    for arguments in [
        vec!["classify", "n", &path, "--rev", &commit],
        vec!["diff", &commit, "--repo", &path, "--facts", "/nonexistent"],
    ] {
        let done = run_within(SPACE, &clade(&arguments));
        assert_eq!(done.status, 2);
        check_lines("stderr", &done.stderr);
    }
    let log = log_of(&repository, &live, &commit);
    assert!(log.contains("malformed-yaml"), "{log}");
    check_lines("log", &log);
    Seen::Held("5 formats, errors and the log".to_owned())
}

fn check_lines(what: &str, text: &str) {
    for hidden in ['\u{1b}', '\u{202e}', '\u{9b}'] {
        assert!(!text.contains(hidden), "{what}: {hidden:?}: {text:?}");
    }
    assert!(!text.contains("##["), "{what}: {text}");
    let is_command = |line: &&str| line.trim_start().starts_with("::") && line.contains("owned");
    // Output for GitHub begins with a command of ours.
    let told = |line: &str| what == "github" && line.starts_with("::error file=groups/");
    let command = text.lines().find(|it| is_command(it) && !told(it));
    assert_eq!(command, None, "{what}: {text}");
}

/// Returns what a daemon logs until it has rejected a commit.
fn log_of(repository: &GitRepository, live: &str, commit: &str) -> String {
    let log = tempfile::NamedTempFile::new().unwrap();
    let git = repository.git();
    git.reference("refs/heads/main", live.parse().unwrap(), true, "test").unwrap();
    let path = repository.text_path();
    let program = serve(&["--repo", &path]);
    let mut child = within(SPACE, &program).stderr(log.reopen().unwrap()).spawn().unwrap();
    let read = || String::from_utf8_lossy(&std::fs::read(log.path()).unwrap()).into_owned();
    let wait = |piece: &str| {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !read().contains(piece) {
            assert!(Instant::now() < deadline, "waited in vain for {piece}: {}", read());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait("listening on");
    git.reference("refs/heads/main", commit.parse().unwrap(), true, "test").unwrap();
    wait("the commit is rejected");
    child.kill().unwrap();
    child.wait().unwrap();
    read()
}

fn long_group_name() -> Seen {
    let (repository, live) = live();
    let text = format!("name: {}\nparent: Nowhere\nclases: {{}}\n", "x".repeat(900_000));
    let file = blob(&repository, &text);
    let commit = push(&repository, tree(&repository, &[(b"a.yaml", file, FILE)]));
    let log = log_of(&repository, &live, &commit);
    assert!(log.len() < 20_000, "{} bytes are logged", log.len());
    let daemon = serve_after(&repository, &live, &commit);
    let (kind, message) = rejected(&daemon, &commit, &live);
    assert!(message.len() < 4_100, "{kind}: {} bytes", message.len());
    let status = daemon.get("/controller/status").body.len();
    assert!(status < 40_000, "{status} bytes of status");
    Seen::Held(format!("{} bytes of log, {status} of status", log.len()))
}

fn settings_at_start() -> Seen {
    let (repository, _) = live();
    let path = repository.text_path();
    let directory = tempfile::tempdir().unwrap();
    let (empty, data) = (directory.path().join("empty"), directory.path().join("data"));
    std::fs::create_dir(&empty).unwrap();
    let (empty, data) = (empty.to_str().unwrap(), data.to_str().unwrap());
    for (arguments, piece) in [
        (vec!["--repo", empty], "must be a git repository: correct the path"),
        (vec!["--repo", empty, "--data-dir", data], "must be a git repository: correct the path"),
        (vec!["--repo", &path, "--path", "grups"], "has no such directory: correct `--path`"),
        (
            vec!["--repo", &path, "--path", "grups", "--data-dir", data],
            "has no such directory: correct `--path`",
        ),
        (
            vec!["--repo", &path, "--git-token-file", "/nonexistent"],
            "`--git-token-file /nonexistent` cannot be read",
        ),
    ] {
        let done = run_within(SPACE, &serve(&arguments));
        let last = done.stderr.lines().last().unwrap_or_default();
        assert_eq!(done.status, 2, "{}", done.stderr);
        assert!(last.starts_with("error: ") && last.contains(piece), "{}", done.stderr);
    }
    Seen::Held("exit 2 with what to do, five times".to_owned())
}

fn unreviewed_heads() -> Seen {
    let (repository, live) = live();
    let text = format!("name: B\nvariables: {{a: [{}0]}}\n", "1,".repeat(200_000));
    let file = blob(&repository, &text);
    let head = push(&repository, tree(&repository, &[(b"b.yaml", file, FILE)]));
    let git = repository.git();
    git.reference("refs/heads/main", live.parse().unwrap(), true, "test").unwrap();
    git.reference("refs/pull/1/head", head.parse().unwrap(), true, "test").unwrap();
    let daemon = start(&["--repo", &repository.text_path()]);
    for route in [format!("/v1/groups?commit={head}"), format!("/controller/diff/{live}/{head}")] {
        let answer = daemon.get(&route);
        assert_eq!(answer.status, 422, "{}", answer.body);
        assert_eq!(answer.json()["details"][0]["kind"], "commit-too-large");
    }
    // A commit on the branch has been reviewed.
    git.reference("refs/heads/main", head.parse().unwrap(), true, "test").unwrap();
    daemon.wait_until("it answers", |it| {
        it.get("/controller/status").json()["active"]["commit"] == head
    });
    Seen::Held("422 beside the branch, live on it".to_owned())
}

fn worst_heads() -> Seen {
    let (repository, live) = live();
    let list = |count: usize, of: &dyn Fn(usize) -> String| {
        (0..count).map(of).collect::<Vec<_>>().join(", ")
    };
    let values = list(145_000, &|_| "1".to_owned());
    let terms = list(18_000, &|it| format!("['~', name, 'n{it}[a-z]+x']"));
    let groups: Vec<String> = (0..1_900).map(|it| format!("name: G{it}\n")).collect();
    let texts = [
        format!("name: B\nvariables: {{a: [{values}]}}\n"),
        format!("name: B\nrule: [or, {terms}]\n"),
        format!("name: B\ndescription: {}\n", "x".repeat(1_000_000)),
        groups.join("---\n"),
    ];
    let heads: Vec<String> = texts
        .iter()
        .map(|text| {
            let file = blob(&repository, text);
            let head = push(&repository, tree(&repository, &[(b"b.yaml", file, FILE)]));
            let live = live.parse().unwrap();
            repository.git().reference("refs/heads/main", live, true, "test").unwrap();
            head
        })
        .collect();
    let path = repository.text_path();
    let read_all = |daemon: &Daemon| {
        for head in &heads {
            let answer = daemon.get(&format!("/v1/groups?commit={head}&limit=1"));
            assert!(matches!(answer.status, 200 | 422), "{head}: {}", answer.body);
            let answer = daemon.get(&format!("/controller/diff/{live}/{head}"));
            assert!(matches!(answer.status, 200 | 422), "{head}: {}", answer.body);
        }
        assert_eq!(daemon.get("/controller/status").json()["active"]["commit"], live);
    };
    let daemon = start(&["--repo", &path]);
    read_all(&daemon);
    daemon.kill();
    let daemon = start(&["--repo", &path]);
    let (address, first) = (daemon.address.clone(), heads[0].clone());
    let reader = std::thread::spawn(move || {
        // The daemon is killed meanwhile, so there may be no answer.
        let route = format!("/v1/groups?commit={first}&limit=1");
        drop(std::panic::catch_unwind(|| Daemon::at(&address).get(&route)));
    });
    std::thread::sleep(Duration::from_millis(100));
    daemon.kill();
    drop(reader.join());
    read_all(&start(&["--repo", &path]));
    Seen::Held(format!(
        "{} heads read and compared twice within 640 MiB of address space",
        heads.len()
    ))
}

fn old_commits() -> Seen {
    let repository = GitRepository::new();
    let group = |number: usize, value: usize| {
        format!("name: G{number}\nvariables: {{v: {value}, w: [1, 2, 3]}}\n")
    };
    let names: Vec<String> = (0..1_000).map(|it| format!("groups/{it}.yaml")).collect();
    let texts: Vec<String> = (0..1_000).map(|it| group(it, 0)).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let mut commits = vec![repository.commit("first", &files)];
    for (step, name) in names.iter().enumerate().take(80) {
        let text = group(step, step + 1);
        commits.push(repository.commit("more", &[(name.as_str(), text.as_str())]));
    }
    let path = repository.text_path();
    let daemon = start(&["--repo", &path, "--snapshot-cache", "1000000"]);
    for commit in commits.iter().take(40) {
        assert_eq!(daemon.get(&format!("/v1/groups?commit={commit}&limit=1")).status, 200);
    }
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = commits
            .iter()
            .skip(40)
            .take(40)
            .map(|commit| {
                let address = daemon.address.clone();
                let route = format!("/v1/groups?commit={commit}&limit=1");
                scope.spawn(move || Daemon::at(&address).get(&route).status)
            })
            .collect();
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|it| matches!(it, 200 | 503)), "{statuses:?}");
    let kept = daemon.get("/controller/commits").json().as_array().unwrap().len();
    assert!(kept < 12, "{kept} commits are kept");
    let answered = statuses.iter().filter(|it| **it == 200).count();
    Seen::Held(format!("{answered} of 40 answered at once, {kept} commits kept"))
}

fn comparisons_at_once() -> Seen {
    let repository = GitRepository::new();
    let mut commits = Vec::new();
    for value in 0..6 {
        let text = format!("name: A\nrule: [\"~\", \"name\", \".*\"]\nvariables: {{v: {value}}}\n");
        commits.push(repository.commit("one", &[("groups/a.yaml", text.as_str())]));
    }
    let daemon = start(&["--repo", &repository.text_path()]);
    let values = vec![r#"{"":0}"#; 119_000].join(",");
    let body = format!(r#"{{"fact":{{"a":[{values}]}}}}"#);
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/n", &body).status, 200);
    let ask = |base: &str, head: &str| {
        Daemon::at(&daemon.address).get(&format!("/controller/diff/{base}/{head}")).status
    };
    assert_eq!(ask(&commits[0], &commits[5]), 200);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..60)
            .map(|it| {
                let (base, head) = (&commits[it % 6], &commits[(it / 6) % 6]);
                scope.spawn(move || ask(base, head))
            })
            .collect();
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|it| matches!(it, 200 | 503)), "{statuses:?}");
    let answered = statuses.iter().filter(|it| **it == 200).count();
    assert!(answered > 0, "{statuses:?}");
    assert_eq!(daemon.get("/v1/classified/nodes/n").status, 200);
    Seen::Held(format!("{answered} of 60 answered, the others 503"))
}

fn inherited_list() -> Seen {
    let repository = GitRepository::new();
    let groups: Vec<String> = (0..1_500)
        .map(|it| {
            let parent = if it == 0 { "All Nodes".to_owned() } else { format!("G{}", it - 1) };
            format!("name: G{it}\nparent: {parent}\nvariables: {{v{it}: {}}}\n", "x".repeat(100))
        })
        .collect();
    repository.commit("first", &[("groups/a.yaml", &groups.join("---\n"))]);
    let daemon = start(&["--repo", &repository.text_path()]);
    let answer = daemon.get("/v1/groups?inherited=true");
    assert_eq!(answer.status, 200);
    assert!(answer.body.len() > 100_000_000, "{} bytes", answer.body.len());
    Seen::Held(format!("{} MB from a daemon of 640 MiB of address space", answer.body.len() >> 20))
}
