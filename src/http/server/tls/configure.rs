//! Makes the configuration of the TLS library from the contents of the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{InconsistentKeys, RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::authority::Lists;
use super::described::{described, short, time};
use super::error::{TlsError, file_error};
use super::files::{CrlPolicy, OnGap, TlsFiles};
use super::rollback::Issues;
use super::trust_set::{TrustSet, trust_sets};
use super::verifier::Noting;
use super::verifier_set::VerifierSet;
use crate::config::watched::{FileEnd, WatchedFile};
use crate::config::{read_certificates, read_private_key};

/// The configuration that the files make.
pub(super) struct Setup {
    pub(super) config: Arc<ServerConfig>,
    pub(super) clients: Clients,
    policy: CrlPolicy,
    /// The daemon's certificate, described, with its time of validity.
    own: Option<(String, i64, i64)>,
}

/// The authorities and lists that verify client certificates.
#[derive(Default)]
pub(super) struct Clients {
    pub(super) verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// Each authority with the end of its validity.
    authorities: Vec<(String, i64)>,
    /// Each revocation list with the end of its validity.
    lists: Vec<(String, i64)>,
    /// Which list of each authority it is.
    pub(super) issues: Issues,
    /// Authorities without a list, and the file that should have it.
    missing: Vec<String>,
    crl: PathBuf,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Setup {
    /// Returns until when the daemon's own certificate is valid, in seconds since 1970.
    pub(super) fn own_until(&self) -> Option<i64> {
        self.own.as_ref().map(|it| it.2)
    }

    pub(super) fn warnings(&self, now: jiff::Timestamp) -> Vec<String> {
        let now = now.as_second();
        let mut all = Vec::new();
        if let Some((own, from, until)) = &self.own {
            if *until < now {
                let since = time(*until);
                all.push(format!(
                    "the daemon's certificate expired at {since}, clients refuse it: {own}"
                ));
            } else if *from > now {
                let from = time(*from);
                all.push(format!("the daemon's certificate is not valid before {from}: {own}"));
            }
        }
        for (name, until) in self.clients.authorities.iter().filter(|it| it.1 < now) {
            let since = time(*until);
            all.push(format!("the authority `{name}` of client certificates expired at {since}"));
        }
        for (name, until) in self.clients.lists.iter().filter(|it| it.1 < now) {
            let effect = match self.policy.expired {
                OnGap::Refuse => "certificates that it covers are refused",
                OnGap::Allow => "it still counts, by `--tls-client-crl-expired allow`",
            };
            let since = time(*until);
            all.push(format!("the revocation list of `{name}` expired at {since}: {effect}"));
        }
        for name in &self.clients.missing {
            all.push(format!(
                "`{}` has no revocation list of `{name}`: its certificates are accepted, revoked or not",
                self.clients.crl.display()
            ));
        }
        all
    }

    pub(super) fn valid_until(&self) -> Vec<(&'static str, i64)> {
        let earliest = |all: &[(String, i64)]| all.iter().map(|it| it.1).min();
        let own = self.own.as_ref().map(|it| it.2);
        [
            ("certificate", own),
            ("client-ca", earliest(&self.clients.authorities)),
            ("client-crl", earliest(&self.clients.lists)),
        ]
        .into_iter()
        .filter_map(|(name, until)| Some((name, until?)))
        .collect()
    }
}

/// Returns the files in the order in which [`configure`] takes their contents.
pub(super) fn watched_files(files: &TlsFiles) -> Vec<WatchedFile> {
    let all = [
        Some(&files.certificate),
        Some(&files.key),
        files.client_ca.as_ref(),
        files.client_crl.as_ref(),
    ];
    let watched = |path: &PathBuf| WatchedFile { path: path.clone(), ending: FileEnd::Format };
    all.into_iter().flatten().map(watched).collect()
}

pub(super) fn configure(files: &TlsFiles, contents: &[Vec<u8>]) -> Result<Setup, TlsError> {
    let mut contents = contents.iter().map(Vec::as_slice);
    let mut next = || contents.next().unwrap_or_default();
    let chain = certificates(&files.certificate, next())?;
    let private = read_private_key(next()).map_err(file_error(&files.key))?;
    let pair = |error: rustls::Error| TlsError::Pair {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        reason: match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                "the key does not belong to the certificate".to_owned()
            }
            error => error.to_string(),
        },
    };
    let own = chain.first().and_then(|der| {
        let (_, it) = X509Certificate::from_der(der).ok()?;
        let (from, until) = (it.validity().not_before, it.validity().not_after);
        Some((described(der), from.timestamp(), until.timestamp()))
    });
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(pair)?;
    let clients = match &files.client_ca {
        None => Clients::default(),
        Some(path) => clients(files, path, next(), next(), &provider)?,
    };
    let builder = match &clients.verifier {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(Arc::new(Noting(Arc::clone(verifier)))),
    };
    let mut config = builder.with_single_cert(chain, private).map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Setup { config: Arc::new(config), policy: files.policy, own, clients })
}

/// Reads the authorities and lists that verify client certificates.
fn clients(
    files: &TlsFiles,
    ca: &Path,
    ca_bytes: &[u8],
    crl_bytes: &[u8],
    provider: &Arc<CryptoProvider>,
) -> Result<Clients, TlsError> {
    let anchors = certificates(ca, ca_bytes)?;
    let subjects = roots(&anchors).map_err(file_error(ca))?.subjects();
    let mut clients = Clients {
        authorities: anchors.iter().filter_map(validity).collect(),
        ..Clients::default()
    };
    let sets = match &files.client_crl {
        None => vec![TrustSet { anchors, lists: Vec::new() }],
        Some(crl) => {
            let lists = Lists::read(crl, crl_bytes, &anchors, files.policy)?;
            (clients.lists, clients.missing) = (lists.validity, lists.missing);
            (clients.issues, clients.crl) = (lists.issues, crl.clone());
            trust_sets(&lists.authorities).map_err(file_error(crl))?
        }
    };
    // The authorities were read one by one; what is left to be wrong is in the lists.
    let checked = files.client_crl.as_deref().unwrap_or(ca);
    let verifiers = sets
        .into_iter()
        .map(|set| verifier(set, files.policy, provider).map_err(file_error(checked)))
        .collect::<Result<_, _>>()?;
    clients.verifier = VerifierSet::of(verifiers, subjects);
    Ok(clients)
}

/// Makes the verifier of a set. Without any list it checks no revocation: then each status is allowed to be unknown.
fn verifier(
    set: TrustSet,
    policy: CrlPolicy,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let roots = roots(&set.anchors).map_err(|it| it.to_string())?;
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    // No certificate: anonymous. What anonymous callers may do is decided elsewhere.
    let mut builder = builder.allow_unauthenticated().with_crls(set.lists);
    if policy.missing == OnGap::Allow {
        builder = builder.allow_unknown_revocation_status();
    }
    if policy.expired == OnGap::Refuse {
        builder = builder.enforce_revocation_expiration();
    }
    builder.build().map_err(|it| it.to_string())
}

fn roots(anchors: &[CertificateDer<'_>]) -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for anchor in anchors {
        roots.add(anchor.clone())?;
    }
    Ok(roots)
}

/// Returns the name of a certificate, and until when it is valid, in seconds since 1970.
pub(super) fn validity(der: &CertificateDer<'_>) -> Option<(String, i64)> {
    let (_, it) = X509Certificate::from_der(der).ok()?;
    Some((short(&it.subject().to_string()), it.validity().not_after.timestamp()))
}

fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    read_certificates(bytes).map_err(file_error(path))
}
