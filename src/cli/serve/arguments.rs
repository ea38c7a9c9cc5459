//! The settings of the daemon, each in one place: flag, variable, key of the file, default, help.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::groups_directory::groups_directory;
use super::store_location::StoreLocationParser;
use crate::config::parse_duration;
use crate::console::BasePath;
use crate::forge::Provider;
use crate::git::VerifyMode;
use crate::http::{Host, OnGap, ProxyHeader, TrustedNetwork};
use crate::masking::{MaskSetting, StoredExtent};
use crate::model::BudgetOverride;
use crate::reconcile::{OnRewrite, OnStale, WriteMode};
use crate::store::StoreLocation;
use crate::telemetry::{self, LogFormat};

/// What a daemon is called that has no other name.
pub(super) const DEFAULT_INSTANCE: &str = "default";

/// Run the controller daemon: follow a branch, validate every commit, answer over HTTP
///
/// Every flag is also a variable `CLADE_<FLAG>` and a key of the file of `--config`; a flag wins over
/// a variable, and a variable over the file.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct ServeSettings {
    /// A YAML file with the same settings; flags and environment win over it
    #[arg(long, value_name = "FILE", env = "CLADE_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// Check the settings, print the effective ones without secrets, and do nothing else; a repository on this machine is opened for `--branch` and `--path`, another one is not fetched
    #[arg(long)]
    pub(super) check: bool,

    /// The group repository: the path of the top of a git repository, or a URL of `https`, `ssh`, `http`, `git` or `file`
    #[arg(long, value_name = "URL|PATH", env = "CLADE_REPO", help_heading = "Repository")]
    pub(super) repo: Option<String>,
    /// The branch to follow: a branch, a tag or a full ref name [default: what the repository's HEAD names; at a path or `file` URL, when the daemon starts]
    #[arg(long, value_name = "NAME", env = "CLADE_BRANCH", help_heading = "Repository")]
    pub(super) branch: Option<String>,
    /// The directory of the groups in the repository
    #[arg(
        long,
        value_name = "DIR",
        env = "CLADE_PATH",
        default_value = ".",
        value_parser = groups_directory,
        help_heading = "Repository"
    )]
    pub(super) path: String,
    /// The directory of the mirror, the journal and the nodes, outside of the repository and for the daemon alone; without it a repository on this machine is read in place
    #[arg(long, value_name = "DIR", env = "CLADE_DATA_DIR", help_heading = "Repository")]
    pub(super) data_dir: Option<PathBuf>,
    /// How often the branch is fetched, ten per cent more or less
    #[arg(long, value_name = "DURATION", env = "CLADE_INTERVAL", default_value = "30s", value_parser = interval, help_heading = "Repository")]
    pub(super) interval: Duration,
    /// How long one fetch or push may take as a whole, hooks of a repository on this machine included
    #[arg(long, value_name = "DURATION", env = "CLADE_FETCH_TIMEOUT", default_value = "2m", value_parser = interval, help_heading = "Repository")]
    pub(super) fetch_timeout: Duration,
    /// How many bytes one fetch may transfer
    #[arg(
        long,
        value_name = "BYTES",
        env = "CLADE_FETCH_LIMIT",
        default_value = "4294967296",
        help_heading = "Repository"
    )]
    pub(super) fetch_limit: u64,
    /// How many bytes one object may have; a ref that needs a larger one is not fetched
    #[arg(
        long,
        value_name = "BYTES",
        env = "CLADE_FETCH_OBJECT_LIMIT",
        default_value = "33554432",
        help_heading = "Repository"
    )]
    pub(super) fetch_object_limit: u64,
    /// How many objects one fetch may transfer
    #[arg(
        long,
        value_name = "COUNT",
        env = "CLADE_FETCH_OBJECTS",
        default_value = "1000000",
        help_heading = "Repository"
    )]
    pub(super) fetch_objects: u64,
    /// Refs to fetch beside all branches and tags, such as `refs/pull/*/head`; repeatable
    #[arg(
        long,
        value_name = "REFSPEC",
        env = "CLADE_FETCH_REFSPEC",
        value_delimiter = ',',
        help_heading = "Repository"
    )]
    pub(super) fetch_refspec: Vec<String>,
    /// Allow `http`, `git` and `file` URLs, which do not authenticate the remote
    #[arg(long, env = "CLADE_ALLOW_INSECURE_REMOTES", help_heading = "Repository")]
    pub(super) allow_insecure_remotes: bool,
    /// Another limit of the budget of one commit, such as `groups=50000`; repeatable, a mapping in the file
    #[arg(
        long,
        value_name = "NAME=NUMBER",
        env = "CLADE_COMMIT_BUDGET",
        value_delimiter = ',',
        help_heading = "Repository"
    )]
    pub(super) commit_budget: Vec<BudgetOverride>,
    /// How many bytes the cached snapshots of other commits may use beside the live one
    #[arg(
        long,
        value_name = "BYTES",
        env = "CLADE_SNAPSHOT_CACHE",
        default_value = "67108864",
        help_heading = "Repository"
    )]
    pub(super) snapshot_cache: u64,
    /// Whether a head that does not descend from the live commit is followed or held [default: follow, with --verify hold]
    #[arg(long, value_enum, env = "CLADE_ON_REWRITE", help_heading = "Repository")]
    pub(super) on_rewrite: Option<OnRewrite>,
    /// How long a head that is older than the live commit counts as the lag of a mirror
    #[arg(long, value_name = "DURATION", env = "CLADE_REWIND_GRACE", default_value = "30s", value_parser = parse_duration, help_heading = "Repository")]
    pub(super) rewind_grace: Duration,
    /// After how long without a successful fetch the live commit is stale [default: never]
    #[arg(long, value_name = "DURATION", env = "CLADE_MAX_STALENESS", value_parser = interval, help_heading = "Repository")]
    pub(super) max_staleness: Option<Duration>,
    /// What a stale daemon does: answer and report it, answer without being ready, or refuse to answer
    #[arg(
        long,
        value_enum,
        env = "CLADE_ON_STALE",
        default_value = "serve",
        help_heading = "Repository"
    )]
    pub(super) on_stale: OnStale,

    /// The user of `https`; with `--git-password-file`
    #[arg(
        long,
        value_name = "NAME",
        env = "CLADE_GIT_USERNAME",
        requires = "git_password_file",
        help_heading = "Credentials"
    )]
    pub(super) git_username: Option<String>,
    /// The file that holds the password, read again for each fetch
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_GIT_PASSWORD_FILE",
        requires = "git_username",
        help_heading = "Credentials"
    )]
    pub(super) git_password_file: Option<PathBuf>,
    /// The file that holds a bearer token, read again for each fetch; the token of most forges is a password instead
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_GIT_TOKEN_FILE",
        conflicts_with = "git_username",
        help_heading = "Credentials"
    )]
    pub(super) git_token_file: Option<PathBuf>,
    /// The private key of `ssh`, without a passphrase, read again for each fetch
    #[arg(long, value_name = "FILE", env = "CLADE_SSH_KEY_FILE", help_heading = "Credentials")]
    pub(super) ssh_key_file: Option<PathBuf>,
    /// The host keys to trust over `ssh`, in the form of OpenSSH's `known_hosts`
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_SSH_KNOWN_HOSTS_FILE",
        help_heading = "Credentials"
    )]
    pub(super) ssh_known_hosts_file: Option<PathBuf>,
    /// Certificates, as PEM, to trust for `https` instead of those of the public authorities
    #[arg(long, value_name = "FILE", env = "CLADE_GIT_CA_FILE", help_heading = "Credentials")]
    pub(super) git_ca_file: Option<PathBuf>,
    /// The proxy for `https`: a URL, or `none` [default: from the environment]
    #[arg(long, value_name = "URL", env = "CLADE_GIT_PROXY", help_heading = "Credentials")]
    pub(super) git_proxy: Option<String>,

    /// Which commits must be signed by an allowed key
    #[arg(
        long,
        value_enum,
        env = "CLADE_VERIFY",
        default_value = "off",
        help_heading = "Signatures"
    )]
    pub(super) verify: VerifyMode,
    /// The allowed SSH keys, in the form of OpenSSH's `allowed_signers`
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_ALLOWED_SIGNERS_FILE",
        help_heading = "Signatures"
    )]
    pub(super) allowed_signers_file: Option<PathBuf>,
    /// The allowed OpenPGP keys, armoured
    #[arg(long, value_name = "FILE", env = "CLADE_OPENPGP_KEYS_FILE", help_heading = "Signatures")]
    pub(super) openpgp_keys_file: Option<PathBuf>,

    /// The address to listen on
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "CLADE_LISTEN",
        default_value = "127.0.0.1:4433",
        help_heading = "Service"
    )]
    pub(super) listen: String,
    /// A second address, for probes, metrics and operators; `--listen` then serves no metrics and no operator actions
    #[arg(long, value_name = "ADDRESS", env = "CLADE_ADMIN_LISTEN", help_heading = "Service")]
    pub(super) admin_listen: Option<String>,
    /// A unix socket to listen on as well; every process that may open it has every role
    #[arg(long, value_name = "PATH", env = "CLADE_SOCKET", help_heading = "Service")]
    pub(super) socket: Option<PathBuf>,
    /// The path that all addresses begin with behind a proxy, such as `/clade`; they are answered without it, too, so no route or page may begin with it, as some do with `/v1`
    #[arg(
        long,
        value_name = "PATH",
        env = "CLADE_BASE_PATH",
        default_value = "/",
        help_heading = "Console"
    )]
    pub(super) base_path: BasePath,
    /// How long requests in flight may take after SIGTERM
    #[arg(long, value_name = "DURATION", env = "CLADE_GRACE", default_value = "25s", value_parser = parse_duration, help_heading = "Service")]
    pub(super) grace: Duration,
    /// How many connections `--listen` may have; beyond that, the one that has been idle longest is closed
    #[arg(
        long,
        value_name = "NUMBER",
        env = "CLADE_MAX_CONNECTIONS",
        default_value = "4096",
        help_heading = "Service"
    )]
    pub(super) max_connections: usize,
    /// How long a client may keep the daemon waiting: for a handshake, the head of a request, or a body or answer at less than 32 KiB a second
    #[arg(long, value_name = "DURATION", env = "CLADE_CLIENT_TIMEOUT", default_value = "30s", value_parser = interval, help_heading = "Service")]
    pub(super) client_timeout: Duration,
    /// Whether `/enc` classifies a node without known facts by its name and trusted data
    #[arg(
        long,
        value_enum,
        env = "CLADE_ENC_FACTS",
        default_value = "optional",
        help_heading = "Service"
    )]
    pub(super) enc_facts: EncFacts,
    /// A directory of facts files, as Puppet Server keeps them, for nodes that have not checked in
    #[arg(long, value_name = "DIR", env = "CLADE_FACTS_DIR", help_heading = "Service")]
    pub(super) facts_dir: Option<PathBuf>,
    /// The `PuppetDB` to ask for the facts of nodes without a check-in and without a facts file; the daemon authenticates with its own certificate, and verifies that of `PuppetDB` with `--tls-client-ca`
    #[arg(long, value_name = "URL", env = "CLADE_PUPPETDB", help_heading = "Service")]
    pub(super) puppetdb: Option<String>,
    /// The form of the log
    #[arg(
        long,
        value_enum,
        env = "CLADE_LOG_FORMAT",
        default_value = "text",
        help_heading = "Service"
    )]
    pub(super) log_format: LogFormat,
    /// The events to log: `error`, `warn`, `info`, `debug`, `trace`, `off`, or by module such as `info,clade::access=debug`; SIGHUP reads it again
    #[arg(long, value_name = "FILTER", env = "CLADE_LOG", default_value = "info", value_parser = telemetry::check_filter, help_heading = "Service")]
    pub(super) log: String,

    /// Where nodes are kept: `sqlite:FILE`, or `postgres://USER@HOST/DATABASE` for several daemons together; without it `nodes.sqlite` in `--data-dir`, or memory
    #[arg(
        long,
        value_name = "LOCATION",
        env = "CLADE_STORE",
        value_parser = StoreLocationParser,
        help_heading = "Check-ins"
    )]
    pub(super) store: Option<StoreLocation>,
    /// How many bytes of the check-ins are cached in memory
    #[arg(
        long,
        value_name = "BYTES",
        env = "CLADE_STORE_CACHE",
        default_value = "33554432",
        value_parser = clap::value_parser!(u32).range(1 << 20..),
        help_heading = "Check-ins"
    )]
    pub(super) store_cache: u32,
    /// How many nodes' check-ins are kept; beyond that, nodes that were seen once are evicted, the oldest first
    #[arg(
        long,
        value_name = "COUNT",
        env = "CLADE_STORE_MAX_NODES",
        default_value = "100000",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Check-ins"
    )]
    pub(super) store_max_nodes: u64,
    /// How many bytes of check-ins are kept; without `--data-dir` at most 64 MiB, in memory
    #[arg(
        long,
        value_name = "BYTES",
        env = "CLADE_STORE_MAX_BYTES",
        default_value = "4294967296",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Check-ins"
    )]
    pub(super) store_max_bytes: u64,
    /// How long a node is kept after its last check-in
    #[arg(long, value_name = "DURATION", env = "CLADE_FORGET_AFTER", default_value = "30d", value_parser = interval, help_heading = "Check-ins")]
    pub(super) forget_after: Duration,
    /// How long the changes of a node's answers are kept
    #[arg(long, value_name = "DURATION", env = "CLADE_HISTORY", default_value = "90d", value_parser = interval, help_heading = "Check-ins")]
    pub(super) history: Duration,
    /// Which facts and trusted data of a check-in are kept: all, those that the rules of the live commit mention, or none
    #[arg(
        long,
        value_enum,
        env = "CLADE_STORE_FACTS",
        default_value = "all",
        help_heading = "Privacy"
    )]
    pub(super) store_facts: StoredExtent,
    /// A path of facts or trusted data whose values are never stored, shown or logged, such as `app.dsn` or `**.*pin*`; repeatable, added to a built-in list of passwords, keys and metadata of clouds, or `none` to turn that list off
    #[arg(
        long,
        value_name = "PATH",
        env = "CLADE_MASK",
        value_delimiter = ',',
        help_heading = "Privacy"
    )]
    pub(super) mask: Vec<MaskSetting>,
    /// A file that gets one JSON line for each answer to a node, with what rules mention of its facts; `-` is the standard output
    #[arg(long, value_name = "FILE", env = "CLADE_DECISION_LOG", help_heading = "Privacy")]
    pub(super) decision_log: Option<PathBuf>,
    /// How large this file gets before the next one is begun
    #[arg(
        long,
        value_name = "BYTES",
        env = "CLADE_DECISION_LOG_MAX_BYTES",
        default_value = "104857600",
        value_parser = clap::value_parser!(u64).range(64 << 10..),
        help_heading = "Privacy"
    )]
    pub(super) decision_log_max_bytes: u64,
    /// How many of the files before it are kept, as `FILE.1` and so on
    #[arg(
        long,
        value_name = "COUNT",
        env = "CLADE_DECISION_LOG_KEEP",
        default_value = "5",
        value_parser = clap::value_parser!(u32).range(..=1000),
        help_heading = "Privacy"
    )]
    pub(super) decision_log_keep: u32,

    /// What a write through the API becomes: refused, a commit on the branch, or a branch for review
    #[arg(long, value_enum, env = "CLADE_WRITES", default_value = "off", help_heading = "Writes")]
    pub(super) writes: WriteMode,
    /// The committer of writes, and the author for clients without a name
    #[arg(long, value_name = "NAME <ADDRESS>", env = "CLADE_WRITE_COMMITTER", default_value = "Clade <clade@localhost>", value_parser = person, help_heading = "Writes")]
    pub(super) write_committer: String,
    /// A line at the end of every message, such as `Change-Board: exempt`; repeatable
    #[arg(
        long,
        value_name = "TRAILER",
        env = "CLADE_WRITE_TRAILER",
        value_delimiter = ';',
        help_heading = "Writes"
    )]
    pub(super) write_trailer: Vec<String>,
    /// How often a write is retried when another push reaches the branch first; with 0 it is tried once
    #[arg(
        long,
        value_name = "NUMBER",
        env = "CLADE_WRITE_RETRIES",
        default_value = "5",
        help_heading = "Writes"
    )]
    pub(super) write_retries: usize,
    /// The Puppet Server that `POST /v1/update-classes` pulls class catalogues from; each update is a commit
    #[arg(long, value_name = "URL", env = "CLADE_PUPPET_SERVER", help_heading = "Writes")]
    pub(super) puppet_server: Option<String>,
    /// The client certificate for it [default: that of the daemon]
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_PUPPET_SERVER_CERT",
        requires = "puppet_server_key",
        help_heading = "Writes"
    )]
    pub(super) puppet_server_cert: Option<PathBuf>,
    /// Its private key
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_PUPPET_SERVER_KEY",
        requires = "puppet_server_cert",
        help_heading = "Writes"
    )]
    pub(super) puppet_server_key: Option<PathBuf>,
    /// The authority of the Puppet Server's certificate, as PEM [default: `--tls-client-ca`, else the public authorities]
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_PUPPET_SERVER_CA",
        requires = "puppet_server",
        help_heading = "Writes"
    )]
    pub(super) puppet_server_ca: Option<PathBuf>,
    /// How long the Puppet Server may take for all environments together; it may parse all of its code first
    #[arg(long, value_name = "DURATION", env = "CLADE_PUPPET_SERVER_TIMEOUT", default_value = "5m", value_parser = interval, help_heading = "Writes")]
    pub(super) puppet_server_timeout: Duration,

    /// The certificate of the daemon with its chain, as PEM; turns on TLS
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_TLS_CERT",
        requires = "tls_key",
        help_heading = "Access"
    )]
    pub(super) tls_cert: Option<PathBuf>,
    /// Its private key
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_TLS_KEY",
        requires = "tls_cert",
        help_heading = "Access"
    )]
    pub(super) tls_key: Option<PathBuf>,
    /// The authority of client certificates, such as Puppet's `ca_crt.pem`
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_TLS_CLIENT_CA",
        requires = "tls_cert",
        help_heading = "Access"
    )]
    pub(super) tls_client_ca: Option<PathBuf>,
    /// The lists of revoked certificates of every authority in it, such as Puppet's `ca_crl.pem`
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_TLS_CLIENT_CRL",
        requires = "tls_client_ca",
        help_heading = "Access"
    )]
    pub(super) tls_client_crl: Option<PathBuf>,
    /// What an authority without a revocation list means: the daemon refuses to start and reload, or accepts its certificates with a warning
    #[arg(
        long,
        value_enum,
        env = "CLADE_TLS_CLIENT_CRL_MISSING",
        default_value = "refuse",
        help_heading = "Access"
    )]
    pub(super) tls_client_crl_missing: OnGap,
    /// What an expired revocation list means: certificates of its authority are refused, or the list still counts
    #[arg(
        long,
        value_enum,
        env = "CLADE_TLS_CLIENT_CRL_EXPIRED",
        default_value = "refuse",
        help_heading = "Access"
    )]
    pub(super) tls_client_crl_expired: OnGap,
    /// A file that gives roles to client certificates; any other certificate may only classify its own node
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_TLS_ALLOW",
        requires = "tls_client_ca",
        help_heading = "Access"
    )]
    pub(super) tls_allow: Option<PathBuf>,
    /// The hashes of the tokens of clients, with their roles
    #[arg(long, value_name = "FILE", env = "CLADE_TOKENS_FILE", help_heading = "Access")]
    pub(super) tokens_file: Option<PathBuf>,
    /// The header by which an authenticating proxy names the user of a request, such as `X-Forwarded-User`; it counts only from the addresses of `--proxy-auth-from`
    #[arg(
        long,
        value_name = "NAME",
        env = "CLADE_PROXY_AUTH_HEADER",
        requires = "proxy_auth_from",
        help_heading = "Access"
    )]
    pub(super) proxy_auth_header: Option<ProxyHeader>,
    /// An address or network of this proxy, such as `10.1.0.7` or `10.1.0.0/24`; repeatable. Everything that can connect from there can claim any name
    #[arg(
        long,
        value_name = "CIDR",
        env = "CLADE_PROXY_AUTH_FROM",
        value_delimiter = ',',
        requires = "proxy_auth_header",
        help_heading = "Access"
    )]
    pub(super) proxy_auth_from: Vec<TrustedNetwork>,
    /// A file that gives roles to the users whom the proxy names; without it each of them may read
    #[arg(
        long,
        value_name = "FILE",
        env = "CLADE_PROXY_AUTH_ALLOW",
        requires = "proxy_auth_header",
        help_heading = "Access"
    )]
    pub(super) proxy_auth_allow: Option<PathBuf>,
    /// Allow every client that can connect to classify and read, on every address; the daemon keeps nothing of their requests
    #[arg(long, env = "CLADE_ALLOW_ANONYMOUS", help_heading = "Access")]
    pub(super) allow_anonymous: bool,
    /// A name or address of this daemon, beside loopback and `--listen`, that requests may have in the header `Host`; repeatable. Others are refused where no authentication is configured, and wherever this is given
    #[arg(
        long,
        value_name = "HOST",
        env = "CLADE_ALLOWED_HOSTS",
        value_delimiter = ',',
        help_heading = "Access"
    )]
    pub(super) allowed_hosts: Vec<Host>,

    /// The secrets of webhooks, one a line; without it webhooks are refused
    #[arg(long, value_name = "FILE", env = "CLADE_WEBHOOK_SECRET_FILE", help_heading = "Forge")]
    pub(super) webhook_secret_file: Option<PathBuf>,
    /// The forge that gets commit statuses
    #[arg(
        long,
        value_enum,
        env = "CLADE_FORGE",
        requires = "forge_token_file",
        help_heading = "Forge"
    )]
    pub(super) forge: Option<Provider>,
    /// The base of its API [default: from the host of the repository]
    #[arg(
        long,
        value_name = "URL",
        env = "CLADE_FORGE_URL",
        requires = "forge",
        help_heading = "Forge"
    )]
    pub(super) forge_url: Option<String>,
    /// The repository on it, such as `owner/name` [default: the path of the repository's URL]
    #[arg(
        long,
        value_name = "NAME",
        env = "CLADE_FORGE_REPOSITORY",
        requires = "forge",
        help_heading = "Forge"
    )]
    pub(super) forge_repository: Option<String>,
    /// The file that holds the token for its API, read again for each call
    #[arg(long, value_name = "FILE", env = "CLADE_FORGE_TOKEN_FILE", help_heading = "Forge")]
    pub(super) forge_token_file: Option<PathBuf>,
    /// Certificates, as PEM, to trust for its API instead of those of the public authorities
    #[arg(long, value_name = "FILE", env = "CLADE_FORGE_CA_FILE", help_heading = "Forge")]
    pub(super) forge_ca_file: Option<PathBuf>,
    /// The name of this daemon in commit statuses, `clade/live/NAME`, and among replicas, where the name of its machine is the default
    #[arg(
        long,
        value_name = "NAME",
        env = "CLADE_INSTANCE",
        default_value = DEFAULT_INSTANCE,
        value_parser = NonEmptyStringValueParser::new(),
        help_heading = "Forge"
    )]
    pub(super) instance: String,
    /// The address of this daemon in the links of commit statuses
    #[arg(long, value_name = "URL", env = "CLADE_PUBLIC_URL", help_heading = "Forge")]
    pub(super) public_url: Option<String>,
    /// How many bytes of memory the check of a pull request's head may allocate, in a process of its own
    #[arg(
        long,
        value_name = "BYTES",
        env = "CLADE_HEAD_MEMORY",
        default_value = "268435456",
        value_parser = clap::value_parser!(u64).range(8 << 20..),
        help_heading = "Forge"
    )]
    pub(super) head_memory: u64,
    /// How long that check may take
    #[arg(long, value_name = "DURATION", env = "CLADE_HEAD_TIMEOUT", default_value = "2m", value_parser = interval, help_heading = "Forge")]
    pub(super) head_timeout: Duration,
}

/// Whether a node is classified without facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum EncFacts {
    /// Facts must be known.
    Required,
    /// The name is enough.
    Optional,
}

/// Checks a name with an address; its user parses it.
fn person(text: &str) -> Result<String, String> {
    let parts = text.strip_suffix('>').and_then(|it| it.split_once(" <"));
    match parts {
        Some((name, address)) if !name.trim().is_empty() && !address.is_empty() => {
            Ok(text.to_owned())
        }
        _ => Err(format!("`{text}` is not of the form `NAME <ADDRESS>`")),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    if interval < Duration::from_millis(10) {
        return Err(format!("`{text}` is too short: 10ms is the least"));
    }
    Ok(interval)
}
