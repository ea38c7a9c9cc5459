//! Certificates and private keys in PEM files, and what one that cannot be used has in the place of them.

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

/// Why a PEM file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// Something else is in it, or nothing.
    #[error("there is no {0} in it")]
    Missing(&'static str),
    /// It holds the bytes that PEM writes as text.
    #[error("it is DER and not PEM: `openssl {0} -inform DER -in FILE -out NEW` converts it")]
    Der(&'static str),
    /// The key has a passphrase, and a daemon starts without a person to type it.
    #[error(
        "the private key is encrypted: write it without a passphrase (`openssl pkey -in FILE -out NEW`), readable by its owner alone"
    )]
    Encrypted,
    /// The end of the file is not there.
    #[error("it is cut: `-----END {0}-----` is missing")]
    Cut(String),
    /// A line that begins a section is not one.
    #[error("it is damaged: `{0}` is not a line that begins a section")]
    BadBegin(String),
    /// What stands between the lines of a section is not base64.
    #[error("it is damaged: what stands in a section is not base64")]
    BadBase64,
    /// Another fault.
    #[error("{0}")]
    Other(String),
    /// The key is of a kind that TLS does not use here.
    #[error(
        "the private key is of a kind that is not supported: use RSA, ECDSA with P-256 or P-384, or Ed25519"
    )]
    UnsupportedKey,
}

/// The most bytes of a damaged line that are shown.
const SHOWN: usize = 80;

/// Reads all certificates of a file, at least one.
///
/// # Errors
///
/// Returns what is in the file in their place.
pub fn read_certificates(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    all(bytes, "certificate", "x509")
}

/// Reads all revocation lists of a file, at least one.
///
/// # Errors
///
/// Returns what is in the file in their place.
pub fn read_revocation_lists(
    bytes: &[u8],
) -> Result<Vec<CertificateRevocationListDer<'static>>, PemError> {
    all(bytes, "revocation list", "crl")
}

/// Reads the first private key of a file, which TLS must be able to use.
///
/// # Errors
///
/// Returns what is in the file in its place.
pub fn read_private_key(bytes: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    let marks: [&[u8]; 2] = [b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED"];
    let is_encrypted = || marks.iter().any(|mark| bytes.windows(mark.len()).any(|it| it == *mark));
    let key = PrivateKeyDer::from_pem_slice(bytes).map_err(|error| {
        if is_encrypted() {
            PemError::Encrypted
        } else {
            fault(&error, bytes, "private key", "pkey")
        }
    })?;
    any_supported_type(&key).map_err(|_| PemError::UnsupportedKey)?;
    Ok(key)
}

fn all<T: PemObject>(
    bytes: &[u8],
    what: &'static str,
    command: &'static str,
) -> Result<Vec<T>, PemError> {
    let found: Vec<T> = T::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| fault(&error, bytes, what, command))?;
    if found.is_empty() {
        return Err(fault(&pem::Error::NoItemsFound, bytes, what, command));
    }
    Ok(found)
}

fn fault(error: &pem::Error, bytes: &[u8], what: &'static str, command: &'static str) -> PemError {
    match error {
        // A sequence of a length in two bytes, as those of all certificates and most keys.
        pem::Error::NoItemsFound if bytes.starts_with(&[0x30, 0x82]) => PemError::Der(command),
        pem::Error::NoItemsFound => PemError::Missing(what),
        pem::Error::MissingSectionEnd { end_marker } => {
            PemError::Cut(String::from_utf8_lossy(end_marker).escape_debug().to_string())
        }
        pem::Error::IllegalSectionStart { line } => {
            let shown = line.get(..SHOWN).unwrap_or(line);
            PemError::BadBegin(String::from_utf8_lossy(shown).escape_debug().to_string())
        }
        pem::Error::Base64Decode(_) => PemError::BadBase64,
        other => PemError::Other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, generate_simple_self_signed};

    use super::*;
    use crate::table::each_row;

    #[test]
    fn what_is_in_the_place_of_a_key_is_said() {
        let key = KeyPair::generate().unwrap();
        let pem = key.serialize_pem();
        assert!(read_private_key(pem.as_bytes()).is_ok());
        let cut = pem.split("-----END").next().unwrap();
        let certificate = generate_simple_self_signed(["a".to_owned()]).unwrap().cert.pem();
        let rows: Vec<(Vec<u8>, PemError)> = vec![
            (certificate.into_bytes(), PemError::Missing("private key")),
            (Vec::new(), PemError::Missing("private key")),
            (cut.as_bytes().to_vec(), PemError::Cut("PRIVATE KEY".to_owned())),
            (pem.replace("MI", "!!").into_bytes(), PemError::BadBase64),
            (pem.replace("BEGIN ", "BEGIN ENCRYPTED ").replace("END ", "END ENCRYPTED ").into_bytes(), PemError::Encrypted),
            (
                b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: x\n\nAAAA\n-----END RSA PRIVATE KEY-----\n".to_vec(),
                PemError::Encrypted,
            ),
            (
                b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_vec(),
                PemError::UnsupportedKey,
            ),
            (b"-----BEGIN X\nAAAA\n".to_vec(), PemError::BadBegin("-----BEGIN X".to_owned())),
        ];
        each_row(&rows, |(bytes, expected)| {
            assert_eq!(read_private_key(bytes).unwrap_err(), *expected);
        });
    }

    #[test]
    fn certificates_and_lists_are_read_as_pem_alone() {
        let made = generate_simple_self_signed(["a".to_owned()]).unwrap().cert;
        let pem = made.pem();
        let two = format!("{pem}text between\n{pem}");
        assert_eq!(read_certificates(two.as_bytes()).unwrap().len(), 2);
        assert_eq!(read_certificates(made.der()).unwrap_err(), PemError::Der("x509"));
        assert_eq!(read_certificates(b"hello").unwrap_err(), PemError::Missing("certificate"));
        let missing = PemError::Missing("revocation list");
        assert_eq!(read_revocation_lists(pem.as_bytes()).unwrap_err(), missing);
        // One that is cut does not go unnoticed behind a whole one.
        let cut = format!("{pem}{}", pem.split("-----END").next().unwrap());
        assert_eq!(
            read_certificates(cut.as_bytes()).unwrap_err(),
            PemError::Cut("CERTIFICATE".to_owned())
        );
    }
}
