//! The certificates of a client, and why one of them ends a connection.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, CertificateError, InconsistentKeys};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::identity::read;
use super::{ClientError, Identity};
use crate::config::{read_certificates, read_private_key};
use crate::diagnostic::visible_up_to;

/// The most characters that are shown of a name in a certificate.
const NAME: usize = 200;

/// The certificates of a connection, for its errors.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    own: Option<OwnCertificate>,
    ca: Option<PathBuf>,
}

/// Our certificate.
#[derive(Debug)]
struct OwnCertificate {
    path: PathBuf,
    subject: String,
    from: i64,
    until: i64,
}

impl Certificates {
    /// Reads the files of an identity.
    pub(super) fn read(identity: &Identity) -> Result<(Self, TlsConfig), ClientError> {
        let roots = match &identity.tls_ca {
            None => RootCerts::WebPki,
            Some(path) => RootCerts::Specific(Arc::new(certificates(path, &read(path)?)?)),
        };
        let (own, client) = match (&identity.tls_cert, &identity.tls_key) {
            (Some(certificate), Some(key)) => {
                let (own, client) = OwnCertificate::read(certificate, key)?;
                (Some(own), Some(client))
            }
            _ => (None, None),
        };
        let config = TlsConfig::builder().root_certs(roots).client_cert(client).build();
        Ok((Self { own, ca: identity.tls_ca.clone() }, config))
    }

    /// Returns what certificates have to do with an error at this time, if they have.
    pub(super) fn explain(
        &self,
        error: &ureq::Error,
        server: &str,
        now: Timestamp,
    ) -> Option<String> {
        let invalid = || self.own.as_ref().and_then(|own| own.invalid_at(now));
        Some(match CertificateFailure::of(error)? {
            CertificateFailure::Server(why) => self.server_problem(why, server),
            CertificateFailure::Alert(alert) => match (invalid(), &self.own) {
                (Some(why), _) => why,
                (None, Some(own)) if refuses_certificate(alert) => {
                    format!("the server refuses {own}: {}", meaning(alert))
                }
                (None, None) if alert == AlertDescription::CertificateRequired => {
                    "the server requires a client certificate: use --tls-cert and --tls-key"
                        .to_owned()
                }
                _ => format!("the server ended the TLS handshake: alert {alert:?}"),
            },
            // The alert may be lost on the way.
            CertificateFailure::Closed => invalid()?,
        })
    }

    fn server_problem(&self, why: &CertificateError, server: &str) -> String {
        let time = |it: &rustls::pki_types::UnixTime| {
            time(i64::try_from(it.as_secs()).unwrap_or(i64::MAX))
        };
        match why {
            CertificateError::ExpiredContext { not_after, .. } => {
                let since = time(not_after);
                format!("the certificate of the server expired at {since}: renew it there, or check the clock here")
            }
            CertificateError::NotValidYetContext { not_before, .. } => {
                let from = time(not_before);
                format!("the certificate of the server is not valid before {from}: check the clocks")
            }
            CertificateError::NotValidForNameContext { expected, presented } => {
                let expected = expected.to_str();
                let names: Vec<String> = presented.iter().map(|it| visible_up_to(bare(it), NAME)).collect();
                let names = names.join(", ");
                format!("the certificate of the server is not valid for `{expected}`, but for: {names}")
            }
            // A new authority often has the name of the old one.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => match &self.ca {
                Some(ca) => format!(
                    "the certificate of the server is not signed by an authority in `{}`",
                    ca.display()
                ),
                None => "the certificate of the server is not signed by a public authority: use --tls-ca"
                    .to_owned(),
            },
            CertificateError::Other(why) => format!(
                "the certificate of `{server}` cannot be used: {}; it must be that of a server, signed by an authority",
                why.0
            ),
            other => format!("the certificate of `{server}` is not valid: {other}"),
        }
    }
}

/// How a connection ended that certificates may have ended.
enum CertificateFailure<'e> {
    /// We refuse the server's certificate.
    Server(&'e CertificateError),
    /// The server refuses something, and says what.
    Alert(AlertDescription),
    /// The server closed the connection.
    Closed,
}

impl<'e> CertificateFailure<'e> {
    fn of(error: &'e ureq::Error) -> Option<Self> {
        let tls = match error {
            ureq::Error::Rustls(error) => Some(error),
            ureq::Error::Io(error) => {
                error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>())
            }
            _ => None,
        };
        match (tls, error) {
            (Some(rustls::Error::InvalidCertificate(why)), _) => Some(Self::Server(why)),
            (Some(rustls::Error::AlertReceived(alert)), _) => Some(Self::Alert(*alert)),
            (None, ureq::Error::Io(error)) => matches!(
                error.kind(),
                ErrorKind::BrokenPipe
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::UnexpectedEof
            )
            .then_some(Self::Closed),
            _ => None,
        }
    }
}

impl OwnCertificate {
    fn read(certificate: &Path, key: &Path) -> Result<(Self, ClientCert), ClientError> {
        let (shown, shown_key) = (certificate.display(), key.display());
        let (pem, key_pem) = (read(certificate)?, read(key)?);
        let chain = certificates(certificate, &pem)?;
        let unusable = |error: &dyn fmt::Display| {
            ClientError::Setup(format!("the private key in `{shown_key}` cannot be used: {error}"))
        };
        let der = read_private_key(&key_pem).map_err(|error| unusable(&error))?;
        let private = PrivateKey::from_pem(&key_pem).map_err(|error| unusable(&error))?;
        check_pair(&chain, der).map_err(|error| ClientError::Setup(match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => format!(
                "the private key in `{shown_key}` does not belong to the certificate in `{shown}`"
            ),
            error => format!(
                "cannot use the client certificate in `{shown}` with the private key in `{shown_key}`: {error}"
            ),
        }))?;
        let first = chain.first().map(Certificate::der).unwrap_or_default();
        let (_, parsed) = X509Certificate::from_der(first).map_err(|error| {
            ClientError::Setup(format!(
                "the client certificate in `{shown}` cannot be read: {error}"
            ))
        })?;
        let validity = parsed.validity();
        let own = Self {
            path: certificate.to_owned(),
            subject: visible_up_to(&parsed.subject().to_string(), NAME),
            from: validity.not_before.timestamp(),
            until: validity.not_after.timestamp(),
        };
        Ok((own, ClientCert::new_with_certs(&chain, private)))
    }

    /// Returns why it is not valid, if it is not.
    fn invalid_at(&self, now: Timestamp) -> Option<String> {
        let now = now.as_second();
        if self.until < now {
            let since = time(self.until);
            Some(format!("{self} expired at {since}: renew it"))
        } else if self.from > now {
            let from = time(self.from);
            Some(format!("{self} is not valid before {from}: check the clock"))
        } else {
            None
        }
    }
}

impl fmt::Display for OwnCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the client certificate in `{}` ({})", self.path.display(), self.subject)
    }
}

/// Checks that a certificate can be used with a key: the client library takes that for granted.
fn check_pair(
    chain: &[Certificate<'static>],
    key: PrivateKeyDer<'static>,
) -> Result<(), rustls::Error> {
    let chain = chain.iter().map(|it| CertificateDer::from(it.der().to_vec())).collect();
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map(|_| ())
}

fn refuses_certificate(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::DecryptError
    )
}

/// Returns what an alert says of our certificate.
fn meaning(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRevoked => "it is revoked".to_owned(),
        AlertDescription::CertificateExpired => {
            "it is expired or not valid yet by the server's clock".to_owned()
        }
        // An authority of the same name and another key is a bad signature.
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "the server does not know its authority, or has no valid revocation list of it"
                .to_owned()
        }
        other => format!("alert {other:?}"),
    }
}

/// Returns a DNS name as people write it: the library quotes it.
fn bare(name: &str) -> &str {
    name.strip_prefix("DnsName(\"").and_then(|it| it.strip_suffix("\")")).unwrap_or(name)
}

fn time(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |it| it.to_string())
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<Certificate<'static>>, ClientError> {
    let found = read_certificates(pem).map_err(|error| {
        let shown = path.display();
        ClientError::Setup(format!("the certificates in `{shown}` cannot be used: {error}"))
    })?;
    Ok(found.iter().map(|it| Certificate::from_der(it).to_owned()).collect())
}
