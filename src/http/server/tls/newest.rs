//! Chooses the newest of the revocation lists that an authority issued.
//!
//! The TLS library takes the first list that has the name of a certificate's issuer. An older list before the newest one
//! would admit what was revoked since.

use std::collections::BTreeMap;

use x509_parser::oid_registry::{
    OID_X509_EXT_DELTA_CRL_INDICATOR, OID_X509_EXT_ISSUER_DISTRIBUTION_POINT,
};
use x509_parser::prelude::CertificateRevocationList;

use super::rollback::Issue;

/// Returns the newest list of each scope.
pub(super) fn newest_of_each_scope<'a>(
    lists: &[&'a CertificateRevocationList<'a>],
    name: &str,
) -> Result<BTreeMap<Vec<u8>, &'a CertificateRevocationList<'a>>, String> {
    let mut scopes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for list in lists {
        scopes.entry(scope(list)).or_default().push(*list);
    }
    scopes.into_iter().map(|(scope, lists)| Ok((scope, newest(&lists, name)?))).collect()
}

/// Returns for which certificates a list is meant. A list that changes another one is never newer than that.
fn scope(list: &CertificateRevocationList<'_>) -> Vec<u8> {
    let scopes = [OID_X509_EXT_DELTA_CRL_INDICATOR, OID_X509_EXT_ISSUER_DISTRIBUTION_POINT];
    let of_scope = list.extensions().iter().filter(|it| scopes.contains(&it.oid));
    of_scope.flat_map(|it| [it.oid.as_bytes(), it.value].concat()).collect()
}

/// Returns the list that is newer than all others; copies are one list.
fn newest<'a>(
    lists: &[&'a CertificateRevocationList<'a>],
    name: &str,
) -> Result<&'a CertificateRevocationList<'a>, String> {
    let issue = |list: &CertificateRevocationList<'_>| Issue::of(list, String::new());
    let is_newest = |it: &CertificateRevocationList<'_>| {
        let this = issue(it);
        lists.iter().all(|other| {
            other.tbs_cert_list.as_ref() == it.tbs_cert_list.as_ref()
                || issue(other).is_older_than(&this)
        })
    };
    lists.iter().copied().find(|it| is_newest(it)).ok_or_else(|| {
        format!(
            "`{name}` has two revocation lists in it, and neither is the newer one by number and time of \
             issue: keep the one that is right"
        )
    })
}
