//! Verifies that a delivery is signed with a configured secret.
//!
//! Sources: the documentation of each forge on its webhooks, and the Standard Webhooks
//! specification for `webhook-signature`.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256, Sha512};
use subtle::{Choice, ConstantTimeEq as _};

use super::payload::Provider;
use super::secret::Secret;

/// How far the sender's clock may differ, in seconds.
const TOLERANCE: i64 = 300;

/// A signature check that is fed the bytes of a body.
pub(super) struct Check {
    /// One for each secret.
    macs: Vec<Mac>,
    /// The signature that one of them must produce.
    expected: Vec<Vec<u8>>,
    /// What is known without the body.
    known: Option<Choice>,
}

enum Mac {
    Sha256(Hmac<Sha256>),
    Sha512(Hmac<Sha512>),
}

/// What a signature is made with.
#[derive(Clone, Copy)]
enum Hash {
    Sha256,
    Sha512,
}

impl Check {
    /// Begins the check of a delivery; `None` if it has no well-formed signature.
    pub(super) fn begin(
        provider: Provider,
        headers: &HeaderMap,
        secrets: &[Secret],
        now: Timestamp,
    ) -> Option<Self> {
        let text = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?.trim();
            (!value.is_empty()).then_some(value)
        };
        let sha256 = |name: &str| {
            let hex = text(name)?.strip_prefix("sha256=")?;
            Self::over(secrets, Hash::Sha256, b"", vec![unhex(hex)?])
        };
        let bare = |name: &str| Self::over(secrets, Hash::Sha256, b"", vec![unhex(text(name)?)?]);
        match provider {
            Provider::GitHub => sha256("x-hub-signature-256"),
            Provider::Bitbucket | Provider::BitbucketDataCenter => sha256("x-hub-signature"),
            Provider::Gitea => bare("x-gitea-signature"),
            // A wrong header of its own is not rescued by the other.
            Provider::Forgejo if headers.contains_key("x-forgejo-signature") => {
                bare("x-forgejo-signature")
            }
            Provider::Forgejo => bare("x-gitea-signature"),
            Provider::Generic => {
                let value = text("x-signature")?;
                match value.split_once('=')? {
                    ("sha256", hex) => Self::over(secrets, Hash::Sha256, b"", vec![unhex(hex)?]),
                    ("sha512", hex) => Self::over(secrets, Hash::Sha512, b"", vec![unhex(hex)?]),
                    _ => None,
                }
            }
            Provider::GitLab if headers.contains_key("webhook-signature") => {
                Self::standard(headers, secrets, now)
            }
            Provider::GitLab => Some(Self::token(text("x-gitlab-token")?, secrets)),
            Provider::Standard => Self::standard(headers, secrets, now),
        }
    }

    /// The token is the secret itself; hashes are compared, since they are of one length.
    fn token(token: &str, secrets: &[Secret]) -> Self {
        let hash = Sha256::digest(token.as_bytes());
        let known = secrets.iter().fold(Choice::from(0), |known, secret| {
            known | Sha256::digest(secret.text()).ct_eq(&hash)
        });
        Self { macs: Vec::new(), expected: Vec::new(), known: Some(known) }
    }

    fn standard(headers: &HeaderMap, secrets: &[Secret], now: Timestamp) -> Option<Self> {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        let (id, timestamp) = (text("webhook-id")?, text("webhook-timestamp")?);
        let sent: i64 = timestamp.parse().ok()?;
        if now.as_second().abs_diff(sent) > TOLERANCE.unsigned_abs() {
            return None;
        }
        let signatures = text("webhook-signature")?
            .split(' ')
            .filter_map(|it| STANDARD.decode(it.strip_prefix("v1,")?).ok())
            .collect();
        let prefix = format!("{id}.{timestamp}.");
        Self::over(secrets, Hash::Sha256, prefix.as_bytes(), signatures)
    }

    fn over(secrets: &[Secret], hash: Hash, prefix: &[u8], expected: Vec<Vec<u8>>) -> Option<Self> {
        let begin = |secret: &Secret| {
            Some(match hash {
                Hash::Sha256 => Mac::Sha256(Hmac::new_from_slice(secret.key()).ok()?),
                Hash::Sha512 => Mac::Sha512(Hmac::new_from_slice(secret.key()).ok()?),
            })
        };
        let macs: Vec<Mac> = secrets.iter().filter_map(begin).collect();
        if macs.is_empty() || expected.is_empty() {
            return None;
        }
        let mut check = Self { macs, expected, known: None };
        check.update(prefix);
        Some(check)
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        for mac in &mut self.macs {
            match mac {
                Mac::Sha256(mac) => mac.update(bytes),
                Mac::Sha512(mac) => mac.update(bytes),
            }
        }
    }

    /// Returns whether a signature is valid, in constant time.
    pub(super) fn passes(self) -> bool {
        if let Some(known) = self.known {
            return known.into();
        }
        let mut passes = Choice::from(0);
        for mac in self.macs {
            let made = match mac {
                Mac::Sha256(mac) => mac.finalize().into_bytes().to_vec(),
                Mac::Sha512(mac) => mac.finalize().into_bytes().to_vec(),
            };
            for expected in &self.expected {
                passes |= made.as_slice().ct_eq(expected);
            }
        }
        passes.into()
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.len().is_multiple_of(2)
        && text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it));
    if !is_hex {
        return None;
    }
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hex;

    fn passes(
        provider: Provider,
        headers: &[(&'static str, &str)],
        secret: &str,
        body: &str,
        now: i64,
    ) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let secrets = ["another", secret].map(Secret::new);
        let now = Timestamp::from_second(now).unwrap();
        let Some(mut check) = Check::begin(provider, &map, &secrets, now) else { return false };
        // In pieces, as it comes.
        for piece in body.as_bytes().chunks(3) {
            check.update(piece);
        }
        check.passes()
    }

    const GITHUB: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    const GITHUB_SECRET: &str = "It's a Secret to Everybody";
    const BARE: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    const GENERIC: &str = "sha256=232a5e067b6a5aa567ed5a1d21a0dffaf6ef0eeecb6bd9bcf43b3d5ef3fc4f43";
    const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const STANDARD_SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn signatures_of_the_forges_pass() {
        let jefe = "what do ya want for nothing?";
        let standard = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", STANDARD_SIGNATURE),
        ];
        let message = r#"{"test": 2432232314}"#;
        for (provider, headers, secret, body) in [
            (
                Provider::GitHub,
                &[("x-hub-signature-256", GITHUB)][..],
                GITHUB_SECRET,
                "Hello, World!",
            ),
            (Provider::Bitbucket, &[("x-hub-signature", GITHUB)], GITHUB_SECRET, "Hello, World!"),
            (
                Provider::BitbucketDataCenter,
                &[("x-hub-signature", GITHUB)],
                GITHUB_SECRET,
                "Hello, World!",
            ),
            (Provider::Gitea, &[("x-gitea-signature", BARE)], "Jefe", jefe),
            (Provider::Forgejo, &[("x-forgejo-signature", BARE)], "Jefe", jefe),
            (Provider::Forgejo, &[("x-gitea-signature", BARE)], "Jefe", jefe),
            (
                Provider::Generic,
                &[("x-signature", GENERIC)],
                "s3cret",
                r#"{"ref":"refs/heads/main"}"#,
            ),
            (Provider::GitLab, &[("x-gitlab-token", "s3cret")], "s3cret", "anything"),
            (Provider::GitLab, &standard, STANDARD_SECRET, message),
            (Provider::Standard, &standard, STANDARD_SECRET, message),
        ] {
            let now = 1_614_265_330 + 299;
            assert!(passes(provider, headers, secret, body, now), "{provider:?}");
            assert!(!passes(provider, headers, "wrong", body, now), "{provider:?}");
            let is_token = headers.iter().any(|(name, _)| *name == "x-gitlab-token");
            assert_eq!(
                passes(provider, headers, secret, &format!("{body} "), now),
                is_token,
                "{provider:?}"
            );
        }
        let old = 1_614_265_330 + 301;
        assert!(!passes(Provider::Standard, &standard, STANDARD_SECRET, message, old));
        let rotated = format!("v1,AAAA v1a,BBBB {STANDARD_SIGNATURE}");
        let several = [standard[0], standard[1], ("webhook-signature", rotated.as_str())];
        assert!(passes(Provider::Standard, &several, STANDARD_SECRET, message, 1_614_265_330));
    }

    #[test]
    fn an_invalid_signature_does_not_pass() {
        let body = "Hello, World!";
        let bare = GITHUB.strip_prefix("sha256=").unwrap();
        for (provider, headers) in [
            (Provider::GitHub, &[][..]),
            (Provider::GitHub, &[("x-hub-signature-256", "")]),
            (Provider::GitHub, &[("x-hub-signature-256", bare)]),
            (Provider::GitHub, &[("x-hub-signature-256", "sha256=")]),
            (Provider::GitHub, &[("x-hub-signature-256", "sha256=zz")]),
            // The old header is not taken.
            (Provider::GitHub, &[("x-hub-signature", GITHUB)]),
            // Gitea sends it empty where no secret is set.
            (Provider::Gitea, &[("x-gitea-signature", ""), ("x-hub-signature-256", GITHUB)]),
            (Provider::Forgejo, &[("x-forgejo-signature", "00"), ("x-gitea-signature", bare)]),
            (Provider::Generic, &[("x-signature", "sha1=00")]),
            (Provider::GitLab, &[("x-gitlab-token", "")]),
            (
                Provider::GitLab,
                &[("webhook-signature", "v1,AAAA"), ("x-gitlab-token", GITHUB_SECRET)],
            ),
            (Provider::Standard, &[("webhook-signature", STANDARD_SIGNATURE)]),
        ] {
            assert!(
                !passes(provider, headers, GITHUB_SECRET, body, 1_614_265_330),
                "{provider:?} {headers:?}"
            );
        }
        assert!(
            Check::begin(Provider::GitHub, &HeaderMap::new(), &[], Timestamp::UNIX_EPOCH).is_none()
        );
    }

    #[test]
    fn the_long_hash_passes_too() {
        let mut mac: Hmac<Sha512> = Hmac::new_from_slice(b"s").unwrap();
        mac.update(b"body");
        let made = mac.finalize().into_bytes();
        let value = format!("sha512={}", hex(&made));
        assert!(passes(Provider::Generic, &[("x-signature", &value)], "s", "body", 0));
    }
}
