//! Rejects revocation lists that are older than the one in use.
//!
//! An older list has a valid signature as well, and would admit certificates that were revoked since. Each
//! list has a number that its authority increases; without a number, or with the same one, the time of issue replaces
//! it.

use std::collections::BTreeMap;

use x509_parser::num_bigint::BigUint;
use x509_parser::prelude::CertificateRevocationList;

use super::described::time;
use crate::model::hex;

/// The issue of an authority's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Issue {
    /// The authority, for messages.
    name: String,
    /// The number, as bytes without leading zeros.
    number: Option<Vec<u8>>,
    /// When it was issued, in seconds since 1970.
    issued_at: i64,
}

/// Who issues lists: a subject and a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CrlIssuer {
    pub(super) subject: Vec<u8>,
    pub(super) key: Vec<u8>,
}

/// Which lists replace each other: those of an issuer for the same certificates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CrlSeries {
    pub(super) issuer: CrlIssuer,
    pub(super) scope: Vec<u8>,
}

/// The list of each series.
pub(super) type Issues = BTreeMap<CrlSeries, Issue>;

impl Issue {
    pub(super) fn of(list: &CertificateRevocationList<'_>, name: String) -> Self {
        let number = list.crl_number().map(BigUint::to_bytes_be);
        Self { name, number, issued_at: list.last_update().timestamp() }
    }

    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        let rank = |number: &Vec<u8>| (number.len(), number.clone());
        match (&self.number, &other.number) {
            (Some(this), Some(that)) if this != that => rank(this) < rank(that),
            _ => self.issued_at < other.issued_at,
        }
    }

    /// Returns why this list must not replace a newer one.
    fn is_refused_after(&self, newer: &Self) -> String {
        let (this, that) = match (&self.number, &newer.number) {
            (Some(this), Some(that)) if this != that => (shown(this), shown(that)),
            _ => (time(self.issued_at), time(newer.issued_at)),
        };
        format!(
            "the revocation list of `{}` is older than the one in use ({this} after {that}) and would admit what was revoked since: install the newest list, or restart the daemon to use this one",
            self.name
        )
    }
}

/// Returns why lists must not replace others.
pub(super) fn rollback(new: &Issues, in_use: &Issues) -> Option<String> {
    new.iter().find_map(|(series, issue)| {
        let replaced = in_use.get(series).or_else(|| {
            // The first list for these certificates is not older than all others of its authority.
            let others = in_use.iter().filter(|(it, _)| it.issuer == series.issuer);
            others.map(|it| it.1).reduce(|a, b| if b.is_older_than(a) { b } else { a })
        })?;
        issue.is_older_than(replaced).then(|| issue.is_refused_after(replaced))
    })
}

/// Writes a number as certificates show it.
fn shown(number: &[u8]) -> String {
    let beginning = number.get(..20).unwrap_or(number);
    format!("number 0x{}", hex(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_value_and_times_replace_them() {
        let issue = |number: Option<&[u8]>, issued_at| Issue {
            name: "CN=x".to_owned(),
            number: number.map(<[u8]>::to_vec),
            issued_at,
        };
        for (new, old, is_older) in [
            (issue(Some(&[2]), 0), issue(Some(&[1]), 9), false),
            (issue(Some(&[2]), 9), issue(Some(&[2]), 9), false),
            (issue(Some(&[2]), 0), issue(Some(&[2]), 9), true),
            (issue(Some(&[2]), 9), issue(Some(&[1, 0]), 0), true),
            (issue(Some(&[1, 0]), 9), issue(Some(&[0xff]), 0), false),
            (issue(None, 8), issue(Some(&[1]), 9), true),
            (issue(Some(&[1]), 9), issue(None, 9), false),
        ] {
            assert_eq!(new.is_older_than(&old), is_older, "{new:?} {old:?}");
        }
    }
}
