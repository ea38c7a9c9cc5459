//! What a key says of itself (RFC 9580, 5.2.3.10): of each thing that it signed, each user id, each
//! subkey and the key as a whole, the newest valid self-signature decides. Signatures of others,
//! which others can add to a key, do not count.

use std::cmp::Reverse;

use jiff::Timestamp;
use pgp::composed::{SignedPublicKey, SignedPublicSubKey};
use pgp::packet::{Signature, SignatureType, SubpacketData};
use pgp::types::{KeyDetails as _, Tag};

/// A key whose own signatures are valid.
pub(super) struct SelfSigned<'a> {
    key: &'a SignedPublicKey,
    /// The signatures that decide, one for each thing.
    deciding: Vec<&'a Signature>,
    name: Option<String>,
}

/// Whether a signature says what its key is for, and that it is for signatures.
fn usage(signature: &Signature) -> Option<bool> {
    let parts = signature.config()?.hashed_subpackets();
    let tells = parts.into_iter().any(|it| matches!(it.data, SubpacketData::KeyFlags(_)));
    tells.then(|| signature.key_flags().sign())
}

impl<'a> SelfSigned<'a> {
    /// Reads a key as it was at a time.
    ///
    /// # Errors
    ///
    /// Returns why the key is not to be used.
    pub(super) fn read(key: &'a SignedPublicKey, at: Timestamp) -> Result<Self, &'static str> {
        let primary = &key.primary_key;
        let mut deciding = Vec::new();
        let mut name = None;
        for user in &key.details.users {
            let is_own = |it: &Signature| it.verify_certification(primary, Tag::UserId, &user.id);
            let newest = newest(&user.signatures, at, |it| is_own(it).is_ok());
            let Some(newest) = newest else { continue };
            if newest.typ() == Some(SignatureType::CertRevocation) {
                continue;
            }
            if name.is_none() || newest.is_primary() {
                name = Some(String::from_utf8_lossy(user.id.id()).into_owned());
            }
            deciding.push(newest);
        }
        let is_own = |it: &Signature| it.verify_key(primary).is_ok();
        deciding.extend(newest(&key.details.direct_signatures, at, is_own));
        // Another's revocation cannot be checked without that key; where the key names another that
        // may revoke it, it counts.
        let named = || {
            let direct = key.details.direct_signatures.iter();
            direct.filter(|it| is_own(it)).any(|it| it.revocation_key().is_some())
        };
        if key.details.revocation_signatures.iter().any(|it| is_own(it) || named()) {
            return Err("it is revoked");
        }
        if deciding.is_empty() {
            return Err("it has no valid signature of its own");
        }
        let signed = Self { key, deciding, name };
        if has_expired(&signed.deciding, primary.created_at().as_secs(), at) {
            return Err("it had expired when the commit was made");
        }
        Ok(signed)
    }

    /// Returns whether the key itself is for signatures of data: of the signatures that decide, the newest that tells
    /// what it is for counts. A key that tells nothing is for all.
    pub(super) fn is_for_data(&self) -> bool {
        let told = self.deciding.iter().filter_map(|it| Some((created(it), !usage(it)?)));
        told.max().is_none_or(|(_, is_not)| !is_not)
    }

    /// Returns whose key it is.
    pub(super) fn name(self) -> String {
        self.name.unwrap_or_else(|| "a key without a name".to_owned())
    }

    /// Checks that a subkey is one of the key, and for signatures.
    ///
    /// # Errors
    ///
    /// Returns why the subkey is not to be used.
    pub(super) fn check(
        &self,
        subkey: &SignedPublicSubKey,
        at: Timestamp,
    ) -> Result<(), &'static str> {
        let primary = &self.key.primary_key;
        let is_own = |it: &Signature| it.verify_subkey_binding(primary, &subkey.key).is_ok();
        let is_revocation = |it: &Signature| it.typ() == Some(SignatureType::SubkeyRevocation);
        if subkey.signatures.iter().any(|it| is_revocation(it) && is_own(it)) {
            return Err("its subkey is revoked");
        }
        let Some(binding) = newest(&subkey.signatures, at, is_own) else {
            return Err("its subkey is not bound to it");
        };
        if !binding.key_flags().sign() {
            return Err("its subkey is not for signatures");
        }
        // Else a key could claim the subkey of another.
        let back = binding.embedded_signature();
        if back.is_none_or(|it| it.verify_primary_key_binding(&subkey.key, primary).is_err()) {
            return Err("its subkey does not say that it is of this key");
        }
        if has_expired(&[binding], subkey.key.created_at().as_secs(), at) {
            return Err("its subkey had expired when the commit was made");
        }
        Ok(())
    }
}

/// Returns the newest signature that is valid. Of two of the same second the one that allows less
/// decides, so that the order in a file does not matter.
fn newest(
    signatures: &[Signature],
    at: Timestamp,
    is_own: impl Fn(&Signature) -> bool,
) -> Option<&Signature> {
    let valid = signatures.iter().filter(|it| created(it).is_some() && !has_lapsed(it, at));
    valid.filter(|it| is_own(it)).max_by_key(|it| {
        let is_revocation = it.typ() == Some(SignatureType::CertRevocation);
        (created(it), is_revocation, !it.key_flags().sign(), Reverse(key_lifetime(it)))
    })
}

/// Returns whether a key had expired: of the signatures that decide, the newest that tells a lifetime
/// counts. One that tells none, such as of a later user id, does not make the key everlasting.
fn has_expired(deciding: &[&Signature], key_created: u32, at: Timestamp) -> bool {
    let told = deciding.iter().filter(|it| it.key_expiration_time().is_some());
    let newest = told.max_by_key(|it| (created(it), Reverse(key_lifetime(it))));
    newest
        .map(|it| key_lifetime(it))
        .is_some_and(|it| it < u32::MAX && is_over(key_created, it, at))
}

/// Returns whether the lifetime of a signature itself is over.
pub(super) fn has_lapsed(signature: &Signature, at: Timestamp) -> bool {
    let lifetime = signature.signature_expiration_time().map_or(0, pgp::types::Duration::as_secs);
    lifetime > 0 && is_over(created(signature).unwrap_or_default(), lifetime, at)
}

fn created(signature: &Signature) -> Option<u32> {
    signature.created().map(pgp::types::Timestamp::as_secs)
}

/// Returns the seconds that a signature gives a key; 0 and none are for ever.
fn key_lifetime(signature: &Signature) -> u32 {
    let told = signature.key_expiration_time().map_or(0, pgp::types::Duration::as_secs);
    if told == 0 { u32::MAX } else { told }
}

fn is_over(created: u32, lifetime: u32, at: Timestamp) -> bool {
    at.as_second() >= i64::from(created) + i64::from(lifetime)
}
