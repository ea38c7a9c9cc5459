//! TLS: our certificate, and those of clients. Files that change are read anew.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::facts::{CertificateFacts, ExtensionNames};

/// The files of TLS, and what they say now.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    client_crl: Option<PathBuf>,
    config: ArcSwap<ServerConfig>,
}

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error("`{}` cannot be used: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// They do not fit together.
    #[error("the certificate and its key cannot be used: {0}")]
    Setup(String),
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// Returns an error if one cannot be used.
    pub fn new(
        certificate: PathBuf,
        key: PathBuf,
        client_ca: Option<PathBuf>,
        client_crl: Option<PathBuf>,
    ) -> Result<Self, TlsError> {
        let config = configure(&certificate, &key, client_ca.as_deref(), client_crl.as_deref())?;
        Ok(Self { certificate, key, client_ca, client_crl, config: ArcSwap::from_pointee(config) })
    }

    /// Reads the files anew; files that cannot be used leave what is known.
    pub fn reload(&self) {
        let config = configure(
            &self.certificate,
            &self.key,
            self.client_ca.as_deref(),
            self.client_crl.as_deref(),
        );
        match config {
            Ok(config) => {
                self.config.store(Arc::new(config));
                tracing::info!("the certificates were read anew");
            }
            Err(error) => tracing::warn!(%error, "the certificates cannot be read anew"),
        }
    }

    /// Returns the files that are read.
    pub fn files(&self) -> Vec<PathBuf> {
        let optional = [self.client_ca.clone(), self.client_crl.clone()];
        [self.certificate.clone(), self.key.clone()]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .collect()
    }

    /// Shakes hands with a client and reads its certificate, if it has one.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<CertificateFacts>)> {
        let stream = TlsAcceptor::from(self.config.load_full()).accept(stream).await?;
        let (_, session) = stream.get_ref();
        let shown = session.peer_certificates().and_then(<[_]>::first);
        let certificate = match shown {
            None => None,
            // One that nobody can read names nobody, and must not pass for nobody's.
            Some(der) => {
                Some(CertificateFacts::read(der, &ExtensionNames::default()).ok_or_else(|| {
                    io::Error::other("the client's certificate has no common name that can be read")
                })?)
            }
        };
        Ok((stream, certificate))
    }
}

fn file_error<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> TlsError + '_ {
    move |error| TlsError::File { path: path.to_owned(), reason: error.to_string() }
}

fn configure(
    certificate: &Path,
    key: &Path,
    client_ca: Option<&Path>,
    client_crl: Option<&Path>,
) -> Result<ServerConfig, TlsError> {
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(file_error(key))?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Setup(error.to_string()))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path)? {
                roots.add(authority).map_err(file_error(path))?;
            }
            let mut verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    // Who shows none is nobody; what nobody may do is decided elsewhere.
                    .allow_unauthenticated();
            if let Some(path) = client_crl {
                let lists: Vec<CertificateRevocationListDer<'static>> =
                    CertificateRevocationListDer::pem_file_iter(path)
                        .map_err(file_error(path))?
                        .collect::<Result<_, _>>()
                        .map_err(file_error(path))?;
                verifier = verifier.with_crls(lists).allow_unknown_revocation_status();
            }
            // The authorities were read one by one; what is left to be wrong is in the list.
            let verifier = verifier.build().map_err(file_error(client_crl.unwrap_or(path)))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, private)
        .map_err(|error| TlsError::Setup(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(file_error(path))?
        .collect::<Result<_, _>>()
        .map_err(file_error(path))?;
    if found.is_empty() {
        return Err(file_error(path)("there is no certificate in it"));
    }
    Ok(found)
}
