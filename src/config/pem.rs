//! Certificates and private keys in PEM files, and what one that cannot be used has in the place of them.

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

/// Why a PEM file cannot be used. What is in it is not repeated: it may be a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// Something else is in it, or nothing.
    #[error("there is no {0} in it")]
    Missing(&'static str),
    /// It holds the bytes that PEM writes as text.
    #[error("it is DER and not PEM: `openssl {0} -inform DER -in FILE -out NEW` converts it")]
    Der(&'static str),
    /// A section does not begin on a line of its own.
    #[error(
        "its line breaks are missing: the marks of the {0} and the text between stand on lines of their own"
    )]
    OneLine(&'static str),
    /// The key has a passphrase, and a daemon starts without a person to type it.
    #[error(
        "the private key is encrypted: write it without a passphrase (`openssl pkey -in FILE -out NEW`), readable by its owner alone"
    )]
    Encrypted,
    /// The end of the file is not there.
    #[error("it is cut: the line that ends the {0} is missing")]
    Cut(&'static str),
    /// What stands between the lines of a section is not base64.
    #[error("the {0} in it is damaged: it is not base64")]
    BadBase64(&'static str),
    /// Another fault.
    #[error("the {0} in it is damaged")]
    Damaged(&'static str),
    /// TLS cannot use the key.
    #[error(
        "the private key cannot be used: it must be RSA of 2048 to 4096 bits, ECDSA with P-256 or P-384, or Ed25519"
    )]
    UnusableKey,
}

/// What is looked for in a file.
struct PemSection {
    name: &'static str,
    /// The command of OpenSSL that converts it.
    command: &'static str,
    /// How the labels of its sections end.
    label: &'static str,
}

const CERTIFICATE: PemSection =
    PemSection { name: "certificate", command: "x509", label: "CERTIFICATE" };
const REVOCATION_LIST: PemSection =
    PemSection { name: "revocation list", command: "crl", label: "X509 CRL" };
const PRIVATE_KEY: PemSection =
    PemSection { name: "private key", command: "pkey", label: "PRIVATE KEY" };

/// Reads all certificates of a file, at least one.
///
/// # Errors
///
/// Returns what is in the file in their place.
pub fn read_certificates(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    all(&CERTIFICATE, &sections(bytes, &CERTIFICATE)?)
}

/// Reads the first certificate of a file.
///
/// # Errors
///
/// Returns what is in the file in its place.
pub fn read_certificate(bytes: &[u8]) -> Result<CertificateDer<'static>, PemError> {
    let sections = sections(bytes, &CERTIFICATE)?;
    let first = CertificateDer::from_pem_slice(&sections);
    first.map_err(|error| fault(&error, &CERTIFICATE))
}

/// Reads all revocation lists of a file, at least one.
///
/// # Errors
///
/// Returns what is in the file in their place.
pub fn read_revocation_lists(
    bytes: &[u8],
) -> Result<Vec<CertificateRevocationListDer<'static>>, PemError> {
    all(&REVOCATION_LIST, &sections(bytes, &REVOCATION_LIST)?)
}

/// Reads the first private key of a file, which TLS must be able to use.
///
/// # Errors
///
/// Returns what is in the file in its place.
pub fn read_private_key(bytes: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    let sections = sections(bytes, &PRIVATE_KEY)?;
    let marks: [&[u8]; 2] = [b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED"];
    let is_encrypted = |mark: &[u8]| sections.windows(mark.len()).any(|it| it == mark);
    let key = PrivateKeyDer::from_pem_slice(&sections).map_err(|error| {
        if marks.into_iter().any(is_encrypted) {
            PemError::Encrypted
        } else {
            fault(&error, &PRIVATE_KEY)
        }
    })?;
    any_supported_type(&key).map_err(|_| PemError::UnusableKey)?;
    Ok(key)
}

fn all<T: PemObject>(wanted: &PemSection, sections: &[u8]) -> Result<Vec<T>, PemError> {
    let found: Vec<T> = T::pem_slice_iter(sections)
        .collect::<Result<_, _>>()
        .map_err(|error| fault(&error, wanted))?;
    if found.is_empty() { Err(PemError::Missing(wanted.name)) } else { Ok(found) }
}

/// Returns the sections of a file that are wanted: what else is in it, and whether that is damaged, does not count.
fn sections(bytes: &[u8], wanted: &PemSection) -> Result<Vec<u8>, PemError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut found = Vec::new();
    let mut end: Option<Vec<u8>> = None;
    for line in bytes.split(|it| matches!(it, b'\n' | b'\r')) {
        // Files that were put together may lack the line break between them.
        let (line, next) = match memchr::memmem::find(line, b"----------") {
            Some(at) => line.split_at_checked(at + 5).unwrap_or((line, b"")),
            None => (line, &b""[..]),
        };
        for line in [line, next] {
            if end.is_none() {
                end = end_of(line.trim_ascii(), wanted);
            }
            let Some(mark) = &end else { continue };
            found.extend_from_slice(line);
            found.push(b'\n');
            if line.trim_ascii().starts_with(mark) {
                end = None;
            }
        }
    }
    if end.is_some() {
        return Err(PemError::Cut(wanted.name));
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let mark = format!("{}-----", wanted.label);
    Err(match std::str::from_utf8(bytes) {
        Ok(text) if text.contains("-----BEGIN ") && text.contains(&mark) => {
            PemError::OneLine(wanted.name)
        }
        // All of them are a sequence.
        Err(_) if bytes.first() == Some(&0x30) => PemError::Der(wanted.command),
        _ => PemError::Missing(wanted.name),
    })
}

/// Returns the mark that ends a section, given the line that begins it.
fn end_of(line: &[u8], wanted: &PemSection) -> Option<Vec<u8>> {
    let label = line.strip_prefix(b"-----BEGIN ").and_then(|it| it.strip_suffix(b"-----"))?;
    let is_it = label.ends_with(wanted.label.as_bytes()) && !label.contains(&b'-');
    is_it.then(|| [b"-----END ", label, b"-----"].concat())
}

fn fault(error: &pem::Error, wanted: &PemSection) -> PemError {
    match error {
        pem::Error::NoItemsFound => PemError::Missing(wanted.name),
        pem::Error::MissingSectionEnd { .. } => PemError::Cut(wanted.name),
        pem::Error::Base64Decode(_) => PemError::BadBase64(wanted.name),
        _ => PemError::Damaged(wanted.name),
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
        let certificate = generate_simple_self_signed(["a".to_owned()]).unwrap().cert.pem();
        for fine in [
            pem.clone(),
            pem.replace('\n', "\r\n"),
            format!("{certificate}{pem}"),
            format!("{}{pem}", certificate.trim_end()),
            format!("\u{feff}{pem}"),
            pem.replace('\n', "\r"),
            pem.replace("END PRIVATE KEY-----", "END PRIVATE KEY----- # end"),
            format!("-----BEGIN EC PARAMETERS-----\n!\n-----END EC PARAMETERS-----\n{pem}"),
        ] {
            assert!(read_private_key(fine.as_bytes()).is_ok(), "{fine}");
        }
        let cut = pem.split("-----END").next().unwrap();
        let encrypted = pem.replace("BEGIN ", "BEGIN ENCRYPTED ").replace("END ", "END ENCRYPTED ");
        let legacy = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: x\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        let what = "private key";
        let rows: Vec<(Vec<u8>, PemError)> = vec![
            (certificate.into_bytes(), PemError::Missing(what)),
            (Vec::new(), PemError::Missing(what)),
            (cut.as_bytes().to_vec(), PemError::Cut(what)),
            (pem.replace("MI", "!!").into_bytes(), PemError::BadBase64(what)),
            (pem.replace('\n', "").into_bytes(), PemError::OneLine(what)),
            (pem.replace('\n', " ").into_bytes(), PemError::OneLine(what)),
            (encrypted.into_bytes(), PemError::Encrypted),
            (legacy.into(), PemError::Encrypted),
            (key.serialize_der(), PemError::Der("pkey")),
            (
                b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_vec(),
                PemError::UnusableKey,
            ),
        ];
        each_row(&rows, |(bytes, expected)| {
            let error = read_private_key(bytes).unwrap_err();
            assert_eq!(error, *expected);
            // The longest word of a key that an error repeats.
            let said = error.to_string();
            assert!(
                !pem.lines().any(|it| it.len() > 20 && !it.contains("---") && said.contains(it))
            );
        });
    }

    #[test]
    fn certificates_and_lists_are_read_as_pem_alone() {
        let made = generate_simple_self_signed(["a".to_owned()]).unwrap().cert;
        let pem = made.pem();
        let two = format!("{pem}text between\n{pem}");
        assert_eq!(read_certificates(two.as_bytes()).unwrap().len(), 2);
        let joined = format!("{}{pem}", pem.trim_end());
        assert_eq!(read_certificates(joined.as_bytes()).unwrap().len(), 2);
        assert_eq!(read_certificates(made.der()).unwrap_err(), PemError::Der("x509"));
        assert_eq!(read_certificates(b"hello").unwrap_err(), PemError::Missing("certificate"));
        let missing = PemError::Missing("revocation list");
        assert_eq!(read_revocation_lists(pem.as_bytes()).unwrap_err(), missing);
        // One that is cut does not go unnoticed behind a whole one; where one is enough, it does.
        let cut = format!("{pem}{}", pem.replace("MI", "!!"));
        assert_eq!(
            read_certificates(cut.as_bytes()).unwrap_err(),
            PemError::BadBase64("certificate")
        );
        assert!(read_certificate(cut.as_bytes()).is_ok());
        // An encrypted key beside it has lines that are not base64.
        let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nA\n-----END RSA PRIVATE KEY-----\n";
        assert_eq!(read_certificates(format!("{key}{pem}{key}").as_bytes()).unwrap().len(), 1);
    }
}
