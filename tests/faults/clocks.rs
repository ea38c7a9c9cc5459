//! Clocks that are wrong, and clocks that stop.

use std::process::Command;
use std::time::Duration;

use crate::follow::{conditions, wait_for};
use crate::hub::Hub;
use crate::program::{Daemon, GitRepository, serve};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "clocks::a-year-ahead",
        promise: "a machine whose clock is a year ahead follows commits and answers",
        injection: "libfaketime, `+1y`",
        speed: Speed::Fast,
        run: || follows_at("+1y"),
    },
    Fault {
        name: "clocks::decades-behind",
        promise: "a machine whose clock is decades behind its commits follows and answers",
        injection: "libfaketime, `-40y`",
        speed: Speed::Fast,
        run: || follows_at("-40y"),
    },
    Fault {
        name: "clocks::jumps",
        promise: "a clock that is set forward and back delays nothing and makes nothing stale",
        injection: "libfaketime, set to +1 d, -1 d, +1 y and 0 while it runs, `--max-staleness 1h`",
        speed: Speed::Fast,
        run: jumps,
    },
];

/// Prepares a daemon under another clock; none without the library of `faketime`.
fn at(time: &str, arguments: &[&str]) -> Option<Command> {
    let library = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let mut library = library.map(|it| it.path().join("faketime/libfaketime.so.1"));
    let library = library.find(|it| it.exists())?;
    let mut command = serve(arguments);
    // The program `faketime` would stand between us and the daemon, and outlive a kill.
    command.env("LD_PRELOAD", library).env("FAKETIME", time);
    // As on a real machine, a clock that is set leaves the monotonic one alone.
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Some(command)
}

fn follows_at(time: &str) -> Seen {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let path = repository.text_path();
    let Some(command) = at(time, &["--repo", &path]) else { return Seen::Skipped("faketime") };
    let daemon = Daemon::launch(command);
    let second = repository.commit("second", &[("groups/b.yaml", "name: B\n")]);
    daemon.wait_until("the second commit answers", |it| {
        it.get("/v1/groups").header("X-Clade-Commit") == Some(&second)
    });
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(daemon.get("/readyz").status, 200);
    Seen::Held("the next commit answers".to_owned())
}

fn jumps() -> Seen {
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let clock = hub.directory.path().join("clock");
    std::fs::write(&clock, "+0\n").unwrap();
    let (path, data) = (hub.text_path(), hub.directory.path().join("data").display().to_string());
    let arguments = ["--repo", &path, "--data-dir", &data];
    let stale = ["--max-staleness", "1h", "--on-stale", "refuse"];
    let Some(mut command) = at("+0", &[&arguments[..], &stale].concat()) else {
        return Seen::Skipped("faketime");
    };
    command.env_remove("FAKETIME").env("FAKETIME_TIMESTAMP_FILE", &clock);
    command.env("FAKETIME_NO_CACHE", "1");
    let daemon = Daemon::launch(command);
    wait_for(&daemon, &hub.head_id());
    for (number, time) in ["+1d", "-1d", "+1y", "+0"].into_iter().enumerate() {
        std::fs::write(&clock, format!("{time}\n")).unwrap();
        let file = format!("groups/{number}.yaml");
        let next = hub.commit("next", &[(&file, &format!("name: N{number}\n"))]);
        wait_for(&daemon, &next);
        assert_eq!(daemon.get("/readyz").status, 200, "{time}");
        // A fetch in progress is not a fault.
        let mut conditions = conditions(&daemon);
        conditions.retain(|(kind, _)| kind != "Reconciling");
        assert!(conditions.is_empty(), "{time}: {conditions:?}");
    }
    // What the journal wrote down at odd times is read again.
    daemon.kill();
    let daemon = hub.serve(&[]);
    wait_for(&daemon, &hub.head_id());
    Seen::Held("four jumps, each next commit answers, none is stale".to_owned())
}
