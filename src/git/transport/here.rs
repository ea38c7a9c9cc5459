//! Pushing into a repository on this machine, by git itself: it runs the hooks.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, OnceLock};

use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream};

use super::Attempt;
use crate::git::failure::FetchFailure;

/// Returns whether git is installed.
pub(in crate::git) fn git_is_here() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let mut version = Command::new("git");
        version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|it| it.success())
    })
}

pub(super) struct Here {
    attempt: Arc<Attempt>,
}

impl Here {
    pub(super) fn new(attempt: Arc<Attempt>) -> Self {
        Self { attempt }
    }

    fn open(&self) -> Result<Stream, io::Error> {
        let path =
            self.attempt.remote.as_path().ok_or_else(|| io::Error::other("it is no path"))?;
        let mut command = Command::new("git");
        command.args(["-c", "safe.directory=*", "receive-pack"]).arg(path);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("git has no pipes"));
        };
        Ok(Stream { child, to: Some(to), from })
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
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.from.read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.to
            .as_mut()
            .map_or_else(|| Err(io::ErrorKind::BrokenPipe.into()), |to| to.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // git ends when its input does.
        self.to = None;
        self.child.wait().ok();
    }
}
