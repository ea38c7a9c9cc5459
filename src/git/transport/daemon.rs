//! The transport of `git://`: one TCP connection, every read and write under the deadline.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream};

use super::attempt::Attempt;
use crate::git::failure::{FetchError, FetchFailure};
use crate::git::remote::Url;

const PORT: u16 = 9418;

/// How often it is checked whether the daemon must stop.
const SLICE: Duration = Duration::from_millis(100);

pub(super) struct Daemon {
    attempt: Arc<Attempt>,
}

impl Daemon {
    pub(super) fn new(attempt: Arc<Attempt>) -> Self {
        Self { attempt }
    }

    fn open(&self) -> Result<Stream, FetchError> {
        let attempt = &self.attempt;
        let wrong = |detail: &str| attempt.error(FetchFailure::ConnectFailed, detail);
        let url = attempt.remote.url().ok_or_else(|| wrong("it is not a URL"))?;
        let (host, port) = url.host_and_port();
        let port = match port {
            Some(text) => text.parse().map_err(|_| wrong("invalid port"))?,
            None => PORT,
        };
        let mut last = wrong("its name has no address");
        for address in resolve(attempt, host, port)? {
            match TcpStream::connect_timeout(&address, attempt.remaining()?) {
                Ok(tcp) => {
                    let mut stream = Stream { tcp, attempt: Arc::clone(attempt) };
                    stream.write_all(&greeting(url)).map_err(|error| stream.tell(&error))?;
                    return Ok(stream);
                }
                Err(error) => last = tell(attempt, &error),
            }
        }
        Err(last)
    }
}

/// Returns the addresses of a name; the system's resolver knows no deadline, so it gets a thread
/// that is left behind when it takes too long.
fn resolve(attempt: &Attempt, host: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let name = (host.to_owned(), port);
    let look_up = move || {
        let found = (name.0.as_str(), name.1).to_socket_addrs().map(Vec::from_iter);
        // After the deadline there is no receiver any more.
        sender.send(found).ok();
    };
    let fail = |error: &io::Error| attempt.error(FetchFailure::DnsFailed, error);
    std::thread::Builder::new().name("resolve".into()).spawn(look_up).map_err(|it| fail(&it))?;
    match receiver.recv_timeout(attempt.remaining()?) {
        Ok(found) => found.map_err(|error| fail(&error)),
        Err(_) => Err(attempt.timed_out()),
    }
}

/// Returns the first packet: what is asked of which repository.
fn greeting(url: &Url) -> Vec<u8> {
    let line = format!("git-upload-pack {}\0host={}\0", url.daemon_path(), url.authority);
    format!("{:04x}{line}", line.len() + 4).into_bytes()
}

fn tell(attempt: &Attempt, error: &io::Error) -> FetchError {
    if is_timeout(error) {
        attempt.timed_out()
    } else {
        attempt.error(FetchFailure::ConnectFailed, error)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl SmartSubtransport for Daemon {
    fn action(
        &self,
        _url: &str,
        service: Service,
    ) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        match service {
            Service::UploadPackLs | Service::UploadPack => {
                let stream = self.open().map_err(|error| self.attempt.fail(error))?;
                Ok(Box::new(stream))
            }
            Service::ReceivePackLs | Service::ReceivePack => {
                Err(git2::Error::from_str("nothing is pushed over `git://`"))
            }
        }
    }

    fn close(&self) -> Result<(), git2::Error> {
        Ok(())
    }
}

struct Stream {
    tcp: TcpStream,
    attempt: Arc<Attempt>,
}

impl Stream {
    fn tell(&self, error: &io::Error) -> FetchError {
        tell(&self.attempt, error)
    }
}

impl Stream {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, FetchError> {
        loop {
            let left = self.attempt.remaining()?.min(SLICE);
            self.tcp.set_read_timeout(Some(left)).map_err(|error| self.tell(&error))?;
            match self.tcp.read(buffer) {
                Ok(bytes) => {
                    self.attempt.check(buffer.get(..bytes).unwrap_or_default())?;
                    return Ok(bytes);
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(self.tell(&error)),
            }
        }
    }

    fn send(&mut self, buffer: &[u8]) -> Result<usize, FetchError> {
        let left = self.attempt.remaining()?;
        self.tcp.set_write_timeout(Some(left)).map_err(|error| self.tell(&error))?;
        self.tcp.write(buffer).map_err(|error| self.tell(&error))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer).map_err(|error| self.attempt.fail_io(error))
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.attempt.note_sent(buffer);
        self.send(buffer).map_err(|error| self.attempt.fail_io(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Remote;

    #[test]
    fn the_greeting_names_service_path_and_host() {
        let remote = Remote::parse("git://u:p@host:1234/a/b.git").unwrap();
        assert_eq!(
            String::from_utf8(greeting(remote.url().unwrap())).unwrap(),
            "002cgit-upload-pack /a/b.git\0host=host:1234\0"
        );
    }
}
