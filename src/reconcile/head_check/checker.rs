//! The daemon's side: one process for each head, killed when it takes too long.
#![expect(clippy::disallowed_methods, reason = "deadlines are measured by the clock")]

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{HeadCheck, HeadVerdict};
use crate::diagnostic::visible_up_to;
use crate::model::{Budget, CommitId};
use crate::process::{self, ProcessGroup, Ready};

/// The program that checks heads, and what it may take.
#[derive(Clone, Debug)]
pub struct HeadChecker {
    /// The program.
    pub program: PathBuf,
    /// Its arguments; what to check comes on its standard input.
    pub arguments: Vec<OsString>,
    /// How many bytes of memory it may allocate.
    pub memory: u64,
    /// How long one head may take.
    pub timeout: Duration,
}

/// A commit that is to be checked.
#[derive(Clone, Copy, Debug)]
pub(in crate::reconcile) struct Head<'a> {
    /// The repository that has it.
    pub(in crate::reconcile) mirror: &'a Path,
    pub(in crate::reconcile) commit: CommitId,
    /// The directory of the groups.
    pub(in crate::reconcile) directory: &'a str,
    pub(in crate::reconcile) budget: &'a Budget,
}

/// The process gave no verdict.
#[derive(Debug, thiserror::Error)]
pub(in crate::reconcile) enum CheckFailure {
    #[error("the process for the check cannot be started: {0}")]
    NotStarted(io::Error),
    #[error("the check took longer than {0:?}")]
    TimedOut(Duration),
    #[error("the check {}{}", end(*.status, *.memory), because(.complaint))]
    Died { status: ExitStatus, memory: u64, complaint: String },
    #[error("the check wrote something else than a verdict{}", because(.0))]
    NoVerdict(String),
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
}

/// The most bytes of a verdict.
const VERDICT: u64 = 64 << 10;

/// How often it is checked whether the daemon must stop.
const SLICE: Duration = Duration::from_millis(100);

/// How many characters of a complaint are shown.
const COMPLAINT: usize = 200;

/// How much time a check has left. While this process is stopped, as with its machine or its container, the check is
/// stopped as well: that time does not count.
#[derive(Clone, Copy, Debug)]
struct TimeLeft {
    left: Duration,
    /// Up to when the time is counted.
    counted: Instant,
}

impl TimeLeft {
    /// Counts the time since the last call, which is one slice later at most unless this process is stopped; returns what is
    /// left.
    fn count(&mut self, now: Instant) -> Duration {
        /// The most that counts at once: on a busy machine, a slice takes longer.
        const MOST: Duration = SLICE.saturating_mul(2);
        let passed = now.saturating_duration_since(self.counted).min(MOST);
        self.counted = now;
        self.left = self.left.saturating_sub(passed);
        self.left
    }
}

impl HeadChecker {
    /// Checks a commit in a process of its own. Blocking.
    ///
    /// # Errors
    ///
    /// Returns why there is no verdict.
    pub(in crate::reconcile) fn check(
        &self,
        head: Head<'_>,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<HeadVerdict, CheckFailure> {
        let mut group = self.start(head).map_err(CheckFailure::NotStarted)?;
        let mut time = TimeLeft { left: self.timeout, counted: Instant::now() };
        let mut verdict = Vec::new();
        if let Some(mut output) = group.child().stdout.take() {
            loop {
                let left = time.count(Instant::now());
                if left.is_zero() {
                    return Err(CheckFailure::TimedOut(self.timeout));
                }
                if is_stopping() {
                    return Err(CheckFailure::Stopping);
                }
                let ready = process::wait_for(&output, Ready::ToRead, left.min(SLICE));
                if !ready.map_err(CheckFailure::NotStarted)? {
                    continue;
                }
                let mut buffer = [0; 4096];
                match output.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(bytes) => verdict.extend(buffer.iter().take(bytes)),
                }
                if verdict.len() as u64 > VERDICT {
                    return Err(CheckFailure::NoVerdict(String::new()));
                }
            }
        }
        // The output is closed, so the process has ended or is about to.
        let ended = loop {
            let left = time.count(Instant::now());
            let ended = group.wait(left.min(SLICE));
            if ended.is_some() || left.is_zero() {
                break ended;
            }
            if is_stopping() {
                return Err(CheckFailure::Stopping);
            }
        };
        let complaint = group.complaint();
        let Some(status) = ended else { return Err(CheckFailure::TimedOut(self.timeout)) };
        if !status.success() {
            return Err(CheckFailure::Died { status, memory: self.memory, complaint });
        }
        serde_json::from_slice(&verdict).map_err(|_| CheckFailure::NoVerdict(complaint))
    }

    fn start(&self, head: Head<'_>) -> io::Result<ProcessGroup> {
        let check = HeadCheck {
            commit: head.commit,
            directory: head.directory.to_owned(),
            budget: head.budget.limits().to_vec(),
            memory: self.memory,
            // In case that the daemon is killed, or stopped by SIGSTOP.
            cpu_seconds: self.timeout.as_secs().saturating_add(1),
        };
        let mut command = process::command(&self.program);
        command
            .arg0("clade")
            .args(&self.arguments)
            .current_dir(head.mirror)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut group = ProcessGroup::spawn(&mut command)?;
        if let Some(mut input) = group.child().stdin.take() {
            // It fits into the pipe. Why a process does not read it shows when it has ended.
            input.write_all(&serde_json::to_vec(&check)?).ok();
        }
        Ok(group)
    }
}

/// Says how a process ended that gave no verdict.
fn end(status: ExitStatus, memory: u64) -> String {
    let memory = memory >> 20;
    match status.signal().and_then(Signal::from_named_raw) {
        Some(Signal::ABORT) => format!("aborted; it may take {memory} MiB of memory"),
        Some(Signal::XCPU) => "took more processor time than it may".to_owned(),
        Some(Signal::KILL) => "was killed, as the system does when memory runs out".to_owned(),
        _ => format!("failed ({status})"),
    }
}

fn because(complaint: &str) -> String {
    match complaint.lines().find(|it| !it.trim().is_empty()) {
        Some(first) => format!(": {}", visible_up_to(first.trim(), COMPLAINT)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    fn checker(script: &str, timeout: Duration) -> HeadChecker {
        let arguments = vec!["-c".into(), script.into()];
        HeadChecker { program: "/bin/sh".into(), arguments, memory: 64 << 20, timeout }
    }

    fn check(checker: &HeadChecker, is_stopping: &dyn Fn() -> bool) -> Result<HeadVerdict, String> {
        let directory = tempfile::tempdir().unwrap();
        let head = Head {
            mirror: directory.path(),
            commit: CommitId::from_bytes([1; 20]),
            directory: "groups",
            budget: &Budget::DEFAULT,
        };
        checker.check(head, is_stopping).map_err(|it| it.to_string())
    }

    #[test]
    fn every_end_of_the_process_has_its_words() {
        let minute = Duration::from_mins(1);
        let rows = [
            ("exit 3", "the check failed (exit status: 3)"),
            (
                "echo '{}'; echo error: no room >&2",
                "the check wrote something else than a verdict: error: no room",
            ),
            (
                "echo 'one\u{1b}[1m' >&2; echo two >&2; kill -ABRT $$",
                "the check aborted; it may take 64 MiB of memory: one\u{fffd}[1m",
            ),
            ("kill -XCPU $$", "the check took more processor time than it may"),
            ("kill -KILL $$", "the check was killed, as the system does when memory runs out"),
            ("yes", "the check wrote something else than a verdict"),
        ];
        each_row(rows, |(script, expected)| {
            assert_eq!(check(&checker(script, minute), &|| false), Err(expected.to_owned()));
        });
        let absent = HeadChecker { program: "/nonexistent".into(), ..checker("", minute) };
        let said = check(&absent, &|| false).unwrap_err();
        assert!(said.starts_with("the process for the check cannot be started: "), "{said}");
    }

    #[test]
    fn a_verdict_is_read_and_the_commit_given_on_the_standard_input() {
        let script = r#"read -r check
            case $check in *'"commit":"0101'*'"memory":67108864'*) ;; *) exit 1 ;; esac
            case $(env) in *CLADE*|*CARGO*) exit 2 ;; esac
            echo '{"verdict": "valid", "groups": 3}'"#;
        let done = check(&checker(script, Duration::from_mins(1)), &|| false);
        assert_eq!(done, Ok(HeadVerdict::Valid { groups: 3 }));
    }

    #[test]
    fn a_process_that_hangs_is_killed_at_the_deadline_or_when_the_daemon_stops() {
        for script in ["sleep 1000", "exec >&-; sleep 1000"] {
            let short = Duration::from_millis(300);
            let said = check(&checker(script, short), &|| false);
            assert_eq!(said, Err("the check took longer than 300ms".to_owned()));
        }
        for script in ["sleep 1000", "exec >&-; sleep 1000"] {
            let said = check(&checker(script, Duration::from_hours(1)), &|| true);
            assert_eq!(said, Err("the daemon is stopping".to_owned()), "{script}");
        }
    }

    #[test]
    fn the_time_for_which_the_daemon_was_stopped_does_not_count() {
        let millis = Duration::from_millis;
        let mut now = Instant::now();
        let mut time = TimeLeft { left: millis(500), counted: now };
        let mut later = |passed| {
            now += passed;
            time.count(now)
        };
        assert_eq!(later(millis(100)), millis(400));
        assert_eq!(later(Duration::from_hours(1)), millis(200));
        assert_eq!(later(millis(150)), millis(50));
        assert_eq!(later(millis(100)), millis(0));
    }
}
