//! The entry point of `fuzz/` to deliveries.

use axum::http::{HeaderMap, HeaderName};

use super::payload::{self, Provider};
use super::secret::Secret;
use super::signature::Check;

/// Checks and reads a delivery as the route does, without a daemon; returns whether it is signed.
pub fn fuzz_delivery(provider: &str, headers: &[(&str, &str)], secret: &str, body: &[u8]) -> bool {
    let Some(provider) = Provider::of(provider) else { return false };
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value.parse()) {
            all.append(name, value);
        }
    }
    let Ok(secrets) = Secret::parse_all(secret) else { return false };
    let check = Check::begin(provider, &all, &secrets, jiff::Timestamp::UNIX_EPOCH);
    let signed = check.is_some_and(|mut check| {
        check.update(body);
        check.passes()
    });
    drop(provider.delivery(&all));
    if let Ok(payload) = serde_json::from_slice(body) {
        for watched in [None, Some("refs/heads/main")] {
            payload::interest(provider, &all, &payload, watched, true);
        }
    }
    signed
}
