//! Files of armoured public keys: blocks one after another, each with any number of keys.
//!
//! A file can hold copies of one key from different times, and revocation certificates apart from their
//! key. What all of them say about a key counts, in whatever order they stand.

use std::collections::HashMap;
use std::io::Read as _;

use pgp::armor::Dearmor;
use pgp::composed::{Deserializable as _, SignedPublicKey};
use pgp::packet::{Packet, PacketParser, Signature, SignatureType};
use pgp::types::{Fingerprint, KeyDetails as _};

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";

/// Reads every key of a file once, with what all its copies say.
///
/// # Errors
///
/// Returns what cannot be read.
pub(super) fn read(text: &str) -> Result<Vec<SignedPublicKey>, String> {
    let mut keys = MergedKeys::default();
    let (mut revocations, mut certificates) = (Vec::new(), Vec::new());
    for block in blocks(text) {
        let packets = dearmor(&block)?;
        let count = keys.copies;
        for key in SignedPublicKey::from_bytes_many(packets.as_slice()).map_err(unreadable)? {
            keys.add(key.map_err(unreadable)?);
        }
        let is_apart = keys.copies == count;
        let target = if is_apart { &mut certificates } else { &mut revocations };
        target.extend(key_revocations(&packets));
    }
    if keys.copies == 0 {
        return Err("the file of keys has none".to_owned());
    }
    for revocation in revocations {
        keys.revoke(&revocation);
    }
    for certificate in certificates {
        if !keys.revoke(&certificate) {
            return Err("a revocation certificate is not of a key in the file".to_owned());
        }
    }
    Ok(keys.keys)
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("a key cannot be read: {error}")
}

/// Returns the blocks of a text without what stands between them. A block behind a colon is disabled: so
/// gpg keeps the revocation certificates that it prepares.
fn blocks(text: &str) -> impl Iterator<Item = String> {
    let mut before = "";
    let blocks = text.split(BEGIN).map(move |part| {
        let is_disabled = std::mem::replace(&mut before, part).ends_with(':');
        // A block without an end stays so: it cannot be read.
        let block = match part.split_once(END) {
            Some((body, _)) => format!("{BEGIN}{body}{END}\n"),
            None => format!("{BEGIN}{part}"),
        };
        (!is_disabled).then_some(block)
    });
    // The first part precedes all blocks.
    blocks.skip(1).flatten()
}

fn dearmor(block: &str) -> Result<Vec<u8>, String> {
    let mut packets = Vec::new();
    let mut dearmor = Dearmor::new(block.as_bytes());
    dearmor.read_to_end(&mut packets).map_err(unreadable)?;
    Ok(packets)
}

/// Returns the revocations of keys, wherever they stand: those that do not stand right behind their key
/// are not part of it for the parser.
fn key_revocations(packets: &[u8]) -> impl Iterator<Item = Signature> {
    PacketParser::new(packets).filter_map(|packet| match packet {
        Ok(Packet::Signature(it)) if it.typ() == Some(SignatureType::KeyRevocation) => Some(it),
        _ => None,
    })
}

#[derive(Default)]
struct MergedKeys {
    keys: Vec<SignedPublicKey>,
    indexes: HashMap<Fingerprint, usize>,
    copies: usize,
}

impl MergedKeys {
    /// Adds a copy of a key: its signatures join those of the copies before it.
    fn add(&mut self, mut copy: SignedPublicKey) {
        self.copies += 1;
        let direct = std::mem::take(&mut copy.details.direct_signatures);
        let revocations = std::mem::take(&mut copy.details.revocation_signatures);
        let users = std::mem::take(&mut copy.details.users);
        let subkeys = std::mem::take(&mut copy.public_subkeys);
        let index = *self.indexes.entry(copy.fingerprint()).or_insert(self.keys.len());
        if index == self.keys.len() {
            self.keys.push(copy);
        }
        let Some(key) = self.keys.get_mut(index) else { return };
        key.details.direct_signatures.extend(direct);
        key.details.revocation_signatures.extend(revocations);
        for mut user in users {
            match key.details.users.iter_mut().find(|it| it.id.id() == user.id.id()) {
                Some(known) => known.signatures.append(&mut user.signatures),
                None => key.details.users.push(user),
            }
        }
        for mut subkey in subkeys {
            let fingerprint = subkey.fingerprint();
            match key.public_subkeys.iter_mut().find(|it| it.fingerprint() == fingerprint) {
                Some(known) => known.signatures.append(&mut subkey.signatures),
                None => key.public_subkeys.push(subkey),
            }
        }
    }

    /// Adds a revocation to the key that made it, and returns whether there is one.
    fn revoke(&mut self, revocation: &Signature) -> bool {
        let is_own = |key: &SignedPublicKey| revocation.verify_key(&key.primary_key).is_ok();
        let Some(key) = self.keys.iter_mut().find(|it| is_own(it)) else { return false };
        key.details.revocation_signatures.push(revocation.clone());
        true
    }
}
