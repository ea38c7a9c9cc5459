//! How a remote is fetched.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::remote::Scheme;

/// What a mirror may do, and how long.
#[derive(Clone, Debug)]
pub struct MirrorOptions {
    /// The schemes of URLs that are allowed; paths always are.
    pub schemes: BTreeSet<Scheme>,
    /// Refs to fetch beside all branches and tags: `refs/pull/*/head`, or with a destination of
    /// their own `+refs/pull/*/head:refs/remotes/origin/pull/*`.
    pub refspecs: Vec<String>,
    /// How long one look at the remote may take as a whole, whatever the peer does.
    pub timeout: Duration,
    /// How many bytes one look may bring over the network.
    pub max_bytes: u64,
    /// What `http` and `https` need.
    pub http: HttpOptions,
    /// What `ssh` needs.
    pub ssh: SshOptions,
}

impl Default for MirrorOptions {
    /// Returns what is safe without being asked: `https` and `ssh` only, two minutes, 4 GiB.
    fn default() -> Self {
        Self {
            schemes: BTreeSet::from([Scheme::Https, Scheme::Ssh]),
            refspecs: Vec::new(),
            timeout: Duration::from_mins(2),
            max_bytes: 4 << 30,
            http: HttpOptions::default(),
            ssh: SshOptions::default(),
        }
    }
}

/// What `http` and `https` need.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    /// Who we are.
    pub credentials: Credentials,
    /// Certificates, as PEM, to trust instead of those of the public authorities.
    pub ca_file: Option<PathBuf>,
    /// The way out.
    pub proxy: Proxy,
}

/// What `ssh` needs; both files are read anew for each look at the remote.
#[derive(Clone, Debug, Default)]
pub struct SshOptions {
    /// The private key, without a passphrase.
    pub key_file: Option<PathBuf>,
    /// The host keys to trust, in the form of OpenSSH's `known_hosts`.
    pub known_hosts_file: Option<PathBuf>,
}

/// Who we are to the remote. Files are read anew for each look at the remote, so that a secret can
/// be changed while we run.
#[derive(Clone, Debug, Default)]
pub enum Credentials {
    /// Those of the URL; none if it has none.
    #[default]
    FromUrl,
    /// A user and the file of the password: basic authentication.
    Basic {
        /// The user.
        username: String,
        /// The file that holds the password.
        password_file: PathBuf,
    },
    /// The file of a token: `Authorization: Bearer`.
    Bearer {
        /// The file that holds the token.
        token_file: PathBuf,
    },
}

/// The way out.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Proxy {
    /// What `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say.
    #[default]
    Environment,
    /// None.
    Direct,
    /// This one; its URL may hold a password.
    Url(String),
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Environment => "Environment",
            Self::Direct => "Direct",
            Self::Url(_) => "Url(..)",
        })
    }
}
