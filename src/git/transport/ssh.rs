//! The transport of `ssh`: one channel that runs git's own command, every step under the deadline.

mod known_hosts;

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream};
use parking_lot::Mutex;
use russh::client::{self, Handle, Msg};
use russh::keys::{
    HashAlg, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate, decode_secret_key,
};
use russh::{Channel, ChannelMsg};
use tokio::runtime::{self, Runtime};

use self::known_hosts::{KnownHosts, Verdict};
use super::advertisement::Advertisement;
use super::attempt::Attempt;
use crate::config::read_bounded_text;
use crate::git::failure::{FetchError, FetchFailure};
use crate::git::remote::Url;

const PORT: u16 = 22;

/// How often it is checked whether the daemon must stop.
const SLICE: Duration = Duration::from_millis(100);

/// How much of what the remote command complains is kept.
const COMPLAINT: usize = 1024;

pub(super) struct Ssh {
    attempt: Arc<Attempt>,
}

impl Ssh {
    pub(super) fn new(attempt: Arc<Attempt>) -> Self {
        Self { attempt }
    }

    fn open(&self, command: &str) -> Result<Stream, FetchError> {
        let attempt = Arc::clone(&self.attempt);
        let fail = |error: io::Error| attempt.error(FetchFailure::Other, error);
        let runtime = Background::new().map_err(fail)?;
        let (session, channel) = within(&runtime, &attempt, connect(&attempt, command))??;
        let rest = Incoming { data: Vec::new(), at: 0, complaint: Vec::new() };
        let advertisement = attempt.advertisement();
        Ok(Stream { runtime, _session: session, channel, rest, advertisement, attempt })
    }
}

impl SmartSubtransport for Ssh {
    fn action(
        &self,
        _url: &str,
        service: Service,
    ) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let command = match service {
            Service::UploadPackLs | Service::UploadPack => "git-upload-pack",
            Service::ReceivePackLs | Service::ReceivePack => "git-receive-pack",
        };
        let stream = self.open(command).map_err(|error| self.attempt.fail(error))?;
        Ok(Box::new(stream))
    }

    fn close(&self) -> Result<(), git2::Error> {
        Ok(())
    }
}

/// A runtime that is left behind when it is dropped. The system's resolver knows no deadline, and a
/// runtime that ends waits for it.
struct Background(Option<Runtime>);

impl Background {
    fn new() -> io::Result<Self> {
        runtime::Builder::new_current_thread().enable_all().build().map(|it| Self(Some(it)))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a step until it is done, the deadline passes or the daemon must stop.
fn within<T>(
    runtime: &Background,
    attempt: &Attempt,
    step: impl Future<Output = T>,
) -> Result<T, FetchError> {
    let Some(runtime) = &runtime.0 else { return Err(attempt.timed_out()) };
    runtime.block_on(async {
        let mut step = std::pin::pin!(step);
        loop {
            let left = attempt.remaining()?.min(SLICE);
            if let Ok(done) = tokio::time::timeout(left, &mut step).await {
                return Ok(done);
            }
        }
    })
}

/// Connects, checks who the host is, says who we are, and starts the command.
async fn connect(
    attempt: &Attempt,
    command: &str,
) -> Result<(Handle<Client>, Channel<Msg>), FetchError> {
    let wrong = |detail: &str| attempt.error(FetchFailure::InvalidSettings, detail);
    let url = attempt.remote.url().ok_or_else(|| wrong("it is not a URL"))?;
    let (host, port) = url.host_and_port();
    let port = match port {
        Some(text) => text.parse().map_err(|_| wrong("invalid port"))?,
        None => PORT,
    };
    let options = &attempt.ssh;
    let file = options.known_hosts_file.as_deref().ok_or_else(|| {
        let detail = "no file of known hosts is configured, so the host key cannot be verified";
        attempt.error(FetchFailure::HostKeyMismatch, detail)
    })?;
    let known = KnownHosts::read(file, host, port)
        .map_err(|error| wrong(&format!("`{}` cannot be read: {error}", file.display())))?;
    let key_file =
        options.key_file.as_deref().ok_or_else(|| wrong("no private key is configured"))?;
    let key = read_key(key_file).map_err(|error| wrong(&error))?;

    let refused = Arc::new(Mutex::new(None));
    let mut config = client::Config::default();
    // A server has keys of several kinds and shows the first that we ask for.
    config.preferred.key = known.preferred(&config.preferred.key).into();
    let client = Client { known, host: host.to_owned(), refused: Arc::clone(&refused) };
    let mut session =
        client::connect(Arc::new(config), (host, port), client).await.map_err(|error| {
            let refused = refused.lock().take();
            refused.map_or_else(
                || described(attempt, &error),
                |detail: String| attempt.error(FetchFailure::HostKeyMismatch, detail),
            )
        })?;
    let hash = session.best_supported_rsa_hash().await.ok().flatten().flatten();
    // SHA-1 is refused by servers of today, and by us.
    let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash.or(Some(HashAlg::Sha256)));
    let user = user(url);
    let accepted =
        session.authenticate_publickey(user, key).await.map_err(|it| described(attempt, &it))?;
    if !accepted.success() {
        let detail = format!("the host does not accept the key for the user `{user}`");
        return Err(attempt.error(FetchFailure::AuthenticationFailed, detail));
    }
    let channel = session.channel_open_session().await.map_err(|it| described(attempt, &it))?;
    let command = format!("{command} {}", quoted(&url.ssh_path()));
    channel.exec(true, command).await.map_err(|it| described(attempt, &it))?;
    Ok((session, channel))
}

fn user(url: &Url) -> &str {
    url.user.as_ref().map_or("git", |(name, _)| name)
}

fn read_key(path: &Path) -> Result<russh::keys::PrivateKey, String> {
    load_key(path)
        .map_err(|error| format!("the private key in `{}` cannot be used: {error}", path.display()))
}

/// Checks that a file has a private key that can be used: one without a passphrase.
///
/// # Errors
///
/// Returns what is wrong with it.
pub fn check_private_key(path: &Path) -> Result<(), String> {
    load_key(path).map(drop).map_err(|error| error.to_string())
}

fn load_key(path: &Path) -> Result<russh::keys::PrivateKey, russh::keys::Error> {
    decode_secret_key(&read_bounded_text(path)?, None)
}

/// Checks that a file of known hosts can be used.
///
/// # Errors
///
/// Returns what is wrong with it.
pub fn check_known_hosts(path: &Path) -> Result<(), String> {
    known_hosts::check(path).map_err(|error| error.to_string())
}

/// Quotes a path for the shell at the other end.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

fn described(attempt: &Attempt, error: &russh::Error) -> FetchError {
    let failure = match error {
        russh::Error::IO(error) => match error.kind() {
            io::ErrorKind::TimedOut => FetchFailure::Timeout,
            // What the resolver says has no kind of its own.
            _ if error.to_string().contains("lookup address") => FetchFailure::DnsFailed,
            _ => FetchFailure::ConnectFailed,
        },
        russh::Error::UnknownKey | russh::Error::WrongServerSig => FetchFailure::HostKeyMismatch,
        russh::Error::NoCommonAlgo { .. } => FetchFailure::HostKeyMismatch,
        _ => FetchFailure::ConnectFailed,
    };
    attempt.error(failure, error)
}

/// Our side of the connection: it knows which host keys to trust.
struct Client {
    known: KnownHosts,
    host: String,
    refused: Arc<Mutex<Option<String>>>,
}

impl client::Handler for Client {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let key: PublicKey = match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => key.clone(),
            PublicKeyOrCertificate::Certificate(certificate) => {
                PublicKey::from(certificate.public_key().clone())
            }
        };
        let fingerprint = key.fingerprint(HashAlg::Sha256);
        let why = match self.known.verdict(&key) {
            Verdict::Known => return Ok(true),
            Verdict::Unknown => "is not known",
            Verdict::Other => "is not the known one",
            Verdict::Revoked => "is revoked",
        };
        let detail = format!("the host key {fingerprint} of `{}` {why}", self.host);
        *self.refused.lock() = Some(detail);
        Ok(false)
    }
}

struct Stream {
    runtime: Background,
    /// The connection ends when this is dropped.
    _session: Handle<Client>,
    channel: Channel<Msg>,
    rest: Incoming,
    advertisement: Advertisement,
    attempt: Arc<Attempt>,
}

/// What came and is not read yet.
struct Incoming {
    data: Vec<u8>,
    at: usize,
    complaint: Vec<u8>,
}

impl Stream {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, FetchError> {
        while self.rest.at >= self.rest.data.len() {
            let message = within(&self.runtime, &self.attempt, self.channel.wait())?;
            match message {
                Some(ChannelMsg::Data { data }) => {
                    self.attempt.check(&data)?;
                    self.rest.data = data.to_vec();
                    self.rest.at = 0;
                }
                Some(ChannelMsg::ExtendedData { data, .. }) => {
                    let room = COMPLAINT.saturating_sub(self.rest.complaint.len());
                    self.rest.complaint.extend(data.iter().take(room));
                }
                Some(ChannelMsg::Failure) => {
                    let detail = "the host does not run the command";
                    return Err(self.attempt.error(FetchFailure::ConnectFailed, detail));
                }
                Some(ChannelMsg::ExitStatus { exit_status }) if exit_status != 0 => {
                    return Err(self.complain());
                }
                Some(ChannelMsg::Eof | ChannelMsg::Close) | None => {
                    return if self.rest.complaint.is_empty() {
                        Ok(0)
                    } else {
                        Err(self.complain())
                    };
                }
                Some(_) => {}
            }
        }
        let left = self.rest.data.get(self.rest.at..).unwrap_or_default();
        let bytes = left.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(left) {
            *to = *from;
        }
        self.rest.at += bytes;
        Ok(bytes)
    }

    /// Tells what the remote command says that is wrong.
    fn complain(&self) -> FetchError {
        let text = String::from_utf8_lossy(&self.rest.complaint);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
        let said = lines.join("; ");
        let lower = said.to_lowercase();
        let failure = match lower.as_str() {
            it if [
                "not found",
                "does not exist",
                "not appear to be a git repository",
                "no such",
            ]
            .iter()
            .any(|part| it.contains(part)) =>
            {
                FetchFailure::RepositoryNotFound
            }
            it if it.contains("denied") || it.contains("not allowed") => {
                FetchFailure::AuthenticationFailed
            }
            _ => FetchFailure::ConnectFailed,
        };
        let detail =
            if said.is_empty() { "the command failed at the host".to_owned() } else { said };
        self.attempt.error(failure, detail)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut advertisement = std::mem::take(&mut self.advertisement);
        let received = advertisement.read_from(buffer, |it| self.receive(it));
        self.advertisement = advertisement;
        received.map_err(|error| self.attempt.fail_io(error))
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let attempt = Arc::clone(&self.attempt);
        attempt.note_sent(buffer);
        let sent = within(&self.runtime, &attempt, self.channel.data(buffer))
            .and_then(|sent| sent.map_err(|error| described(&attempt, &error)));
        sent.map(|()| buffer.len()).map_err(|error| attempt.fail_io(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell() {
        assert_eq!(quoted("/srv/a b.git"), "'/srv/a b.git'");
        assert_eq!(quoted("x'; rm -rf '/"), r"'x'\''; rm -rf '\''/'");
    }
}
