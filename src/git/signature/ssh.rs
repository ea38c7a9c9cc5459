//! SSH signatures, and OpenSSH's file of allowed signers.

mod allowed_signer;
mod pattern_list;

use russh::keys::ssh_key::SshSig;
use russh::keys::{HashAlg, PublicKey};

use self::allowed_signer::{AllowedSigner, NAMESPACE};
use super::signed::{SignatureFault, Signed, Signer};

/// Checks an SSH signature against the text of an `allowed_signers` file.
pub(super) fn check(signed: &Signed<'_>, allowed: &str) -> Result<Signer, SignatureFault> {
    let signature =
        SshSig::from_pem(signed.signature.trim()).map_err(|error| signed.invalid(error))?;
    let key = PublicKey::from(signature.public_key().clone());
    key.verify(NAMESPACE, &signed.content, &signature).map_err(|error| match error {
        russh::keys::ssh_key::Error::Namespace => signed.invalid(format_args!(
            "it was made for `{}`, not for `{NAMESPACE}`",
            signature.namespace()
        )),
        error => signed.invalid(error),
    })?;
    let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
    let mut reason = "it is not in the file of allowed signers".to_owned();
    let entries: Result<Vec<_>, _> = entries(allowed).collect();
    for entry in entries.map_err(|fault| signed.unreadable_keys(fault))? {
        if entry.key.key_data() != key.key_data() {
            continue;
        }
        match entry.refuses(signed.time, &|| signed.sightings()) {
            None => return Ok(Signer { name: entry.principals, key: fingerprint }),
            Some(why) => why.clone_into(&mut reason),
        }
    }
    Err(signed.not_allowed(fingerprint, reason))
}

/// Checks that a file of allowed signers can be used and has a key.
pub(super) fn check_signers(text: &str) -> Result<(), String> {
    let count = entries(text).try_fold(0, |count: usize, entry| entry.map(|_| count + 1))?;
    if count == 0 { Err("there is no key in it".to_owned()) } else { Ok(()) }
}

/// Reads each line that has an entry.
fn entries(text: &str) -> impl Iterator<Item = Result<AllowedSigner, String>> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_matches([' ', '\t', '\r'])));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| {
        AllowedSigner::parse(line)
            .map_err(|fault| format!("line {number} of the allowed signers: {fault}"))
    })
}
