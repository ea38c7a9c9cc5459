//! OpenPGP signatures.

mod key_file;
mod self_signed;

use jiff::Timestamp;
use pgp::composed::{Deserializable as _, DetachedSignature, SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::Signature;
use pgp::types::{Fingerprint, KeyDetails as _, KeyId};

use self::self_signed::{SelfSigned, has_lapsed};
use super::signed::{SignatureFault, Signed, Signer};

/// By how many seconds the clock of a signer may be ahead of this machine's: a day.
const CLOCKS_DIFFER: i64 = 24 * 60 * 60;

/// Checks an OpenPGP signature against armoured public keys.
pub(super) fn check(signed: &Signed<'_>, keys: &str) -> Result<Signer, SignatureFault> {
    let (detached, _) = DetachedSignature::from_string(signed.signature.trim())
        .map_err(|error| signed.invalid(error))?;
    let signature = &detached.signature;
    if matches!(
        signature.hash_alg(),
        None | Some(HashAlgorithm::Md5 | HashAlgorithm::Sha1 | HashAlgorithm::Ripemd160)
    ) {
        return Err(signed.invalid("its hash function is broken"));
    }
    let issuer = issuer(signature).ok_or_else(|| signed.invalid("it names no key"))?;
    let made = created(signature).ok_or_else(|| signed.invalid("it names no time"))?;
    let mut refusal = None;
    for key in key_file::read(keys).map_err(|fault| signed.unreadable_keys(fault))? {
        match try_key(signed, &detached, made, &issuer, &key) {
            None => {}
            Some(Ok(signer)) => return Ok(signer),
            // Another key may have the same id or the same subkey.
            Some(Err(fault)) => refusal = refusal.or(Some(fault)),
        }
    }
    let is_unknown = || signed.not_allowed(issuer.to_string(), "it is not among the allowed keys");
    Err(refusal.unwrap_or_else(is_unknown))
}

/// Which key a signature says that it is of.
enum Issuer {
    Fingerprint(Fingerprint),
    Id(KeyId),
}

impl std::fmt::Display for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fingerprint(fingerprint) => write!(f, "{fingerprint:X}"),
            Self::Id(id) => write!(f, "{}", id.to_string().to_uppercase()),
        }
    }
}

fn issuer(signature: &Signature) -> Option<Issuer> {
    let fingerprint = signature.issuer_fingerprint().first().map(|it| (*it).clone());
    let id = || signature.issuer_key_id().first().map(|it| Issuer::Id(**it));
    fingerprint.map(Issuer::Fingerprint).or_else(id)
}

impl Issuer {
    fn is(&self, fingerprint: &Fingerprint, id: KeyId) -> bool {
        match self {
            Self::Fingerprint(it) => it == fingerprint,
            Self::Id(it) => *it == id,
        }
    }
}

/// Checks that a file of keys can be used and has a key.
pub(super) fn check_keys(text: &str) -> Result<(), String> {
    key_file::read(text).map(|_| ())
}

/// Checks a signature by a key or one of its subkeys; a key that it is not of has no say.
fn try_key(
    signed: &Signed<'_>,
    detached: &DetachedSignature,
    made: Timestamp,
    issuer: &Issuer,
    key: &SignedPublicKey,
) -> Option<Result<Signer, SignatureFault>> {
    let primary = &key.primary_key;
    let refuse = |reason: &str| Some(Err(signed.not_allowed(issuer.to_string(), reason)));
    let subkey = key
        .public_subkeys
        .iter()
        .find(|it| issuer.is(&it.key.fingerprint(), it.key.legacy_key_id()));
    let is_primary = issuer.is(&primary.fingerprint(), primary.legacy_key_id());
    if !is_primary && subkey.is_none() {
        return None;
    }
    let own = match SelfSigned::read(key, made) {
        Ok(own) => own,
        Err(reason) => return refuse(reason),
    };
    let key_made = subkey.map_or(primary.created_at(), |it| it.key.created_at());
    if made.as_second() < i64::from(key_made.as_secs()) {
        return refuse("it is younger than the signature");
    }
    let verified = match subkey {
        None if !own.is_for_data() => return refuse("it is not for signatures"),
        None => detached.verify(primary, &signed.content),
        Some(subkey) => {
            if let Err(reason) = own.check(subkey, made) {
                return refuse(reason);
            }
            detached.verify(&subkey.key, &signed.content)
        }
    };
    if let Err(error) = verified {
        return Some(Err(signed.invalid(error)));
    }
    // A signer chooses the time that a signature names, so all must be valid when the commit was here, too.
    let fault_at = |time| fault_when_seen(signed, &detached.signature, issuer, key, subkey, time);
    if let Some(fault) = signed.sightings().fault(fault_at) {
        return Some(Err(fault));
    }
    Some(Ok(Signer { name: own.name(), key: issuer.to_string() }))
}

/// Returns what had expired, or had not been made yet, at a time when the commit was here.
fn fault_when_seen(
    signed: &Signed<'_>,
    signature: &Signature,
    issuer: &Issuer,
    key: &SignedPublicKey,
    subkey: Option<&SignedPublicSubKey>,
    time: Timestamp,
) -> Option<SignatureFault> {
    let refuse = |reason: &str| Some(signed.not_allowed(issuer.to_string(), reason));
    if has_lapsed(signature, time) {
        return Some(signed.invalid("it had expired when the commit was first seen here"));
    }
    let key_made = subkey.map_or(key.primary_key.created_at(), |it| it.key.created_at());
    if time.as_second() + CLOCKS_DIFFER < i64::from(key_made.as_secs()) {
        return refuse("it was not made yet when the commit was first seen here");
    }
    let Ok(own) = SelfSigned::read(key, time) else {
        return refuse("it had expired when the commit was first seen here");
    };
    if subkey.is_some_and(|it| own.check(it, time).is_err()) {
        return refuse("its subkey had expired when the commit was first seen here");
    }
    None
}

fn created(signature: &Signature) -> Option<Timestamp> {
    Timestamp::from_second(i64::from(signature.created()?.as_secs())).ok()
}

#[cfg(test)]
mod tests;
