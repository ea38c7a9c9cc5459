//! Describes certificates for logs and warnings.

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Returns subject and time of validity of a certificate.
pub(in crate::http::server) fn described(der: &CertificateDer<'_>) -> String {
    let Ok((_, it)) = X509Certificate::from_der(der) else {
        return "a certificate that cannot be read".to_owned();
    };
    let (from, until) = (it.validity().not_before, it.validity().not_after);
    format!(
        "the certificate of `{}` (issued by `{}`, valid from {} to {})",
        short(&it.subject().to_string()),
        short(&it.issuer().to_string()),
        time(from.timestamp()),
        time(until.timestamp()),
    )
}

/// Returns a name without line breaks: clients choose theirs.
pub(super) fn short(name: &str) -> String {
    name.chars().take(200).flat_map(char::escape_debug).collect()
}

pub(super) fn time(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |it| it.to_string())
}
