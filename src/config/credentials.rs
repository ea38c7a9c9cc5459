//! Files of secrets and of authorities, read when they are used.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use ureq::tls::{Certificate, PemItem, parse_pem};

use super::bounded_file::{read_bounded, read_bounded_text};

/// Why a file of credentials cannot be used, as the end of a sentence about it.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// It cannot be read, or is not text.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// A secret is one line.
    #[error("has more than one line")]
    Lines,
    /// There is no certificate in it.
    #[error("has no certificate in PEM form")]
    NoCertificate,
    /// A certificate in it cannot be used.
    #[error("has a certificate that cannot be used: {0}")]
    Certificate(String),
}

/// Reads a secret: one line. The line break that editors leave at the end does not count.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is empty, or has more than one line.
pub fn read_secret(path: &Path) -> Result<String, CredentialError> {
    let text =
        read_bounded_text(path).map_err(|error| CredentialError::Unreadable(error.to_string()))?;
    let text = text.trim_end_matches(['\r', '\n']);
    match text {
        _ if text.trim().is_empty() => Err(CredentialError::Empty),
        _ if text.chars().any(char::is_control) => Err(CredentialError::Lines),
        _ => Ok(text.to_owned()),
    }
}

/// Reads the certificates of authorities, as PEM.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or has no certificate, or one that cannot be used.
pub fn read_authorities(path: &Path) -> Result<Vec<Certificate<'static>>, CredentialError> {
    let pem = read_bounded(path).map_err(|error| CredentialError::Unreadable(error.to_string()))?;
    let unusable = |error: &dyn std::fmt::Display| CredentialError::Certificate(error.to_string());
    let (mut found, mut roots) = (Vec::new(), RootCertStore::empty());
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| unusable(&error))? {
            let der = CertificateDer::from(certificate.der().to_vec());
            roots.add(der).map_err(|error| unusable(&error))?;
            found.push(certificate);
        }
    }
    if found.is_empty() { Err(CredentialError::NoCertificate) } else { Ok(found) }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "credentials are files")]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_refused_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (text, secret, authorities) in [
            ("", "is empty", "has no certificate in PEM form"),
            (" \n\n", "is empty", "has no certificate in PEM form"),
            ("a\nb\n", "has more than one line", "has no certificate in PEM form"),
            (damaged, "has more than one line", "has a certificate that cannot be used: "),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read_secret(&path).unwrap_err().to_string(), secret);
            let error = read_authorities(&path).unwrap_err().to_string();
            assert!(error.starts_with(authorities), "{error}");
        }
        std::fs::write(&path, " token\r\n").unwrap();
        assert_eq!(read_secret(&path).unwrap(), " token");
        std::fs::write(&path, [0xff]).unwrap();
        assert!(read_secret(&path).unwrap_err().to_string().starts_with("cannot be read: "));
        assert!(read_secret(directory.path().join("none").as_path()).is_err());
    }
}
