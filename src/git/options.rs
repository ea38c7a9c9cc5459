//! How a remote is fetched.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// How long one connection to the remote may take as a whole, whatever the peer does.
    pub timeout: Duration,
    /// How many bytes one look may bring over the network.
    pub max_bytes: u64,
    /// What a fetch takes of objects.
    pub objects: ObjectLimits,
    /// Ends what is under way when the daemon must stop.
    pub interrupt: Interrupt,
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
            objects: ObjectLimits::default(),
            interrupt: Interrupt::default(),
            http: HttpOptions::default(),
            ssh: SshOptions::default(),
        }
    }
}

/// What a fetch takes of objects. A pack of a few megabytes can hold gigabytes, and reading one
/// object takes as much memory as it is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLimits {
    /// The most bytes of one object.
    pub bytes: u64,
    /// The most objects that one fetch brings.
    pub count: u64,
}

impl Default for ObjectLimits {
    /// Returns 32 MiB and a million objects.
    fn default() -> Self {
        Self { bytes: 32 << 20, count: 1_000_000 }
    }
}

/// Ends what is under way with a remote, for all clones at once.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Ends what is under way, and everything that begins later.
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Acquire)
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

/// What `ssh` needs; both files are read again for each connection.
#[derive(Clone, Debug, Default)]
pub struct SshOptions {
    /// The private key, without a passphrase.
    pub key_file: Option<PathBuf>,
    /// The host keys to trust, in the form of OpenSSH's `known_hosts`.
    pub known_hosts_file: Option<PathBuf>,
}

/// Credentials for the remote. Files are read again for each connection, so that a secret can
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
    /// What `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` say.
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
