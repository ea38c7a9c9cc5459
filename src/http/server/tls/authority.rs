//! The authorities of client certificates, each with its revocation lists.

use std::path::Path;

use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_parser::prelude::{
    CertificateRevocationList, FromDer as _, ParsedExtension, X509Certificate,
};

use super::described::short;
use super::error::{TlsError, file_error};
use super::files::{CrlPolicy, OnGap};
use super::newest::newest_of_each_scope;
use super::rollback::{CrlIssuer, CrlSeries, Issue, Issues};
use crate::config::read_revocation_lists;

/// A subject with a key, its certificates and its lists.
pub(super) struct Authority {
    pub(super) issuer: CrlIssuer,
    /// Its certificates; none of an authority that is not trusted by itself.
    pub(super) anchors: Vec<CertificateDer<'static>>,
    /// The newest list, or the newest of each scope.
    pub(super) lists: Vec<CertificateRevocationListDer<'static>>,
}

/// Revocation lists that can be used.
#[derive(Default)]
pub(super) struct Lists {
    pub(super) authorities: Vec<Authority>,
    /// The issuer of each with the end of its validity, in seconds since 1970.
    pub(super) validity: Vec<(String, i64)>,
    /// Which list of each authority it is.
    pub(super) issues: Issues,
    /// Authorities without a list.
    pub(super) missing: Vec<String>,
}

/// An authority with all lists that it issued.
struct IssuedLists<'a> {
    name: String,
    issuer: CrlIssuer,
    anchors: Vec<CertificateDer<'static>>,
    lists: Vec<&'a CertificateRevocationList<'a>>,
}

impl Lists {
    /// Reads the lists of all authorities: none, or none of an authority, is an error.
    pub(super) fn read(
        path: &Path,
        bytes: &[u8],
        authorities: &[CertificateDer<'static>],
        policy: CrlPolicy,
    ) -> Result<Self, TlsError> {
        let ders = read_revocation_lists(bytes).map_err(file_error(path))?;
        let mut lists = Vec::new();
        for der in &ders {
            let (_, list) = CertificateRevocationList::from_der(der)
                .map_err(|error| format!("a revocation list is malformed: {error}"))
                .map_err(file_error(path))?;
            lists.push(list);
        }
        let mut read = Self::default();
        let mut found = trusted(authorities, &lists).map_err(file_error(path))?;
        found.extend(others(&lists, &found));
        for authority in found {
            read.add(authority, policy).map_err(file_error(path))?;
        }
        Ok(read)
    }

    fn add(&mut self, found: IssuedLists<'_>, policy: CrlPolicy) -> Result<(), String> {
        let IssuedLists { name, issuer, anchors, lists: all } = found;
        if all.is_empty() {
            if policy.missing == OnGap::Refuse {
                return Err(format!(
                    "there is no revocation list in it that `{name}` issued: add it, or set \
                     `--tls-client-crl-missing allow` to accept certificates whose status is not known"
                ));
            }
            self.missing.push(name.clone());
        }
        let mut lists = Vec::new();
        for (scope, list) in newest_of_each_scope(&all, &name)? {
            let until = list.next_update().map(|it| it.timestamp()).ok_or_else(|| {
                format!("the list of `{name}` does not say until when it is valid")
            })?;
            self.validity.push((name.clone(), until));
            let series = CrlSeries { issuer: issuer.clone(), scope };
            self.issues.insert(series, Issue::of(list, name.clone()));
            lists.push(list.as_raw().to_vec().into());
        }
        self.authorities.push(Authority { issuer, anchors, lists });
        Ok(())
    }
}

/// Returns the authorities of certificates, each with the lists that its key has signed.
fn trusted<'a>(
    authorities: &[CertificateDer<'static>],
    lists: &'a [CertificateRevocationList<'a>],
) -> Result<Vec<IssuedLists<'a>>, String> {
    let mut found: Vec<IssuedLists<'_>> = Vec::new();
    for der in authorities {
        let (_, authority) = X509Certificate::from_der(der)
            .map_err(|error| format!("an authority cannot be read: {error}"))?;
        let (subject, key) = (authority.subject(), authority.public_key());
        let issuer = CrlIssuer { subject: subject.as_raw().to_vec(), key: key.raw.to_vec() };
        if let Some(known) = found.iter_mut().find(|it| it.issuer == issuer) {
            known.anchors.push(der.clone());
            continue;
        }
        let is_of_it = |it: &&CertificateRevocationList<'_>| {
            it.issuer().as_raw() == subject.as_raw() && it.verify_signature(key).is_ok()
        };
        found.push(IssuedLists {
            name: short(&subject.to_string()),
            issuer,
            anchors: vec![der.clone()],
            lists: lists.iter().filter(is_of_it).collect(),
        });
    }
    Ok(found)
}

/// Returns the authorities of the other lists. Clients send their certificates, so the signatures are verified then.
fn others<'a>(
    lists: &'a [CertificateRevocationList<'a>],
    known: &[IssuedLists<'_>],
) -> Vec<IssuedLists<'a>> {
    let is_known = |it: &CertificateRevocationList<'_>| {
        known.iter().flat_map(|it| &it.lists).any(|list| list.as_raw() == it.as_raw())
    };
    let lists: Vec<_> = lists.iter().filter(|it| !is_known(it)).collect();
    let mut found: Vec<IssuedLists<'_>> = Vec::new();
    for list in &lists {
        let subject = list.issuer().as_raw();
        // Where one of them does not name its key, it may be any.
        let mut of_subject = lists.iter().filter(|it| it.issuer().as_raw() == subject);
        let all_named = of_subject.all(|it| key_identifier(it).is_some());
        let key = key_identifier(list).filter(|_| all_named).unwrap_or_default();
        let issuer = CrlIssuer { subject: subject.to_vec(), key: key.to_vec() };
        match found.iter_mut().find(|it| it.issuer == issuer) {
            Some(known) => known.lists.push(list),
            None => found.push(IssuedLists {
                name: short(&list.issuer().to_string()),
                issuer,
                anchors: Vec::new(),
                lists: vec![list],
            }),
        }
    }
    found
}

/// Returns which key a list says has signed it.
fn key_identifier<'a>(list: &'a CertificateRevocationList<'_>) -> Option<&'a [u8]> {
    list.extensions().iter().find_map(|it| match it.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(it) => it.key_identifier.as_ref().map(|it| it.0),
        _ => None,
    })
}
