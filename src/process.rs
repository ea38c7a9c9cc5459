//! Programs that we start: a small environment, a process group of their own, a deadline.
#![expect(clippy::disallowed_methods, reason = "the environment is filtered here")]

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// What a program may see of our environment. Ours may hold secrets (`CLADE_REPO`), and a hook of a
/// repository runs below `git`.
const ENVIRONMENT: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE"];

/// How much of what a program complains is kept.
const COMPLAINT: usize = 4096;

/// How long a complaint may take to arrive; something that the program left behind may hold the pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a program may take to remove its locks.
const TIDYING: Duration = Duration::from_secs(1);

/// How often an exit that is waited for is polled.
const TICK: Duration = Duration::from_millis(10);

/// Prepares a program with the environment that programs may see.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for name in ENVIRONMENT {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// A program in a process group of its own. Dropping it before [`ProcessGroup::wait`] has seen its end kills the whole
/// group, so that a hook and what the hook started end with it. What a program leaves behind when it ends by itself goes
/// on: a hook may start something that is to outlive it.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    child: Child,
    listener: Option<JoinHandle<()>>,
    complaint: Arc<Mutex<Vec<u8>>>,
    ended: Option<ExitStatus>,
}

impl ProcessGroup {
    /// Starts a program.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started.
    pub(crate) fn spawn(command: &mut Command) -> std::io::Result<Self> {
        let mut child = command.process_group(0).stderr(Stdio::piped()).spawn()?;
        let complaint = Arc::default();
        let listener = child.stderr.take().map(|it| {
            let kept = Arc::clone(&complaint);
            std::thread::Builder::new().spawn(move || listen(it, &kept))
        });
        let mut group = Self { child, listener: None, complaint, ended: None };
        // Where there is no thread for it, the program ends with the group.
        group.listener = listener.transpose()?;
        Ok(group)
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the program ends; returns `None` if it takes longer.
    pub(crate) fn wait(&mut self, longest: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + longest;
        loop {
            if self.ended.is_none() {
                self.ended = self.child.try_wait().ok().flatten();
            }
            let left = until.saturating_duration_since(Instant::now());
            if self.ended.is_some() || left.is_zero() {
                return self.ended;
            }
            std::thread::sleep(TICK.min(left));
        }
    }

    /// Ends the program and everything in its group: by SIGTERM, at which git removes its locks, and then by SIGKILL, which
    /// also ends what SIGSTOP stopped.
    pub(crate) fn kill(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // Once the exit status is taken, another process may have the id.
        if let Some(group) = group
            && self.ended.is_none()
        {
            kill_process_group(group, Signal::TERM).ok();
            let until = Instant::now() + TIDYING;
            while !has_ended(group) && Instant::now() < until {
                std::thread::sleep(TICK);
            }
            kill_process_group(group, Signal::KILL).ok();
        }
        self.child.kill().ok();
        self.ended = self.ended.or(self.child.wait().ok());
    }

    /// Kills the group and returns what the program wrote to its standard error.
    pub(crate) fn complaint(&mut self) -> String {
        self.kill();
        let until = Instant::now() + LAST_WORDS;
        let is_open = |it: &Option<JoinHandle<()>>| it.as_ref().is_some_and(|it| !it.is_finished());
        while is_open(&self.listener) && Instant::now() < until {
            std::thread::sleep(TICK);
        }
        let kept = self.complaint.lock();
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns whether a child of ours has ended, and leaves its exit status: until that is taken, its id and its group are
/// those of no other process.
fn has_ended(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(child), options), Ok(None))
}

/// Keeps the beginning of a stream and drops the rest: a full pipe would stop the program.
fn listen(mut stderr: ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(bytes) = stderr.read(&mut buffer)
        && bytes > 0
    {
        let mut kept = kept.lock();
        let room = COMPLAINT.saturating_sub(kept.len()).min(bytes);
        kept.extend(buffer.iter().take(room));
    }
}

/// What a pipe is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ready {
    /// There is something to read, or the end.
    ToRead,
    /// `PIPE_BUF` bytes fit in.
    ToWrite,
}

/// Waits until a pipe is ready; returns whether it is.
pub(crate) fn wait_for(pipe: &impl AsFd, ready: Ready, longest: Duration) -> std::io::Result<bool> {
    let flags = match ready {
        Ready::ToRead => PollFlags::IN,
        Ready::ToWrite => PollFlags::OUT,
    };
    let timeout = Timespec {
        tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    match rustix::event::poll(&mut [PollFd::new(pipe, flags)], Some(&timeout)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_sees_nothing_of_ours_but_what_is_listed() {
        let output = command("env").output().unwrap();
        let seen = String::from_utf8(output.stdout).unwrap();
        assert!(seen.contains("PATH="), "{seen}");
        for line in seen.lines().filter_map(|it| it.split_once('=')) {
            assert!(ENVIRONMENT.contains(&line.0), "{}", line.0);
        }
    }

    #[test]
    fn a_program_has_time_to_tidy_up() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join("lock");
        let (shown, started) = (lock.display(), directory.path().join("started"));
        let script = format!(
            "trap \"rm '{shown}'; exit\" TERM; >'{shown}'; >'{}'; while :; do sleep 0.05; done",
            started.display()
        );
        let mut group = ProcessGroup::spawn(command("sh").args(["-c", &script])).unwrap();
        while !started.exists() {
            std::thread::sleep(TICK);
        }
        assert!(lock.exists());
        group.kill();
        assert!(!lock.exists());
    }

    #[test]
    fn what_a_program_left_behind_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let end = directory.path().join("end");
        // Its standard error is not that of the program, so that a complaint ends.
        let script = format!(
            "(while [ ! -e '{end}' ]; do sleep 0.05; done; rm '{end}') 2>/dev/null &",
            end = end.display(),
        );
        let mut group = ProcessGroup::spawn(command("sh").args(["-c", &script])).unwrap();
        let ended = group.wait(Duration::from_secs(30));
        assert!(ended.is_some_and(|it| it.success()));
        drop(group);
        std::fs::write(&end, "").unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while end.exists() {
            assert!(Instant::now() < deadline, "it was killed");
            std::thread::sleep(TICK);
        }
    }

    #[test]
    fn the_whole_group_is_killed_even_when_it_is_stopped() {
        let marker = tempfile::tempdir().unwrap();
        let path = marker.path().join("pid");
        let script = format!("echo oh no >&2; sleep 1000 & echo $! >'{}'; wait", path.display());
        let mut group = ProcessGroup::spawn(command("sh").args(["-c", &script])).unwrap();
        let child = loop {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if let Some(line) = text.strip_suffix('\n') {
                break line.to_owned();
            }
            std::thread::sleep(TICK);
        };
        let status = Command::new("kill").args(["-STOP", &child]).status().unwrap();
        assert!(status.success());
        assert_eq!(group.wait(Duration::from_millis(20)), None);
        assert_eq!(group.complaint(), "oh no");
        // The signal is pending until the process is scheduled; then it is a zombie until its new parent
        // takes its exit status.
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            if state.is_empty() || state.contains(") Z ") || state.contains(") X ") {
                break;
            }
            assert!(Instant::now() < deadline, "still alive: {state}");
            std::thread::sleep(TICK);
        }
    }
}
