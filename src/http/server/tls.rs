//! TLS: the daemon's certificate and the verification of client certificates. Changed files are reloaded.

mod authority;
mod configure;
mod described;
mod error;
mod files;
mod newest;
mod rollback;
mod trust_set;
mod verifier;
mod verifier_set;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::HandshakeKind;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub use error::TlsError;
pub use files::{CrlPolicy, OnGap, TlsFiles};

use configure::{Setup, validity};
pub(super) use described::described;
use rollback::UsedLists;
use verifier::REFUSED;

use crate::config::watched::{ReloadCause, Reloaded, WatchError, WatchedFiles};
use crate::facts::{CertificateFacts, ExtensionNames};

/// How often the client certificate of an open connection is verified again at the least, beside reloads and when
/// something expires: the clock may be set.
const RECHECK: Duration = Duration::from_mins(1);

/// How long a client may take to read why its handshake failed.
const LINGER: Duration = Duration::from_secs(2);

/// The TLS settings in use.
#[derive(Debug)]
pub struct Tls {
    watched: WatchedFiles<Setup, TlsError>,
    /// Notifies of reloaded files.
    reloads: watch::Sender<()>,
}

/// The certificate of a client.
#[derive(Debug)]
pub(super) struct ClientCertificate {
    pub(super) facts: CertificateFacts,
    chain: Vec<CertificateDer<'static>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// Returns an error if one cannot be used.
    pub fn open(files: TlsFiles) -> Result<Self, WatchError<TlsError>> {
        let used_lists: Mutex<UsedLists> = Mutex::default();
        let own_until: Mutex<Option<i64>> = Mutex::default();
        let watched = WatchedFiles::open(configure::watched_files(&files), move |contents| {
            let mut used_lists = used_lists.lock();
            let setup = configure::configure(&files, contents)?;
            // One that is valid stays in use; where it has expired as well, the other files still count.
            let (new, mut old) = (setup.own_until(), own_until.lock());
            let now = jiff::Timestamp::now().as_second();
            if let Some(until) = new.filter(|it| *it < now)
                && old.is_some_and(|it| it >= now)
            {
                let reason = format!("the certificate expired at {}", described::time(until));
                return Err(TlsError::File { path: files.certificate.clone(), reason });
            }
            let issues = &setup.clients.issues;
            if let Some(reason) = used_lists.refusal(issues, now, files.policy.expired) {
                let path = files.client_crl.clone().unwrap_or_default();
                return Err(TlsError::File { path, reason });
            }
            for name in used_lists.replace(issues) {
                warn_of_lost_list(&name, files.policy.missing);
            }
            *old = new;
            Ok(setup)
        })?;
        Ok(Self { watched, reloads: watch::Sender::new(()) })
    }

    /// Loads files that changed, and verifies the certificates of open connections again.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be used; what is in use stays.
    pub fn reload(&self, cause: ReloadCause) -> Result<Reloaded, WatchError<TlsError>> {
        let reloaded = self.watched.reload(cause)?;
        if reloaded == Reloaded::Loaded {
            self.reloads.send_replace(());
        }
        Ok(reloaded)
    }

    /// Returns the warnings about the certificates and lists in use at a time, such as expiry.
    pub fn warnings(&self, now: jiff::Timestamp) -> Vec<String> {
        self.watched.load().warnings(now)
    }

    /// Returns until when each certificate and list in use is valid, in seconds since 1970.
    pub fn valid_until(&self) -> Vec<(&'static str, i64)> {
        self.watched.load().valid_until()
    }

    /// Shakes hands with a client and reads its certificate, if it has one.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<ClientCertificate>)> {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.watched.load().config));
        let stream = match acceptor.accept(stream).into_fallible().await {
            Ok(stream) => stream,
            Err((error, stream)) => {
                // Unread bytes would reset the connection, and take the alert with them.
                let _gone = tokio::time::timeout(LINGER, drain(stream)).await;
                return Err(error);
            }
        };
        let (_, session) = stream.get_ref();
        let chain = session.peer_certificates().unwrap_or_default();
        let Some(der) = chain.first() else { return Ok((stream, None)) };
        // Reject unreadable certificates; never treat them as anonymous.
        let facts = CertificateFacts::read(der, &ExtensionNames::default()).ok_or_else(|| {
            io::Error::other("the client's certificate has no common name that can be read")
        })?;
        let chain = chain.iter().map(|it| it.clone().into_owned()).collect();
        let certificate = ClientCertificate { facts, chain };
        // The library does not check certificates of resumed sessions.
        if session.handshake_kind() == Some(HandshakeKind::Resumed) {
            self.check(&certificate).map_err(io::Error::other)?;
        }
        Ok((stream, Some(certificate)))
    }

    /// Runs a handshake, and returns why the client certificate was refused, if it was.
    pub(super) async fn noting_refusals<T>(shake: impl Future<Output = T>) -> (T, Option<String>) {
        let noted = async {
            let done = shake.await;
            (done, REFUSED.with(std::cell::RefCell::take))
        };
        REFUSED.scope(std::cell::RefCell::default(), noted).await
    }

    /// Waits until a client certificate is no longer valid, and returns why. It looks when it is polled first.
    pub(super) async fn until_refused(&self, certificate: &ClientCertificate) -> String {
        let mut reloads = self.reloads.subscribe();
        let expiries: Vec<i64> =
            certificate.chain.iter().filter_map(validity).map(|it| it.1).collect();
        loop {
            if let Err(error) = self.check(certificate) {
                let shown = certificate.chain.first().map(described).unwrap_or_default();
                return format!("{shown}: {error}");
            }
            // The sender lives as long as `self`.
            let wait = self.until_expiry(&expiries, jiff::Timestamp::now()).min(RECHECK);
            let _reloaded = tokio::time::timeout(wait, reloads.changed()).await;
        }
    }

    /// Returns how long it takes until a certificate or a list expires that is valid now.
    fn until_expiry(&self, certificates: &[i64], now: jiff::Timestamp) -> Duration {
        let lists = self.watched.load().valid_until();
        let lists = lists.iter().map(|it| it.1);
        let ends = certificates.iter().copied().chain(lists).filter(|it| *it >= now.as_second());
        // It is valid in its last second as well.
        let left = ends.min().map(|it| jiff::Timestamp::from_second(it.saturating_add(1)));
        let left = left.and_then(Result::ok).map(|it| it.duration_since(now).unsigned_abs());
        left.unwrap_or(Duration::MAX)
    }

    fn check(&self, certificate: &ClientCertificate) -> Result<(), rustls::Error> {
        let setup = self.watched.load();
        let Some(verifier) = &setup.clients.verifier else { return Ok(()) };
        let Some((own, others)) = certificate.chain.split_first() else { return Ok(()) };
        verifier.verify_client_cert(own, others, UnixTime::now()).map(|_| ())
    }
}

fn warn_of_lost_list(name: &str, missing: OnGap) {
    let effect = match missing {
        OnGap::Refuse => "certificates that it issued are refused",
        OnGap::Allow => {
            "certificates that it issued are accepted, revoked or not, where they are trusted"
        }
    };
    tracing::warn!("the revocation lists of `{name}` are gone from their file: {effect}");
}

/// Closes the daemon's half of a connection, and reads what the client still sends.
async fn drain(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut left = 64 << 10;
    let mut buffer = [0; 1024];
    while left > 0 {
        match stream.read(&mut buffer).await? {
            0 => break,
            count => left = usize::saturating_sub(left, count),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
