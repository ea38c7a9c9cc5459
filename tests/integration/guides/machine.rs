//! Machines that guides are run on: namespaces, in which port 4433, `/etc/clade` and `/home` are free.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::program::root;

/// What makes the machine.
const SETUP: &str = "tests/integration/guides/machine.sh";

/// How long everything that happens on one may take; without it a command that waits would hang for ever.
const SECONDS: &str = "1800";

/// A machine; its files disappear with its last process.
pub(crate) struct Machine {
    directory: tempfile::TempDir,
}

impl Machine {
    /// Returns one, or why there cannot be any here.
    pub(crate) fn new() -> Result<Self, &'static str> {
        static MISSING: OnceLock<Option<&'static str>> = OnceLock::new();
        match MISSING.get_or_init(missing) {
            Some(missing) => Err(missing),
            None => Ok(Self::unchecked()),
        }
    }

    fn unchecked() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// Prepares a program that runs there as root, without anything from the surroundings but the path.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=5", SECONDS, "unshare", "--kill-child"])
            .args(["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--", "bash"])
            .arg(root().join(SETUP))
            .arg(self.directory.path())
            .arg(program.as_ref())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GUIDE_ROOT", root())
            .env("GUIDE_PROGRAM", env!("CARGO_BIN_EXE_clade"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }
}

/// Returns what machines need and this one does not have or does not allow.
fn missing() -> Option<&'static str> {
    for program in ["ip", "unshare", "setpriv"] {
        if Command::new(program).arg("--help").output().is_err() {
            return Some(program);
        }
    }
    let works = |it: Output| it.status.success();
    let probe = Machine::unchecked().command("true").output();
    (!probe.is_ok_and(works)).then_some("unshare")
}
