//! HTTP through a unix socket.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use ureq::config::Config;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Agent, Error};

use super::resolver::HostResolver;

/// Returns an agent that sends every request through a unix socket.
pub(super) fn agent(config: Config, path: &Path) -> Agent {
    Agent::with_parts(config, UnixConnector(path.to_owned()), HostResolver::default())
}

/// Connects to the unix socket for every URL.
#[derive(Debug)]
struct UnixConnector(PathBuf);

#[derive(Debug)]
struct Connected {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Connector<()> for UnixConnector {
    type Out = Connected;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _chained: Option<()>,
    ) -> Result<Option<Connected>, Error> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // A daemon that accepts no connection must not block the client.
        let wait = details.timeout.not_zero().map_or(Duration::from_secs(1), |it| *it);
        socket.connect_timeout(&SockAddr::unix(&self.0)?, wait)?;
        let stream = UnixStream::from(OwnedFd::from(socket));
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Connected { stream, buffers }))
    }
}

impl Transport for Connected {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.set_write_timeout(timeout.not_zero().map(|it| *it))?;
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        self.stream.write_all(output).map_err(|error| as_timeout(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.set_read_timeout(timeout.not_zero().map(|it| *it))?;
        let read = self.stream.read(self.buffers.input_append_buf());
        let amount = read.map_err(|error| as_timeout(error, timeout))?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // Each request has a connection of its own.
        false
    }
}

/// Returns the time-out that an error of the socket stands for, or the error.
fn as_timeout(error: std::io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}
