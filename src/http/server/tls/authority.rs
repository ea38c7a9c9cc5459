//! The authorities of client certificates, each with its revocation list.

use std::path::Path;

use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_parser::prelude::{CertificateRevocationList, FromDer as _, X509Certificate};

use super::described::{short, time};
use super::error::{TlsError, file_error};
use super::files::{CrlPolicy, OnGap};
use super::rollback::{Issue, Issues, note};
use crate::config::read_revocation_lists;
use crate::config::watched::Occasion;

/// Revocation lists that can be used.
pub(super) struct Lists {
    pub(super) ders: Vec<CertificateRevocationListDer<'static>>,
    /// The issuer of each with the end of its validity, in seconds since 1970.
    pub(super) validity: Vec<(String, i64)>,
    /// Which list of each authority it is.
    pub(super) issues: Issues,
    /// Authorities without a list.
    pub(super) missing: Vec<String>,
}

impl Lists {
    /// Reads the lists of all authorities: none, or none of an authority, is an error.
    pub(super) fn read(
        path: &Path,
        bytes: &[u8],
        authorities: &[CertificateDer<'_>],
        policy: CrlPolicy,
        occasion: Occasion,
    ) -> Result<Self, TlsError> {
        let refuse = |reason: String| file_error(path)(reason);
        let ders = read_revocation_lists(bytes).map_err(file_error(path))?;
        let mut lists = Vec::new();
        for der in &ders {
            let (_, list) = CertificateRevocationList::from_der(der)
                .map_err(|error| refuse(format!("a revocation list is malformed: {error}")))?;
            lists.push(list);
        }
        let (mut missing, mut issues) = (Vec::new(), Issues::new());
        for der in authorities {
            let (_, authority) = X509Certificate::from_der(der)
                .map_err(|error| refuse(format!("an authority cannot be read: {error}")))?;
            let name = short(&authority.subject().to_string());
            let is_of_it = |it: &&CertificateRevocationList<'_>| {
                it.issuer().as_raw() == authority.subject().as_raw()
                    && it.verify_signature(authority.public_key()).is_ok()
            };
            let key = authority.public_key().raw;
            for list in lists.iter().filter(is_of_it) {
                note(&mut issues, key, Issue::of(list, name.clone()));
            }
            if !issues.contains_key(key) {
                if policy.missing == OnGap::Refuse {
                    return Err(refuse(format!(
                        "there is no revocation list in it that `{name}` issued: add it, or set \
                         `--tls-client-crl-missing allow` to accept certificates whose status is not known"
                    )));
                }
                missing.push(name);
            }
        }
        let now = jiff::Timestamp::now().as_second();
        let mut validity = Vec::new();
        for list in &lists {
            let (name, until) = validity_of(list).map_err(refuse)?;
            // The list in use may still be valid.
            if until < now && occasion == Occasion::Reload && policy.expired == OnGap::Refuse {
                let until = time(until);
                return Err(refuse(format!("the revocation list of `{name}` expired at {until}")));
            }
            validity.push((name, until));
        }
        Ok(Self { ders, validity, issues, missing })
    }
}

/// Returns the issuer of a list and the end of its validity, in seconds since 1970.
fn validity_of(list: &CertificateRevocationList<'_>) -> Result<(String, i64), String> {
    let name = short(&list.issuer().to_string());
    match list.next_update() {
        Some(until) => Ok((name, until.timestamp())),
        None => Err(format!("the list of `{name}` does not say until when it is valid")),
    }
}
