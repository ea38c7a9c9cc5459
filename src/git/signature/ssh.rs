//! SSH signatures, and OpenSSH's file of allowed signers.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use russh::keys::ssh_key::SshSig;
use russh::keys::{HashAlg, PublicKey};

use super::signed::{SignatureFault, Signed, Signer};

/// What git signs with.
const NAMESPACE: &str = "git";

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
    for entry in entries(allowed) {
        let entry = entry.map_err(|fault| signed.unreadable(fault))?;
        if entry.key.key_data() != key.key_data() {
            continue;
        }
        match entry.refuses(signed.time, &|| signed.first_seen()) {
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
fn entries(text: &str) -> impl Iterator<Item = Result<Entry, String>> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| {
        Entry::parse(line).map_err(|fault| format!("line {number} of the allowed signers: {fault}"))
    })
}

/// A line of the file: who may sign what, when, with which key.
#[derive(Debug)]
struct Entry {
    principals: String,
    namespaces: Option<String>,
    valid_after: Option<Timestamp>,
    valid_before: Option<Timestamp>,
    key: PublicKey,
}

impl Entry {
    fn parse(line: &str) -> Result<Self, String> {
        let mut rest = line;
        let mut word = || {
            let (word, after) = split_word(rest)?;
            rest = after;
            Some(word)
        };
        let principals = word().ok_or("there are no principals")?.replace('"', "");
        let (mut namespaces, mut valid_after, mut valid_before) = (None, None, None);
        let kind = loop {
            let option = word().ok_or("there is no key")?;
            if is_key_type(option) {
                break option;
            }
            for part in split_options(option) {
                let (name, value) = part.split_once('=').unwrap_or((part, ""));
                let value = value.trim_matches('"');
                match name.to_ascii_lowercase().as_str() {
                    "namespaces" => namespaces = Some(value.to_owned()),
                    "valid-after" => valid_after = Some(time(value)?),
                    "valid-before" => valid_before = Some(time(value)?),
                    // To pass over it would allow a key for what it is not meant for.
                    other => return Err(format!("the option `{other}` is not supported")),
                }
            }
        };
        let blob = word().ok_or("the key is missing after its type")?;
        let key = PublicKey::from_openssh(&format!("{kind} {blob}"))
            .map_err(|error| format!("the key cannot be read: {error}"))?;
        Ok(Self { principals, namespaces, valid_after, valid_before, key })
    }

    /// Returns why the key may not have signed a commit that was made and first seen at these times.
    ///
    /// A committer chooses the time that a commit names, so the key must be valid at both.
    fn refuses(&self, made: Timestamp, seen: &dyn Fn() -> Timestamp) -> Option<&'static str> {
        let is_for_git = |list: &String| list.split(',').any(|it| matches!(it, "*" | NAMESPACE));
        if !self.namespaces.as_ref().is_none_or(is_for_git) {
            return Some("it is not allowed for git");
        }
        if self.valid_after.is_none() && self.valid_before.is_none() {
            return None;
        }
        let too_early = |time| self.valid_after.is_some_and(|from| time < from);
        let too_late = |time| self.valid_before.is_some_and(|until| time >= until);
        let seen = seen();
        if too_early(made) {
            Some("it was not valid yet when the commit was made")
        } else if too_late(made) {
            Some("it was not valid any more when the commit was made")
        } else if too_early(seen) {
            Some("it was not valid yet when the commit was first seen here")
        } else if too_late(seen) {
            Some("it was not valid any more when the commit was first seen here")
        } else {
            None
        }
    }
}

fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"].iter().any(|start| word.starts_with(start))
}

/// Splits off what comes before the first blank that is not within quotes.
fn split_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let mut quoted = false;
    let end = text.char_indices().find(|(_, char)| {
        quoted ^= *char == '"';
        char.is_whitespace() && !quoted
    });
    let end = end.map_or(text.len(), |(index, _)| index);
    let (word, rest) = text.split_at_checked(end)?;
    (!word.is_empty()).then_some((word, rest))
}

/// Splits options at commas that are not within quotes.
fn split_options(text: &str) -> Vec<&str> {
    let mut quoted = false;
    text.split(|char: char| {
        quoted ^= char == '"';
        char == ',' && !quoted
    })
    .collect()
}

/// Reads `YYYYMMDD[HHMM[SS]][Z]`; without `Z` it is the time of this machine.
fn time(text: &str) -> Result<Timestamp, String> {
    let wrong = || format!("`{text}` is not a time such as 20261003 or 202610030210Z");
    let (digits, zone) = match text.strip_suffix(['Z', 'z']) {
        Some(digits) => (digits, TimeZone::UTC),
        None => (text, TimeZone::system()),
    };
    let padded = match digits.len() {
        8 => format!("{digits}000000"),
        12 => format!("{digits}00"),
        14 => digits.to_owned(),
        _ => return Err(wrong()),
    };
    let civil = DateTime::strptime("%Y%m%d%H%M%S", &padded).map_err(|_| wrong())?;
    civil.to_zoned(zone).map(|it| it.timestamp()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    #[test]
    fn lines_of_allowed_signers_are_read() {
        for (line, principals, refused) in [
            (format!("ada@example.com {KEY} a comment"), "ada@example.com", None),
            (format!("\"ada@example.com,bob\" {KEY}"), "ada@example.com,bob", None),
            (format!("* namespaces=\"git,file\" {KEY}"), "*", None),
            (format!("* namespaces=\"file\" {KEY}"), "*", Some("it is not allowed for git")),
            (
                format!("* valid-before=\"20200101Z\",namespaces=\"git\" {KEY}"),
                "*",
                Some("it was not valid any more when the commit was made"),
            ),
            (
                format!("* valid-after=203001010000Z {KEY}"),
                "*",
                Some("it was not valid yet when the commit was made"),
            ),
        ] {
            let entry = Entry::parse(&line).unwrap_or_else(|fault| panic!("{line}: {fault}"));
            assert_eq!(entry.principals, principals, "{line}");
            let time = "2026-01-01T00:00:00Z".parse().unwrap();
            assert_eq!(entry.refuses(time, &|| time), refused, "{line}");
        }
    }

    #[test]
    fn a_time_that_the_committer_chose_makes_no_key_valid() {
        let line = format!("* valid-after=20250101Z,valid-before=\"20260101Z\" {KEY}");
        let entry = Entry::parse(&line).unwrap();
        let at = |date: &str| format!("{date}T00:00:00Z").parse::<Timestamp>().unwrap();
        for (made, seen, refused) in [
            ("2025-05-01", "2025-05-02", None),
            (
                "2025-05-01",
                "2026-05-01",
                Some("it was not valid any more when the commit was first seen here"),
            ),
            (
                "2025-05-01",
                "2024-05-01",
                Some("it was not valid yet when the commit was first seen here"),
            ),
            (
                "2026-05-01",
                "2025-05-01",
                Some("it was not valid any more when the commit was made"),
            ),
        ] {
            assert_eq!(entry.refuses(at(made), &|| at(seen)), refused, "{made} {seen}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_odd_to_be_judged(line in "([ -~é]{0,12}[ ,=]){0,8}") {
            // Text that is not a key is a fault, and never an allowed key.
            proptest::prop_assert!(Entry::parse(&line).is_err());
        }
    }

    #[test]
    fn lines_that_cannot_be_read_are_faults() {
        for (line, fault) in [
            ("ada", "there is no key"),
            ("ada ssh-ed25519", "the key is missing after its type"),
            ("ada cert-authority ssh-ed25519 AAAA", "the option `cert-authority` is not supported"),
            (
                "ada valid-after=tomorrow ssh-ed25519 AAAA",
                "`tomorrow` is not a time such as 20261003 or 202610030210Z",
            ),
        ] {
            assert_eq!(Entry::parse(line).unwrap_err(), fault, "{line}");
        }
        assert!(Entry::parse("ada ssh-ed25519 AAAA").unwrap_err().starts_with("the key cannot"));
    }
}
