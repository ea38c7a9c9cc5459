//! Which host keys to trust: OpenSSH's file of known hosts.

use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use russh::keys::ssh_key::KnownHosts as Lines;
use russh::keys::ssh_key::known_hosts::{HostPatterns, Marker};
use russh::keys::{Algorithm, PublicKey};
use sha1::Sha1;

use crate::config::read_bounded_text;

/// What the file says of one host.
#[derive(Debug)]
pub(super) struct KnownHosts {
    trusted: Vec<PublicKey>,
    revoked: Vec<PublicKey>,
}

/// What is to be thought of a key that a host shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the host's.
    Known,
    /// Nothing is known of the host.
    Unknown,
    /// The host has others.
    Other,
    /// It was taken back.
    Revoked,
}

/// Checks that a file of known hosts can be used. One that trusts no key is as good as any: hosts are
/// added to it while the daemon runs.
pub(super) fn check(file: &Path) -> Result<(), KnownHostsError> {
    let text = read_bounded_text(file)?;
    // Lines with markers are parsed whatever the host.
    KnownHosts::parse(&text, "", 22).map(|_| ())
}

/// A file of known hosts cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum KnownHostsError {
    #[error(transparent)]
    Unreadable(#[from] std::io::Error),
    /// A key that may be the host's may have been taken back here.
    #[error("line {0}: the line has a marker, such as `@revoked`, and cannot be parsed")]
    Marker(usize),
}

impl KnownHosts {
    pub(super) fn read(file: &Path, host: &str, port: u16) -> Result<Self, KnownHostsError> {
        let text = read_bounded_text(file)?;
        Self::parse(&text, host, port)
    }

    fn parse(text: &str, host: &str, port: u16) -> Result<Self, KnownHostsError> {
        let name = if port == 22 { host.to_owned() } else { format!("[{host}]:{port}") };
        let mut known = Self { trusted: Vec::new(), revoked: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            for entry in Lines::new(line) {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(_) if line.trim_start().starts_with('@') => {
                        return Err(KnownHostsError::Marker(index + 1));
                    }
                    // Other lines, such as of key types that are not supported, trust no key.
                    Err(_) => continue,
                };
                if !applies(entry.host_patterns(), &name.to_ascii_lowercase()) {
                    continue;
                }
                match entry.marker() {
                    None => known.trusted.push(entry.public_key().clone()),
                    Some(Marker::Revoked) => known.revoked.push(entry.public_key().clone()),
                    // Certificates of hosts are not asked for.
                    Some(Marker::CertAuthority) => {}
                }
            }
        }
        Ok(known)
    }

    pub(super) fn verdict(&self, key: &PublicKey) -> Verdict {
        let is_in = |keys: &[PublicKey]| keys.iter().any(|it| it.key_data() == key.key_data());
        match () {
            () if is_in(&self.revoked) => Verdict::Revoked,
            () if is_in(&self.trusted) => Verdict::Known,
            () if self.trusted.is_empty() => Verdict::Unknown,
            () => Verdict::Other,
        }
    }

    /// Returns the kinds of keys to ask for: those that are known, in the given order.
    pub(super) fn preferred(&self, all: &[Algorithm]) -> Vec<Algorithm> {
        let kind = |algorithm: &Algorithm| match algorithm {
            Algorithm::Rsa { .. } => Algorithm::Rsa { hash: None },
            other => other.clone(),
        };
        let is_known =
            |it: &&Algorithm| self.trusted.iter().any(|key| kind(&key.algorithm()) == kind(it));
        let known: Vec<Algorithm> = all.iter().filter(is_known).cloned().collect();
        if known.is_empty() { all.to_vec() } else { known }
    }
}

fn applies(patterns: &HostPatterns, name: &str) -> bool {
    match patterns {
        HostPatterns::Patterns(patterns) => {
            let any = |negated: bool| {
                patterns.iter().any(|pattern| match pattern.strip_prefix('!') {
                    Some(pattern) => negated && is_like(&pattern.to_ascii_lowercase(), name),
                    None => !negated && is_like(&pattern.to_ascii_lowercase(), name),
                })
            };
            any(false) && !any(true)
        }
        HostPatterns::HashedName { salt, hash } => Hmac::<Sha1>::new_from_slice(salt)
            .is_ok_and(|mac| mac.chain_update(name).verify_slice(hash.as_slice()).is_ok()),
    }
}

/// Returns whether a name is like a pattern with `*` and `?`.
fn is_like(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Which ends of the name the pattern so far can reach.
    let mut reached = vec![false; name.len() + 1];
    reached.splice(..1, [true]);
    for part in pattern {
        let before = reached.clone();
        let mut so_far = false;
        for (end, slot) in reached.iter_mut().enumerate() {
            let here = before.get(end).copied().unwrap_or(false);
            let last = end.checked_sub(1);
            let step = last.and_then(|it| before.get(it)).copied().unwrap_or(false);
            so_far |= here;
            *slot = match part {
                '*' => so_far,
                '?' => step,
                char => step && last.and_then(|it| name.get(it)) == Some(&char),
            };
        }
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const TWO: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGhL0N1PVqS4hdTnWIlWrSx7d0i+OtSsbl4CLF1XNWvi";

    fn key(text: &str) -> PublicKey {
        PublicKey::from_openssh(text).unwrap()
    }

    #[test]
    fn keys_are_trusted_for_the_hosts_of_their_line() {
        for (file, host, port, verdict) in [
            (format!("git.example.com {ONE}\n"), "git.example.com", 22, Verdict::Known),
            (format!("Git.Example.com {ONE}\n"), "git.example.com", 22, Verdict::Known),
            (format!("git.example.com {ONE}\n"), "git.example.com", 2222, Verdict::Unknown),
            (format!("[git.example.com]:2222 {ONE}\n"), "git.example.com", 2222, Verdict::Known),
            (format!("a,*.example.com {ONE} comment\n"), "git.example.com", 22, Verdict::Known),
            (
                format!("*.example.com,!git.example.com {ONE}\n"),
                "git.example.com",
                22,
                Verdict::Unknown,
            ),
            (format!("# nothing\ngit.example.com {TWO}\n"), "git.example.com", 22, Verdict::Other),
            (format!("h {TWO}\nh {ONE}\n"), "h", 22, Verdict::Known),
            (format!("h {ONE}\n@revoked * {ONE}\n"), "h", 22, Verdict::Revoked),
            (format!("@cert-authority * {ONE}\n"), "h", 22, Verdict::Unknown),
            (format!("garbage\nh ssh-ed25519 garbage\nh {ONE}\n"), "h", 22, Verdict::Known),
            // What `ssh-keygen -H` makes of `git.example.com`.
            (
                format!("{} {ONE}\n", hashed("git.example.com")),
                "git.example.com",
                22,
                Verdict::Known,
            ),
            (format!("{} {ONE}\n", hashed("git.example.com")), "other", 22, Verdict::Unknown),
        ] {
            let known = KnownHosts::parse(&file, host, port).unwrap();
            assert_eq!(known.verdict(&key(ONE)), verdict, "{host}:{port} in {file}");
        }
    }

    #[test]
    fn a_revocation_that_cannot_be_read_is_not_passed_over() {
        for line in [
            "@revoked h ssh-ed25519 garbage",
            "@revoked h",
            "@revoked",
            "\t@revoked * ssh-ed25519",
            "@REVOKED h ssh-ed25519 AAAA",
            "@revoke h ssh-ed25519 AAAA",
        ] {
            let error = KnownHosts::parse(&format!("h {ONE}\n{line}\n"), "h", 22).unwrap_err();
            assert!(matches!(error, KnownHostsError::Marker(2)), "{line}: {error}");
        }
    }

    fn hashed(name: &str) -> String {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;

        let salt = [7; 20];
        let mac = Hmac::<Sha1>::new_from_slice(&salt).unwrap().chain_update(name);
        let hash = mac.finalize().into_bytes();
        format!("|1|{}|{}", STANDARD.encode(salt), STANDARD.encode(hash))
    }

    #[test]
    fn the_kinds_of_known_keys_are_asked_for() {
        let known = KnownHosts::parse(&format!("h {ONE}\n"), "h", 22).unwrap();
        let all =
            [Algorithm::Ecdsa { curve: russh::keys::EcdsaCurve::NistP256 }, Algorithm::Ed25519];
        assert_eq!(known.preferred(&all), [Algorithm::Ed25519]);
        assert_eq!(KnownHosts::parse("", "h", 22).unwrap().preferred(&all), all);
    }

    proptest::proptest! {
        #[test]
        fn an_invalid_key_is_never_trusted(text in "([ -~]{0,20}[ \\n,|@!*]){0,12}") {
            if let Ok(known) = KnownHosts::parse(&text, "example.com", 22) {
                proptest::prop_assert!(!matches!(known.verdict(&key(ONE)), Verdict::Known));
            }
        }
    }

    #[test]
    fn patterns_have_stars_and_question_marks() {
        for (pattern, name, like) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("?", "a", true),
            ("?", "", false),
            ("*.*", "a.b.c", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(is_like(pattern, name), like, "{pattern} {name}");
        }
    }
}
