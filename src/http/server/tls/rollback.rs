//! Rejects revocation lists that are older than one that was in use, or that expired while the one in use is valid.
//!
//! An older list has a valid signature as well, and would admit certificates that were revoked since. Each
//! list has a number that its authority increases; without a number, or with the same one, the time of issue replaces
//! it. Lists for other certificates have numbers of their own (RFC 5280, 5.2.3): there the time of issue counts.

use std::collections::BTreeMap;

use x509_parser::num_bigint::BigUint;
use x509_parser::prelude::CertificateRevocationList;

use super::described::time;
use super::files::OnGap;
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
    /// Until when it is valid, in seconds since 1970.
    valid_until: i64,
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

/// The lists that were in use since the start.
#[derive(Debug, Default)]
pub(super) struct UsedLists {
    in_use: Issues,
    /// The newest of each series: what a file no longer has may come back.
    newest: Issues,
}

impl UsedLists {
    /// Returns why lists must not replace those in use.
    pub(super) fn refusal(&self, new: &Issues, now: i64, expired: OnGap) -> Option<String> {
        let expiry = || self.expired_series(new, now).filter(|_| expired == OnGap::Refuse);
        self.older_series(new).or_else(|| self.older_issuer(new)).or_else(expiry)
    }

    /// Notes the lists that are in use from now on. Returns the authorities that had a list until now.
    pub(super) fn replace(&mut self, new: &Issues) -> Vec<String> {
        self.newest.extend(new.clone());
        let before = std::mem::replace(&mut self.in_use, new.clone());
        let is_kept = |issuer: &CrlIssuer| new.keys().any(|it| it.issuer == *issuer);
        let lost = before.iter().filter(|(it, _)| !is_kept(&it.issuer));
        let mut names: Vec<String> = lost.map(|(_, it)| it.name.clone()).collect();
        names.dedup();
        names
    }

    /// Returns why a list that expired must not replace one that is valid.
    fn expired_series(&self, new: &Issues, now: i64) -> Option<String> {
        let mut expired = new.iter().filter(|(_, it)| it.valid_until < now);
        let is_valid = |series| self.in_use.get(series).is_some_and(|it| it.valid_until >= now);
        let (_, it) = expired.find(|(series, _)| is_valid(*series))?;
        let until = time(it.valid_until);
        Some(format!(
            "the revocation list of `{}` expired at {until}, and the one in use is valid",
            it.name
        ))
    }

    /// Returns why an issuer must not lose its newest list: another one of it, unless that is newer, may count in its place.
    fn older_issuer(&self, new: &Issues) -> Option<String> {
        new.keys().find_map(|CrlSeries { issuer, .. }| {
            let (_, this) = newest(new, issuer)?;
            let (series, that) = newest(&self.newest, issuer)?;
            if this.issued_at < that.issued_at {
                return Some(this.refused_after(&time(this.issued_at), &time(that.issued_at)));
            }
            (this.issued_at == that.issued_at && !new.contains_key(series)).then(|| {
                let (name, issued) = (&that.name, time(that.issued_at));
                format!(
                    "the revocation list of `{name}` that was issued at {issued} is gone, and none is newer: add it, or restart the daemon to do without it"
                )
            })
        })
    }

    fn older_series(&self, new: &Issues) -> Option<String> {
        new.iter().find_map(|(series, issue)| match self.newest.get(series) {
            Some(newest) => issue.is_older_than(newest).then(|| issue.is_refused_after(newest)),
            None => {
                // The first list for these certificates is not older than all others of its authority.
                let others = self.in_use.iter().filter(|(it, _)| it.issuer == series.issuer);
                let oldest = others.map(|it| it.1.issued_at).min()?;
                (issue.issued_at < oldest)
                    .then(|| issue.refused_after(&time(issue.issued_at), &time(oldest)))
            }
        })
    }
}

/// Returns the list of an issuer that was issued last.
fn newest<'a>(all: &'a Issues, issuer: &CrlIssuer) -> Option<(&'a CrlSeries, &'a Issue)> {
    let own = all.iter().filter(|(it, _)| it.issuer == *issuer);
    own.max_by_key(|(_, it)| it.issued_at)
}

impl Issue {
    pub(super) fn of(list: &CertificateRevocationList<'_>, name: String) -> Self {
        let number = list.crl_number().map(BigUint::to_bytes_be);
        Self {
            name,
            number,
            issued_at: list.last_update().timestamp(),
            valid_until: list.next_update().map_or(i64::MAX, |it| it.timestamp()),
        }
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
        self.refused_after(&this, &that)
    }

    fn refused_after(&self, this: &str, newer: &str) -> String {
        format!(
            "the revocation list of `{}` is older than the one in use ({this} after {newer}) and would admit what was revoked since: install the newest list, or restart the daemon to use this one",
            self.name
        )
    }
}

/// Writes a number as certificates show it.
fn shown(number: &[u8]) -> String {
    let beginning = number.get(..20).unwrap_or(number);
    format!("number 0x{}", hex(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1000;

    fn series(scope: u8) -> CrlSeries {
        CrlSeries { issuer: CrlIssuer { subject: vec![1], key: vec![1] }, scope: vec![scope] }
    }

    fn numbered(number: u8, issued_at: i64) -> Issue {
        let (name, valid_until) = ("CN=x".to_owned(), NOW);
        Issue { name, number: Some(vec![number]), issued_at, valid_until }
    }

    #[test]
    fn an_issuer_does_not_lose_its_newest_list() {
        let mut used = UsedLists::default();
        used.replace(&Issues::from([(series(0), numbered(50, 10)), (series(1), numbered(9, 9))]));
        for (new, is_refused) in [
            (Issues::from([(series(1), numbered(9, 9))]), true),
            (Issues::from([(series(1), numbered(10, 11))]), false),
            (Issues::from([(series(0), numbered(50, 10))]), false),
            (Issues::from([(series(0), numbered(49, 11)), (series(1), numbered(12, 12))]), true),
            (Issues::from([(series(2), numbered(99, 8))]), true),
            // Numbers of other certificates say nothing.
            (Issues::from([(series(2), numbered(1, 11))]), false),
            (Issues::from([(series(2), numbered(1, 10))]), true),
        ] {
            assert_eq!(used.refusal(&new, 0, OnGap::Refuse).is_some(), is_refused, "{new:?}");
        }
    }

    #[test]
    fn a_list_that_was_gone_does_not_come_back_older() {
        let mut used = UsedLists::default();
        let other = || (series(1), numbered(1, 20));
        used.replace(&Issues::from([(series(0), numbered(2, 2)), other()]));
        used.replace(&Issues::from([other()]));
        let again = |number| Issues::from([(series(0), numbered(number, 2)), other()]);
        assert!(used.refusal(&again(1), 0, OnGap::Refuse).is_some());
        assert_eq!(used.refusal(&again(2), 0, OnGap::Refuse), None);
        assert_eq!(used.replace(&Issues::new()), ["CN=x"]);
    }

    #[test]
    fn an_expired_list_does_not_replace_a_valid_one() {
        let mut used = UsedLists::default();
        let until =
            |valid_until| Issues::from([(series(0), Issue { valid_until, ..numbered(1, 1) })]);
        used.replace(&until(NOW));
        for (now, policy, is_refused) in [
            (NOW - 1, OnGap::Refuse, true),
            (NOW - 1, OnGap::Allow, false),
            // The one in use has expired as well.
            (NOW + 1, OnGap::Refuse, false),
        ] {
            let refusal = used.refusal(&until(NOW - 2), now, policy);
            assert_eq!(refusal.is_some(), is_refused, "{now} {refusal:?}");
        }
    }

    #[test]
    fn numbers_are_compared_by_value_and_times_replace_them() {
        let issue = |number: Option<&[u8]>, issued_at| Issue {
            name: "CN=x".to_owned(),
            number: number.map(<[u8]>::to_vec),
            issued_at,
            valid_until: NOW,
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
