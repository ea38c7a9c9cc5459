//! Secrets in what a server says: it may repeat what it was sent, and what it says is logged.

use std::cmp::Reverse;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The length of the shortest secret that is masked: a shorter text stands in many words.
const SHORTEST: usize = 4;

/// What stands in place of a secret.
const MASK: &str = "…";

/// Masks secrets, as they are and in Base64.
#[derive(Clone, Default)]
pub struct SecretMask {
    /// What is masked, the longest first: one may be a part of another.
    forms: Vec<String>,
}

impl SecretMask {
    /// Masks some secrets.
    pub fn of<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let secrets = secrets.into_iter().filter(|it| it.len() >= SHORTEST);
        let mut forms: Vec<String> =
            secrets.flat_map(|it| [it.to_owned(), STANDARD_NO_PAD.encode(it)]).collect();
        forms.sort_by_key(|it| Reverse(it.len()));
        forms.dedup();
        Self { forms }
    }

    /// Returns a text without the secrets.
    pub fn hide(&self, text: &str) -> String {
        self.forms.iter().fold(text.to_owned(), |text, form| text.replace(form, MASK))
    }
}

impl fmt::Debug for SecretMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretMask").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_as_they_are_and_in_base64() {
        let mask = SecretMask::of(["ci:hunter2", "hunter2", "git"]);
        for (text, expected) in [
            ("bad header: Basic Y2k6aHVudGVyMg==", "bad header: Basic …=="),
            ("`ci:hunter2` is not known", "`…` is not known"),
            ("password hunter2, aHVudGVyMg==", "password …, …=="),
            ("git says nothing", "git says nothing"),
        ] {
            assert_eq!(mask.hide(text), expected);
        }
        assert_eq!(format!("{mask:?}"), "SecretMask { .. }");
    }
}
