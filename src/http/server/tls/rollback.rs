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
    older_series(new, in_use).or_else(|| older_issuer(new, in_use))
}

/// Returns why an issuer must not lose its newest list: another one of it may count in its place.
fn older_issuer(new: &Issues, in_use: &Issues) -> Option<String> {
    let newest = |all: &'_ Issues, issuer: &CrlIssuer| {
        let own = all.iter().filter(|(it, _)| it.issuer == *issuer).map(|it| it.1.clone());
        own.reduce(|a, b| if a.is_older_than(&b) { b } else { a })
    };
    new.keys().find_map(|CrlSeries { issuer, .. }| {
        let (this, that) = newest(new, issuer).zip(newest(in_use, issuer))?;
        this.is_older_than(&that).then(|| this.is_refused_after(&that))
    })
}

fn older_series(new: &Issues, in_use: &Issues) -> Option<String> {
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
    fn an_issuer_does_not_lose_its_newest_list() {
        let series = |scope: u8| CrlSeries {
            issuer: CrlIssuer { subject: vec![1], key: vec![1] },
            scope: vec![scope],
        };
        let issue =
            |number| Issue { name: "CN=x".to_owned(), number: Some(vec![number]), issued_at: 0 };
        let in_use = Issues::from([(series(0), issue(10)), (series(1), issue(9))]);
        for (new, is_refused) in [
            (Issues::from([(series(1), issue(9))]), true),
            (Issues::from([(series(1), issue(11))]), false),
            (Issues::from([(series(0), issue(10))]), false),
            (Issues::from([(series(0), issue(9)), (series(1), issue(12))]), true),
            (Issues::from([(series(2), issue(8))]), true),
        ] {
            assert_eq!(rollback(&new, &in_use).is_some(), is_refused, "{new:?}");
        }
    }

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
