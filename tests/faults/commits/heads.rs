//! Heads of pull requests that end the process that checks them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Seen;
use crate::follow::{live, wait_for};
use crate::forge::{Stub, World};
use crate::program::{Daemon, serve};

const HEADS: [&str; 2] = ["--fetch-refspec", "refs/pull/*/head:refs/pull/*/head"];

const VALIDATE: &str = "clade/validate";

/// Returns a group with so many values, as the text of a file.
fn values(count: usize) -> String {
    format!("name: B\nvariables: {{a: [{}0]}}\n", "1,".repeat(count))
}

/// Returns the events of the journal about a commit.
fn events(world: &World, commit: &str) -> Vec<String> {
    let journal = std::fs::read_to_string(world.data.path().join("data/journal")).unwrap();
    let records = journal.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
    records
        .filter(|it| it["commit"] == commit)
        .map(|it| it["event"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Returns the value of a counter.
fn checks(daemon: &Daemon, result: &str) -> u64 {
    let name = format!("clade_head_checks_total{{result=\"{result}\"}} ");
    let metrics = daemon.get("/metrics").body;
    metrics.lines().find_map(|it| it.strip_prefix(&name)?.parse().ok()).unwrap_or_default()
}

pub(super) fn kills_its_checker() -> Seen {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let stub = Stub::start(Vec::new());
    // A head may have a tenth of the values.
    let limits = ["--head-memory", "16777216", "--commit-budget", "yaml-nodes=1500000"];
    let arguments = [&HEADS[..], &limits].concat();
    let daemon = world.start(&stub, "github", &arguments);
    wait_for(&daemon, &first);
    let small = world.propose(1, &[("groups/b.yaml", "name: B\n")]);
    let large = world.propose(2, &[("groups/b.yaml", &values(145_000))]);
    let wrong = world.propose(3, &[("groups/b.yaml", "name: B\nrule: [or\n")]);
    daemon.request("POST", "/controller/reconcile", "");
    let (state, said) = stub.status(&large, VALIDATE);
    assert_eq!(state, "error", "{said}");
    let reason = "could not be checked: the check aborted; it may take 16 MiB of memory: memory allocation of ";
    assert!(said.starts_with(reason), "{said}");
    assert_eq!(stub.status(&small, VALIDATE), ("success".to_owned(), "valid, 3 groups".to_owned()));
    assert_eq!(stub.status(&wrong, VALIDATE).0, "failure");
    assert_eq!(live(&daemon), Some(first.clone()));
    assert_eq!(
        ["valid", "invalid", "failed"].map(|it| checks(&daemon, it)),
        [1, 1, 1],
        "one check each"
    );
    let posted = |commit: &str| stub.calls().iter().filter(|it| it.path.contains(commit)).count();
    // What is said and not yet noted when the daemon is killed is said again.
    daemon.wait_until("all are noted", |_| {
        [&small, &large, &wrong]
            .iter()
            .all(|it| events(&world, it).last().is_some_and(|it| it == "reported"))
    });
    daemon.kill();
    let daemon = world.start(&stub, "github", &arguments);
    let next = world.propose(4, &[("groups/c.yaml", "name: C\n")]);
    assert_eq!(stub.status(&next, VALIDATE).0, "success");
    assert_eq!(live(&daemon), Some(first));
    assert_eq!(["valid", "invalid", "failed"].map(|it| checks(&daemon, it)), [1, 0, 0]);
    assert_eq!([&small, &large, &wrong].map(|it| posted(it)), [1, 1, 1], "each is said once");
    assert_eq!(events(&world, &large), ["head-check-began", "head-checked", "reported"]);
    Seen::Held(format!("{said}; the other heads are checked, and nothing again after SIGKILL"))
}

/// Proposes heads until the process that checks one is stopped by SIGSTOP; returns the head and the
/// directory of the process in `/proc`.
fn stop_a_check(world: &World, daemon: &Daemon, text: &str) -> (String, PathBuf) {
    // A process that ends before it is caught has checked its head; the next one may be slower.
    for number in 0..50 {
        let own = format!("{text}# {number} {:?}\n", Instant::now());
        let head = world.propose(100 + number, &[("groups/b.yaml", &own)]);
        daemon.request("POST", "/controller/reconcile", "");
        let until = Instant::now() + Duration::from_mins(1);
        while Instant::now() < until {
            if let Some(process) = check_of(daemon) {
                let id = process.file_name().unwrap().to_str().unwrap().to_owned();
                stop(&id);
                if is_stopped(&process) {
                    return (head, process);
                }
                break;
            }
            if events(world, &head).iter().any(|it| it == "head-checked") {
                break;
            }
        }
    }
    panic!("no check was caught");
}

fn stop(process: &str) {
    // It may have ended.
    Command::new("kill").args(["-STOP", process]).stderr(Stdio::null()).status().ok();
}

fn resume(process: &str) {
    Command::new("kill").args(["-CONT", process]).status().unwrap();
}

/// Returns the process that a daemon has check a head, once its limits hold.
fn check_of(daemon: &Daemon) -> Option<PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", daemon.id())).ok()?;
    let children = tasks.flatten().filter_map(|task| {
        let children = std::fs::read_to_string(task.path().join("children")).ok()?;
        children.split_whitespace().next().map(|it| PathBuf::from(format!("/proc/{it}")))
    });
    let is_check = |it: &PathBuf| {
        let line = std::fs::read(it.join("cmdline")).unwrap_or_default();
        let score = std::fs::read_to_string(it.join("oom_score_adj")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("check-head") && score.trim() == "1000"
    };
    children.into_iter().find(is_check)
}

fn state_of(process: &Path) -> Option<char> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn is_stopped(process: &Path) -> bool {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        match state_of(process) {
            Some('T') => return true,
            None | Some('Z' | 'X') => return false,
            _ => assert!(Instant::now() < until, "SIGSTOP does not arrive"),
        }
    }
}

/// Waits until a process has ended.
fn wait_for_end(process: &Path) {
    let until = Instant::now() + Duration::from_mins(1);
    while !matches!(state_of(process), None | Some('Z' | 'X')) {
        assert!(Instant::now() < until, "{} is still there", process.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(super) fn hangs() -> Seen {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let stub = Stub::start(Vec::new());
    let start = |timeout: &str| {
        let own = world.arguments(&stub, "github");
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let more = ["--grace", "5s", "--head-timeout", timeout];
        let mut command = serve(&[&own, &HEADS[..], &more].concat());
        // A flag wins over the variable.
        command.env("CLADE_REPO", "https://user:secret-password@forge.invalid/groups.git");
        Daemon::launch(command)
    };
    let daemon = start("2s");
    wait_for(&daemon, &first);
    let (head, process) = stop_a_check(&world, &daemon, &values(20_000));
    let seen = ["environ", "cmdline"]
        .map(|it| String::from_utf8_lossy(&std::fs::read(process.join(it)).unwrap()).into_owned());
    for text in &seen {
        assert!(!text.contains("secret") && !text.contains("CLADE_"), "{text}");
    }
    let (state, said) = stub.status(&head, VALIDATE);
    assert_eq!(
        (state.as_str(), said.as_str()),
        ("error", "could not be checked: the check took longer than 2s")
    );
    wait_for_end(&process);
    let next = world.propose(1, &[("groups/c.yaml", "name: C\n")]);
    assert_eq!(stub.status(&next, VALIDATE).0, "success");
    assert_eq!(live(&daemon), Some(first.clone()));
    drop(daemon);
    // SIGTERM ends a check, which is then made by the next daemon.
    let daemon = start("1h");
    let (head, process) = stop_a_check(&world, &daemon, &values(20_000));
    assert_eq!(daemon.terminate(), 0);
    wait_for_end(&process);
    let daemon = start("1h");
    assert_eq!(stub.status(&head, VALIDATE).0, "success");
    assert_eq!(live(&daemon), Some(first));
    Seen::Held(format!("{said}; SIGTERM ends the check, and the next daemon makes it"))
}

pub(super) fn is_paused() -> Seen {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let stub = Stub::start(Vec::new());
    let daemon = world.start(&stub, "github", &[&HEADS[..], &["--head-timeout", "20s"]].concat());
    wait_for(&daemon, &first);
    let (head, process) = stop_a_check(&world, &daemon, &values(20_000));
    let id = daemon.id().to_string();
    stop(&id);
    std::thread::sleep(Duration::from_secs(25));
    // As the processes of a machine, they go on in any order: the check is the later one.
    resume(&id);
    std::thread::sleep(Duration::from_millis(500));
    resume(process.file_name().unwrap().to_str().unwrap());
    let (state, said) = stub.status(&head, VALIDATE);
    assert_eq!(state, "success", "{said}");
    Seen::Held(format!("{said}, after a pause of 25 s at a deadline of 20 s"))
}

pub(super) fn ends_the_daemon() -> Seen {
    let world = World::new();
    let first = world.repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let stub = Stub::start(Vec::new());
    let daemon = world.start(&stub, "github", &HEADS);
    wait_for(&daemon, &first);
    let (head, process) = stop_a_check(&world, &daemon, &values(20_000));
    daemon.kill();
    wait_for_end(&process);
    assert_eq!(events(&world, &head), ["head-check-began"]);
    // Twice more, as far as the journal knows.
    let path = world.data.path().join("data/journal");
    let mut journal = std::fs::read_to_string(&path).unwrap();
    let began = journal.lines().find(|it| it.contains("head-check-began") && it.contains(&head));
    let began = began.unwrap().to_owned();
    journal = [journal.as_str(), &began, "\n", &began, "\n"].concat();
    std::fs::write(&path, journal).unwrap();
    let daemon = world.start(&stub, "github", &HEADS);
    let (state, said) = stub.status(&head, VALIDATE);
    assert_eq!(state, "error");
    assert_eq!(said, "could not be checked: the daemon ended during 3 checks of it");
    assert_eq!(live(&daemon), Some(first));
    Seen::Held(said)
}
