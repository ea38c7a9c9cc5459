//! What a person can try when a daemon gives no answer.

use std::io::ErrorKind;

use ureq::http::StatusCode;

/// Whether errors say what to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hints {
    /// A person reads them.
    Given,
    /// A program reads them, or the service is not a daemon: only whether it may want another scheme.
    Scheme,
    /// The address has no scheme.
    None,
}

impl Hints {
    /// Returns what to try when a connection fails.
    pub(super) fn on_connection(self, error: &ureq::Error, base: &str) -> &'static str {
        const OTHER: &str =
            "; is it running (`clade serve`)? if it is elsewhere, use --server or CLADE_SERVER";
        let (other, encrypted, plain) = match self {
            Self::Given => (
                OTHER,
                "; if the daemon has a certificate, use https://",
                "; if the daemon has no certificate, use http://",
            ),
            Self::Scheme => (
                "",
                "; if the service has a certificate, use https://",
                "; if the service has no certificate, use http://",
            ),
            Self::None => return "",
        };
        let is_plain = base.starts_with("http://");
        match error {
            ureq::Error::Io(error) => match error.kind() {
                ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof if is_plain => encrypted,
                ErrorKind::InvalidData if !is_plain => plain,
                ErrorKind::ConnectionReset
                | ErrorKind::UnexpectedEof
                | ErrorKind::InvalidData
                | ErrorKind::PermissionDenied => "",
                // Such as a name that no server of names knows.
                _ => other,
            },
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::Timeout(_) => {
                other
            }
            ureq::Error::Rustls(rustls::Error::InvalidMessage(_)) => plain,
            ureq::Error::Http(_) | ureq::Error::Protocol(_) if is_plain => encrypted,
            _ => "",
        }
    }

    /// Returns what to try when something answers that is not a daemon.
    pub(super) fn on_other_answer(self, url: &str) -> &'static str {
        match self {
            Self::Given if url.starts_with("http://") => {
                "; is this the address of a daemon? one with a certificate needs https://"
            }
            Self::Given => "; is this the address of a daemon?",
            Self::Scheme | Self::None => "",
        }
    }

    /// Returns what to try when a daemon refuses.
    ///
    /// `not_found` is the path that the daemon says it does not have.
    pub(super) fn on_status(self, status: StatusCode, not_found: Option<&str>) -> &'static str {
        if self != Self::Given {
            return "";
        }
        // That of a node is at every address: it is the node that is not known.
        let is_operators = not_found
            .is_some_and(|path| path.contains("/controller/") && !path.contains("/nodes/"));
        match status {
            StatusCode::UNAUTHORIZED => " Use --token-file, or --tls-cert and --tls-key.",
            StatusCode::FORBIDDEN => {
                " Use a token (--token-file) or a certificate (--tls-cert, --tls-key) that has it."
            }
            StatusCode::NOT_FOUND if is_operators => {
                " With --admin-listen the daemon has this route at that address alone."
            }
            _ => "",
        }
    }
}
