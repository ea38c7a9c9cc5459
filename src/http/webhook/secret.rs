//! A webhook secret.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The least length of a key in bytes: a shorter one is an accident, such as a truncated file.
const LEAST: usize = 6;

/// The length in bytes from which a key cannot be guessed.
const GOOD: usize = 16;

/// A secret that signs deliveries.
#[derive(Clone)]
pub(super) struct Secret {
    text: String,
    key: Vec<u8>,
}

/// A secret is too short.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: the secret has {bytes} bytes, expected at least {LEAST}")]
pub(super) struct TooShort {
    line: usize,
    bytes: usize,
}

impl Secret {
    /// Reads secrets, one a line.
    pub(super) fn parse_all(text: &str) -> Result<Vec<Self>, TooShort> {
        let lines = text.lines().map(str::trim).enumerate().filter(|(_, it)| !it.is_empty());
        lines.map(|(index, it)| Self::parse(it, index + 1)).collect()
    }

    fn parse(text: &str, line: usize) -> Result<Self, TooShort> {
        let secret = Self::new(text);
        match secret.key.len() {
            bytes @ ..LEAST => Err(TooShort { line, bytes }),
            _ => Ok(secret),
        }
    }

    /// A secret of any length: Standard Webhooks writes keys as `whsec_` and base64.
    pub(super) fn new(text: &str) -> Self {
        let standard = text.strip_prefix("whsec_").and_then(|it| STANDARD.decode(it).ok());
        let key = standard.unwrap_or_else(|| text.as_bytes().to_vec());
        Self { text: text.to_owned(), key }
    }

    /// Returns the secret as it is written, which some forges send.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the key of a MAC.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns whether the secret could be found by guessing.
    pub(super) fn is_weak(&self) -> bool {
        self.key.len() < GOOD
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_a_key() {
        for (text, key) in [
            ("s3cret", &b"s3cret"[..]),
            ("whsec_AAECAwQF", &[0, 1, 2, 3, 4, 5]),
            ("whsec_not base64", b"whsec_not base64"),
        ] {
            let secrets = Secret::parse_all(&format!("\n  {text}\r\n")).unwrap();
            assert_eq!((secrets[0].text(), secrets[0].key()), (text, key));
            assert_eq!(format!("{secrets:?}"), "[Secret(..)]");
        }
    }

    #[test]
    fn a_secret_that_is_too_short_is_refused_with_its_line() {
        for (text, bytes) in [("whsec_", 0), ("whsec_AAAA", 3), ("x", 1), ("12345", 5)] {
            let error = Secret::parse_all(&format!("s3cret\n\n{text}\n")).unwrap_err();
            assert_eq!(error, TooShort { line: 3, bytes }, "{text}");
        }
        assert_eq!(Secret::parse_all("\n \n").unwrap().len(), 0);
    }
}
