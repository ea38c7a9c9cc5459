//! The settings of `clade enc`, each in one place: flag, variable, key of the file, default, help.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::client::IdentityArgs;
use crate::cli::duration::{parse_duration, parse_duration_or_zero};
use crate::cli::output::DataFormat;
use crate::cli::serve::EncFacts;

/// Print the ENC document of a node, for Puppet's `external_nodes`
///
/// Asks a daemon with the node's facts from Puppet Server's cache and the trusted data of its
/// certificate; if no daemon answers, the last good answer stands in. Every flag but --repo, --rev and --format is also a key
/// of the settings file; a flag wins over a variable, and a variable over the file. Exit status: 0 with
/// the document on stdout; 1 with the reason on stdout, where Puppet looks, and on stderr.
#[derive(Debug, Args)]
pub(in crate::cli) struct Enc {
    /// The node's certname
    #[arg(value_name = "NODE")]
    pub(super) node: String,
    /// A YAML file with these settings [default: /etc/clade/enc.yaml, if it is there]
    #[arg(long, value_name = "FILE", env = "CLADE_ENC_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// How the document is written: JSON on one line, which is YAML too, or YAML over several lines
    #[arg(long, value_enum, default_value = "json")]
    pub(super) format: DataFormat,

    /// A daemon to ask: a URL, or the path of its unix socket; repeatable, the first one that is well is asked [default: `http://127.0.0.1:4433`]
    #[arg(
        long,
        value_name = "URL",
        env = "CLADE_SERVER",
        value_delimiter = ',',
        help_heading = "Daemon"
    )]
    pub(super) server: Vec<String>,
    #[command(flatten, next_help_heading = "Daemon")]
    pub(super) identity: IdentityArgs,
    /// How long a daemon may take to be connected to
    #[arg(long, value_name = "DURATION", env = "CLADE_CONNECT_TIMEOUT", default_value = "1s", value_parser = parse_duration, help_heading = "Daemon")]
    pub(super) connect_timeout: Duration,
    /// How long all of it may take, the second daemon included
    #[arg(long, value_name = "DURATION", env = "CLADE_TIMEOUT", default_value = "5s", value_parser = parse_duration, help_heading = "Daemon")]
    pub(super) timeout: Duration,

    /// The directory with the facts of each node, `<certname>.json` or `.yaml` [default: where Puppet Server keeps them]
    #[arg(long, value_name = "DIR", env = "CLADE_FACTS_DIR", help_heading = "Node")]
    pub(super) facts_dir: Option<PathBuf>,
    /// Whether a node is classified by its name and trusted data when its facts are missing or cannot be read
    #[arg(
        id = "enc_facts",
        long = "enc-facts",
        value_name = "ENC_FACTS",
        value_enum,
        env = "CLADE_ENC_FACTS",
        default_value = "optional",
        help_heading = "Node"
    )]
    pub(super) facts: EncFacts,
    /// The directory with the signed certificate of each node, `<certname>.pem` [default: that of Puppet's authority]
    #[arg(long, value_name = "DIR", env = "CLADE_SIGNED_DIR", help_heading = "Node")]
    pub(super) signed_dir: Option<PathBuf>,
    /// The names of certificate extensions of one's own [default: the `trusted_oid_mapping_file` of Puppet]
    #[arg(long, value_name = "FILE", env = "CLADE_OID_MAPPING_FILE", help_heading = "Node")]
    pub(super) oid_mapping_file: Option<PathBuf>,
    /// Puppet's settings, which the other defaults come from [default: /etc/puppetlabs/puppet/puppet.conf or /etc/puppet/puppet.conf]
    #[arg(long, value_name = "FILE", env = "CLADE_PUPPET_CONF", help_heading = "Node")]
    pub(super) puppet_conf: Option<PathBuf>,

    /// The directory of last good answers [default: `clade` in Puppet Server's data directory]
    #[arg(long, value_name = "DIR", env = "CLADE_CACHE_DIR", help_heading = "Last good answer")]
    pub(super) cache_dir: Option<PathBuf>,
    /// How old a last good answer may be; 0 is never
    #[arg(long, value_name = "DURATION", env = "CLADE_MAX_STALE", default_value = "24h", value_parser = parse_duration_or_zero, help_heading = "Last good answer")]
    pub(super) max_stale: Duration,
    /// Let the last good answer stand in for a conflict, too
    #[arg(long, env = "CLADE_STALE_ON_CONFLICT", help_heading = "Last good answer")]
    pub(super) stale_on_conflict: bool,

    /// Ask no daemon, but the group repository in this directory
    #[arg(
        long,
        value_name = "DIR",
        env = "CLADE_REPO",
        conflicts_with = "server",
        help_heading = "Without a daemon"
    )]
    pub(super) repo: Option<PathBuf>,
    /// A revision of the git repository instead of the files as they are
    #[arg(long, value_name = "REV", requires = "repo", help_heading = "Without a daemon")]
    pub(super) rev: Option<String>,
}
