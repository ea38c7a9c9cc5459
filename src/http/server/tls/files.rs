//! Which files TLS is set up from, and what absent revocation lists cause.

use std::path::PathBuf;

/// The files of TLS.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The daemon's certificate with its chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities that sign client certificates.
    pub client_ca: Option<PathBuf>,
    /// Their revocation lists.
    pub client_crl: Option<PathBuf>,
    /// What happens without a valid list.
    pub policy: CrlPolicy,
}

/// What happens without a valid revocation list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnGap {
    /// Certificates of unknown status are refused.
    #[default]
    Refuse,
    /// Certificates of unknown status are accepted, with a warning in the log.
    Allow,
}

/// What absent and expired revocation lists cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrlPolicy {
    /// An authority has no list.
    pub missing: OnGap,
    /// The list of an authority is expired.
    pub expired: OnGap,
}
