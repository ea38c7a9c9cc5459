//! Rejects revocation lists that are older than the one in use.
//!
//! An older list has a valid signature as well, and would admit certificates that were revoked since. Each
//! list has a number that its authority increases; without a number, the time of issue replaces it.

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

/// The newest list of each authority, by the key of the authority.
pub(super) type Issues = BTreeMap<Vec<u8>, Issue>;

impl Issue {
    pub(super) fn of(list: &CertificateRevocationList<'_>, name: String) -> Self {
        let number = list.crl_number().map(BigUint::to_bytes_be);
        Self { name, number, issued_at: list.last_update().timestamp() }
    }

    /// Returns why this list must not replace another.
    fn is_older_than(&self, other: &Self) -> Option<String> {
        let rank = |number: &Vec<u8>| (number.len(), number.clone());
        let ((this, that), is_older) = match (&self.number, &other.number) {
            (Some(this), Some(that)) => ((shown(this), shown(that)), rank(this) < rank(that)),
            _ => {
                let times = (time(self.issued_at), time(other.issued_at));
                (times, self.issued_at < other.issued_at)
            }
        };
        is_older.then(|| {
            format!(
                "the revocation list of `{}` is older than the one in use ({this} after {that}) and would admit what was revoked since: install the newest list, or restart the daemon to use this one",
                self.name
            )
        })
    }
}

/// Keeps the newer list of an authority that has two.
pub(super) fn note(issues: &mut Issues, key: &[u8], issue: Issue) {
    match issues.get(key) {
        Some(known) if issue.is_older_than(known).is_some() => {}
        _ => drop(issues.insert(key.to_vec(), issue)),
    }
}

/// Returns why lists must not replace others.
pub(super) fn rollback(new: &Issues, in_use: &Issues) -> Option<String> {
    new.iter().find_map(|(key, issue)| issue.is_older_than(in_use.get(key)?))
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
    fn numbers_are_compared_by_value_and_times_stand_in() {
        let issue = |number: Option<&[u8]>, issued_at| Issue {
            name: "CN=x".to_owned(),
            number: number.map(<[u8]>::to_vec),
            issued_at,
        };
        for (new, old, is_older) in [
            (issue(Some(&[2]), 0), issue(Some(&[1]), 9), false),
            (issue(Some(&[2]), 0), issue(Some(&[2]), 9), false),
            (issue(Some(&[2]), 9), issue(Some(&[1, 0]), 0), true),
            (issue(Some(&[1, 0]), 9), issue(Some(&[0xff]), 0), false),
            (issue(None, 8), issue(Some(&[1]), 9), true),
            (issue(Some(&[1]), 9), issue(None, 9), false),
        ] {
            assert_eq!(new.is_older_than(&old).is_some(), is_older, "{new:?} {old:?}");
        }
    }
}
