//! Clocks that are wrong, and time that stands still.

use std::process::Command;
use std::time::Duration;

use crate::program::{Daemon, GitRepository, clade};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[Fault {
    name: "clocks::a-year-ahead",
    promise: "a machine whose clock is a year ahead follows commits and answers",
    injection: "libfaketime, `+1y`",
    speed: Speed::Fast,
    run: a_year_ahead,
}];

/// Prepares a daemon under another clock; none without the library of `faketime`.
fn at(time: &str, arguments: &[&str]) -> Option<Command> {
    let library = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let mut library = library.map(|it| it.path().join("faketime/libfaketime.so.1"));
    let library = library.find(|it| it.exists())?;
    let mut command = clade(&["serve", "--listen", "127.0.0.1:0"]);
    // The program `faketime` would stand between us and the daemon, and outlive a kill.
    command.args(arguments).env("LD_PRELOAD", library).env("FAKETIME", time);
    // As on a real machine, a clock that is set leaves the monotonic one alone.
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Some(command)
}

fn a_year_ahead() -> Seen {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let path = repository.text_path();
    let arguments = ["--interval", "50ms", "--repo", &path];
    let Some(command) = at("+1y", &arguments) else { return Seen::Skipped("faketime") };
    let daemon = Daemon::launch(command);
    let second = repository.commit("second", &[("groups/b.yaml", "name: B\n")]);
    daemon.wait_until("the second commit answers", |it| {
        it.get("/v1/groups").header("X-Clade-Commit") == Some(&second)
    });
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(daemon.get("/readyz").status, 200);
    Seen::Held("the next commit answers".to_owned())
}
