//! Pushing into a repository on this machine, by git itself: it runs the hooks.
//!
//! A hook is a program of the repository's owner. It runs as us, so the repository must be ours or
//! one that git's own `safe.directory` trusts; it sees a small environment; and it has a deadline,
//! after which its whole process group is killed.

use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream};

use super::advertisement::Advertisement;
use super::attempt::Attempt;
use crate::git::failure::{FetchError, FetchFailure};
use crate::process::{self, ProcessGroup, Ready};

/// How long git may take to say something about itself.
const PROBE: Duration = Duration::from_secs(10);

/// What git says last where a `reference-transaction` hook refuses, before any ref is written; newer versions say more.
const ABORTED: [&str; 2] =
    ["ref updates aborted by hook", "update aborted by the reference-transaction hook"];

/// How often it is checked whether the daemon must stop.
const SLICE: Duration = Duration::from_millis(100);

/// What surely fits into a pipe that is ready (`PIPE_BUF`).
const PIPE: usize = 4096;

/// Returns whether git is installed.
pub(in crate::git) fn git_is_here() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| succeeds(git().arg("--version")))
}

fn git() -> Command {
    let mut command = process::command("git");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn succeeds(command: &mut Command) -> bool {
    ProcessGroup::spawn(command)
        .ok()
        .and_then(|mut it| it.wait(PROBE))
        .is_some_and(|status| status.success())
}

/// Returns why the hooks and the configuration of a repository must not be trusted, if so: it
/// belongs to another user, and `safe.directory` does not list it.
pub(in crate::git) fn check_owner(path: &Path) -> Result<(), String> {
    let us = rustix::process::geteuid().as_raw();
    let other = [path.to_owned(), path.join(".git"), path.join("hooks"), path.join("config")]
        .iter()
        .filter_map(|it| std::fs::metadata(it).ok())
        .map(|it| it.uid())
        // What root owns, root could have told us to run.
        .find(|owner| *owner != us && *owner != 0);
    let Some(other) = other else { return Ok(()) };
    // git says no unless `safe.directory` of the user or the system lists it.
    if succeeds(git().arg("-C").arg(path).args(["rev-parse", "--git-dir"])) {
        return Ok(());
    }
    Err(format!(
        "`{}` belongs to the user {other} and we are {us}, who would run that user's hooks: give the \
         repository to the user of the daemon, push over ssh or https, or list it as \
         `safe.directory` in the git configuration of the daemon's user",
        path.display()
    ))
}

pub(super) struct Here {
    attempt: Arc<Attempt>,
}

impl Here {
    pub(super) fn new(attempt: Arc<Attempt>) -> Self {
        Self { attempt }
    }

    fn open(&self) -> Result<Stream, io::Error> {
        let path = self.attempt.remote.directory();
        let path = path.ok_or_else(|| io::Error::other("it is not on this machine"))?;
        let mut command = process::command("git");
        // git leaves objects and refs to the system otherwise.
        command
            .args(["-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync", "receive-pack"])
            .arg(path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut group = ProcessGroup::spawn(&mut command)?;
        let (Some(to), Some(from)) = (group.child().stdin.take(), group.child().stdout.take())
        else {
            return Err(io::Error::other("git has no pipes"));
        };
        let (advertisement, attempt) = (self.attempt.advertisement(), Arc::clone(&self.attempt));
        Ok(Stream { group, to: Some(to), from, advertisement, attempt })
    }
}

impl SmartSubtransport for Here {
    fn action(
        &self,
        _url: &str,
        service: Service,
    ) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        match service {
            Service::ReceivePackLs | Service::ReceivePack => {
                let stream = self.open().map_err(|error| {
                    self.attempt.fail(self.attempt.error(FetchFailure::ConnectFailed, error))
                })?;
                Ok(Box::new(stream))
            }
            Service::UploadPackLs | Service::UploadPack => {
                Err(git2::Error::from_str("nothing is fetched by this transport"))
            }
        }
    }

    fn close(&self) -> Result<(), git2::Error> {
        Ok(())
    }
}

struct Stream {
    group: ProcessGroup,
    to: Option<ChildStdin>,
    from: ChildStdout,
    advertisement: Advertisement,
    attempt: Arc<Attempt>,
}

impl Stream {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, FetchError> {
        let mut advertisement = std::mem::take(&mut self.advertisement);
        let received = advertisement.read_from(buffer, |it| self.receive_from_git(it));
        self.advertisement = advertisement;
        received
    }

    fn receive_from_git(&mut self, buffer: &mut [u8]) -> Result<usize, FetchError> {
        let fail = |error: io::Error| self.attempt.error(FetchFailure::ConnectFailed, error);
        while !process::wait_for(&self.from, Ready::ToRead, self.attempt.remaining()?.min(SLICE))
            .map_err(fail)?
        {}
        let bytes = self.from.read(buffer).map_err(fail)?;
        self.attempt.count(bytes)?;
        // git ends so where a hook refuses a transaction of refs, and libgit2 does not learn why.
        if bytes == 0 && self.group.wait(SLICE).is_some_and(|it| !it.success()) {
            self.hear();
        }
        Ok(bytes)
    }

    fn send(&mut self, buffer: &[u8]) -> Result<usize, FetchError> {
        let fail = |error: io::Error| self.attempt.error(FetchFailure::ConnectFailed, error);
        let Some(to) = &mut self.to else { return Err(fail(io::ErrorKind::BrokenPipe.into())) };
        while !process::wait_for(to, Ready::ToWrite, self.attempt.remaining()?.min(SLICE))
            .map_err(fail)?
        {}
        to.write(buffer.get(..PIPE).unwrap_or(buffer)).map_err(fail)
    }

    /// Ends git and everything it started, and returns what libgit2 is told.
    fn fail(&mut self, error: FetchError) -> io::Error {
        self.hear();
        self.attempt.fail_io(error)
    }

    /// Ends git and everything it started, and notes what it complained of.
    fn hear(&mut self) {
        let complaint = self.group.complaint();
        if complaint.is_empty() {
            return;
        }
        tracing::warn!(complaint, "git rejected a push");
        if ABORTED.iter().any(|it| complaint.contains(it)) {
            self.attempt.note_refusal(&complaint);
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer).map_err(|error| self.fail(error))
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.attempt.note_sent(buffer);
        self.send(buffer).map_err(|error| self.fail(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // git ends when its input does, unless a hook hangs.
        self.to = None;
        while let Ok(left) = self.attempt.remaining() {
            if self.group.wait(left.min(SLICE)).is_some() {
                return;
            }
        }
        self.group.kill();
    }
}
