//! Distributes authorities and their revocation lists to verifiers.
//!
//! The TLS library finds the list of a certificate by the name of its issuer alone. So a verifier has one key of each
//! subject, and there are as many as it takes to have each key in one.

use std::collections::BTreeMap;

use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};

use super::authority::Authority;

/// How many verifiers a certificate may meet.
const MAX_SETS: usize = 64;

/// What a verifier knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrustSet {
    pub(super) anchors: Vec<CertificateDer<'static>>,
    pub(super) lists: Vec<CertificateRevocationListDer<'static>>,
}

/// The authorities of one subject.
#[derive(Default)]
struct SubjectAuthorities<'a> {
    trusted: Vec<&'a Authority>,
    /// Those whose certificates clients send.
    others: Vec<&'a Authority>,
}

impl<'a> SubjectAuthorities<'a> {
    /// Returns how many choices there are: each that is trusted, and one of the others.
    fn choices(&self) -> usize {
        self.trusted.len() + usize::from(!self.others.is_empty())
    }

    fn choose(&self, choice: usize, other: usize) -> Vec<&'a Authority> {
        let trusted = self.trusted.get(choice % self.choices().max(1)).copied();
        // Without a list of its own, it must not admit what the other's list refuses.
        let alone = trusted.is_some_and(|it| !it.lists.is_empty());
        let other = self.others.get(other).filter(|_| !alone).copied();
        trusted.into_iter().chain(other).collect()
    }
}

/// Returns the sets, such that each chain of authorities with different subjects is in one.
///
/// Where several lists of an authority cover different certificates, each of them is the first in one set: the TLS
/// library takes the first that covers a certificate.
pub(super) fn trust_sets(authorities: &[Authority]) -> Result<Vec<TrustSet>, String> {
    let mut subjects: BTreeMap<&[u8], SubjectAuthorities<'_>> = BTreeMap::new();
    for authority in authorities {
        let of_subject = subjects.entry(&authority.issuer.subject).or_default();
        let is_trusted = !authority.anchors.is_empty();
        if is_trusted { &mut of_subject.trusted } else { &mut of_subject.others }.push(authority);
    }
    let choices = subjects.values().map(SubjectAuthorities::choices).max().unwrap_or_default();
    let others = subjects
        .values()
        .try_fold(1_usize, |product, it| product.checked_mul(it.others.len().max(1)));
    let turns = authorities.iter().map(|it| it.lists.len()).max().unwrap_or_default().max(1);
    let count = others.and_then(|it| it.checked_mul(choices)?.checked_mul(turns));
    let (Some(others), Some(0..=MAX_SETS)) = (others, count) else {
        return Err(format!(
            "it has too many revocation lists of authorities with the same subject, or of one authority for \
             different certificates (more than {MAX_SETS} ways to choose): remove those that are not needed"
        ));
    };
    let mut sets = Vec::new();
    for choice in 0..choices {
        for other in 0..others {
            for turn in 0..turns {
                let set = trust_set(subjects.values(), choice, other, turn);
                if !set.anchors.is_empty() && !sets.contains(&set) {
                    sets.push(set);
                }
            }
        }
    }
    Ok(sets)
}

fn trust_set<'a, 'b: 'a>(
    subjects: impl Iterator<Item = &'a SubjectAuthorities<'b>>,
    choice: usize,
    mut other: usize,
    turn: usize,
) -> TrustSet {
    let mut set = TrustSet::default();
    for of_subject in subjects {
        let count = of_subject.others.len().max(1);
        for authority in of_subject.choose(choice, other % count) {
            set.anchors.extend(authority.anchors.iter().cloned());
            let (last, first) = authority.lists.split_at(turn % authority.lists.len().max(1));
            set.lists.extend(first.iter().chain(last).cloned());
        }
        other /= count;
    }
    set
}
